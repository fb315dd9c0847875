//! What the agent may do without the page: nothing, unless the user at the terminal or `--yes` allows it.

#![expect(clippy::print_stderr, reason = "stdout is for the answer")]

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};

use alongside_core::ReviewId;
use alongside_front::client::{Client, ClientError};
use alongside_protocol::chat::{AgentCommand, OptionKind, PermissionDecision, PermissionRequest};
use alongside_protocol::{Accept, ReviewRef, ReviewSummary, requests};
use anyhow::Result;

use super::turn::command;
use crate::printable::{printable, printable_line};

/// Prints something that is not part of the answer.
pub(super) fn say(words: &str) {
    eprintln!("alongside: {}", printable(words));
}

pub(super) struct Decisions {
    yes: bool,
    /// There is no other front end that could decide.
    alone: bool,
    terminal: bool,
    seen: BTreeSet<String>,
}

impl Decisions {
    pub(super) fn new(yes: bool, alone: bool) -> Self {
        Self {
            yes,
            alone,
            terminal: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
            seen: BTreeSet::new(),
        }
    }

    /// Decides a permission request. Questions are declined.
    pub(super) async fn approval(&mut self, client: &mut Client, request: &PermissionRequest) -> Result<()> {
        let id = &request.request_id;
        if !self.seen.insert(format!("approval {id}")) {
            return Ok(());
        }
        let title = printable_line(&request.tool_call.title);
        let allowed = if request.is_question() {
            say(&format!(
                "the agent asked “{title}”; questions can only be answered on the page, so this one was declined"
            ));
            false
        } else if self.yes {
            say(&format!("allowed: {title}"));
            true
        } else if self.terminal {
            Self::confirm(&format!("Allow “{title}”?")).await
        } else {
            say(&format!("denied: {title} (use --yes to allow)"));
            false
        };
        let wanted = if allowed {
            OptionKind::AllowOnce
        } else {
            OptionKind::RejectOnce
        };
        let option = request.options.iter().find(|option| option.kind == wanted);
        let decision = option.map_or(PermissionDecision::Cancel, |option| {
            PermissionDecision::select(&option.option_id)
        });
        let request_id = id.clone();
        ignore_refusal(command(client, AgentCommand::Answer { request_id, decision }).await)
    }

    /// Decides a write of a local agent.
    pub(super) async fn review(&mut self, client: &mut Client, review: &ReviewSummary) -> Result<()> {
        let (id, revision) = (review.id, review.revision);
        if !review.session.is_chat() || !self.seen.insert(format!("review {id} {revision}")) {
            return Ok(());
        }
        let path = printable_line(&review.path);
        let what = format!("the change to {path} (+{} −{})", review.size.added, review.size.removed);
        if self.yes {
            say(&format!("accepted: {what}"));
            return decide(client, id, true).await;
        }
        if self.alone && self.terminal {
            let accepted = Self::confirm(&format!("Accept {what}?")).await;
            return decide(client, id, accepted).await;
        }
        if self.alone {
            say(&format!("rejected: {what} (use --yes to accept)"));
            return decide(client, id, false).await;
        }
        say(&format!(
            "{what} is pending; run `alongside diff show {id}`, then `alongside diff accept {id}` or `alongside diff reject {id}`"
        ));
        Ok(())
    }

    /// Asks at the terminal. Anything but a plain yes is a no.
    async fn confirm(question: &str) -> bool {
        eprint!("{} [y/N] ", printable(question));
        let _ = std::io::stderr().flush();
        let line = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map(|_| line)
        });
        let line = line.await.ok().and_then(Result::ok).unwrap_or_default();
        matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
    }
}

async fn decide(client: &mut Client, review: ReviewId, accept: bool) -> Result<()> {
    let decided = if accept {
        let accept = Accept {
            review,
            content: None,
            even_if_empty: false,
        };
        client.call::<requests::ReviewAccept>(accept).await
    } else {
        client.call::<requests::ReviewReject>(ReviewRef { review }).await
    };
    ignore_refusal(decided)
}

/// Another client may have decided first.
fn ignore_refusal<T>(result: Result<T, ClientError>) -> Result<()> {
    match result {
        Err(ClientError::Rejected(_)) | Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

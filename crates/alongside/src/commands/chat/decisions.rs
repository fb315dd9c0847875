//! What the agent may do while nobody looks at a page: nothing, unless somebody at the terminal or `--yes` says so.

#![expect(clippy::print_stderr, reason = "standard output belongs to the answer")]

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};

use alongside_core::ReviewId;
use alongside_front::client::{Client, ClientError};
use alongside_protocol::{Accept, Request, ReviewRef, ReviewSummary};
use anyhow::Result;
use serde_json::{Value, json};

use super::turn::command;
use crate::printable::printable_line;

/// Something that does not belong to the answer.
pub(super) fn say(words: &str) {
    eprintln!("alongside: {words}");
}

/// Who decides, and what was decided.
pub(super) struct Decisions {
    yes: bool,
    /// No other front end is there that could decide about a change.
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

    /// The agent asks for permission, or something else.
    pub(super) async fn approval(&mut self, client: &mut Client, request: &Value) -> Result<()> {
        let id = request["requestId"].as_str().unwrap_or_default().to_owned();
        if !self.seen.insert(format!("approval {id}")) {
            return Ok(());
        }
        let title = printable_line(request["toolCall"]["title"].as_str().unwrap_or("something"));
        let is_question = request["questions"]
            .as_array()
            .is_some_and(|questions| !questions.is_empty());
        let allowed = if is_question {
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
        let wanted = if allowed { "allow_once" } else { "reject_once" };
        let options = request["options"].as_array().map_or(&[][..], Vec::as_slice);
        let option = options.iter().find(|option| option["kind"] == wanted);
        let decision = match option {
            Some(option) => json!({"decision": "select", "optionId": option["optionId"]}),
            None => json!({"decision": "cancel"}),
        };
        let answer = json!({"type": "answer", "requestId": id, "decision": decision});
        match command(client, answer).await {
            // Somebody else was faster.
            Err(ClientError::Rejected { .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// A child wants to change a file.
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

    /// Asks whoever sits at the terminal. Anything but a plain yes is a no.
    async fn confirm(question: &str) -> bool {
        eprint!("{question} [y/N] ");
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
    let request = if accept {
        Request::ReviewAccept(Accept {
            review,
            content: None,
            even_if_empty: false,
        })
    } else {
        Request::ReviewReject(ReviewRef { review })
    };
    match client.call::<Value>(request).await {
        // Somebody else was faster.
        Err(ClientError::Rejected { .. }) | Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

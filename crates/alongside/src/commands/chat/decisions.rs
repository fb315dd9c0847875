//! What the agent may do without the page: nothing, unless the user at the terminal or `--yes` allows it.

use std::collections::{BTreeSet, VecDeque};

use alongside_core::ReviewId;
use alongside_front::client::{Client, ClientError};
use alongside_protocol::chat::{AgentCommand, OptionKind, PermissionDecision, PermissionRequest};
use alongside_protocol::{Accept, ReviewRef, ReviewSummary, requests};
use anyhow::Result;

use super::ask::{Ask, Decision, Outcome, declined, title};
use super::terminal::Terminal;
use super::turn::command;
use crate::commands::diff;
use crate::output;
use crate::printable::{printable, printable_line};

/// Prints something that is not part of the answer.
pub(super) fn say(words: &str) {
    output::to_stderr(&format!("alongside: {}\n", printable(words)));
}

pub(super) struct Decisions {
    yes: bool,
    /// There is no other front end that could decide.
    alone: bool,
    terminal: Option<Terminal>,
    seen: BTreeSet<String>,
    /// What the user is asked at the terminal; the first one is shown.
    open: VecDeque<Ask>,
}

impl Decisions {
    pub(super) fn new(yes: bool, alone: bool, terminal: Option<Terminal>) -> Self {
        Self {
            yes,
            alone,
            terminal,
            seen: BTreeSet::new(),
            open: VecDeque::new(),
        }
    }

    /// Decides a permission request or a question, or asks the user.
    pub(super) async fn approval(&mut self, client: &mut Client, request: &PermissionRequest) -> Result<()> {
        if !self.seen.insert(format!("approval {}", request.request_id)) {
            return Ok(());
        }
        let title = title(request);
        let allowed = request
            .options
            .iter()
            .find(|option| option.kind == OptionKind::AllowOnce);
        let decision = match allowed {
            Some(option) if self.yes && !request.is_question() => {
                say(&format!("allowed: {title}"));
                PermissionDecision::select(&option.option_id)
            }
            _ if self.terminal.is_some() && !request.options.is_empty() => {
                self.ask(Ask::request(request.clone()));
                return Ok(());
            }
            _ if request.is_question() => {
                say(&format!(
                    "the agent asked “{title}”, and this was declined: a question can be answered in a terminal, or on the page (`alongside chat --open`)"
                ));
                declined(request)
            }
            _ => {
                say(&format!(
                    "denied: {title} (use --yes to allow, or run this in a terminal to be asked)"
                ));
                declined(request)
            }
        };
        decide(client, Decision::Request(request.request_id.clone(), decision)).await
    }

    /// Decides a write of a local agent, or asks the user.
    pub(super) async fn review(&mut self, client: &mut Client, review: &ReviewSummary) -> Result<()> {
        let (id, revision) = (review.id, review.revision);
        if !review.session.is_chat() || !self.seen.insert(format!("review {id} {revision}")) {
            return Ok(());
        }
        let path = printable_line(&review.path);
        let what = format!("the change to {path} (+{} −{})", review.size.added, review.size.removed);
        if self.yes {
            say(&format!("accepted: {what}"));
            return decide(client, Decision::Review(id, true)).await;
        }
        if self.terminal.is_some() {
            self.withdraw(|ask| ask.is_review(id));
            // It may have been decided since.
            if let Ok(texts) = client.call::<requests::ReviewGet>(ReviewRef { review: id }).await {
                let diff = diff::diff(&texts);
                self.ask(Ask::Review { id, what, diff });
            }
            return Ok(());
        }
        if self.alone {
            say(&format!(
                "rejected: {what} (use --yes to accept, or run this in a terminal to be asked)"
            ));
            return decide(client, Decision::Review(id, false)).await;
        }
        say(&format!(
            "{what} is pending; run `alongside diff show {id}`, then `alongside diff accept {id}` or `alongside diff reject {id}`"
        ));
        Ok(())
    }

    /// A request was answered here or elsewhere.
    pub(super) fn request_closed(&mut self, id: &str) {
        self.closed(|ask| ask.is_request(id));
    }

    /// A review was decided here or elsewhere.
    pub(super) fn review_closed(&mut self, review: ReviewId) {
        self.closed(|ask| ask.is_review(review));
    }

    /// The next line that the user types while something is asked.
    pub(super) async fn line(&mut self) -> Option<String> {
        match &mut self.terminal {
            Some(terminal) if !self.open.is_empty() => terminal.line().await,
            _ => std::future::pending().await,
        }
    }

    /// Takes a line as the answer to what is shown.
    pub(super) async fn answer(&mut self, client: &mut Client, line: Option<String>) -> Result<()> {
        let Some(ask) = self.open.front_mut() else {
            return Ok(());
        };
        match ask.answer(line.as_deref()) {
            Outcome::Again(expected) => {
                self.begin();
                output::to_stderr(&format!("{expected} "));
            }
            Outcome::Next => self.show(),
            Outcome::Decided(decision) => {
                self.open.pop_front();
                decide(client, decision).await?;
                self.show();
            }
        }
        Ok(())
    }

    /// Withdraws everything that is asked, and cancels it, after the turn was cancelled.
    pub(super) async fn cancel(&mut self, client: &mut Client) -> Result<()> {
        if !self.open.is_empty() {
            output::to_stderr("\n");
        }
        for ask in std::mem::take(&mut self.open) {
            if let Ask::Permission(request) | Ask::Questions { request, .. } = ask {
                decide(
                    client,
                    Decision::Request(request.request_id, PermissionDecision::Cancel),
                )
                .await?;
            }
        }
        Ok(())
    }

    fn ask(&mut self, ask: Ask) {
        self.open.push_back(ask);
        if self.open.len() == 1 {
            self.show();
        }
    }

    fn closed(&mut self, is_closed: impl Fn(&Ask) -> bool) {
        if self.withdraw(is_closed) {
            output::to_stderr("\n");
            say("this was answered elsewhere");
            self.show();
        }
    }

    /// Returns whether it was shown.
    fn withdraw(&mut self, is_closed: impl Fn(&Ask) -> bool) -> bool {
        let is_shown = self.open.front().is_some_and(&is_closed);
        self.open.retain(|ask| !is_closed(ask));
        is_shown
    }

    fn show(&mut self) {
        self.begin();
        if let Some(ask) = self.open.front() {
            output::to_stderr(&format!("\n{}", ask.text(output::stderr_has_colors())));
        }
    }

    fn begin(&mut self) {
        if let Some(terminal) = self.terminal.as_mut().filter(|_| !self.open.is_empty()) {
            terminal.begin();
        }
    }
}

async fn decide(client: &mut Client, decision: Decision) -> Result<()> {
    match decision {
        Decision::Request(request_id, decision) => {
            ignore_refusal(command(client, AgentCommand::Answer { request_id, decision }).await)
        }
        Decision::Review(review, true) => {
            let accept = Accept {
                review,
                content: None,
                even_if_empty: false,
            };
            ignore_refusal(client.call::<requests::ReviewAccept>(accept).await)
        }
        Decision::Review(review, false) => ignore_refusal(client.call::<requests::ReviewReject>(review.into()).await),
    }
}

/// Another client may have decided first.
fn ignore_refusal<T>(result: Result<T, ClientError>) -> Result<()> {
    match result {
        Err(ClientError::Rejected(_)) | Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

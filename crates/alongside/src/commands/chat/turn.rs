//! One turn of the agent, as it is printed.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use alongside_front::client::{Client, ClientError};
use alongside_protocol::{ChatCommand, ChatPhase, ChatState, Nothing, Notification, Request, ReviewSummary};
use anyhow::Result;
use serde_json::{Value, json};

use super::decisions::{Decisions, say};
use crate::output::Output;
use crate::printable::{printable, printable_line};
use crate::signals::ShutdownSignals;

/// The exit code of a turn that was cancelled, or that the agent refused.
pub(super) const CANCELLED: u8 = 3;

/// A turn while it goes on.
pub(super) struct Turn {
    output: Output,
    agent: String,
    prompt_id: String,
    decisions: Decisions,
    epoch: String,
    sequence: u64,
    answer: String,
    end: Option<Value>,
    cancelling: bool,
    /// Nobody reads what is printed.
    unread: bool,
}

/// Asks something of the agent.
pub(super) async fn command(client: &mut Client, command: Value) -> Result<Value, ClientError> {
    client.call(Request::ChatCommand(ChatCommand { command })).await
}

impl Turn {
    pub(super) fn new(output: Output, agent: String, prompt_id: String, decisions: Decisions) -> Self {
        Self {
            output,
            agent,
            prompt_id,
            decisions,
            epoch: String::new(),
            sequence: 0,
            answer: String::new(),
            end: None,
            cancelling: false,
            unread: false,
        }
    }

    /// Prints what comes until the turn ends.
    pub(super) async fn follow(mut self, mut client: Client, signals: &mut ShutdownSignals) -> Result<ExitCode> {
        self.ask_again(&mut client).await?;
        let reviews: Vec<ReviewSummary> = client.call(Request::ReviewList(Nothing {})).await?;
        for review in reviews {
            self.decisions.review(&mut client, &review).await?;
        }
        while self.end.is_none() {
            let notification = tokio::select! {
                notification = client.notification() => notification?,
                () = signals.received() => {
                    if std::mem::replace(&mut self.cancelling, true) {
                        return Ok(ExitCode::from(CANCELLED));
                    }
                    command(&mut client, json!({"type": "cancel"})).await?;
                    continue;
                }
            };
            self.take(&mut client, notification).await?;
            if self.unread && !std::mem::replace(&mut self.cancelling, true) {
                command(&mut client, json!({"type": "cancel"})).await?;
            }
        }
        Ok(self.finish())
    }

    async fn take(&mut self, client: &mut Client, notification: Notification) -> Result<()> {
        match notification {
            Notification::ChatEvent(event) if *event.epoch == *self.epoch && event.sequence <= self.sequence => {}
            Notification::ChatEvent(event) if *event.epoch == *self.epoch && event.sequence == self.sequence + 1 => {
                self.sequence = event.sequence;
                self.event(client, &event.event).await?;
            }
            Notification::ChatEvent(_) | Notification::Resync(_) => self.ask_again(client).await?,
            Notification::ChatChanged(changed) if changed.phase == ChatPhase::Over => self.ask_again(client).await?,
            Notification::ReviewOpened(review) | Notification::ReviewChanged(review) => {
                self.decisions.review(client, &review).await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes the whole log, of which the beginning is printed already.
    async fn ask_again(&mut self, client: &mut Client) -> Result<()> {
        let state: ChatState = client.call(Request::ChatState(Nothing {})).await?;
        self.epoch = state.epoch.to_string();
        self.sequence = state.sequence;
        let whole: String = state.events.iter().filter_map(|event| self.piece(event)).collect();
        if let Some(rest) = whole.strip_prefix(&self.answer).map(str::to_owned) {
            self.print(&rest);
        }
        for event in &state.events {
            if self.piece(event).is_none() {
                self.event(client, event).await?;
            }
        }
        if self.end.is_none() && matches!(state.changed.phase, ChatPhase::Over | ChatPhase::Idle) {
            let message = "lost the connection to the agent";
            self.end = Some(json!({"outcome": "failed", "message": message}));
        }
        Ok(())
    }

    /// The text of a piece of our answer.
    fn piece<'a>(&self, event: &'a Value) -> Option<&'a str> {
        let ours = event["type"] == "assistantChunk" && event["promptId"] == *self.prompt_id;
        event["content"]["text"].as_str().filter(|_| ours)
    }

    async fn event(&mut self, client: &mut Client, event: &Value) -> Result<()> {
        if let Some(piece) = self.piece(event) {
            self.print(piece);
            return Ok(());
        }
        match event["type"].as_str().unwrap_or_default() {
            "approvalOpened" if event["request"]["promptId"] == *self.prompt_id => {
                self.decisions.approval(client, &event["request"]).await?;
            }
            "turnEnded" if event["promptId"] == *self.prompt_id => self.end = Some(event["end"].clone()),
            "promptUnqueued" if event["promptId"] == *self.prompt_id && event["removed"] == true => {
                self.end = Some(json!({"outcome": "completed", "stopReason": "cancelled"}));
            }
            _ => {}
        }
        Ok(())
    }

    /// Prints a piece at once: made safe for a terminal, as it is for a program.
    fn print(&mut self, piece: &str) {
        self.answer.push_str(piece);
        if self.output.json || piece.is_empty() {
            return;
        }
        let mut stdout = std::io::stdout();
        let safe = stdout.is_terminal().then(|| printable(piece));
        let text = safe.as_deref().unwrap_or(piece);
        self.unread = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_err();
    }

    fn finish(mut self) -> ExitCode {
        if !self.answer.is_empty() && !self.answer.ends_with('\n') && std::io::stdout().is_terminal() {
            self.print("\n");
        }
        let end = self.end.take().unwrap_or_default();
        let failure = (end["outcome"] == "failed").then(|| end["message"].as_str().unwrap_or_default().to_owned());
        let stop_reason = end["stopReason"].as_str().unwrap_or_default().to_owned();
        if self.output.json {
            let value = json!({"agent": self.agent, "promptId": self.prompt_id, "answer": self.answer, "end": end});
            self.output.answer(&value, String::new);
        }
        match failure {
            Some(message) => {
                say(&printable_line(&message));
                ExitCode::FAILURE
            }
            None if matches!(stop_reason.as_str(), "cancelled" | "refusal") => {
                say(&format!(
                    "the answer was {}",
                    if stop_reason == "refusal" {
                        "refused"
                    } else {
                        "cancelled"
                    }
                ));
                ExitCode::from(CANCELLED)
            }
            None => ExitCode::SUCCESS,
        }
    }
}

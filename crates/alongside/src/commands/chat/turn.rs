//! Prints one turn of the agent.

use std::io::IsTerminal;
use std::process::ExitCode;

use alongside_front::client::{Client, ClientError};
use alongside_protocol::chat::{AgentCommand, AgentEvent, AgentReply, TurnEnd};
use alongside_protocol::{ChatCommand, ChatPhase, Empty, Notification, requests};
use anyhow::Result;
use serde_json::json;

use super::decisions::{Decisions, say};
use super::paragraphs::Paragraphs;
use crate::output::{self, Output};
use crate::printable::{printable, printable_line};
use crate::signals::ShutdownSignals;

/// The exit code of a cancelled or refused turn, and of an answer that nothing reads.
pub(super) const CANCELLED: u8 = 3;

pub(super) struct Turn {
    output: Output,
    agent: String,
    prompt_id: String,
    decisions: Decisions,
    epoch: String,
    sequence: u64,
    answer: Paragraphs,
    end: Option<TurnEnd>,
    cancelling: bool,
    /// stdout is closed.
    unread: bool,
}

pub(super) async fn command(client: &mut Client, command: AgentCommand) -> Result<AgentReply, ClientError> {
    client.call::<requests::ChatCommand>(ChatCommand { command }).await
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
            answer: Paragraphs::default(),
            end: None,
            cancelling: false,
            unread: false,
        }
    }

    /// Prints the answer until the turn ends.
    pub(super) async fn follow(mut self, mut client: Client, signals: &mut ShutdownSignals) -> Result<ExitCode> {
        self.refetch(&mut client).await?;
        let reviews = client.call::<requests::ReviewList>(Empty {}).await?;
        for review in reviews {
            self.decisions.review(&mut client, &review).await?;
        }
        while self.end.is_none() {
            let notification = tokio::select! {
                notification = client.notification() => notification?,
                line = self.decisions.line() => {
                    self.decisions.answer(&mut client, line).await?;
                    continue;
                }
                () = signals.received() => {
                    if std::mem::replace(&mut self.cancelling, true) {
                        return Ok(ExitCode::from(CANCELLED));
                    }
                    command(&mut client, AgentCommand::Cancel).await?;
                    self.decisions.cancel(&mut client).await?;
                    continue;
                }
            };
            self.take(&mut client, notification).await?;
            if self.unread && !std::mem::replace(&mut self.cancelling, true) {
                command(&mut client, AgentCommand::Cancel).await?;
            }
        }
        Ok(self.finish())
    }

    async fn take(&mut self, client: &mut Client, notification: Notification) -> Result<()> {
        match notification {
            Notification::ChatEvent(event) if *event.epoch == *self.epoch && event.sequence <= self.sequence => {}
            Notification::ChatEvent(event) if *event.epoch == *self.epoch && event.sequence == self.sequence + 1 => {
                self.sequence = event.sequence;
                if self.is_ours(event.event.prompt_id()) {
                    let added = self.answer.add(&event.event).to_owned();
                    self.print(&added);
                }
                // Only new ones: the log has those of earlier turns too.
                if let AgentEvent::Notice { message, .. } = &*event.event {
                    say(message);
                }
                self.event(client, &event.event).await?;
            }
            Notification::ChatEvent(_) | Notification::Resync(_) => self.refetch(client).await?,
            Notification::ChatChanged(changed) if changed.phase == ChatPhase::Ended => self.refetch(client).await?,
            Notification::ReviewOpened(review) | Notification::ReviewChanged(review) => {
                self.decisions.review(client, &review).await?;
            }
            Notification::ReviewClosed(closed) => self.decisions.review_closed(closed.review),
            _ => {}
        }
        Ok(())
    }

    /// Fetches the whole log, of which the beginning has already been printed.
    async fn refetch(&mut self, client: &mut Client) -> Result<()> {
        let state = client.call::<requests::ChatState>(Empty {}).await?;
        self.epoch = state.epoch.to_string();
        self.sequence = state.sequence;
        let mut whole = Paragraphs::default();
        for event in state.events.iter().filter(|event| self.is_ours(event.prompt_id())) {
            whole.add(event);
        }
        if let Some(rest) = whole.text.strip_prefix(&self.answer.text) {
            self.print(rest);
            self.answer = whole;
        }
        for event in &state.events {
            self.event(client, event).await?;
        }
        if self.end.is_none() && matches!(state.changed.phase, ChatPhase::Ended | ChatPhase::Idle) {
            self.end = Some(TurnEnd::Failed {
                message: "lost the connection to the agent".to_owned(),
                code: None,
            });
        }
        Ok(())
    }

    fn is_ours(&self, prompt_id: Option<&str>) -> bool {
        prompt_id == Some(&self.prompt_id)
    }

    /// Acts on an event other than text.
    async fn event(&mut self, client: &mut Client, event: &AgentEvent) -> Result<()> {
        match event {
            AgentEvent::ApprovalOpened { request } if self.is_ours(request.prompt_id.as_deref()) => {
                self.decisions.approval(client, request).await?;
            }
            AgentEvent::ApprovalClosed { request_id, .. } => self.decisions.request_closed(request_id),
            AgentEvent::TurnEnded { prompt_id, end } if self.is_ours(prompt_id.as_deref()) => {
                self.end = Some(end.clone());
            }
            AgentEvent::PromptUnqueued {
                prompt_id,
                removed: true,
            } if self.is_ours(Some(prompt_id)) => {
                self.end = Some(TurnEnd::stopped("cancelled"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Prints text immediately: made safe for a terminal, unchanged for a program.
    fn print(&mut self, piece: &str) {
        if self.output.json || piece.is_empty() {
            return;
        }
        let safe = std::io::stdout().is_terminal().then(|| printable(piece));
        self.unread = !output::to_stdout(safe.as_deref().unwrap_or(piece));
    }

    fn finish(mut self) -> ExitCode {
        let answer = &self.answer.text;
        if !answer.is_empty() && !answer.ends_with('\n') && std::io::stdout().is_terminal() {
            self.print("\n");
        }
        if self.output.json {
            let end = &self.end;
            let value =
                json!({"agent": self.agent, "promptId": self.prompt_id, "answer": self.answer.text, "end": end});
            self.unread = !self.output.answer(&value, String::new);
        }
        match self.end {
            Some(TurnEnd::Failed { message, .. }) => {
                say(&format!(
                    "the agent received the prompt, but did not complete its answer: {}",
                    printable_line(&message)
                ));
                ExitCode::FAILURE
            }
            Some(TurnEnd::Completed { .. } | TurnEnd::Cancelled { .. }) if self.unread => ExitCode::from(CANCELLED),
            Some(TurnEnd::Cancelled { .. }) => {
                say("the answer was cancelled");
                ExitCode::from(CANCELLED)
            }
            Some(TurnEnd::Completed { stop_reason }) if stop_reason == "refusal" => {
                say("the answer was refused");
                ExitCode::from(CANCELLED)
            }
            Some(TurnEnd::Completed { .. }) | None => ExitCode::SUCCESS,
        }
    }
}

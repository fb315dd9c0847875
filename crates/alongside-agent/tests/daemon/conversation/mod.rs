//! A conversation with an agent in a daemon, with a daemon that does what the test says.

mod approvals;
mod connecting;
mod endings;
mod extras;
mod turns;

use std::time::Duration;

use alongside_agent::conversation::{ContentBlock, PermissionDecision};
use alongside_agent::daemon::{DaemonAddress, DaemonOptions};
use alongside_agent::{
    AgentCommand, AgentError, AgentEvent, AgentManager, AgentReply, AgentTarget, ConnectedSession, EventReceiver,
};
use serde_json::{Value, json};

use crate::fake::{FakeDaemon, SESSION};

fn options(daemon: &FakeDaemon) -> DaemonOptions {
    DaemonOptions {
        address: DaemonAddress::parse(&daemon.url()).unwrap(),
        ..DaemonOptions::default()
    }
}

/// A manager for daemons only, with a method for each command.
#[derive(Clone, Debug)]
pub(crate) struct Chat {
    manager: AgentManager,
}

impl Chat {
    pub(crate) fn new() -> (Self, EventReceiver) {
        let (manager, events) = AgentManager::new();
        (Self { manager }, events)
    }

    pub(crate) async fn connect(&self, options: DaemonOptions) -> Result<ConnectedSession, AgentError> {
        self.manager.connect(AgentTarget::Daemon(Box::new(options))).await
    }

    pub(crate) async fn disconnect(&self) {
        self.manager.disconnect().await;
    }

    fn is_connected(&self) -> bool {
        self.manager.is_connected()
    }

    pub(crate) async fn execute(&self, command: AgentCommand) -> Result<AgentReply, AgentError> {
        self.manager.execute(command).await
    }

    pub(crate) async fn prompt(&self, blocks: &[ContentBlock]) -> Result<String, AgentError> {
        let blocks = blocks.to_vec();
        match self.execute(AgentCommand::Prompt { blocks, id: None }).await? {
            AgentReply::Prompt { prompt_id } => Ok(prompt_id),
            other => panic!("{other:?}"),
        }
    }

    async fn cancel(&self) -> Result<AgentReply, AgentError> {
        self.execute(AgentCommand::Cancel).await
    }

    async fn set_model(&self, model_id: &str) -> Result<AgentReply, AgentError> {
        let model_id = model_id.to_owned();
        self.execute(AgentCommand::SetModel { model_id }).await
    }

    async fn set_mode(&self, mode_id: &str) -> Result<AgentReply, AgentError> {
        let mode_id = mode_id.to_owned();
        self.execute(AgentCommand::SetMode { mode_id }).await
    }

    /// `false` if the response came too late.
    pub(crate) async fn respond_to_permission(
        &self,
        request_id: &str,
        decision: &PermissionDecision,
    ) -> Result<bool, AgentError> {
        let (request_id, decision) = (request_id.to_owned(), decision.clone());
        let reply = self.execute(AgentCommand::Answer { request_id, decision }).await?;
        Ok(reply == AgentReply::Done)
    }
}

/// The last daemon event that was delivered completely.
fn last_event_id(events: &EventReceiver) -> Option<u64> {
    let position = serde_json::to_value(events.position()?).unwrap();
    position["cursor"]["lastEventId"].as_u64()
}

async fn connected(daemon: &FakeDaemon) -> (Chat, EventReceiver) {
    let (connection, mut events) = Chat::new();
    connection.connect(options(daemon)).await.unwrap();
    until(&mut events, |event| matches!(event, AgentEvent::Modes(_))).await;
    (connection, events)
}

/// Reads events up to one that satisfies the test; fails after ten seconds.
async fn until(events: &mut EventReceiver, enough: impl Fn(&AgentEvent) -> bool) -> Vec<AgentEvent> {
    let mut read = Vec::new();
    let wait = async {
        while let Some(event) = events.recv().await {
            let done = enough(&event);
            read.push(event);
            if done {
                return;
            }
        }
        panic!("the events ended");
    };
    let finished = tokio::time::timeout(Duration::from_secs(10), wait).await;
    assert!(finished.is_ok(), "only {read:#?}");
    read
}

/// Publishes a piece of an answer and reads up to it: everything before it has arrived then.
async fn settle(daemon: &FakeDaemon, events: &mut EventReceiver) -> Vec<AgentEvent> {
    daemon.say("settled");
    until(
        events,
        |event| matches!(event, AgentEvent::AssistantChunk { content, .. } if content.as_text() == Some("settled")),
    )
    .await
}

fn request(id: &str) -> Value {
    json!({"requestId": id, "sessionId": SESSION, "toolCall": {"toolCallId": "call", "kind": "edit", "title": "Writing to a",
        "rawInput": {"file_path": "/project/a"}, "content": [{"type": "diff", "path": "/project/a", "oldText": "", "newText": "x"}]},
        "options": [{"optionId": "proceed_once", "name": "Allow", "kind": "allow_once"},
            {"optionId": "cancel", "name": "Reject", "kind": "reject_once"}]})
}

fn resolved(id: &str, by: &str) -> Value {
    json!({"requestId": id, "outcome": {"outcome": "selected", "optionId": "proceed_once"}, "voterClientId": by})
}

fn opened(events: &[AgentEvent]) -> Vec<&str> {
    let opened = events.iter().filter_map(|event| match event {
        AgentEvent::ApprovalOpened { request } => Some(request.request_id.as_str()),
        _ => None,
    });
    opened.collect()
}

fn closed(events: &[AgentEvent]) -> Vec<(&str, bool)> {
    let closed = events.iter().filter_map(|event| match event {
        AgentEvent::ApprovalClosed { request_id, own, .. } => Some((request_id.as_str(), *own)),
        _ => None,
    });
    closed.collect()
}

async fn open_approval(daemon: &FakeDaemon, events: &mut EventReceiver) {
    settle(daemon, events).await;
    daemon.publish("permission_request", &request("r"));
    until(events, |event| matches!(event, AgentEvent::ApprovalOpened { .. })).await;
}

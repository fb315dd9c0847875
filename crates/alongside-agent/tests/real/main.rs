//! Conversations with the real programs: `qwen serve`, `qwen --acp` and `gemini --acp`, with a fake model.
//!
//! ```text
//! npm install @qwen-code/qwen-code @google/gemini-cli
//! ALONGSIDE_NODE=<node 22> ALONGSIDE_NODE_MODULES=<node_modules> cargo test -p alongside-agent --features real-programs --test real
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot go on should panic, and may say why"
)]

mod children;
mod daemons;
mod programs;

use std::time::Duration;

use alongside_agent::conversation::{PermissionDecision, TurnEnd};
use alongside_agent::{AgentCommand, AgentError, AgentEvent, AgentManager, AgentReply, AgentTarget, EventReceiver};
use alongside_testing::Prompt;

use crate::programs::Place;

struct Chat {
    manager: AgentManager,
    events: EventReceiver,
}

impl Chat {
    async fn connect(target: AgentTarget) -> Result<Self, AgentError> {
        let (manager, events) = AgentManager::new();
        manager.connect(target).await?;
        Ok(Self { manager, events })
    }

    async fn until(&mut self, enough: impl Fn(&AgentEvent) -> bool) -> Vec<AgentEvent> {
        let mut read = Vec::new();
        let wait = async {
            while let Some(event) = self.events.recv().await {
                let done = enough(&event);
                read.push(event);
                if done {
                    return;
                }
            }
            panic!("the events ended");
        };
        let finished = tokio::time::timeout(Duration::from_mins(1), wait).await;
        assert!(finished.is_ok(), "only {read:#?}");
        read
    }

    async fn execute(&self, command: AgentCommand) -> AgentReply {
        self.manager.execute(command).await.unwrap()
    }

    async fn prompt(&self, text: &str) -> String {
        match self
            .execute(AgentCommand::Prompt {
                blocks: vec![text.into()],
                id: None,
            })
            .await
        {
            AgentReply::Prompt { prompt_id } => prompt_id,
            other => panic!("{other:?}"),
        }
    }

    async fn ask(&mut self, text: &str) -> Vec<AgentEvent> {
        self.prompt(text).await;
        self.until(is_end).await
    }

    async fn answer(&self, events: &[AgentEvent], decision: PermissionDecision) {
        let Some(AgentEvent::ApprovalOpened { request }) = events.last() else {
            panic!("{events:?}")
        };
        let request_id = request.request_id.clone();
        assert_eq!(
            self.execute(AgentCommand::Answer { request_id, decision }).await,
            AgentReply::Done
        );
    }
}

fn is_end(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::TurnEnded { .. })
}

fn is_approval(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::ApprovalOpened { .. })
}

fn said(events: &[AgentEvent]) -> String {
    let chunk = |event: &AgentEvent| match event {
        AgentEvent::AssistantChunk { content, .. } => content.as_text().map(str::to_owned),
        _ => None,
    };
    events.iter().filter_map(chunk).collect()
}

fn words(count: usize) -> String {
    (0..count)
        .map(|number| format!("word{number} "))
        .collect::<Vec<_>>()
        .concat()
}

fn stop_reason(events: &[AgentEvent]) -> &str {
    match events.last() {
        Some(AgentEvent::TurnEnded {
            end: TurnEnd::Completed { stop_reason } | TurnEnd::Cancelled { stop_reason },
            ..
        }) => stop_reason,
        other => panic!("{other:?}"),
    }
}

/// The option of a kind that was offered.
fn option(events: &[AgentEvent], kind: &str) -> PermissionDecision {
    let Some(AgentEvent::ApprovalOpened { request }) = events.last() else {
        panic!("{events:?}")
    };
    let option = request
        .options
        .iter()
        .find(|option| option.kind.as_str() == kind)
        .unwrap();
    PermissionDecision::select(option.option_id.clone())
}

/// What works the same whichever way the agent is connected.
async fn converse(chat: &mut Chat, place: &Place) {
    let told = chat.ask(&Prompt::Count(200).to_string()).await;
    assert_eq!(said(&told).trim(), words(200).trim());
    assert_eq!(stop_reason(&told), "end_turn");
    assert!(matches!(told[0], AgentEvent::PromptAccepted { .. }), "{:?}", told[0]);

    chat.prompt(&Prompt::Slow.to_string()).await;
    chat.until(|event| matches!(event, AgentEvent::AssistantChunk { .. }))
        .await;
    chat.execute(AgentCommand::Cancel).await;
    assert_eq!(stop_reason(&chat.until(is_end).await), "cancelled");

    let path = place.workspace().join("new.txt");
    for (kind, expected) in [("reject_once", None), ("allow_once", Some("text"))] {
        chat.prompt(&Prompt::WriteFile(path.to_str().unwrap(), "text").to_string())
            .await;
        let told = chat.until(is_approval).await;
        assert!(!path.exists());
        chat.answer(&told, option(&told, kind)).await;
        let told = chat.until(is_end).await;
        assert!(
            told.iter()
                .any(|event| matches!(event, AgentEvent::ApprovalClosed { own: true, .. })),
            "{told:#?}"
        );
        assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), expected, "{told:#?}");
    }
}

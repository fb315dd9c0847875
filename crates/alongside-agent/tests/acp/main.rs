//! A conversation with an agent that is our child, with an agent that does what it is told.
//!
//! The agent is this very program, started again with a variable that says so: then its first test is the agent.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot go on should panic, and may say why"
)]

mod files;
mod sessions;
mod turns;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alongside_agent::acp::{AcpOptions, AgentProcess, AllowWrites};
use alongside_agent::conversation::{PermissionDecision, TurnEnd};
use alongside_agent::{AgentCommand, AgentError, AgentEvent, AgentManager, AgentReply, AgentTarget, EventReceiver};
use alongside_testing::agent;

/// The agent, when this program is one.
#[test]
fn agent() {
    if std::env::var_os(agent::VARIABLE).is_some() {
        agent::run();
    }
}

fn process(how: &str) -> AgentProcess {
    let mut process = AgentProcess::new(
        std::env::current_exe().unwrap(),
        &["agent", "--exact", "--nocapture", "--test-threads=1"],
    );
    process.environment.push((agent::VARIABLE.to_owned(), how.to_owned()));
    process
        .environment
        .push(("FAKE_API_KEY".to_owned(), "s3cret-key-of-the-agent".to_owned()));
    process
}

fn options(how: &str, workspace: &Path) -> AcpOptions {
    AcpOptions::new(process(how), workspace, Arc::new(AllowWrites))
}

async fn connect(options: AcpOptions) -> Result<(AgentManager, EventReceiver), AgentError> {
    let (manager, mut events) = AgentManager::new();
    manager.connect(AgentTarget::Child(Box::new(options))).await?;
    until(&mut events, |event| matches!(event, AgentEvent::Modes(_))).await;
    Ok((manager, events))
}

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
    let finished = tokio::time::timeout(Duration::from_secs(20), wait).await;
    assert!(finished.is_ok(), "only {read:#?}");
    read
}

fn is_end(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::TurnEnded { .. })
}

fn is_approval(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::ApprovalOpened { .. })
}

async fn prompt(manager: &AgentManager, text: &str) -> String {
    match manager
        .execute(AgentCommand::Prompt {
            blocks: vec![text.into()],
            id: None,
        })
        .await
        .unwrap()
    {
        AgentReply::Prompt { prompt_id } => prompt_id,
        other => panic!("{other:?}"),
    }
}

fn said(events: &[AgentEvent]) -> String {
    let chunk = |event: &AgentEvent| match event {
        AgentEvent::AssistantChunk { content, .. } => content.as_text().map(str::to_owned),
        _ => None,
    };
    events.iter().filter_map(chunk).collect()
}

fn end(events: &[AgentEvent]) -> &TurnEnd {
    match events.last() {
        Some(AgentEvent::TurnEnded { end, .. }) => end,
        other => panic!("{other:?}"),
    }
}

fn completed(reason: &str) -> TurnEnd {
    TurnEnd::stopped(reason)
}

async fn answer(manager: &AgentManager, events: &[AgentEvent], decision: PermissionDecision) -> AgentReply {
    let Some(AgentEvent::ApprovalOpened { request }) = events.last() else {
        panic!("{events:?}")
    };
    let request_id = request.request_id.clone();
    manager
        .execute(AgentCommand::Answer { request_id, decision })
        .await
        .unwrap()
}

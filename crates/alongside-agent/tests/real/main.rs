//! Conversations with the real programs: `qwen serve`, `qwen --acp` and `gemini --acp`, with a model that does as it is told.
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

mod model;
mod programs;

use std::sync::Arc;
use std::time::{Duration, Instant};

use alongside_agent::acp::{AcpError, AcpOptions, AllowWrites, ProposedWrite, ReviewGate, WriteDecision};
use alongside_agent::conversation::{Answers, PermissionDecision, TurnEnd};
use alongside_agent::daemon::{DaemonAddress, DaemonClient, DaemonError};
use alongside_agent::ide::{DaemonOptions, OpenSession};
use alongside_agent::{
    AgentCommand, AgentError, AgentEvent, AgentManager, AgentReply, AgentTarget, DisconnectKind, EventReceiver,
    Locality, Secret,
};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use programs::{Daemon, Place, Proxy};
use rustix::process::Signal;

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
            end: TurnEnd::Completed { stop_reason },
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
    let told = chat.ask("COUNT 200").await;
    assert_eq!(said(&told).trim(), words(200).trim());
    assert_eq!(stop_reason(&told), "end_turn");
    assert!(matches!(told[0], AgentEvent::PromptAccepted { .. }), "{:?}", told[0]);

    chat.prompt("SLOW").await;
    chat.until(|event| matches!(event, AgentEvent::AssistantChunk { .. }))
        .await;
    chat.execute(AgentCommand::Cancel).await;
    assert_eq!(stop_reason(&chat.until(is_end).await), "cancelled");

    let path = place.workspace().join("new.txt");
    for (kind, expected) in [("reject_once", None), ("allow_once", Some("text"))] {
        chat.prompt(&format!("WRITE {} text", path.display())).await;
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

fn daemon_target(address: DaemonAddress, place: &Place) -> DaemonOptions {
    DaemonOptions {
        address,
        workspace: Some(place.workspace().display().to_string()),
        mode: Some("default".to_owned()),
        open: OpenSession::New,
        ..DaemonOptions::default()
    }
}

async fn daemon_chat(options: DaemonOptions) -> Result<Chat, AgentError> {
    Chat::connect(AgentTarget::Daemon(Box::new(options))).await
}

#[tokio::test]
async fn a_daemon_is_talked_to() {
    let place = Place::new(model::start().await);
    let daemon = Daemon::start(&place, 0, None).await;
    let mut chat = daemon_chat(daemon_target(daemon.address(), &place)).await.unwrap();
    let told = chat.until(|event| matches!(event, AgentEvent::Modes(_))).await;
    let AgentEvent::Connected(session) = &told[0] else {
        panic!("{told:?}")
    };
    let Locality::Daemon { preflight } = &session.locality else {
        panic!("{session:?}")
    };
    assert!(preflight.iter().any(|cell| cell.locality.as_deref() == Some("daemon")));
    converse(&mut chat, &place).await;

    chat.prompt("QUESTION").await;
    let told = chat.until(is_approval).await;
    let Some(AgentEvent::ApprovalOpened { request }) = told.last() else {
        panic!()
    };
    assert_eq!(request.questions[0].question, "Which color?");
    let answers = Answers::from([(request.questions[0].answer_key.clone(), "Blue".to_owned())]);
    let option_id = request.options[0].option_id.clone();
    chat.answer(&told, PermissionDecision::Select { option_id, answers })
        .await;
    let told = chat.until(is_end).await;
    let card = told.iter().rev().find_map(|event| match event {
        AgentEvent::ToolCall { call, .. } => Some(serde_json::to_string(call).unwrap()),
        _ => None,
    });
    assert!(card.unwrap().contains("Blue"));

    chat.execute(AgentCommand::SetModel {
        model_id: "fake-b(openai)".to_owned(),
    })
    .await;
    chat.until(|event| {
        *event
            == AgentEvent::ModelChanged {
                model_id: "fake-b(openai)".to_owned(),
            }
    })
    .await;
    let error = chat
        .manager
        .execute(AgentCommand::SetModel {
            model_id: "none".to_owned(),
        })
        .await
        .unwrap_err();
    assert!(error.to_string().contains("not found"), "{error}");
    chat.execute(AgentCommand::Rename {
        title: "A name".to_owned(),
    })
    .await;
    chat.until(|event| {
        *event
            == AgentEvent::Title {
                title: "A name".to_owned(),
            }
    })
    .await;
    let AgentReply::Sessions { sessions, .. } = chat.execute(AgentCommand::ListSessions { cursor: None }).await else {
        panic!()
    };
    assert!(
        sessions
            .iter()
            .any(|session| session.display_name.as_deref() == Some("A name")),
        "{sessions:?}"
    );
}

#[tokio::test]
async fn a_cut_connection_is_taken_up_at_the_last_event_id() {
    let place = Place::new(model::start().await);
    let daemon = Daemon::start(&place, 0, None).await;
    let proxy = Proxy::start(daemon.port).await;
    let address = DaemonAddress::parse(&format!("http://127.0.0.1:{}", proxy.port)).unwrap();
    let mut chat = daemon_chat(daemon_target(address, &place)).await.unwrap();
    for turn in 0..5 {
        chat.prompt("COUNT 400").await;
        let mut told = chat
            .until(|event| matches!(event, AgentEvent::AssistantChunk { .. }))
            .await;
        proxy.cut();
        told.extend(chat.until(is_end).await);
        assert_eq!(said(&told).trim(), words(400).trim(), "turn {turn}");
    }
    let requests = proxy.event_requests();
    assert!(requests.len() > 3, "{requests:?}");
    assert!(
        requests[1..]
            .iter()
            .all(|head| head.contains("last-event-id: ") && head.contains("x-qwen-event-epoch: "))
    );
}

#[tokio::test]
async fn a_session_whose_agent_died_is_opened_again() {
    let place = Place::new(model::start().await);
    let daemon = Daemon::start(&place, 0, None).await;
    let mut chat = daemon_chat(daemon_target(daemon.address(), &place)).await.unwrap();
    chat.ask("COUNT 10").await;
    chat.prompt("SLOW").await;
    chat.until(|event| matches!(event, AgentEvent::AssistantChunk { .. }))
        .await;
    daemon.kill_agent();
    let told = chat
        .until(|event| matches!(event, AgentEvent::Disconnected { .. }))
        .await;
    assert!(told.iter().any(|event| matches!(
        event,
        AgentEvent::TurnEnded {
            end: TurnEnd::Failed { .. },
            ..
        }
    )));
    let Some(AgentEvent::Disconnected {
        kind: DisconnectKind::Died,
        reopen: Some(session_id),
        ..
    }) = told.last()
    else {
        panic!("{told:?}")
    };
    chat.execute(AgentCommand::LoadSession {
        session_id: session_id.clone(),
    })
    .await;
    let told = chat.until(|event| *event == AgentEvent::HistoryEnd).await;
    assert_eq!(said(&told).trim(), words(10).trim());
    assert_eq!(said(&chat.ask("COUNT 20").await).trim(), words(20).trim());
}

#[tokio::test]
async fn a_daemon_that_was_killed_and_started_again_is_found_again() {
    let place = Place::new(model::start().await);
    let daemon = Daemon::start(&place, 0, None).await;
    let port = daemon.port;
    let mut chat = daemon_chat(daemon_target(daemon.address(), &place)).await.unwrap();
    chat.ask("COUNT 10").await;
    daemon.end(Signal::KILL).await;
    chat.until(|event| matches!(event, AgentEvent::Interrupted { .. }))
        .await;
    let _daemon = Daemon::start(&place, port, None).await;
    let told = chat.until(|event| *event == AgentEvent::HistoryEnd).await;
    assert!(
        told.iter()
            .any(|event| matches!(event, AgentEvent::HistoryStart { reason } if reason == "session_reopened"))
    );
    assert_eq!(said(&told).trim(), words(10).trim());
    assert_eq!(said(&chat.ask("COUNT 20").await).trim(), words(20).trim());
}

#[tokio::test]
async fn a_wrong_directory_and_a_wrong_token_are_refused_with_the_reason() {
    let place = Place::new(model::start().await);
    let daemon = Daemon::start(&place, 0, Some("s3cret-token")).await;
    let options = |token: &str| DaemonOptions {
        token: Secret::new(token),
        ..daemon_target(daemon.address(), &place)
    };
    let error = daemon_chat(options("wrong")).await.err().unwrap();
    assert!(
        matches!(&error, AgentError::Daemon(error) if error.is_unauthorised()),
        "{error}"
    );
    daemon_chat(options("s3cret-token")).await.unwrap();
    let elsewhere = DaemonOptions {
        workspace: Some("/".to_owned()),
        ..options("s3cret-token")
    };
    let error = daemon_chat(elsewhere).await.err().unwrap();
    assert!(
        matches!(&error, AgentError::Daemon(DaemonError::WorkspaceMismatch { .. })),
        "{error}"
    );
    let client = DaemonClient::new(daemon.address(), Secret::new("s3cret-token")).unwrap();
    client.health().await.unwrap();
    std::fs::write(place.workspace().join("a.txt"), "x").unwrap();
    assert_eq!(client.read_file(None, "a.txt").await.unwrap().content, "x");
    let missing = client.read_file(None, "missing.txt").await.unwrap_err();
    assert!(missing.has_code("path_not_found"), "{missing}");
}

#[tokio::test]
async fn many_turns_lose_and_double_nothing() {
    let place = Place::new(model::start().await);
    let daemon = Daemon::start(&place, 0, None).await;
    let mut chat = daemon_chat(daemon_target(daemon.address(), &place)).await.unwrap();
    chat.ask("COUNT 5").await;
    let begun = Instant::now();
    for _ in 0..10 {
        assert_eq!(said(&chat.ask("COUNT 300").await).trim(), words(300).trim());
    }
    eprintln!("10 turns of 300 words in {:?}", begun.elapsed());
}

/// Reviews every change by adding to it, and keeps what it was shown.
#[derive(Default)]
struct Reviewer {
    shown: Mutex<Vec<ProposedWrite>>,
}

impl ReviewGate for Reviewer {
    fn review(&self, write: ProposedWrite) -> BoxFuture<'static, WriteDecision> {
        self.shown.lock().push(write.clone());
        Box::pin(std::future::ready(WriteDecision::Write(write.text)))
    }
}

/// Whether a child finds a session of its former life again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reopening {
    Works,
    /// Gemini CLI 0.61 does not find its own recording of a session, though it is there.
    IsRefused,
}

async fn child(process: alongside_agent::acp::AgentProcess, place: Place, reopening: Reopening) {
    let reviewer = Arc::new(Reviewer::default());
    let gate: Arc<dyn ReviewGate> = Arc::<Reviewer>::clone(&reviewer);
    let options = AcpOptions {
        mode: Some("default".to_owned()),
        ..AcpOptions::new(process.clone(), place.workspace(), gate)
    };
    let mut chat = Chat::connect(AgentTarget::Child(Box::new(options))).await.unwrap();
    let told = chat
        .until(|event| matches!(event, AgentEvent::ModeChanged { .. }))
        .await;
    assert!(
        told.iter()
            .any(|event| matches!(event, AgentEvent::Models(models) if !models.available.is_empty()))
    );
    converse(&mut chat, &place).await;
    assert_eq!(
        reviewer.shown.lock().len(),
        1,
        "the change that was allowed went through the review"
    );

    let session_id = chat.manager.session_id().unwrap();
    chat.manager.disconnect().await;
    let options = AcpOptions {
        open: OpenSession::Load(session_id.clone()),
        ..AcpOptions::new(process, place.workspace(), Arc::new(AllowWrites))
    };
    let reopened = Chat::connect(AgentTarget::Child(Box::new(options))).await;
    if reopening == Reopening::IsRefused {
        let refusal = reopened.err();
        assert!(
            matches!(&refusal, Some(AgentError::Acp(AcpError::Rpc { message, .. })) if message.contains("No previous sessions found")),
            "{refusal:?}"
        );
        return;
    }
    let mut chat = reopened.unwrap();
    let told = chat
        .until(|event| matches!(event, AgentEvent::AssistantChunk { .. }))
        .await;
    assert!(matches!(&told[0], AgentEvent::Connected(session) if session.session_id == session_id));
    assert!(said(&told).contains("word0"), "{told:#?}");
    // Gemini CLI goes on telling the history after it has said that the session is open.
    let told = chat.ask("COUNT 20").await;
    assert!(said(&told).trim().ends_with(words(20).trim()));
}

#[tokio::test]
async fn a_qwen_child_is_talked_to() {
    let place = Place::new(model::start().await);
    child(place.qwen(), place, Reopening::Works).await;
}

#[tokio::test]
async fn a_gemini_child_is_talked_to() {
    let place = Place::new(model::start().await);
    child(place.gemini(), place, Reopening::IsRefused).await;
}

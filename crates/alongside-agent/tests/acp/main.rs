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

mod agent;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alongside_agent::acp::{AcpError, AcpOptions, AgentProcess, AllowWrites, ProposedWrite, ReviewGate, WriteDecision};
use alongside_agent::conversation::{Answers, PermissionDecision, TurnEnd};
use alongside_agent::ide::OpenSession;
use alongside_agent::{
    AgentCommand, AgentError, AgentEvent, AgentManager, AgentReply, AgentTarget, DisconnectKind, EventReceiver,
};
use futures_util::future::BoxFuture;

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
    TurnEnd::Completed {
        stop_reason: reason.to_owned(),
    }
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

#[tokio::test]
async fn a_prompt_is_answered_in_order_and_ends() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    let prompt_id = prompt(&manager, "count 500").await;
    let told = until(&mut events, is_end).await;
    let expected = (0..500)
        .map(|number| format!("word{number} "))
        .collect::<Vec<_>>()
        .concat();
    assert_eq!(said(&told), expected);
    assert_eq!(end(&told), &completed("end_turn"));
    assert_eq!(
        told[0],
        AgentEvent::PromptAccepted {
            prompt_id: prompt_id.clone(),
            text: "count 500".to_owned()
        }
    );
    assert_eq!(told[1], AgentEvent::TurnStarted { prompt_id });
}

#[tokio::test]
async fn the_agent_introduces_itself_with_its_models_and_modes() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = AgentManager::new();
    let connected = manager
        .connect(AgentTarget::Child(Box::new(options("", directory.path()))))
        .await
        .unwrap();
    assert_eq!(connected.agent, "Fake Agent 1.2.3");
    assert!(connected.abilities.load_sessions && connected.abilities.list_sessions && connected.abilities.images);
    let told = until(&mut events, |event| matches!(event, AgentEvent::Modes(_))).await;
    assert!(matches!(told[0], AgentEvent::Connected(_)));
    assert!(
        told.iter().any(|event| matches!(event, AgentEvent::Commands { .. })),
        "what was said early is not lost"
    );
    assert!(
        told.iter()
            .any(|event| matches!(event, AgentEvent::Models(models) if models.current.as_deref() == Some("a")))
    );
    assert_eq!(manager.session_id().as_deref(), Some("session-1"));
}

#[tokio::test]
async fn a_prompt_while_a_turn_goes_on_waits_and_can_be_taken_back() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    prompt(&manager, "wait").await;
    let second = prompt(&manager, "say second").await;
    let third = prompt(&manager, "say third").await;
    for _ in 0..3 {
        prompt(&manager, "say more").await;
    }
    let too_many = manager
        .execute(AgentCommand::Prompt {
            blocks: vec!["say x".into()],
        })
        .await;
    assert!(matches!(too_many, Err(AgentError::Acp(AcpError::QueueFull(5)))));
    let remove = AgentCommand::RemoveQueued {
        prompt_id: second.clone(),
    };
    assert_eq!(manager.execute(remove.clone()).await.unwrap(), AgentReply::Done);
    assert_eq!(manager.execute(remove).await.unwrap(), AgentReply::TooLate);
    manager.execute(AgentCommand::Cancel).await.unwrap();
    let told = until(&mut events, is_end).await;
    assert_eq!(end(&told), &completed("cancelled"));
    let told = until(&mut events, is_end).await;
    assert_eq!(
        told[0],
        AgentEvent::PromptUnqueued {
            prompt_id: third,
            removed: false
        }
    );
    assert_eq!(said(&told), "third");
}

#[tokio::test]
async fn an_approval_is_answered_with_what_was_offered() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    for (choice, heard) in [("yes", "selected yes"), ("no", "selected no"), ("stale", "cancelled")] {
        prompt(&manager, "ask").await;
        let told = until(&mut events, is_approval).await;
        assert!(told.iter().any(|event| matches!(event, AgentEvent::ToolCall { .. })));
        assert_eq!(
            answer(&manager, &told, PermissionDecision::select(choice)).await,
            AgentReply::Done
        );
        let told = until(&mut events, is_end).await;
        assert_eq!(said(&told), heard);
        assert!(matches!(told[0], AgentEvent::ApprovalClosed { own: true, .. }));
    }
}

#[tokio::test]
async fn a_question_is_answered_with_answers() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    prompt(&manager, "question").await;
    let told = until(&mut events, is_approval).await;
    let answers = Answers::from([("0".to_owned(), "Blue".to_owned())]);
    answer(
        &manager,
        &told,
        PermissionDecision::Select {
            option_id: "yes".to_owned(),
            answers,
        },
    )
    .await;
    assert_eq!(said(&until(&mut events, is_end).await), "selected yes {\"0\":\"Blue\"}");
}

#[tokio::test]
async fn cancelling_a_turn_cancels_its_approval() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    prompt(&manager, "ask").await;
    until(&mut events, is_approval).await;
    manager.execute(AgentCommand::Cancel).await.unwrap();
    manager.execute(AgentCommand::Cancel).await.unwrap();
    let told = until(&mut events, is_end).await;
    let closed = told
        .iter()
        .filter(|event| matches!(event, AgentEvent::ApprovalClosed { option_id: None, .. }))
        .count();
    let requested = told
        .iter()
        .filter(|event| matches!(event, AgentEvent::CancelRequested { .. }))
        .count();
    assert_eq!((closed, requested), (1, 1));
    assert_eq!(end(&told), &completed("cancelled"));
}

#[tokio::test]
async fn models_and_modes_are_switched_in_the_way_the_agent_knows() {
    let directory = tempfile::tempdir().unwrap();
    for how in ["", "config-options"] {
        let (manager, mut events) = connect(options(how, directory.path())).await.unwrap();
        manager
            .execute(AgentCommand::SetModel {
                model_id: "b".to_owned(),
            })
            .await
            .unwrap();
        manager
            .execute(AgentCommand::SetMode {
                mode_id: "default".to_owned(),
            })
            .await
            .unwrap();
        let told = until(&mut events, |event| matches!(event, AgentEvent::ModeChanged { .. })).await;
        assert!(
            told.contains(&AgentEvent::ModelChanged {
                model_id: "b".to_owned()
            }),
            "{how}"
        );
        let wrong = manager
            .execute(AgentCommand::SetModel {
                model_id: "none".to_owned(),
            })
            .await
            .unwrap_err();
        assert_eq!(wrong.to_string(), "Model 'none' not found (code -32603)", "{how}");
    }
}

/// Refuses, edits or never answers, by the name of the file.
struct Gate;

impl ReviewGate for Gate {
    fn review(&self, write: ProposedWrite) -> BoxFuture<'static, WriteDecision> {
        let name = write.path.file_name().unwrap().to_str().unwrap();
        match name {
            "refused" => Box::pin(std::future::ready(WriteDecision::Refuse {
                reason: "not this one".to_owned(),
            })),
            "endless" => Box::pin(std::future::pending()),
            _ => Box::pin(std::future::ready(WriteDecision::Write(format!(
                "{} (reviewed)",
                write.text
            )))),
        }
    }
}

#[tokio::test]
async fn files_are_read_and_written_through_the_review() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    let options = AcpOptions {
        gate: Arc::new(Gate),
        ..options("", directory.path())
    };
    let (manager, mut events) = connect(options).await.unwrap();
    prompt(&manager, &format!("write {} text", path.display())).await;
    assert_eq!(said(&until(&mut events, is_end).await), "written");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "text (reviewed)");
    prompt(&manager, &format!("read {}", path.display())).await;
    assert_eq!(said(&until(&mut events, is_end).await), "text (reviewed)");
    prompt(
        &manager,
        &format!("write {} text", directory.path().join("refused").display()),
    )
    .await;
    assert_eq!(said(&until(&mut events, is_end).await), "not this one");
}

#[tokio::test]
async fn a_review_that_waits_holds_up_nothing_and_ends_with_its_turn() {
    let directory = tempfile::tempdir().unwrap();
    let options = AcpOptions {
        gate: Arc::new(Gate),
        ..options("", directory.path())
    };
    let (manager, mut events) = connect(options).await.unwrap();
    prompt(
        &manager,
        &format!("write {} text", directory.path().join("endless").display()),
    )
    .await;
    until(&mut events, |event| matches!(event, AgentEvent::ThinkingChunk { .. })).await;
    manager
        .execute(AgentCommand::SetModel {
            model_id: "b".to_owned(),
        })
        .await
        .unwrap();
    manager.execute(AgentCommand::Cancel).await.unwrap();
    let told = until(&mut events, is_end).await;
    assert_eq!(said(&told), "the turn was cancelled");
}

#[tokio::test]
async fn an_old_session_is_opened_with_its_history() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    let AgentReply::Sessions { sessions } = manager.execute(AgentCommand::ListSessions).await.unwrap() else {
        panic!("no sessions")
    };
    assert_eq!(
        (sessions[0].session_id.as_str(), sessions[0].display_name.as_deref()),
        ("old", Some("Old one"))
    );
    manager
        .execute(AgentCommand::LoadSession {
            session_id: "old".to_owned(),
        })
        .await
        .unwrap();
    let told = until(&mut events, |event| matches!(event, AgentEvent::Modes(_))).await;
    assert!(matches!(told[0], AgentEvent::Connected(_)));
    assert!(matches!(told[1], AgentEvent::HistoryStart { .. }));
    assert!(matches!(&told[2], AgentEvent::UserMessage { content, .. } if content.as_text() == Some("hello")));
    assert!(matches!(&told[3], AgentEvent::AssistantChunk { content, .. } if content.as_text() == Some("hi")));
    assert_eq!(told[4], AgentEvent::HistoryEnd);
    assert_eq!(manager.session_id().as_deref(), Some("old"));
    let missing = manager
        .execute(AgentCommand::LoadSession {
            session_id: "missing".to_owned(),
        })
        .await;
    assert!(missing.is_err());
    assert_eq!(
        manager.session_id().as_deref(),
        Some("old"),
        "the session before goes on"
    );
    prompt(&manager, "say still here").await;
    assert_eq!(said(&until(&mut events, is_end).await), "still here");
}

#[tokio::test]
async fn the_death_of_the_agent_is_told_with_its_last_words_and_a_way_back() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    prompt(&manager, "die").await;
    prompt(&manager, "say never").await;
    let told = until(&mut events, |event| matches!(event, AgentEvent::Disconnected { .. })).await;
    assert!(told.iter().any(|event| matches!(
        event,
        AgentEvent::TurnEnded {
            end: TurnEnd::Failed { .. },
            ..
        }
    )));
    assert!(
        told.iter()
            .any(|event| matches!(event, AgentEvent::PromptUnqueued { removed: true, .. }))
    );
    let Some(AgentEvent::Disconnected {
        kind: DisconnectKind::Died,
        reason,
        reopen: Some(session_id),
    }) = told.last()
    else {
        panic!("{told:?}")
    };
    assert!(
        reason.contains("exit status: 3") && reason.contains("I die with …"),
        "{reason}"
    );
    assert!(!manager.is_connected());
    let nobody = manager
        .execute(AgentCommand::Prompt {
            blocks: vec!["x".into()],
        })
        .await;
    assert!(matches!(nobody, Err(AgentError::NotConnected)));
    manager
        .execute(AgentCommand::LoadSession {
            session_id: session_id.clone(),
        })
        .await
        .unwrap();
    until(&mut events, |event| matches!(event, AgentEvent::Modes(_))).await;
    prompt(&manager, "say again").await;
    assert_eq!(said(&until(&mut events, is_end).await), "again");
}

#[tokio::test]
async fn an_agent_that_wants_a_login_gets_it_or_says_what_it_offers() {
    let directory = tempfile::tempdir().unwrap();
    let error = connect(options("login", directory.path())).await.unwrap_err();
    assert_eq!(error.to_string(), "the agent wants a login first; it offers Fake Key");
    let options = AcpOptions {
        authentication: Some("key".to_owned()),
        ..options("login", directory.path())
    };
    connect(options).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_an_agent_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let mut nothing = options("", directory.path());
    nothing.process = AgentProcess::new("/no/such/program", &[]);
    let error = connect(nothing).await.unwrap_err();
    assert!(error.hint().unwrap().contains("installed"), "{error}");
    let error = connect(options("version", directory.path())).await.unwrap_err();
    assert!(matches!(error, AgentError::Acp(AcpError::Version(_))), "{error}");
    let error = connect(options("exit", directory.path())).await.unwrap_err();
    assert!(matches!(error, AgentError::Acp(AcpError::Ended { .. })), "{error}");
}

#[tokio::test]
async fn a_failed_turn_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    prompt(&manager, "fail").await;
    let told = until(&mut events, is_end).await;
    let expected = TurnEnd::Failed {
        message: "400 upstream refused".to_owned(),
        code: Some("-32603".to_owned()),
    };
    assert_eq!(end(&told), &expected);
}

#[tokio::test]
async fn a_model_and_a_mode_to_begin_with_are_switched_to() {
    let directory = tempfile::tempdir().unwrap();
    let options = AcpOptions {
        model: Some("b".to_owned()),
        mode: Some("nonsense".to_owned()),
        open: OpenSession::New,
        ..options("", directory.path())
    };
    let (_manager, mut events) = connect(options).await.unwrap();
    let told = until(&mut events, |event| matches!(event, AgentEvent::Notice { .. })).await;
    assert!(told.contains(&AgentEvent::ModelChanged {
        model_id: "b".to_owned()
    }));
}

#[tokio::test]
async fn the_agent_ends_when_it_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    prompt(&manager, "pid").await;
    let pid: String = said(&until(&mut events, is_end).await);
    manager.disconnect().await;
    let told = until(&mut events, |event| matches!(event, AgentEvent::Disconnected { .. })).await;
    assert!(matches!(
        told.last(),
        Some(AgentEvent::Disconnected {
            kind: DisconnectKind::Requested,
            ..
        })
    ));
    let gone = async {
        while Path::new("/proc").join(&pid).exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone)
        .await
        .expect("it is still there");
}

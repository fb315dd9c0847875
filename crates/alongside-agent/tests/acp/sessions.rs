//! How an agent begins, what it remembers, and how it ends.

use std::path::Path;
use std::time::Duration;

use alongside_agent::acp::{AcpError, AcpOptions, AgentProcess};
use alongside_agent::conversation::TurnEnd;
use alongside_agent::{AgentCommand, AgentError, AgentEvent, AgentManager, AgentReply, AgentTarget, DisconnectKind};
use alongside_core::SessionId;

use super::{connect, is_approval, is_end, options, prompt, said, until};

#[tokio::test]
async fn connecting_reports_agent_models_and_modes() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = AgentManager::new();
    let connected = manager
        .connect(AgentTarget::Child(Box::new(options("", directory.path()))))
        .await
        .unwrap();
    assert_eq!(
        (connected.agent.as_str(), connected.agent_version.as_deref()),
        ("Fake Agent", Some("1.2.3"))
    );
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
    assert_eq!(session_id(&manager).as_deref(), Some("session-1"));
}

#[tokio::test]
async fn session_is_loaded_with_its_history() {
    loads_a_session_with_its_history("").await;
}

#[tokio::test]
async fn history_sent_after_the_response_is_no_answer() {
    loads_a_session_with_its_history("late-history").await;
}

async fn loads_a_session_with_its_history(how: &str) {
    let directory = tempfile::tempdir().unwrap();
    let (manager, mut events) = connect(options(how, directory.path())).await.unwrap();
    manager
        .execute(AgentCommand::LoadSession {
            session_id: SessionId::new("old"),
        })
        .await
        .unwrap();
    let told = until(&mut events, |event| matches!(event, AgentEvent::Modes(_))).await;
    assert!(matches!(told[0], AgentEvent::Connected(_)));
    assert!(matches!(told[1], AgentEvent::HistoryStart { .. }));
    assert!(matches!(&told[2], AgentEvent::UserMessage { content, .. } if content.as_text() == Some("hello")));
    assert!(matches!(&told[3], AgentEvent::AssistantChunk { content, .. } if content.as_text() == Some("hi")));
    assert_eq!(told[4], AgentEvent::HistoryEnd);
    assert_eq!(session_id(&manager).as_deref(), Some("old"));
    let missing = manager
        .execute(AgentCommand::LoadSession {
            session_id: SessionId::new("missing"),
        })
        .await;
    assert!(missing.is_err());
    assert_eq!(
        session_id(&manager).as_deref(),
        Some("old"),
        "the session before goes on"
    );
    prompt(&manager, "say still here").await;
    assert_eq!(said(&until(&mut events, is_end).await), "still here");
}

#[tokio::test]
async fn agent_exit_is_reported_with_stderr_and_reopen() {
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
    // The queued prompt was not removed: the reader of these events reports that it was not sent.
    let unqueued = |event: &AgentEvent| matches!(event, AgentEvent::PromptUnqueued { .. });
    assert!(!told.iter().any(unqueued), "{told:?}");
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
    let disconnected = manager
        .execute(AgentCommand::Prompt {
            blocks: vec!["x".into()],
            id: None,
        })
        .await;
    assert!(matches!(disconnected, Err(AgentError::NotConnected)));
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
async fn agent_that_stops_reading_is_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("large.txt");
    std::fs::write(&file, "x".repeat(2 * 1024 * 1024)).unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    prompt(&manager, &format!("flood {}", file.display())).await;
    let told = until(&mut events, |event| matches!(event, AgentEvent::Disconnected { .. })).await;
    let Some(AgentEvent::Disconnected { reason, .. }) = told.last() else {
        panic!("{told:?}")
    };
    assert_eq!(reason, "the agent has stopped reading its stdin");
    assert!(!manager.is_connected());
}

#[tokio::test]
async fn requests_for_sessions_that_are_not_open_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a");
    std::fs::write(&file, "before").unwrap();
    let (manager, mut events) = connect(options("", directory.path())).await.unwrap();
    prompt(&manager, &format!("claim {}", file.display())).await;
    let told = until(&mut events, |event| is_end(event) || is_approval(event)).await;
    let refused = "this session is not open\n";
    assert_eq!(said(&told), refused.repeat(3));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "before");
}

#[tokio::test]
async fn login_is_performed_or_methods_are_listed() {
    let directory = tempfile::tempdir().unwrap();
    let error = connect(options("login", directory.path())).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the agent requires you to log in first; it offers Fake Key"
    );
    let options = AcpOptions {
        authentication: Some("key".to_owned()),
        ..options("login", directory.path())
    };
    connect(options).await.unwrap();
}

#[tokio::test]
async fn unusable_agent_is_refused_with_reason() {
    let directory = tempfile::tempdir().unwrap();
    let mut nothing = options("", directory.path());
    nothing.process = AgentProcess::new("/no/such/program", &[]);
    let error = connect(nothing).await.unwrap_err();
    assert!(error.hint().unwrap().contains("installed"), "{error}");
    let error = connect(options("version", directory.path())).await.unwrap_err();
    assert!(matches!(error, AgentError::Acp(AcpError::Version(_))), "{error}");
    let error = connect(options("exit", directory.path())).await.unwrap_err();
    assert!(matches!(error, AgentError::Acp(AcpError::Exited { .. })), "{error}");
}

#[tokio::test]
async fn agent_exits_after_disconnect() {
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

#[tokio::test]
async fn sessions_are_listed_in_pages() {
    let directory = tempfile::tempdir().unwrap();
    let (manager, _events) = connect(options("", directory.path())).await.unwrap();
    let list = async |cursor: Option<&str>| {
        let cursor = cursor.map(str::to_owned);
        match manager.execute(AgentCommand::ListSessions { cursor }).await.unwrap() {
            AgentReply::Sessions { sessions, next_cursor } => (sessions, next_cursor),
            other => panic!("{other:?}"),
        }
    };
    let (sessions, next) = list(None).await;
    assert_eq!(
        (sessions[0].session_id.as_str(), sessions[0].display_name.as_deref()),
        ("old", Some("Old one"))
    );
    let (sessions, next) = list(next.as_deref()).await;
    assert_eq!(
        (sessions.len(), sessions[0].session_id.as_str(), next),
        (1, "older", None)
    );
}

#[tokio::test]
async fn session_is_renamed_if_supported() {
    let directory = tempfile::tempdir().unwrap();
    let rename = |title: &str| AgentCommand::Rename {
        title: title.to_owned(),
    };
    let (manager, mut events) = connect(options("qwen", directory.path())).await.unwrap();
    assert_eq!(manager.execute(rename("A name")).await.unwrap(), AgentReply::Done);
    let told = until(&mut events, |event| matches!(event, AgentEvent::Title { .. })).await;
    assert!(matches!(told.last(), Some(AgentEvent::Title { title }) if title == "A name"));
    assert!(manager.execute(rename("refused")).await.is_err());
    let (manager, _events) = connect(options("", directory.path())).await.unwrap();
    let error = manager.execute(rename("A name")).await.unwrap_err();
    assert!(matches!(error, AgentError::Unsupported(_)), "{error}");
}

fn session_id(manager: &AgentManager) -> Option<String> {
    manager.session_id().map(|id| id.to_string())
}

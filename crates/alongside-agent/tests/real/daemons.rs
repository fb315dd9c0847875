//! The real `qwen serve`.

use std::time::Instant;

use alongside_agent::OpenSession;
use alongside_agent::conversation::{Answers, PermissionDecision, ToolContent, TurnEnd};
use alongside_agent::daemon::DaemonOptions;
use alongside_agent::daemon::{DaemonAddress, DaemonClient, DaemonError, Diagnostics, NewSession, SessionScope};
use alongside_agent::{
    AgentCommand, AgentError, AgentEvent, AgentReply, AgentTarget, DisconnectKind, Locality, Position, Secret,
};
use alongside_testing::{FakeModel, Prompt};
use rustix::process::Signal;

use super::{Chat, converse, is_approval, is_end, option, said, words};
use crate::programs::{Daemon, Place, Proxy};

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
    let place = Place::new(FakeModel::start().port());
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

    chat.prompt(&Prompt::Ask.to_string()).await;
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
async fn lost_connection_resumes_at_last_event_id() {
    let place = Place::new(FakeModel::start().port());
    let daemon = Daemon::start(&place, 0, None).await;
    let proxy = Proxy::start(daemon.port).await;
    let address = DaemonAddress::parse(&format!("http://127.0.0.1:{}", proxy.port)).unwrap();
    let mut chat = daemon_chat(daemon_target(address, &place)).await.unwrap();
    for turn in 0..5 {
        chat.prompt(&Prompt::Count(400).to_string()).await;
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
async fn session_of_crashed_agent_is_reopened() {
    let place = Place::new(FakeModel::start().port());
    let daemon = Daemon::start(&place, 0, None).await;
    let mut chat = daemon_chat(daemon_target(daemon.address(), &place)).await.unwrap();
    chat.ask(&Prompt::Count(10).to_string()).await;
    chat.prompt(&Prompt::Slow.to_string()).await;
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
    assert_eq!(
        said(&chat.ask(&Prompt::Count(20).to_string()).await).trim(),
        words(20).trim()
    );
}

#[tokio::test]
async fn restarted_daemon_is_reconnected() {
    let place = Place::new(FakeModel::start().port());
    let daemon = Daemon::start(&place, 0, None).await;
    let port = daemon.port;
    let mut chat = daemon_chat(daemon_target(daemon.address(), &place)).await.unwrap();
    chat.ask(&Prompt::Count(10).to_string()).await;
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
    assert_eq!(
        said(&chat.ask(&Prompt::Count(20).to_string()).await).trim(),
        words(20).trim()
    );
    // The mode is that of before: a restart does not stop anybody from being asked.
    let path = place.workspace().join("new.txt");
    chat.prompt(&Prompt::WriteFile(path.to_str().unwrap(), "text").to_string())
        .await;
    let told = chat.until(is_approval).await;
    chat.answer(&told, option(&told, "reject_once")).await;
    chat.until(is_end).await;
    assert!(!path.exists());
}

#[tokio::test]
async fn wrong_workspace_or_token_is_refused() {
    let place = Place::new(FakeModel::start().port());
    let daemon = Daemon::start(&place, 0, Some("s3cret-token")).await;
    let options = |token: &str| DaemonOptions {
        token: Secret::new(token),
        ..daemon_target(daemon.address(), &place)
    };
    let error = daemon_chat(options("wrong")).await.err().unwrap();
    assert!(
        matches!(&error, AgentError::Daemon(error) if error.is_unauthorized()),
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
    for side in [
        Diagnostics::Environment,
        Diagnostics::Providers,
        Diagnostics::McpServers,
        Diagnostics::Skills,
    ] {
        let said = client.diagnostics(side).await.unwrap();
        assert_eq!(said["v"], 1, "{side:?}: {said}");
    }
    std::fs::write(place.workspace().join("a.txt"), "x").unwrap();
    assert_eq!(client.read_file(None, "a.txt").await.unwrap().content, "x");
    let missing = client.read_file(None, "missing.txt").await.unwrap_err();
    assert!(missing.has_code("path_not_found"), "{missing}");
}

#[tokio::test]
async fn many_turns_lose_and_double_nothing() {
    let place = Place::new(FakeModel::start().port());
    let daemon = Daemon::start(&place, 0, None).await;
    let mut chat = daemon_chat(daemon_target(daemon.address(), &place)).await.unwrap();
    chat.ask(&Prompt::Count(5).to_string()).await;
    let begun = Instant::now();
    for _ in 0..10 {
        assert_eq!(
            said(&chat.ask(&Prompt::Count(300).to_string()).await).trim(),
            words(300).trim()
        );
    }
    eprintln!("10 turns of 300 words in {:?}", begun.elapsed());
}

/// Reads what is left of a turn as a reader who comes back after a restart.
async fn come_back(options: &DaemonOptions, kept: &str) -> Chat {
    let position: Position = serde_json::from_str(kept).unwrap();
    let options = DaemonOptions {
        open: OpenSession::Resume(Box::new(position)),
        ..options.clone()
    };
    let mut chat = daemon_chat(options).await.unwrap();
    let told = chat.until(|event| matches!(event, AgentEvent::Connected(_))).await;
    assert!(
        matches!(&told[..], [AgentEvent::Connected(session)] if session.resumed),
        "{told:#?}"
    );
    chat
}

#[tokio::test]
async fn killed_reader_resumes() {
    let place = Place::new(FakeModel::start().port());
    let daemon = Daemon::start(&place, 0, None).await;
    let options = daemon_target(daemon.address(), &place);
    let mut chat = daemon_chat(options.clone()).await.unwrap();
    // What the agent says first, so that there is something to come back to.
    chat.until(|event| matches!(event, AgentEvent::Commands { .. })).await;
    // Each time the reader takes a little more, is gone without a word, and comes back in the middle of the turn.
    let mut told = Vec::new();
    for turn in 0..4 {
        chat.prompt(&Prompt::Count(300).to_string()).await;
        for _ in 0..3 {
            let enough = told.len() + 7 * turn + 1;
            while told.len() < enough {
                told.extend(chat.events.recv().await);
            }
            let kept = serde_json::to_string(chat.events.position().unwrap()).unwrap();
            chat = come_back(&options, &kept).await;
        }
        told.extend(chat.until(is_end).await);
        assert_eq!(said(&told).trim(), words(300).trim(), "turn {turn}");
        let count = |wanted: fn(&AgentEvent) -> bool| told.iter().filter(|event| wanted(event)).count();
        assert_eq!(
            count(|event| matches!(event, AgentEvent::PromptAccepted { .. })),
            1,
            "{told:#?}"
        );
        assert_eq!(
            count(|event| matches!(event, AgentEvent::TurnStarted { .. })),
            1,
            "{told:#?}"
        );
        assert_eq!(
            count(|event| matches!(event, AgentEvent::UserMessage { .. })),
            0,
            "{told:#?}"
        );
        told.clear();
    }
    // An approval that was shown is not shown again, and can be answered.
    let path = place.workspace().join("new.txt");
    chat.prompt(&Prompt::WriteFile(path.to_str().unwrap(), "text").to_string())
        .await;
    let told = chat.until(is_approval).await;
    let kept = serde_json::to_string(chat.events.position().unwrap()).unwrap();
    let mut chat = come_back(&options, &kept).await;
    chat.answer(&told, option(&told, "allow_once")).await;
    let told = chat.until(is_end).await;
    assert!(!told.iter().any(is_approval), "{told:#?}");
    assert!(
        told.iter()
            .any(|event| matches!(event, AgentEvent::ApprovalClosed { own: true, .. })),
        "{told:#?}"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
    // What it was about was told before, and is still known.
    let card = told.iter().rev().find_map(|event| match event {
        AgentEvent::ToolCall { call, .. } => Some(call),
        _ => None,
    });
    assert!(
        matches!(&card.unwrap().content[..], [ToolContent::Diff { new_text, .. }] if new_text == "text"),
        "{card:#?}"
    );
}

#[tokio::test]
async fn daemon_with_own_certificate_is_accepted() {
    let place = Place::new(FakeModel::start().port());
    let certificate = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let file = place.path("certificate.pem");
    std::fs::write(&file, certificate.cert.pem()).unwrap();
    std::fs::write(place.path("key.pem"), certificate.signing_key.serialize_pem()).unwrap();
    let daemon = Daemon::start_with_tls(&place, &file, &place.path("key.pem")).await;
    let options = DaemonOptions {
        ca_file: Some(file),
        ..daemon_target(daemon.address(), &place)
    };
    let mut chat = daemon_chat(options.clone()).await.unwrap();
    assert_eq!(
        said(&chat.ask(&Prompt::Count(50).to_string()).await).trim(),
        words(50).trim()
    );
    let error = daemon_chat(DaemonOptions {
        ca_file: None,
        ..options
    })
    .await
    .err()
    .unwrap();
    assert!(
        matches!(&error, AgentError::Daemon(DaemonError::Untrusted(_))),
        "{error:?}"
    );
}

#[tokio::test]
async fn files_are_found_and_sessions_listed_in_pages() {
    let place = Place::new(FakeModel::start().port());
    let daemon = Daemon::start(&place, 0, None).await;
    std::fs::create_dir_all(place.workspace().join("src")).unwrap();
    for name in ["src/Main.rs", "src/domain.rs", "other.rs"] {
        std::fs::write(place.workspace().join(name), "").unwrap();
    }
    let mut chat = daemon_chat(daemon_target(daemon.address(), &place)).await.unwrap();
    let found = chat
        .execute(AgentCommand::FindFiles {
            pattern: "main".to_owned(),
        })
        .await;
    let paths = ["src/Main.rs", "src/domain.rs"].map(str::to_owned).to_vec();
    assert_eq!(found, AgentReply::Files { paths });
    chat.ask(&Prompt::Count(5).to_string()).await;
    // A page of the daemon itself is smaller than what it has.
    let client = DaemonClient::new(daemon.address(), None).unwrap();
    let workspace = place.workspace().display().to_string();
    for _ in 0..55 {
        let session = NewSession {
            session_scope: Some(SessionScope::Thread),
            ..NewSession::default()
        };
        // A closed session makes room for the next one; a session without a prompt is not stored.
        let session = client.create_or_attach(&session, None).await.unwrap();
        client
            .close(&session.session_id, session.client_id.as_deref())
            .await
            .unwrap();
    }
    let mut cursor = None;
    let mut seen = Vec::new();
    loop {
        let page = client.list(&workspace, cursor.as_deref()).await.unwrap();
        seen.extend(page.sessions.into_iter().map(|session| session.session_id));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert!(seen.contains(&chat.manager.session_id().unwrap()), "{seen:?}");
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all, "none is listed twice");
}

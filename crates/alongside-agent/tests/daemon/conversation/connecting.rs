//! Connecting: what fits, which session, and what is told of it.

use super::Chat;
use alongside_agent::OpenSession;
use alongside_agent::conversation::PermissionDecision;
use alongside_agent::daemon::DaemonOptions;
use alongside_agent::daemon::{AddressError, DaemonAddress, DaemonError};
use alongside_agent::{AgentCommand, AgentError, AgentEvent, AgentReply, Secret};
use alongside_core::SessionId;
use serde_json::{Value, json};

use super::{connected, last_event_id, opened, options, request, settle, until};
use crate::fake::{CLIENT, FakeDaemon, Reply, SESSION, WORKSPACE, chunk};

#[tokio::test]
async fn connecting_opens_a_session_and_forwards_updates() {
    let daemon = FakeDaemon::start().await;
    daemon.say("before anyone listened");
    let (connection, mut events) = Chat::new();
    let session = connection.connect(options(&daemon)).await.unwrap();
    assert_eq!((session.session_id.as_str(), session.attached), (SESSION, false));
    let told = until(&mut events, |event| matches!(event, AgentEvent::AssistantChunk { .. })).await;
    assert!(matches!(told[0], AgentEvent::Connected(_)));
    daemon.publish("session_update", &chunk("agent_thought_chunk", "hm"));
    until(&mut events, |event| matches!(event, AgentEvent::ThinkingChunk { .. })).await;
    settle(&daemon, &mut events).await;
    assert!(connection.is_connected());
    assert!(last_event_id(&events) >= Some(2));
}

#[tokio::test]
async fn concurrent_connects_leave_one_session() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = Chat::new();
    let (first, second) = tokio::join!(
        connection.connect(options(&daemon)),
        connection.connect(options(&daemon))
    );
    first.unwrap();
    second.unwrap();
    assert!(connection.is_connected());
    daemon.wait_for_request("/detach").await;
    let told = settle(&daemon, &mut events).await;
    let over = told
        .iter()
        .filter(|event| matches!(event, AgentEvent::Disconnected { .. }))
        .count();
    assert_eq!(over, 1);
}

#[tokio::test]
async fn connect_after_a_failed_one_succeeds() {
    let daemon = FakeDaemon::start().await;
    daemon.reply("GET /capabilities", Reply::json(401, &json!({"error": "Unauthorized"})));
    let (connection, _events) = Chat::new();
    let (first, second) = tokio::join!(
        connection.connect(options(&daemon)),
        connection.connect(options(&daemon))
    );
    let error = first.unwrap_err();
    assert!(error.hint().unwrap().contains("QWEN_SERVER_TOKEN"), "{error}");
    second.unwrap();
}

#[tokio::test]
async fn commands_without_session_are_refused_except_cancel() {
    let (connection, _events) = Chat::new();
    connection.cancel().await.unwrap();
    assert!(matches!(
        connection.prompt(&["x".into()]).await,
        Err(AgentError::NotConnected)
    ));
    assert!(matches!(connection.set_model("x").await, Err(AgentError::NotConnected)));
    connection.disconnect().await;
}

#[tokio::test]
async fn late_client_gets_history_and_open_request() {
    let daemon = FakeDaemon::start().await;
    daemon.with(|state| {
        state.attached = true;
        state.history = vec![
            json!({"v": 1, "id": 1, "type": "session_update", "data": chunk("user_message_chunk", "hello")}),
            json!({"v": 1, "id": 2, "type": "permission_request", "data": request("old")}),
            json!({"v": 1, "id": 3, "type": "session_update", "data": chunk("agent_message_chunk", "hi")}),
        ];
        state.pending = vec![
            json!({"requestId": "r", "kind": "permission", "action": {"type": "edit", "title": "Writing"},
            "options": [{"optionId": "proceed_once", "label": "Allow", "kind": "allow_once"}]}),
        ];
    });
    let (connection, mut events) = Chat::new();
    assert!(connection.connect(options(&daemon)).await.unwrap().attached);
    let told = until(&mut events, |event| matches!(event, AgentEvent::ApprovalOpened { .. })).await;
    assert_eq!(opened(&told), ["r"]);
    let order = told.iter().filter_map(|event| match event {
        AgentEvent::Connected(_) => Some("connected"),
        AgentEvent::HistoryStart { .. } => Some("history"),
        AgentEvent::UserMessage { .. } => Some("user"),
        AgentEvent::AssistantChunk { .. } => Some("agent"),
        AgentEvent::HistoryEnd => Some("now"),
        _ => None,
    });
    assert_eq!(
        order.collect::<Vec<_>>(),
        ["connected", "history", "user", "agent", "now"]
    );
    assert!(
        connection
            .respond_to_permission("r", &PermissionDecision::select("proceed_once"))
            .await
            .unwrap()
    );
}

#[tokio::test]
async fn daemon_for_another_workspace_is_refused_early() {
    let daemon = FakeDaemon::start().await;
    let (connection, _events) = Chat::new();
    let elsewhere = DaemonOptions {
        workspace: Some("/elsewhere".to_owned()),
        ..options(&daemon)
    };
    let error = connection.connect(elsewhere).await.unwrap_err();
    let AgentError::Daemon(DaemonError::WorkspaceMismatch { wanted, offered }) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (wanted.as_str(), offered),
        ("/elsewhere", vec!["/project".to_owned(), "/second".to_owned()])
    );
    assert_eq!(daemon.requests("POST /session").len(), 0);
    let second = DaemonOptions {
        workspace: Some("/second/".to_owned()),
        ..options(&daemon)
    };
    connection.connect(second).await.unwrap();
}

#[tokio::test]
async fn daemon_without_required_feature_is_refused() {
    let daemon = FakeDaemon::start().await;
    daemon.with(|state| state.features.retain(|feature| feature != "session_permission_vote"));
    let (connection, _events) = Chat::new();
    let error = connection.connect(options(&daemon)).await.unwrap_err();
    assert!(matches!(
        error,
        AgentError::Daemon(DaemonError::MissingFeature("session_permission_vote"))
    ));
}

#[tokio::test]
async fn opening_a_session_replaces_the_current_one() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    connection.execute(AgentCommand::NewSession).await.unwrap();
    let created: Vec<_> = daemon
        .requests("POST /session")
        .into_iter()
        .filter(|request| request.path == "/session")
        .collect();
    assert_eq!(created[1].body["sessionScope"], "thread");
    until(&mut events, |event| matches!(event, AgentEvent::Connected(_))).await;
    connection
        .execute(AgentCommand::LoadSession {
            session_id: SessionId::new(SESSION),
        })
        .await
        .unwrap();
    until(&mut events, |event| matches!(event, AgentEvent::HistoryEnd)).await;
}

#[tokio::test]
async fn sessions_are_listed_in_pages() {
    let daemon = FakeDaemon::start().await;
    let (connection, _events) = connected(&daemon).await;
    let list = async |cursor: Option<&str>| {
        let cursor = cursor.map(str::to_owned);
        match connection.execute(AgentCommand::ListSessions { cursor }).await.unwrap() {
            AgentReply::Sessions { sessions, next_cursor } => (sessions, next_cursor),
            other => panic!("{other:?}"),
        }
    };
    let page = |next: Value| {
        let sessions = json!([{"sessionId": SESSION, "workspaceCwd": WORKSPACE}]);
        Reply::json(200, &json!({"sessions": sessions, "nextCursor": next}))
    };
    // Some versions have a text there, and some a number.
    daemon.reply("/sessions?", page(json!("a b")));
    let (sessions, next) = list(None).await;
    assert_eq!(
        (sessions[0].session_id.as_str(), next.as_deref()),
        (SESSION, Some("a b"))
    );
    daemon.reply("/sessions?", page(json!(17)));
    assert_eq!(list(next.as_deref()).await.1.as_deref(), Some("17"));
    assert_eq!(list(Some("17")).await.1, None);
    let paths: Vec<String> = daemon
        .requests("/sessions?")
        .into_iter()
        .map(|request| request.path)
        .collect();
    let page_of = |cursor: &str| format!("/workspace/%2Fproject/sessions?size=50{cursor}");
    assert_eq!(paths, [page_of(""), page_of("&cursor=a%20b"), page_of("&cursor=17")]);
}

#[tokio::test]
async fn files_are_searched_in_the_session_workspace() {
    let daemon = FakeDaemon::start().await;
    let (connection, _events) = connected(&daemon).await;
    let found = json!({"matches": ["deep/domain.rs", "src/Main.rs"], "truncated": false});
    daemon.reply("/glob?", Reply::json(200, &found));
    let find = AgentCommand::FindFiles {
        pattern: "main".to_owned(),
    };
    let reply = connection.execute(find.clone()).await.unwrap();
    let paths = ["src/Main.rs", "deep/domain.rs"].map(str::to_owned).to_vec();
    assert_eq!(reply, AgentReply::Files { paths }, "the best first");
    let pattern = "maxResults=1000&pattern=%2A%2A%2F%2A%5BmM%5D%5BaA%5D%5BiI%5D%5BnN%5D%2A";
    assert_eq!(daemon.requests("/glob?")[0].path, format!("/glob?{pattern}"));
    connection.disconnect().await;
    daemon.wait_for_request("/detach").await;
    // The plain route knows the first directory only.
    let created = json!({"sessionId": SESSION, "workspaceCwd": "/second", "attached": false, "clientId": "c"});
    daemon.reply("POST /session", Reply::json(200, &created));
    connection
        .connect(DaemonOptions {
            workspace: Some("/second".to_owned()),
            ..options(&daemon)
        })
        .await
        .unwrap();
    daemon.reply("/glob?", Reply::json(200, &found));
    connection.execute(find).await.unwrap();
    assert_eq!(
        daemon.requests("/glob?")[1].path,
        format!("/workspaces/%2Fsecond/glob?{pattern}")
    );
}

#[tokio::test]
async fn events_and_errors_contain_no_secret() {
    let daemon = FakeDaemon::start().await;
    let leak = json!({"error": "bad token s3cret-token", "code": "x"});
    let options = DaemonOptions {
        token: Secret::new("s3cret-token"),
        open: OpenSession::New,
        ..options(&daemon)
    };
    assert!(!format!("{options:?}").contains("s3cret"));
    let (connection, mut events) = Chat::new();
    connection.connect(options).await.unwrap();
    assert_eq!(
        daemon.wait_for_request("/events").await.header("authorization"),
        Some("Bearer s3cret-token")
    );
    daemon.reply("/model", Reply::json(400, &leak));
    let error = connection.set_model("b").await.unwrap_err();
    assert!(
        !format!("{error} {error:?} {connection:?}").contains("s3cret"),
        "{error:?}"
    );
    let told = settle(&daemon, &mut events).await;
    let told = serde_json::to_string(&told).unwrap();
    for secret in ["s3cret", CLIENT, &daemon.port.to_string()] {
        assert!(!told.contains(secret), "{secret}");
    }
}

#[test]
fn only_loopback_addresses_are_accepted() {
    for (url, expected) in [
        ("file:///tmp/socket", "must use http or https"),
        ("http://user:password@127.0.0.1:4170", "must not contain credentials"),
        (
            "http://example.com:4170",
            "must use a loopback address, not example.com",
        ),
    ] {
        let error: AddressError = DaemonAddress::parse(url).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

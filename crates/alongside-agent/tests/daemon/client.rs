//! The routes of a daemon, and what becomes of answers that are not the usual ones.

use std::time::Duration;

use crate::fake::{FakeDaemon, Reply, SESSION};
use alongside_agent::Secret;
use alongside_agent::conversation::{TurnEnd, Vote};
use alongside_agent::daemon::{ClientSettings, DaemonAddress, DaemonClient, DaemonError, ErrorCode, NewSession};
use alongside_core::SessionId;
use serde_json::json;

fn session() -> SessionId {
    SessionId::new(SESSION)
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let daemon = FakeDaemon::start().await;
    let client = daemon.client();
    let refused = async |reply: Reply| {
        daemon.reply("/model", reply);
        client.set_model(&session(), "x", None).await.unwrap_err()
    };
    let error = refused(Reply::json(401, &json!({"error": "Unauthorized"}))).await;
    assert!(error.is_unauthorized() && !error.is_transient() && error.hint().is_some());
    let error = refused(Reply::json(
        404,
        &json!({"error": "No session", "code": "session_not_found"}),
    ))
    .await;
    assert!(error.is_session_gone() && error.hint().is_some());
    let error = refused(Reply::html(404)).await;
    assert!(!error.is_session_gone());
    assert_eq!(error.to_string(), "the daemon answered 404: Cannot GET /nope");
    let limited = json!({"error": "Rate limit exceeded", "code": "rate_limit_exceeded", "retryAfterMs": 59967});
    let error = refused(Reply::json(429, &limited).with("Retry-After", "60")).await;
    assert!(error.is_transient());
    assert_eq!(error.retry_after(), Some(Duration::from_millis(59967)));
    let error = refused(Reply::json(503, &json!({"code": "session_limit_exceeded"})).with("Retry-After", "5")).await;
    assert_eq!(
        (error.is_transient(), error.retry_after()),
        (true, Some(Duration::from_secs(5)))
    );
    let inner = json!({"error": "Internal error", "code": -32603, "data": {"details": "Model 'x' not found"}});
    let error = refused(Reply::json(500, &inner)).await;
    assert_eq!(error.response().unwrap().code, Some(ErrorCode::Number(-32603)));
    assert!(error.to_string().contains("Model 'x' not found"), "{error}");
}

#[tokio::test]
async fn other_server_is_not_treated_as_a_daemon() {
    let daemon = FakeDaemon::start().await;
    daemon.reply("/capabilities", Reply::html(200));
    let error = daemon.client().capabilities().await.unwrap_err();
    assert!(matches!(error, DaemonError::NotADaemon(_)), "{error}");
    daemon.reply("/capabilities", Reply::json(200, &json!({"v": 2, "features": []})));
    let error = daemon.client().capabilities().await.unwrap_err();
    assert!(matches!(error, DaemonError::Version(_)), "{error}");
    daemon.reply("/health", Reply::json(200, &json!({"status": "ill"})));
    daemon.client().health().await.unwrap_err();
    daemon.client().health().await.unwrap();
}

#[tokio::test]
async fn unreachable_daemon_error_has_address_and_hint() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let address = DaemonAddress::parse(&format!("http://127.0.0.1:{free}")).unwrap();
    let error = DaemonClient::new(address, None).unwrap().health().await.unwrap_err();
    assert!(
        error.to_string().contains(&free.to_string()) && error.is_transient(),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("qwen serve"));
}

#[tokio::test]
async fn missing_response_times_out() {
    let daemon = FakeDaemon::start().await;
    daemon.reply("/health", Reply::json(200, &json!({"status": "ok"})).held());
    let address = DaemonAddress::parse(&daemon.url()).unwrap();
    let settings = ClientSettings {
        timeout: Duration::from_millis(50),
        ..ClientSettings::default()
    };
    let client = DaemonClient::with_settings(address, None, &settings).unwrap();
    let error = client.health().await.unwrap_err();
    assert!(matches!(error, DaemonError::Timeout(_)), "{error}");
}

#[tokio::test]
async fn token_is_sent_only_in_its_header() {
    let daemon = FakeDaemon::start().await;
    let address = DaemonAddress::parse(&daemon.url()).unwrap();
    let client = DaemonClient::new(address.clone(), Secret::new("s3cret-token")).unwrap();
    client.health().await.unwrap();
    let request = daemon.requests("/health").remove(0);
    assert_eq!(request.header("authorization"), Some("Bearer s3cret-token"));
    assert_eq!(
        request.header("host"),
        Some(format!("127.0.0.1:{}", daemon.port).as_str()),
        "the daemon insists on the port"
    );
    assert_eq!(request.header("origin"), None);
    assert!(!format!("{client:?}").contains("s3cret"));
    let error = DaemonClient::new(address, Secret::new("two\nlines")).unwrap_err();
    assert!(!format!("{error:?}").contains("lines"));
}

#[tokio::test]
async fn ids_are_percent_encoded_in_paths() {
    let daemon = FakeDaemon::start().await;
    daemon
        .client()
        .heartbeat(&SessionId::new("../a b"), None)
        .await
        .unwrap();
    assert_eq!(daemon.requests("/heartbeat")[0].path, "/session/..%2Fa%20b/heartbeat");
}

#[tokio::test]
async fn vote_result_depends_on_request_and_session() {
    let daemon = FakeDaemon::start().await;
    let client = daemon.client();
    assert!(
        client
            .respond_to_permission(&session(), "r", &Vote::Cancelled, None)
            .await
            .unwrap()
    );
    daemon.reply(
        "/permission/",
        Reply::json(404, &json!({"error": "No pending permission request for session"})),
    );
    assert!(
        !client
            .respond_to_permission(&session(), "r", &Vote::Cancelled, None)
            .await
            .unwrap()
    );
    daemon.reply(
        "/permission/",
        Reply::json(404, &json!({"error": "No session", "code": "session_not_found"})),
    );
    assert!(
        client
            .respond_to_permission(&session(), "r", &Vote::Cancelled, None)
            .await
            .unwrap_err()
            .is_session_gone()
    );
    daemon.reply(
        "/permission/",
        Reply::json(403, &json!({"error": "no", "code": "permission_forbidden"})),
    );
    let forbidden = client
        .respond_to_permission(&session(), "r", &Vote::Cancelled, None)
        .await
        .unwrap_err();
    assert!(forbidden.has_code("permission_forbidden"));
}

#[tokio::test]
async fn closing_a_closed_session_succeeds() {
    let daemon = FakeDaemon::start().await;
    daemon.reply("DELETE", Reply::json(404, &json!({"code": "session_not_found"})));
    daemon.client().close(&session(), None).await.unwrap();
    daemon.reply("DELETE", Reply::json(500, &json!({"error": "x"})));
    daemon.client().close(&session(), None).await.unwrap_err();
}

#[tokio::test]
async fn forgotten_client_id_is_renewed_once() {
    let daemon = FakeDaemon::start().await;
    let session = daemon.session().await;
    let forgotten = json!({"error": "not registered", "code": "invalid_client_id"});
    daemon.reply("/prompt", Reply::json(400, &forgotten));
    daemon.reply("/prompt", Reply::json(400, &forgotten));
    // Two at once find out, one asks.
    let (first, second) = ([("one").into()], [("two").into()]);
    let (first, second) = tokio::join!(session.prompt(&first), session.prompt(&second));
    first.unwrap();
    second.unwrap();
    assert_eq!(daemon.requests("/resume").len(), 1);
    assert_eq!(daemon.requests("/resume")[0].header("x-qwen-client-id"), None);
    assert_eq!(daemon.requests("/prompt").len(), 4);
}

#[tokio::test]
async fn turn_end_is_found_early_and_late() {
    let daemon = FakeDaemon::start().await;
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    let reading = async { while events.next().await.is_some() {} };
    let waiting = async {
        let receipt = session.prompt(&["hello".into()]).await.unwrap();
        let ended = session.turn_end(&receipt.prompt_id);
        daemon.publish(
            "turn_complete",
            &json!({"promptId": receipt.prompt_id, "stopReason": "max_tokens"}),
        );
        let expected = TurnEnd::Completed {
            stop_reason: "max_tokens".to_owned(),
        };
        assert_eq!(ended.await.unwrap(), expected);
        assert_eq!(session.turn_end(&receipt.prompt_id).await.unwrap(), expected);
        let never = session.turn_end("never");
        daemon.publish(
            "session_died",
            &json!({"sessionId": SESSION, "reason": "channel_closed"}),
        );
        assert!(matches!(never.await, Err(DaemonError::SessionEnded(_))));
    };
    tokio::join!(reading, waiting);
}

#[tokio::test]
async fn new_session_request_has_all_options() {
    let daemon = FakeDaemon::start().await;
    let wanted = NewSession {
        cwd: Some("/project".to_owned()),
        approval_mode: Some("default".to_owned()),
        ..NewSession::default()
    };
    daemon.client().create_or_attach(&wanted, None).await.unwrap();
    let request = daemon.requests("POST /session").remove(0);
    assert_eq!(request.body, json!({"cwd": "/project", "approvalMode": "default"}));
}

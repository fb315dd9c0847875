//! Permission requests and questions.

use std::time::Duration;

use alongside_agent::conversation::{Answers, PermissionDecision};
use alongside_agent::{AgentCommand, AgentError, AgentEvent, AgentReply, NoticeLevel};
use serde_json::json;

use super::{closed, connected, open_approval, opened, request, resolved, settle, until};
use crate::fake::{CLIENT, FakeDaemon, Reply, SESSION};

#[tokio::test]
async fn selected_option_is_sent_to_the_session_route() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    open_approval(&daemon, &mut events).await;
    assert!(
        connection
            .respond_to_permission("r", &PermissionDecision::select("proceed_once"))
            .await
            .unwrap()
    );
    let vote = daemon
        .wait_for_request(&format!("POST /session/{SESSION}/permission/r"))
        .await;
    assert_eq!(
        vote.body,
        json!({"outcome": {"outcome": "selected", "optionId": "proceed_once"}})
    );
    daemon.publish("permission_resolved", &resolved("r", CLIENT));
    let told = until(&mut events, |event| matches!(event, AgentEvent::ApprovalClosed { .. })).await;
    assert_eq!(closed(&told), [("r", true)]);
}

#[tokio::test]
async fn missing_rejected_or_stale_option_is_cancelled() {
    for decision in [
        PermissionDecision::Cancel,
        PermissionDecision::select("cancel"),
        PermissionDecision::select("stale"),
        PermissionDecision::select(""),
        PermissionDecision::from_preference(Err("the dialog broke")),
    ] {
        let daemon = FakeDaemon::start().await;
        let (connection, mut events) = connected(&daemon).await;
        open_approval(&daemon, &mut events).await;
        connection.respond_to_permission("r", &decision).await.unwrap();
        let vote = daemon.wait_for_request("/permission/r").await;
        assert_eq!(vote.body, json!({"outcome": {"outcome": "cancelled"}}), "{decision:?}");
    }
}

#[tokio::test]
async fn open_request_blocks_neither_events_nor_disconnect() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    open_approval(&daemon, &mut events).await;
    settle(&daemon, &mut events).await;
    tokio::time::timeout(Duration::from_millis(50), connection.disconnect())
        .await
        .expect("disconnecting waited");
    assert!(matches!(
        connection
            .respond_to_permission("r", &PermissionDecision::select("proceed_once"))
            .await,
        Err(AgentError::NotConnected)
    ));
    assert_eq!(daemon.requests("/permission/").len(), 0);
}

#[tokio::test]
async fn disconnect_does_not_wait_for_a_vote() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    open_approval(&daemon, &mut events).await;
    daemon.reply("/permission/r", Reply::json(200, &json!({})).held());
    let decision = PermissionDecision::select("proceed_once");
    let voting = connection.respond_to_permission("r", &decision);
    let leaving = async {
        daemon.wait_for_request("/permission/r").await;
        tokio::time::timeout(Duration::from_millis(50), connection.disconnect())
            .await
            .expect("disconnecting waited");
        daemon.release();
    };
    let (voted, ()) = tokio::join!(voting, leaving);
    assert!(voted.unwrap());
}

#[tokio::test]
async fn answers_to_questions_are_sent_with_the_vote() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    settle(&daemon, &mut events).await;
    let call = json!({"toolCallId": "call", "kind": "think", "title": "Ask user 1 question",
        "_meta": {"toolName": "ask_user_question", "qwenInteractionKind": "user_question"},
        "rawInput": {"questions": [{"question": "Which color?", "header": "Color", "options": [{"label": "Blue"}]}]}});
    let options = json!([{"optionId": "proceed_once", "name": "Submit", "kind": "allow_once"}]);
    daemon.publish(
        "permission_request",
        &json!({"requestId": "q", "toolCall": call, "options": options}),
    );
    let told = until(&mut events, |event| matches!(event, AgentEvent::ApprovalOpened { .. })).await;
    assert!(matches!(told.last(), Some(AgentEvent::ApprovalOpened { request }) if request.is_question()));
    let answers = Answers::from([("0".to_owned(), "Blue".to_owned())]);
    let decision = PermissionDecision::Select {
        option_id: "proceed_once".to_owned(),
        answers,
    };
    connection.respond_to_permission("q", &decision).await.unwrap();
    let vote = daemon.wait_for_request("/permission/q").await;
    assert_eq!(vote.body["answers"], json!({"0": "Blue"}));
}

#[tokio::test]
async fn undisplayable_request_is_reported_and_left_open() {
    let daemon = FakeDaemon::start().await;
    let (_connection, mut events) = connected(&daemon).await;
    settle(&daemon, &mut events).await;
    daemon.publish("permission_request", &json!({"requestId": "r", "options": []}));
    daemon.publish("permission_request", &json!({"toolCall": {}, "options": []}));
    let told = settle(&daemon, &mut events).await;
    let notices = told.iter().filter(|event| {
        matches!(
            event,
            AgentEvent::Notice {
                level: NoticeLevel::Unsupported,
                ..
            }
        )
    });
    assert_eq!((notices.count(), opened(&told).len()), (2, 0));
    assert_eq!(daemon.requests("/permission/").len(), 0);
}

#[tokio::test]
async fn request_stays_open_if_response_fails() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    open_approval(&daemon, &mut events).await;
    daemon.reply("/permission/r", Reply::html(502));
    let allow = PermissionDecision::select("proceed_once");
    connection.respond_to_permission("r", &allow).await.unwrap_err();
    assert_eq!(closed(&settle(&daemon, &mut events).await), []);
    assert!(connection.respond_to_permission("r", &allow).await.unwrap());
    assert_eq!(daemon.requests("/permission/r").len(), 2);
}

#[tokio::test]
async fn request_resolved_by_another_client_closes() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    open_approval(&daemon, &mut events).await;
    daemon.publish("permission_resolved", &resolved("r", "client_9"));
    let told = settle(&daemon, &mut events).await;
    assert_eq!(closed(&told), [("r", false)]);
    let late = connection
        .respond_to_permission("r", &PermissionDecision::select("proceed_once"))
        .await;
    assert!(matches!(late, Err(AgentError::NoSuchRequest)));
}

#[tokio::test]
async fn late_vote_closes_the_request() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    open_approval(&daemon, &mut events).await;
    daemon.reply(
        "/permission/r",
        Reply::json(404, &json!({"error": "No pending permission request for session"})),
    );
    let answer = AgentCommand::Answer {
        request_id: "r".to_owned(),
        decision: PermissionDecision::select("proceed_once"),
    };
    assert_eq!(connection.execute(answer).await.unwrap(), AgentReply::TooLate);
    let told = until(&mut events, |event| matches!(event, AgentEvent::ApprovalClosed { .. })).await;
    assert_eq!(closed(&told), [("r", false)]);
}

#[tokio::test]
async fn missed_request_opens_only_if_unresolved() {
    let daemon = FakeDaemon::start().await;
    daemon.publish("permission_request", &request("answered"));
    daemon.publish("permission_resolved", &resolved("answered", "client_9"));
    daemon.publish("permission_request", &request("waiting"));
    let (_connection, mut events) = connected(&daemon).await;
    let mut told = until(&mut events, |event| matches!(event, AgentEvent::ApprovalOpened { .. })).await;
    told.extend(settle(&daemon, &mut events).await);
    assert_eq!(opened(&told), ["waiting"]);
}

//! The two tools.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should panic"
)]

mod common;

use alongside_mcp::client::{Client, ClientError};
use common::{Received, Setup, accepted, inspector, rejected, soon, trusted};
use serde_json::{Value, json};

async fn call(client: &Client, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    soon(client.request("tools/call", params)).await.unwrap()
}

fn text(result: &Value) -> &str {
    let content = result["content"].as_array().unwrap();
    assert_eq!(content.len(), 1);
    assert_eq!(content[0]["type"], "text");
    content[0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn both_tools_are_listed_with_strict_schemas() {
    let setup = Setup::start().await;
    let client = setup.client().await;
    let list = soon(client.request("tools/list", Value::Null)).await.unwrap();
    assert_eq!(list.as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"]);
    let tools = list["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["openDiff", "closeDiff"]);
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false);
        assert!(tool["description"].is_string());
    }
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["filePath", "newContent"]));
    assert_eq!(tools[1]["inputSchema"]["required"], json!(["filePath"]));
    assert_eq!(
        tools[1]["inputSchema"]["properties"]["suppressNotification"]["type"],
        "boolean"
    );
}

#[tokio::test]
async fn open_diff_returns_no_content_and_changes_nothing() {
    let mut setup = Setup::start().await;
    let client = setup.client().await;
    let session = client.session_id().unwrap();
    for (path, content) in [
        ("/ws/../ws//a b.txt", "\u{feff}one\r\ntwo"),
        (r"C:\ws\ÄÖ.txt", ""),
        ("/private/tmp/\u{1f600}\n", "\u{2028}\0\n"),
    ] {
        let result = call(&client, "openDiff", json!({"filePath": path, "newContent": content})).await;
        assert_eq!(result, json!({"content": []}));
        let expected = Received::OpenDiff(session.clone(), path.to_owned(), content.to_owned());
        let received = setup
            .call_eventually(|received| matches!(received, Received::OpenDiff(..)))
            .await;
        assert_eq!(received, expected);
    }
}

/// Difference 19: a refusal is a tool error with a message, not a protocol error.
#[tokio::test]
async fn companion_error_is_a_tool_error() {
    let setup = Setup::start().await;
    let client = setup.client().await;
    *setup.companion.refusal.lock() = Some("No editor is open.".to_owned());
    let result = call(&client, "openDiff", json!({"filePath": "/a", "newContent": "b"})).await;
    assert_eq!(result["isError"], true);
    assert_eq!(text(&result), "No editor is open.");
}

#[tokio::test]
async fn invalid_arguments_are_a_tool_error() {
    let mut setup = Setup::start().await;
    let client = setup.client().await;
    setup.next_call().await;
    for (tool, arguments, about) in [
        ("openDiff", json!({"newContent": "b"}), "filePath"),
        ("openDiff", json!({"filePath": "/a"}), "newContent"),
        ("openDiff", json!({"filePath": 5, "newContent": "b"}), "filePath"),
        ("openDiff", json!({"filePath": "/a", "newContent": ["b"]}), "newContent"),
        ("openDiff", json!({"filePath": "", "newContent": "b"}), "filePath"),
        ("openDiff", json!([]), "object"),
        ("openDiff", Value::Null, "filePath"),
        ("closeDiff", json!({}), "filePath"),
        ("closeDiff", json!({"filePath": null}), "filePath"),
    ] {
        let result = call(&client, tool, arguments.clone()).await;
        assert_eq!(result["isError"], true, "{arguments}");
        assert!(text(&result).contains(about), "{arguments}: {result}");
    }
    assert!(setup.has_no_more_calls(), "the companion is not bothered");
}

#[tokio::test]
async fn unknown_tool_is_an_invalid_parameter() {
    let setup = Setup::start().await;
    let client = setup.client().await;
    for params in [
        json!({}),
        json!({"name": 5}),
        json!({"name": "openFile"}),
        json!([]),
        Value::Null,
    ] {
        let error = soon(client.request("tools/call", params.clone())).await.unwrap_err();
        assert!(
            matches!(error, ClientError::Rpc { code: -32_602, .. }),
            "{params}: {error}"
        );
    }
}

/// Difference 9: agent CLIs parse the text of `closeDiff` as JSON.
#[tokio::test]
async fn close_diff_returns_json_to_agent_clis() {
    let setup = Setup::start().await;
    let client = setup.client().await;
    let content = "edited \"here\"\r\n";
    setup
        .companion
        .final_texts
        .lock()
        .insert("/a".to_owned(), content.to_owned());
    let result = call(&client, "closeDiff", json!({"filePath": "/a"})).await;
    assert_eq!(result.get("isError"), None);
    let response: Value = serde_json::from_str(text(&result)).unwrap();
    assert_eq!(response, json!({ "content": content }));
    let result = call(&client, "closeDiff", json!({"filePath": "/a"})).await;
    assert_eq!(text(&result), "{}");
}

/// Difference 9: other clients get what the specification says.
#[tokio::test]
async fn close_diff_returns_text_to_other_clients() {
    let setup = Setup::start().await;
    let client = setup.client_named(&inspector()).await;
    setup
        .companion
        .final_texts
        .lock()
        .insert("/a".to_owned(), "edited".to_owned());
    let result = call(&client, "closeDiff", json!({"filePath": "/a"})).await;
    assert_eq!((text(&result), result.get("isError")), ("edited", None));
    let result = call(&client, "closeDiff", json!({"filePath": "/a"})).await;
    assert_eq!(result["isError"], true);
}

/// Difference 20: an empty text is returned as such; the core knows how agents treat it.
#[tokio::test]
async fn empty_final_text_is_returned() {
    let setup = Setup::start().await;
    let client = setup.client().await;
    setup
        .companion
        .final_texts
        .lock()
        .insert("/a".to_owned(), String::new());
    let result = call(&client, "closeDiff", json!({"filePath": "/a"})).await;
    assert_eq!(text(&result), r#"{"content":""}"#);
}

/// Difference 10: `suppressNotification` is accepted, and closing never notifies anyway.
#[tokio::test]
async fn closing_a_review_sends_no_notification() {
    let setup = Setup::start().await;
    let client = setup.client().await;
    let mut events = soon(client.events(None)).await.unwrap();
    soon(events.next()).await.unwrap();
    for arguments in [
        json!({"filePath": "/a", "suppressNotification": true}),
        json!({"filePath": "/a", "suppressNotification": false}),
        json!({"filePath": "/a"}),
    ] {
        let result = call(&client, "closeDiff", arguments).await;
        assert_eq!(text(&result), "{}");
    }
    setup.server.agents().publish_context(&trusted(true));
    let next = soon(events.next()).await.unwrap().unwrap();
    assert_eq!(next["method"], "ide/contextUpdate", "nothing in between");
}

#[tokio::test]
async fn resumed_session_keeps_its_dialect() {
    let setup = Setup::start().await;
    setup.companion.known.lock().insert("inspector".to_owned(), inspector());
    let client = setup.stranger();
    client.resume("inspector", None).unwrap();
    let result = call(&client, "closeDiff", json!({"filePath": "/a"})).await;
    assert_eq!(result["isError"], true, "as an inspector");
    client.resume("unheard-of", None).unwrap();
    let result = call(&client, "closeDiff", json!({"filePath": "/a"})).await;
    assert_eq!(text(&result), "{}", "as an agent CLI");
}

#[tokio::test]
async fn new_review_drops_pending_decisions_of_the_path() {
    let setup = Setup::start().await;
    let client = setup.client().await;
    let agents = setup.server.agents();
    let session = Setup::session(&client);
    assert!(agents.notify(&session, accepted("/a", "old")));
    assert!(agents.notify(&session, rejected("/b")));
    call(&client, "openDiff", json!({"filePath": "/a", "newContent": "new"})).await;
    let mut events = soon(client.events(None)).await.unwrap();
    let first = soon(events.next()).await.unwrap().unwrap();
    assert_eq!(first["params"], json!({"filePath": "/b"}));
    let second = soon(events.next()).await.unwrap().unwrap();
    assert_eq!(second["method"], "ide/contextUpdate");
}

//! `initialize`, and the format of every message.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should panic"
)]

mod common;

use common::{Call, Received, Setup, gemini, has_null, initialize, request, soon, start_session};
use serde_json::{Value, json};

#[tokio::test]
async fn initialize_returns_json_and_a_session_id() {
    let mut setup = Setup::start().await;
    let response = Call::post(setup.port(), initialize("2025-06-18"))
        .send(setup.port())
        .await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("application/json"));
    let session = response.header("mcp-session-id").unwrap().to_owned();
    assert_eq!(session.len(), 32);
    let expected = json!({"jsonrpc": "2.0", "id": 0, "result": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}, "logging": {}},
        "serverInfo": {"name": "alongside", "version": env!("CARGO_PKG_VERSION")},
    }});
    assert_eq!(response.json(), expected);
    assert_eq!(setup.next_call().await, Received::Started(session, Some(gemini())));
}

#[tokio::test]
async fn unknown_version_becomes_the_newest() {
    let setup = Setup::start().await;
    for (asked, spoken) in [
        ("2024-10-07", "2024-10-07"),
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("nonsense", "2025-11-25"),
    ] {
        let response = Call::post(setup.port(), initialize(asked)).send(setup.port()).await;
        assert_eq!(response.json()["result"]["protocolVersion"], spoken, "{asked}");
    }
}

#[tokio::test]
async fn initialize_without_client_name_or_version_is_invalid() {
    let setup = Setup::start().await;
    for params in [
        json!({}),
        json!({"protocolVersion": "2025-06-18"}),
        json!({"protocolVersion": 5}),
    ] {
        let response = Call::post(setup.port(), request("initialize", &params))
            .send(setup.port())
            .await;
        assert_eq!((response.status, response.code()), (200, -32_602), "{params}");
        assert_eq!(response.header("mcp-session-id"), None);
    }
}

#[tokio::test]
async fn ping_and_set_level_return_an_empty_object() {
    let setup = Setup::start().await;
    let client = setup.client().await;
    assert_eq!(soon(client.request("ping", Value::Null)).await.unwrap(), json!({}));
    let level = json!({"level": "warning"});
    assert_eq!(
        soon(client.request("logging/setLevel", level)).await.unwrap(),
        json!({})
    );
}

/// Difference 13: notifications and responses must get 202, or agents never open their stream.
#[tokio::test]
async fn notifications_and_responses_get_an_empty_202() {
    let setup = Setup::start().await;
    let session = start_session(setup.port()).await;
    for body in [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5, "reason": "late"}}),
        json!({"jsonrpc": "2.0", "method": "notifications/unheard-of"}),
        json!({"jsonrpc": "2.0", "id": 5, "result": {}}),
        json!({"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "no"}}),
        json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]),
    ] {
        let call = Call::post(setup.port(), body.to_string()).header("mcp-session-id", &session);
        let response = call.send(setup.port()).await;
        assert_eq!((response.status, response.body.as_str()), (202, ""), "{body}");
    }
}

/// Difference 13: the envelope has no extra key and no `null`.
#[tokio::test]
async fn responses_have_no_null_and_no_extra_key() {
    let setup = Setup::start().await;
    let session = start_session(setup.port()).await;
    for (method, params) in [
        ("ping", json!({})),
        ("tools/list", json!({})),
        (
            "tools/call",
            json!({"name": "openDiff", "arguments": {"filePath": "/a", "newContent": "b"}}),
        ),
        ("tools/call", json!({"name": "openDiff", "arguments": {}})),
        (
            "tools/call",
            json!({"name": "closeDiff", "arguments": {"filePath": "/a"}}),
        ),
        ("tools/call", json!({})),
        ("resources/list", json!({})),
    ] {
        let call = Call::post(setup.port(), request(method, &params)).header("mcp-session-id", &session);
        let response = call.send(setup.port()).await;
        assert_eq!(response.status, 200);
        assert_eq!(response.header("content-type"), Some("application/json"));
        let reply = response.json();
        assert!(!has_null(&reply), "{reply}");
        let keys: Vec<&String> = reply.as_object().unwrap().keys().collect();
        let outcome = if reply.get("error").is_some() {
            "error"
        } else {
            "result"
        };
        let mut expected = ["jsonrpc", "id", outcome];
        expected.sort_unstable();
        assert_eq!(keys, expected);
    }
}

#[tokio::test]
async fn unknown_methods_are_not_found() {
    let setup = Setup::start().await;
    let session = start_session(setup.port()).await;
    for method in [
        "resources/list",
        "prompts/list",
        "completion/complete",
        "server/discover",
        "x",
    ] {
        let call = Call::post(setup.port(), request(method, &json!({}))).header("mcp-session-id", &session);
        let response = call.send(setup.port()).await;
        assert_eq!((response.status, response.code()), (200, -32_601), "{method}");
    }
}

#[tokio::test]
async fn invalid_message_gets_400_and_its_code() {
    let setup = Setup::start().await;
    for (body, code) in [
        (&b"{\"jsonrpc\":"[..], -32_700),
        (b"", -32_700),
        (b"{\"a\":\"\xff\"}", -32_700),
        (b"[]", -32_600),
        (b"5", -32_600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32_600),
    ] {
        let response = Call::post(setup.port(), body).send(setup.port()).await;
        assert_eq!((response.status, response.code()), (400, code), "{}", response.body);
    }
}

#[tokio::test]
async fn ids_are_returned_byte_for_byte() {
    let setup = Setup::start().await;
    let session = start_session(setup.port()).await;
    for id in [
        "0",
        "9007199254740993",
        "123456789012345678901234567890",
        r#""a\u0062\/""#,
        "-1.50",
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let response = Call::post(setup.port(), body)
            .header("mcp-session-id", &session)
            .send(setup.port())
            .await;
        assert_eq!(response.body, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
}

#[tokio::test]
async fn batch_returns_an_array() {
    let setup = Setup::start().await;
    let session = start_session(setup.port()).await;
    let body = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "nothing"},
        {"jsonrpc": "2.0", "id": 3, "method": "initialize"},
    ]);
    let call = Call::post(setup.port(), body.to_string()).header("mcp-session-id", &session);
    let reply = call.send(setup.port()).await.json();
    assert_eq!(reply[0], json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    assert_eq!(reply[1]["error"]["code"], -32_601);
    assert_eq!(reply[2]["error"]["code"], -32_600);
    assert_eq!(reply.as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn oversized_batch_is_refused() {
    let setup = Setup::with(|config| config.limits.batch = 2).await;
    let session = start_session(setup.port()).await;
    let body = json!(vec![json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}); 3]);
    let call = Call::post(setup.port(), body.to_string()).header("mcp-session-id", &session);
    assert_eq!(call.send(setup.port()).await.status, 400);
}

#[tokio::test]
async fn invalid_session_id_gets_400() {
    let setup = Setup::start().await;
    let ping = Call::post(setup.port(), request("ping", &json!({})));
    let get = Call::get(setup.port(), "x").without("mcp-session-id");
    let delete = Call::new("DELETE", setup.port());
    for call in [ping, get, delete] {
        assert_eq!(call.send(setup.port()).await.status, 400);
        for insane in ["", "a b", &"x".repeat(129)] {
            assert_eq!(
                call.clone()
                    .header("mcp-session-id", insane)
                    .send(setup.port())
                    .await
                    .status,
                400
            );
        }
    }
}

#[tokio::test]
async fn unsupported_version_header_gets_400() {
    let setup = Setup::start().await;
    let session = start_session(setup.port()).await;
    let ping = Call::post(setup.port(), request("ping", &json!({}))).header("mcp-session-id", &session);
    for (version, status) in [("2025-06-18", 200), ("2024-10-07", 200), ("2026-07-28", 400), ("", 400)] {
        let call = ping.clone().header("mcp-protocol-version", version);
        assert_eq!(call.send(setup.port()).await.status, status, "{version}");
    }
}

#[tokio::test]
async fn unknown_session_is_resumed_with_its_known_client() {
    let mut setup = Setup::start().await;
    setup.companion.known.lock().insert("remembered".to_owned(), gemini());
    for (session, client) in [("remembered", Some(gemini())), ("forgotten", None)] {
        let ping = Call::post(setup.port(), request("ping", &json!({})))
            .header("mcp-session-id", session)
            .header("mcp-protocol-version", "2025-11-25");
        assert_eq!(ping.send(setup.port()).await.status, 200);
        assert_eq!(ping.send(setup.port()).await.status, 200);
        assert_eq!(setup.next_call().await, Received::Started(session.to_owned(), client));
        assert!(setup.has_no_more_calls());
    }
}

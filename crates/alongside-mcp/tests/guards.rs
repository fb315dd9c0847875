//! Which clients are let in, and how much they may send.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should panic"
)]

mod common;

use std::time::Duration;

use common::{Call, Received, Setup, initialize, read_response, request, soon, start_session, token};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Difference 21: a web page always sends its origin, and is always refused.
#[tokio::test]
async fn any_origin_is_refused() {
    let setup = Setup::start().await;
    for origin in [
        "http://evil.example",
        "null",
        "",
        &format!("http://127.0.0.1:{}", setup.port()),
    ] {
        let call = Call::post(setup.port(), initialize("2025-06-18")).header("origin", origin);
        let response = call.send(setup.port()).await;
        assert_eq!(response.status, 403, "{origin}");
        assert!(response.json()["error"].as_str().unwrap().contains("Origin"));
    }
}

/// Difference 21: only names of this machine, with this port; the name that containers use is one of them.
#[tokio::test]
async fn only_known_hosts_are_served() {
    let setup = Setup::start().await;
    let port = setup.port();
    let call = Call::post(port, initialize("2025-06-18"));
    for host in [
        "127.0.0.1",
        "localhost",
        "LocalHost",
        "[::1]",
        "host.docker.internal",
        "Host.Docker.Internal",
    ] {
        let response = call.clone().header("host", &format!("{host}:{port}")).send(port).await;
        assert_eq!(response.status, 200, "{host}");
    }
    for host in [
        "127.0.0.1".to_owned(),
        format!("127.0.0.1:{}", port ^ 1),
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("127.0.0.2:{port}"),
        String::new(),
    ] {
        assert_eq!(
            call.clone().header("host", &host).send(port).await.status,
            403,
            "{host}"
        );
    }
    assert_eq!(call.clone().without("host").send(port).await.status, 403);
    let foreign = call.clone().target(&format!("http://evil.example:{port}/mcp"));
    assert_eq!(foreign.send(port).await.status, 403);
    let own = call.clone().target(&format!("http://localhost:{port}/mcp"));
    assert_eq!(own.send(port).await.status, 200);
}

#[tokio::test]
async fn two_host_headers_are_refused() {
    let setup = Setup::start().await;
    let bytes = Call::post(setup.port(), initialize("2025-06-18")).bytes();
    let text =
        String::from_utf8(bytes)
            .unwrap()
            .replacen("\r\n", &format!("\r\nHost: localhost:{}\r\n", setup.port()), 1);
    let mut stream = TcpStream::connect(("127.0.0.1", setup.port())).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    assert_eq!(soon(read_response(&mut stream)).await.status, 403);
}

#[tokio::test]
async fn missing_or_wrong_token_gets_401() {
    let setup = Setup::start().await;
    let port = setup.port();
    let secret = token();
    let secret = secret.reveal();
    let call = Call::post(port, initialize("2025-06-18"));
    for value in [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        &format!("Basic {secret}"),
        secret,
        &format!("Bearer {secret}0"),
    ] {
        let response = call.clone().header("authorization", value).send(port).await;
        assert_eq!(response.status, 401, "{value}");
        assert_eq!(response.header("www-authenticate"), Some("Bearer"));
        assert!(!format!("{response:?}").contains(secret));
    }
    assert_eq!(call.clone().without("authorization").send(port).await.status, 401);
    let response = call
        .header("authorization", &format!("bearer {secret}"))
        .send(port)
        .await;
    assert_eq!(response.status, 200);
}

#[tokio::test]
async fn guard_checks_run_in_order_and_first() {
    let setup = Setup::start().await;
    let port = setup.port();
    let everything_wrong = Call::new("BREW", port)
        .target("/elsewhere")
        .header("origin", "http://evil.example")
        .header("host", "evil.example")
        .header("authorization", "Bearer wrong");
    let response = everything_wrong.send(port).await;
    assert_eq!(response.status, 403);
    assert!(response.body.contains("Origin"));
    let without_origin = everything_wrong.without("origin");
    assert!(without_origin.send(port).await.body.contains("Host"));
    let right_host = without_origin.header("host", &format!("localhost:{port}"));
    assert_eq!(right_host.send(port).await.status, 401);
    let right_bearer = right_host.header("authorization", &format!("Bearer {}", token().reveal()));
    assert_eq!(right_bearer.send(port).await.status, 404);
    assert_eq!(right_bearer.target("/mcp").send(port).await.status, 405);
}

/// Difference 12: the endpoint is exactly `/mcp`.
#[tokio::test]
async fn only_mcp_and_three_methods_are_served() {
    let setup = Setup::start().await;
    let port = setup.port();
    for target in ["/", "/mcp/", "/MCP", "/sse", "/mcp/x"] {
        let response = Call::post(port, initialize("2025-06-18"))
            .target(target)
            .send(port)
            .await;
        assert_eq!(response.status, 404, "{target}");
    }
    for method in ["PUT", "PATCH", "OPTIONS", "TRACE"] {
        let response = Call::new(method, port).send(port).await;
        assert_eq!(
            (response.status, response.header("allow")),
            (405, Some("GET, POST, DELETE")),
            "{method}"
        );
    }
}

#[tokio::test]
async fn accept_header_must_match_the_response() {
    let setup = Setup::start().await;
    let port = setup.port();
    let call = Call::post(port, initialize("2025-06-18"));
    for accept in [
        "application/json",
        "*/*",
        "text/html, application/*;q=0.5",
        "Application/JSON; q=1",
    ] {
        assert_eq!(
            call.clone().header("accept", accept).send(port).await.status,
            200,
            "{accept}"
        );
    }
    assert_eq!(call.clone().without("accept").send(port).await.status, 200);
    assert_eq!(call.header("accept", "text/event-stream").send(port).await.status, 406);
    let session = start_session(port).await;
    let get = Call::get(port, &session);
    assert_eq!(
        get.clone().header("accept", "application/json").send(port).await.status,
        406
    );
    assert_eq!(get.clone().without("accept").send(port).await.status, 406);
    assert_eq!(
        get.header("accept", "application/json, text/event-stream")
            .send(port)
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn body_with_another_content_type_is_refused() {
    let setup = Setup::start().await;
    let port = setup.port();
    let call = Call::post(port, initialize("2025-06-18"));
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "",
    ] {
        assert_eq!(
            call.clone()
                .header("content-type", content_type)
                .send(port)
                .await
                .status,
            415,
            "{content_type}"
        );
    }
    assert_eq!(call.clone().without("content-type").send(port).await.status, 415);
    let response = call
        .header("content-type", "application/json; charset=utf-8")
        .send(port)
        .await;
    assert_eq!(response.status, 200);
}

/// Difference 21: a proposal of 10 MB and more is accepted.
#[tokio::test]
async fn body_of_twelve_megabytes_is_accepted() {
    let setup = Setup::start().await;
    let port = setup.port();
    let session = start_session(port).await;
    let content = "é\n\"".repeat(3_000_000);
    let params = json!({"name": "openDiff", "arguments": {"filePath": "/a", "newContent": content}});
    let call = Call::post(port, request("tools/call", &params)).header("mcp-session-id", &session);
    assert_eq!(call.send(port).await.json()["result"], json!({"content": []}));
}

#[tokio::test]
async fn oversized_announced_body_is_not_read() {
    let setup = Setup::start().await;
    let call = Call::post(setup.port(), "").header("content-length", &(32 * 1024 * 1024 + 1).to_string());
    let mut stream = call.open(setup.port()).await;
    let response = soon(read_response(&mut stream)).await;
    assert_eq!((response.status, response.header("connection")), (413, Some("close")));
    assert_eq!(
        soon(stream.read(&mut [0; 16])).await.unwrap(),
        0,
        "the connection is closed"
    );
}

#[tokio::test]
async fn chunked_body_over_the_limit_is_refused() {
    let setup = Setup::with(|config| config.limits.body_bytes = 1000).await;
    let call = Call::post(setup.port(), "")
        .without("content-length")
        .header("transfer-encoding", "chunked");
    let mut stream = call.open(setup.port()).await;
    let chunk = format!("1f4\r\n{}\r\n", " ".repeat(500));
    stream.write_all(chunk.repeat(2).as_bytes()).await.unwrap();
    stream.write_all(b"1\r\nx\r\n").await.unwrap();
    assert_eq!(soon(read_response(&mut stream)).await.status, 413);
}

#[tokio::test]
async fn stalled_body_times_out() {
    let setup = Setup::with(|config| config.timing.body_pause = Duration::from_millis(50)).await;
    let call = Call::post(setup.port(), "{").header("content-length", "100");
    let mut stream = call.open(setup.port()).await;
    assert_eq!(soon(read_response(&mut stream)).await.status, 408);
}

#[tokio::test]
async fn large_bodies_wait_for_each_other_and_short_ones_for_nobody() {
    let mut setup = Setup::with(|config| {
        config.limits.body_bytes = 1_000_000;
        config.limits.all_bodies_bytes = 1_500_000;
        config.timing.body_pause = Duration::from_secs(1);
    })
    .await;
    let port = setup.port();
    let session = start_session(port).await;
    let large = || {
        let content = "x".repeat(900_000);
        let arguments = json!({"name": "openDiff", "arguments": {"filePath": "/a", "newContent": content}});
        Call::post(port, request("tools/call", &arguments)).header("mcp-session-id", &session)
    };
    // The first one is read, and its response waits.
    *setup.companion.hangs.lock() = true;
    let first = large().open(port).await;
    setup
        .call_eventually(|call| matches!(call, Received::OpenDiff(..)))
        .await;
    let refused = soon(large().send(port)).await;
    assert_eq!(refused.status, 503);
    let ping = Call::post(port, request("ping", &json!({}))).header("mcp-session-id", &session);
    assert_eq!(soon(ping.send(port)).await.status, 200);
    // A client that disconnects makes room.
    *setup.companion.hangs.lock() = false;
    drop(first);
    assert_eq!(soon(large().send(port)).await.status, 200);
}

#[tokio::test]
async fn oversized_head_gets_431() {
    let setup = Setup::start().await;
    let call = Call::post(setup.port(), "").header("x-long", &"x".repeat(20 * 1024));
    assert_eq!(call.send(setup.port()).await.status, 431);
}

#[tokio::test]
async fn head_that_does_not_end_is_refused_before_it_times_out() {
    let setup = Setup::start().await;
    let mut stream = TcpStream::connect(("127.0.0.1", setup.port())).await.unwrap();
    let start = "POST /mcp HTTP/1.1\r\nx-long: ";
    // Exactly the limit: the response would be lost with anything that the server does not read.
    let head = format!("{start}{}", "x".repeat(16 * 1024 - start.len()));
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = String::new();
    soon(stream.read_to_string(&mut response)).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 431 "), "{response}");
}

#[tokio::test]
async fn endless_head_times_out() {
    let setup = Setup::with(|config| config.timing.header_read = Duration::from_millis(50)).await;
    let mut stream = TcpStream::connect(("127.0.0.1", setup.port())).await.unwrap();
    stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: ").await.unwrap();
    let mut rest = Vec::new();
    soon(stream.read_to_end(&mut rest)).await.unwrap();
}

#[tokio::test]
async fn connection_over_the_limit_gets_503() {
    let setup = Setup::with(|config| config.limits.connections = 2).await;
    let port = setup.port();
    let session = start_session(port).await;
    let mut first = Call::get(port, &session).open(port).await;
    soon(read_response(&mut first)).await;
    let other = Call::post(port, request("ping", &json!({}))).header("mcp-session-id", &session);
    // Connections of finished calls may not be closed yet.
    let mut second = loop {
        let mut stream = other.open(port).await;
        if soon(read_response(&mut stream)).await.status == 200 {
            break stream;
        }
    };
    let mut third = other.open(port).await;
    assert_eq!(soon(read_response(&mut third)).await.status, 503);
    second.write_all(&other.bytes()).await.unwrap();
    assert_eq!(soon(read_response(&mut second)).await.status, 200, "the others go on");
}

#[tokio::test]
async fn clients_without_a_token_lock_nobody_out() {
    let setup = Setup::with(|config| config.limits.connections = 8).await;
    let port = setup.port();
    let mut idle = Vec::new();
    for number in 0..100 {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        // Some send nothing, some a request that never ends, some a complete one with a wrong token.
        let sent = match number % 3 {
            0 => String::new(),
            1 => "POST /mcp HTTP/1.1\r\nhost: ".to_owned(),
            _ => format!("GET /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer no\r\n\r\n"),
        };
        // The oldest have been disconnected.
        let _ = stream.write_all(sent.as_bytes()).await;
        idle.push(stream);
    }
    start_session(port).await;
    drop(idle);
}

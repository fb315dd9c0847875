//! The rules of the page's port, over real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod client;

use std::time::Duration;

use alongside_page::{Config, Outgoing, PageServer};
use client::{Page, Response, echo, get, key, log_in, request, server};
use futures_util::SinkExt;

#[tokio::test]
async fn login_link_is_local_and_has_256_bits() {
    let server = server().await;
    let link = server.login_links().create().unwrap();
    assert!(link.starts_with(&format!("http://127.0.0.1:{}/login?key=", server.port())));
    assert_eq!(key(&link).len(), 64);
    assert_ne!(link, server.login_links().create().unwrap());
}

#[tokio::test]
async fn login_link_sets_a_strict_cookie_and_redirects() {
    let server = server().await;
    let link = server.login_links().create().unwrap();
    let response = get(server.port(), &format!("/login?key={}", key(&link)), &[]).await;
    assert_eq!(response.status, 303);
    assert_eq!(response.header("location"), Some("/"));
    let cookie = response.header("set-cookie").unwrap();
    assert!(cookie.starts_with(&format!("alongside-{}=", server.port())), "{cookie}");
    assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
    assert_eq!(response.header("cache-control"), Some("no-store"));
    assert_eq!(response.header("referrer-policy"), Some("no-referrer"));
}

#[tokio::test]
async fn login_link_works_once() {
    let server = server().await;
    let link = server.login_links().create().unwrap();
    let path = format!("/login?key={}", key(&link));
    assert_eq!(get(server.port(), &path, &[]).await.status, 303);
    let again = get(server.port(), &path, &[]).await;
    assert_eq!(again.status, 403);
    assert!(again.body.contains("alongside page"), "{}", again.body);
    assert_eq!(again.header("set-cookie"), None);
}

#[tokio::test]
async fn head_does_not_use_up_a_login_link() {
    let server = server().await;
    let link = server.login_links().create().unwrap();
    let path = format!("/login?key={}", key(&link));
    let head = request(server.port(), "HEAD", &path, &[]).await;
    assert_eq!((head.status, head.body.as_str()), (403, ""));
    assert_eq!(get(server.port(), &path, &[]).await.status, 303);
}

#[tokio::test]
async fn expired_login_link_is_refused() {
    let mut config = Config::default();
    config.timing.login_link = Duration::from_millis(20);
    let server = PageServer::bind(config, echo).await.unwrap();
    let link = server.login_links().create().unwrap();
    tokio::time::sleep(Duration::from_millis(40)).await;
    assert_eq!(
        get(server.port(), &format!("/login?key={}", key(&link)), &[])
            .await
            .status,
        403
    );
}

#[tokio::test]
async fn unknown_keys_are_refused() {
    let server = server().await;
    for path in [
        "/login",
        "/login?key=",
        "/login?key=0",
        &format!("/login?key={}", "0".repeat(64)),
    ] {
        assert_eq!(get(server.port(), path, &[]).await.status, 403, "{path}");
    }
}

#[tokio::test]
async fn only_the_login_works_without_the_cookie() {
    let server = server().await;
    for path in ["/", "/main.js", "/main.css", "/icon.svg", "/nothing", "/front"] {
        let response = get(server.port(), path, &[]).await;
        assert_eq!(response.status, 401, "{path}");
        assert!(response.body.contains("alongside page"));
        assert!(
            response
                .header("content-security-policy")
                .unwrap()
                .starts_with("default-src 'none'; base-uri")
        );
    }
    for cookie in [
        "alongside-1=x",
        &format!("alongside-{}=", server.port()),
        &format!("alongside-{}={}", server.port(), "a".repeat(64)),
    ] {
        assert_eq!(
            get(server.port(), "/", &[("cookie", cookie)]).await.status,
            401,
            "{cookie}"
        );
    }
}

#[tokio::test]
async fn repeated_session_cookie_is_refused() {
    let server = server().await;
    let cookie = log_in(&server).await;
    assert_eq!(get(server.port(), "/", &[("cookie", &cookie)]).await.status, 200);
    let other = format!("other=1; {cookie}; another=2");
    assert_eq!(get(server.port(), "/", &[("cookie", &other)]).await.status, 200);
    let twice = format!("{cookie}; {cookie}");
    assert_eq!(get(server.port(), "/", &[("cookie", &twice)]).await.status, 401);
}

#[tokio::test]
async fn page_has_a_strict_policy_with_a_new_nonce() {
    let server = server().await;
    let cookie = log_in(&server).await;
    let pages = [
        get(server.port(), "/", &[("cookie", &cookie)]).await,
        get(server.port(), "/", &[("cookie", &cookie)]).await,
    ];
    let nonces = pages.each_ref().map(|page: &Response| {
        let policy = page.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self';",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        let nonce = policy.split_once("'nonce-").unwrap().1.split_once('\'').unwrap().0;
        assert_eq!(nonce.len(), 64);
        assert!(page.body.contains(nonce) && !page.body.contains('%'), "{}", page.body);
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(page.header("cross-origin-opener-policy"), Some("same-origin"));
        assert_eq!(page.header("cross-origin-resource-policy"), Some("same-origin"));
        assert_eq!(page.header("cache-control"), Some("no-store"));
        nonce.to_owned()
    });
    assert_ne!(nonces[0], nonces[1]);
}

#[tokio::test]
async fn files_have_types_tags_and_compression() {
    let server = server().await;
    let cookie = log_in(&server).await;
    for (path, content_type) in [
        ("/main.js", "text/javascript"),
        ("/main.css", "text/css"),
        ("/icon.svg", "image/svg+xml"),
    ] {
        let plain = get(server.port(), path, &[("cookie", &cookie)]).await;
        assert_eq!((plain.status, plain.header("content-encoding")), (200, None), "{path}");
        assert!(plain.header("content-type").unwrap().starts_with(content_type));
        let gzip = get(
            server.port(),
            path,
            &[("cookie", &cookie), ("accept-encoding", "br, gzip;q=0.8")],
        )
        .await;
        assert!(gzip.length <= plain.length, "{path}");
        let refused = get(
            server.port(),
            path,
            &[("cookie", &cookie), ("accept-encoding", "gzip;q=0")],
        )
        .await;
        assert_eq!(refused.header("content-encoding"), None);
        let etag = plain.header("etag").unwrap();
        assert_eq!(gzip.header("etag"), Some(etag));
        let known = get(server.port(), path, &[("cookie", &cookie), ("if-none-match", etag)]).await;
        assert_eq!((known.status, known.length), (304, 0), "{path}");
    }
    let script = get(
        server.port(),
        "/main.js",
        &[("cookie", &cookie), ("accept-encoding", "gzip")],
    )
    .await;
    assert_eq!(script.header("content-encoding"), Some("gzip"));
}

#[tokio::test]
async fn unknown_files_are_not_found() {
    let server = server().await;
    let cookie = log_in(&server).await;
    for path in [
        "/index.html",
        "/../package.json",
        "/%2e%2e/package.json",
        "/main.js.map",
        "//main.js",
        "/login/",
    ] {
        let status = get(server.port(), path, &[("cookie", &cookie)]).await.status;
        assert_eq!(status, 404, "{path}");
    }
}

#[tokio::test]
async fn only_get_and_head_are_allowed() {
    let server = server().await;
    let cookie = log_in(&server).await;
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let response = request(server.port(), method, "/", &[("cookie", &cookie)]).await;
        assert_eq!(
            (response.status, response.header("allow")),
            (405, Some("GET, HEAD")),
            "{method}"
        );
    }
}

#[tokio::test]
async fn foreign_host_is_refused() {
    let server = server().await;
    let cookie = log_in(&server).await;
    let port = server.port();
    for host in [
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:1",
        &format!("evil.example:{port}"),
        &format!("127.0.0.1.evil.example:{port}"),
    ] {
        let response = get(port, "/", &[("cookie", &cookie), ("host", host)]).await;
        assert_eq!(response.status, 403, "{host}");
        let link = server.login_links().create().unwrap();
        let response = get(port, &format!("/login?key={}", key(&link)), &[("host", host)]).await;
        assert_eq!(response.status, 403, "{host}");
    }
    let localhost = format!("localhost:{port}");
    assert_eq!(
        get(port, "/", &[("cookie", &cookie), ("host", &localhost)])
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn foreign_origin_is_refused() {
    let server = server().await;
    let cookie = log_in(&server).await;
    let port = server.port();
    for origin in [
        "null",
        "http://evil.example",
        "http://127.0.0.1:1",
        &format!("https://127.0.0.1:{port}"),
        &format!("http://localhost:{port}"),
    ] {
        let response = get(port, "/main.js", &[("cookie", &cookie), ("origin", origin)]).await;
        assert_eq!(response.status, 403, "{origin}");
    }
    let own = format!("http://127.0.0.1:{port}");
    assert_eq!(
        get(port, "/main.js", &[("cookie", &cookie), ("origin", &own)])
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn websocket_carries_messages_both_ways() {
    let server = server().await;
    let cookie = log_in(&server).await;
    let mut page = Page::open(server.port(), &cookie).await.unwrap();
    page.send("one").await;
    assert_eq!(page.receive().await.as_deref(), Some("echo one"));
    let long = "x".repeat(3 * 1024 * 1024);
    page.send(&long).await;
    assert_eq!(page.receive().await.map(|text| text.len()), Some(long.len() + 5));
}

#[tokio::test]
async fn websocket_requires_cookie_and_own_origin() {
    let server = server().await;
    let cookie = log_in(&server).await;
    let port = server.port();
    let own = format!("http://127.0.0.1:{port}");
    let foreign = "http://evil.example";
    assert_eq!(Page::open_with(port, None, Some(&own)).await.err(), Some(401));
    assert_eq!(Page::open_with(port, Some(&cookie), None).await.err(), Some(403));
    assert_eq!(
        Page::open_with(port, Some(&cookie), Some(foreign)).await.err(),
        Some(403)
    );
    assert_eq!(
        Page::open_with(port, Some(&cookie), Some("null")).await.err(),
        Some(403)
    );
    assert!(Page::open_with(port, Some(&cookie), Some(&own)).await.is_ok());
}

#[tokio::test]
async fn front_without_an_upgrade_gets_426() {
    let server = server().await;
    let cookie = log_in(&server).await;
    let own = format!("http://127.0.0.1:{}", server.port());
    let response = get(server.port(), "/front", &[("cookie", &cookie), ("origin", &own)]).await;
    assert_eq!((response.status, response.header("upgrade")), (426, Some("websocket")));
}

#[tokio::test]
async fn page_over_the_limit_gets_503() {
    let mut config = Config::default();
    config.limits.pages = 1;
    let server = PageServer::bind(config, echo).await.unwrap();
    let cookie = log_in(&server).await;
    let first = Page::open(server.port(), &cookie).await.unwrap();
    assert_eq!(Page::open(server.port(), &cookie).await.err(), Some(503));
    drop(first);
    for _ in 0..50 {
        if Page::open(server.port(), &cookie).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the slot was not released");
}

#[tokio::test]
async fn oversized_message_closes_the_websocket() {
    let mut config = Config::default();
    config.limits.message_bytes = 1000;
    let server = PageServer::bind(config, echo).await.unwrap();
    let cookie = log_in(&server).await;
    let mut page = Page::open(server.port(), &cookie).await.unwrap();
    page.send(&"x".repeat(2000)).await;
    assert_eq!(page.receive().await, None);
}

#[tokio::test]
async fn page_without_a_pong_is_disconnected() {
    let mut config = Config::default();
    config.timing.ping = Duration::from_millis(20);
    config.timing.idle = Duration::from_millis(150);
    let server = PageServer::bind(config, echo).await.unwrap();
    let cookie = log_in(&server).await;
    // A page that reads, and so responds to pings, stays connected.
    let mut alive = Page::open(server.port(), &cookie).await.unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(400), alive.receive()).await;
    assert!(waited.is_err(), "{waited:?}");
    // One that does not is disconnected.
    let mut asleep = Page::open(server.port(), &cookie).await.unwrap();
    tokio::time::sleep(Duration::from_millis(400)).await;
    asleep.send("too late").await;
    assert_eq!(asleep.receive().await, None);
}

#[tokio::test]
async fn stalled_page_is_disconnected() {
    /// Reports the number of sent messages when the conversation ends.
    struct Taken(usize, tokio::sync::mpsc::UnboundedSender<usize>);
    impl Drop for Taken {
        fn drop(&mut self) {
            let _ = self.1.send(self.0);
        }
    }
    let (told, mut ended) = tokio::sync::mpsc::unbounded_channel();
    let mut config = Config::default();
    config.timing.write = Duration::from_millis(100);
    let converse = move |_incoming, mut outgoing: Outgoing| {
        let mut taken = Taken(0, told.clone());
        async move {
            let taken = &mut taken;
            while outgoing.send("x".repeat(1024 * 1024)).await.is_ok() {
                taken.0 += 1;
            }
        }
    };
    let server = PageServer::bind(config, converse).await.unwrap();
    let cookie = log_in(&server).await;
    let page = Page::open(server.port(), &cookie).await.unwrap();
    let taken = tokio::time::timeout(Duration::from_secs(5), ended.recv()).await;
    assert!(taken.unwrap().unwrap() < 100, "the sender never waited");
    drop(page);
}

#[tokio::test]
async fn connection_over_the_limit_gets_503() {
    let mut config = Config::default();
    config.limits.connections = 1;
    let server = PageServer::bind(config, echo).await.unwrap();
    let _first = tokio::net::TcpStream::connect(("127.0.0.1", server.port()))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(get(server.port(), "/", &[]).await.status, 503);
}

#[tokio::test]
async fn shutdown_closes_websockets_and_the_port() {
    let server = server().await;
    let port = server.port();
    let cookie = log_in(&server).await;
    let mut page = Page::open(port, &cookie).await.unwrap();
    let (closed, ()) = tokio::join!(page.receive_close(), server.shutdown());
    assert_eq!(closed, Some(1001));
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err());
}

#[tokio::test]
async fn debug_output_hides_secrets() {
    let server = server().await;
    let link = server.login_links().create().unwrap();
    let shown = format!("{server:?} {:?}", server.login_links());
    assert!(!shown.contains(key(&link)), "{shown}");
}

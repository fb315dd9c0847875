//! The rules of the page's port, over real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod client;

use std::time::Duration;

use alongside_core::Secret;
use alongside_page::{Config, Outgoing, PageServer, View};
use client::{Page, Response, echo, get, key, link, log_in, proof, request, server};
use futures_util::SinkExt;
use serde_json::json;

/// The code with which the server closes the WebSocket of a page that has to log in.
const NOT_LOGGED_IN: u16 = 4401;

#[tokio::test]
async fn login_link_is_local_and_has_256_bits() {
    let server = server().await;
    let first = link(&server);
    assert!(first.starts_with(&format!("http://127.0.0.1:{}/#key=", server.port())));
    assert_eq!(key(&first).len(), 64);
    assert_ne!(first, link(&server));
    let chat = server.login_links().create(View::Chat).unwrap();
    assert!(chat.ends_with("&view=chat"), "{chat}");
}

#[tokio::test]
async fn login_link_grants_the_session_once() {
    let server = server().await;
    let link = link(&server);
    let (_page, session) = Page::log_in(server.port(), key(&link)).await.unwrap();
    assert_eq!(Page::log_in(server.port(), key(&link)).await.err(), Some(NOT_LOGGED_IN));
    let session = session.unwrap();
    assert_eq!(session.len(), 64);
    let (_page, again) = Page::log_in(server.port(), &session).await.unwrap();
    assert_eq!(again, None, "a page that knows it is not sent it");
}

#[tokio::test]
async fn expired_login_link_is_refused() {
    let mut config = Config::default();
    config.timing.login_link = Duration::ZERO;
    let server = PageServer::bind(config, echo).await.unwrap();
    let link = link(&server);
    assert_eq!(Page::open(server.port(), key(&link)).await.err(), Some(NOT_LOGGED_IN));
}

#[tokio::test]
async fn page_without_a_valid_proof_is_refused() {
    type Answer<'a> = Box<dyn Fn(&str, &str) -> String + 'a>;
    let server = server().await;
    let session = log_in(&server).await;
    let own = "5".repeat(64);
    let answer = |secret: String, side: &'static str, host: Option<&'static str>| -> Answer<'_> {
        let own = &own;
        Box::new(move |own_host, nonce| {
            let proof = proof(&secret, side, host.unwrap_or(own_host), [nonce, own]);
            json!({"nonce": own, "proof": proof}).to_string()
        })
    };
    let cases: [(&str, Answer<'_>, u16); 9] = [
        ("another secret", answer("0".repeat(64), "page", None), NOT_LOGGED_IN),
        ("no secret", answer(String::new(), "page", None), NOT_LOGGED_IN),
        (
            "the companion's proof",
            answer(session.clone(), "companion", None),
            NOT_LOGGED_IN,
        ),
        (
            "a proof for another port",
            answer(session.clone(), "page", Some("127.0.0.1:1")),
            NOT_LOGGED_IN,
        ),
        (
            "a proof for other nonces",
            Box::new(|host, _| json!({"nonce": own, "proof": proof(&session, "page", host, [&own, &own])}).to_string()),
            NOT_LOGGED_IN,
        ),
        (
            "the secret itself",
            Box::new(|_, _| json!({"nonce": own, "proof": session}).to_string()),
            NOT_LOGGED_IN,
        ),
        (
            "a short nonce",
            Box::new(|_, _| json!({"nonce": "5", "proof": own}).to_string()),
            1008,
        ),
        (
            "a request",
            Box::new(|_, _| json!({"id": 1, "method": "review/list"}).to_string()),
            1008,
        ),
        ("no JSON", Box::new(|_, _| "{".to_owned()), 1008),
    ];
    for (what, answer, code) in cases {
        let refused = Page::log_in_with(server.port(), answer).await.err();
        assert_eq!(refused, Some(code), "{what}");
    }
}

#[tokio::test]
async fn long_message_instead_of_a_login_is_refused() {
    let server = server().await;
    let refused = Page::log_in_with(server.port(), |_, _| "x".repeat(2000)).await.err();
    assert!(refused.is_some());
}

#[tokio::test]
async fn restarted_server_proves_that_it_knows_the_session() {
    let first = server().await;
    let (port, session) = (first.port(), log_in(&first).await);
    first.shutdown().await;
    let config = Config {
        port: Some(port),
        session: Secret::parse(&session),
        ..Config::default()
    };
    let _second = PageServer::bind(config, echo).await.unwrap();
    // The client checks the server's proof.
    Page::open(port, &session).await.unwrap();
}

#[tokio::test]
async fn file_with_a_login_link_is_private_and_removed_with_the_link() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.limits.login_links = 2;
    let server = PageServer::bind(config, echo).await.unwrap();
    let links = server.login_links();
    let create = async || {
        links
            .create_file(directory.path().to_owned(), View::Chat)
            .await
            .unwrap()
    };

    let used = create().await;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(used.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    let text = std::fs::read_to_string(&used).unwrap();
    let url = text.split_once("url=").unwrap().1.split_once('"').unwrap().0;
    assert!(url.ends_with("&amp;view=chat"), "{url}");
    Page::open(server.port(), key(url)).await.unwrap();
    assert!(!used.exists(), "used");

    let evicted = create().await;
    let kept = create().await;
    create().await;
    assert_eq!((evicted.exists(), kept.exists()), (false, true));
    drop(server);
    assert!(!kept.exists(), "the server ended");
}

#[tokio::test]
async fn file_with_an_expired_login_link_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.timing.login_link = Duration::from_millis(50);
    let server = PageServer::bind(config, echo).await.unwrap();
    let file = server
        .login_links()
        .create_file(directory.path().to_owned(), View::Reviews)
        .await
        .unwrap();
    while file.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn no_response_sets_a_cookie_or_has_a_secret() {
    let server = server().await;
    let session = log_in(&server).await;
    let link = link(&server);
    for path in [
        "/",
        "/main.js",
        "/login",
        &format!("/login?key={}", key(&link)),
        "/front",
    ] {
        let response = get(server.port(), path, &[]).await;
        assert_eq!(response.header("set-cookie"), None, "{path}");
        assert!(
            !response.body.contains(&session) && !response.body.contains(key(&link)),
            "{path}"
        );
    }
}

#[tokio::test]
async fn page_has_a_strict_policy_with_a_new_nonce() {
    let server = server().await;
    let pages = [get(server.port(), "/", &[]).await, get(server.port(), "/", &[]).await];
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
    for (path, content_type) in [
        ("/main.js", "text/javascript"),
        ("/main.css", "text/css"),
        ("/icon.svg", "image/svg+xml"),
    ] {
        let plain = get(server.port(), path, &[]).await;
        assert_eq!((plain.status, plain.header("content-encoding")), (200, None), "{path}");
        assert!(plain.header("content-type").unwrap().starts_with(content_type));
        let gzip = get(server.port(), path, &[("accept-encoding", "br, gzip;q=0.8")]).await;
        assert!(gzip.length <= plain.length, "{path}");
        let refused = get(server.port(), path, &[("accept-encoding", "gzip;q=0")]).await;
        assert_eq!(refused.header("content-encoding"), None);
        let etag = plain.header("etag").unwrap();
        assert_eq!(gzip.header("etag"), Some(etag));
        let known = get(server.port(), path, &[("if-none-match", etag)]).await;
        assert_eq!((known.status, known.length), (304, 0), "{path}");
    }
    let script = get(server.port(), "/main.js", &[("accept-encoding", "gzip")]).await;
    assert_eq!(script.header("content-encoding"), Some("gzip"));
}

#[tokio::test]
async fn unknown_files_are_not_found() {
    let server = server().await;
    for path in [
        "/index.html",
        "/../package.json",
        "/%2e%2e/package.json",
        "/main.js.map",
        "//main.js",
        "/login/",
    ] {
        let status = get(server.port(), path, &[]).await.status;
        assert_eq!(status, 404, "{path}");
    }
}

#[tokio::test]
async fn only_get_and_head_are_allowed() {
    let server = server().await;
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let response = request(server.port(), method, "/", &[]).await;
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
    let port = server.port();
    for host in [
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:1",
        &format!("evil.example:{port}"),
        &format!("127.0.0.1.evil.example:{port}"),
    ] {
        let response = get(port, "/", &[("host", host)]).await;
        assert_eq!(response.status, 403, "{host}");
    }
    let localhost = format!("localhost:{port}");
    assert_eq!(get(port, "/", &[("host", &localhost)]).await.status, 200);
}

#[tokio::test]
async fn foreign_origin_is_refused() {
    let server = server().await;
    let port = server.port();
    for origin in [
        "null",
        "http://evil.example",
        "http://127.0.0.1:1",
        &format!("https://127.0.0.1:{port}"),
        &format!("http://localhost:{port}"),
    ] {
        let response = get(port, "/main.js", &[("origin", origin)]).await;
        assert_eq!(response.status, 403, "{origin}");
    }
    let own = format!("http://127.0.0.1:{port}");
    assert_eq!(get(port, "/main.js", &[("origin", &own)]).await.status, 200);
}

#[tokio::test]
async fn websocket_carries_messages_both_ways() {
    let server = server().await;
    let session = log_in(&server).await;
    let mut page = Page::open(server.port(), &session).await.unwrap();
    page.send("one").await;
    assert_eq!(page.receive().await.as_deref(), Some("echo one"));
    let long = "x".repeat(3 * 1024 * 1024);
    page.send(&long).await;
    assert_eq!(page.receive().await.map(|text| text.len()), Some(long.len() + 5));
}

#[tokio::test]
async fn websocket_requires_the_pages_own_origin() {
    let server = server().await;
    let port = server.port();
    let own = format!("http://127.0.0.1:{port}");
    for origin in [None, Some("http://evil.example"), Some("null")] {
        assert_eq!(Page::connect(port, origin).await.err(), Some(403), "{origin:?}");
    }
    assert!(Page::connect(port, Some(&own)).await.is_ok());
}

#[tokio::test]
async fn front_without_an_upgrade_gets_426() {
    let server = server().await;
    let own = format!("http://127.0.0.1:{}", server.port());
    let response = get(server.port(), "/front", &[("origin", &own)]).await;
    assert_eq!((response.status, response.header("upgrade")), (426, Some("websocket")));
}

#[tokio::test]
async fn page_over_the_limit_is_told_to_try_again() {
    let mut config = Config::default();
    config.limits.pages = 1;
    let server = PageServer::bind(config, echo).await.unwrap();
    let (mut first, session) = Page::log_in(server.port(), key(&link(&server))).await.unwrap();
    let session = session.unwrap();
    assert_eq!(Page::open(server.port(), &session).await.err(), Some(1013));
    first.close().await;
    // The server may not have noticed yet.
    while Page::open(server.port(), &session).await.is_err() {}
}

#[tokio::test]
async fn oversized_message_closes_the_websocket() {
    let mut config = Config::default();
    config.limits.message_bytes = 1000;
    let server = PageServer::bind(config, echo).await.unwrap();
    let session = log_in(&server).await;
    let mut page = Page::open(server.port(), &session).await.unwrap();
    page.send(&"x".repeat(2000)).await;
    assert_eq!(page.receive().await, None);
}

#[tokio::test]
async fn page_without_a_pong_is_disconnected() {
    let mut config = Config::default();
    config.timing.ping = Duration::from_millis(20);
    config.timing.idle = Duration::from_millis(150);
    let server = PageServer::bind(config, echo).await.unwrap();
    let session = log_in(&server).await;
    // A page that reads, and so responds to pings, stays connected.
    let mut alive = Page::open(server.port(), &session).await.unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(400), alive.receive()).await;
    assert!(waited.is_err(), "{waited:?}");
    // One that does not is disconnected.
    let mut asleep = Page::open(server.port(), &session).await.unwrap();
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
    let session = log_in(&server).await;
    let page = Page::open(server.port(), &session).await.unwrap();
    let taken = tokio::time::timeout(Duration::from_secs(5), ended.recv()).await;
    assert!(taken.unwrap().unwrap() < 100, "the sender never waited");
    drop(page);
}

#[tokio::test]
async fn clients_without_a_login_lock_nobody_out() {
    let server = server().await;
    let (port, session) = (server.port(), log_in(&server).await);
    let mut page = Page::open(port, &session).await.unwrap();
    let origin = format!("http://127.0.0.1:{port}");
    let mut idle = (Vec::new(), Vec::new());
    for _ in 0..100 {
        idle.0
            .push(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap());
        idle.1.push(Page::connect(port, Some(&origin)).await);
    }
    assert_eq!(get(port, "/", &[]).await.status, 200);
    Page::open(port, &session).await.unwrap();
    page.send("still there").await;
    assert_eq!(page.receive().await.as_deref(), Some("echo still there"));
}

#[tokio::test]
async fn page_that_does_not_log_in_is_disconnected() {
    let mut config = Config::default();
    config.timing.login = Duration::from_millis(50);
    let server = PageServer::bind(config, echo).await.unwrap();
    let session = log_in(&server).await;
    let mut alive = Page::open(server.port(), &session).await.unwrap();
    let origin = format!("http://127.0.0.1:{}", server.port());
    let mut silent = Page::connect(server.port(), Some(&origin)).await.unwrap();
    while silent.next().await.is_ok() {}
    alive.send("still there").await;
    assert_eq!(alive.receive().await.as_deref(), Some("echo still there"));
}

#[tokio::test]
async fn shutdown_closes_websockets_and_the_port() {
    let server = server().await;
    let port = server.port();
    let session = log_in(&server).await;
    let mut page = Page::open(port, &session).await.unwrap();
    let (closed, ()) = tokio::join!(page.next(), server.shutdown());
    assert_eq!(closed, Err(1001));
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err());
}

#[tokio::test]
async fn debug_output_hides_secrets() {
    let server = server().await;
    let link = link(&server);
    let shown = format!("{server:?} {:?}", server.login_links());
    assert!(!shown.contains(key(&link)), "{shown}");
}

//! Another user on the same machine. Needs root, to act as one.

use std::os::unix::process::CommandExt;
use std::process::Command;

use alongside_protocol::{PageTarget, requests};

use crate::sandbox::Sandbox;

const NOBODY: u32 = 65534;

/// What a user receives from a port in response to a request, by status line; empty if the connection is closed at once.
fn status(user: u32, port: u16) -> String {
    // With what the commands' port requires before it responds at all.
    let lines = [
        "GET / HTTP/1.1",
        &format!("Host: 127.0.0.1:{port}"),
        "Connection: upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    let request = lines.join("\\r\\n") + "\\r\\n\\r\\n";
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; printf '{request}' >&3; head -n 1 <&3");
    let output = Command::new("bash").args(["-c", &script]).uid(user).gid(user).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[tokio::test]
async fn other_users_are_refused_on_every_port() {
    if !rustix::process::geteuid().is_root() {
        // `cargo xtask test` sets it.
        assert!(
            std::env::var_os("ALONGSIDE_TESTS").is_none(),
            "run as root, which can act as another user"
        );
        eprintln!("skipped: only root can act as another user");
        return;
    }
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let mut front = serving.front_end(&sandbox).await;
    let link = front.call::<requests::PageLink>(PageTarget::default()).await.unwrap();
    let page = link.url.split(['/', ':']).nth(4).unwrap().parse().unwrap();
    for (name, port, expected) in [
        ("agents", serving.port, "401"),
        ("commands", serving.people(&sandbox).0, "401"),
        ("page", page, "200"),
    ] {
        let own = status(0, port);
        assert!(own.starts_with(&format!("HTTP/1.1 {expected}")), "{name}: {own:?}");
        assert_eq!(status(NOBODY, port), "", "{name}");
    }
}

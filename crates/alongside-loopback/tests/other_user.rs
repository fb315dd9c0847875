//! Clients of other users are refused, before they can hold a connection. Needs root, to act as another user.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking")]

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::time::Duration;

use alongside_loopback::{ConnectionLimits, Listener, Seat, Server, Stream};
use tokio::io::AsyncWriteExt;

const NOBODY: u32 = 65534;

/// Connects as another user and prints what the server sends.
async fn connect_as(user: u32, port: u16) -> Output {
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && cat <&3");
    tokio::task::spawn_blocking(move || {
        Command::new("bash")
            .args(["-c", &script])
            .uid(user)
            .gid(user)
            .output()
            .unwrap()
    })
    .await
    .unwrap()
}

async fn greet(mut stream: Stream, _: Seat) {
    stream.write_all(b"hello").await.unwrap();
}

#[tokio::test]
async fn client_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can act as another user");
        return;
    }
    let listener = Listener::bind(None).await.unwrap();
    let limits = ConnectionLimits {
        authenticated: 9,
        unauthenticated: 9,
        authentication_timeout: Duration::from_mins(1),
        write_timeout: Duration::from_mins(1),
    };
    let server = Server::start(listener, limits, |_| greet);
    assert_eq!(connect_as(0, server.port()).await.stdout, b"hello");
    assert_eq!(connect_as(NOBODY, server.port()).await.stdout, b"");
}

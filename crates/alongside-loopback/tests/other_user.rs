//! Clients of other users are refused, before they can hold a connection. Needs root, to act as another user.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking")]

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::time::Duration;

use alongside_loopback::{ConnectionLimits, Listener, Seat, Server, Stream};
use rustix::process::Uid;
use tokio::io::AsyncWriteExt;

const NOBODY: u32 = 65534;

/// Connects as a user with a script that prints what the server sends.
async fn connect_as(user: u32, script: String) -> Output {
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

const LIMITS: ConnectionLimits = ConnectionLimits {
    authenticated: 9,
    unauthenticated: 9,
    authentication_timeout: Duration::from_mins(1),
    write_timeout: Duration::from_mins(1),
};

/// Also says why a test did not run.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        // `cargo xtask test` sets it.
        assert!(
            std::env::var_os("ALONGSIDE_TESTS").is_none(),
            "run as root, which can act as another user"
        );
        eprintln!("skipped: only root can act as another user");
    }
    is_root
}

#[tokio::test]
async fn client_of_another_user_is_refused() {
    if !is_root() {
        return;
    }
    let server = Server::start(Listener::bind(None).await.unwrap(), LIMITS, |_| greet);
    let connect = |user| connect_as(user, format!("exec 3<>/dev/tcp/127.0.0.1/{} && cat <&3", server.port()));
    assert_eq!(connect(0).await.stdout, b"hello");
    assert_eq!(connect(NOBODY).await.stdout, b"");
}

#[tokio::test]
async fn client_of_another_user_is_refused_on_a_socket_that_it_can_open() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sock");
    let _server = Server::start(Listener::bind_socket(&path).unwrap(), LIMITS, |_| greet);
    // As if both protections of the file were lost.
    for path in [directory.path(), &path] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let connect = |user: u32| {
        let path = path.clone();
        // Only this thread becomes the other user.
        std::thread::spawn(move || {
            rustix::thread::set_thread_uid(Uid::from_raw(user)).unwrap();
            let mut greeting = String::new();
            UnixStream::connect(path)
                .unwrap()
                .read_to_string(&mut greeting)
                .unwrap();
            greeting
        })
    };
    for (user, greeting) in [(0, "hello"), (NOBODY, "")] {
        let connecting = connect(user);
        let connected = tokio::task::spawn_blocking(|| connecting.join().unwrap());
        assert_eq!(connected.await.unwrap(), greeting);
    }
}

//! A hung file system delays the editor that uses it, and nothing else.

#![cfg(unix)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod common;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use alongside_lsp::{Scratch, Session};
use common::{Editor, OneReview, Reported, start};
use serde_json::json;
use tokio::sync::Notify;

/// Only keeps a failing test from hanging.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Starts a session and has it write the review's draft file, which it returns.
async fn open_draft(backend: Arc<OneReview>, scratch: Scratch, changes: Arc<Notify>) -> (Session, Editor, PathBuf) {
    let (session, mut editor) = start(backend, json!({}), scratch, changes).await;
    let params = json!({ "command": "alongside.edit", "arguments": [{ "review": 1, "revision": 1 }] });
    editor
        .send(json!({ "jsonrpc": "2.0", "id": 2, "method": "workspace/executeCommand", "params": params }))
        .await;
    let shown = editor.receive("window/showDocument").await;
    let path = shown["uri"].as_str().unwrap().strip_prefix("file://").unwrap();
    (session, editor, path.into())
}

/// Replaces a file with a pipe. Returns its writing end as soon as it is being read; reading hangs until that is closed.
fn hang(path: &Path, read: impl FnOnce()) -> File {
    fs::remove_file(path).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    read();
    let (opened, is_opened) = mpsc::channel();
    let path = path.to_owned();
    std::thread::spawn(move || opened.send(File::options().write(true).open(path).unwrap()));
    is_opened.recv_timeout(TIMEOUT).expect("the draft file must be read")
}

#[test]
fn hung_file_blocks_no_async_worker_and_keeps_the_order_of_messages() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build().unwrap();
    let parent = tempfile::tempdir().unwrap();
    let scratch = Scratch::new(parent.path()).unwrap();
    let changes = Arc::new(Notify::new());
    let (requests, reported) = mpsc::channel();
    let backend = OneReview::new(requests);
    let (session, mut editor, draft) = runtime.block_on(open_draft(backend, scratch, changes.clone()));

    let mut hung = hang(&draft, || changes.notify_one());
    let document = json!({ "uri": "file:///work/b.txt", "languageId": "text", "version": 1, "text": "" });
    let opened = json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": { "textDocument": document } });
    let (done, is_done) = mpsc::channel();
    runtime.spawn(async move {
        editor.send(opened).await;
        let _ = done.send(editor);
    });
    let _editor = is_done
        .recv_timeout(TIMEOUT)
        .expect("the only worker must not be blocked");
    assert!(reported.try_recv().is_err(), "the message waits for its turn");

    hung.write_all(b"edited\n").unwrap();
    drop(hung);
    let in_order = [
        Reported::Edited("edited\n".to_owned()),
        Reported::Focused("/work/b.txt".to_owned()),
    ];
    for expected in in_order {
        assert_eq!(reported.recv_timeout(TIMEOUT), Ok(expected));
    }
    runtime.block_on(session.stop());
    assert_eq!(
        fs::read_dir(parent.path()).unwrap().count(),
        0,
        "no draft is left behind"
    );
}

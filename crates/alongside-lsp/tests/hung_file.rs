//! A hung file system delays the editor that uses it, and nothing else.

#![cfg(unix)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use alongside_lsp::{Connection, Scratch, Session, wait_for_initialize};
use alongside_protocol::{Backend, Empty, FrontEnd, Request, RequestError, Response, SharedNotification, Welcome};
use alongside_wire::content_length::read_frame;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::{Notify, broadcast};

/// Only keeps a failing test from hanging.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A companion with one review, which reports what the editor's session does.
struct OneReview {
    requests: mpsc::Sender<Reported>,
    notifications: broadcast::Sender<SharedNotification>,
}

#[derive(Debug, PartialEq, Eq)]
enum Reported {
    Edited(String),
    Focused(String),
}

impl Backend for OneReview {
    async fn handle(&self, _: &FrontEnd, request: Request) -> Result<Response, RequestError> {
        let review = json!({
            "id": 1, "path": "/work/a.txt", "agent": "Agent", "session": "s", "revision": 1, "version": 1, "newFile": true,
            "edited": false, "size": { "added": 1, "removed": 0 }, "conflicts": 0, "opened": 0, "takesReason": false,
            "proposal": "proposed\n", "draft": "proposed\n", "hunks": [], "notes": [],
        });
        let summary = || serde_json::from_value(review.clone()).unwrap();
        Ok(match request {
            Request::Hello(_) => Response::Hello(Welcome {
                protocol: alongside_protocol::VERSION,
                version: "1".to_owned(),
                pid: 1,
                workspace: Vec::new(),
            }),
            Request::ReviewList(_) => Response::ReviewList(vec![summary()]),
            Request::ReviewGet(_) => Response::ReviewGet(serde_json::from_value(review).unwrap()),
            Request::ReviewEdit(edit) => {
                let _ = self.requests.send(Reported::Edited(edit.content.to_string()));
                Response::ReviewEdit(summary())
            }
            Request::ContextFocus(focus) => {
                let _ = self.requests.send(Reported::Focused(focus.path));
                Response::ContextFocus(Empty {})
            }
            Request::ContextBuffer(_) => Response::ContextBuffer(Empty {}),
            request => panic!("unexpected: {request:?}"),
        })
    }

    fn disconnected(&self, _: &FrontEnd) {}

    fn subscribe(&self) -> broadcast::Receiver<SharedNotification> {
        self.notifications.subscribe()
    }

    fn subscribe_chat(&self) -> broadcast::Receiver<SharedNotification> {
        self.notifications.subscribe()
    }
}

struct Editor {
    input: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
}

impl Editor {
    async fn send(&mut self, message: Value) {
        let text = message.to_string();
        let frame = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        self.output.write_all(frame.as_bytes()).await.unwrap();
    }

    /// The parameters of the next message with this method.
    async fn receive(&mut self, method: &str) -> Value {
        loop {
            let frame = read_frame(&mut self.input, 1 << 20).await.unwrap().unwrap();
            let mut message: Value = serde_json::from_slice(&frame).unwrap();
            if message["method"] == method {
                return message["params"].take();
            }
        }
    }
}

/// Starts a session and has it write the review's draft file, which it returns.
async fn open_draft(backend: Arc<OneReview>, scratch: Scratch, changes: Arc<Notify>) -> (Session, Editor, PathBuf) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(ours);
    let mut connection = Connection::new(BufReader::new(input), output);
    let (input, output) = tokio::io::split(theirs);
    let mut editor = Editor {
        input: BufReader::new(input),
        output,
    };
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "capabilities": {} } });
    editor.send(message).await;
    let initialize = wait_for_initialize(&mut connection).await.unwrap();
    let session = Session::start(backend, connection, initialize, scratch, changes);
    editor
        .send(json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }))
        .await;
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
    let backend = Arc::new(OneReview {
        requests,
        notifications: broadcast::channel(4).0,
    });
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

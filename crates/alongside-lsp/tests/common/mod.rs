//! Shared by the tests: a companion with one review, and an editor.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};

use alongside_lsp::{Connection, Scratch, Session, wait_for_initialize};
use alongside_protocol::{
    Backend, Empty, FrontEnd, Request, RequestError, Response, ReviewSummary, SharedNotification, Welcome,
};
use alongside_wire::content_length::read_frame;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::{Notify, broadcast};

/// A companion with one review, which reports what the editor's session does.
pub(crate) struct OneReview {
    pub(crate) requests: mpsc::Sender<Reported>,
    pub(crate) revision: AtomicU32,
    pub(crate) notifications: broadcast::Sender<SharedNotification>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reported {
    Edited(String),
    Focused(String),
}

impl OneReview {
    pub(crate) fn new(requests: mpsc::Sender<Reported>) -> Arc<Self> {
        Arc::new(Self {
            requests,
            revision: AtomicU32::new(1),
            notifications: broadcast::channel(4).0,
        })
    }

    fn review(&self) -> Value {
        json!({
            "id": 1, "path": "/work/a.txt", "agent": "Agent", "session": "s", "revision": self.revision.load(Ordering::SeqCst),
            "version": 1, "newFile": true,
            "edited": false, "size": { "added": 1, "removed": 0 }, "conflicts": 0, "opened": 0, "takesReason": false,
            "proposal": "proposed\n", "draft": "proposed\n", "hunks": [], "notes": [],
        })
    }

    pub(crate) fn summary(&self) -> ReviewSummary {
        serde_json::from_value(self.review()).unwrap()
    }
}

impl Backend for OneReview {
    async fn handle(&self, _: &FrontEnd, request: Request) -> Result<Response, RequestError> {
        Ok(match request {
            Request::Hello(_) => Response::Hello(Welcome {
                protocol: alongside_protocol::VERSION,
                version: "1".to_owned(),
                pid: 1,
                workspace: Vec::new(),
            }),
            Request::ReviewList(_) => Response::ReviewList(vec![self.summary()]),
            Request::ReviewGet(_) => Response::ReviewGet(serde_json::from_value(self.review()).unwrap()),
            Request::ReviewEdit(edit) => {
                let _ = self.requests.send(Reported::Edited(edit.content.to_string()));
                Response::ReviewEdit(self.summary())
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

pub(crate) struct Editor {
    input: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
}

impl Editor {
    pub(crate) async fn send(&mut self, message: Value) {
        let text = message.to_string();
        let frame = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        self.output.write_all(frame.as_bytes()).await.unwrap();
    }

    /// The parameters of the next message with this method.
    pub(crate) async fn receive(&mut self, method: &str) -> Value {
        loop {
            let frame = read_frame(&mut self.input, 1 << 20).await.unwrap().unwrap();
            let mut message: Value = serde_json::from_slice(&frame).unwrap();
            if message["method"] == method {
                return message["params"].take();
            }
        }
    }
}

/// Starts a session with an editor that has these capabilities.
pub(crate) async fn start(
    backend: Arc<OneReview>,
    capabilities: Value,
    scratch: Scratch,
    changes: Arc<Notify>,
) -> (Session, Editor) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(ours);
    let mut connection = Connection::new(BufReader::new(input), output);
    let (input, output) = tokio::io::split(theirs);
    let mut editor = Editor {
        input: BufReader::new(input),
        output,
    };
    let params = json!({ "capabilities": capabilities });
    editor
        .send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }))
        .await;
    let initialize = wait_for_initialize(&mut connection).await.unwrap();
    let session = Session::start(backend, connection, initialize, scratch, changes);
    editor
        .send(json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }))
        .await;
    (session, editor)
}

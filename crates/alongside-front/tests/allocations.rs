//! A message is parsed once, straight into its request. On its own, because everything in the process is counted.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::System;
use std::sync::{Arc, Mutex};

use alongside_front::connection;
use alongside_protocol::{
    Backend, Edit, ErrorKind, FrontEnd, Request, RequestError, Response, SharedNotification, VERSION, Welcome,
};
use futures_util::{sink, stream};
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::sync::broadcast;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Keeps the one edit that it receives.
#[derive(Default)]
struct Edited(Mutex<Option<Edit>>);

impl Backend for Edited {
    async fn handle(&self, _: &FrontEnd, request: Request) -> Result<Response, RequestError> {
        match request {
            Request::Hello(_) => Ok(Response::Hello(Welcome {
                protocol: VERSION,
                version: "1".to_owned(),
                pid: 1,
                workspace: Vec::new(),
            })),
            Request::ReviewEdit(edit) => {
                *self.0.lock().unwrap() = Some(edit);
                Err(RequestError::new(ErrorKind::UnknownReview, "received"))
            }
            request => Err(RequestError::new(ErrorKind::Failed, format!("unexpected: {request:?}"))),
        }
    }

    fn disconnected(&self, _: &FrontEnd) {}

    fn subscribe(&self) -> broadcast::Receiver<SharedNotification> {
        broadcast::channel(1).1
    }

    fn subscribe_chat(&self) -> broadcast::Receiver<SharedNotification> {
        broadcast::channel(1).1
    }
}

/// The bytes allocated for a `review/edit` with this text, relative to the length of the message.
async fn allocated(content: &str) -> f64 {
    let hello =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "hello", "params": { "protocol": VERSION, "name": "test" } });
    let params = json!({ "review": 1, "content": content });
    let edit = json!({ "jsonrpc": "2.0", "id": 2, "method": "review/edit", "params": params }).to_string();
    let length = edit.len();
    let backend = Arc::new(Edited::default());
    let incoming = stream::iter([hello.to_string(), edit]);
    let region = Region::new(ALLOCATOR);
    connection::serve(Arc::clone(&backend), incoming, sink::drain()).await;
    let bytes = region.change().bytes_allocated;
    let received = backend.0.lock().unwrap().take().unwrap();
    assert_eq!(&*received.content, content);
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    let ratio = bytes as f64 / length as f64;
    ratio
}

#[tokio::test]
async fn large_edit_is_copied_only_into_its_request() {
    let plain = allocated(&"x".repeat(30_000_000)).await;
    assert!(plain < 1.5, "{plain}");
    // Unescaping needs a buffer, which grows by doubling.
    let escaped = allocated(&"\tlet price = quantity * 2; // € per piece\n".repeat(700_000)).await;
    assert!(escaped < 2.5, "{escaped}");
}

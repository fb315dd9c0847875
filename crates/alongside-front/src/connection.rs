//! One connection to a front end, over any transport.
//!
//! Queues and their limits: at most [`MAX_SLOW_REQUESTS`] slow requests run at a time, and nothing more is read until one is done;
//! notifications wait in the backend's bounded channels, and a front end that reads too slowly gets `resync` in place of what it
//! missed. Nothing else is queued: a message is written before the next one is read.

use std::pin::pin;
use std::sync::Arc;

use alongside_protocol::{
    Backend, Empty, ErrorKind, FrontEnd, Hello, Notification, Request, RequestError, Response, SharedNotification,
    VERSION,
};
use futures_util::stream::FuturesUnordered;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use serde_json::json;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::rpc::{self, Message};

const MAX_SLOW_REQUESTS: usize = 64;

/// Serves a front end until it disconnects.
///
/// Requests are answered in order, except the slow ones ([`Request::is_slow`]): these are started in order, and nothing waits for them.
/// `incoming` yields whole messages and `outgoing` takes them; both end with the transport.
pub async fn serve<B, T, I, O>(backend: Arc<B>, incoming: I, outgoing: O)
where
    B: Backend,
    T: AsRef<str>,
    I: Stream<Item = T>,
    O: Sink<String>,
{
    let mut incoming = pin!(incoming);
    let mut outgoing = pin!(outgoing);
    let mut front_end: Option<FrontEnd> = None;
    let mut subscriptions = Subscriptions::default();
    let mut slow = FuturesUnordered::new();
    loop {
        let text = tokio::select! {
            message = incoming.next(), if slow.len() < MAX_SLOW_REQUESTS => {
                let Some(text) = message else { break };
                match Message::parse(text.as_ref()) {
                    Err(invalid) => invalid.to_text(),
                    Ok(message) => {
                        if let Some(known) = front_end.clone().filter(|_| message.request.is_slow()) {
                            let backend = Arc::clone(&backend);
                            slow.push(async move { (message.id, backend.handle(&known, message.request).await) });
                            continue;
                        }
                        let result = handle(&*backend, &mut front_end, &mut subscriptions, message.request).await;
                        let Some(id) = message.id else { continue };
                        rpc::response(&id, result)
                    }
                }
            }
            Some((id, result)) = slow.next(), if !slow.is_empty() => {
                let Some(id) = id else { continue };
                rpc::response(&id, result)
            }
            notification = subscriptions.next() => match notification {
                Ok(notification) => notification.encoded(rpc::notification).to_owned(),
                Err(RecvError::Lagged(_)) => rpc::notification(&Notification::Resync(Empty {})),
                Err(RecvError::Closed) => break,
            },
        };
        if outgoing.send(text).await.is_err() {
            break;
        }
    }
    // The other end may have closed already.
    let _ = outgoing.close().await;
}

async fn handle<B: Backend>(
    backend: &B,
    front_end: &mut Option<FrontEnd>,
    subscriptions: &mut Subscriptions,
    request: Request,
) -> Result<Response, RequestError> {
    match (&request, &front_end) {
        (Request::Hello(hello), _) => {
            if hello.protocol != VERSION {
                let message = format!(
                    "this companion supports protocol version {VERSION}, not {}",
                    hello.protocol
                );
                return Err(RequestError::new(ErrorKind::ProtocolVersion, message));
            }
            // Before the response, so that nothing is missed between the two.
            *subscriptions = Subscriptions::new(backend, hello);
            let known = front_end.insert(FrontEnd { hello: hello.clone() });
            backend.handle(known, request).await
        }
        (_, Some(known)) => backend.handle(known, request).await,
        (_, None) => Err(RequestError::new(
            ErrorKind::NoHello,
            format!("send `hello` first: {}", json!({ "method": "hello" })),
        )),
    }
}

/// The notifications that a front end asked for.
#[derive(Default)]
struct Subscriptions {
    general: Option<broadcast::Receiver<SharedNotification>>,
    chat: Option<broadcast::Receiver<SharedNotification>>,
}

impl Subscriptions {
    fn new<B: Backend>(backend: &B, hello: &Hello) -> Self {
        Self {
            general: hello.watch.then(|| backend.subscribe()),
            chat: hello.chat.then(|| backend.subscribe_chat()),
        }
    }

    async fn next(&mut self) -> Result<SharedNotification, RecvError> {
        tokio::select! {
            // A review must not wait for the end of a long answer.
            biased;
            notification = receive(&mut self.general) => notification,
            notification = receive(&mut self.chat) => notification,
        }
    }
}

async fn receive(
    channel: &mut Option<broadcast::Receiver<SharedNotification>>,
) -> Result<SharedNotification, RecvError> {
    match channel {
        Some(channel) => channel.recv().await,
        None => std::future::pending().await,
    }
}

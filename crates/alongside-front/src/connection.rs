//! One front end, over any transport.
//!
//! Limits: at most `MAX_SLOW_REQUESTS` slow requests run at a time, and nothing more is read until one is done. Notifications wait in the
//! backend's bounded channels, and a front end that reads too slowly gets `resync` in place of what it missed. Nothing else is queued: a
//! message is written before the next one is read.

use std::pin::pin;
use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use serde_json::json;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::message;
use alongside_protocol::{
    Backend, Empty, ErrorKind, FrontEnd, Hello, Notification, Request, RequestError, Response, SharedNotification,
    VERSION,
};
use alongside_wire::rpc;

const MAX_SLOW_REQUESTS: usize = 64;

/// Serves a front end until it disconnects: responds to requests and forwards notifications.
///
/// Requests are handled in order, except that nothing waits for the end of those that are slow ([`Request::is_slow`]). `incoming` yields
/// whole messages and `outgoing` takes them; both end when the transport does.
pub async fn serve<B, T, I, O>(backend: Arc<B>, incoming: I, outgoing: O)
where
    B: Backend,
    T: AsRef<str>,
    I: Stream<Item = T>,
    O: Sink<String>,
{
    let mut incoming = pin!(incoming);
    let mut outgoing = pin!(outgoing);
    let mut front_end = Connected {
        backend: Arc::clone(&backend),
        front_end: None,
    };
    let mut subscriptions = Subscriptions::default();
    let mut slow = FuturesUnordered::new();
    loop {
        let text = tokio::select! {
            message = incoming.next(), if slow.len() < MAX_SLOW_REQUESTS => {
                let Some(text) = message else { break };
                let parsed = message::parse(text.as_ref()).map_err(|invalid| invalid.to_response());
                // A long message is not kept while its request is handled.
                drop(text);
                match parsed {
                    Err(response) => response,
                    Ok((id, request)) => {
                        if let Some(known) = &mut front_end.front_end {
                            known.request = id.as_ref().and_then(message::id_value);
                        }
                        if let Some(known) = front_end.front_end.clone().filter(|_| request.is_slow()) {
                            let backend = Arc::clone(&backend);
                            slow.push(async move { (id, backend.handle(&known, request).await) });
                            continue;
                        }
                        let result = handle(&*backend, &mut front_end.front_end, &mut subscriptions, request).await;
                        let Some(id) = id else { continue };
                        message::response(&id, result)
                    }
                }
            }
            Some((id, result)) = slow.next(), if !slow.is_empty() => {
                let Some(id) = id else { continue };
                message::response(&id, result)
            }
            notification = subscriptions.next() => {
                let notification = match notification {
                    Ok(notification) => notification,
                    Err(RecvError::Lagged(_)) => Notification::Resync(Empty {}).into(),
                    Err(RecvError::Closed) => break,
                };
                let known = front_end.front_end.as_ref();
                let encoded = match known.and_then(|known| notification.for_origin(known.id())) {
                    Some(own) => rpc::write_call(None, &own),
                    None => notification
                        .encoded(|notification| rpc::write_call(None, notification))
                        .map(str::to_owned),
                };
                match encoded {
                    Ok(text) => text,
                    Err(error) => {
                        tracing::error!(%error, "cannot serialize a notification");
                        continue;
                    }
                }
            },
        };
        if outgoing.send(text).await.is_err() {
            break;
        }
    }
    // The front end may have disconnected already.
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
            // Another `hello` on a connection changes what it wants, not who it is.
            let known = front_end.get_or_insert_with(|| FrontEnd::new(hello.clone()));
            known.hello = hello.clone();
            backend.handle(known, request).await
        }
        (_, Some(known)) => backend.handle(known, request).await,
        (_, None) => Err(RequestError::new(
            ErrorKind::NoHello,
            format!("send `hello` first: {}", json!({ "method": "hello" })),
        )),
    }
}

/// Reports the end of the connection, however it ends.
struct Connected<B: Backend> {
    backend: Arc<B>,
    front_end: Option<FrontEnd>,
}

impl<B: Backend> Drop for Connected<B> {
    fn drop(&mut self) {
        if let Some(front_end) = &self.front_end {
            self.backend.disconnected(front_end);
        }
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
            // A review must not wait behind an agent's answer.
            biased;
            notification = receive(&mut self.general) => notification,
            notification = receive(&mut self.chat) => notification,
        }
    }
}

async fn receive(
    notifications: &mut Option<broadcast::Receiver<SharedNotification>>,
) -> Result<SharedNotification, RecvError> {
    match notifications {
        Some(notifications) => notifications.recv().await,
        None => std::future::pending().await,
    }
}

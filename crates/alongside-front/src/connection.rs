//! One front end, over any transport.

use std::pin::pin;
use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use serde_json::{Value, json};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::message;
use alongside_protocol::{Desk, FrontEnd, Refusal};
use alongside_protocol::{Hello, Nothing, Notification, Request, VERSION};
use alongside_wire::rpc;

/// How many slow requests may be under way for one front end. After that nothing is read from it until one of them is done.
const MAX_SLOW_REQUESTS: usize = 64;

/// Serves a front end until it disconnects: responds to requests and forwards notifications.
///
/// Requests are handled in order, except that nothing waits for the end of those that [`Request::takes_its_time`]. `incoming` yields
/// whole messages and `outgoing` takes them; both end when the transport does.
pub async fn serve<D, I, O>(desk: Arc<D>, incoming: I, outgoing: O)
where
    D: Desk,
    I: Stream<Item = String>,
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
                let parsed = message::parse(&text).map_err(|invalid| invalid.to_response());
                // A long message is not kept while its request is handled.
                drop(text);
                match parsed {
                    Err(response) => response,
                    Ok((id, request)) => {
                        if let Some(known) = front_end.clone().filter(|_| request.takes_its_time()) {
                            let desk = Arc::clone(&desk);
                            slow.push(async move { (id, desk.call(&known, request).await) });
                            continue;
                        }
                        let result = answer(&*desk, &mut front_end, &mut subscriptions, request).await;
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
                    Err(RecvError::Lagged(_)) => Notification::Resync(Nothing {}),
                    Err(RecvError::Closed) => break,
                };
                match rpc::write_call(None, &notification) {
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

async fn answer<D: Desk>(
    desk: &D,
    front_end: &mut Option<FrontEnd>,
    subscriptions: &mut Subscriptions,
    request: Request,
) -> Result<Value, Refusal> {
    match (&request, &front_end) {
        (Request::Hello(hello), _) => {
            if hello.protocol != VERSION {
                let message = format!(
                    "this companion supports protocol version {VERSION}, not {}",
                    hello.protocol
                );
                return Err(Refusal::new("protocolVersion", message));
            }
            // Before the response, so that nothing is missed between the two.
            *subscriptions = Subscriptions::new(desk, hello);
            let known = front_end.insert(FrontEnd { hello: hello.clone() });
            desk.call(known, request).await
        }
        (_, Some(known)) => desk.call(known, request).await,
        (_, None) => Err(Refusal::new(
            "noHello",
            format!("send `hello` first: {}", json!({ "method": "hello" })),
        )),
    }
}

/// The notifications that a front end asked for.
#[derive(Default)]
struct Subscriptions {
    usual: Option<broadcast::Receiver<Notification>>,
    chat: Option<broadcast::Receiver<Notification>>,
}

impl Subscriptions {
    fn new<D: Desk>(desk: &D, hello: &Hello) -> Self {
        Self {
            usual: hello.watch.then(|| desk.watch()),
            chat: hello.chat.then(|| desk.watch_chat()),
        }
    }

    async fn next(&mut self) -> Result<Notification, RecvError> {
        tokio::select! {
            // A review must not wait behind an agent's answer.
            biased;
            notification = receive(&mut self.usual) => notification,
            notification = receive(&mut self.chat) => notification,
        }
    }
}

async fn receive(notifications: &mut Option<broadcast::Receiver<Notification>>) -> Result<Notification, RecvError> {
    match notifications {
        Some(notifications) => notifications.recv().await,
        None => std::future::pending().await,
    }
}

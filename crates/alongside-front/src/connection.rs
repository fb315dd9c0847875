//! One conversation with a front end, whatever carries it.

use std::pin::pin;
use std::sync::Arc;

use futures_util::{Sink, SinkExt, Stream, StreamExt};
use serde_json::{Value, json};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::desk::{Desk, FrontEnd, Refusal};
use crate::protocol::{Nothing, Notification, Request, VERSION};
use crate::rpc::{self, Message};

/// Speaks with a front end until it hangs up: answers requests in order and passes notifications on.
///
/// `incoming` yields whole messages and `outgoing` takes them; both end when the carrier does.
pub async fn serve<D, I, O>(desk: Arc<D>, incoming: I, outgoing: O)
where
    D: Desk,
    I: Stream<Item = String>,
    O: Sink<String>,
{
    let mut incoming = pin!(incoming);
    let mut outgoing = pin!(outgoing);
    let mut front_end: Option<FrontEnd> = None;
    let mut notifications: Option<broadcast::Receiver<Notification>> = None;
    loop {
        let text = tokio::select! {
            message = incoming.next() => {
                let Some(text) = message else { break };
                let reply = match Message::parse(&text) {
                    Err(misunderstood) => Some(misunderstood.to_text()),
                    Ok(message) => {
                        let result = answer(&*desk, &mut front_end, &mut notifications, message.request).await;
                        message.id.map(|id| rpc::answer(&id, result))
                    }
                };
                let Some(reply) = reply else { continue };
                reply
            }
            notification = next(&mut notifications) => match notification {
                Ok(notification) => rpc::notification(&notification),
                Err(RecvError::Lagged(_)) => rpc::notification(&Notification::Resync(Nothing {})),
                Err(RecvError::Closed) => break,
            },
        };
        if outgoing.send(text).await.is_err() {
            break;
        }
    }
    // The other end may be gone already; there is nobody to tell.
    let _ = outgoing.close().await;
}

async fn answer<D: Desk>(
    desk: &D,
    front_end: &mut Option<FrontEnd>,
    notifications: &mut Option<broadcast::Receiver<Notification>>,
    request: Request,
) -> Result<Value, Refusal> {
    match (&request, &front_end) {
        (Request::Hello(hello), _) => {
            if hello.protocol != VERSION {
                let message = format!(
                    "this companion speaks version {VERSION} of the protocol, not {}",
                    hello.protocol
                );
                return Err(Refusal::new("protocolVersion", message));
            }
            // Before the answer, so that nothing is missed between the two.
            *notifications = hello.watch.then(|| desk.watch());
            let known = front_end.insert(FrontEnd { hello: hello.clone() });
            desk.call(known, request).await
        }
        (_, Some(known)) => desk.call(known, request).await,
        (_, None) => Err(Refusal::new(
            "noHello",
            format!("say hello first: {}", json!({ "method": "hello" })),
        )),
    }
}

async fn next(notifications: &mut Option<broadcast::Receiver<Notification>>) -> Result<Notification, RecvError> {
    match notifications {
        Some(notifications) => notifications.recv().await,
        None => std::future::pending().await,
    }
}

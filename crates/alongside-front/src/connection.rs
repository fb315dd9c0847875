//! One conversation with a front end, whatever carries it.

use std::pin::pin;
use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use serde_json::{Value, json};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::rpc::{self, Message};
use alongside_protocol::{Desk, FrontEnd, Refusal};
use alongside_protocol::{Hello, Nothing, Notification, Request, VERSION};

/// How many requests that take their time may be under way for one front end.
const MOST_SLOW: usize = 64;

/// Speaks with a front end until it hangs up: answers requests and passes notifications on.
///
/// Requests are answered in order, but for those that [`Request::takes_its_time`] says so of: they are begun in order, and nothing waits
/// for their end. `incoming` yields whole messages and `outgoing` takes them; both end when the carrier does.
pub async fn serve<D, I, O>(desk: Arc<D>, incoming: I, outgoing: O)
where
    D: Desk,
    I: Stream<Item = String>,
    O: Sink<String>,
{
    let mut incoming = pin!(incoming);
    let mut outgoing = pin!(outgoing);
    let mut front_end: Option<FrontEnd> = None;
    let mut news = News::default();
    let mut slow = FuturesUnordered::new();
    loop {
        let text = tokio::select! {
            // Whoever asks for more than this without waiting has to wait.
            message = incoming.next(), if slow.len() < MOST_SLOW => {
                let Some(text) = message else { break };
                match Message::parse(&text) {
                    Err(misunderstood) => misunderstood.to_text(),
                    Ok(message) => {
                        if let Some(known) = front_end.clone().filter(|_| message.request.takes_its_time()) {
                            let desk = Arc::clone(&desk);
                            slow.push(async move { (message.id, desk.call(&known, message.request).await) });
                            continue;
                        }
                        let result = answer(&*desk, &mut front_end, &mut news, message.request).await;
                        let Some(id) = message.id else { continue };
                        rpc::answer(&id, result)
                    }
                }
            }
            Some((id, result)) = slow.next(), if !slow.is_empty() => {
                let Some(id) = id else { continue };
                rpc::answer(&id, result)
            }
            notification = news.next() => match notification {
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
    news: &mut News,
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
            // Before the answer, so that nothing is missed between the two.
            *news = News::wanted(desk, hello);
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

/// What a front end hears without asking.
#[derive(Default)]
struct News {
    usual: Option<broadcast::Receiver<Notification>>,
    chat: Option<broadcast::Receiver<Notification>>,
}

impl News {
    fn wanted<D: Desk>(desk: &D, hello: &Hello) -> Self {
        Self {
            usual: hello.watch.then(|| desk.watch()),
            chat: hello.chat.then(|| desk.watch_chat()),
        }
    }

    async fn next(&mut self) -> Result<Notification, RecvError> {
        tokio::select! {
            // A review must not wait behind the words of an agent.
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

//! Relays MCP over stdin and stdout to a companion over HTTP, for agents that start a command instead of opening a connection.
//!
//! There is one JSON-RPC message per line. Requests are forwarded at once, so responses come in any order; everything else is forwarded
//! in order. Every request gets a response, if only an error that says what went wrong.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use alongside_wire::lines::{Line, LineReader, write_line};
use alongside_wire::rpc::{self, Envelope, INVALID_REQUEST, PARSE_ERROR, RequestId, RpcError};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::{Client, ClientError, Events, MAX_MESSAGE_BYTES};

/// The delays before a stream is reopened: the first, and the longest.
const REOPEN_DELAYS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// How many requests may be under way. After that the relay reads no more until one of them is done.
const MAX_REQUESTS: usize = 64;

/// The code of an error on the way to the companion.
const NOT_REACHED: i64 = -32_000;

/// Relays messages until the input ends, then ends the session. An error means that input or output failed.
pub async fn relay<I, O>(client: Client, input: I, output: O) -> io::Result<()>
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin + Send + 'static,
{
    let output = Output(Arc::new(Mutex::new(output)));
    let mut lines = LineReader::new(BufReader::with_capacity(64 * 1024, input), MAX_MESSAGE_BYTES);
    let mut requests = JoinSet::new();
    let mut stream = JoinSet::new();
    loop {
        let line = tokio::select! {
            line = lines.next(), if requests.len() < MAX_REQUESTS => line?,
            Some(done) = requests.join_next() => {
                done.unwrap_or(Ok(()))?;
                continue;
            }
            Some(done) = stream.join_next() => {
                done.unwrap_or(Ok(()))?;
                continue;
            }
        };
        let line = match line {
            None => break,
            Some(Line::TooLong) => {
                output.error(None, INVALID_REQUEST, "The message is too long.").await?;
                continue;
            }
            // Invalid UTF-8 is not JSON either, and gets the same error.
            Some(Line::Complete(line) | Line::Unterminated(line)) => String::from_utf8_lossy(line).into_owned(),
        };
        if line.trim().is_empty() {
            continue;
        }
        let (method, id) = if line.trim_start().starts_with('[') {
            // A batch is forwarded like a notification; its responses come back as one line.
            (None, None)
        } else if let Ok(envelope) = Envelope::parse(&line) {
            (envelope.method().map(str::to_owned), envelope.id().map(RequestId::from))
        } else {
            output.error(None, PARSE_ERROR, "Invalid JSON-RPC message.").await?;
            continue;
        };
        match (method.as_deref(), id) {
            // Everything that follows needs the session that this one starts.
            (Some("initialize"), id) => forward(&client, line, id, &output).await?,
            (Some("notifications/initialized"), _) => {
                forward(&client, line, None, &output).await?;
                if stream.is_empty() {
                    stream.spawn(listen(client.clone(), output.clone()));
                }
            }
            (Some(_), Some(id)) => {
                let (client, output) = (client.clone(), output.clone());
                requests.spawn(async move { forward(&client, line, Some(id), &output).await });
            }
            // Notifications, responses and batches.
            (_, _) => forward(&client, line, None, &output).await?,
        }
    }
    // Each request has its own time limit, so this ends.
    while let Some(done) = requests.join_next().await {
        done.unwrap_or(Ok(()))?;
    }
    stream.shutdown().await;
    if let Err(error) = client.end().await {
        tracing::debug!(%error, "cannot end the session");
    }
    Ok(())
}

/// Sends one message and writes the response, if there is one.
async fn forward<O: AsyncWrite + Unpin>(
    client: &Client,
    line: String,
    id: Option<RequestId>,
    output: &Output<O>,
) -> io::Result<()> {
    match (client.post_raw(line).await, id) {
        (Ok(Some(response)), _) => output.line(&response).await,
        (Ok(None), Some(id)) => {
            output
                .error(Some(&id), NOT_REACHED, "The companion did not respond.")
                .await
        }
        (Err(error), Some(id)) => output.error(Some(&id), NOT_REACHED, &error.to_string()).await,
        (Ok(None), None) => Ok(()),
        (Err(error), None) => {
            tracing::warn!(%error, "cannot deliver a notification to the companion");
            Ok(())
        }
    }
}

/// Writes every event, and reopens the stream when it ends, until the companion refuses.
async fn listen<O: AsyncWrite + Unpin>(client: Client, output: Output<O>) -> io::Result<()> {
    let (first_delay, max_delay) = REOPEN_DELAYS;
    let mut delay = first_delay;
    let mut last_event_id: Option<String> = None;
    loop {
        match client.events(last_event_id.as_deref()).await {
            Ok(mut events) => {
                delay = first_delay;
                let ended = write_events(&mut events, &output).await?;
                if let Err(error) = ended {
                    tracing::debug!(%error, "lost the event stream");
                }
                last_event_id = events.last_event_id().map(str::to_owned);
            }
            Err(
                error @ (ClientError::Unauthorized { .. } | ClientError::Forbidden { .. } | ClientError::Status { .. }),
            ) => {
                tracing::warn!(%error, "giving up on the event stream");
                return Ok(());
            }
            Err(error) => tracing::debug!(%error, "cannot open the event stream"),
        }
        tokio::time::sleep(delay).await;
        delay = (delay * 2).min(max_delay);
    }
}

/// Writes the events of one stream. The outer result is about the output, the inner about the stream.
async fn write_events<O: AsyncWrite + Unpin>(
    events: &mut Events,
    output: &Output<O>,
) -> io::Result<Result<(), ClientError>> {
    loop {
        match events.next_text().await {
            Ok(Some(message)) => output.line(&message).await?,
            Ok(None) => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        }
    }
}

/// Stdout, one whole line at a time.
struct Output<O>(Arc<Mutex<O>>);

impl<O> Clone for Output<O> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<O: AsyncWrite + Unpin> Output<O> {
    async fn line(&self, message: &str) -> io::Result<()> {
        write_line(&mut *self.0.lock().await, message).await
    }

    async fn error(&self, id: Option<&RequestId>, code: i64, message: &str) -> io::Result<()> {
        let error = RpcError::new(code, message.to_owned());
        self.line(&rpc::error_response(id.map(RequestId::as_raw), &error)).await
    }
}

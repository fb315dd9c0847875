//! Carries MCP over standard input and output to a companion that speaks HTTP, for agents that would rather start a
//! command than open a connection.
//!
//! One JSON-RPC message a line. Requests are forwarded at once, so replies come in any order; everything else is forwarded
//! in order. The caller gets an answer to every request, if only an error that says what went wrong.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::{Client, ClientError, Events, LONGEST_MESSAGE};

/// The pauses before a stream is opened again: the first, and the longest.
const REOPEN_PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// The code of an error that happened on the way.
const NOT_REACHED: i32 = -32_000;

/// Carries messages until the input ends, then ends the session. An error means that input or output failed.
pub async fn relay<I, O>(client: Client, input: I, output: O) -> io::Result<()>
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin + Send + 'static,
{
    let output = Output(Arc::new(Mutex::new(output)));
    let mut lines = Lines::new(input);
    let mut requests = JoinSet::new();
    let mut stream = JoinSet::new();
    loop {
        let line = tokio::select! {
            line = lines.next() => line?,
            Some(done) = requests.join_next() => {
                done.unwrap_or(Ok(()))?;
                continue;
            }
            Some(done) = stream.join_next() => {
                done.unwrap_or(Ok(()))?;
                continue;
            }
        };
        let Some(line) = line else { break };
        let Ok(line) = line else {
            output.error(None, -32_600, "The message is too long.").await?;
            continue;
        };
        if line.trim().is_empty() {
            continue;
        }
        let Ok(envelope) = Envelope::read(&line) else {
            output.error(None, -32_700, "Invalid JSON-RPC message.").await?;
            continue;
        };
        let Envelope { id, method } = envelope;
        match (method.as_deref(), id) {
            // Everything that follows needs the session which this one starts.
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
            // Notifications, answers and batches.
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

/// Sends one message and writes the answer, if there is one.
async fn forward<O: AsyncWrite + Unpin>(
    client: &Client,
    line: String,
    id: Option<Box<RawValue>>,
    output: &Output<O>,
) -> io::Result<()> {
    match (client.post_raw(line).await, id) {
        (Ok(Some(reply)), _) => output.line(&reply).await,
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

/// Writes every event, and opens the stream again when it ends, until the companion does not want us any more.
async fn listen<O: AsyncWrite + Unpin>(client: Client, output: Output<O>) -> io::Result<()> {
    let (shortest, longest) = REOPEN_PAUSES;
    let mut pause = shortest;
    let mut last_event_id: Option<String> = None;
    loop {
        match client.events(last_event_id.as_deref()).await {
            Ok(mut events) => {
                pause = shortest;
                let ended = carry(&mut events, &output).await?;
                if let Err(error) = ended {
                    tracing::debug!(%error, "lost the event stream");
                }
                last_event_id = events.last_event_id().map(str::to_owned);
            }
            Err(
                error @ (ClientError::Unauthorised { .. } | ClientError::Forbidden { .. } | ClientError::Status { .. }),
            ) => {
                tracing::warn!(%error, "giving up on the event stream");
                return Ok(());
            }
            Err(error) => tracing::debug!(%error, "cannot open the event stream"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}

/// Writes the events of one stream. The outer result is about the output, the inner about the stream.
async fn carry<O: AsyncWrite + Unpin>(events: &mut Events, output: &Output<O>) -> io::Result<Result<(), ClientError>> {
    loop {
        match events.next_text().await {
            Ok(Some(message)) => output.line(&message).await?,
            Ok(None) => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        }
    }
}

/// As much of a message as the relay needs to know.
#[derive(Default, Deserialize)]
struct Envelope {
    id: Option<Box<RawValue>>,
    method: Option<String>,
}

impl Envelope {
    fn read(line: &str) -> Result<Self, serde_json::Error> {
        if line.trim_start().starts_with('[') {
            // A batch is forwarded like a notification; its replies come back as one line.
            return Ok(Self::default());
        }
        serde_json::from_str(line)
    }
}

/// Standard output, one whole line at a time.
struct Output<O>(Arc<Mutex<O>>);

impl<O> Clone for Output<O> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<O: AsyncWrite + Unpin> Output<O> {
    async fn line(&self, message: &str) -> io::Result<()> {
        // A line break in JSON can only be between tokens.
        let mut line = message.replace(['\r', '\n'], " ");
        line.push('\n');
        let mut output = self.0.lock().await;
        output.write_all(line.as_bytes()).await?;
        output.flush().await
    }

    async fn error(&self, id: Option<&RawValue>, code: i32, message: &str) -> io::Result<()> {
        #[derive(Serialize)]
        struct Reply<'a> {
            jsonrpc: &'static str,
            id: Option<&'a RawValue>,
            error: Details<'a>,
        }

        #[derive(Serialize)]
        struct Details<'a> {
            code: i32,
            message: &'a str,
        }

        let reply = serde_json::to_string(&Reply {
            jsonrpc: "2.0",
            id,
            error: Details { code, message },
        })?;
        self.line(&reply).await
    }
}

/// Lines of bounded length. Giving up waiting for one loses nothing.
struct Lines<I> {
    input: BufReader<I>,
    line: Vec<u8>,
    too_long: bool,
}

/// A line was longer than a message may be.
struct TooLong;

impl<I: AsyncRead + Unpin> Lines<I> {
    fn new(input: I) -> Self {
        Self {
            input: BufReader::with_capacity(64 * 1024, input),
            line: Vec::new(),
            too_long: false,
        }
    }

    /// The next line; `None` at the end.
    async fn next(&mut self) -> io::Result<Option<Result<String, TooLong>>> {
        loop {
            let bytes = self.input.fill_buf().await?;
            let (taken, complete) = match bytes.iter().position(|byte| *byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (bytes.len(), bytes.is_empty()),
            };
            self.too_long |= self.line.len() + taken > LONGEST_MESSAGE;
            if self.too_long {
                self.line.clear();
            } else {
                self.line.extend_from_slice(&bytes[..taken]);
            }
            let at_end = bytes.is_empty();
            self.input.consume(taken);
            if !complete {
                continue;
            }
            if at_end && self.line.is_empty() && !self.too_long {
                return Ok(None);
            }
            let line = std::mem::take(&mut self.line);
            if std::mem::take(&mut self.too_long) {
                return Ok(Some(Err(TooLong)));
            }
            // What is not UTF-8 is not JSON either, and will be answered so.
            return Ok(Some(Ok(String::from_utf8_lossy(&line).into_owned())));
        }
    }
}

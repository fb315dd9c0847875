//! The carrier of the language server protocol: JSON-RPC messages behind headers that say how long they are.

use std::io;
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How long a message may be.
const LONGEST_MESSAGE: usize = 96 * 1024 * 1024;
/// How long a line of a header may be.
const LONGEST_HEADER: u64 = 4096;
/// How long the last messages may take to be written.
const FLUSH_TIME: Duration = Duration::from_secs(2);

/// The two pipes to an editor.
pub struct Wire {
    incoming: BoxStream<'static, Incoming>,
    pub(super) outgoing: Outgoing,
    writer: JoinHandle<()>,
}

/// What an editor sent.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    Answer {
        id: Value,
        result: Result<Value, String>,
    },
    /// Not a message; what it should be answered with.
    Garbled(Value),
}

/// Where messages to the editor go. They are written by a task of their own: an editor that writes while it does not read
/// must not hold us up, or neither would ever go on.
#[derive(Clone, Debug)]
pub(super) struct Outgoing(mpsc::UnboundedSender<Value>);

impl Outgoing {
    pub(super) fn send(&self, message: Value) {
        // The editor may be gone already; then nobody misses it.
        let _ = self.0.send(message);
    }

    pub(super) fn answer(&self, id: &Value, result: Result<Value, Failure>) {
        self.send(match result {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(failure) => failure.to_value(id),
        });
    }

    pub(super) fn notify(&self, method: &str, params: &Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }
}

/// Why a request is not answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) code: i32,
    pub(super) message: String,
}

impl Failure {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    fn to_value(&self, id: &Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": self.code, "message": self.message } })
    }
}

impl Wire {
    /// A conversation over two pipes.
    pub fn new<R, W>(input: R, mut output: W) -> Self
    where
        R: AsyncBufRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let incoming = stream::unfold(input, |mut input| async move {
            match next_body(&mut input).await {
                Ok(Some(body)) => Some((parse(&body), input)),
                Ok(None) => None,
                Err(error) => {
                    tracing::error!(%error, "cannot find the editor's next message");
                    None
                }
            }
        });
        let (sender, mut receiver) = mpsc::unbounded_channel::<Value>();
        let writer = tokio::spawn(async move {
            while let Some(message) = receiver.recv().await {
                let body = message.to_string();
                let header = format!("Content-Length: {}\r\n\r\n", body.len());
                let written = async {
                    output.write_all(header.as_bytes()).await?;
                    output.write_all(body.as_bytes()).await?;
                    output.flush().await
                };
                if written.await.is_err() {
                    break;
                }
            }
        });
        Self {
            incoming: incoming.boxed(),
            outgoing: Outgoing(sender),
            writer,
        }
    }

    /// The next message; `None` when the editor has hung up, or what it sent makes no sense any more.
    pub(super) async fn next(&mut self) -> Option<Incoming> {
        self.incoming.next().await
    }

    /// Lets what was said reach the editor.
    pub(super) async fn close(self) {
        let Self { outgoing, writer, .. } = self;
        drop(outgoing);
        // An editor that does not read is not waited for.
        let _ = tokio::time::timeout(FLUSH_TIME, writer).await;
    }
}

/// The bytes of the next message. An error means that nobody can tell where the one after it begins.
async fn next_body(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let broken = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    let mut length = None;
    let mut is_first = true;
    loop {
        let mut line = Vec::new();
        let count = (&mut *input).take(LONGEST_HEADER).read_until(b'\n', &mut line).await?;
        if count == 0 && is_first {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            return Err(broken("unterminated header".to_owned()));
        }
        is_first = false;
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(broken(format!("`{line}` is not a header; is this an LSP client?")));
        };
        if name.eq_ignore_ascii_case("Content-Length") {
            let value = value.trim();
            let parsed: usize = value
                .parse()
                .map_err(|_| broken(format!("invalid Content-Length `{value}`")))?;
            length = Some(parsed);
        }
    }
    let length = length.ok_or_else(|| broken("missing Content-Length".to_owned()))?;
    if length > LONGEST_MESSAGE {
        return Err(broken(format!(
            "message too large: {length} bytes; the limit is {LONGEST_MESSAGE}"
        )));
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).await?;
    Ok(Some(body))
}

fn parse(body: &[u8]) -> Incoming {
    let garbled = |id: &Value, code, message: String| Incoming::Garbled(Failure { code, message }.to_value(id));
    let mut message: Value = match serde_json::from_slice(body) {
        Ok(message) => message,
        Err(error) => return garbled(&Value::Null, -32700, format!("invalid JSON: {error}")),
    };
    if !message.is_object() {
        return garbled(&Value::Null, -32600, "not a JSON-RPC message".to_owned());
    }
    let id = message["id"].take();
    let has_id = matches!(id, Value::Number(_) | Value::String(_));
    match message["method"].take() {
        Value::String(method) => {
            let params = message["params"].take();
            if has_id {
                Incoming::Request { id, method, params }
            } else {
                Incoming::Notification { method, params }
            }
        }
        Value::Null if has_id => {
            let result = match message.get("error") {
                Some(error) if !error.is_null() => {
                    Err(error["message"].as_str().unwrap_or("no reason given").to_owned())
                }
                _ => Ok(message["result"].take()),
            };
            Incoming::Answer { id, result }
        }
        _ => garbled(&id, -32600, "a message needs a `method` or an `id`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(input: &[u8]) -> Vec<Incoming> {
        let mut wire = Wire::new(std::io::Cursor::new(input.to_owned()), tokio::io::sink());
        let mut all = Vec::new();
        while let Some(message) = wire.next().await {
            all.push(message);
        }
        all
    }

    fn frames(bodies: &[&[u8]]) -> Vec<u8> {
        let frame = |body: &&[u8]| [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat();
        bodies.iter().flat_map(frame).collect()
    }

    #[tokio::test]
    async fn messages_of_every_kind_are_told_apart() {
        let mut input = frames(&[
            br#"{"id":1,"method":"a","params":1}"#,
            br#"{"id":2,"result":3}"#,
            br#"{"id":"x","error":{"message":"never"}}"#,
        ]);
        input.extend(b"content-length:14\r\nContent-Type: x\r\n\r\n{\"method\":\"b\"}");
        let all = read(&input).await;
        let expected = [
            Incoming::Request {
                id: json!(1),
                method: "a".to_owned(),
                params: json!(1),
            },
            Incoming::Answer {
                id: json!(2),
                result: Ok(json!(3)),
            },
            Incoming::Answer {
                id: json!("x"),
                result: Err("never".to_owned()),
            },
            Incoming::Notification {
                method: "b".to_owned(),
                params: Value::Null,
            },
        ];
        assert_eq!(all, expected);
    }

    #[tokio::test]
    async fn a_garbled_message_is_answered_and_does_not_end_the_conversation() {
        let all = read(&frames(&[b"{", b"\xff\xfe", b"[]", b"{}", br#"{"method":"b"}"#])).await;
        let codes: Vec<i64> = all
            .iter()
            .filter_map(|message| match message {
                Incoming::Garbled(answer) => answer["error"]["code"].as_i64(),
                _ => None,
            })
            .collect();
        assert_eq!(codes, [-32700, -32700, -32600, -32600]);
        assert!(matches!(all.last(), Some(Incoming::Notification { .. })), "{all:?}");
    }

    #[tokio::test]
    async fn what_has_no_known_length_ends_it() {
        for input in [
            "hello\n",
            "Content-Length: many\r\n\r\n{}",
            "Content-Type: x\r\n\r\n{}",
            "Content-Length: 99999999999\r\n\r\n{}",
            "Content-Length: 20\r\n\r\n{}",
            "Content-Length: 2",
        ] {
            assert_eq!(read(input.as_bytes()).await, [], "{input}");
        }
    }

    #[tokio::test]
    async fn what_is_said_last_is_written_before_the_end() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let wire = Wire::new(tokio::io::empty(), ours);
        wire.outgoing.answer(&json!(1), Ok(json!("ü")));
        wire.close().await;
        let mut text = String::new();
        theirs.read_to_string(&mut text).await.unwrap();
        assert_eq!(
            text,
            "Content-Length: 38\r\n\r\n{\"id\":1,\"jsonrpc\":\"2.0\",\"result\":\"ü\"}"
        );
    }
}

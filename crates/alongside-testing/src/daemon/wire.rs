//! The bytes between the daemon and its clients.

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::Request;

/// With or without TLS.
pub(super) trait Connection: AsyncRead + AsyncWrite + Unpin {}

impl<Stream: AsyncRead + AsyncWrite + Unpin> Connection for Stream {}

/// An event as the daemon sends it.
pub fn frame(envelope: &Value) -> String {
    let id = envelope.get("id").map(|id| format!("id: {id}\n")).unwrap_or_default();
    let name = envelope["type"].as_str().unwrap_or_default();
    format!("{id}event: {name}\ndata: {envelope}\n\n")
}

/// A connection that is cut after `left` bytes.
pub(super) struct Wire<'a, Stream> {
    pub(super) stream: &'a mut Stream,
    pub(super) left: Option<usize>,
}

impl<Stream: Connection> Wire<'_, Stream> {
    /// `false` if the connection ended.
    pub(super) async fn write(&mut self, text: &str) -> bool {
        let mut bytes = text.as_bytes();
        let cut = self.left.is_some_and(|left| left <= bytes.len());
        if let Some(left) = &mut self.left {
            bytes = &bytes[..bytes.len().min(*left)];
            *left -= bytes.len();
        }
        if !bytes.is_empty() {
            let head = format!("{:x}\r\n", bytes.len());
            let chunk = [head.as_bytes(), bytes, b"\r\n"].concat();
            if self.stream.write_all(&chunk).await.is_err() || self.stream.flush().await.is_err() {
                return false;
            }
        }
        !cut
    }
}

pub(super) async fn read_request(stream: &mut impl Connection, buffer: &mut Vec<u8>) -> Option<Request> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            let mut lines = head.lines();
            let mut words = lines.next()?.split(' ');
            let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
            let headers: Vec<(String, String)> = lines
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect();
            let length = headers
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or_default();
            if buffer.len() >= end + 4 + length {
                let body = serde_json::from_slice(&buffer[end + 4..end + 4 + length]).unwrap_or_default();
                buffer.drain(..end + 4 + length);
                return Some(Request {
                    method,
                    path,
                    headers,
                    body,
                });
            }
        }
        let read = stream.read_buf(buffer).await.ok()?;
        if read == 0 {
            return None;
        }
    }
}

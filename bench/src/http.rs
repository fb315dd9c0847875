//! A client that costs little: HTTP/1.1 over one blocking connection, with requests that are prepared before they are timed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

/// How long any response may take.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Name and version that Gemini CLI introduces itself with, so that everyone gets what it gets.
const CLIENT: (&str, &str) = ("streamable-http-client", "0.61.0");

pub struct Connection {
    stream: TcpStream,
    /// What was received: the last response, and nothing behind it.
    received: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    pub status: u16,
    pub head: &'a str,
    /// As it was sent: chunks are not joined.
    pub body: &'a [u8],
}

impl Connection {
    pub fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).context("cannot connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self {
            stream,
            received: Vec::with_capacity(64 * 1024),
        })
    }

    /// Sends a prepared request and reads the whole response.
    pub fn exchange(&mut self, request: &[u8]) -> Result<Response<'_>> {
        self.send(request)?;
        let mut extent = Extent::default();
        loop {
            self.receive()?;
            if let Some(end) = extent.end(&self.received)? {
                ensure!(end == self.received.len(), "bytes behind a response");
                break;
            }
        }
        let head = std::str::from_utf8(&self.received[..extent.head]).context("the head is not UTF-8")?;
        Ok(Response {
            status: status(head)?,
            head,
            body: &self.received[extent.head..],
        })
    }

    pub fn send(&mut self, request: &[u8]) -> Result<()> {
        self.received.clear();
        self.stream.write_all(request).context("cannot send a request")
    }

    fn receive(&mut self) -> Result<()> {
        let length = self.received.len();
        // Small at first, more when a response is long.
        let more = length.clamp(16 * 1024, 1024 * 1024);
        self.received.resize(length + more, 0);
        let count = self.stream.read(&mut self.received[length..]).context("no response")?;
        self.received.truncate(length + count);
        ensure!(count > 0, "the connection was closed before a response");
        Ok(())
    }

    /// For what follows a response without an end.
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }
}

fn status(head: &str) -> Result<u16> {
    let word = head.split(' ').nth(1).context("no status line")?;
    word.parse().context("no status")
}

/// Where a response ends.
#[derive(Debug, Default)]
struct Extent {
    /// Length of the head with its empty line; 0 until that is there.
    head: usize,
    length: Option<usize>,
    /// Where the next chunk begins.
    chunk: usize,
}

impl Extent {
    /// The length of the response, once all of it has been received.
    fn end(&mut self, received: &[u8]) -> Result<Option<usize>> {
        if self.head == 0 {
            let Some(at) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
                return Ok(None);
            };
            self.head = at + 4;
            self.chunk = self.head;
            let head = std::str::from_utf8(&received[..self.head]).context("the head is not UTF-8")?;
            self.length = match header(head, "content-length") {
                Some(length) => Some(length.parse().context("invalid content-length")?),
                None if header(head, "transfer-encoding") == Some("chunked") => None,
                None => Some(0),
            };
        }
        if let Some(length) = self.length {
            return Ok((received.len() >= self.head + length).then_some(self.head + length));
        }
        loop {
            let rest = received.get(self.chunk..).unwrap_or_default();
            let Some(line) = rest.windows(2).position(|bytes| bytes == b"\r\n") else {
                return Ok(None);
            };
            let size = std::str::from_utf8(&rest[..line]).context("invalid chunk")?;
            let size = usize::from_str_radix(size, 16).context("invalid chunk")?;
            let next = self.chunk + line + 2 + size + 2;
            if received.len() < next {
                return Ok(None);
            }
            self.chunk = next;
            if size == 0 {
                return Ok(Some(next));
            }
        }
    }
}

/// The value of a header; the name is in lower case.
pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (other, value) = line.split_once(':')?;
        other.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Where to send requests, and the token and the session that they carry.
#[derive(Clone, Debug)]
pub struct Address {
    pub port: u16,
    pub token: String,
    pub session: Option<String>,
}

impl Address {
    /// The bytes of a request.
    pub fn request(&self, method: &str, accept: &str, body: Option<&str>) -> Vec<u8> {
        let Self { port, token, session } = self;
        let mut request = format!(
            "{method} /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nAccept: {accept}\r\n"
        );
        if let Some(session) = session {
            request.push_str(&format!(
                "Mcp-Session-Id: {session}\r\nMcp-Protocol-Version: 2025-06-18\r\n"
            ));
        }
        if let Some(body) = body {
            request.push_str(&format!(
                "Content-Type: application/json\r\nContent-Length: {}\r\n",
                body.len()
            ));
        }
        request.push_str("\r\n");
        request.push_str(body.unwrap_or_default());
        request.into_bytes()
    }

    pub fn post(&self, message: &Value) -> Vec<u8> {
        self.request(
            "POST",
            "application/json, text/event-stream",
            Some(&message.to_string()),
        )
    }

    pub fn call(&self, id: u64, tool: &str, arguments: &Value) -> Vec<u8> {
        let params = json!({"name": tool, "arguments": arguments});
        self.post(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    }

    /// Starts a session as agents do: `initialize`, then the notification.
    pub fn initialize(port: u16, token: &str) -> Result<(Connection, Self)> {
        let mut connection = Connection::open(port)?;
        let mut address = Self {
            port,
            token: token.to_owned(),
            session: None,
        };
        let (name, version) = CLIENT;
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": name, "version": version},
        });
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = connection.exchange(&address.post(&message))?;
        if response.status != 200 {
            bail!(
                "`initialize` was refused: {}{}",
                response.head,
                String::from_utf8_lossy(response.body)
            );
        }
        address.session = header(response.head, "mcp-session-id").map(str::to_owned);
        let message = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let response = connection.exchange(&address.post(&message))?;
        ensure!(response.status == 202, "a notification was refused: {}", response.head);
        Ok((connection, address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(parts: &[&str]) -> Option<usize> {
        let mut extent = Extent::default();
        let mut received = Vec::new();
        let mut found = None;
        for part in parts {
            assert_eq!(found, None, "it ended before {part:?}");
            received.extend_from_slice(part.as_bytes());
            found = extent.end(&received).unwrap();
        }
        found
    }

    #[test]
    fn response_with_length_ends_there() {
        assert_eq!(
            end(&["HTTP/1.1 200 OK\r\nContent-", "Length: 3\r\n\r\na", "bc"]),
            Some(41)
        );
        assert_eq!(end(&["HTTP/1.1 202 Accepted\r\n\r\n"]), Some(25));
    }

    #[test]
    fn response_in_chunks_ends_with_an_empty_one() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(
            end(&[head, "a\r\n0123456789\r\n", "1\r", "\nx\r\n0\r\n", "\r\n"]),
            Some(head.len() + 26)
        );
    }

    #[test]
    fn request_has_its_headers_and_its_length() {
        let address = Address {
            port: 1,
            token: "t".to_owned(),
            session: Some("s".to_owned()),
        };
        let request = String::from_utf8(address.post(&json!({"a": "ü"}))).unwrap();
        let head = request.split("\r\n\r\n").next().unwrap();
        assert_eq!(header(head, "content-length"), Some("10"));
        assert_eq!(header(head, "mcp-session-id"), Some("s"));
        assert!(request.ends_with("\r\n\r\n{\"a\":\"ü\"}"));
    }
}

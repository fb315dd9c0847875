//! A small browser for the tests: plain requests, and a WebSocket.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "only tests use it, and they fail by panicking"
)]

use alongside_core::Secret;
use alongside_page::{Config, Incoming, Outgoing, PageServer, View};
use futures_util::{SinkExt, StreamExt};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

pub(crate) async fn echo(mut incoming: Incoming, mut outgoing: Outgoing) {
    while let Some(text) = incoming.next().await {
        if outgoing.send(format!("echo {text}")).await.is_err() {
            return;
        }
    }
}

pub(crate) async fn server() -> PageServer {
    PageServer::bind(Config::default(), echo).await.unwrap()
}

/// The key in a login link.
pub(crate) fn key(link: &str) -> &str {
    let key = link.split_once("/#key=").unwrap().1;
    key.split('&').next().unwrap()
}

pub(crate) fn link(server: &PageServer) -> String {
    server.login_links().create(View::Reviews).unwrap()
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// Body size in bytes.
    pub(crate) length: usize,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

pub(crate) async fn get(port: u16, path: &str, headers: &[(&str, &str)]) -> Response {
    request(port, "GET", path, headers).await
}

/// Sends exactly these headers, and the right `host` unless it is overridden.
pub(crate) async fn request(port: u16, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        head += &format!("host: 127.0.0.1:{port}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // A client over the limit may be disconnected while it reads.
    let _ = stream.read_to_end(&mut bytes).await;
    let end = bytes
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .expect("a whole head");
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = text.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let body = &bytes[end + 4..];
    Response {
        status,
        headers: headers.collect(),
        body: String::from_utf8_lossy(body).into_owned(),
        length: body.len(),
    }
}

/// What a page that knows a secret sends, computed without the code of the server.
pub(crate) fn proof(secret: &str, side: &str, host: &str, nonces: [&str; 2]) -> String {
    let message = ["alongside page 1", side, host, nonces[0], nonces[1]].join("\n");
    let mut hmac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    hmac.update(message.as_bytes());
    let bytes = Secret::from_bytes(hmac.finalize().into_bytes().into());
    bytes.reveal().to_owned()
}

/// Uses a login link; returns the session's secret.
pub(crate) async fn log_in(server: &PageServer) -> String {
    let (_, session) = Page::log_in(server.port(), key(&link(server))).await.unwrap();
    session.unwrap()
}

/// A page with its WebSocket.
pub(crate) struct Page(WebSocketStream<TcpStream>);

/// The status of the response, or the code with which the server closed the WebSocket.
pub(crate) type Refused = u16;

impl Page {
    /// A logged-in page.
    pub(crate) async fn open(port: u16, session: &str) -> Result<Self, Refused> {
        Ok(Self::log_in(port, session).await?.0)
    }

    /// Logs in with a session's secret or the key of a link. Returns the secret that the server sent for a key.
    pub(crate) async fn log_in(port: u16, secret: &str) -> Result<(Self, Option<String>), Refused> {
        let (page, welcome) = Self::log_in_with(port, |host, nonce| {
            let own = "5".repeat(64);
            let proof = proof(secret, "page", host, [nonce, &own]);
            json!({"nonce": own, "proof": proof}).to_string()
        })
        .await?;
        let host = format!("127.0.0.1:{port}");
        let nonces = [welcome["challenge"].as_str().unwrap(), &"5".repeat(64)];
        let expected = proof(secret, "companion", &host, nonces);
        assert_eq!(welcome["proof"], expected, "the server knows the secret too");
        Ok((page, welcome["session"].as_str().map(str::to_owned)))
    }

    /// Answers the server's challenge as told; returns its last message, and the challenge.
    pub(crate) async fn log_in_with(
        port: u16,
        answer: impl FnOnce(&str, &str) -> String,
    ) -> Result<(Self, Value), Refused> {
        let mut page = Self::connect(port, Some(&format!("http://127.0.0.1:{port}"))).await?;
        let challenge: Value = serde_json::from_str(&page.next().await?).unwrap();
        let nonce = challenge["nonce"].as_str().unwrap().to_owned();
        assert_eq!(nonce.len(), 64);
        page.send(&answer(&format!("127.0.0.1:{port}"), &nonce)).await;
        let mut welcome: Value = serde_json::from_str(&page.next().await?).unwrap();
        welcome["challenge"] = nonce.into();
        Ok((page, welcome))
    }

    /// A WebSocket without a login. Fails with the status of the response.
    pub(crate) async fn connect(port: u16, origin: Option<&str>) -> Result<Self, Refused> {
        let mut request = format!("ws://127.0.0.1:{port}/front").into_client_request().unwrap();
        if let Some(origin) = origin {
            let origin = HeaderValue::from_str(origin).unwrap();
            request.headers_mut().insert("origin", origin);
        }
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        match client_async(request, stream).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn send(&mut self, text: &str) {
        // The server may have disconnected.
        let _ = self.0.send(Message::text(text)).await;
    }

    /// Closes the WebSocket and waits until the server has noticed.
    pub(crate) async fn close(&mut self) {
        let _ = self.0.close(None).await;
        while self.0.next().await.is_some_and(|message| message.is_ok()) {}
    }

    /// The next message; `None` once the server has disconnected.
    pub(crate) async fn receive(&mut self) -> Option<String> {
        self.next().await.ok()
    }

    /// The next message, or the code with which the server closed the WebSocket; 0 if it did not say.
    pub(crate) async fn next(&mut self) -> Result<String, Refused> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(Some(frame)))) => return Err(frame.code.into()),
                _ => return Err(0),
            }
        }
    }
}

//! A small browser for the tests: plain requests, and a WebSocket.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "only tests use it, and they fail by panicking"
)]

use std::time::Duration;

use alongside_page::{Config, Incoming, Outgoing, PageServer};
use futures_util::{SinkExt, StreamExt};
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

/// The secret in a login link.
pub(crate) fn key(link: &str) -> &str {
    link.split_once("/login?key=").unwrap().1
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

/// Follows a login link; returns the `cookie` header.
pub(crate) async fn log_in(server: &PageServer) -> String {
    let link = server.login_links().create().unwrap();
    let (_, path) = link.split_at(link.find("/login").unwrap());
    let response = get(server.port(), path, &[]).await;
    let cookie = response.header("set-cookie").unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

/// A page with its WebSocket.
pub(crate) struct Page(WebSocketStream<TcpStream>);

impl Page {
    pub(crate) async fn open(port: u16, cookie: &str) -> Result<Self, u16> {
        Self::open_with(port, Some(cookie), Some(&format!("http://127.0.0.1:{port}"))).await
    }

    /// Fails with the status of the response.
    pub(crate) async fn open_with(port: u16, cookie: Option<&str>, origin: Option<&str>) -> Result<Self, u16> {
        let mut request = format!("ws://127.0.0.1:{port}/front").into_client_request().unwrap();
        for (name, value) in [("cookie", cookie), ("origin", origin)] {
            if let Some(value) = value {
                request
                    .headers_mut()
                    .insert(name, HeaderValue::from_str(value).unwrap());
            }
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

    /// The next message; `None` once the server has disconnected.
    pub(crate) async fn receive(&mut self) -> Option<String> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Some(text.as_str().to_owned()),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return None,
            }
        }
    }

    /// The close code of the server.
    pub(crate) async fn receive_close(&mut self) -> Option<u16> {
        let next = tokio::time::timeout(Duration::from_secs(5), self.0.next()).await;
        match next {
            Ok(Some(Ok(Message::Close(Some(frame))))) => Some(frame.code.into()),
            _ => None,
        }
    }
}

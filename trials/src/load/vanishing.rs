//! Clients that are gone before they are done.

use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::program::Endpoints;

/// How many are there at the same time.
const AT_ONCE: usize = 32;

/// Lets clients come and vanish in several ways. Returns how many were let in.
pub(crate) async fn vanish(endpoints: &Endpoints, count: usize) -> usize {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut clients = JoinSet::new();
    for number in 0..count {
        let place = places.clone().acquire_owned().await;
        let endpoints = endpoints.clone();
        clients.spawn(async move {
            let _place = place;
            come_and_go(&endpoints, number).await.is_some()
        });
    }
    clients.join_all().await.into_iter().filter(|came| *came).count()
}

/// `None` if it was not even connected.
async fn come_and_go(endpoints: &Endpoints, number: usize) -> Option<()> {
    let (port, token) = (endpoints.port, endpoints.token());
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let head = |method: &str, more: &str| {
        format!("{method} /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n{more}\r\n")
    };
    let client = json!({"name": "vanishing-client", "version": number.to_string()});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string();
    let length = body.len();
    let accept = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n";
    match number % 4 {
        // Says nothing, or half of something.
        0 => {}
        1 => stream.write_all(head("POST", "Content-Le").as_bytes()).await.ok()?,
        // Starts a session, opens its event stream and is gone.
        _ => {
            let initialize = head("POST", &format!("{accept}Content-Length: {length}\r\n"));
            stream.write_all(format!("{initialize}{body}").as_bytes()).await.ok()?;
            let mut response = vec![0; 2048];
            let count = stream.read(&mut response).await.ok()?;
            let response = String::from_utf8_lossy(&response[..count]).into_owned();
            let session = response
                .lines()
                .find_map(|line| line.strip_prefix("mcp-session-id: "))?;
            let get = head(
                "GET",
                &format!("Accept: text/event-stream\r\nMcp-Session-Id: {session}\r\n"),
            );
            stream.write_all(get.as_bytes()).await.ok()?;
            let mut event = [0; 256];
            let _ = stream.read(&mut event).await.ok()?;
        }
    }
    Some(())
}

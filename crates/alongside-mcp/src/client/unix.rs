//! An MCP client on a socket in the file system, as Copilot CLI is.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use alongside_core::Secret;
use alongside_core::dialect::ClientInfo;
use alongside_wire::rpc;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::{ClientError, MAX_MESSAGE_BYTES, unsendable};
use crate::protocol::PROTOCOL_VERSIONS;

/// A client without an event stream. Each request has its own connection.
#[derive(Debug)]
pub struct UnixClient {
    path: PathBuf,
    token: Secret,
    session: String,
    next_request: AtomicU64,
}

impl UnixClient {
    pub fn new(path: &Path, token: &Secret, session: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            token: token.clone(),
            session: session.into(),
            next_request: AtomicU64::new(0),
        }
    }

    pub async fn initialize(&self, client: &ClientInfo) -> Result<Value, ClientError> {
        let params = json!({"protocolVersion": PROTOCOL_VERSIONS[0], "capabilities": {}, "clientInfo": client});
        self.request("initialize", params).await
    }

    /// Sends a request and waits for its result, however long that takes.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, ClientError> {
        let id = self.next_request.fetch_add(1, Ordering::Relaxed);
        let body = rpc::request(id, method, Some(&params)).map_err(unsendable)?;
        let mut response: Value = serde_json::from_slice(&self.post(&body).await?)
            .map_err(|_| ClientError::NotMcp(format!("non-JSON response to {method}")))?;
        match response.get("error") {
            Some(error) => Err(ClientError::Rpc {
                code: error["code"].as_i64().unwrap_or_default(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
            }),
            None => Ok(response["result"].take()),
        }
    }

    async fn post(&self, body: &str) -> Result<Vec<u8>, ClientError> {
        let lost = |error: std::io::Error| ClientError::Disconnected(error.to_string());
        let stream = UnixStream::connect(&self.path).await;
        let stream = stream.map_err(|source| ClientError::Refused {
            address: self.path.display().to_string(),
            source,
        })?;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nAuthorization: Nonce {}\r\nX-Copilot-Session-Id: {}\r\n\
             Content-Length: {}\r\n\r\n",
            self.token.reveal(),
            self.session,
            body.len()
        );
        let mut stream = BufReader::new(stream);
        stream.write_all(head.as_bytes()).await.map_err(lost)?;
        stream.write_all(body.as_bytes()).await.map_err(lost)?;
        let (mut status, mut length) = (None, 0);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.map_err(lost)?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            status = status.or_else(|| line.split(' ').nth(1)?.parse::<u16>().ok());
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut content = Vec::new();
        let limit = u64::try_from(MAX_MESSAGE_BYTES).unwrap_or(u64::MAX).min(length);
        stream.take(limit).read_to_end(&mut content).await.map_err(lost)?;
        let sentence = || String::from_utf8_lossy(&content).into_owned();
        match status {
            Some(200) => Ok(content),
            Some(401) => Err(ClientError::Unauthorized { sentence: sentence() }),
            Some(status) => Err(ClientError::Status {
                status,
                sentence: sentence(),
            }),
            None => Err(ClientError::NotMcp("the response is not HTTP".to_owned())),
        }
    }
}

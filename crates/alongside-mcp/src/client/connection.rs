//! Connections to one server, kept for the next request.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpStream;

use super::error::ClientError;

/// How many bytes of an answer that is an error are read.
const LONGEST_SENTENCE: usize = 4096;

/// A connection to send a request on.
pub(super) type Connection = SendRequest<Full<Bytes>>;

/// Where to connect to, as whom, and the connections that wait for work.
pub(super) struct Connections {
    host: String,
    port: u16,
    host_header: HeaderValue,
    authorization: HeaderValue,
    idle: Mutex<Vec<Connection>>,
}

impl Connections {
    pub(super) fn new(host: &str, port: u16, token: &str) -> Result<Self, ClientError> {
        let address = if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        };
        let host_header =
            HeaderValue::from_str(&address).map_err(|_| ClientError::Unsendable("the name of the host".to_owned()))?;
        let mut authorization = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| ClientError::Unsendable("the token".to_owned()))?;
        authorization.set_sensitive(true);
        Ok(Self {
            host: host.to_owned(),
            port,
            host_header,
            authorization,
            idle: Mutex::default(),
        })
    }

    /// Connects ahead of the first request.
    pub(super) async fn warm_up(&self) -> Result<(), ClientError> {
        let connection = self.open().await?;
        self.give_back(connection);
        Ok(())
    }

    /// A request with the headers that all of them have.
    pub(super) fn request(&self, method: Method, body: String) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header(HOST, &self.host_header)
            .header(AUTHORIZATION, &self.authorization);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        request
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| ClientError::Unsendable(error.to_string()))
    }

    /// Sends a request; the connection is to be given back when the answer was read.
    ///
    /// A connection that was kept may have died with its server, which shows only when it is used. Then another one is
    /// tried, as every HTTP client does; a server that had answered anything would not be asked twice.
    pub(super) async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Connection), ClientError> {
        while let Some(mut connection) = self.take_idle().await {
            match connection.send_request(request.clone()).await {
                Ok(response) => return Ok((response, connection)),
                Err(error) if error.is_incomplete_message() || error.is_canceled() || error.is_closed() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut connection = self.open().await?;
        let response = connection.send_request(request).await?;
        Ok((response, connection))
    }

    /// Keeps a connection whose answer was read.
    pub(super) fn give_back(&self, connection: Connection) {
        if !connection.is_closed() {
            self.idle.lock().push(connection);
        }
    }

    async fn take_idle(&self) -> Option<Connection> {
        loop {
            let mut connection = self.idle.lock().pop()?;
            // It was given back with its answer read, so it is ready at once or never again.
            if connection.ready().await.is_ok() {
                return Some(connection);
            }
        }
    }

    async fn open(&self) -> Result<Connection, ClientError> {
        let connected = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = connected
            .and_then(|stream| stream.set_nodelay(true).map(|()| stream))
            .map_err(|source| ClientError::Refused {
                address: format!("{}:{}", self.host, self.port),
                source,
            })?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "lost a connection to the companion");
            }
        });
        Ok(sender)
    }
}

/// Turns an answer that is not a success into an error.
pub(super) async fn successful(response: Response<Incoming>) -> Result<Response<Incoming>, ClientError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let body = Limited::new(response.into_body(), LONGEST_SENTENCE).collect().await;
    let text = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let sentence = sentence(&String::from_utf8_lossy(&text));
    Err(match status {
        StatusCode::UNAUTHORIZED => ClientError::Unauthorised { sentence },
        StatusCode::FORBIDDEN => ClientError::Forbidden { sentence },
        status => ClientError::Status {
            status: status.as_u16(),
            sentence,
        },
    })
}

/// What an error says: `{"error": "…"}`, a JSON-RPC error, or plain text.
fn sentence(text: &str) -> String {
    let json: Value = serde_json::from_str(text).unwrap_or_default();
    let error = &json["error"];
    let sentence = error.as_str().or_else(|| error["message"].as_str()).unwrap_or(text);
    sentence.trim().chars().take(300).collect()
}

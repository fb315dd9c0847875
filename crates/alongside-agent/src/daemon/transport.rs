//! HTTP to one daemon: its headers, timeouts and limits. Responses are read as JSON.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use alongside_wire::http::{Connect, HttpClient, HttpError, HttpResponse};
use bytes::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::address::DaemonAddress;
use super::client::ClientSettings;
use super::error::{DaemonError, ErrorResponse};
use super::tls::Tls;
use alongside_core::Secret;

/// Short, because the daemon is on this machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A loaded session may have a dozen megabytes.
const MAX_RESPONSE_BYTES: usize = 128 * 1024 * 1024;

const MAX_ERROR_BYTES: usize = 64 * 1024;

const CLIENT_ID: HeaderName = HeaderName::from_static("x-qwen-client-id");

/// The daemon's address and token, and the connections to it.
pub(super) struct Transport {
    http: HttpClient<Connector>,
    host: HeaderValue,
    token: Option<Secret>,
    authorization: Option<HeaderValue>,
    timeout: Duration,
}

/// Connects to the daemon, and only on this machine.
struct Connector {
    address: DaemonAddress,
    /// Present for an https address.
    tls: Option<Tls>,
}

pub(super) enum Body {
    Empty,
    Json(Value),
    File { mime_type: String, content: Bytes },
}

pub(super) struct Call<'a> {
    pub(super) method: Method,
    /// Path and query, with everything in them encoded.
    pub(super) path: String,
    pub(super) client_id: Option<&'a str>,
    pub(super) body: Body,
    pub(super) headers: Vec<(HeaderName, String)>,
}

impl<'a> Call<'a> {
    pub(super) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            client_id: None,
            body: Body::Empty,
            headers: Vec::new(),
        }
    }

    pub(super) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(super) fn post(path: impl Into<String>, body: Value) -> Self {
        Self {
            body: Body::Json(body),
            ..Self::new(Method::POST, path)
        }
    }

    pub(super) fn client(mut self, id: Option<&'a str>) -> Self {
        self.client_id = id;
        self
    }

    pub(super) fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

impl Transport {
    pub(super) fn new(
        address: DaemonAddress,
        token: Option<Secret>,
        settings: &ClientSettings,
    ) -> Result<Self, DaemonError> {
        let tls = address
            .is_secure()
            .then(|| Tls::new(&address, settings.ca_file.as_deref()));
        let host =
            HeaderValue::from_str(&address.authority()).map_err(|_| DaemonError::Unsendable("the name of the host"))?;
        let authorization = token.as_ref().map(|token| {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.reveal()))
                .map_err(|_| DaemonError::Unsendable("the token"))?;
            value.set_sensitive(true);
            Ok::<_, DaemonError>(value)
        });
        Ok(Self {
            http: HttpClient::new(Connector {
                address,
                tls: tls.transpose()?,
            }),
            host,
            authorization: authorization.transpose()?,
            token,
            timeout: settings.timeout,
        })
    }

    pub(super) fn address(&self) -> &DaemonAddress {
        &self.http.connector().address
    }

    /// Sends a request and reads the response as JSON; a response without a body is null.
    pub(super) async fn json<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, DaemonError> {
        let work = async {
            let response = self.successful(call).await?;
            let body = response.read(MAX_RESPONSE_BYTES).await;
            let body = body.map_err(|error| DaemonError::Lost(error.to_string()))?;
            let body: &[u8] = if body.is_empty() { b"null" } else { &body };
            serde_json::from_slice(body).map_err(|error| self.not_a_daemon(&error.to_string()))
        };
        self.within(work).await
    }

    /// Sends a request and reads the response as it is.
    pub(super) async fn bytes(&self, call: Call<'_>, limit: usize) -> Result<Bytes, DaemonError> {
        let work = async {
            let response = self.successful(call).await?;
            let body = response.read(limit).await;
            body.map_err(|error| DaemonError::Lost(error.to_string()))
        };
        self.within(work).await
    }

    /// Sends a request for an event stream. Only the head of the response has a time limit.
    pub(super) async fn stream(&self, call: Call<'_>) -> Result<HttpResponse, DaemonError> {
        self.within(async {
            let response = self.successful(call).await?;
            if response.is_event_stream() {
                Ok(response)
            } else {
                Err(self.not_a_daemon("its events are not text/event-stream"))
            }
        })
        .await
    }

    async fn successful(&self, call: Call<'_>) -> Result<HttpResponse, DaemonError> {
        let sent = self.http.send(self.request(call)?).await;
        let response = sent.map_err(|error| match error {
            HttpError::Connect(error) => error,
            HttpError::Lost(error) => DaemonError::Lost(error.to_string()),
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok());
        let retry_after = retry_after
            .and_then(|value| value.trim().parse().ok())
            .map(Duration::from_secs);
        let body = response.read(MAX_ERROR_BYTES).await.unwrap_or_default();
        let mut response = ErrorResponse::read(status.as_u16(), retry_after, &body);
        response.message = self.without_token(&response.message);
        Err(Box::new(response).into())
    }

    fn request(&self, call: Call<'_>) -> Result<Request<Bytes>, DaemonError> {
        let mut request = Request::builder()
            .method(call.method)
            .uri(self.address().path(&call.path))
            .header(HOST, &self.host);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some(id) = call.client_id {
            request = request.header(CLIENT_ID, id);
        }
        if call.headers.iter().all(|(name, _)| *name != ACCEPT) {
            request = request.header(ACCEPT, "application/json");
        }
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        let body = match call.body {
            Body::Json(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                Bytes::from(body.to_string())
            }
            Body::File { mime_type, content } => {
                request = request.header(CONTENT_TYPE, mime_type);
                content
            }
            Body::Empty => Bytes::new(),
        };
        request
            .body(body)
            .map_err(|_| DaemonError::Unsendable("the path or a header contains characters that HTTP does not allow"))
    }

    async fn within<T>(&self, work: impl Future<Output = Result<T, DaemonError>>) -> Result<T, DaemonError> {
        match tokio::time::timeout(self.timeout, work).await {
            Ok(result) => result,
            Err(_) => Err(DaemonError::Timeout(self.timeout)),
        }
    }

    fn not_a_daemon(&self, reason: &str) -> DaemonError {
        DaemonError::NotADaemon(self.without_token(reason))
    }

    fn without_token(&self, text: &str) -> String {
        self.token
            .as_ref()
            .map_or_else(|| text.to_owned(), |token| token.redact(text))
    }
}

/// A connection, with or without TLS.
trait Stream: AsyncRead + AsyncWrite + Send {}

impl<S: AsyncRead + AsyncWrite + Send> Stream for S {}

impl Connect for Connector {
    type Stream = Pin<Box<dyn Stream>>;
    type Error = DaemonError;

    async fn connect(&self) -> Result<Self::Stream, DaemonError> {
        let unreachable = |source| DaemonError::Unreachable {
            address: self.address.to_string(),
            source,
        };
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, async {
            let stream = self.connect_tcp().await.map_err(unreachable)?;
            Ok(match &self.tls {
                Some(tls) => Box::pin(tls.connect(stream).await?) as Self::Stream,
                None => Box::pin(stream),
            })
        });
        connected
            .await
            .unwrap_or_else(|_| Err(unreachable(io::ErrorKind::TimedOut.into())))
    }
}

impl Connector {
    async fn connect_tcp(&self) -> io::Result<TcpStream> {
        let found = tokio::net::lookup_host((self.address.host(), self.address.port())).await?;
        // The system may resolve "localhost" to any address; the token must stay on this machine.
        let here: Vec<SocketAddr> = found.filter(|address| address.ip().is_loopback()).collect();
        let stream = TcpStream::connect(here.as_slice()).await?;
        // Small requests must not wait for the acknowledgement of earlier ones.
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Percent-encodes a string for use as one segment of a path or query.
pub(super) fn encoded(text: &str) -> String {
    use std::fmt::Write;

    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    // Dots alone would be a step up.
    if matches!(encoded.as_str(), "." | "..") {
        encoded = encoded.replace('.', "%2E");
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_stays_one_segment_of_a_path() {
        assert_eq!(encoded("550e8400-e29b"), "550e8400-e29b");
        assert_eq!(encoded("../a b?c#d/é"), "..%2Fa%20b%3Fc%23d%2F%C3%A9");
        assert_eq!(encoded(".."), "%2E%2E");
    }
}

//! HTTP to one daemon: connections kept for the next request, limits on time and size, answers read as JSON.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::address::DaemonAddress;
use super::client::ClientSettings;
use super::error::{DaemonError, Refusal};
use super::tls::Tls;
use alongside_core::Secret;

/// How long a connection may take to come about. The daemon is on this machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest answer that is read; a loaded session may be a dozen megabytes.
const LONGEST_ANSWER: usize = 128 * 1024 * 1024;

/// How many bytes of an answer that is an error are read.
const LONGEST_REFUSAL: usize = 64 * 1024;

/// Connections that wait for work beyond this number are closed.
const MOST_IDLE: usize = 4;

const CLIENT_ID: HeaderName = HeaderName::from_static("x-qwen-client-id");

/// A connection to send a request on.
pub(super) type Connection = SendRequest<Full<Bytes>>;

/// Where to connect to, as whom, and the connections that wait for work.
pub(super) struct Transport {
    address: DaemonAddress,
    host: HeaderValue,
    token: Option<Secret>,
    authorization: Option<HeaderValue>,
    /// How to speak TLS, if the address wants that.
    tls: Option<Tls>,
    timeout: Duration,
    idle: Mutex<Vec<Connection>>,
}

/// One request.
pub(super) struct Call<'a> {
    pub(super) method: Method,
    /// Path and query, with everything in them encoded.
    pub(super) path: String,
    pub(super) client_id: Option<&'a str>,
    pub(super) body: Option<Value>,
    pub(super) headers: Vec<(HeaderName, String)>,
}

impl<'a> Call<'a> {
    pub(super) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            client_id: None,
            body: None,
            headers: Vec::new(),
        }
    }

    pub(super) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(super) fn post(path: impl Into<String>, body: Value) -> Self {
        Self {
            body: Some(body),
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
            address,
            host,
            authorization: authorization.transpose()?,
            token,
            tls: tls.transpose()?,
            timeout: settings.timeout,
            idle: Mutex::default(),
        })
    }

    pub(super) fn address(&self) -> &DaemonAddress {
        &self.address
    }

    /// Sends a request and reads the answer as JSON; an answer without a body is null.
    pub(super) async fn json<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, DaemonError> {
        let work = async {
            let (response, connection) = self.successful(call).await?;
            let body = Limited::new(response.into_body(), LONGEST_ANSWER).collect().await;
            let body = body.map_err(|error| DaemonError::Lost(error.to_string()))?.to_bytes();
            self.give_back(connection);
            let body: &[u8] = if body.is_empty() { b"null" } else { &body };
            serde_json::from_slice(body).map_err(|error| self.not_a_daemon(&error.to_string()))
        };
        self.within(work).await
    }

    /// Sends a request whose answer has no end. Only the head of the answer has a limit in time.
    pub(super) async fn stream(&self, call: Call<'_>) -> Result<(Response<Incoming>, Connection), DaemonError> {
        self.within(async {
            let (response, connection) = self.successful(call).await?;
            let content_type = response
                .headers()
                .get(CONTENT_TYPE)
                .and_then(|value| value.to_str().ok());
            if content_type.is_some_and(|value| value.to_ascii_lowercase().starts_with("text/event-stream")) {
                Ok((response, connection))
            } else {
                Err(self.not_a_daemon("its events are not text/event-stream"))
            }
        })
        .await
    }

    async fn successful(&self, call: Call<'_>) -> Result<(Response<Incoming>, Connection), DaemonError> {
        let (response, connection) = self.send(self.request(call)?).await?;
        let status = response.status();
        if status.is_success() {
            return Ok((response, connection));
        }
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok());
        let retry_after = retry_after
            .and_then(|value| value.trim().parse().ok())
            .map(Duration::from_secs);
        let body = Limited::new(response.into_body(), LONGEST_REFUSAL).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        self.give_back(connection);
        let mut refusal = Refusal::read(status.as_u16(), retry_after, &body);
        refusal.message = self.without_token(&refusal.message);
        Err(Box::new(refusal).into())
    }

    fn request(&self, call: Call<'_>) -> Result<Request<Full<Bytes>>, DaemonError> {
        let mut request = Request::builder()
            .method(call.method)
            .uri(self.address.path(&call.path))
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
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        request
            .body(Full::new(body))
            .map_err(|_| DaemonError::Unsendable("the path or a header contains characters that HTTP does not allow"))
    }

    async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<(Response<Incoming>, Connection), DaemonError> {
        loop {
            let (mut connection, is_new) = match self.take_idle().await {
                Some(connection) => (connection, false),
                // In a box: what TLS needs would make every request that much larger.
                None => (Box::pin(self.open()).await?, true),
            };
            match connection.try_send_request(request).await {
                Ok(response) => return Ok((response, connection)),
                // The daemon may have closed an idle connection; if nothing was sent, another one will do.
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !is_new => request = unsent,
                    _ => return Err(DaemonError::Lost(error.into_error().to_string())),
                },
            }
        }
    }

    /// Keeps a connection whose answer was read.
    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock();
        if !connection.is_closed() && idle.len() < MOST_IDLE {
            idle.push(connection);
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

    async fn open(&self) -> Result<Connection, DaemonError> {
        let unreachable = |source| DaemonError::Unreachable {
            address: self.address.to_string(),
            source,
        };
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, async {
            let stream = self.connect().await.map_err(unreachable)?;
            match &self.tls {
                Some(tls) => shake_hands(tls.connect(stream).await?).await,
                None => shake_hands(stream).await,
            }
        });
        opened
            .await
            .unwrap_or_else(|_| Err(unreachable(io::ErrorKind::TimedOut.into())))
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let found = tokio::net::lookup_host((self.address.host(), self.address.port())).await?;
        // "localhost" leads wherever the system says; the token must not.
        let here: Vec<SocketAddr> = found.filter(|address| address.ip().is_loopback()).collect();
        let stream = TcpStream::connect(here.as_slice()).await?;
        // Small requests must not wait for the acknowledgement of the ones before.
        stream.set_nodelay(true)?;
        Ok(stream)
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

/// Begins to speak HTTP on a connection.
async fn shake_hands<Stream>(stream: Stream) -> Result<Connection, DaemonError>
where
    Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = handshake.map_err(|error| DaemonError::Lost(error.to_string()))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "lost a connection to the daemon");
        }
    });
    Ok(sender)
}

/// Encodes a text so that it is one part of a path or of a query.
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
    // A path of dots alone would be taken for a step up.
    if matches!(encoded.as_str(), "." | "..") {
        encoded = encoded.replace('.', "%2E");
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_stays_one_part_of_a_path() {
        assert_eq!(encoded("550e8400-e29b"), "550e8400-e29b");
        assert_eq!(encoded("../a b?c#d/é"), "..%2Fa%20b%3Fc%23d%2F%C3%A9");
        assert_eq!(encoded(".."), "%2E%2E");
    }
}

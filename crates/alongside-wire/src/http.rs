//! An HTTP/1 client for one server on this machine.
//!
//! Connections are kept for the next request. A kept connection may have been closed by the server; then another one is used, but
//! only if the request was demonstrably not sent: hyper returns a request that it has not begun to write. In every other case the
//! request may have been carried out, and the caller gets the error. An `openDiff` must not open two reviews.
//!
//! hyper-util's client has the same rule for retries. It is not used because it reports what a connector says as an opaque error,
//! where our callers tell a refused connection from a certificate that is not trusted, because it races connections that are never
//! needed against kept ones, and because it needs four crates more than this file does.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::CONTENT_TYPE;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};

/// More kept connections than this are closed.
const MAX_IDLE_CONNECTIONS: usize = 4;

type Connection = SendRequest<Full<Bytes>>;
type Idle = Arc<Mutex<Vec<Connection>>>;

/// How to connect to the server: plain TCP, or TLS over it.
pub trait Connect: Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    type Error;

    fn connect(&self) -> impl Future<Output = Result<Self::Stream, Self::Error>> + Send;
}

/// The client. It sets no headers and no timeouts: both differ between servers.
#[derive(Debug)]
pub struct HttpClient<C> {
    connector: C,
    idle: Idle,
}

#[derive(Debug, thiserror::Error)]
pub enum HttpError<E> {
    /// There is no connection; nothing was sent.
    #[error("cannot connect: {0}")]
    Connect(E),
    /// The connection was lost. The server may have carried the request out.
    #[error("lost the connection: {0}")]
    Lost(hyper::Error),
}

#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error("the response is longer than {0} bytes")]
    TooLarge(usize),
    #[error("lost the connection: {0}")]
    Lost(hyper::Error),
}

impl<C: Connect> HttpClient<C> {
    pub fn new(connector: C) -> Self {
        Self {
            connector,
            idle: Idle::default(),
        }
    }

    pub fn connector(&self) -> &C {
        &self.connector
    }

    /// Connects ahead of the first request.
    pub async fn warm_up(&self) -> Result<(), HttpError<C::Error>> {
        let connection = self.open().await?;
        give_back(&self.idle, connection);
        Ok(())
    }

    /// Sends a request and waits for the head of its response.
    pub async fn send(&self, request: Request<Bytes>) -> Result<HttpResponse, HttpError<C::Error>> {
        let mut request = request.map(Full::new);
        loop {
            let (mut connection, is_new) = match self.take_idle().await {
                Some(connection) => (connection, false),
                // Boxed: what TLS needs would make every request that much larger.
                None => (Box::pin(self.open()).await?, true),
            };
            match connection.try_send_request(request).await {
                Ok(response) => {
                    return Ok(HttpResponse {
                        response,
                        connection,
                        idle: Arc::clone(&self.idle),
                    });
                }
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !is_new => request = unsent,
                    _ => return Err(HttpError::Lost(error.into_error())),
                },
            }
        }
    }

    async fn take_idle(&self) -> Option<Connection> {
        loop {
            let mut connection = self.idle.lock().pop()?;
            // Lets the runtime look at the sockets first: a server that was stopped since the last request is noticed before
            // anything is written, also if the runtime had no chance to do so until now.
            tokio::task::yield_now().await;
            // Its last response was read completely, so it is ready at once or never again.
            if connection.ready().await.is_ok() {
                return Some(connection);
            }
        }
    }

    async fn open(&self) -> Result<Connection, HttpError<C::Error>> {
        let stream = self.connector.connect().await.map_err(HttpError::Connect)?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(HttpError::Lost)?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "lost a connection");
            }
        });
        Ok(sender)
    }
}

fn give_back(idle: &Mutex<Vec<Connection>>, connection: Connection) {
    let mut idle = idle.lock();
    if !connection.is_closed() && idle.len() < MAX_IDLE_CONNECTIONS {
        idle.push(connection);
    }
}

/// The head of a response; the body is still to come.
#[derive(Debug)]
pub struct HttpResponse {
    response: Response<Incoming>,
    connection: Connection,
    idle: Idle,
}

impl HttpResponse {
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    pub fn is_event_stream(&self) -> bool {
        let content_type = self.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        content_type.is_some_and(|value| value.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
    }

    /// Reads a body of up to `limit` bytes, and keeps the connection for the next request.
    pub async fn read(self, limit: usize) -> Result<Bytes, BodyError> {
        let Self {
            response,
            connection,
            idle,
        } = self;
        let body = Limited::new(response.into_body(), limit).collect().await;
        let body = body.map_err(|error| match error.downcast::<hyper::Error>() {
            Ok(error) => BodyError::Lost(*error),
            Err(other) => {
                debug_assert!(other.is::<LengthLimitError>(), "{other}");
                BodyError::TooLarge(limit)
            }
        })?;
        give_back(&idle, connection);
        Ok(body.to_bytes())
    }

    /// The body in chunks, for one that does not end.
    pub fn into_chunks(self) -> BodyChunks {
        BodyChunks {
            body: self.response.into_body(),
            _connection: self.connection,
        }
    }
}

/// A body as it comes. It has its connection to itself and closes it when dropped.
#[derive(Debug)]
pub struct BodyChunks {
    body: Incoming,
    _connection: Connection,
}

impl BodyChunks {
    /// The next chunk; `None` after the last one. Dropping this while it waits loses nothing.
    pub async fn next(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        let frame = self.body.frame().await?;
        Some(frame.map(|frame| frame.into_data().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    struct ToPort(u16);

    impl Connect for ToPort {
        type Stream = TcpStream;
        type Error = io::Error;

        async fn connect(&self) -> io::Result<TcpStream> {
            TcpStream::connect(("127.0.0.1", self.0)).await
        }
    }

    /// What a server does with the requests on one connection, one after the other. After the last it closes.
    type Script = &'static [&'static str];

    const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

    /// A server whose connections follow scripts. Returns every request line that it read.
    async fn server(scripts: &'static [Script]) -> (HttpClient<ToPort>, Arc<Mutex<Vec<String>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = HttpClient::new(ToPort(listener.local_addr().unwrap().port()));
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let requests = Arc::clone(&seen);
        tokio::spawn(async move {
            for script in scripts {
                let (mut stream, _) = listener.accept().await.unwrap();
                for response in *script {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        head.push(stream.read_u8().await.unwrap());
                    }
                    let head = String::from_utf8(head).unwrap();
                    requests.lock().push(head.lines().next().unwrap().to_owned());
                    stream.write_all(response.as_bytes()).await.unwrap();
                }
            }
        });
        (client, seen)
    }

    fn get(path: &str) -> Request<Bytes> {
        Request::get(path).body(Bytes::new()).unwrap()
    }

    async fn read(client: &HttpClient<ToPort>, path: &str) -> Result<Bytes, String> {
        let response = client.send(get(path)).await.map_err(|error| error.to_string())?;
        response.read(100).await.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn connection_is_reused() {
        let (client, seen) = server(&[&[OK, OK]]).await;
        client.warm_up().await.unwrap();
        assert_eq!(read(&client, "/a").await.unwrap(), "ok");
        assert_eq!(read(&client, "/b").await.unwrap(), "ok");
        assert_eq!(*seen.lock(), ["GET /a HTTP/1.1", "GET /b HTTP/1.1"]);
    }

    #[tokio::test]
    async fn incomplete_response_is_not_asked_for_again() {
        let (client, seen) = server(&[&[OK, "HTTP/1.1 200 OK\r\ncontent-le"], &[OK]]).await;
        read(&client, "/a").await.unwrap();
        assert!(matches!(client.send(get("/b")).await, Err(HttpError::Lost(_))));
        assert_eq!(*seen.lock(), ["GET /a HTTP/1.1", "GET /b HTTP/1.1"]);
        assert_eq!(read(&client, "/c").await.unwrap(), "ok");
    }

    #[tokio::test]
    async fn closed_idle_connection_is_replaced() {
        let (client, seen) = server(&[&[OK], &[OK]]).await;
        read(&client, "/a").await.unwrap();
        // The server closes after its script; hyper notices between the two requests.
        while client.idle.lock().iter().any(|connection| !connection.is_closed()) {
            tokio::task::yield_now().await;
        }
        assert_eq!(read(&client, "/b").await.unwrap(), "ok");
        assert_eq!(seen.lock().len(), 2);
    }

    #[tokio::test]
    async fn connection_closed_while_the_runtime_was_busy_is_replaced() {
        fn serve_one(listener: &std::net::TcpListener) -> std::net::TcpStream {
            use std::io::{Read, Write};

            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]).unwrap();
            stream.write_all(OK.as_bytes()).unwrap();
            stream
        }

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = HttpClient::new(ToPort(listener.local_addr().unwrap().port()));
        let server = std::thread::spawn(move || (serve_one(&listener), listener));
        read(&client, "/a").await.unwrap();
        // From here to the next request the only thread of the runtime does nothing else.
        let (stream, listener) = server.join().unwrap();
        drop(stream);
        let server = std::thread::spawn(move || serve_one(&listener));
        assert_eq!(read(&client, "/b").await.unwrap(), "ok");
        server.join().unwrap();
    }

    #[tokio::test]
    async fn refused_connection_is_the_connectors_error() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = HttpClient::new(ToPort(listener.local_addr().unwrap().port()));
        drop(listener);
        assert!(
            matches!(client.send(get("/")).await, Err(HttpError::Connect(error)) if error.kind() == io::ErrorKind::ConnectionRefused)
        );
    }

    #[tokio::test]
    async fn too_large_body_is_an_error() {
        let (client, _) = server(&[&[OK]]).await;
        let response = client.send(get("/")).await.unwrap();
        assert!(matches!(response.read(1).await, Err(BodyError::TooLarge(1))));
    }

    #[tokio::test]
    async fn cut_off_stream_is_not_a_clean_end() {
        let (client, _) = server(&[&[
            "HTTP/1.1 200 OK\r\ncontent-type: Text/Event-Stream\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ]])
        .await;
        let response = client.send(get("/")).await.unwrap();
        assert!(response.is_event_stream());
        let mut chunks = response.into_chunks();
        assert_eq!(chunks.next().await.unwrap().unwrap(), "abc");
        assert!(chunks.next().await.unwrap().is_err());
    }

    #[tokio::test]
    async fn idle_connections_are_limited() {
        let (client, _) = server(&[&[OK], &[OK], &[OK], &[OK], &[OK], &[OK]]).await;
        let mut responses = Vec::new();
        for _ in 0..6 {
            responses.push(client.send(get("/")).await.unwrap());
        }
        for response in responses {
            response.read(100).await.unwrap();
        }
        assert!(client.idle.lock().len() <= MAX_IDLE_CONNECTIONS);
    }
}

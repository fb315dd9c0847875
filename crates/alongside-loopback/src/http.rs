//! HTTP/1 on one connection.

use std::convert::Infallible;
use std::error::Error;
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1::{self, UpgradeableConnection};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;

use crate::self_wakes::SelfWakes;
use crate::{Closing, Stream};

/// How much of a body is read at a time, at most.
const MAX_READ_BYTES: usize = 128 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Size of a request's head.
    pub header_bytes: usize,
    /// How long a client may take to send a request's head, including the idle time before it.
    pub header_timeout: Duration,
}

/// What follows a request.
#[derive(Debug)]
pub enum Answer<B, T> {
    Response(Response<B>),
    /// The connection becomes something else.
    Takeover(T),
}

/// Responds to requests until either side closes the connection, it is upgraded, or the port closes. A response that has
/// begun is finished first.
///
/// A connection that is taken over is returned, with what takes it over, once all responses before that are written. What the client
/// has sent after the request is lost: it has to be told that the connection will be closed.
pub async fn serve_http<F, B, T>(
    stream: Stream,
    limits: HttpLimits,
    closing: &Closing,
    respond: impl Fn(Request<Incoming>) -> F,
) -> Option<(Stream, T)>
where
    F: Future<Output = Answer<B, T>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let taken = Mutex::new(None);
    let service = service_fn(|request| {
        let answer = respond(request);
        let taken = &taken;
        async move {
            match answer.await {
                Answer::Response(response) => Ok::<_, Infallible>(response),
                Answer::Takeover(by) => {
                    *taken.lock() = Some(by);
                    pending().await
                }
            }
        }
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_header_size(limits.header_bytes)
        .max_buf_size(MAX_READ_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let self_wakes = SelfWakes::new();
    // Whether it was taken over. hyper reads no request before the response to the previous one is written, unless that
    // response is empty and the request had a body that was not read. No agent sends one.
    let serve = async |connection: &mut UpgradeableConnection<_, _>| {
        poll_fn(
            |task| match self_wakes.poll(task, |task| Pin::new(&mut *connection).poll(task)) {
                Poll::Pending if taken.lock().is_some() => Poll::Ready(Ok(true)),
                polled => polled.map_ok(|()| false),
            },
        )
        .await
    };
    let ended = tokio::select! {
        ended = serve(&mut connection) => ended,
        () = closing.wait() => {
            Pin::new(&mut connection).graceful_shutdown();
            serve(&mut connection).await
        }
    };
    match ended {
        Ok(true) => {
            let stream = connection.into_parts()?.io.into_inner();
            taken.into_inner().map(|by| (stream, by))
        }
        Ok(false) => None,
        Err(error) => {
            tracing::debug!(%error, "lost a connection");
            None
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use bytes::Bytes;
    use http_body_util::Empty;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;
    use tokio::sync::watch;

    use super::*;
    use crate::stream::Socket;

    #[tokio::test]
    async fn takeover_waits_for_the_responses_before_it() {
        // More than the socket's buffer holds, and less than that and hyper's together.
        const RESPONSES: usize = 4000;
        let (mut client, server) = UnixStream::pair().unwrap();
        let stream = Stream::new(Socket::Unix(server), Duration::from_mins(1));
        let limits = HttpLimits {
            header_bytes: 1024,
            header_timeout: Duration::from_mins(1),
        };
        let (_open, closing) = watch::channel(false);
        let closing = Closing(closing);
        let serving = tokio::spawn(async move {
            let answer = async |request: Request<Incoming>| match request.uri().path() {
                "/take" => Answer::Takeover(()),
                _ => Answer::Response(Response::new(Empty::<Bytes>::new())),
            };
            let taken = serve_http(stream, limits, &closing, |request| Box::pin(answer(request))).await;
            let (mut stream, ()) = taken.expect("it is taken over");
            stream.write_all(b"taken").await.unwrap();
        });
        let requests = "GET / HTTP/1.1\r\nhost: a\r\n\r\n".repeat(RESPONSES) + "GET /take HTTP/1.1\r\nhost: a\r\n\r\n";
        client.write_all(requests.as_bytes()).await.unwrap();
        // It has answered as much as it can, and still has the connection.
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        assert!(!serving.is_finished());
        let mut responses = String::new();
        client.read_to_string(&mut responses).await.unwrap();
        assert_eq!(responses.matches("HTTP/1.1 200 OK").count(), RESPONSES);
        assert!(responses.ends_with("\r\n\r\ntaken"), "{responses}");
        serving.await.unwrap();
    }
}

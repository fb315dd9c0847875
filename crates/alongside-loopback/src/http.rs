//! HTTP/1 on one connection.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};

use crate::self_wakes::SelfWakes;
use crate::{Closing, Stream};

/// How much is read at a time. A head that does not end may become as long as this.
const MAX_READ_BYTES: usize = 128 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Size of a request's head.
    pub header_bytes: usize,
    /// How long a client may take to send a request's head, including the idle time before it.
    pub header_timeout: Duration,
}

/// Responds to requests until either side closes the connection, it is upgraded, or the port closes. A response that has
/// begun is finished first.
pub async fn serve_http<F, B>(
    stream: Stream,
    limits: HttpLimits,
    closing: &Closing,
    respond: impl Fn(Request<Incoming>) -> F,
) where
    F: Future<Output = Response<B>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let service = service_fn(|request| {
        let response = respond(request);
        async { Ok::<_, Infallible>(response.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_header_size(limits.header_bytes)
        .max_buf_size(MAX_READ_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::pin!(connection);
    let self_wakes = SelfWakes::new();
    let ended = tokio::select! {
        ended = poll_fn(|task| self_wakes.poll(task, |task| connection.as_mut().poll(task))) => ended,
        () = closing.wait() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "lost a connection");
    }
}

//! A connection whose peer must read what it is sent.
//!
//! A client that stops reading fills the system's buffers, and then its connection would stay open indefinitely, with its seat, its
//! session and everything queued for it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
#[cfg(windows)]
use tokio::net::windows::named_pipe::NamedPipeServer;
use tokio::time::{Instant, Sleep};

/// Writing fails if the peer reads nothing for a while; nothing else has a timeout.
#[derive(Debug)]
pub struct Stream {
    socket: Socket,
    write_timeout: Duration,
    /// Runs while a write waits for the peer.
    stalled: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
    #[cfg(windows)]
    Pipe(NamedPipeServer),
}

/// Calls a method of whichever it is.
macro_rules! with_socket {
    ($socket:expr, $method:ident $(, $argument:expr)*) => {
        match $socket {
            Socket::Tcp(stream) => Pin::new(stream).$method($($argument),*),
            #[cfg(unix)]
            Socket::Unix(stream) => Pin::new(stream).$method($($argument),*),
            #[cfg(windows)]
            Socket::Pipe(stream) => Pin::new(stream).$method($($argument),*),
        }
    };
}

impl Stream {
    pub(crate) fn new(socket: Socket, write_timeout: Duration) -> Self {
        Self {
            socket,
            write_timeout,
            stalled: None,
        }
    }

    #[cfg(test)]
    pub(crate) fn nodelay(&self) -> io::Result<bool> {
        match &self.socket {
            Socket::Tcp(stream) => stream.nodelay(),
            #[cfg(unix)]
            Socket::Unix(_) => Ok(true),
            #[cfg(windows)]
            Socket::Pipe(_) => Ok(true),
        }
    }

    fn poll_in_time<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(&mut Socket, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(written) = write(&mut self.socket, context) {
            self.stalled = None;
            return Poll::Ready(written);
        }
        let deadline = Instant::now() + self.write_timeout;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        ready!(stalled.as_mut().poll(context));
        tracing::debug!("closing a connection: its client has stopped reading");
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        with_socket!(&mut self.socket, poll_read, context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_in_time(context, |socket, context| {
            with_socket!(socket, poll_write, context, bytes)
        })
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_in_time(context, |socket, context| {
            with_socket!(socket, poll_write_vectored, context, parts)
        })
    }

    fn is_write_vectored(&self) -> bool {
        match &self.socket {
            Socket::Tcp(stream) => stream.is_write_vectored(),
            #[cfg(unix)]
            Socket::Unix(stream) => stream.is_write_vectored(),
            #[cfg(windows)]
            Socket::Pipe(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_in_time(context, |socket, context| with_socket!(socket, poll_flush, context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_in_time(context, |socket, context| with_socket!(socket, poll_shutdown, context))
    }
}

//! Accepting connections: each is served in its own task, other users are refused, and there is a limit on how many.

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::peer;
#[cfg(windows)]
use crate::pipe::Pipe;
use crate::seats::{ConnectionLimits, Seat, Seats};
use crate::stream::{Socket, Stream};

/// How long to wait after a failed accept, most likely for lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

const MAX_BIND_ATTEMPTS: u32 = 10;
const BIND_DELAY: Duration = Duration::from_millis(20);

/// A port on 127.0.0.1, a socket in the file system, or a named pipe of Windows.
#[derive(Debug)]
pub struct Listener {
    listener: Place,
    port: u16,
}

#[derive(Debug)]
enum Place {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener),
    #[cfg(windows)]
    Pipe(Pipe),
}

impl Place {
    /// The next connection; `None` if it is another user's.
    async fn accept(&self) -> io::Result<Option<Socket>> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                if peer::is_of_another_user(&stream) {
                    return Ok(None);
                }
                send_immediately(&stream);
                Ok(Some(Socket::Tcp(stream)))
            }
            #[cfg(unix)]
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let own = rustix::process::geteuid().as_raw();
                let owner = stream.peer_cred()?.uid();
                Ok((owner == own || owner == 0).then_some(Socket::Unix(stream)))
            }
            #[cfg(windows)]
            Self::Pipe(pipe) => pipe.accept().await.map(|stream| Some(Socket::Pipe(stream))),
        }
    }
}

impl Listener {
    /// Listens on `port`, or on a port that the system chooses. Clients can connect as soon as this returns.
    ///
    /// A port in use is tried again for a moment: a process that is being started has the sockets of its parent until it runs its own
    /// program, even if the parent was killed.
    pub async fn bind(port: Option<u16>) -> io::Result<Self> {
        let mut attempts = 1;
        let listener = loop {
            match TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempts < MAX_BIND_ATTEMPTS => {
                    attempts += 1;
                    tokio::time::sleep(BIND_DELAY).await;
                }
                bound => break bound?,
            }
        };
        let port = listener.local_addr()?.port();
        Ok(Self {
            listener: Place::Tcp(listener),
            port,
        })
    }

    /// Listens on a socket that only our user can open. Its directory must be private: until the mode is set, only that protects
    /// it. A socket that was there is replaced.
    #[cfg(unix)]
    pub fn bind_socket(path: &std::path::Path) -> io::Result<Self> {
        use std::os::unix::fs::PermissionsExt;

        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self {
            listener: Place::Unix(listener),
            port: 0,
        })
    }

    /// Listens on a named pipe. By default, other users may open it for reading only, and a client must write to be heard.
    #[cfg(windows)]
    pub fn bind_socket(path: &std::path::Path) -> io::Result<Self> {
        Ok(Self {
            listener: Place::Pipe(Pipe::create(path)?),
            port: 0,
        })
    }

    /// 0 for a socket.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Serves each connection in its own task until `closing` completes, then waits for the open connections. A connection is
    /// dropped unless its client authenticates in time, with [`Seat::authenticate`]. Dropping the future drops all
    /// connections.
    pub async fn serve<F>(
        self,
        limits: ConnectionLimits,
        closing: impl Future<Output = ()>,
        serve: impl Fn(Stream, Seat) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        tokio::pin!(closing);
        let mut connections = JoinSet::new();
        let seats = Seats::new(limits);
        let mut number = 0;
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
                () = closing.as_mut() => break,
            };
            match accepted {
                Ok(None) => tracing::debug!("refusing a client of another user"),
                Ok(Some(socket)) => {
                    number += 1;
                    seats.take(number, |seat| {
                        // In a box, it is in the task once; by value twice.
                        let connection = Box::pin(serve(Stream::new(socket, limits.write_timeout), seat.clone()));
                        connections.spawn(async move {
                            tokio::select! {
                                () = connection => {}
                                () = seat.timed_out() => {}
                            }
                        })
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
        drop(self.listener);
        while connections.join_next().await.is_some() {}
    }
}

/// Without this, a small message may wait 40 ms for the client to acknowledge the previous one.
fn send_immediately(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
}

/// A listener in its own task. Dropping it drops all connections; [`shutdown`](Self::shutdown) lets them finish.
pub struct Server {
    port: u16,
    closing: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// Lets connections know that the port is closing.
#[derive(Clone, Debug)]
pub struct Closing(pub(crate) watch::Receiver<bool>);

impl Closing {
    /// Waits until the port is closing.
    pub async fn wait(&self) {
        // An error means that the server was dropped, which closes the port too.
        let _ = self.0.clone().wait_for(|closing| *closing).await;
    }
}

impl Server {
    /// Starts serving. `service` gets the closing signal and returns the function that serves a connection.
    pub fn start<S, F>(listener: Listener, limits: ConnectionLimits, service: impl FnOnce(Closing) -> S) -> Self
    where
        S: Fn(Stream, Seat) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let (closing, signal) = watch::channel(false);
        let port = listener.port();
        let serve = service(Closing(signal.clone()));
        let task = tokio::spawn(async move {
            let closing = Closing(signal);
            listener.serve(limits, closing.wait(), serve).await;
        });
        Self { port, closing, task }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops listening and waits for connections to finish. Those that take longer than `timeout` are dropped, and the
    /// result is `false`.
    pub async fn shutdown(mut self, timeout: Duration) -> bool {
        // Fails only if the task has already ended.
        let _ = self.closing.send(true);
        let finished = tokio::time::timeout(timeout, &mut self.task).await.is_ok();
        if !finished {
            self.task.abort();
            // Until the connections are really gone, they can still write.
            let _ = (&mut self.task).await;
        }
        finished
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Server");
        debug.field("port", &self.port).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const LIMITS: ConnectionLimits = ConnectionLimits {
        authenticated: 2,
        unauthenticated: 2,
        authentication_timeout: Duration::from_mins(1),
        write_timeout: Duration::from_millis(50),
    };

    /// Sends a byte once a client has sent one, which authenticates it.
    async fn authenticate(mut stream: Stream, seat: Seat) {
        if stream.read_u8().await.is_err() {
            return;
        }
        let answer = if seat.authenticate().is_ok() { b"+" } else { b"-" };
        let _ = stream.write_all(answer).await;
        let _ = stream.read_u8().await;
    }

    #[tokio::test]
    async fn port_that_becomes_free_after_the_first_attempt_is_used() {
        let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = holder.local_addr().unwrap().port();
        // The first attempt is made before the port is free.
        let (bound, ()) = tokio::join!(biased; Listener::bind(Some(port)), async { drop(holder) });
        assert_eq!(bound.unwrap().port(), port);
    }

    #[tokio::test]
    async fn port_that_stays_in_use_is_an_error() {
        let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let bound = Listener::bind(Some(holder.local_addr().unwrap().port())).await;
        assert_eq!(bound.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    async fn authenticated(port: u16) -> (TcpStream, u8) {
        let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        client.write_all(b"?").await.unwrap();
        let answer = client.read_u8().await.unwrap();
        (client, answer)
    }

    #[tokio::test]
    async fn new_client_takes_the_place_of_the_oldest_unauthenticated_one() {
        let listener = Listener::bind(None).await.unwrap();
        let server = Server::start(listener, LIMITS, |_| authenticate);
        let (mut first, answer) = authenticated(server.port()).await;
        assert_eq!(answer, b'+');
        let mut idle = Vec::new();
        for _ in 0..50 {
            idle.push(TcpStream::connect(("127.0.0.1", server.port())).await.unwrap());
        }
        let (_second, answer) = authenticated(server.port()).await;
        assert_eq!(answer, b'+');
        let closed = idle[0].read(&mut [0]).await;
        assert!(matches!(closed, Ok(0) | Err(_)), "the oldest: {closed:?}");
        // The youngest still has its place, and there are no more for authenticated clients.
        let last = idle.last_mut().unwrap();
        last.write_all(b"?").await.unwrap();
        assert_eq!(last.read_u8().await.unwrap(), b'-');
        first.write_all(b"!").await.unwrap();
        assert_eq!(first.read(&mut [0]).await.unwrap(), 0, "it was served until the end");
    }

    #[tokio::test]
    async fn place_of_a_disconnected_client_is_free_again() {
        let listener = Listener::bind(None).await.unwrap();
        let server = Server::start(listener, LIMITS, |_| authenticate);
        for _ in 0..9 {
            let (mut client, answer) = authenticated(server.port()).await;
            assert_eq!(answer, b'+');
            client.write_all(b"!").await.unwrap();
            assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn client_that_does_not_authenticate_in_time_is_disconnected() {
        let listener = Listener::bind(None).await.unwrap();
        let server = Server::start(listener, LIMITS, |_| authenticate);
        let (mut client, _) = authenticated(server.port()).await;
        let mut idle = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
        assert_eq!(idle.read(&mut [0]).await.unwrap(), 0);
        tokio::time::sleep(2 * LIMITS.authentication_timeout).await;
        client.write_all(b"!").await.unwrap();
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0, "it was served until the end");
    }

    #[tokio::test]
    async fn accepted_connections_send_immediately() {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let listener = Listener::bind(None).await.unwrap();
        let server = Server::start(listener, LIMITS, |_| {
            move |stream: Stream, _| {
                let _ = sender.send(stream.nodelay().unwrap());
                std::future::ready(())
            }
        });
        let _client = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
        assert_eq!(receiver.recv().await, Some(true));
    }

    #[tokio::test]
    async fn client_that_stops_reading_is_disconnected() {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let listener = Listener::bind(None).await.unwrap();
        let server = Server::start(listener, LIMITS, |_| {
            move |mut stream: Stream, seat: Seat| {
                let sender = sender.clone();
                async move {
                    seat.authenticate().unwrap();
                    let error = loop {
                        if let Err(error) = stream.write_all(&[0; 4096]).await {
                            break error;
                        }
                    };
                    let _ = sender.send(error.kind());
                }
            }
        });
        let mut client = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
        let closed = tokio::time::timeout(Duration::from_secs(20), receiver.recv()).await;
        assert_eq!(closed.expect("it must be closed"), Some(io::ErrorKind::TimedOut));
        // What was written before is still there; then the connection ends.
        while matches!(client.read(&mut [0; 4096]).await, Ok(1..)) {}
    }

    #[tokio::test]
    async fn shutdown_waits_for_connections_then_drops_them() {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let start = |listener| {
            Server::start(listener, LIMITS, |closing| {
                let sender = sender.clone();
                move |_: Stream, _| {
                    let (closing, sender) = (closing.clone(), sender.clone());
                    async move {
                        let _ = sender.send(());
                        closing.wait().await;
                    }
                }
            })
        };
        let finishing = start(Listener::bind(None).await.unwrap());
        let _client = TcpStream::connect(("127.0.0.1", finishing.port())).await.unwrap();
        receiver.recv().await.unwrap();
        let port = finishing.port();
        assert!(finishing.shutdown(Duration::from_mins(1)).await);
        assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());

        let listener = Listener::bind(None).await.unwrap();
        let hanging = Server::start(listener, LIMITS, |_| {
            move |_, _| {
                let _ = sender.send(());
                std::future::pending()
            }
        });
        let mut client = TcpStream::connect(("127.0.0.1", hanging.port())).await.unwrap();
        receiver.recv().await.unwrap();
        assert!(!hanging.shutdown(Duration::from_millis(10)).await);
        let closed = client.read(&mut [0]).await;
        assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    }
}

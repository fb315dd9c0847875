//! Accepting connections: each is served in its own task, and there is a limit on how many.

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// How long to wait after a failed accept, most likely for lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// A port on 127.0.0.1.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    port: u16,
}

impl Listener {
    /// Listens on `port`, or on a port that the system chooses. Clients can connect as soon as this returns.
    pub async fn bind(port: Option<u16>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Serves each connection in its own task until `closing` completes, then waits for the open connections. Clients
    /// beyond `max_connections` get a 503 response. Dropping the future drops all connections.
    pub async fn serve<F>(
        self,
        max_connections: usize,
        closing: impl Future<Output = ()>,
        serve: impl Fn(TcpStream) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        tokio::pin!(closing);
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
                () = closing.as_mut() => break,
            };
            match accepted {
                Ok((stream, _)) if connections.len() >= max_connections => {
                    // The send buffer of a new connection is empty. If writing fails, closing says enough.
                    let _ = stream.try_write(too_many_connections().as_bytes());
                }
                Ok((stream, _)) => {
                    send_immediately(&stream);
                    connections.spawn(serve(stream));
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

fn too_many_connections() -> String {
    let body = "Too many connections; close one and try again.\n";
    let length = body.len();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
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
pub struct Closing(watch::Receiver<bool>);

impl Closing {
    /// Waits until the port is closing.
    pub async fn wait(&self) {
        // An error means that the server was dropped, which closes the port too.
        let _ = self.0.clone().wait_for(|closing| *closing).await;
    }
}

impl Server {
    /// Starts serving. `service` gets the closing signal and returns the function that serves a connection.
    pub fn start<S, F>(listener: Listener, max_connections: usize, service: impl FnOnce(Closing) -> S) -> Self
    where
        S: Fn(TcpStream) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let (closing, signal) = watch::channel(false);
        let port = listener.port();
        let serve = service(Closing(signal.clone()));
        let task = tokio::spawn(async move {
            let closing = Closing(signal);
            listener.serve(max_connections, closing.wait(), serve).await;
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
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn accepted_connections_send_immediately() {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let listener = Listener::bind(None).await.unwrap();
        let server = Server::start(listener, 1, |_| {
            move |stream: TcpStream| {
                let _ = sender.send(stream.nodelay().unwrap());
                std::future::ready(())
            }
        });
        let _client = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
        assert_eq!(receiver.recv().await, Some(true));
    }

    #[tokio::test]
    async fn connection_over_the_limit_gets_a_complete_503() {
        let listener = Listener::bind(None).await.unwrap();
        let server = Server::start(listener, 0, |_| |_| std::future::pending());
        let mut client = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
        let mut response = String::new();
        client.read_to_string(&mut response).await.unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
    }

    #[tokio::test]
    async fn shutdown_waits_for_connections_then_drops_them() {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let start = |listener| {
            Server::start(listener, 9, |closing| {
                let sender = sender.clone();
                move |_: TcpStream| {
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
        let hanging = Server::start(listener, 9, |_| {
            move |_| {
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

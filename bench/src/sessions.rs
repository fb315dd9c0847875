//! Agents' sessions with open event streams.

use std::io::Read;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures_util::future::try_join_all;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::http::{Address, Connection};
use crate::run::Run;
use crate::subject::Server;

/// How long an event may take to arrive.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A session of an agent that listens and asks for nothing.
pub struct Session {
    pub address: Address,
    stream: TcpStream,
    received: Vec<u8>,
}

impl Session {
    pub fn open(run: &Run, server: &Server) -> Result<Self> {
        let (mut connection, address) = Address::initialize(server.port, server.token())?;
        connection.send(&address.request("GET", "text/event-stream", None))?;
        let stream = begin_stream(connection)?;
        let _runtime = run.runtime.enter();
        Ok(Self {
            address,
            stream: TcpStream::from_std(stream).context("cannot listen to a stream")?,
            received: Vec::with_capacity(4096),
        })
    }

    /// Reads until an event with this text has arrived.
    async fn receive(&mut self, text: &[u8]) -> Result<()> {
        loop {
            if self.received.windows(text.len()).any(|bytes| bytes == text) {
                self.received.clear();
                return Ok(());
            }
            let count = self
                .stream
                .read_buf(&mut self.received)
                .await
                .context("cannot read a stream")?;
            ensure!(count > 0, "a stream was closed");
        }
    }
}

/// Reads the head of a stream's response, and what came with it.
fn begin_stream(connection: Connection) -> Result<std::net::TcpStream> {
    let mut stream = connection.into_stream();
    let mut received = Vec::new();
    let mut buffer = [0; 1024];
    while !received.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let count = stream.read(&mut buffer).context("cannot open a stream")?;
        ensure!(count > 0, "a stream was closed at once");
        received.extend_from_slice(&buffer[..count]);
    }
    if !received.starts_with(b"HTTP/1.1 200") {
        bail!("a stream was refused: {}", String::from_utf8_lossy(&received));
    }
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Several sessions of one server. They disconnect when it is dropped.
#[derive(Default)]
pub struct Crowd {
    pub sessions: Vec<Session>,
}

impl Crowd {
    /// Opens sessions until there are this many.
    pub fn grow(&mut self, run: &Run, server: &Server, count: usize) -> Result<()> {
        while self.sessions.len() < count {
            let session = Session::open(run, server);
            let number = self.sessions.len() + 1;
            self.sessions
                .push(session.with_context(|| format!("cannot open session {number}"))?);
        }
        Ok(())
    }

    /// Waits until an event with this text has reached all of them.
    pub async fn receive(&mut self, text: &[u8]) -> Result<()> {
        let all = try_join_all(self.sessions.iter_mut().map(|session| session.receive(text)));
        let all = tokio::time::timeout(TIMEOUT, all)
            .await
            .context("an event did not reach all sessions")?;
        all.map(drop)
    }
}

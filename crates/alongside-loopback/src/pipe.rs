//! A named pipe of Windows.

use std::io;
use std::path::{Path, PathBuf};

use tokio::net::windows::named_pipe::{NamedPipeServer, ServerOptions};
use tokio::sync::Mutex;

/// Always has one instance for the next client: without one, a client is refused.
#[derive(Debug)]
pub(crate) struct Pipe {
    path: PathBuf,
    next: Mutex<NamedPipeServer>,
}

impl Pipe {
    /// Fails if another program has a pipe of this name, which could be another user's.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let next = ServerOptions::new().first_pipe_instance(true).create(path)?;
        Ok(Self {
            path: path.to_owned(),
            next: Mutex::new(next),
        })
    }

    /// Cancel safe: there is no other await after the one for a client.
    pub(crate) async fn accept(&self) -> io::Result<NamedPipeServer> {
        let mut next = self.next.lock().await;
        let connected = next.connect().await;
        // Also after an error: a client that came and went leaves an instance that cannot be used again.
        let instance = std::mem::replace(&mut *next, ServerOptions::new().create(&self.path)?);
        connected.map(|()| instance)
    }
}

//! The context for Codex CLI.
//!
//! Codex has no companion of its own to connect to. After `/ide`, it asks for the context before every prompt, on a socket whose
//! path is fixed and which all editors of a user share. The first of them listens there and is the *router*; the others connect to
//! it and answer the requests that it forwards. A [`Provider`] is either, whichever is needed: it connects, and listens only if
//! nothing else does. When the router exits, its clients compete for the socket.
//!
//! `socket` finds or takes the socket, `router` and `client` are the two roles, `answer` builds the response from the last context
//! that was published, and `message` has the envelopes. On Windows, where Codex uses a named pipe, a provider does nothing yet.
//!
//! # Invariants
//!
//! *A request never reaches the core or the disk:* it is answered from a copy of the published context, to which the privacy rules
//! were applied. *A slow client delays only requests that no other client can handle.* *Only processes of our user are served.*

#[cfg(unix)]
mod answer;
#[cfg(unix)]
mod client;
#[cfg(unix)]
mod message;
#[cfg(unix)]
mod router;
#[cfg(unix)]
mod socket;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alongside_core::context::IdeContext;
use parking_lot::Mutex;
use tokio::sync::watch;

/// The largest message from a registered client. The context of another editor may have a long selection.
#[cfg(unix)]
const MAX_FRAME_BYTES: usize = 4 * 1024 * 1024;
/// How long the other side may take for what it does at once: sending its first message, reading the last one.
#[cfg(unix)]
const PEER_TIMEOUT: Duration = Duration::from_secs(5);
/// The next attempt if no socket can be used.
const RETRY_PAUSE: Duration = Duration::from_secs(10);
/// Clients of a router that exits try again within this time, at random, so that they do not all try at once.
#[cfg(unix)]
const MAX_JITTER_MILLISECONDS: u32 = 250;

/// Serves the context to Codex. Clones are the same provider.
#[derive(Clone, Debug)]
pub struct Provider(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    shown: Mutex<Shown>,
    state: watch::Sender<State>,
}

/// What Codex may see.
#[derive(Debug)]
struct Shown {
    workspace: Vec<PathBuf>,
    context: IdeContext,
}

/// What a provider is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub role: Role,
    /// Why Codex may not get the context, for users: another user could tamper with the socket that it tries first.
    pub problem: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Looking for a router, or waiting to try again.
    #[default]
    Searching,
    /// Registered with the router on this socket.
    Client(PathBuf),
    /// Listening on this socket.
    Router(PathBuf),
}

impl Provider {
    /// A provider for a workspace, with nothing open.
    pub fn new(workspace: Vec<PathBuf>) -> Self {
        let context = IdeContext::default();
        Self(Arc::new(Shared {
            shown: Mutex::new(Shown { workspace, context }),
            state: watch::channel(State::default()).0,
        }))
    }

    /// Never waits.
    pub fn publish_context(&self, context: &IdeContext) {
        self.0.shown.lock().context.clone_from(context);
    }

    /// Never waits.
    pub fn set_workspace(&self, workspace: Vec<PathBuf>) {
        self.0.shown.lock().workspace = workspace;
    }

    pub fn state(&self) -> watch::Receiver<State> {
        self.0.state.subscribe()
    }

    /// Serves Codex on the first of these sockets that has a router or can be taken, until the future is dropped. Returns at once if
    /// there are none.
    pub async fn run(&self, sockets: &[PathBuf]) {
        while !sockets.is_empty() {
            let pause = self.run_once(sockets).await;
            self.set_role(Role::Searching);
            tokio::time::sleep(pause).await;
        }
    }

    /// Serves Codex in one role, until that ends. Returns how long to wait before the next attempt.
    #[cfg(unix)]
    async fn run_once(&self, sockets: &[PathBuf]) -> Duration {
        let (found, problem) = socket::find(sockets).await;
        self.0.state.send_if_modified(|state| {
            let is_new = state.problem != problem;
            state.problem = problem;
            is_new
        });
        match found {
            socket::Found::Router(stream, path) => match client::serve(self, stream, path).await {
                Ok(()) => jitter(),
                Err(error) => {
                    tracing::debug!(%error, "cannot register with Codex's router");
                    RETRY_PAUSE
                }
            },
            socket::Found::Owned(socket) => {
                self.set_role(Role::Router(socket.path().to_owned()));
                router::serve(self, &socket).await;
                jitter()
            }
            socket::Found::Contended => jitter(),
            socket::Found::Nothing => RETRY_PAUSE,
        }
    }

    #[cfg(not(unix))]
    #[expect(clippy::unused_async, reason = "the other one waits")]
    async fn run_once(&self, _sockets: &[PathBuf]) -> Duration {
        RETRY_PAUSE
    }

    fn set_role(&self, role: Role) {
        self.0.state.send_if_modified(|state| {
            let is_new = state.role != role;
            state.role = role;
            is_new
        });
    }
}

#[cfg(unix)]
fn jitter() -> Duration {
    // Without random bytes all wait equally long, and the lock decides.
    let random = getrandom::u32().unwrap_or_default();
    Duration::from_millis(u64::from(random % MAX_JITTER_MILLISECONDS))
}

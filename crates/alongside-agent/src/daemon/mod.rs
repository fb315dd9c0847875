//! A client of `qwen serve`, the HTTP daemon of Qwen Code.
//!
//! [`DaemonClient`] has the daemon's routes, [`DaemonSessionClient`] is one session, and [`EventStream`] gives the events of a
//! session in order and each once, whatever happens to the connection.
//!
//! ```no_run
//! # async fn run() -> Result<(), alongside_agent::daemon::DaemonError> {
//! use alongside_agent::daemon::{DaemonAddress, DaemonClient, DaemonSessionClient, NewSession, StreamItem};
//!
//! let client = DaemonClient::new(DaemonAddress::default(), None)?;
//! let session = DaemonSessionClient::create_or_attach(&client, &NewSession::default()).await?;
//! let mut events = session.events()?;
//! session.prompt(&["What is this project?".into()]).await?;
//! while let Some(item) = events.next().await {
//!     if let StreamItem::Event(event) = item? {
//!         println!("{:?}", event.kind);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod address;
mod backoff;
mod client;
mod connection;
mod delivered;
mod error;
mod event;
mod event_task;
mod open;
mod responses;
mod session;
mod session_state;
mod stream;
mod tls;
mod translate;
mod transport;

pub use address::{AddressError, DEFAULT_PORT, DaemonAddress};
pub use backoff::Backoff;
pub use client::{ClientSettings, DEFAULT_TIMEOUT, DaemonClient, Diagnostics};
pub(crate) use connection::DaemonConnection;
pub use connection::DaemonOptions;
pub use error::{DaemonError, ErrorCode, ErrorResponse};
pub use event::{DaemonEvent, EventError, EventKind};
pub use responses::{
    Capabilities, FileText, NewSession, PendingPrompt, PromptReceipt, SessionHandle, SessionPage, SessionScope,
    SessionStatus, TranscriptPage, Workspace,
};
pub use session::{Cursor, DaemonSessionClient};
pub use stream::{EventStream, StreamItem};

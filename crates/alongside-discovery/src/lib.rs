//! How agents find the companion.
//!
//! Gemini CLI and Qwen Code read small JSON files in well-known directories. This crate writes those files, keeps them
//! true, takes them away again, and can walk the whole search the way each command line does, so that `alongside doctor`
//! can say why one of them finds nothing.
//!
//! - [`Environment`] is a snapshot of everything the rules depend on; no rule looks at the process by itself.
//! - [`Announcement`] is what there is to tell, [`DiscoveryFiles`] the files that tell it, [`sweep()`] the broom for
//!   what a crash left behind, [`LastUse`] what decides between several, [`terminal_environment`] the same news as environment variables.
//! - [`process`] knows who is whose parent and who is alive.
//! - [`lookup`] is the agents' side.
//! - [`detect`] tells which editor a terminal belongs to, [`install`] puts the plugins into editors.
//!
//! Architecture invariant: this crate speaks no HTTP. It names the ports to dial; somebody else dials them.

mod announcement;
mod directory;
mod document;
mod dotenv;
mod environment;
mod error;
mod files;
mod last_use;
pub mod lookup;
mod node_path;
mod place;
pub mod process;
mod sweep;
mod terminal;

pub use announcement::Announcement;
pub use environment::{Environment, Platform};
pub use error::{AnnounceError, DiscoveryError};
pub use files::DiscoveryFiles;
pub use last_use::LastUse;
pub use sweep::sweep;
pub use terminal::{dials_the_containers_host, terminal_environment};

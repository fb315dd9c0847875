//! How agents find the companion.
//!
//! Gemini CLI and Qwen Code read small JSON files in well-known directories. This crate writes those files, keeps them
//! up to date and removes them again. It also simulates each agent's lookup, so that `alongside doctor` can explain why
//! an agent finds nothing.
//!
//! - [`Environment`] is a snapshot of everything the rules depend on; no rule reads the process environment directly.
//! - [`Announcement`] is the content to publish and [`DiscoveryFiles`] the files that publish it. [`sweep()`] removes
//!   files left by a crash, [`LastUse`] and [`Contender`] order several companions, and [`terminal_environment`] publishes the same
//!   content as environment variables.
//! - [`process`] inspects the process tree.
//! - [`lookup`] is the agents' side.
//!
//! Architecture invariant: this crate does not speak HTTP. It returns the ports to connect to; callers connect.

mod announcement;
mod contender;
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

pub use alongside_platform::Platform;
pub use announcement::Announcement;
pub use contender::Contender;
pub use environment::Environment;
pub use error::{AnnounceError, DiscoveryError};
pub use files::DiscoveryFiles;
pub use last_use::LastUse;
pub use sweep::sweep;
pub use terminal::{RunEnvironment, dials_the_containers_host, run_environment, terminal_environment};

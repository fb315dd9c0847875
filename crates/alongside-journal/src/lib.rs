//! A durable log. What [`Log::append`] acknowledged survives a kill of the process at once, and a power loss at most 40 ms
//! and one sync later. Nothing here knows what the records mean.
//!
//! A [`Directory`] is locked by one process and holds any number of logs and, in `texts/`, the texts that are too large
//! for a record:
//!
//! ```text
//! journal/            0700
//!   lock              locked while a `Directory` is open
//!   state-3           the third generation of the log `state`: a snapshot, and what was appended since
//!   state-2.damaged   a copy of what could not be read completely
//!   texts/<name>      one text each, written before the record that names it
//! ```
//!
//! | module | answers |
//! |---|---|
//! | `format` | What is in a file, byte by byte? |
//! | `read` | What is recovered from a file that was cut off, damaged or half synced? |
//! | `log` | How is a batch appended all or nothing, and what happens on a full disk? |
//! | `generation` | How does a snapshot replace a log atomically? |
//! | `recovery` | Which of several generations counts at a start? |
//! | `sync` | In which order does what become durable, and when are texts removed? |
//! | `texts` | Where is a large text, and is it still what was stored? |
//! | `handover` | How is the order of decisions kept without writing under their lock? |
//!
//! Everything goes through the trait [`Disk`], so that tests can crash at every single call.

mod damage;
mod directory;
mod disk;
mod file_system;
mod format;
mod generation;
mod handover;
mod log;
mod random;
mod read;
mod recovery;
#[cfg(any(test, feature = "testing"))]
mod sim_disk;
mod sync;
#[cfg(test)]
mod tests;
mod texts;

pub use damage::Damage;
pub use directory::{Directory, OpenError};
pub use disk::{Disk, DiskFile, Folder};
pub use file_system::FileSystem;
pub use format::Epoch;
pub use handover::{Handover, Ticket};
pub use log::Log;
pub use recovery::Recovered;
#[cfg(any(test, feature = "testing"))]
pub use sim_disk::{Fault, SimDisk};
pub use texts::{MAX_INLINE_BYTES, StoredText, Texts};

//! What agents see of the editor.
//!
//! [`OpenFiles`] keeps what front ends report; [`IdeContext`] is what agents receive, within the specification's limits
//! and the privacy rules.

mod ide_context;
mod open_files;
#[cfg(test)]
mod tests;

pub use ide_context::{Cursor, File, IdeContext, WorkspaceState};
pub use open_files::{ContextError, Hidden, HiddenReason, LookupId, OpenFiles, Snapshot};

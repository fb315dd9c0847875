//! What agents are told about the editor.
//!
//! [`OpenFiles`] keeps what front ends report; [`IdeContext`] is what goes out, made by [`OpenFiles::snapshot`] under the
//! limits of the specification and the privacy rules.

mod ide_context;
mod open_files;

pub use ide_context::{Cursor, File, IdeContext, WorkspaceState};
pub use open_files::{ContextError, Hidden, HiddenReason, OpenFiles, Resolve, Snapshot};

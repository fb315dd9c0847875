//! What is open in the editor, and when agents are notified.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{Core, Effect};
use crate::context::{ContextError, Cursor, File, IdeContext, LookupId, Snapshot, WorkspaceState};
use crate::diagnostics::{FileDiagnostics, FrontEndId};
use crate::privacy::{Privacy, Rule};
use crate::time::Now;

/// A burst of changes is sent as one update, this long after its first change. Measured from the first and not the last,
/// so steady movement still reaches agents.
const DEBOUNCE: Duration = Duration::from_millis(50);

impl Core {
    pub fn open_file(&mut self, now: Now, path: &str) -> Result<(), ContextError> {
        self.open_files.open(now.unix_milliseconds, path)?;
        self.files_changed(now);
        Ok(())
    }

    /// A file got the focus, or its cursor or selection changed.
    pub fn focus_file(
        &mut self,
        now: Now,
        path: &str,
        cursor: Option<Cursor>,
        selected_text: Option<String>,
    ) -> Result<(), ContextError> {
        let was_focused = self.open_files.is_focused(path);
        self.open_files
            .focus(now.unix_milliseconds, path, cursor, selected_text)?;
        // Moving the cursor needs no look at the disk while the files are watched.
        if was_focused && self.files_watched {
            self.context_changed(now);
        } else {
            self.files_changed(now);
        }
        Ok(())
    }

    /// Where the selected text of the focused file begins; to be called right after [`focus_file`](Self::focus_file).
    pub fn set_selection_start(&mut self, start: Cursor) -> Result<(), ContextError> {
        self.open_files.set_selection_start(start)
    }

    pub fn close_file(&mut self, now: Now, path: &str) -> Result<(), ContextError> {
        self.open_files.close(path)?;
        self.files_changed(now);
        Ok(())
    }

    /// The files to look up on disk before the next update. The core does no I/O: look them up outside of locks, and
    /// report each with [`Self::file_looked_up`].
    pub fn files_to_look_up(&self) -> Vec<Arc<str>> {
        self.open_files.to_look_up(&self.privacy)
    }

    pub fn open_paths(&self) -> Vec<Arc<str>> {
        self.open_files.all_paths()
    }

    /// To be called before a lookup.
    pub fn start_lookup(&mut self) -> LookupId {
        self.open_files.start_lookup()
    }

    /// Remembers the file that a path leads to, links followed; `None` if there is none. A result older than the
    /// remembered one is ignored. A file that disappeared is hidden a moment later, unless it comes back.
    pub fn file_looked_up(&mut self, now: Now, lookup: LookupId, path: &str, real: Option<PathBuf>) {
        if self.open_files.looked_up(now.monotonic, lookup, path, real) {
            self.files_changed(now);
        }
    }

    /// The files, under all their names, that agents see or would see if they existed. If one of them changes, look up
    /// [`Self::files_to_look_up`] again.
    pub fn files_to_watch(&self) -> BTreeSet<PathBuf> {
        self.open_files.to_watch(&self.privacy)
    }

    /// Whether all [`Self::files_to_watch`] are being watched. If not, every input asks for another lookup.
    pub fn set_files_watched(&mut self, watched: bool) {
        self.files_watched = watched;
    }

    /// Whether the front end trusts the workspace; `None` if it has no such notion.
    pub fn set_trusted(&mut self, now: Now, trusted: Option<bool>) {
        self.open_files.set_trusted(trusted);
        self.context_changed(now);
    }

    /// Applies other privacy rules immediately: what they hide does not wait for the debounce.
    pub fn set_privacy(&mut self, privacy: Privacy) {
        self.privacy = privacy;
        self.publish_context();
        self.diagnosed_files_changed();
        self.effects.push(Effect::FilesChanged);
    }

    /// The rule that hides a file from agents, given by the path it is known by and the one with symlinks resolved.
    pub fn rule_hiding(&self, path: &Path, real_path: &Path) -> Option<Rule> {
        self.privacy.rule_for(path, real_path)
    }

    /// What agents see now, and what is hidden from them. A pending update is sent first.
    pub fn show_context(&mut self) -> Snapshot {
        self.publish_context();
        Snapshot {
            context: self.published.clone(),
            hidden: self.open_files.snapshot(&self.privacy).hidden,
        }
    }

    /// Replaces the diagnostics that a front end reported about a file, given with the file that its path leads to; none clear them.
    pub fn report_diagnostics(
        &mut self,
        now: Now,
        front_end: FrontEndId,
        file: FileDiagnostics,
        real: Option<PathBuf>,
    ) -> Result<(), ContextError> {
        self.diagnostics.report(front_end, file, real)?;
        self.diagnostics_changed(now);
        Ok(())
    }

    /// A front end disconnected.
    pub fn front_end_left(&mut self, now: Now, front_end: FrontEndId) {
        self.diagnostics.remove(front_end);
        self.diagnostics_changed(now);
    }

    /// The diagnostics to send to agents after [`Effect::DiagnosticsChanged`]: of each file in which what agents may see changed since
    /// the last call. Empty where there are none any more.
    pub fn take_changed_diagnostics(&mut self) -> Vec<FileDiagnostics> {
        self.diagnostics_due = None;
        self.diagnostics.take_changes(&self.privacy, &self.workspace)
    }

    /// The diagnostics that agents may see: of files in the workspace that no privacy rule hides. Of one file, if given by its path or
    /// the one with symlinks resolved.
    pub fn diagnostics(&self, path: Option<&Path>) -> Vec<FileDiagnostics> {
        self.diagnostics.visible(&self.privacy, &self.workspace, path)
    }

    pub(super) fn publish_context(&mut self) {
        self.context_due = None;
        let context = self.open_files.context(&self.privacy);
        if !says_the_same(&context, &self.published) {
            self.published.clone_from(&context);
            self.effects.push(Effect::PublishContext(context));
        }
    }

    pub(super) fn files_changed(&mut self, now: Now) {
        self.effects.push(Effect::FilesChanged);
        self.context_changed(now);
    }

    fn context_changed(&mut self, now: Now) {
        self.context_due.get_or_insert(now.monotonic + DEBOUNCE);
    }

    fn diagnostics_changed(&mut self, now: Now) {
        if self.diagnostics.has_changes() {
            self.diagnostics_due.get_or_insert(now.monotonic + DEBOUNCE);
        }
    }

    pub(super) fn publish_diagnostics(&mut self) {
        self.diagnostics_due = None;
        self.effects.push(Effect::DiagnosticsChanged);
    }

    /// Other files are hidden or in the workspace. What is hidden now does not wait for the debounce.
    pub(super) fn diagnosed_files_changed(&mut self) {
        self.diagnostics.visibility_changed();
        if self.diagnostics.has_changes() {
            self.publish_diagnostics();
        }
    }
}

/// Ignores timestamps: they only order the list.
fn says_the_same(one: &IdeContext, other: &IdeContext) -> bool {
    // A new field must be compared too, here and below.
    let IdeContext {
        workspace_state: WorkspaceState { open_files, is_trusted },
    } = one;
    let other = &other.workspace_state;
    *is_trusted == other.is_trusted
        && open_files.len() == other.open_files.len()
        && open_files.iter().zip(&other.open_files).all(|(file, same)| {
            let File {
                path,
                timestamp: _,
                is_active,
                cursor,
                selected_text,
                selection_start,
            } = file;
            *path == same.path
                && *is_active == same.is_active
                && *cursor == same.cursor
                && *selected_text == same.selected_text
                && *selection_start == same.selection_start
        })
}

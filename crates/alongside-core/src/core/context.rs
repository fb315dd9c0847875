//! Inputs about what is open, and when agents hear of it.

use std::time::Duration;

use super::{Core, Effect};
use crate::context::{ContextError, Cursor, IdeContext, Snapshot};
use crate::privacy::Privacy;
use crate::time::Now;

/// A burst of changes is sent as one, this long after its first. Counting from the first and not from the last change
/// means that steady movement still reaches agents, and that the last state is always sent.
const DEBOUNCE: Duration = Duration::from_millis(50);

impl Core {
    /// A file was opened.
    pub fn open_file(&mut self, now: Now, path: &str) -> Result<(), ContextError> {
        self.open_files.open(now.unix_milliseconds, path)?;
        self.context_changed(now);
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
        self.open_files
            .focus(now.unix_milliseconds, path, cursor, selected_text)?;
        self.context_changed(now);
        Ok(())
    }

    /// A file was closed.
    pub fn close_file(&mut self, now: Now, path: &str) -> Result<(), ContextError> {
        self.open_files.close(path)?;
        self.context_changed(now);
        Ok(())
    }

    /// Whether the front end trusts the workspace; `None` if it has no such notion.
    pub fn set_trusted(&mut self, now: Now, trusted: Option<bool>) {
        self.open_files.set_trusted(trusted);
        self.context_changed(now);
    }

    /// Other rules about what agents may see. They count at once: nothing that is now hidden waits for the debounce.
    pub fn set_privacy(&mut self, privacy: Privacy) {
        self.privacy = privacy;
        self.publish_context();
    }

    /// Exactly what agents see now, and what is kept from them. What still waited to be sent is sent first.
    pub fn show_context(&mut self) -> Snapshot {
        let snapshot = self.publish_context();
        Snapshot {
            context: self.published.clone(),
            hidden: snapshot.hidden,
        }
    }

    pub(super) fn publish_context(&mut self) -> Snapshot {
        self.context_due = None;
        let snapshot = self.open_files.snapshot(&self.privacy, &*self.resolve);
        if !says_the_same(&snapshot.context, &self.published) {
            self.published.clone_from(&snapshot.context);
            self.effects.push(Effect::PublishContext(snapshot.context.clone()));
        }
        snapshot
    }

    fn context_changed(&mut self, now: Now) {
        self.context_due.get_or_insert(now.monotonic + DEBOUNCE);
    }
}

/// Times only order the list, so a new time in the same order is nothing new.
fn says_the_same(one: &IdeContext, other: &IdeContext) -> bool {
    let without_times = |context: &IdeContext| {
        let mut context = context.clone();
        for file in &mut context.workspace_state.open_files {
            file.timestamp = 0;
        }
        context
    };
    without_times(one) == without_times(other)
}

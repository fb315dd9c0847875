//! Drafts as files, for editors that can edit nothing else.
//!
//! "Edit change" writes the draft to the scratch directory and has the editor open it. After that the two are kept in sync: what the
//! user types there becomes the draft, with every key if the editor reports it and otherwise with every save; and changes to the
//! draft from elsewhere, such as a hunk's decision or an edit on the page, are put into the editor's buffer.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use alongside_core::{ReviewId, TextChange};
use alongside_protocol::{Backend, Edit, RequestError, requests};

use crate::actions::not_written;
use crate::front_end::{LspFrontEnd, PendingRequest};
use crate::reviews::{ReviewLines, Side};
use crate::text::{self, Encoding};
use crate::types::{
    ApplyWorkspaceEditParams, ApplyWorkspaceEditResult, MessageType, Range, TextDocumentEdit, TextEdit,
    VersionedTextDocumentIdentifier, WorkspaceEdit,
};
use crate::{documents, normalize, uri};

pub(super) struct DraftFile {
    pub(super) address: String,
    path: PathBuf,
    /// The last text that the file and the draft had in common.
    agreed: Arc<str>,
    /// The draft that was last sent to the editor's buffer.
    pushed: Option<Arc<str>>,
}

impl<B: Backend> LspFrontEnd<B> {
    /// Writes a draft as a file and has the editor open it.
    pub(super) fn open_draft_file(&mut self, id: ReviewId) -> Result<(), RequestError> {
        let review = self.known(id)?;
        let (draft, path) = (Arc::clone(&review.draft), Arc::clone(&review.summary.path));
        let first = review.hunks.first();
        let place = first.map_or_else(Range::default, |hunk| {
            let lines = ReviewLines::new(review);
            Range::empty(lines.range(hunk, Side::Draft, self.client.encoding).start)
        });
        let is_open = self
            .draft_files
            .get(&id)
            .is_some_and(|file| self.documents.get(&file.address).is_some());
        let path = if let (true, Some(file)) = (is_open, self.draft_files.get(&id)) {
            // The buffer is newer than the draft.
            file.path.clone()
        } else {
            let path = self
                .scratch
                .write(id, &path, "", &draft)
                .map_err(|error| not_written(&error))?;
            let file = DraftFile {
                address: uri::of_path(&path.to_string_lossy()),
                path: path.clone(),
                agreed: draft,
                pushed: None,
            };
            self.draft_files.insert(id, file);
            path
        };
        self.show_file(
            &path.to_string_lossy(),
            place,
            true,
            "to edit the change; saving it updates the draft",
        );
        Ok(())
    }

    /// A file in the scratch directory was opened, edited or saved in the editor.
    pub(super) async fn draft_file_edited(&mut self, address: &str) {
        let Some(document) = self.documents.get(address) else {
            return;
        };
        let review = self.scratch.review_of(&document.real);
        let Some(review) = review.filter(|review| self.reviews.contains_key(review)) else {
            self.warn_of_stale_file(address);
            return;
        };
        // Any other file is a diff, which is read-only.
        if let Some(file) = self.draft_files.get_mut(&review)
            && documents::real(&file.path) == document.real
        {
            // Clients spell URIs differently; use theirs.
            address.clone_into(&mut file.address);
            let shown = document.text.clone();
            self.reconcile(review, &shown).await;
            self.publish();
        }
    }

    /// A draft file was closed, maybe without saving. What was typed is already in the draft, and stays.
    pub(super) fn draft_file_closed(&mut self, address: &str) {
        let mut files = self.draft_files.iter_mut();
        let found = files.find(|(_, file)| file.address == address);
        if let Some((id, file)) = found
            && let Some(review) = self.reviews.get(id)
        {
            match self.scratch.write(*id, &review.summary.path, "", &review.draft) {
                Ok(_) => file.agreed = Arc::clone(&review.draft),
                Err(error) => tracing::warn!(%error, "cannot write a draft file"),
            }
            file.pushed = None;
        }
        self.publish();
    }

    /// A file in the scratch directory was saved, maybe by an editor that does not report it.
    pub(super) async fn sync_draft_files(&mut self) {
        let all: Vec<ReviewId> = self.draft_files.keys().copied().collect();
        for review in all {
            self.sync_draft_file(review).await;
        }
    }

    /// Applies what is saved in a draft file, unless the editor reports its buffer.
    pub(super) async fn sync_draft_file(&mut self, review: ReviewId) {
        let Some(file) = self.draft_files.get(&review) else {
            return;
        };
        if self.documents.get(&file.address).is_some() {
            return;
        }
        // While it is being saved, the file may be missing for a moment.
        if let Ok(shown) = fs::read_to_string(&file.path) {
            self.reconcile(review, &shown).await;
        }
    }

    pub(super) async fn draft_changed(&mut self, review: ReviewId) {
        let Some(file) = self.draft_files.get(&review) else {
            return;
        };
        match self.documents.get(&file.address) {
            Some(document) => {
                let shown = document.text.clone();
                self.reconcile(review, &shown).await;
            }
            None => self.sync_draft_file(review).await,
        }
    }

    /// Brings a file and its draft back in sync, whichever of them changed.
    async fn reconcile(&mut self, id: ReviewId, shown: &str) {
        let (Some(file), Some(review)) = (self.draft_files.get_mut(&id), self.reviews.get(&id)) else {
            return;
        };
        let meant = normalize::denormalize(shown, &file.agreed);
        let draft = Arc::clone(&review.draft);
        if *meant == *draft {
            file.agreed = draft;
            file.pushed = None;
            return;
        }
        if *meant != *file.agreed {
            let merged: Arc<str> = merge(&file.agreed, &meant, &draft).into();
            if *merged != *draft {
                let edit = Edit {
                    review: id,
                    content: Arc::clone(&merged),
                };
                if let Err(error) = self.call::<requests::ReviewEdit>(edit).await {
                    let message = format!("Your edit was not applied: {}.", error.message);
                    self.show_message(MessageType::Error, &message);
                    return;
                }
                if let Some(review) = self.reviews.get_mut(&id) {
                    review.draft = Arc::clone(&merged);
                }
            }
            let is_shown = *merged == *meant;
            if let Some(file) = self.draft_files.get_mut(&id) {
                file.agreed = meant.into();
                if is_shown {
                    file.pushed = None;
                    return;
                }
            }
        }
        self.push(id, shown);
    }

    /// Puts the draft into its file or buffer.
    fn push(&mut self, id: ReviewId, shown: &str) {
        let (Some(file), Some(review)) = (self.draft_files.get_mut(&id), self.reviews.get(&id)) else {
            return;
        };
        let draft = Arc::clone(&review.draft);
        if file.pushed.as_ref() == Some(&draft) {
            return;
        }
        file.pushed = Some(Arc::clone(&draft));
        let wanted = normalize::as_shown(&draft, shown, &file.agreed);
        let Some(document) = self.documents.get(&file.address) else {
            let path = Arc::clone(&review.summary.path);
            match self.scratch.write(id, &path, "", &draft) {
                Ok(_) => file.agreed = draft,
                Err(error) => tracing::warn!(%error, "cannot write a draft file"),
            }
            return;
        };
        let Some(edit) = edit(shown, &wanted, self.client.encoding) else {
            return;
        };
        let uri = file.address.clone();
        let edit = if self.client.abilities.versioned_edits {
            let text_document = VersionedTextDocumentIdentifier {
                uri,
                version: document.version,
            };
            WorkspaceEdit::DocumentChanges([TextDocumentEdit {
                text_document,
                edits: [edit],
            }])
        } else {
            WorkspaceEdit::Changes([(uri, [edit])].into())
        };
        let params = ApplyWorkspaceEditParams {
            label: "Update draft",
            edit,
        };
        self.request("workspace/applyEdit", &params, PendingRequest::ApplyEdit { review: id });
    }

    /// The editor's response to an edit. A positive one proves nothing; the change that follows does.
    pub(super) fn edit_applied(&mut self, review: ReviewId, result: Option<ApplyWorkspaceEditResult>) {
        let is_applied = result.is_some_and(|result| result.applied);
        if let (false, Some(file)) = (is_applied, self.draft_files.get_mut(&review)) {
            // The next edit brings the two back in sync.
            file.pushed = None;
        }
    }

    /// Warns the user, once, that edits here have no effect.
    fn warn_of_stale_file(&mut self, address: &str) {
        if self.warned.insert(address.to_owned()) {
            let message = "This change is already closed; edits here have no effect.";
            self.show_message(MessageType::Info, message);
        }
    }

    /// Removes the files of a closed review. Returns whether its draft was a file.
    pub(super) fn close_draft_file(&mut self, review: ReviewId) -> bool {
        self.scratch.remove(review);
        self.draft_files.remove(&review).is_some()
    }
}

/// The single edit that turns one text into another.
fn edit(old: &str, new: &str, encoding: Encoding) -> Option<TextEdit> {
    let change = TextChange::between(old, new)?;
    let place = |units: usize| text::position(old, text::utf16_offset(old, units), encoding);
    let range = Range {
        start: place(change.from),
        end: place(change.to),
    };
    Some(TextEdit {
        range,
        new_text: change.insert,
    })
}

/// Merges two edits of one text. If they touch, the one typed here wins.
fn merge(agreed: &str, typed: &str, draft: &str) -> String {
    let changes = (TextChange::between(agreed, typed), TextChange::between(agreed, draft));
    let (Some(mine), Some(theirs)) = changes else {
        // At most one of them changed.
        return if typed == agreed { draft } else { typed }.to_owned();
    };
    let mut both = [mine, theirs];
    both.sort_by_key(|change| change.from);
    if both[0].to >= both[1].from {
        return typed.to_owned();
    }
    TextChange::apply_all(agreed, &both).unwrap_or_else(|_| typed.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_in_different_places_are_both_kept() {
        assert_eq!(
            merge("one\ntwo\nthree\n", "ONE\ntwo\nthree\n", "one\ntwo\nTHREE\n"),
            "ONE\ntwo\nTHREE\n"
        );
        assert_eq!(merge("a\n", "b\n", "a\n"), "b\n");
        assert_eq!(merge("a\n", "a\n", "b\n"), "b\n");
        assert_eq!(
            merge("a\n", "mine\n", "theirs\n"),
            "mine\n",
            "what the user typed here wins"
        );
    }

    #[test]
    fn edit_is_minimal_and_splits_no_character() {
        let edit = edit("🦀 one\r\ntwo", "🦀 two\r\ntwo", Encoding::Utf16).unwrap();
        let at = |character| crate::types::Position { line: 0, character };
        assert_eq!((edit.range.start, edit.range.end), (at(3), at(6)));
        assert_eq!(edit.new_text, "two");
    }
}

//! Drafts as files, for editors in which a person can edit nothing else.
//!
//! "Edit change" writes the draft into the scratch directory and has the editor open it. From then on the two are kept the
//! same: what a person types there is the draft, at every key where the editor tells us of them, else with every save; and
//! what becomes of the draft elsewhere, by a hunk's decision or on the page, is put into the editor's buffer.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use alongside_core::{ReviewId, TextChange};
use serde_json::{Value, json};

use super::actions::not_written;
use super::face::{Asked, Face, Tone};
use super::reviews::{Pages, Side};
use super::text::{self, Encoding, Range};
use super::{documents, habits, uri};
use alongside_protocol::Edit;
use alongside_protocol::{Backend, RequestError, requests};

/// A draft that is a file.
pub(super) struct Sheet {
    pub(super) address: String,
    path: PathBuf,
    /// The last text of the file that went into the draft.
    agreed: Arc<str>,
    /// The draft that the editor was last told to put into its buffer.
    pushed: Option<Arc<str>>,
}

impl<D: Backend> Face<D> {
    /// Writes a draft as a file and has the editor open it.
    pub(super) fn open_sheet(&mut self, id: ReviewId) -> Result<(), RequestError> {
        let review = self.known(id)?;
        let (draft, path) = (Arc::clone(&review.draft), Arc::clone(&review.summary.path));
        let first = review.hunks.first();
        let place = first.map_or_else(Range::default, |hunk| {
            let place = Pages::of(review).place(hunk, Side::Draft, self.client.encoding).start;
            Range {
                start: place,
                end: place,
            }
        });
        let is_open = self
            .sheets
            .get(&id)
            .is_some_and(|sheet| self.documents.get(&sheet.address).is_some());
        let file = if let (true, Some(sheet)) = (is_open, self.sheets.get(&id)) {
            // What is in the buffer is newer than anything that could be written.
            sheet.path.clone()
        } else {
            let file = self
                .scratch
                .write(id, &path, "", &draft)
                .map_err(|error| not_written(&error))?;
            let sheet = Sheet {
                address: uri::of_path(&file.to_string_lossy()),
                path: file.clone(),
                agreed: draft,
                pushed: None,
            };
            self.sheets.insert(id, sheet);
            file
        };
        self.show_file(
            &file.to_string_lossy(),
            place,
            "to edit the change; saving it updates the draft",
        );
        Ok(())
    }

    /// A person has typed in a file of the scratch directory, or has opened or saved it there.
    pub(super) async fn typed(&mut self, address: &str) {
        let Some(document) = self.documents.get(address) else {
            return;
        };
        let review = self.scratch.review_of(&document.real);
        let Some(review) = review.filter(|review| self.reviews.contains_key(review)) else {
            self.warn_of_stale_file(address);
            return;
        };
        // Anything else than the draft is a difference, which is only looked at.
        if let Some(sheet) = self.sheets.get_mut(&review)
            && documents::real(&sheet.path) == document.real
        {
            // Clients do not all write an address in the same way; theirs counts.
            address.clone_into(&mut sheet.address);
            let shown = document.text.clone();
            self.reconcile(review, &shown).await;
            self.publish();
        }
    }

    /// A person has closed the file of a draft, maybe without saving. What was typed is the draft already, and stays.
    pub(super) fn closed_sheet(&mut self, address: &str) {
        let mut sheets = self.sheets.iter_mut();
        let found = sheets.find(|(_, sheet)| sheet.address == address);
        if let Some((id, sheet)) = found
            && let Some(review) = self.reviews.get(id)
        {
            match self.scratch.write(*id, &review.summary.path, "", &review.draft) {
                Ok(_) => sheet.agreed = Arc::clone(&review.draft),
                Err(error) => tracing::warn!(%error, "cannot write a draft file"),
            }
            sheet.pushed = None;
        }
        self.publish();
    }

    /// Something was saved in the scratch directory, maybe by an editor that does not tell us of that file.
    pub(super) async fn saved_on_disk(&mut self) {
        let all: Vec<ReviewId> = self.sheets.keys().copied().collect();
        for review in all {
            self.look_at_sheet(review).await;
        }
    }

    /// Takes over what is saved in the file of a draft, unless it is open in a buffer that we are told of.
    pub(super) async fn look_at_sheet(&mut self, review: ReviewId) {
        let Some(sheet) = self.sheets.get(&review) else { return };
        if self.documents.get(&sheet.address).is_some() {
            return;
        }
        // While it is being saved there may be no file for a moment.
        if let Ok(shown) = fs::read_to_string(&sheet.path) {
            self.reconcile(review, &shown).await;
        }
    }

    /// The draft of a review may be another one.
    pub(super) async fn draft_changed(&mut self, review: ReviewId) {
        let Some(sheet) = self.sheets.get(&review) else { return };
        match self.documents.get(&sheet.address) {
            Some(document) => {
                let shown = document.text.clone();
                self.reconcile(review, &shown).await;
            }
            None => self.look_at_sheet(review).await,
        }
    }

    /// Makes a file and its draft the same again, whichever of them has changed.
    async fn reconcile(&mut self, id: ReviewId, shown: &str) {
        let (Some(sheet), Some(review)) = (self.sheets.get_mut(&id), self.reviews.get(&id)) else {
            return;
        };
        let meant = habits::meant(shown, &sheet.agreed);
        let draft = Arc::clone(&review.draft);
        if *meant == *draft {
            sheet.agreed = draft;
            sheet.pushed = None;
            return;
        }
        if *meant != *sheet.agreed {
            let merged: Arc<str> = merge(&sheet.agreed, &meant, &draft).into();
            if *merged != *draft {
                let edit = Edit {
                    review: id,
                    content: Arc::clone(&merged),
                };
                if let Err(refusal) = self.call::<requests::ReviewEdit>(edit).await {
                    self.say(Tone::Error, &format!("Your edit was not applied: {}.", refusal.message));
                    return;
                }
                if let Some(review) = self.reviews.get_mut(&id) {
                    review.draft = Arc::clone(&merged);
                }
            }
            let is_shown = *merged == *meant;
            if let Some(sheet) = self.sheets.get_mut(&id) {
                sheet.agreed = meant.into();
                if is_shown {
                    sheet.pushed = None;
                    return;
                }
            }
        }
        self.push(id, shown);
    }

    /// Puts the draft into the file of it.
    fn push(&mut self, id: ReviewId, shown: &str) {
        let (Some(sheet), Some(review)) = (self.sheets.get_mut(&id), self.reviews.get(&id)) else {
            return;
        };
        let draft = Arc::clone(&review.draft);
        if sheet.pushed.as_ref() == Some(&draft) {
            return;
        }
        sheet.pushed = Some(Arc::clone(&draft));
        let wanted = habits::shown_as(&draft, shown, &sheet.agreed);
        let Some(document) = self.documents.get(&sheet.address) else {
            let path = Arc::clone(&review.summary.path);
            match self.scratch.write(id, &path, "", &draft) {
                Ok(_) => sheet.agreed = draft,
                Err(error) => tracing::warn!(%error, "cannot write a draft file"),
            }
            return;
        };
        let Some(edit) = edit(shown, &wanted, self.client.encoding) else {
            return;
        };
        let address = &sheet.address;
        let edits = if self.client.abilities.versioned_edits {
            let document = json!({ "uri": address, "version": document.version });
            json!({ "documentChanges": [{ "textDocument": document, "edits": [edit] }] })
        } else {
            json!({ "changes": { address.as_str(): [edit] } })
        };
        let params = json!({ "label": "Update draft", "edit": edits });
        self.ask("workspace/applyEdit", &params, Asked::Rewrite { review: id });
    }

    /// The editor has answered whether it changed the buffer. That it says yes proves nothing; the change that follows does.
    pub(super) fn rewritten(&mut self, review: ReviewId, result: &Result<Value, String>) {
        let is_refused = !result.as_ref().is_ok_and(|answer| answer["applied"] == true);
        if let (true, Some(sheet)) = (is_refused, self.sheets.get_mut(&review)) {
            // With the next key the two are brought together.
            sheet.pushed = None;
        }
    }

    /// Tells a person, once, that typing here changes nothing any more.
    fn warn_of_stale_file(&mut self, address: &str) {
        if self.warned.insert(address.to_owned()) {
            let message = "This change is already closed; edits here have no effect.";
            self.say(Tone::Information, message);
        }
    }

    /// The files of a review that is over are about nothing any more.
    pub(super) fn forget_sheet(&mut self, review: ReviewId) -> bool {
        self.scratch.remove(review);
        self.sheets.remove(&review).is_some()
    }
}

/// The one edit that leads from a text to another, as language clients want it.
fn edit(old: &str, new: &str, encoding: Encoding) -> Option<Value> {
    let change = TextChange::between(old, new)?;
    let place = |units: usize| text::position(old, text::utf16_offset(old, units), encoding);
    let range = Range {
        start: place(change.from),
        end: place(change.to),
    };
    Some(json!({ "range": range, "newText": change.insert }))
}

/// Brings two changes of one text together. Where they touch, that of the person who is typing counts.
fn merge(agreed: &str, typed: &str, draft: &str) -> String {
    let changes = (TextChange::between(agreed, typed), TextChange::between(agreed, draft));
    let (Some(mine), Some(theirs)) = changes else {
        // At most one of them has changed.
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
    fn what_two_people_do_in_different_places_is_kept() {
        assert_eq!(
            merge("one\ntwo\nthree\n", "ONE\ntwo\nthree\n", "one\ntwo\nTHREE\n"),
            "ONE\ntwo\nTHREE\n"
        );
        assert_eq!(merge("a\n", "b\n", "a\n"), "b\n");
        assert_eq!(merge("a\n", "a\n", "b\n"), "b\n");
        assert_eq!(
            merge("a\n", "mine\n", "theirs\n"),
            "mine\n",
            "whoever is typing sees what counts"
        );
    }

    #[test]
    fn an_edit_is_as_small_as_it_can_be_and_splits_no_character() {
        let edit = edit("🦀 one\r\ntwo", "🦀 two\r\ntwo", Encoding::Utf16).unwrap();
        let range = json!({ "start": { "line": 0, "character": 3 }, "end": { "line": 0, "character": 6 } });
        assert_eq!(edit, json!({ "range": range, "newText": "two" }));
    }
}

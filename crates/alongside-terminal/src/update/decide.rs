//! Decisions and edits.

use std::sync::Arc;

use alongside_core::TextChange;
use alongside_protocol::{Accept, Change, DecideHunkParams, Edit as NewDraft, HunkAction, Reject, Request, SessionRef};

use crate::edit::{Edit, Merged};
use crate::input::{Input, Purpose};
use crate::message::{Action, ReviewKey};
use crate::model::{Confirmed, Model, Overlay};
use crate::review::{Comment, OpenReview};

use super::companion::count;

impl Model {
    /// The open review, if a decision about it may be made now.
    fn decidable(&mut self) -> Option<&mut OpenReview> {
        let now = self.now;
        let open = self.open.as_ref()?;
        if open.is_deciding || !open.is_armed(now) {
            return None;
        }
        if !self.is_connected(open.key.companion) {
            self.complain("The companion is not connected; try again once it is.");
            return None;
        }
        self.open.as_mut()
    }

    /// Decides the hunk at the cursor and goes to the next one.
    pub(super) fn decide_hunk(&mut self, decision: HunkAction) -> Vec<Action> {
        let height = self.height();
        let Some(open) = self.decidable() else {
            return Vec::new();
        };
        let Some(hunk) = open.hunk_at_cursor().map(|hunk| hunk.id) else {
            self.inform("No hunk here; press n to go to the next one.");
            return Vec::new();
        };
        open.remember(hunk);
        let params = DecideHunkParams {
            review: open.key.review,
            hunk,
            decision,
        };
        open.step(true, height);
        let companion = open.key.companion;
        self.ask(companion, Request::ReviewHunk(params))
    }

    /// Takes the last decision about a hunk back.
    pub(super) fn undo(&mut self) -> Vec<Action> {
        let height = self.height();
        let Some(open) = self.decidable() else {
            return Vec::new();
        };
        let Some(undo) = open.undo.pop() else {
            self.inform("Nothing to undo.");
            return Vec::new();
        };
        if !undo.was_decided {
            open.decided.remove(&undo.hunk);
        }
        open.choose_id(undo.hunk, height);
        let key = open.key;
        let request = if let Some(decision) = OpenReview::restoring(undo.before) {
            Request::ReviewHunk(DecideHunkParams {
                review: key.review,
                hunk: undo.hunk,
                decision,
            })
        } else {
            let Some(change) = TextChange::between(open.draft.shared(), &undo.text) else {
                return Vec::new();
            };
            Request::ReviewChange(Change {
                review: key.review,
                version: open.version,
                changes: vec![change],
            })
        };
        self.ask(key.companion, request)
    }

    pub(super) fn accept(&mut self, even_if_empty: bool, even_with_comments: bool) -> Vec<Action> {
        let Some(open) = self.decidable() else {
            return Vec::new();
        };
        let key = open.key;
        if !open.comments.is_empty() && !even_with_comments {
            let comments = count(open.comments.len(), "comment");
            self.overlay = Some(Overlay::Confirm {
                question: format!("Comments reach the agent only with a rejection. Accept without your {comments}?"),
                action: Confirmed::AcceptWithComments,
            });
            return Vec::new();
        }
        open.is_deciding = true;
        self.companions[key.companion].deciding.insert(key.review);
        let accept = Accept {
            review: key.review,
            content: None,
            even_if_empty,
        };
        self.ask(key.companion, Request::ReviewAccept(accept))
    }

    pub(super) fn reject(&mut self, typed: &str) -> Vec<Action> {
        let Some(open) = self.decidable() else {
            return Vec::new();
        };
        let (key, reason) = (open.key, open.reason(typed).filter(|_| open.summary.takes_reason));
        open.is_deciding = true;
        self.companions[key.companion].deciding.insert(key.review);
        let reject = Reject {
            review: key.review,
            reason: reason.map(Into::into),
        };
        self.ask(key.companion, Request::ReviewReject(reject))
    }

    /// Whether the agent of the open review can read what the user writes.
    fn takes_reason(&mut self) -> bool {
        let Some(open) = self.open.as_ref() else { return false };
        if open.summary.takes_reason {
            return true;
        }
        let agent = open.summary.agent.clone();
        self.inform(format!("{agent} cannot receive a reason; tell it in its next prompt."));
        false
    }

    pub(super) fn ask_reason(&mut self) {
        if self.takes_reason()
            && let Some(open) = self.open.as_ref()
        {
            self.overlay = Some(Overlay::Input(Box::new(Input::new(Purpose::Reason(open.key), ""))));
        }
    }

    pub(super) fn ask_comment(&mut self) {
        if self.takes_reason()
            && let Some(open) = self.open.as_ref()
        {
            let line = open.draft_line() + 1;
            let known = open.comments.iter().find(|comment| comment.line == line);
            let text = known.map_or("", |comment| comment.text.as_str());
            self.overlay = Some(Overlay::Input(Box::new(Input::new(
                Purpose::Comment(open.key, line),
                text,
            ))));
        }
    }

    pub(super) fn comment(&mut self, key: ReviewKey, line: usize, text: &str) {
        let Some(open) = self.open.as_mut().filter(|open| open.key == key) else {
            return;
        };
        open.comments.retain(|comment| comment.line != line);
        if !text.trim().is_empty() {
            open.comments.push(Comment {
                line,
                quote: open.draft.line(line - 1).chars().take(80).collect(),
                text: text.to_owned(),
            });
            open.comments.sort_by_key(|comment| comment.line);
        }
    }

    /// Asks before all changes of one agent are decided.
    pub(super) fn confirm_all(&mut self, accepts: bool) {
        let listed = self.listed();
        let selected = self.open.as_ref().map(|open| open.key);
        let key = selected.or_else(|| listed.get(self.selected).map(|(key, _)| *key));
        let Some((key, summary)) = listed.iter().find(|(known, _)| Some(*known) == key) else {
            return;
        };
        let same = |(other, review): &&(ReviewKey, &alongside_protocol::ReviewSummary)| {
            other.companion == key.companion && review.session == summary.session
        };
        let changes = count(listed.iter().filter(same).count(), "change");
        let (verb, action) = if accepts {
            ("Accept", Confirmed::AcceptAll(*key))
        } else {
            ("Reject", Confirmed::RejectAll(*key))
        };
        let question = format!("{verb} {changes} from {}?", summary.agent);
        self.overlay = Some(Overlay::Confirm { question, action });
    }

    pub(super) fn confirmed(&mut self, action: &Confirmed) -> Vec<Action> {
        match action {
            Confirmed::Quit => vec![Action::Quit],
            Confirmed::AcceptEmpty => self.accept(true, true),
            Confirmed::AcceptWithComments => self.accept(false, true),
            Confirmed::AcceptAll(key) | Confirmed::RejectAll(key) => {
                let companion = &mut self.companions[key.companion];
                let Some(session) = companion.reviews.get(&key.review).map(|review| review.session.clone()) else {
                    return Vec::new();
                };
                let same = companion.reviews.values().filter(|review| review.session == session);
                let decided: Vec<_> = same.map(|review| review.id).collect();
                companion.deciding.extend(decided);
                let all = SessionRef { session };
                let request = if matches!(action, Confirmed::AcceptAll(_)) {
                    Request::ReviewAcceptAll(all)
                } else {
                    Request::ReviewRejectAll(all)
                };
                self.ask(key.companion, request)
            }
        }
    }

    pub(super) fn edit_in_place(&mut self) {
        if let Some(open) = self.open.as_ref() {
            let edit = Edit::new(open.key, open.draft.shared().clone(), open.draft_line());
            self.overlay = Some(Overlay::Edit(Box::new(edit)));
        }
    }

    pub(super) fn open_editor(&mut self) -> Vec<Action> {
        let Some(open) = self.open.as_ref() else {
            return Vec::new();
        };
        vec![Action::OpenEditor {
            key: open.key,
            path: open.summary.path.clone(),
            text: open.draft.shared().clone(),
            line: open.draft_line() + 1,
        }]
    }

    /// Sends what was typed in place.
    pub(super) fn save(&mut self) -> Vec<Action> {
        let Some(Overlay::Edit(edit)) = self.overlay.as_mut() else {
            return Vec::new();
        };
        let Some(open) = self.open.as_ref().filter(|open| open.key == edit.key) else {
            return Vec::new();
        };
        let (key, version) = (edit.key, open.version);
        let request = match edit.merged(open.draft.shared()) {
            Merged::Nothing => {
                self.overlay = None;
                return Vec::new();
            }
            Merged::Change(change) => Request::ReviewChange(Change {
                review: key.review,
                version,
                changes: vec![change],
            }),
            Merged::Conflict if edit.overwrites => Request::ReviewEdit(NewDraft {
                review: key.review,
                content: edit.text().into(),
            }),
            Merged::Conflict => {
                edit.overwrites = true;
                edit.is_saving = false;
                self.complain(
                    "Another front end changed the same lines. Esc again replaces its text with yours, Ctrl-C discards yours.",
                );
                return Vec::new();
            }
        };
        if self.is_connected(key.companion)
            && let Some(Overlay::Edit(edit)) = self.overlay.as_mut()
        {
            edit.is_saving = true;
        }
        self.ask(key.companion, request)
    }

    /// The draft was fetched after a change that came too late.
    pub(super) fn save_again(&mut self, key: ReviewKey) -> Vec<Action> {
        match &self.overlay {
            Some(Overlay::Edit(edit)) if edit.is_saving && edit.key == key => self.save(),
            _ => Vec::new(),
        }
    }

    pub(super) fn editor_closed(
        &mut self,
        key: ReviewKey,
        original: Arc<str>,
        text: Result<String, String>,
    ) -> Vec<Action> {
        let text = match text {
            Ok(text) if *text == *original => return Vec::new(),
            Ok(text) => text,
            Err(sentence) => {
                self.complain(sentence);
                return Vec::new();
            }
        };
        // As if it had been typed here: it stays on the screen until the companion has it.
        self.overlay = Some(Overlay::Edit(Box::new(Edit::written(key, original, &text))));
        if self.open.as_ref().is_none_or(|open| open.key != key) {
            self.complain(
                "The change was closed while your editor was open. Your text can no longer be saved; Esc closes it.",
            );
            return Vec::new();
        }
        self.save()
    }
}

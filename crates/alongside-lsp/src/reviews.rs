//! Pending changes as an editor can show them: hints on their lines, and messages.

use std::collections::BTreeMap;
use std::path::Path;

use alongside_core::draft::{Hunk, HunkState, LineRange};
use alongside_core::printable::{printable, printable_line};
use alongside_core::{ReviewId, ReviewOutcome};
use alongside_protocol::{Backend, Empty, Notification, ReviewRef, ReviewTexts, requests};

use crate::actions::capitalized;
use crate::client::Open;
use crate::front_end::{LspFrontEnd, PendingRequest};
use crate::text::{Encoding, Lines};
use crate::types::{
    Diagnostic, DiagnosticData, DiagnosticSeverity, MessageActionItem, MessageType, Position, PublishDiagnosticsParams,
    Range, ShowMessageParams,
};
use crate::uri;

/// How much of a hunk a hint shows.
const MAX_LINES: usize = 8;
const MAX_LINE_CHARS: usize = 160;

/// The answers to the question about a change. The first is what an accidental key press selects.
pub(crate) const SHOW: &str = "Show change";
pub(crate) const ACCEPT: &str = "Accept change";
pub(crate) const REJECT: &str = "Reject change";

/// Which side of a review a file shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The reviewed file.
    Base,
    Draft,
}

impl<B: Backend> LspFrontEnd<B> {
    pub(crate) async fn on_notification(&mut self, notification: &Notification) {
        match notification {
            Notification::ReviewOpened(review) => {
                self.fetch_review(review.id).await;
                self.announce(review.id);
                self.show_new(review.id);
            }
            Notification::ReviewChanged(review) => {
                self.fetch_review(review.id).await;
                self.announce(review.id);
            }
            Notification::ReviewEdited(edited) => self.fetch_review(edited.review).await,
            Notification::ReviewRebased(rebased) => self.fetch_review(rebased.review).await,
            Notification::ReviewClosed(closed) => self.review_closed(closed.review, &closed.path, closed.outcome),
            Notification::Resync(_) => self.fetch_reviews().await,
            Notification::ProblemsChanged(now) => {
                for problem in &now.problems {
                    self.show_message(MessageType::Error, &capitalized(problem));
                }
            }
            Notification::FileShow(target) => {
                let line = target.line.and_then(|line| usize::try_from(line).ok());
                let line = line.map_or(0, |line| line.saturating_sub(1));
                let start = Position { line, character: 0 };
                let selection = Range { start, end: start };
                self.show_file(&target.path, selection, false, "which an agent wants to show you");
            }
            Notification::AgentsChanged(_)
            | Notification::ContextChanged(_)
            | Notification::ChatEvent(_)
            | Notification::ChatChanged(_) => {}
        }
    }

    pub(crate) async fn fetch_reviews(&mut self) {
        let Ok(list) = self.call::<requests::ReviewList>(Empty {}).await else {
            return;
        };
        let is_pending = |id: &ReviewId| list.iter().any(|review| review.id == *id);
        self.reviews.retain(|id, _| is_pending(id));
        self.announced.retain(|id, _| is_pending(id));
        for review in &list {
            self.fetch_review(review.id).await;
            self.announce(review.id);
        }
        self.publish();
    }

    /// Fetches a review with its texts, and shows it.
    async fn fetch_review(&mut self, review: ReviewId) {
        match self.call::<requests::ReviewGet>(ReviewRef { review }).await {
            Ok(texts) => {
                self.reviews.insert(review, texts);
            }
            // Decided since; another notification says so.
            Err(_) => return,
        }
        self.draft_changed(review).await;
        self.publish();
    }

    fn review_closed(&mut self, review: ReviewId, path: &str, outcome: ReviewOutcome) {
        self.reviews.remove(&review);
        self.announced.remove(&review);
        let was_edited = self.close_draft_file(review);
        self.publish();
        let name = display_name(path);
        match outcome {
            ReviewOutcome::Accepted => {
                let reload = self.client.profile.reload;
                self.show_message(
                    MessageType::Info,
                    &format!("Change to {name} accepted; the agent is writing it{reload}."),
                );
            }
            // Shown even if the user just did it here: nothing else in the editor does.
            ReviewOutcome::Rejected => self.show_message(MessageType::Info, &format!("Change to {name} rejected.")),
            ReviewOutcome::ClosedByAgent | ReviewOutcome::Orphaned if was_edited => {
                self.show_message(MessageType::Info, &format!("The change to {name} was {outcome}."));
            }
            ReviewOutcome::ClosedByAgent | ReviewOutcome::Orphaned | ReviewOutcome::ShutDown => {}
        }
    }

    /// Tells the user of a review as it was fetched, once for each revision: a notification may be about what is known already.
    fn announce(&mut self, review: ReviewId) {
        let Some(review) = self.reviews.get(&review).map(|texts| texts.summary.clone()) else {
            return;
        };
        let what = match self.announced.insert(review.id, review.revision) {
            None => "proposed a change to",
            Some(announced) if announced < review.revision => "revised its change to",
            Some(_) => return,
        };
        let (agent, name) = (
            printable_line(&review.agent_identity().to_string()),
            display_name(&review.path),
        );
        let (added, removed) = (review.size.added, review.size.removed);
        let how = self.client.profile.code_actions;
        let message = format!("{agent} {what} {name} (+{added} −{removed}); review with {how}");
        if self.client.abilities.asks_questions {
            let action = |title: &str| MessageActionItem {
                title: title.to_owned(),
            };
            let params = ShowMessageParams {
                kind: MessageType::Info,
                message: &message,
                actions: [SHOW, ACCEPT, REJECT].map(action).into(),
            };
            let about = PendingRequest::Decide {
                review: review.id,
                revision: review.revision,
            };
            self.request("window/showMessageRequest", &params, about);
        } else {
            self.show_message(MessageType::Info, &message);
        }
    }

    /// Opens the diff of a new change if the user wants that, and if no other was opened: the protocol cannot close a file, and a
    /// burst of changes must not fill the screen.
    fn show_new(&mut self, review: ReviewId) {
        let take_focus = match self.client.open {
            Open::Notify => return,
            Open::View => false,
            Open::Focus => true,
        };
        if self.shown.is_none_or(|shown| !self.reviews.contains_key(&shown)) {
            self.open_diff(review, take_focus);
        }
    }

    /// Sends the diagnostics of every file where they have changed.
    pub(crate) fn publish(&mut self) {
        if !self.is_initialized {
            return;
        }
        let hints = self.hints();
        let gone: Vec<String> = self
            .published
            .keys()
            .filter(|address| !hints.contains_key(*address))
            .cloned()
            .collect();
        let mut is_changed = !gone.is_empty();
        for address in gone {
            self.published.remove(&address);
            self.publish_one(&address, &[]);
        }
        for (address, hints) in hints {
            if self.published.get(&address) != Some(&hints) {
                self.publish_one(&address, &hints);
                self.published.insert(address, hints);
                is_changed = true;
            }
        }
        if is_changed && self.client.abilities.refreshes_lenses {
            self.request("workspace/codeLens/refresh", &(), PendingRequest::Ignored);
        }
    }

    fn publish_one(&self, uri: &str, diagnostics: &[Diagnostic]) {
        let params = PublishDiagnosticsParams { uri, diagnostics };
        self.notify("textDocument/publishDiagnostics", &params);
    }

    /// All hints by URI.
    fn hints(&self) -> BTreeMap<String, Vec<Diagnostic>> {
        let mut all: BTreeMap<String, Vec<Diagnostic>> = BTreeMap::new();
        for (id, review) in &self.reviews {
            let lines = ReviewLines::new(review);
            let hints = |side| lines.hints(side, self.client.encoding);
            all.entry(self.address_of(review))
                .or_default()
                .extend(hints(Side::Base));
            let draft_file = self.draft_files.get(id).map(|file| &file.address);
            if let Some(address) = draft_file.filter(|address| self.documents.get(address).is_some()) {
                all.entry(address.clone()).or_default().extend(hints(Side::Draft));
            }
        }
        all
    }

    /// The URI of a reviewed file in the editor's spelling.
    pub(crate) fn address_of(&self, review: &ReviewTexts) -> String {
        let path = &review.summary.path;
        let known = self.documents.address_of(path).map(str::to_owned);
        known.unwrap_or_else(|| uri::of_path(path))
    }
}

/// The texts of a review, split into lines.
pub(crate) struct ReviewLines<'review> {
    review: &'review ReviewTexts,
    base: Lines<'review>,
    proposal: Lines<'review>,
    draft: Lines<'review>,
}

impl<'review> ReviewLines<'review> {
    pub(crate) fn new(review: &'review ReviewTexts) -> Self {
        Self {
            review,
            base: Lines::new(review.base.as_deref().unwrap_or_default()),
            proposal: Lines::new(&review.proposal),
            draft: Lines::new(&review.draft),
        }
    }

    /// Where a hunk is in the file with one side's lines.
    pub(crate) fn range(&self, hunk: &Hunk, side: Side, encoding: Encoding) -> Range {
        let (text, lines) = match side {
            Side::Base => (&self.base, hunk.base),
            Side::Draft => (&self.draft, hunk.draft),
        };
        text.range(lines.start.saturating_sub(1), lines.count, encoding)
    }

    fn hints(&self, side: Side, encoding: Encoding) -> impl Iterator<Item = Diagnostic> {
        self.review.hunks.iter().map(move |hunk| Diagnostic {
            range: self.range(hunk, side, encoding),
            // The lowest one: nothing is wrong.
            severity: DiagnosticSeverity::Hint,
            source: "alongside",
            message: self.hint_text(hunk, side),
            data: DiagnosticData {
                review: self.review.summary.id,
                hunk: hunk.id,
            },
        })
    }

    /// What is proposed here and by which agent, or what was decided.
    fn hint_text(&self, hunk: &Hunk, side: Side) -> String {
        let agent = printable_line(&self.review.summary.agent_identity().to_string());
        let draft = || excerpt(&self.draft, hunk.draft, "+ ");
        let base = || excerpt(&self.base, hunk.base, "- ");
        let what = match (side, hunk.state) {
            (Side::Base, HunkState::Rejected) => {
                let proposal = excerpt(&self.proposal, hunk.proposal, "+ ");
                format!("You rejected this change by {agent}:{proposal}")
            }
            (Side::Base, HunkState::Conflict) => {
                format!(
                    "The file changed here while {agent}'s change was pending. Accept, reject or keep:{}",
                    draft()
                )
            }
            (Side::Base, _) if hunk.draft.count == 0 => format!("{agent} proposes to remove this"),
            (Side::Base, _) if hunk.base.count == 0 => format!("{agent} proposes to insert before this:{}", draft()),
            (Side::Base, _) => format!("{agent} proposes to replace this with:{}", draft()),
            (Side::Draft, HunkState::Rejected) => "Unchanged; you rejected the proposed change here".to_owned(),
            (Side::Draft, HunkState::Conflict) => {
                format!(
                    "The file also changed here. Accept, reject or keep; the file now has:{}",
                    base()
                )
            }
            (Side::Draft, _) if hunk.base.count == 0 => "New".to_owned(),
            (Side::Draft, _) if hunk.draft.count == 0 => format!("Removed before this:{}", base()),
            (Side::Draft, _) => format!("Replaces:{}", base()),
        };
        match hunk.state {
            HunkState::Edited if hunk.yours => format!("{what}\n(your edit)"),
            HunkState::Edited => format!("{what}\n(edited)"),
            _ => what,
        }
    }
}

/// The first of some lines.
fn excerpt(text: &Lines<'_>, lines: LineRange, mark: &str) -> String {
    let mut shown = String::new();
    for line in text.take(lines.start.saturating_sub(1), lines.count.min(MAX_LINES)) {
        let cut: String = line.chars().take(MAX_LINE_CHARS).collect();
        let more = if cut.len() < line.len() { "…" } else { "" };
        shown.push_str(&format!("\n{mark}{}{more}", printable(&cut)));
    }
    if lines.count > MAX_LINES {
        shown.push_str(&format!("\n… and {} more lines", lines.count - MAX_LINES));
    }
    shown
}

/// The file name without directories, safe to print.
pub(crate) fn display_name(path: &str) -> String {
    let name = Path::new(path).file_name().and_then(|name| name.to_str());
    printable_line(name.unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn review(base: &str, proposal: &str) -> ReviewTexts {
        let draft = alongside_core::draft::Draft::new(base, proposal, None);
        let summary = json!({
            "id": 1, "path": "/a", "agent": "\u{1b}Agent", "session": "s", "revision": 1, "version": 1, "newFile": false,
            "edited": false, "size": { "added": 0, "removed": 0 }, "conflicts": 0, "opened": 0,
            "takesReason": false,
        });
        ReviewTexts {
            summary: serde_json::from_value(summary).unwrap(),
            base: Some(base.into()),
            proposal: proposal.into(),
            draft: proposal.into(),
            hunks: draft.hunks().collect(),
            notes: Vec::new(),
        }
    }

    fn hints(base: &str, proposal: &str, side: Side) -> Vec<String> {
        let review = review(base, proposal);
        let lines = ReviewLines::new(&review);
        review.hunks.iter().map(|hunk| lines.hint_text(hunk, side)).collect()
    }

    #[test]
    fn hint_names_the_agent_and_escapes_control_characters() {
        let hint = hints("one\ntwo\n", "one\n\u{1b}[2J\u{202e}\n", Side::Base);
        assert_eq!(
            hint,
            ["\\u{1b}Agent proposes to replace this with:\n+ \\u{1b}[2J\\u{202e}"]
        );
        assert_eq!(
            hints("one\ntwo\n", "one\n", Side::Base),
            ["\\u{1b}Agent proposes to remove this"]
        );
        assert_eq!(
            hints("one\n", "zero\none\n", Side::Base),
            ["\\u{1b}Agent proposes to insert before this:\n+ zero"]
        );
        assert_eq!(hints("one\ntwo\n", "one\n2\n", Side::Draft), ["Replaces:\n- two"]);
        assert_eq!(
            hints("one\ntwo\n", "one\n", Side::Draft),
            ["Removed before this:\n- two"]
        );
        assert_eq!(hints("one\n", "zero\none\n", Side::Draft), ["New"]);
    }

    #[test]
    fn hint_has_a_length_limit() {
        let long = "x".repeat(10_000) + "\n";
        let hint = hints("", &long.repeat(100), Side::Base).concat();
        assert!(hint.len() < 2000 && hint.ends_with("… and 92 more lines"), "{hint}");
    }
}

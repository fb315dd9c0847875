//! The changes that wait, as an editor can show them: hints beside the lines that they are about, and messages.

use std::collections::BTreeMap;
use std::path::Path;

use alongside_core::draft::{Hunk, HunkState, LineRange};
use alongside_core::printable::{printable, printable_line};
use alongside_core::{ReviewId, ReviewOutcome};
use serde_json::{Value, json};

use super::face::{Asked, Face, Tone};
use super::text::{Encoding, Lines, Range};
use super::uri;
use alongside_protocol::Desk;
use alongside_protocol::{Nothing, Notification, Request, ReviewRef, ReviewSummary, ReviewTexts};

/// How much of a hunk a hint shows.
const LINES_SHOWN: usize = 8;
const CHARACTERS_SHOWN: usize = 160;

/// The answers to the question about a change. The first is what a key pressed by accident chooses.
pub(super) const SHOW: &str = "Show change";
pub(super) const ACCEPT: &str = "Accept change";
pub(super) const REJECT: &str = "Reject change";

/// Which side of a review a file shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The reviewed file.
    Base,
    Draft,
}

impl<D: Desk> Face<D> {
    /// The companion tells something.
    pub(super) async fn heard(&mut self, notification: Notification) {
        match notification {
            Notification::ReviewOpened(review) => {
                self.ask_for(review.id).await;
                self.announce(&review, "proposed a change to");
            }
            Notification::ReviewChanged(review) => {
                let former = self.reviews.get(&review.id).map(|review| review.summary.revision);
                self.ask_for(review.id).await;
                if former.is_some_and(|former| former < review.revision) {
                    self.announce(&review, "revised its change to");
                }
            }
            Notification::ReviewEdited(edited) => self.ask_for(edited.review).await,
            Notification::ReviewRebased(rebased) => self.ask_for(rebased.review).await,
            Notification::ReviewClosed(closed) => self.over(closed.review, &closed.path, closed.outcome),
            Notification::Resync(_) => self.ask_for_reviews().await,
            Notification::AgentsChanged(_)
            | Notification::ContextChanged(_)
            | Notification::ChatEvent(_)
            | Notification::ChatChanged(_) => {}
        }
    }

    /// Asks for everything that waits.
    pub(super) async fn ask_for_reviews(&mut self) {
        let Ok(list) = self.call::<Vec<ReviewSummary>>(Request::ReviewList(Nothing {})).await else {
            return;
        };
        self.reviews.retain(|id, _| list.iter().any(|review| review.id == *id));
        for review in &list {
            let is_new = !self.reviews.contains_key(&review.id);
            self.ask_for(review.id).await;
            if is_new {
                self.announce(review, "proposed a change to");
            }
        }
        self.publish();
    }

    /// Asks for a review with its texts, and shows it.
    async fn ask_for(&mut self, review: ReviewId) {
        match self.call::<ReviewTexts>(Request::ReviewGet(ReviewRef { review })).await {
            Ok(texts) => {
                self.reviews.insert(review, texts);
            }
            // It was decided meanwhile, which is told too.
            Err(_) => return,
        }
        self.draft_changed(review).await;
        self.publish();
    }

    fn over(&mut self, review: ReviewId, path: &str, outcome: ReviewOutcome) {
        self.reviews.remove(&review);
        let was_edited = self.forget_sheet(review);
        self.publish();
        let name = short(path);
        match outcome {
            ReviewOutcome::Accepted => {
                let reload = self.client.habits.reload;
                self.say(
                    Tone::Information,
                    &format!("Change to {name} accepted; the agent is writing it{reload}."),
                );
            }
            // Said even if the person did it: an editor shows nothing else.
            ReviewOutcome::Rejected => self.say(Tone::Information, &format!("Change to {name} rejected.")),
            ReviewOutcome::ClosedByAgent | ReviewOutcome::Orphaned if was_edited => {
                self.say(Tone::Information, &format!("The change to {name} was {outcome}."));
            }
            ReviewOutcome::ClosedByAgent | ReviewOutcome::Orphaned | ReviewOutcome::ShutDown => {}
        }
    }

    /// Tells the person that a change waits.
    fn announce(&mut self, review: &ReviewSummary, what: &str) {
        let (agent, name) = (printable_line(&review.agent), short(&review.path));
        let (added, removed) = (review.size.added, review.size.removed);
        let how = self.client.habits.code_actions;
        let message = format!("{agent} {what} {name} (+{added} −{removed}); review with {how}");
        if self.client.abilities.asks_questions {
            let actions = [SHOW, ACCEPT, REJECT].map(|title| json!({ "title": title }));
            let params = json!({ "type": Tone::Information as u8, "message": message, "actions": actions });
            let about = Asked::Decide {
                review: review.id,
                revision: review.revision,
            };
            self.ask("window/showMessageRequest", &params, about);
        } else {
            self.say(Tone::Information, &message);
        }
    }

    /// Shows the hints that there should be, where they are not shown yet.
    pub(super) fn publish(&mut self) {
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
            self.publish_one(&address, &json!([]));
        }
        for (address, hints) in hints {
            if self.published.get(&address) != Some(&hints) {
                self.publish_one(&address, &hints);
                self.published.insert(address, hints);
                is_changed = true;
            }
        }
        if is_changed && self.client.abilities.refreshes_lenses {
            self.ask("workspace/codeLens/refresh", &Value::Null, Asked::Nothing);
        }
    }

    fn publish_one(&self, address: &str, hints: &Value) {
        let params = json!({ "uri": address, "diagnostics": hints });
        self.outgoing.notify("textDocument/publishDiagnostics", &params);
    }

    /// All hints by the address of their file.
    fn hints(&self) -> BTreeMap<String, Value> {
        let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for (id, review) in &self.reviews {
            let pages = Pages::of(review);
            let hints = |side| pages.hints(side, self.client.encoding);
            all.entry(self.address_of(review))
                .or_default()
                .extend(hints(Side::Base));
            let sheet = self.sheets.get(id).map(|sheet| &sheet.address);
            if let Some(address) = sheet.filter(|address| self.documents.get(address).is_some()) {
                all.entry(address.clone()).or_default().extend(hints(Side::Draft));
            }
        }
        all.into_iter()
            .map(|(address, hints)| (address, json!(hints)))
            .collect()
    }

    /// The address of a reviewed file, as the editor knows it.
    pub(super) fn address_of(&self, review: &ReviewTexts) -> String {
        let path = &review.summary.path;
        let known = self.documents.address_of(path).map(str::to_owned);
        known.unwrap_or_else(|| uri::of_path(path))
    }
}

/// The texts of a review, by lines.
pub(super) struct Pages<'review> {
    review: &'review ReviewTexts,
    base: Lines<'review>,
    proposal: Lines<'review>,
    draft: Lines<'review>,
}

impl<'review> Pages<'review> {
    pub(super) fn of(review: &'review ReviewTexts) -> Self {
        Self {
            review,
            base: Lines::of(review.base.as_deref().unwrap_or_default()),
            proposal: Lines::of(&review.proposal),
            draft: Lines::of(&review.draft),
        }
    }

    /// Where a hunk is in the file that shows one side.
    pub(super) fn place(&self, hunk: &Hunk, side: Side, encoding: Encoding) -> Range {
        let (page, lines) = match side {
            Side::Base => (&self.base, hunk.base),
            Side::Draft => (&self.draft, hunk.draft),
        };
        page.range(lines.start.saturating_sub(1), lines.count, encoding)
    }

    fn hints(&self, side: Side, encoding: Encoding) -> impl Iterator<Item = Value> {
        self.review.hunks.iter().map(move |hunk| {
            json!({
                "range": self.place(hunk, side, encoding),
                // The lowest there is: nothing is wrong.
                "severity": 4,
                "source": "alongside",
                "message": self.words(hunk, side),
                "data": { "review": self.review.summary.id, "hunk": hunk.id },
            })
        })
    }

    /// What a hint says: who wants what here, and what became of it.
    fn words(&self, hunk: &Hunk, side: Side) -> String {
        let agent = printable_line(&self.review.summary.agent);
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

/// The first lines of a stretch.
fn excerpt(page: &Lines<'_>, lines: LineRange, mark: &str) -> String {
    let mut shown = String::new();
    for line in page.take(lines.start.saturating_sub(1), lines.count.min(LINES_SHOWN)) {
        let cut: String = line.chars().take(CHARACTERS_SHOWN).collect();
        let more = if cut.len() < line.len() { "…" } else { "" };
        shown.push_str(&format!("\n{mark}{}{more}", printable(&cut)));
    }
    if lines.count > LINES_SHOWN {
        shown.push_str(&format!("\n… and {} more lines", lines.count - LINES_SHOWN));
    }
    shown
}

/// The name of a file, as people say it.
pub(super) fn short(path: &str) -> String {
    let name = Path::new(path).file_name().and_then(|name| name.to_str());
    printable_line(name.unwrap_or(path))
}

/// What is sent in the answer to a question.
pub(super) fn chosen(answer: &Value) -> Option<&str> {
    answer["title"].as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(base: &str, proposal: &str) -> ReviewTexts {
        let draft = alongside_core::draft::Draft::new(base, proposal, None);
        let summary = json!({
            "id": 1, "path": "/a", "agent": "\u{1b}Agent", "session": "s", "revision": 1, "version": 1, "newFile": false,
            "edited": false, "size": { "added": 0, "removed": 0 }, "conflicts": 0, "opened": 0,
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

    fn words(base: &str, proposal: &str, side: Side) -> Vec<String> {
        let review = review(base, proposal);
        let pages = Pages::of(&review);
        review.hunks.iter().map(|hunk| pages.words(hunk, side)).collect()
    }

    #[test]
    fn a_hint_says_who_wants_what_and_nothing_in_it_is_obeyed() {
        let said = words("one\ntwo\n", "one\n\u{1b}[2J\u{202e}\n", Side::Base);
        assert_eq!(said, ["\\u{1b}Agent would replace this with:\n+ \\u{1b}[2J\\u{202e}"]);
        assert_eq!(
            words("one\ntwo\n", "one\n", Side::Base),
            ["\\u{1b}Agent would remove this"]
        );
        assert_eq!(
            words("one\n", "zero\none\n", Side::Base),
            ["\\u{1b}Agent would put before this:\n+ zero"]
        );
        assert_eq!(words("one\ntwo\n", "one\n2\n", Side::Draft), ["In place of:\n- two"]);
        assert_eq!(
            words("one\ntwo\n", "one\n", Side::Draft),
            ["Removed before this:\n- two"]
        );
        assert_eq!(words("one\n", "zero\none\n", Side::Draft), ["New"]);
    }

    #[test]
    fn a_hint_stays_short() {
        let long = "x".repeat(10_000) + "\n";
        let said = words("", &long.repeat(100), Side::Base).concat();
        assert!(said.len() < 2000 && said.ends_with("… and 92 more lines"), "{said}");
    }
}

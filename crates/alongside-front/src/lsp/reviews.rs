//! The changes that wait, as an editor can show them: hints beside the lines that they are about, and messages.

use std::collections::BTreeMap;
use std::path::Path;

use alongside_core::draft::{Hunk, HunkState, LineRange};
use alongside_core::printable::{printable, printable_line};
use alongside_core::{Outcome, ReviewId};
use serde_json::{Value, json};

use super::face::{Asked, Face, Tone};
use super::text::{self, Encoding, Range};
use super::uri;
use crate::desk::Desk;
use crate::protocol::{Nothing, Notification, Request, ReviewRef, ReviewSummary, ReviewTexts};

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
    /// The draft.
    Draft,
}

impl Side {
    pub(super) fn lines(self, hunk: &Hunk) -> LineRange {
        match self {
            Self::Base => hunk.base,
            Self::Draft => hunk.draft,
        }
    }
}

impl<D: Desk> Face<D> {
    /// The companion tells something.
    pub(super) async fn heard(&mut self, notification: Notification) {
        match notification {
            Notification::ReviewOpened(review) => {
                self.ask_for(review.id).await;
                self.announce(&review, "proposes a change to");
            }
            Notification::ReviewChanged(review) => {
                let former = self.reviews.get(&review.id).map(|review| review.summary.revision);
                self.ask_for(review.id).await;
                if former.is_some_and(|former| former < review.revision) {
                    self.announce(&review, "proposes another change to");
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
                self.announce(review, "proposes a change to");
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

    fn over(&mut self, review: ReviewId, path: &str, outcome: Outcome) {
        self.reviews.remove(&review);
        let was_edited = self.forget_sheet(review);
        self.publish();
        let name = short(path);
        match outcome {
            Outcome::Accepted => {
                let reload = self.client.habits.reload;
                self.say(
                    Tone::Information,
                    &format!("The change to {name} was accepted; the agent writes it{reload}."),
                );
            }
            // Said even if the person did it: an editor shows nothing else.
            Outcome::Rejected => self.say(Tone::Information, &format!("The change to {name} was rejected.")),
            Outcome::ClosedByAgent | Outcome::Orphaned if was_edited => {
                self.say(Tone::Information, &format!("The change to {name} was {outcome}."));
            }
            Outcome::ClosedByAgent | Outcome::Orphaned | Outcome::ShutDown => {}
        }
    }

    /// Tells the person that a change waits.
    fn announce(&mut self, review: &ReviewSummary, what: &str) {
        let (agent, name) = (printable_line(&review.agent), short(&review.path));
        let (added, removed) = (review.size.added, review.size.removed);
        let how = self.client.habits.code_actions;
        let message = format!("{agent} {what} {name} (+{added} −{removed}): {how}");
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
            let encoding = self.client.encoding;
            let base = review.base.as_deref().unwrap_or_default();
            let file = all.entry(self.address_of(review)).or_default();
            file.extend(
                review
                    .hunks
                    .iter()
                    .map(|hunk| hint(review, hunk, Side::Base, base, encoding)),
            );
            if let Some(sheet) = self
                .sheets
                .get(id)
                .filter(|sheet| self.documents.get(&sheet.address).is_some())
            {
                let sheet = all.entry(sheet.address.clone()).or_default();
                let draft = &review.draft;
                sheet.extend(
                    review
                        .hunks
                        .iter()
                        .map(|hunk| hint(review, hunk, Side::Draft, draft, encoding)),
                );
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

    /// Where a hunk is in the file that shows one side of its review.
    pub(super) fn range_of(&self, review: &ReviewTexts, hunk: &Hunk, side: Side) -> Range {
        let text = match side {
            Side::Base => review.base.as_deref().unwrap_or_default(),
            Side::Draft => &review.draft,
        };
        range(hunk, side, text, self.client.encoding)
    }
}

fn range(hunk: &Hunk, side: Side, text: &str, encoding: Encoding) -> Range {
    let lines = side.lines(hunk);
    text::lines(text, lines.start.saturating_sub(1), lines.count, encoding)
}

fn hint(review: &ReviewTexts, hunk: &Hunk, side: Side, text: &str, encoding: Encoding) -> Value {
    json!({
        "range": range(hunk, side, text, encoding),
        // The lowest there is: nothing is wrong.
        "severity": 4,
        "source": "alongside",
        "message": words(review, hunk, side),
        "data": { "review": review.summary.id, "hunk": hunk.id },
    })
}

/// What a hint says: who wants what here, and what became of it.
fn words(review: &ReviewTexts, hunk: &Hunk, side: Side) -> String {
    let agent = printable_line(&review.summary.agent);
    let what = match side {
        Side::Base => {
            let draft = excerpt(&review.draft, hunk.draft, "+ ");
            match hunk.state {
                HunkState::Rejected => format!(
                    "You rejected what {agent} proposes here:{}",
                    excerpt(&review.proposal, hunk.proposal, "+ ")
                ),
                HunkState::Conflict => {
                    format!("This changed while {agent}'s change waited. Accept, reject or keep:{draft}")
                }
                _ if hunk.draft.count == 0 => format!("{agent} would remove this"),
                _ if hunk.base.count == 0 => format!("{agent} would put before this:{draft}"),
                _ => format!("{agent} would replace this with:{draft}"),
            }
        }
        Side::Draft => {
            let base = excerpt(review.base.as_deref().unwrap_or_default(), hunk.base, "- ");
            match hunk.state {
                HunkState::Rejected => "As in the file; you rejected what was proposed here".to_owned(),
                HunkState::Conflict => {
                    format!("The file changed here meanwhile. Accept, reject or keep; the file has:{base}")
                }
                _ if hunk.base.count == 0 => "New".to_owned(),
                _ if hunk.draft.count == 0 => format!("Removed before this:{base}"),
                _ => format!("In place of:{base}"),
            }
        }
    };
    match hunk.state {
        HunkState::Edited if !hunk.yours => format!("{what}\n(edited by you)"),
        HunkState::Edited => format!("{what}\n(your own)"),
        _ => what,
    }
}

/// The first lines of a stretch.
fn excerpt(text: &str, lines: LineRange, mark: &str) -> String {
    let first = lines.start.saturating_sub(1);
    let mut shown = String::new();
    for line in text.lines().skip(first).take(lines.count.min(LINES_SHOWN)) {
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

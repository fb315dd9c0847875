//! What a person can do: code actions, code lenses, and the commands behind both.

use std::sync::Arc;
use std::time::Instant;

use alongside_core::ReviewId;
use alongside_core::difference::unified;
use alongside_core::draft::DIFF_TIMEOUT;
use alongside_core::draft::{HunkId, HunkState};
use alongside_core::printable::printable_line;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::face::{Asked, Face, Tone};
use super::reviews::{self, ACCEPT, Pages, REJECT, SHOW, Side, chosen, short};
use super::text::Range;
use super::uri;
use super::wire::Failure;
use alongside_protocol::{
    Accept, HunkChoice, HunkDecision, Nothing, PageLink, Request, ReviewRef, ReviewTexts, Version,
};
use alongside_protocol::{Desk, Refusal};

/// The kind of every action. A client that asks for other kinds only, on saving for one, gets none.
pub(super) const KIND: &str = "quickfix";

/// How many reviews of other files are offered in a file.
const OTHERS_SHOWN: usize = 5;

const ACCEPT_COMMAND: &str = "alongside.accept";
const REJECT_COMMAND: &str = "alongside.reject";
const SHOW_COMMAND: &str = "alongside.show";
const EDIT_COMMAND: &str = "alongside.edit";
const HUNKS_COMMAND: &str = "alongside.hunks";
const SEND_COMMAND: &str = "alongside.send";
const PAGE_COMMAND: &str = "alongside.page";

/// The commands behind the actions.
pub(super) const COMMANDS: [&str; 7] = [
    ACCEPT_COMMAND,
    REJECT_COMMAND,
    SHOW_COMMAND,
    EDIT_COMMAND,
    HUNKS_COMMAND,
    SEND_COMMAND,
    PAGE_COMMAND,
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AskedActions {
    text_document: Named,
    range: Range,
    #[serde(default)]
    context: Circumstances,
}

#[derive(Deserialize)]
struct Named {
    uri: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Circumstances {
    #[serde(default)]
    only: Option<Vec<String>>,
    /// 2 if the client asks by itself, to see whether there is anything.
    #[serde(default)]
    trigger_kind: Option<u8>,
}

#[derive(Deserialize)]
pub(super) struct Execution {
    command: String,
    #[serde(default)]
    arguments: Vec<Value>,
}

/// What a command is about. It counts for one revision only: a person decides about what was shown.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct About {
    review: ReviewId,
    revision: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hunks: Vec<HunkId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<HunkChoice>,
}

/// A selection that is sent on purpose.
#[derive(Debug, Deserialize, Serialize)]
struct Selection {
    uri: String,
    range: Range,
}

impl<D: Desk> Face<D> {
    /// The actions for a place; that somebody asks says that the person is there.
    pub(super) async fn code_actions(&mut self, asked: AskedActions) -> Result<Value, Failure> {
        let is_wanted = |kinds: &Vec<String>| kinds.iter().any(|kind| kind.is_empty() || kind == KIND);
        if !asked.context.only.as_ref().is_none_or(is_wanted) {
            return Ok(json!([]));
        }
        let address = &asked.text_document.uri;
        self.look_at(address, asked.range).await;
        let mut actions = Vec::new();
        let own = self.shown_in(address);
        for (id, side) in &own {
            if let Some(review) = self.reviews.get(id) {
                if let Some(side) = side {
                    self.offer_hunks(&mut actions, review, *side, asked.range);
                }
                self.offer(&mut actions, review, "");
            }
        }
        // A client that asks by itself shows a light when there is anything; there shall be one only if there is.
        if asked.context.trigger_kind != Some(2) {
            let others = self.reviews.values().filter(|review| {
                let id = review.summary.id;
                !own.iter().any(|(own, _)| *own == id)
            });
            for review in others.take(OTHERS_SHOWN) {
                self.offer(&mut actions, review, &format!(" to {}", short(&review.summary.path)));
            }
            if self.has_selection(address, asked.range) {
                let selection = Selection {
                    uri: address.clone(),
                    range: asked.range,
                };
                actions.push(self.action("Send selection to agents", SEND_COMMAND, &json!(selection)));
            }
            if !self.reviews.is_empty() {
                actions.push(self.action("Review changes in the browser", PAGE_COMMAND, &Value::Null));
            }
        }
        Ok(Value::Array(actions))
    }

    /// The lenses of a file: the same actions, beside the lines that they are about.
    pub(super) fn lenses(&self, address: &str) -> Value {
        let mut lenses = Vec::new();
        for (id, side) in self.shown_in(address) {
            let Some(review) = self.reviews.get(&id) else { continue };
            let mut lens = |range: Range, title: &str, command: &str, argument: &Value| {
                let command = json!({ "title": title, "command": command, "arguments": [argument] });
                lenses.push(json!({ "range": range, "command": command }));
            };
            let pages = Pages::of(review);
            let about = json!(About::of(review));
            for (title, command) in [(ACCEPT, ACCEPT_COMMAND), (REJECT, REJECT_COMMAND), (SHOW, SHOW_COMMAND)] {
                lens(Range::default(), title, command, &about);
            }
            let hunks = side
                .into_iter()
                .flat_map(|side| review.hunks.iter().map(move |hunk| (hunk, side)));
            for (hunk, side) in hunks {
                let range = pages.place(hunk, side, self.client.encoding);
                for (title, decision) in choices(hunk.state) {
                    let about = About {
                        hunks: vec![hunk.id],
                        decision: Some(decision),
                        ..About::of(review)
                    };
                    lens(range, title, HUNKS_COMMAND, &json!(about));
                }
            }
        }
        Value::Array(lenses)
    }

    /// The reviews that a file is about, and which of their sides it shows, if it shows lines at all.
    fn shown_in(&self, address: &str) -> Vec<(ReviewId, Option<Side>)> {
        let document = self.documents.get(address);
        if let Some(review) = document.and_then(|document| self.scratch.review_of(&document.real)) {
            let is_draft = self.sheets.get(&review).is_some_and(|sheet| sheet.address == address);
            return vec![(review, is_draft.then_some(Side::Draft))];
        }
        let reviews = self.reviews.iter();
        reviews
            .filter(|(_, review)| self.address_of(review) == address)
            .map(|(id, _)| (*id, Some(Side::Base)))
            .collect()
    }

    /// Offers to decide the hunks that a range touches.
    fn offer_hunks(&self, actions: &mut Vec<Value>, review: &ReviewTexts, side: Side, range: Range) {
        let pages = Pages::of(review);
        let touched = review.hunks.iter().filter(|hunk| {
            let place = pages.place(hunk, side, self.client.encoding);
            place.start.line <= range.end.line && range.start.line <= place.end.line
        });
        let touched: Vec<_> = touched.collect();
        for decision in [HunkChoice::Accept, HunkChoice::Reject, HunkChoice::Keep] {
            let is_possible = |state| choices(state).any(|(_, possible)| possible == decision);
            let hunks: Vec<HunkId> = touched
                .iter()
                .filter(|hunk| is_possible(hunk.state))
                .map(|hunk| hunk.id)
                .collect();
            if hunks.is_empty() {
                continue;
            }
            let word = match decision {
                HunkChoice::Accept => "Accept",
                HunkChoice::Reject => "Reject",
                HunkChoice::Keep => "Keep",
            };
            let title = match hunks.len() {
                1 => format!("{word} hunk"),
                count => format!("{word} {count} hunks"),
            };
            let about = About {
                hunks,
                decision: Some(decision),
                ..About::of(review)
            };
            actions.push(self.action(&title, HUNKS_COMMAND, &json!(about)));
        }
    }

    /// Offers what can be done with a whole change.
    fn offer(&self, actions: &mut Vec<Value>, review: &ReviewTexts, to: &str) {
        let about = json!(About::of(review));
        let (size, agent) = (review.summary.size, printable_line(&review.summary.agent));
        let size = format!("+{} −{}, {agent}", size.added, size.removed);
        let titles = [
            (format!("{ACCEPT}{to} ({size})"), ACCEPT_COMMAND),
            (format!("{REJECT}{to} ({size})"), REJECT_COMMAND),
            (format!("{SHOW}{to}"), SHOW_COMMAND),
            (format!("Edit change{to}"), EDIT_COMMAND),
        ];
        for (title, command) in titles {
            actions.push(self.action(&title, command, &about));
        }
    }

    fn action(&self, title: &str, command: &str, argument: &Value) -> Value {
        let command = json!({ "title": title, "command": command, "arguments": [argument] });
        if self.client.abilities.code_action_literals {
            json!({ "title": title, "kind": KIND, "command": command })
        } else {
            command
        }
    }

    /// Carries a command out. What is refused is said in a message, because clients keep errors to themselves.
    pub(super) async fn execute(&mut self, execution: Execution) -> Result<(), Failure> {
        let argument = execution.arguments.into_iter().next().unwrap_or_default();
        let wrong = |error: serde_json::Error| Failure::new(-32602, format!("invalid argument: {error}"));
        let outcome = match execution.command.as_str() {
            SEND_COMMAND => {
                let selection: Selection = serde_json::from_value(argument).map_err(wrong)?;
                self.send(&selection).await;
                Ok(())
            }
            PAGE_COMMAND => self.open_page().await,
            command if COMMANDS.contains(&command) => {
                let about: About = serde_json::from_value(argument).map_err(wrong)?;
                self.decide(command, about).await
            }
            other => return Err(Failure::new(-32601, format!("unknown command `{other}`"))),
        };
        if let Err(refusal) = outcome {
            self.say(Tone::Error, &capitalised(&refusal.message));
        }
        Ok(())
    }

    /// The answer to the question about a change.
    pub(super) async fn answered_question(&mut self, review: ReviewId, revision: u32, answer: &Value) {
        let command = match chosen(answer) {
            Some(reviews::SHOW) => SHOW_COMMAND,
            Some(reviews::ACCEPT) => ACCEPT_COMMAND,
            Some(reviews::REJECT) => REJECT_COMMAND,
            _ => return,
        };
        let about = About {
            review,
            revision,
            hunks: Vec::new(),
            decision: None,
        };
        if let Err(refusal) = self.decide(command, about).await {
            self.say(Tone::Error, &capitalised(&refusal.message));
        }
    }

    async fn decide(&mut self, command: &str, about: About) -> Result<(), Refusal> {
        let review = about.review;
        // What is saved in the file of a draft counts, even if nobody told us yet.
        self.look_at_sheet(review).await;
        let known = self.reviews.get(&review).map(|review| review.summary.revision);
        if known.is_some_and(|known| known != about.revision) {
            let message = "the agent has since revised this change; review it again";
            return Err(Refusal::new("stale", message));
        }
        match command {
            ACCEPT_COMMAND => {
                let accept = Accept {
                    review,
                    content: None,
                    even_if_empty: false,
                };
                self.call::<Value>(Request::ReviewAccept(accept)).await.map(drop)
            }
            REJECT_COMMAND => {
                let asked = ReviewRef { review };
                self.call::<Value>(Request::ReviewReject(asked)).await.map(drop)
            }
            SHOW_COMMAND => self.show_difference(review),
            EDIT_COMMAND => self.open_sheet(review),
            _ => {
                let decision = about.decision.unwrap_or(HunkChoice::Keep);
                for hunk in about.hunks {
                    let decision = HunkDecision { review, hunk, decision };
                    self.call::<Version>(Request::ReviewHunk(decision)).await?;
                }
                Ok(())
            }
        }
    }

    /// Shows a change as a difference.
    fn show_difference(&mut self, id: ReviewId) -> Result<(), Refusal> {
        let review = self.known(id)?;
        let name = printable_line(&review.summary.path);
        let old_name = if review.summary.new_file { "/dev/null" } else { &name };
        let base = review.base.as_deref().unwrap_or_default();
        let mut difference = String::new();
        for note in &review.notes {
            difference.push_str(&format!("# {note}\n"));
        }
        difference.push_str(&unified(
            base,
            &review.draft,
            old_name,
            &name,
            Some(Instant::now() + DIFF_TIMEOUT),
        ));
        let path = Arc::clone(&review.summary.path);
        let written = self.scratch.write(id, &path, ".diff", &difference);
        let file = written.map_err(|error| not_written(&error))?;
        self.show_file(&file.to_string_lossy(), Range::default(), "to view the change");
        Ok(())
    }

    /// Asks the editor to open a file; a person who has to open it by hand is told which.
    pub(super) fn show_file(&mut self, path: &str, selection: Range, why: &str) {
        let params = json!({ "uri": uri::of_path(path), "takeFocus": true, "selection": selection });
        let otherwise = format!("Open {path} {why}.");
        self.ask("window/showDocument", &params, Asked::Show { otherwise });
    }

    async fn open_page(&mut self) -> Result<(), Refusal> {
        let link: PageLink = self.call(Request::PageLink(Nothing {})).await?;
        let params = json!({ "uri": link.url, "external": true });
        // Not the link itself: messages are kept, and it opens the page to whoever has it.
        let otherwise = "Run `alongside page --open` to review in the browser.".to_owned();
        self.ask("window/showDocument", &params, Asked::Show { otherwise });
        Ok(())
    }

    async fn send(&mut self, selection: &Selection) {
        self.look_at(&selection.uri, selection.range).await;
        let Some(document) = self.documents.get(&selection.uri) else {
            return;
        };
        let range = self.selected(document, selection.range);
        let lines = document.between(range, self.client.encoding).lines().count();
        let plural = if lines == 1 { "" } else { "s" };
        let message = format!(
            "Agents will see {lines} line{plural} of {} with your next message.",
            short(&document.path)
        );
        self.say(Tone::Information, &message);
    }

    fn has_selection(&self, address: &str, range: Range) -> bool {
        let document = self.documents.get(address);
        document.is_some_and(|document| {
            let range = self.selected(document, range);
            let selected = document.between(range, self.client.encoding);
            !self.scratch.holds(&document.real) && selected.chars().nth(1).is_some()
        })
    }

    pub(super) fn known(&self, review: ReviewId) -> Result<&ReviewTexts, Refusal> {
        let gone = || Refusal::new("alreadyOver", "this change is already closed");
        self.reviews.get(&review).ok_or_else(gone)
    }
}

impl About {
    fn of(review: &ReviewTexts) -> Self {
        Self {
            review: review.summary.id,
            revision: review.summary.revision,
            hunks: Vec::new(),
            decision: None,
        }
    }
}

/// What can be decided about a hunk in a state.
fn choices(state: HunkState) -> impl Iterator<Item = (&'static str, HunkChoice)> {
    let (accept, reject, keep) = match state {
        HunkState::Accepted => (false, true, false),
        HunkState::Rejected => (true, false, false),
        HunkState::Edited => (true, true, false),
        HunkState::Conflict => (true, true, true),
    };
    [
        (accept, "Accept hunk", HunkChoice::Accept),
        (reject, "Reject hunk", HunkChoice::Reject),
        (keep, "Keep hunk", HunkChoice::Keep),
    ]
    .into_iter()
    .filter(|(is_possible, ..)| *is_possible)
    .map(|(_, title, choice)| (title, choice))
}

pub(super) fn not_written(error: &std::io::Error) -> Refusal {
    Refusal::new("notWritten", format!("cannot write its file: {error}"))
}

fn capitalised(sentence: &str) -> String {
    let mut characters = sentence.chars();
    let first: String = characters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", characters.as_str().trim_end_matches('.'))
}

//! What was said, kept as short as it can be without anybody seeing the difference.
//!
//! A front end that comes late is sent the log, and shows it as if it had been there all the time. So the log keeps the
//! events themselves, and leaves out what has no effect any more:
//!
//! | event | what is kept |
//! |---|---|
//! | pieces of an answer or a thought, one after the other | one piece with all of the text |
//! | the card of a call | the latest, in the place of the first |
//! | models, modes, commands, usage, title, plan, suggestion | the latest |
//! | an approval | nothing, once it is closed: its card tells the rest |
//! | a prompt that waits | nothing, once it begins |
//! | a wish to cancel a turn | nothing, once the turn has ended |
//! | an interruption | nothing, once it is over |
//! | a history that begins | what it does not replace: the session, its models, modes, commands, usage and title |
//! | anything else | all of it |
//!
//! It is bounded: when it is full, the oldest turns go, and a notice says so.

use std::sync::Arc;

use serde_json::{Value, json};

/// The most bytes that a log holds, as JSON.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// The most entries.
const MOST_ENTRIES: usize = 20_000;
/// A piece of text that is longer than this is not made longer.
const LONGEST_PIECE: usize = 64 * 1024;

/// What is said in place of what was dropped.
const DROPPED: &str = "Earlier messages in this conversation are no longer available.";

/// The events that are about the session and not about what was said in it: a history does not replace them.
const ABOUT_THE_SESSION: [&str; 11] = [
    "connected",
    "interrupted",
    "disconnected",
    "models",
    "modelChanged",
    "modes",
    "modeChanged",
    "commands",
    "contextUsage",
    "tokenUsage",
    "title",
];

/// The log of one conversation.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    entries: Vec<Entry>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    event: Arc<Value>,
    bytes: usize,
}

impl Log {
    /// The events that are kept, in order.
    pub(super) fn events(&self) -> impl DoubleEndedIterator<Item = &Arc<Value>> {
        self.entries.iter().map(|entry| &entry.event)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The session that there is, if its connection is not over.
    pub(super) fn connected(&self) -> Option<&Value> {
        let mut last = self
            .events()
            .rev()
            .filter(|event| matches!(kind(event), "connected" | "disconnected"));
        last.next()
            .filter(|event| kind(event) == "connected")
            .map(AsRef::as_ref)
    }

    /// The session that the log is of.
    pub(super) fn session(&self) -> Option<&str> {
        let mut events = self.events().filter(|event| kind(event) == "connected");
        events.next().and_then(|event| event["sessionId"].as_str())
    }

    /// Whether anybody has said anything.
    pub(super) fn has_conversation(&self) -> bool {
        self.events().any(|event| is_said(event))
    }

    /// What was said, without what waits for somebody or something.
    pub(super) fn conversation(&self) -> Vec<Value> {
        let said = self.events().filter(|event| is_said(event));
        said.map(|event| Value::clone(event)).collect()
    }

    /// Takes the next event.
    pub(super) fn push(&mut self, event: Arc<Value>) {
        match kind(&event) {
            "assistantChunk" | "thinkingChunk" => {
                if !self.lengthen(&event) {
                    self.append(event);
                }
            }
            "toolCall" => self.put_card(event),
            "connected" => {
                self.drop_kinds(&["connected", "interrupted", "disconnected"]);
                self.append(event);
            }
            "disconnected" => {
                self.drop_kinds(&["interrupted", "disconnected"]);
                self.append(event);
            }
            "interrupted" => self.replace(event, &["interrupted"]),
            "reconnected" => self.drop_kinds(&["interrupted"]),
            "historyStart" => {
                self.retain(|event| ABOUT_THE_SESSION.contains(&kind(event)));
                self.append(event);
            }
            "models" => self.replace(event, &["models", "modelChanged"]),
            "modes" => self.replace(event, &["modes", "modeChanged"]),
            "modelChanged" | "modeChanged" | "commands" | "contextUsage" | "tokenUsage" | "title" | "plan"
            | "suggestion" => {
                let own = kind(&event).to_owned();
                self.replace(event, &[&own]);
            }
            "approvalProgress" => {
                self.drop_of(&event, "requestId", &["approvalProgress"]);
                self.append(event);
            }
            "approvalClosed" => {
                let id = event["requestId"].clone();
                self.retain(|event| match kind(event) {
                    "approvalOpened" => event["request"]["requestId"] != id,
                    "approvalProgress" => event["requestId"] != id,
                    _ => true,
                });
            }
            "promptUnqueued" => {
                self.drop_of(&event, "promptId", &["promptQueued"]);
                if event["removed"] == json!(true) {
                    self.append(event);
                }
            }
            "turnEnded" => {
                if event["promptId"].is_null() {
                    self.drop_kinds(&["cancelRequested"]);
                } else {
                    let id = event["promptId"].clone();
                    self.retain(|event| {
                        kind(event) != "cancelRequested" || !(event["promptId"] == id || event["promptId"].is_null())
                    });
                }
                self.append(event);
            }
            _ => self.append(event),
        }
        if self.bytes > MOST_BYTES || self.entries.len() > MOST_ENTRIES {
            self.shorten(MOST_BYTES / 4 * 3, MOST_ENTRIES / 4 * 3);
        }
    }

    /// What has to be told so that nothing seems to go on: the connection is over, and nobody will tell it any more.
    pub(super) fn settle(&self, reason: &str) -> Vec<Value> {
        let mut settled = Vec::new();
        let of_kind = |wanted: &'static str| self.events().filter(move |event| kind(event) == wanted);
        for opened in of_kind("approvalOpened") {
            let id = &opened["request"]["requestId"];
            settled.push(json!({"type": "approvalClosed", "requestId": id, "optionId": null, "own": false}));
        }
        for queued in of_kind("promptQueued") {
            settled.push(json!({"type": "promptUnqueued", "promptId": queued["promptId"], "removed": true}));
        }
        for id in self.running() {
            let end = json!({"outcome": "failed", "message": reason, "code": null});
            settled.push(json!({"type": "turnEnded", "promptId": id, "end": end}));
        }
        settled
    }

    /// The turns that have begun and not ended.
    fn running(&self) -> Vec<Value> {
        let mut running: Vec<Value> = Vec::new();
        for event in self.events() {
            match kind(event) {
                "turnStarted" => running.push(event["promptId"].clone()),
                "turnEnded" if event["promptId"].is_null() => running.clear(),
                "turnEnded" => running.retain(|id| *id != event["promptId"]),
                _ => {}
            }
        }
        running
    }

    fn append(&mut self, event: Arc<Value>) {
        let bytes = size(&event);
        self.bytes += bytes;
        self.entries.push(Entry { event, bytes });
    }

    fn retain(&mut self, keep: impl Fn(&Value) -> bool) {
        let mut gone = 0;
        self.entries.retain(|entry| {
            let kept = keep(&entry.event);
            if !kept {
                gone += entry.bytes;
            }
            kept
        });
        self.bytes -= gone;
    }

    fn drop_kinds(&mut self, kinds: &[&str]) {
        self.retain(|event| !kinds.contains(&kind(event)));
    }

    fn drop_of(&mut self, event: &Value, field: &str, kinds: &[&str]) {
        let id = &event[field];
        self.retain(|event| !(kinds.contains(&kind(event)) && event[field] == *id));
    }

    fn replace(&mut self, event: Arc<Value>, kinds: &[&str]) {
        self.drop_kinds(kinds);
        self.append(event);
    }

    /// Adds a piece of text to the one that it follows, if it does. What is said about the session is not said in between.
    fn lengthen(&mut self, event: &Value) -> bool {
        let in_conversation = |entry: &&mut Entry| !ABOUT_THE_SESSION.contains(&kind(&entry.event));
        let Some(last) = self.entries.iter_mut().rev().find(in_conversation) else {
            return false;
        };
        let follows = kind(&last.event) == kind(event)
            && last.event["promptId"] == event["promptId"]
            && is_text(&last.event)
            && is_text(event)
            && last.bytes < LONGEST_PIECE;
        let Some(piece) = event["content"]["text"].as_str().filter(|_| follows) else {
            return false;
        };
        if let Some(Value::String(text)) = Arc::make_mut(&mut last.event).pointer_mut("/content/text") {
            text.push_str(piece);
        }
        let more = size(&event["content"]["text"]).saturating_sub(2);
        last.bytes += more;
        self.bytes += more;
        true
    }

    fn put_card(&mut self, event: Arc<Value>) {
        let same =
            |entry: &&mut Entry| kind(&entry.event) == "toolCall" && entry.event["call"]["id"] == event["call"]["id"];
        // A card that changes is a recent one.
        let Some(entry) = self.entries.iter_mut().rev().find(same) else {
            return self.append(event);
        };
        let bytes = size(&event);
        self.bytes = self.bytes - entry.bytes + bytes;
        *entry = Entry { event, bytes };
    }

    /// Drops what is oldest, whole turns if it can be, and says so.
    fn shorten(&mut self, bytes: usize, entries: usize) {
        let running = self.running();
        let needed = |event: &Value| {
            let kind = kind(event);
            ABOUT_THE_SESSION.contains(&kind)
                || matches!(kind, "approvalOpened" | "promptQueued" | "historyStart" | "historyEnd")
                || (kind == "turnStarted" && running.contains(&event["promptId"]))
        };
        let (mut left_bytes, mut left_entries) = (self.bytes, self.entries.len());
        let mut end = 0;
        for entry in &self.entries {
            if left_bytes <= bytes && left_entries <= entries {
                break;
            }
            if !needed(&entry.event) {
                left_bytes -= entry.bytes;
                left_entries -= 1;
            }
            end += 1;
        }
        let begins = |entry: &Entry| matches!(kind(&entry.event), "promptAccepted" | "userMessage");
        let turn = self.entries[end..].iter().position(begins).unwrap_or_default();
        let end = end + turn;
        self.retain_indexed(|index, event| index >= end || needed(event));
        // Behind the event that makes front ends forget what they show.
        let history = self
            .entries
            .iter()
            .rposition(|entry| kind(&entry.event) == "historyStart");
        let place = history.map_or(0, |history| history + 1);
        let event = Arc::new(json!({"type": "notice", "level": "information", "message": DROPPED}));
        let bytes = size(&event);
        self.bytes += bytes;
        self.entries.insert(place, Entry { event, bytes });
    }

    fn retain_indexed(&mut self, keep: impl Fn(usize, &Value) -> bool) {
        let (mut index, mut gone) = (0, 0);
        self.entries.retain(|entry| {
            let kept = keep(index, &entry.event);
            index += 1;
            if !kept {
                gone += entry.bytes;
            }
            kept
        });
        self.bytes -= gone;
    }
}

/// What an event calls itself.
pub(super) fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap_or_default()
}

/// Whether an event is about the session, and not about what was said in it.
pub(super) fn is_about_the_session(event: &Value) -> bool {
    ABOUT_THE_SESSION.contains(&kind(event))
}

fn is_said(event: &Value) -> bool {
    let passing = [
        "historyStart",
        "historyEnd",
        "approvalOpened",
        "approvalProgress",
        "promptQueued",
        "cancelRequested",
        "suggestion",
    ];
    !is_about_the_session(event) && !passing.contains(&kind(event))
}

fn is_text(event: &Value) -> bool {
    event["content"]["type"] == json!("text") && event["content"]["text"].is_string()
}

fn size(event: &Value) -> usize {
    serde_json::to_string(event).map_or(0, |text| text.len())
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;

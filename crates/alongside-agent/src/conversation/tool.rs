//! Calls of tools, put together from all that is said about them.
//!
//! An agent tells about a call in pieces: a first sighting with nothing but a name, the request for permission with the
//! arguments and the difference, and updates with the outcome. A card shows all of it.

use std::collections::{HashMap, VecDeque};

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{ContentBlock, list_of, owned_text, text_of};

/// A call of a tool as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Its identity within the session.
    pub id: String,
    /// What a person reads.
    pub title: String,
    /// `read`, `edit`, `execute`, `think` and so on.
    pub kind: String,
    /// How far it is.
    pub status: ToolStatus,
    /// The name of the tool as the model knows it.
    pub tool_name: Option<String>,
    /// The arguments.
    pub input: Value,
    /// The result as the tool gave it.
    pub output: Value,
    /// The files that it touches.
    pub locations: Vec<Location>,
    /// What there is to show: texts and differences.
    pub content: Vec<ToolContent>,
}

/// How far a call is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolStatus {
    /// Not begun; it may wait for permission.
    #[default]
    Pending,
    /// At work.
    InProgress,
    /// Done.
    Completed,
    /// Failed, refused or cancelled.
    Failed,
    /// Something that this program does not know.
    Other(String),
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Location {
    /// The file, as a path of the machine where the agent runs.
    pub path: String,
    /// The line, counted from one.
    pub line: Option<u64>,
}

/// Something to show with a call.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ToolContent {
    /// A piece of text or the like.
    Content {
        /// The piece.
        content: ContentBlock,
    },
    /// A change of a file.
    Diff {
        /// The file.
        path: String,
        /// What it held; `None` for a new file.
        old_text: Option<String>,
        /// What it shall hold.
        new_text: String,
    },
    /// Anything else, as it came.
    Other {
        /// The content in the protocol's JSON.
        value: Value,
    },
}

/// One thing that was said about a call. What it does not mention stays as it was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolCallPatch {
    /// Which call.
    pub id: String,
    /// See [`ToolCall::title`].
    pub title: Option<String>,
    /// See [`ToolCall::kind`].
    pub kind: Option<String>,
    /// See [`ToolCall::status`].
    pub status: Option<ToolStatus>,
    /// See [`ToolCall::tool_name`].
    pub tool_name: Option<String>,
    /// See [`ToolCall::input`].
    pub input: Option<Value>,
    /// See [`ToolCall::output`].
    pub output: Option<Value>,
    /// See [`ToolCall::locations`].
    pub locations: Vec<Location>,
    /// See [`ToolCall::content`].
    pub content: Vec<ToolContent>,
}

/// All calls of a session.
#[derive(Debug, Default)]
pub struct ToolCards {
    calls: HashMap<String, ToolCall>,
    /// Their ids, the oldest first.
    order: VecDeque<String>,
}

/// How many cards are kept. One that was forgotten begins anew with the next thing that is said about its call.
const MOST_CARDS: usize = 512;

impl ToolCards {
    /// Takes what was said and gives the whole card.
    pub fn apply(&mut self, patch: ToolCallPatch) -> ToolCall {
        if !self.calls.contains_key(&patch.id) {
            self.make_room();
            self.order.push_back(patch.id.clone());
        }
        let call = self.calls.entry(patch.id.clone()).or_insert_with(|| ToolCall {
            id: patch.id.clone(),
            ..ToolCall::default()
        });
        call.apply(patch);
        call.clone()
    }

    /// Whether there is a card of a call.
    pub fn knows(&self, id: &str) -> bool {
        self.calls.contains_key(id)
    }

    /// Forgets all calls.
    pub fn clear(&mut self) {
        self.calls.clear();
        self.order.clear();
    }

    /// Forgets the oldest call that has ended, if there are many; failing that, the oldest.
    fn make_room(&mut self) {
        if self.order.len() < MOST_CARDS {
            return;
        }
        let has_ended = |id: &String| {
            let status = self.calls.get(id).map(|call| &call.status);
            matches!(status, Some(ToolStatus::Completed | ToolStatus::Failed))
        };
        let oldest = self.order.iter().position(has_ended).unwrap_or(0);
        if let Some(id) = self.order.remove(oldest) {
            self.calls.remove(&id);
        }
    }
}

impl ToolCall {
    fn apply(&mut self, patch: ToolCallPatch) {
        let text = |own: &mut String, new: Option<String>| {
            if let Some(new) = new.filter(|new| !new.is_empty()) {
                *own = new;
            }
        };
        text(&mut self.title, patch.title);
        text(&mut self.kind, patch.kind);
        if let Some(status) = patch.status {
            self.status = status;
        }
        if patch.tool_name.is_some() {
            self.tool_name = patch.tool_name;
        }
        if let Some(input) = patch.input {
            self.input = input;
        }
        if let Some(output) = patch.output {
            self.output = output;
        }
        if !patch.locations.is_empty() {
            self.locations = patch.locations;
        }
        if !patch.content.is_empty() {
            self.content = patch.content;
        }
    }
}

impl ToolCallPatch {
    /// Reads a call in the protocol's JSON; `None` without its id.
    pub fn read(value: &Value) -> Option<Self> {
        let text = |name: &str| text_of(value, name).map(str::to_owned);
        // An empty object or list is what an agent sends when it does not know yet: it must not wipe out what is known.
        let known = |name: &str| value.get(name).filter(|value| !is_empty(value)).cloned();
        Some(Self {
            id: text("toolCallId")?,
            title: text("title"),
            kind: text("kind"),
            status: text_of(value, "status").map(ToolStatus::read),
            tool_name: value
                .get("_meta")
                .and_then(|meta| text_of(meta, "toolName"))
                .map(str::to_owned),
            input: known("rawInput"),
            output: known("rawOutput"),
            locations: list_of(value, "locations").iter().filter_map(Location::read).collect(),
            content: list_of(value, "content").iter().map(ToolContent::read).collect(),
        })
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        _ => false,
    }
}

impl ToolStatus {
    fn read(text: &str) -> Self {
        match text {
            "pending" => Self::Pending,
            "in_progress" => Self::InProgress,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            other => Self::Other(other.to_owned()),
        }
    }

    /// The protocol's word for it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Other(other) => other,
        }
    }
}

impl Serialize for ToolStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Location {
    fn read(value: &Value) -> Option<Self> {
        Some(Self {
            path: text_of(value, "path")?.to_owned(),
            line: value.get("line").and_then(Value::as_u64),
        })
    }
}

impl ToolContent {
    fn read(value: &Value) -> Self {
        match text_of(value, "type") {
            Some("content") => Self::Content {
                content: ContentBlock::read(value.get("content").unwrap_or(&Value::Null)),
            },
            Some("diff") => Self::Diff {
                path: owned_text(value, "path"),
                old_text: text_of(value, "oldText").map(str::to_owned),
                new_text: owned_text(value, "newText"),
            },
            _ => Self::Other { value: value.clone() },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_card_is_put_together_from_the_sighting_the_request_and_the_outcome() {
        let mut cards = ToolCards::default();
        let diff = json!({"type": "diff", "path": "/w/a", "oldText": "", "newText": "x"});
        let said = [
            json!({"toolCallId": "c", "title": "WriteFile", "kind": "edit", "status": "pending", "rawInput": {}, "content": [],
                "locations": [], "_meta": {"toolName": "write_file"}}),
            json!({"toolCallId": "c", "title": "Writing to a", "rawInput": {"file_path": "/w/a"}, "content": [diff],
                "locations": [{"path": "/w/a", "line": 3}], "status": "pending"}),
            json!({"toolCallId": "c", "status": "completed", "rawInput": {}, "content": [], "rawOutput": "done"}),
        ];
        let cards: Vec<ToolCall> = said
            .iter()
            .map(|said| cards.apply(ToolCallPatch::read(said).unwrap()))
            .collect();
        let last = cards.last().unwrap();
        assert_eq!((last.title.as_str(), last.kind.as_str()), ("Writing to a", "edit"));
        assert_eq!(last.tool_name.as_deref(), Some("write_file"));
        assert_eq!(last.status, ToolStatus::Completed);
        assert_eq!(last.input["file_path"], "/w/a");
        assert_eq!(last.output, "done");
        assert_eq!(last.locations[0].line, Some(3));
        assert!(matches!(&last.content[..], [ToolContent::Diff { new_text, .. }] if new_text == "x"));
    }

    #[test]
    fn calls_that_have_ended_are_forgotten_before_those_that_go_on() {
        let mut cards = ToolCards::default();
        let said = |id: String, status: &str| {
            ToolCallPatch::read(&json!({"toolCallId": id, "title": "first", "status": status})).unwrap()
        };
        cards.apply(said("going on".to_owned(), "in_progress"));
        for number in 0..2 * MOST_CARDS {
            cards.apply(said(number.to_string(), "completed"));
        }
        assert_eq!((cards.calls.len(), cards.order.len()), (MOST_CARDS, MOST_CARDS));
        assert!(cards.knows("going on") && !cards.knows("0") && cards.knows(&(2 * MOST_CARDS - 1).to_string()));
        cards.clear();
        assert!(!cards.knows("going on"));
    }

    #[test]
    fn a_status_that_is_not_known_keeps_its_name() {
        let patch = ToolCallPatch::read(&json!({"toolCallId": "c", "status": "paused"})).unwrap();
        assert_eq!(patch.status.unwrap().as_str(), "paused");
        assert_eq!(ToolCallPatch::read(&json!({"status": "paused"})), None);
    }
}

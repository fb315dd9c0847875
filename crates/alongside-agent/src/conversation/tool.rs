//! Tool calls, assembled from partial updates.
//!
//! An agent reports a call in pieces: first only a name, then a permission request with the arguments and the diff, then updates with the
//! outcome. A card shows all of it.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use alongside_protocol::chat::{ContentBlock, Location, ToolCall, ToolContent, ToolStatus};

use super::{list_of, owned_text, text_of};

/// An update of a call. Missing fields stay as they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolCallPatch {
    pub id: String,
    pub title: Option<String>,
    pub kind: Option<String>,
    pub status: Option<ToolStatus>,
    pub tool_name: Option<String>,
    pub input: Option<Value>,
    pub output: Option<Value>,
    pub locations: Vec<Location>,
    pub content: Vec<ToolContent>,
}

/// The tool calls of a session.
#[derive(Debug, Default)]
pub struct ToolCards {
    calls: HashMap<String, ToolCall>,
    /// Ids, oldest first.
    order: VecDeque<String>,
}

/// Cards that are kept. A dropped card starts over with the next update of its call.
const MAX_CARDS: usize = 512;

impl ToolCards {
    /// Applies an update and returns the whole card.
    pub fn apply(&mut self, patch: ToolCallPatch) -> ToolCall {
        if !self.calls.contains_key(&patch.id) {
            self.make_room();
            self.order.push_back(patch.id.clone());
        }
        let call = self.calls.entry(patch.id.clone()).or_insert_with(|| ToolCall {
            id: patch.id.clone(),
            ..ToolCall::default()
        });
        patch.apply_to(call);
        call.clone()
    }

    pub fn knows(&self, id: &str) -> bool {
        self.calls.contains_key(id)
    }

    pub fn clear(&mut self) {
        self.calls.clear();
        self.order.clear();
    }

    /// At the limit, drops the oldest ended call, or the oldest one.
    fn make_room(&mut self) {
        if self.order.len() < MAX_CARDS {
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

impl ToolCallPatch {
    fn apply_to(self, call: &mut ToolCall) {
        let text = |own: &mut String, new: Option<String>| {
            if let Some(new) = new.filter(|new| !new.is_empty()) {
                *own = new;
            }
        };
        text(&mut call.title, self.title);
        text(&mut call.kind, self.kind);
        if let Some(status) = self.status {
            call.status = status;
        }
        if self.tool_name.is_some() {
            call.tool_name = self.tool_name;
        }
        if let Some(input) = self.input {
            call.input = input;
        }
        if let Some(output) = self.output {
            call.output = output;
        }
        if !self.locations.is_empty() {
            call.locations = self.locations;
        }
        if !self.content.is_empty() {
            call.content = self.content;
        }
    }

    /// `None` without an id.
    pub fn read(value: &Value) -> Option<Self> {
        let text = |name: &str| text_of(value, name).map(str::to_owned);
        // Agents send an empty object or list before they know more: it must not erase what is known.
        let known = |name: &str| value.get(name).filter(|value| !is_empty(value)).cloned();
        Some(Self {
            id: text("toolCallId")?,
            title: text("title"),
            kind: text("kind"),
            status: text_of(value, "status").map(ToolStatus::from),
            tool_name: value
                .get("_meta")
                .and_then(|meta| text_of(meta, "toolName"))
                .map(str::to_owned),
            input: known("rawInput"),
            output: known("rawOutput"),
            locations: list_of(value, "locations").iter().filter_map(read_location).collect(),
            content: list_of(value, "content").iter().map(read_content).collect(),
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

fn read_location(value: &Value) -> Option<Location> {
    Some(Location {
        path: text_of(value, "path")?.to_owned(),
        line: value.get("line").and_then(Value::as_u64),
    })
}

fn read_content(value: &Value) -> ToolContent {
    match text_of(value, "type") {
        Some("content") => ToolContent::Content {
            content: ContentBlock::from(value.get("content").unwrap_or(&Value::Null)),
        },
        Some("diff") => ToolContent::Diff {
            path: owned_text(value, "path"),
            old_text: text_of(value, "oldText").map(str::to_owned),
            new_text: owned_text(value, "newText"),
        },
        _ => ToolContent::Other { value: value.clone() },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn card_combines_call_request_and_outcome() {
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
    fn ended_calls_are_dropped_first() {
        let mut cards = ToolCards::default();
        let said = |id: String, status: &str| {
            ToolCallPatch::read(&json!({"toolCallId": id, "title": "first", "status": status})).unwrap()
        };
        cards.apply(said("going on".to_owned(), "in_progress"));
        for number in 0..2 * MAX_CARDS {
            cards.apply(said(number.to_string(), "completed"));
        }
        assert_eq!((cards.calls.len(), cards.order.len()), (MAX_CARDS, MAX_CARDS));
        assert!(cards.knows("going on") && !cards.knows("0") && cards.knows(&(2 * MAX_CARDS - 1).to_string()));
        cards.clear();
        assert!(!cards.knows("going on"));
    }

    #[test]
    fn unknown_status_keeps_its_name() {
        let patch = ToolCallPatch::read(&json!({"toolCallId": "c", "status": "paused"})).unwrap();
        assert_eq!(patch.status.unwrap().as_str(), "paused");
        assert_eq!(ToolCallPatch::read(&json!({"status": "paused"})), None);
    }
}

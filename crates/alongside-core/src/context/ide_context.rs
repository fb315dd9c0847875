//! The `IdeContext` of the specification.
//!
//! An optional field is absent, never null: a null disconnects Gemini CLI and Qwen Code.

use serde::{Deserialize, Serialize};

/// The parameters of `ide/contextUpdate`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdeContext {
    pub workspace_state: WorkspaceState,
}

/// What is open, and whether the workspace is trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceState {
    /// Most recently focused first.
    pub open_files: Vec<File>,
    /// Present only if the front end has a notion of trust: a value overrides the user's choice in the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_trusted: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// Absolute path.
    pub path: String,
    /// When it was last focused, in milliseconds since the Unix epoch.
    pub timestamp: u64,
    /// Present, and true, only on the focused file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_text: Option<String>,
    /// Where the selected text begins, if the front end says so. Not part of the specification.
    #[serde(skip)]
    pub selection_start: Option<Cursor>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// 1-based.
    pub line: u32,
    /// 1-based, in UTF-16 code units.
    pub character: u32,
}

impl File {
    /// Where the selected text begins and ends, or the cursor twice. A front end that reports only the cursor selects up to it, where
    /// that is possible.
    pub fn range(&self) -> (Cursor, Cursor) {
        let cursor = self.cursor.unwrap_or(Cursor { line: 1, character: 1 });
        let Some(text) = self.selected_text.as_deref() else {
            return (cursor, cursor);
        };
        let count = |count| u32::try_from(count).unwrap_or(u32::MAX);
        let lines = count(text.matches('\n').count());
        let last = count(text.rsplit('\n').next().unwrap_or_default().encode_utf16().count());
        let end = |start: Cursor| Cursor {
            line: start.line.saturating_add(lines),
            character: last.saturating_add(if lines == 0 { start.character } else { 1 }),
        };
        if let Some(start) = self.selection_start {
            return (start, end(start));
        }
        let ends_at_cursor = if lines == 0 {
            cursor.character > last
        } else {
            cursor.line > lines
        };
        if !ends_at_cursor {
            return (cursor, end(cursor));
        }
        let start = Cursor {
            line: cursor.line - lines,
            character: if lines == 0 { cursor.character - last } else { 1 },
        };
        (start, cursor)
    }

    /// The first and the last selected line. A line of which only the beginning is reached is not part of it.
    pub fn selected_lines(&self) -> Option<(u32, u32)> {
        self.selected_text.as_ref()?;
        let (start, end) = self.range();
        let last = if end.character == 1 { end.line - 1 } else { end.line };
        Some((start.line, last.max(start.line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(at: (u32, u32), text: Option<&str>, start: Option<(u32, u32)>) -> [(u32, u32); 2] {
        let cursor = |(line, character)| Cursor { line, character };
        let file = File {
            path: "/a".to_owned(),
            timestamp: 1,
            is_active: None,
            cursor: Some(cursor(at)),
            selected_text: text.map(str::to_owned),
            selection_start: start.map(cursor),
        };
        let (start, end) = file.range();
        [start, end].map(|place| (place.line, place.character))
    }

    #[test]
    fn range_follows_from_the_start_or_from_the_cursor() {
        assert_eq!(range((1, 2), Some("ne\ntwö"), Some((1, 2))), [(1, 2), (2, 4)]);
        assert_eq!(range((3, 4), Some("one\ntwo"), None), [(2, 1), (3, 4)]);
        assert_eq!(range((1, 1), Some("one\ntwo"), None), [(1, 1), (2, 4)]);
        assert_eq!(range((2, 1), Some("two"), None), [(2, 1), (2, 4)]);
        assert_eq!(range((2, 4), Some("two"), None), [(2, 1), (2, 4)]);
        assert_eq!(range((7, 3), None, None), [(7, 3), (7, 3)]);
    }
}

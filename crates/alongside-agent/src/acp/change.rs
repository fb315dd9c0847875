//! What a permission request would do to files.
//!
//! Agents describe a change by diffs, in the request itself or in the tool call that it belongs to. Some contain whole files, others
//! the replaced fragment only. A review needs the whole text that the file would have.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use alongside_protocol::chat::{ToolCall, ToolContent};
use serde_json::Value;

use crate::conversation::text_of;

/// A change to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileChange {
    pub(super) path: PathBuf,
    /// The whole text; empty if the file is removed.
    pub(super) text: String,
    pub(super) removes: bool,
}

/// The diffs of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestedChanges {
    diffs: Vec<Diff>,
    replace_all: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Diff {
    path: PathBuf,
    old: Option<String>,
    new: String,
    removes: bool,
    /// The file's previous path.
    moved_from: Option<PathBuf>,
}

impl RequestedChanges {
    /// `None` if the call does not change files, or does more than that.
    pub(super) fn of(call: &ToolCall, workspace: &Path) -> Option<Self> {
        if !matches!(call.kind.as_str(), "edit" | "delete" | "move" | "other" | "") {
            return None;
        }
        let mut diffs = Vec::new();
        for content in &call.content {
            let ToolContent::Diff {
                path,
                old_text,
                new_text,
            } = content
            else {
                continue;
            };
            let named = Some(path.as_str()).filter(|path| !path.is_empty());
            let path = named.or_else(|| path_of(call))?;
            let change = call.input.get("changes").and_then(|changes| changes.get(path));
            let is_deleted = change.and_then(|change| text_of(change, "type")) == Some("delete");
            diffs.push(Diff {
                path: workspace.join(path),
                old: old_text.clone(),
                new: new_text.clone(),
                removes: new_text.is_empty() && (is_deleted || call.kind == "delete"),
                moved_from: moved_from(&call.input, path).map(|from| workspace.join(from)),
            });
        }
        let flag = |name: &str| call.input.get(name).and_then(Value::as_bool) == Some(true);
        let replace_all = flag("replace_all") || flag("replaceAll");
        (!diffs.is_empty()).then_some(Self { diffs, replace_all })
    }

    /// The files whose current text [`Self::apply`] needs.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for path in self
            .diffs
            .iter()
            .flat_map(|diff| diff.moved_from.iter().chain([&diff.path]))
        {
            if !paths.contains(path) {
                paths.push(path.clone());
            }
        }
        paths
    }

    /// The changes to the current texts, one for each file. `None` if a diff does not fit: what the agent would write is not known.
    pub(super) fn apply(&self, texts: &HashMap<PathBuf, Option<String>>) -> Option<Vec<FileChange>> {
        let mut changes: Vec<FileChange> = Vec::new();
        for diff in &self.diffs {
            let before = changes.iter().find(|change| change.path == diff.path);
            let current = match before {
                Some(before) => Some(before.text.as_str()),
                None => texts.get(&diff.path)?.as_deref(),
            };
            let (text, moved) = match &diff.moved_from {
                Some(from) if current.is_none() => {
                    let source = texts.get(from)?.as_deref();
                    (apply(source, diff.old.as_deref(), &diff.new, false)?, Some(from))
                }
                _ => (apply(current, diff.old.as_deref(), &diff.new, self.replace_all)?, None),
            };
            // Removing an empty file is not a change of its text, so there is nothing to review.
            if diff.removes && current.is_none_or(str::is_empty) {
                return None;
            }
            changes.retain(|change| change.path != diff.path);
            changes.push(FileChange {
                path: diff.path.clone(),
                text,
                removes: diff.removes,
            });
            changes.extend(moved.map(|from| FileChange {
                path: from.clone(),
                text: String::new(),
                removes: true,
            }));
        }
        Some(changes)
    }
}

/// The path of a call whose diff has none.
fn path_of(call: &ToolCall) -> Option<&str> {
    let location = call.locations.first().map(|location| location.path.as_str());
    location.or_else(|| {
        let names = ["fileName", "file_path", "path"];
        names.iter().find_map(|name| text_of(&call.input, name))
    })
}

/// Where Codex moves a file from: the diff has only its new path.
fn moved_from<'a>(input: &'a Value, path: &str) -> Option<&'a str> {
    let mut changes = input.get("changes")?.as_object()?.iter();
    let is_source = |(_, change): &(&String, &Value)| text_of(change, "move_path") == Some(path);
    changes.find(is_source).map(|(from, _)| from.as_str())
}

/// The text after a change. `old` is the whole text or a fragment of it; without it, `new` is the whole text.
fn apply(current: Option<&str>, old: Option<&str>, new: &str, replace_all: bool) -> Option<String> {
    let current = current.unwrap_or_default();
    let Some(old) = old.filter(|old| *old != current) else {
        return Some(new.to_owned());
    };
    if old.is_empty() {
        return None;
    }
    replace(current, old, new, replace_all).or_else(|| {
        // Some agents show Windows line endings as `\n`.
        let windows = |text: &str| text.replace('\n', "\r\n");
        let is_plain = current.contains("\r\n") && !old.contains('\r') && !new.contains('\r');
        is_plain.then(|| {
            if windows(old) == current {
                return Some(windows(new));
            }
            replace(current, &windows(old), &windows(new), replace_all)
        })?
    })
}

/// `None` if the fragment is missing, or there are several and only one is meant.
fn replace(current: &str, old: &str, new: &str, replace_all: bool) -> Option<String> {
    match current.matches(old).count() {
        0 => None,
        1 => Some(current.replacen(old, new, 1)),
        _ if replace_all => Some(current.replace(old, new)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::conversation::{ToolCallPatch, ToolCards};

    /// What a tool call would do to the files of the workspace `/w`.
    fn changes(calls: &[Value], files: &[(&str, &str)]) -> Option<Vec<(String, String, bool)>> {
        let mut cards = ToolCards::default();
        let mut call = ToolCall::default();
        for value in calls {
            call = cards.apply(ToolCallPatch::read(value).unwrap());
        }
        let requested = RequestedChanges::of(&call, Path::new("/w"))?;
        let text = |path: &PathBuf| {
            let mut files = files.iter();
            files
                .find(|(name, _)| path == Path::new(name))
                .map(|(_, text)| (*text).to_owned())
        };
        let texts = requested
            .paths()
            .into_iter()
            .map(|path| (path.clone(), text(&path)))
            .collect();
        let mut changes: Vec<_> = requested
            .apply(&texts)?
            .into_iter()
            .map(|change| (change.path.display().to_string(), change.text, change.removes))
            .collect();
        changes.sort();
        Some(changes)
    }

    fn written(path: &str, text: &str) -> (String, String, bool) {
        (path.to_owned(), text.to_owned(), false)
    }

    fn diff(path: &str, old: Option<&str>, new: &str) -> Value {
        json!({"type": "diff", "path": path, "oldText": old, "newText": new})
    }

    fn edit(content: &[Value]) -> Value {
        json!({"toolCallId": "c", "kind": "edit", "title": "Edit", "content": content})
    }

    #[test]
    fn whole_file_is_used_as_it_is() {
        let call = edit(&[diff("/w/a", Some("one\n"), "two\n")]);
        assert_eq!(
            changes(&[call], &[("/w/a", "one\n")]),
            Some(vec![written("/w/a", "two\n")])
        );
        let new = edit(&[diff("new", None, "text")]);
        assert_eq!(changes(&[new], &[]), Some(vec![written("/w/new", "text")]));
        let overwritten = edit(&[diff("/w/a", None, "text")]);
        assert_eq!(
            changes(&[overwritten], &[("/w/a", "one\n")]),
            Some(vec![written("/w/a", "text")])
        );
    }

    #[test]
    fn fragment_is_applied_to_the_current_text() {
        let call = edit(&[diff("/w/a", Some("two"), "TWO")]);
        let applied = |text: &str| changes(std::slice::from_ref(&call), &[("/w/a", text)]);
        assert_eq!(applied("one\ntwo\n"), Some(vec![written("/w/a", "one\nTWO\n")]));
        assert_eq!(applied("one\n"), None, "it is not there");
        assert_eq!(applied("two two"), None, "which one?");
        let mut all = call.clone();
        all["rawInput"] = json!({"replace_all": true});
        assert_eq!(
            changes(&[all], &[("/w/a", "two two")]),
            Some(vec![written("/w/a", "TWO TWO")])
        );
        assert_eq!(changes(&[call], &[]), None, "the file is missing");
    }

    #[test]
    fn fragment_keeps_windows_line_endings() {
        let call = edit(&[diff("/w/a", Some("1\n2"), "one\ntwo")]);
        let applied = changes(&[call], &[("/w/a", "0\r\n1\r\n2\r\n")]);
        assert_eq!(applied, Some(vec![written("/w/a", "0\r\none\r\ntwo\r\n")]));
    }

    #[test]
    fn several_fragments_of_one_file_are_one_change() {
        let call = edit(&[diff("/w/a", Some("1"), "one"), diff("/w/a", Some("2"), "two")]);
        assert_eq!(
            changes(&[call], &[("/w/a", "1 2")]),
            Some(vec![written("/w/a", "one two")])
        );
    }

    #[test]
    fn request_without_content_uses_the_diff_of_its_call() {
        let call = edit(&[diff("/w/a", Some("two"), "TWO")]);
        let request = json!({"toolCallId": "c", "kind": "edit", "title": "Edit file", "locations": [{"path": "/w/a"}],
            "rawInput": {"fileName": "/w/a", "diff": "\ndiff --git a/w/a b/w/a\n"}});
        let applied = changes(&[call, request], &[("/w/a", "one\ntwo\n")]);
        assert_eq!(applied, Some(vec![written("/w/a", "one\nTWO\n")]));
    }

    #[test]
    fn patch_adds_deletes_and_moves() {
        let mut call = edit(&[
            diff("/w/new", None, "new\n"),
            diff("/w/gone", Some("gone\n"), ""),
            diff("/w/to", Some("1\n"), "2\n"),
        ]);
        call["rawInput"] = json!({"changes": {
            "/w/new": {"type": "add", "content": "new\n"},
            "/w/gone": {"type": "delete", "content": "gone\n"},
            "/w/from": {"type": "update", "unified_diff": "", "move_path": "/w/to"},
        }});
        let removed = |path: &str| (path.to_owned(), String::new(), true);
        assert_eq!(
            changes(
                std::slice::from_ref(&call),
                &[("/w/gone", "gone\n"), ("/w/from", "1\n")]
            ),
            Some(vec![
                removed("/w/from"),
                removed("/w/gone"),
                written("/w/new", "new\n"),
                written("/w/to", "2\n")
            ])
        );
        assert_eq!(changes(&[call], &[("/w/gone", ""), ("/w/from", "1\n")]), None);
    }

    #[test]
    fn other_calls_change_no_files() {
        let mut call = edit(&[diff("/w/a", None, "text")]);
        call["kind"] = json!("execute");
        assert_eq!(changes(&[call], &[]), None);
        assert_eq!(changes(&[edit(&[])], &[]), None);
    }
}

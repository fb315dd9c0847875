//! Notifications about the context, in the form of each dialect.
//!
//! A context is serialized at most once for each form, however many sessions receive it.

use std::sync::OnceLock;

use alongside_core::context::{Cursor, File, IdeContext};
use alongside_core::dialect::{ContextForm, SelectionForm};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use crate::file_url::file_url;
use crate::hub::Mention;

/// Before the first context is published.
const NO_CONTEXT: &[u8] = br#"{"jsonrpc":"2.0","method":"ide/contextUpdate","params":{}}"#;

/// opencode sends its model any text in full; Claude Code cuts what it gets after as many characters.
const MAX_TEXT_CHARS: usize = 2000;
const CUT: &str = "\n... (truncated)";

/// A context in every form. Those of single agents are made when one needs them.
#[derive(Clone)]
pub(crate) struct ContextMessages {
    open_files: Option<Bytes>,
    active: Option<File>,
    selections: [OnceLock<Option<Bytes>>; ContextForm::COUNT],
}

impl ContextMessages {
    pub(crate) fn unpublished() -> Self {
        Self {
            open_files: Some(Bytes::from_static(NO_CONTEXT)),
            ..Self::new(&IdeContext::default())
        }
    }

    pub(crate) fn new(context: &IdeContext) -> Self {
        Self {
            open_files: notification("ide/contextUpdate", context),
            active: context.workspace_state.open_files.first().cloned(),
            selections: [const { OnceLock::new() }; ContextForm::COUNT],
        }
    }

    /// For a session that has received nothing yet.
    pub(crate) fn initial(&self, form: ContextForm) -> Option<&Bytes> {
        let ContextForm::Selection(selection) = form else {
            return self.open_files.as_ref();
        };
        let message = || notification("selection_changed", &self.selection(selection)?);
        self.selections[form.index()].get_or_init(message).as_ref()
    }

    fn selection(&self, form: SelectionForm) -> Option<Value> {
        match (&self.active, form) {
            (Some(file), form) => Some(selection(file, form)),
            (None, SelectionForm::Claude) => Some(json!({"text": "", "filePath": "", "selection": null})),
            (None, SelectionForm::Opencode) => None,
            // A null selection would be ignored, and the previous one sent with every prompt.
            (None, SelectionForm::Copilot) => {
                let top = json!({"line": 0, "character": 0});
                let selection = json!({"start": top, "end": top, "isEmpty": true});
                Some(json!({"text": "", "filePath": "", "fileUrl": "", "selection": selection}))
            }
        }
    }

    /// For a session that has `previous`; `None` if that is the same. All files have times, so their form always differs.
    pub(crate) fn update(&self, previous: &Self, form: ContextForm) -> Option<Bytes> {
        let (message, before) = (self.initial(form), previous.initial(form));
        match (message, before, &previous.active) {
            (Some(message), before, _) if form == ContextForm::OpenFiles || before != Some(message) => {
                Some(message.clone())
            }
            // Only another selection takes back what the agent has: an empty one of the file that it knows.
            (None, Some(_), Some(file)) => {
                let params = selection_params(&file.path, "", (TOP, TOP), SelectionForm::Opencode);
                notification("selection_changed", &params)
            }
            _ => None,
        }
    }
}

/// A mention of a file in an agent's prompt; `None` if the form has none.
pub(crate) fn mention(mention: &Mention, form: ContextForm) -> Option<Bytes> {
    let params = match form {
        ContextForm::OpenFiles => return None,
        ContextForm::Selection(SelectionForm::Copilot) => {
            let selection = mention.lines.map(|(first, last)| {
                let position =
                    |line: u32, character: u32| json!({"line": line.saturating_sub(1), "character": character});
                json!({"start": position(first, 0), "end": position(last, 1)})
            });
            let url = file_url(&mention.path);
            let params =
                json!({"filePath": mention.path, "fileUrl": url, "selection": selection, "selectedText": null});
            return notification("add_file_reference", &params);
        }
        ContextForm::Selection(SelectionForm::Claude) => match mention.lines {
            Some((first, last)) => {
                json!({"filePath": mention.path, "lineStart": first.saturating_sub(1), "lineEnd": last.saturating_sub(1)})
            }
            None => json!({"filePath": mention.path}),
        },
        // Without lines it is dropped.
        ContextForm::Selection(SelectionForm::Opencode) => {
            let (first, last) = mention.lines.unwrap_or((1, mention.line_count.max(1)));
            json!({"filePath": mention.path, "lineStart": first, "lineEnd": last})
        }
    };
    notification("at_mentioned", &params)
}

const TOP: Cursor = Cursor { line: 1, character: 1 };

fn selection(file: &File, form: SelectionForm) -> Value {
    let text = file.selected_text.as_deref().unwrap_or_default();
    selection_params(&file.path, text, file.range(), form)
}

fn selection_params(path: &str, text: &str, (start, end): (Cursor, Cursor), form: SelectionForm) -> Value {
    let first_line = match form {
        SelectionForm::Claude | SelectionForm::Copilot => 0,
        SelectionForm::Opencode => 1,
    };
    // Copilot CLI counts the line of the end, although nothing of it is selected.
    let end = match form {
        SelectionForm::Copilot if end.character == 1 && end.line > start.line && text.ends_with('\n') => {
            let last = text.trim_end_matches('\n').rsplit('\n').next().unwrap_or_default();
            let character = u32::try_from(last.encode_utf16().count())
                .unwrap_or(u32::MAX)
                .saturating_add(1);
            Cursor {
                line: end.line - 1,
                character,
            }
        }
        _ => end,
    };
    let position = |place: Cursor| json!({"line": place.line - 1 + first_line, "character": place.character - 1});
    let text = match (form, text.char_indices().nth(MAX_TEXT_CHARS)) {
        (SelectionForm::Opencode, Some((end, _))) => format!("{}{CUT}", &text[..end]),
        _ => text.to_owned(),
    };
    json!({
        "filePath": path,
        "fileUrl": file_url(path),
        "selection": {"start": position(start), "end": position(end), "isEmpty": text.is_empty()},
        "text": text,
    })
}

/// A JSON-RPC notification. Compact JSON has no line breaks, which would end a server-sent event.
fn notification(method: &str, params: &impl Serialize) -> Option<Bytes> {
    match alongside_wire::rpc::notification(method, Some(params)) {
        Ok(message) => Some(Bytes::from(message)),
        Err(error) => {
            tracing::error!(%error, method, "cannot serialize a notification");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use alongside_core::context::WorkspaceState;

    use super::*;

    const CLAUDE: ContextForm = ContextForm::Selection(SelectionForm::Claude);
    const OPENCODE: ContextForm = ContextForm::Selection(SelectionForm::Opencode);

    fn cursor(line: u32, character: u32) -> Cursor {
        Cursor { line, character }
    }

    fn file(at: Cursor, text: Option<&str>, start: Option<Cursor>) -> File {
        File {
            path: "/w/a b.txt".to_owned(),
            timestamp: 1,
            is_active: Some(true),
            cursor: Some(at),
            selected_text: text.map(str::to_owned),
            selection_start: start,
        }
    }

    fn context(file: Option<File>) -> ContextMessages {
        let workspace_state = WorkspaceState {
            open_files: file.into_iter().collect(),
            is_trusted: None,
        };
        ContextMessages::new(&IdeContext { workspace_state })
    }

    fn params(message: Option<impl AsRef<[u8]>>) -> Value {
        let message: Value = serde_json::from_slice(message.unwrap().as_ref()).unwrap();
        message["params"].clone()
    }

    /// C9: Claude Code counts lines from 0, and opencode shows the numbers as they are.
    #[test]
    fn lines_are_numbered_as_each_agent_reads_them() {
        let messages = context(Some(file(cursor(2, 4), Some("two"), Some(cursor(2, 1)))));
        let claude = params(messages.initial(CLAUDE));
        assert_eq!(
            claude,
            json!({
                "text": "two",
                "filePath": "/w/a b.txt",
                "fileUrl": "file:///w/a%20b.txt",
                "selection": {
                    "start": {"line": 1, "character": 0},
                    "end": {"line": 1, "character": 3},
                    "isEmpty": false,
                },
            })
        );
        let opencode = params(messages.initial(OPENCODE));
        assert_eq!(opencode["selection"]["start"]["line"], 2);
        assert_eq!(opencode["selection"]["end"], json!({"line": 2, "character": 3}));
    }

    /// C10: a null selection clears Claude Code's; opencode cannot read one.
    #[test]
    fn selection_is_cleared_as_each_agent_can() {
        let (with, without) = (context(Some(file(cursor(1, 1), Some("one"), None))), context(None));
        assert_eq!(
            params(without.update(&with, CLAUDE)),
            json!({"text": "", "filePath": "", "selection": null})
        );
        let cleared = params(without.update(&with, OPENCODE));
        assert_eq!(cleared["filePath"], "/w/a b.txt");
        assert_eq!(cleared["text"], "");
        assert_eq!(cleared["selection"]["start"], cleared["selection"]["end"]);
        assert!(
            without.initial(OPENCODE).is_none(),
            "a new session never learns of the file"
        );
        assert!(without.update(&without, OPENCODE).is_none());
    }

    #[test]
    fn same_selection_is_not_sent_again() {
        let one = || context(Some(file(cursor(1, 1), Some("one"), None)));
        assert!(one().update(&one(), CLAUDE).is_none());
        assert!(one().update(&one(), OPENCODE).is_none());
        assert!(one().update(&one(), ContextForm::OpenFiles).is_some());
    }

    #[test]
    fn long_text_for_opencode_is_cut() {
        let long = "ü".repeat(2001);
        let messages = context(Some(file(cursor(1, 1), Some(&long), None)));
        let text = params(messages.initial(OPENCODE))["text"].as_str().unwrap().to_owned();
        assert_eq!(text, format!("{}{CUT}", "ü".repeat(2000)));
        assert_eq!(
            params(messages.initial(CLAUDE))["text"],
            long.as_str(),
            "it cuts the text itself"
        );
    }

    /// C11: opencode drops a mention without lines.
    #[test]
    fn mention_has_the_lines_that_each_agent_needs() {
        let lines = |lines, form| {
            let what = Mention {
                path: "/a".to_owned(),
                lines,
                line_count: 9,
            };
            params(mention(&what, form))
        };
        assert_eq!(
            lines(Some((2, 3)), CLAUDE),
            json!({"filePath": "/a", "lineStart": 1, "lineEnd": 2})
        );
        assert_eq!(lines(None, CLAUDE), json!({"filePath": "/a"}));
        assert_eq!(
            lines(Some((2, 3)), OPENCODE),
            json!({"filePath": "/a", "lineStart": 2, "lineEnd": 3})
        );
        assert_eq!(
            lines(None, OPENCODE),
            json!({"filePath": "/a", "lineStart": 1, "lineEnd": 9})
        );
    }
}

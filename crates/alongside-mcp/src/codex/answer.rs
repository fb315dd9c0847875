//! The response to `ide-context`.

use std::path::{Path, PathBuf};

use alongside_core::context::{File, IdeContext};
use serde_json::{Value, json};

use super::message::{self, Failure};
use super::{Provider, Shown};

/// What we have to say to a request.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// The result.
    Context(Value),
    /// It is for our workspace, in another version of the protocol.
    WrongVersion,
    NotOurs,
}

impl Provider {
    /// Never waits.
    pub(super) fn answer(&self, request: &Value) -> Answer {
        let Some(root) = workspace_root(request) else {
            return Answer::NotOurs;
        };
        let shown = self.0.shown.lock();
        if !shown.has_folder_around(root) {
            Answer::NotOurs
        } else if request["version"] == message::VERSION {
            Answer::Context(json!({ "ideContext": ide_context(&shown.context, root) }))
        } else {
            Answer::WrongVersion
        }
    }

    pub(super) fn can_handle(&self, request: &Value) -> bool {
        let root = workspace_root(request).filter(|_| request["version"] == message::VERSION);
        root.is_some_and(|root| self.0.shown.lock().has_folder_around(root))
    }

    /// The response of a client to a request that a router forwarded.
    pub(super) fn respond(&self, request: &Value, client_id: &str) -> Value {
        match self.answer(request) {
            Answer::Context(result) => message::success(request, client_id, &result),
            Answer::WrongVersion => message::failure(request, Failure::VersionMismatch),
            Answer::NotOurs => message::failure(request, Failure::NoHandler),
        }
    }
}

impl Shown {
    /// Whether a directory is one of our folders, or inside one.
    fn has_folder_around(&self, root: &Path) -> bool {
        let is_around = |folder: &PathBuf| root.starts_with(folder);
        self.workspace.iter().any(is_around)
    }
}

fn workspace_root(request: &Value) -> Option<&Path> {
    let root = request["params"]["workspaceRoot"].as_str()?;
    let is_asked_for = request["method"] == message::IDE_CONTEXT;
    Some(Path::new(root)).filter(|root| is_asked_for && root.is_absolute())
}

fn ide_context(context: &IdeContext, root: &Path) -> Value {
    let files = &context.workspace_state.open_files;
    let tabs: Vec<Value> = files.iter().map(|file| descriptor(file, root)).collect();
    let active = files.iter().find(|file| file.is_active == Some(true));
    json!({ "activeFile": active.map(|file| active_file(file, root)), "openTabs": tabs })
}

fn active_file(file: &File, root: &Path) -> Value {
    let (line, character) = file.cursor.map_or((1, 1), |cursor| (cursor.line, cursor.character));
    // Where a selection starts is unknown. Codex shows a range only if it has no text.
    let cursor = json!({ "line": line.saturating_sub(1), "character": character.saturating_sub(1) });
    let mut active = descriptor(file, root);
    active["selection"] = json!({ "start": cursor, "end": cursor });
    active["activeSelectionContent"] = file.selected_text.as_deref().unwrap_or_default().into();
    active["selections"] = json!([]);
    active
}

/// Codex shows `path` as it is: relative to the directory in which it runs, if the file is there.
fn descriptor(file: &File, root: &Path) -> Value {
    let path = Path::new(&file.path);
    let shown = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
    let label = path.file_name().map_or(shown.clone(), |name| name.to_string_lossy());
    json!({ "label": label, "path": shown, "fsPath": file.path })
}

#[cfg(test)]
mod tests {
    use alongside_core::context::{Cursor, WorkspaceState};

    use super::*;

    fn file(path: &str) -> File {
        File {
            path: path.to_owned(),
            timestamp: 1,
            is_active: None,
            cursor: None,
            selected_text: None,
            selection_start: None,
        }
    }

    fn provider(open_files: Vec<File>) -> Provider {
        let provider = Provider::new(vec!["/other".into(), "/home/me/project".into()]);
        let is_trusted = None;
        let workspace_state = WorkspaceState { open_files, is_trusted };
        provider.publish_context(&IdeContext { workspace_state });
        provider
    }

    fn request(root: &str) -> Value {
        json!({
            "type": "request", "requestId": "a3aae61d", "sourceClientId": "codex-tui", "version": 0,
            "method": "ide-context", "params": { "workspaceRoot": root },
        })
    }

    /// As recorded from Codex CLI 0.166.0.
    /// X9: positions are 0-based, and the path is shown as it is. X10: the range is shown only without a text.
    #[test]
    fn answer_has_the_recorded_shape() {
        let active = File {
            is_active: Some(true),
            cursor: Some(Cursor { line: 2, character: 9 }),
            selected_text: Some("LINE TWO".to_owned()),
            ..file("/home/me/project/a.txt")
        };
        let provider = provider(vec![active, file("/home/me/project/src/b.txt"), file("/home/me/c.txt")]);
        let response = provider.respond(&request("/home/me/project"), "alongside");
        let cursor = json!({ "line": 1, "character": 8 });
        assert_eq!(
            response,
            json!({
                "type": "response", "requestId": "a3aae61d", "resultType": "success", "method": "ide-context",
                "handledByClientId": "alongside",
                "result": { "ideContext": {
                    "activeFile": {
                        "label": "a.txt", "path": "a.txt", "fsPath": "/home/me/project/a.txt",
                        "selection": { "start": cursor, "end": cursor },
                        "activeSelectionContent": "LINE TWO", "selections": [],
                    },
                    "openTabs": [
                        { "label": "a.txt", "path": "a.txt", "fsPath": "/home/me/project/a.txt" },
                        { "label": "b.txt", "path": "src/b.txt", "fsPath": "/home/me/project/src/b.txt" },
                        { "label": "c.txt", "path": "/home/me/c.txt", "fsPath": "/home/me/c.txt" },
                    ],
                } },
            })
        );
    }

    #[test]
    fn nothing_open_is_an_empty_context() {
        let answer = provider(vec![]).answer(&request("/home/me/project"));
        let nothing = json!({ "ideContext": { "activeFile": null, "openTabs": [] } });
        assert_eq!(answer, Answer::Context(nothing));
    }

    #[test]
    fn only_directories_in_the_workspace_are_ours() {
        let provider = provider(vec![]);
        for (root, is_ours) in [
            ("/home/me/project", true),
            ("/home/me/project/", true),
            ("/home/me/project/src", true),
            ("/other", true),
            ("/home/me/project2", false),
            ("/home/me", false),
            ("project", false),
            ("", false),
        ] {
            assert_eq!(provider.can_handle(&request(root)), is_ours, "{root}");
        }
        provider.set_workspace(vec!["/home/me".into()]);
        assert!(provider.can_handle(&request("/home/me")));
        assert!(!provider.can_handle(&request("/other")));
    }

    #[test]
    fn other_methods_and_versions_are_refused() {
        let provider = provider(vec![]);
        let mut other = request("/other");
        other["method"] = "thread-follower-start-turn".into();
        let mut newer = request("/other");
        newer["version"] = 1.into();
        for (request, error) in [
            (other, "no-handler-for-request"),
            (newer, "request-version-mismatch"),
            (request("/"), "no-handler-for-request"),
        ] {
            assert!(!provider.can_handle(&request));
            assert_eq!(provider.respond(&request, "us")["error"], error);
        }
    }
}

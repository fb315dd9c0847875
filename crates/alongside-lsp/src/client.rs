//! What an editor reports about itself in `initialize`, and what is known about it in addition.

use std::path::PathBuf;

use serde_json::Value;

use crate::text::Encoding;
use crate::uri;
use crate::workspace::{distinct, workspace_of};

/// How a proposed change appears in an editor by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Open {
    /// As a message.
    #[default]
    Notify,
    /// As a diff, without the focus if the editor can do that.
    View,
    /// As a diff with the focus.
    Focus,
}

/// The editor on the other end.
#[derive(Clone, Debug)]
pub struct Client {
    /// Whether it reported a name. If not, the others are placeholders.
    pub is_named: bool,
    /// A short lowercase name for agents.
    pub name: String,
    /// The name that agents show.
    pub display_name: String,
    pub pid: Option<u32>,
    /// The projects it has open.
    pub folders: Vec<PathBuf>,
    /// Whether to follow changes of its folders.
    pub follows_folders: bool,
    pub open: Open,
    pub(super) encoding: Encoding,
    pub(super) abilities: Abilities,
    pub(super) profile: &'static EditorProfile,
}

/// The client capabilities that matter here.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent of each other")]
pub(super) struct Abilities {
    /// Shows code actions that are more than a command.
    pub(super) code_action_literals: bool,
    /// Checks the version of a document before changing it.
    pub(super) versioned_edits: bool,
    /// Requests code lenses again on `workspace/codeLens/refresh`.
    pub(super) refreshes_lenses: bool,
    /// Shows questions with buttons.
    pub(super) asks_questions: bool,
}

/// What the range of a request for code actions is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SelectionRange {
    /// The selection, or the cursor.
    #[default]
    Exact,
    /// The selection, with its last character at the end of the range instead of before it.
    ToTheLast,
    /// The selection, or the cursor's whole line.
    OrLine,
    /// The word or line at the cursor, or the whole document: it says nothing about the selection.
    Unrelated,
}

/// What is known about an editor that the protocol does not report.
#[derive(Debug)]
pub(super) struct EditorProfile {
    /// The prefix of its client name, in lower case.
    client: &'static str,
    name: &'static str,
    display_name: &'static str,
    /// How the user opens code actions.
    pub(super) code_actions: &'static str,
    /// Whether it requests hovers at the cursor. In graphical editors they follow the mouse.
    pub(super) hovers_at_the_cursor: bool,
    /// What the range of a request for code actions says about the selection.
    pub(super) selection: SelectionRange,
    /// Whether a question does not interrupt the user. Other editors let it take the keyboard, or hide it; then none is asked.
    shows_questions: bool,
    /// How to see what was written to an open file.
    pub(super) reload: &'static str,
    /// Whether its changes to a text may arrive in the wrong order, with versions that leave nothing out.
    pub(super) changes_overtake: bool,
}

const DEFAULT_PROFILE: EditorProfile = EditorProfile {
    client: "",
    name: "",
    display_name: "",
    code_actions: "code actions",
    hovers_at_the_cursor: false,
    selection: SelectionRange::Exact,
    shows_questions: true,
    reload: "",
    changes_overtake: false,
};

const PROFILES: [EditorProfile; 7] = [
    EditorProfile {
        client: "helix",
        name: "helix",
        display_name: "Helix",
        code_actions: "space a",
        hovers_at_the_cursor: true,
        shows_questions: false,
        reload: " (run :reload-all to see it)",
        // Each one is sent by a task of its own.
        changes_overtake: true,
        ..DEFAULT_PROFILE
    },
    EditorProfile {
        client: "kak",
        name: "kakoune",
        display_name: "Kakoune",
        code_actions: ":lsp-code-actions",
        hovers_at_the_cursor: true,
        selection: SelectionRange::ToTheLast,
        shows_questions: false,
        ..DEFAULT_PROFILE
    },
    EditorProfile {
        client: "eglot",
        name: "emacs",
        display_name: "Emacs",
        code_actions: "M-x eglot-code-actions",
        hovers_at_the_cursor: true,
        shows_questions: false,
        ..DEFAULT_PROFILE
    },
    EditorProfile {
        client: "emacs",
        name: "emacs",
        display_name: "Emacs",
        code_actions: "M-x lsp-execute-code-action",
        hovers_at_the_cursor: true,
        shows_questions: false,
        ..DEFAULT_PROFILE
    },
    EditorProfile {
        client: "neovim",
        name: "neovim",
        display_name: "Neovim",
        code_actions: "gra",
        hovers_at_the_cursor: true,
        shows_questions: false,
        ..DEFAULT_PROFILE
    },
    EditorProfile {
        client: "kate",
        name: "kate",
        display_name: "Kate",
        code_actions: "Alt+Return",
        selection: SelectionRange::OrLine,
        ..DEFAULT_PROFILE
    },
    EditorProfile {
        client: "qt creator",
        name: "qtcreator",
        display_name: "Qt Creator",
        code_actions: "Alt+Return",
        selection: SelectionRange::Unrelated,
        ..DEFAULT_PROFILE
    },
];

impl Client {
    /// Reads the parameters of `initialize`. Malformed ones are treated as missing.
    pub(super) fn read(params: &Value) -> Self {
        let capabilities = &params["capabilities"];
        let reported = params["clientInfo"]["name"].as_str().unwrap_or_default().trim();
        let lower = reported.to_lowercase();
        let profile = PROFILES
            .iter()
            .find(|profile| lower.starts_with(profile.client))
            .unwrap_or(&DEFAULT_PROFILE);
        let name = match profile.name {
            "" => slug(&lower),
            known => known.to_owned(),
        };
        let display_name = match profile.display_name {
            "" if reported.is_empty() => "an editor".to_owned(),
            "" => reported.to_owned(),
            known => known.to_owned(),
        };
        let flag = |pointer: &str| capabilities.pointer(pointer).and_then(Value::as_bool) == Some(true);
        let has = |pointer: &str| capabilities.pointer(pointer).is_some_and(|value| !value.is_null());
        Self {
            is_named: !reported.is_empty(),
            name,
            display_name,
            pid: params["processId"].as_u64().and_then(|pid| u32::try_from(pid).ok()),
            folders: folders(params),
            follows_folders: true,
            open: Open::default(),
            encoding: Encoding::negotiate(capabilities),
            abilities: Abilities {
                code_action_literals: has("/textDocument/codeAction/codeActionLiteralSupport"),
                versioned_edits: flag("/workspace/workspaceEdit/documentChanges"),
                refreshes_lenses: flag("/workspace/codeLens/refreshSupport"),
                asks_questions: has("/window/showMessage") && profile.shows_questions,
            },
            profile,
        }
    }
}

impl Client {
    /// Sets the name of a client that reported none.
    pub fn set_name(&mut self, name: &str) {
        let lower = name.to_lowercase();
        if let Some(profile) = PROFILES.iter().find(|profile| lower.starts_with(profile.client)) {
            self.profile = profile;
            self.abilities.asks_questions &= profile.shows_questions;
        }
        self.name = match self.profile.name {
            "" => slug(name),
            known => known.to_owned(),
        };
        self.display_name = match self.profile.display_name {
            "" => name.to_owned(),
            known => known.to_owned(),
        };
    }
}

/// A name that is safe in a file name.
fn slug(name: &str) -> String {
    let words: Vec<String> = name
        .split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    if words.is_empty() {
        "lsp".to_owned()
    } else {
        words.join("-")
    }
}

fn folders(params: &Value) -> Vec<PathBuf> {
    let listed = params["workspaceFolders"].as_array().into_iter().flatten();
    let mut folders: Vec<PathBuf> = listed
        .filter_map(|folder| uri::to_path(folder["uri"].as_str()?).map(PathBuf::from))
        .collect();
    if folders.is_empty() {
        let root = params["rootUri"].as_str().and_then(uri::to_path);
        let root = root.or_else(|| params["rootPath"].as_str().map(str::to_owned));
        folders.extend(root.map(PathBuf::from));
    }
    distinct(folders.into_iter().filter_map(workspace_of))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn known_editors_have_their_usual_names() {
        let names = |said: Value| {
            let client = Client::read(&json!({ "clientInfo": { "name": said } }));
            (client.name, client.display_name)
        };
        let pair = |name: &str, display: &str| (name.to_owned(), display.to_owned());
        assert_eq!(names(json!("helix")), pair("helix", "Helix"));
        assert_eq!(names(json!("kakoune-lsp")), pair("kakoune", "Kakoune"));
        assert_eq!(names(json!("Eglot")), pair("emacs", "Emacs"));
        assert_eq!(names(json!("Zed")), pair("zed", "Zed"));
        assert_eq!(
            names(json!("Sublime Text LSP")),
            pair("sublime-text-lsp", "Sublime Text LSP")
        );
        assert_eq!(names(json!(7)), pair("lsp", "an editor"));
    }

    #[test]
    fn questions_are_asked_only_where_they_do_not_interrupt() {
        let asks = |name: &str, window: Value| {
            let params = json!({ "clientInfo": { "name": name }, "capabilities": { "window": window } });
            Client::read(&params).abilities.asks_questions
        };
        let able = json!({ "showMessage": { "messageActionItem": {} } });
        assert!(asks("Zed", able.clone()) && !asks("Zed", json!({})));
        assert!(!asks("helix", able.clone()) && !asks("kakoune-lsp", able));
    }

    #[test]
    fn folders_are_read_from_every_form() {
        let folders = |params: Value| Client::read(&params).folders;
        let listed =
            json!({ "workspaceFolders": [{ "uri": "file:///a%20b" }, { "uri": "x:y" }], "rootUri": "file:///c" });
        assert_eq!(folders(listed), [PathBuf::from("/a b")]);
        assert_eq!(
            folders(json!({ "workspaceFolders": null, "rootUri": "file:///c" })),
            [PathBuf::from("/c")]
        );
        assert_eq!(
            folders(json!({ "rootUri": null, "rootPath": "/d" })),
            [PathBuf::from("/d")]
        );
        let with_root = json!({ "workspaceFolders": [{ "uri": "file:///" }, { "uri": "file:///e" }] });
        assert_eq!(folders(with_root), [PathBuf::from("/e")]);
        assert!(folders(json!([])).is_empty() && folders(json!({ "rootUri": 7 })).is_empty());
    }
}

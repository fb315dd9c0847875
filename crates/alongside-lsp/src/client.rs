//! What an editor says of itself in `initialize`, and what is known of it besides.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::text::Encoding;
use super::uri;

/// An editor that speaks the language server protocol.
#[derive(Clone, Debug)]
pub struct Client {
    /// A short lowercase name for it, as agents are given it.
    pub name: String,
    /// Its name, as agents show it.
    pub display_name: String,
    /// Its process, if it says.
    pub pid: Option<u32>,
    /// The projects that it has open.
    pub folders: Vec<PathBuf>,
    /// Whether its folders are followed when they change.
    pub follows_folders: bool,
    pub(super) encoding: Encoding,
    pub(super) abilities: Abilities,
    pub(super) habits: &'static Known,
}

/// What an editor can do, as far as it matters here.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // They are independent of one another.
pub(super) struct Abilities {
    /// It shows code actions that are more than a command.
    pub(super) code_action_literals: bool,
    /// It checks the version of a document before it changes it.
    pub(super) versioned_edits: bool,
    /// It asks for code lenses again when told.
    pub(super) refreshes_lenses: bool,
    /// It shows a question with buttons.
    pub(super) asks_questions: bool,
}

/// What is known of an editor that the protocol does not say.
#[derive(Debug)]
pub(super) struct Known {
    /// How its name begins, in lower case.
    client: &'static str,
    name: &'static str,
    display_name: &'static str,
    /// How a person gets to code actions.
    pub(super) code_actions: &'static str,
    /// Whether it asks for hovers where the cursor is. In graphical editors they follow the mouse.
    pub(super) hovers_at_the_cursor: bool,
    /// Whether the end of a range is the last selected character, and not what comes behind it.
    pub(super) selects_to_the_last: bool,
    /// Whether a question is shown beside what a person does. Elsewhere it takes the keyboard from somebody who is typing,
    /// or is shown when somebody looks for it; then none is asked.
    shows_questions: bool,
    /// How a person sees what was written to a file that is open.
    pub(super) reload: &'static str,
}

const UNKNOWN: Known = Known {
    client: "",
    name: "",
    display_name: "",
    code_actions: "code actions",
    hovers_at_the_cursor: false,
    selects_to_the_last: false,
    shows_questions: true,
    reload: "",
};

const KNOWN: [Known; 5] = [
    Known {
        client: "helix",
        name: "helix",
        display_name: "Helix",
        code_actions: "space a",
        hovers_at_the_cursor: true,
        shows_questions: false,
        reload: " (run :reload-all to see it)",
        ..UNKNOWN
    },
    Known {
        client: "kak",
        name: "kakoune",
        display_name: "Kakoune",
        code_actions: ":lsp-code-actions",
        hovers_at_the_cursor: true,
        selects_to_the_last: true,
        shows_questions: false,
        ..UNKNOWN
    },
    Known {
        client: "eglot",
        name: "emacs",
        display_name: "Emacs",
        code_actions: "M-x eglot-code-actions",
        hovers_at_the_cursor: true,
        shows_questions: false,
        ..UNKNOWN
    },
    Known {
        client: "emacs",
        name: "emacs",
        display_name: "Emacs",
        code_actions: "M-x lsp-execute-code-action",
        hovers_at_the_cursor: true,
        shows_questions: false,
        ..UNKNOWN
    },
    Known {
        client: "neovim",
        name: "neovim",
        display_name: "Neovim",
        code_actions: "gra",
        hovers_at_the_cursor: true,
        shows_questions: false,
        ..UNKNOWN
    },
];

impl Client {
    /// Reads the parameters of `initialize`. What is missing or malformed counts as not said.
    pub(super) fn read(params: &Value) -> Self {
        let capabilities = &params["capabilities"];
        let said = params["clientInfo"]["name"].as_str().unwrap_or_default().trim();
        let lower = said.to_lowercase();
        let habits = KNOWN
            .iter()
            .find(|known| lower.starts_with(known.client))
            .unwrap_or(&UNKNOWN);
        let name = match habits.name {
            "" => slug(&lower),
            known => known.to_owned(),
        };
        let display_name = match habits.display_name {
            "" if said.is_empty() => "an editor".to_owned(),
            "" => said.to_owned(),
            known => known.to_owned(),
        };
        let flag = |pointer: &str| capabilities.pointer(pointer).and_then(Value::as_bool) == Some(true);
        let has = |pointer: &str| capabilities.pointer(pointer).is_some_and(|value| !value.is_null());
        Self {
            name,
            display_name,
            pid: params["processId"].as_u64().and_then(|pid| u32::try_from(pid).ok()),
            folders: folders(params),
            follows_folders: true,
            encoding: Encoding::negotiate(capabilities),
            abilities: Abilities {
                code_action_literals: has("/textDocument/codeAction/codeActionLiteralSupport"),
                versioned_edits: flag("/workspace/workspaceEdit/documentChanges"),
                refreshes_lenses: flag("/workspace/codeLens/refreshSupport"),
                asks_questions: has("/window/showMessage") && habits.shows_questions,
            },
            habits,
        }
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
    let mut projects: Vec<PathBuf> = Vec::new();
    for project in folders.into_iter().map(project_of) {
        if !projects.contains(&project) {
            projects.push(project);
        }
    }
    projects
}

/// The repository that a folder is in, or the folder itself. Clients name the folder that a language counts from, a crate's
/// for one; but people start agents anywhere in their project.
pub(super) fn project_of(folder: PathBuf) -> PathBuf {
    const MARKS: [&str; 4] = [".git", ".hg", ".jj", ".svn"];
    // Some people keep their whole home in a repository; what is below it is not one project.
    let home = std::env::home_dir();
    let repository = folder
        .ancestors()
        .take_while(|ancestor| Some(*ancestor) != home.as_deref())
        .find(|ancestor| MARKS.iter().any(|mark| ancestor.join(mark).exists()));
    repository.map(Path::to_owned).unwrap_or(folder)
}

/// A name that can stand in a file name.
fn slug(name: &str) -> String {
    let words: Vec<&str> = name
        .split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    if words.is_empty() {
        "lsp".to_owned()
    } else {
        words.join("-")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_editor_is_called_what_people_call_it() {
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
    fn a_question_is_asked_only_where_it_is_seen_and_does_not_take_the_keyboard() {
        let asks = |name: &str, window: Value| {
            let params = json!({ "clientInfo": { "name": name }, "capabilities": { "window": window } });
            Client::read(&params).abilities.asks_questions
        };
        let able = json!({ "showMessage": { "messageActionItem": {} } });
        assert!(asks("Zed", able.clone()) && !asks("Zed", json!({})));
        assert!(!asks("helix", able.clone()) && !asks("kakoune-lsp", able));
    }

    #[test]
    fn a_folder_of_a_repository_stands_for_the_whole_of_it() {
        let scratch = tempfile::tempdir().unwrap();
        let inside = scratch.path().join("crates/one");
        std::fs::create_dir_all(&inside).unwrap();
        assert_eq!(project_of(inside.clone()), inside);
        std::fs::create_dir(scratch.path().join(".git")).unwrap();
        assert_eq!(project_of(inside), scratch.path());
    }

    #[test]
    fn folders_come_from_wherever_the_client_says_them() {
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
        assert!(folders(json!([])).is_empty() && folders(json!({ "rootUri": 7 })).is_empty());
    }
}

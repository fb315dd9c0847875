//! Which folders a companion serves for an editor, and when.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::agent;
use super::editor::{Editor, address};
use crate::sandbox::{Sandbox, wait_for};

#[tokio::test]
async fn folders_are_followed_but_not_those_of_drafts() {
    let sandbox = Sandbox::new();
    let other = sandbox.path("other");
    fs::create_dir_all(other.join(".git/refs")).unwrap();
    fs::create_dir_all(other.join("crates/one")).unwrap();
    let mut editor = Editor::open(&sandbox);
    let drafts = sandbox.path("home/.local/state/alongside/drafts");
    let added: Vec<Value> = [&drafts, &other.join("crates/one")]
        .map(|folder| json!({ "uri": address(folder), "name": "x" }))
        .into();
    let event = json!({ "event": { "added": added, "removed": [] } });
    editor.tell("workspace/didChangeWorkspaceFolders", &event);
    let expected = format!("{}:{}", sandbox.workspace().display(), other.display());
    wait_for("the folder in the discovery file", || {
        let file: Value = serde_json::from_slice(&fs::read(sandbox.discovery_files().pop()?).ok()?).ok()?;
        (file["workspacePath"] == expected).then_some(())
    });
}

/// Starts a server in `/`, as a desktop does, for a client that names this folder, or none.
fn open_without_a_project(sandbox: &Sandbox, arguments: &[&str], root: &Value) -> Editor {
    let mut editor = Editor::start_in(Path::new("/"), sandbox, arguments);
    let answer = editor.ask("initialize", &json!({ "rootUri": root, "capabilities": {} }));
    assert_eq!(answer["result"]["serverInfo"]["name"], "alongside", "{answer}");
    editor.tell("initialized", &json!({}));
    editor
}

/// Responds in order: then everything before it was handled.
fn hover(editor: &mut Editor, path: &str) -> Value {
    let document = json!({ "uri": address(Path::new(path)) });
    let params = json!({ "textDocument": document, "position": { "line": 0, "character": 0 } });
    editor.ask("textDocument/hover", &params)
}

fn announced(sandbox: &Sandbox) -> Value {
    // A file that is just being written has another name until it is whole.
    wait_for("a discovery file", || {
        let file = sandbox.discovery_files().pop()?;
        serde_json::from_slice(&fs::read(file).ok()?).ok()
    })
}

#[test]
fn nothing_is_announced_before_the_first_file_of_a_client_without_a_project() {
    let home = |sandbox: &Sandbox| json!(address(&sandbox.path("home")));
    let roots: [fn(&Sandbox) -> Value; 3] = [|_| Value::Null, |_| json!("file:///"), home];
    for root in roots {
        let sandbox = Sandbox::new();
        let repository = sandbox.path("a repository");
        fs::create_dir_all(repository.join(".git/refs")).unwrap();
        fs::create_dir_all(repository.join("src")).unwrap();
        let file = repository.join("src/a.txt");
        fs::write(&file, "one\n").unwrap();
        let file = file.to_str().unwrap();
        let mut editor = open_without_a_project(&sandbox, &[], &root(&sandbox));
        assert_eq!(hover(&mut editor, file)["result"], Value::Null);
        assert!(sandbox.discovery_files().is_empty());
        editor.open_file(file, "one\n");
        assert_eq!(announced(&sandbox)["workspacePath"], repository.to_str().unwrap());
        assert_eq!(editor.shut_down(), Some(0));
    }
}

#[tokio::test]
async fn file_outside_a_repository_has_its_directory_as_workspace_but_not_the_home_directory() {
    let sandbox = Sandbox::new();
    let (in_home, elsewhere) = (sandbox.path("home/notes.txt"), sandbox.path("elsewhere/a.txt"));
    fs::create_dir_all(elsewhere.parent().unwrap()).unwrap();
    fs::write(&in_home, "one\n").unwrap();
    fs::write(&elsewhere, "two\n").unwrap();
    let mut editor = open_without_a_project(&sandbox, &[], &Value::Null);
    editor.open_file(in_home.to_str().unwrap(), "one\n");
    hover(&mut editor, in_home.to_str().unwrap());
    assert!(sandbox.discovery_files().is_empty());
    editor.open_file(elsewhere.to_str().unwrap(), "two\n");
    let announced = announced(&sandbox);
    assert_eq!(
        announced["workspacePath"],
        elsewhere.parent().unwrap().to_str().unwrap()
    );
    let mut agent = agent(&sandbox).await;
    let seen = agent.sees_active(elsewhere.to_str().unwrap()).await;
    let open = seen["workspaceState"]["openFiles"].as_array().unwrap();
    assert!(
        open.iter().any(|file| file["path"] == in_home.to_str().unwrap()),
        "{seen}"
    );
}

#[test]
fn home_directory_is_a_workspace_if_the_user_names_it() {
    let sandbox = Sandbox::new();
    let home = sandbox.path("home");
    let arguments = ["--workspace", home.to_str().unwrap()];
    let _editor = open_without_a_project(&sandbox, &arguments, &Value::Null);
    assert_eq!(announced(&sandbox)["workspacePath"], home.to_str().unwrap());
}

#[test]
fn folder_that_a_client_adds_first_is_the_workspace() {
    let sandbox = Sandbox::new();
    let mut editor = open_without_a_project(&sandbox, &[], &Value::Null);
    let added: Vec<Value> = [sandbox.path("home"), sandbox.workspace()]
        .map(|folder| json!({ "uri": address(&folder), "name": "x" }))
        .into();
    let event = json!({ "event": { "added": added, "removed": [] } });
    editor.tell("workspace/didChangeWorkspaceFolders", &event);
    assert_eq!(
        announced(&sandbox)["workspacePath"],
        sandbox.workspace().to_str().unwrap()
    );
}

#[test]
fn client_without_a_project_can_shut_down_or_disconnect() {
    let sandbox = Sandbox::new();
    assert_eq!(open_without_a_project(&sandbox, &[], &Value::Null).shut_down(), Some(0));
    let mut editor = open_without_a_project(&sandbox, &[], &Value::Null);
    drop(editor.input.take());
    let status = wait_for("its end", || editor.child.try_wait().unwrap());
    assert_eq!(status.code(), Some(1), "it did not say goodbye");
}

#[cfg(unix)]
#[test]
fn client_without_a_name_is_called_by_its_process() {
    for (program, name, display_name) in [
        ("kate", "kate", "Kate"),
        ("qtcreator", "qtcreator", "Qt Creator"),
        ("My_Editor", "my-editor", "My_Editor"),
        ("bash", "lsp", "an editor"),
    ] {
        let sandbox = Sandbox::new();
        let path = sandbox.path(program);
        std::os::unix::fs::symlink("/bin/sleep", &path).unwrap();
        let mut process = std::process::Command::new(&path).arg("600").spawn().unwrap();
        let mut editor = Editor::start(&sandbox, &[]);
        let root = address(&sandbox.workspace());
        editor.ask(
            "initialize",
            &json!({ "processId": process.id(), "rootUri": root, "capabilities": {} }),
        );
        let announced = announced(&sandbox);
        process.kill().unwrap();
        process.wait().unwrap();
        assert_eq!(
            (&announced["ideInfo"]["name"], &announced["ideInfo"]["displayName"]),
            (&json!(name), &json!(display_name)),
        );
    }
}

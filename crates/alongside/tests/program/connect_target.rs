//! Which of several companions agents find: the one whose editor was used last.

use std::fs;
use std::path::Path;

use alongside_discovery::process::SystemProcesses;
use alongside_discovery::{Environment, lookup};
use serde_json::{Value, json};

use crate::bridge::Plugin;
use crate::sandbox::{Sandbox, wait_for};

/// An editor that has sent its hello.
fn editor(sandbox: &Sandbox, further: &[&str]) -> (Plugin, u16) {
    let mut plugin = Plugin::start_with(sandbox, further);
    plugin.hello();
    let port = plugin.ask("status", &json!({}))["result"]["port"].clone();
    (plugin, u16::try_from(port.as_u64().unwrap()).unwrap())
}

/// The ports that Gemini CLI and Qwen Code would dial from a directory, were they started now.
fn found_from(sandbox: &Sandbox, directory: &str, variables: &[(&str, &str)]) -> [Value; 2] {
    let mut command = sandbox.command(&["doctor", "--json", "--workspace", directory]);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    [0, 1].map(|agent| found["agents"][agent]["target"]["port"].clone())
}

fn found(sandbox: &Sandbox) -> [Value; 2] {
    found_from(sandbox, ".", &[])
}

fn wait_until_found(sandbox: &Sandbox, port: u16) {
    wait_for("both to find it", || {
        (found(sandbox) == [json!(port), json!(port)]).then_some(())
    });
}

#[test]
fn most_recently_used_editor_is_picked() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("a.txt", "");
    let (mut one, first) = editor(&sandbox, &[]);
    assert_eq!(found(&sandbox), [first, first]);
    let (mut other, second) = editor(&sandbox, &[]);
    wait_until_found(&sandbox, second);
    one.ask("context/focus", &json!({ "path": file }));
    wait_until_found(&sandbox, first);
    other.ask("window/focus", &json!({}));
    wait_until_found(&sandbox, second);

    let status = sandbox.json(&["status"]);
    let found = &status["found"][0]["found"];
    assert_eq!(status["here"], other.bridge.id(), "commands go by the same rule");
    assert_eq!(found["companion"]["editorPid"], other.editor.id());
    assert_eq!(found["reason"], "usedLast");
    assert_eq!(found["others"][0]["pid"], one.bridge.id());
    let sentence = format!(
        "started here would pick The Editor (pid {}), because it was used most recently; also running: The Editor (pid {})",
        other.editor.id(),
        one.editor.id()
    );
    let words = sandbox.words(&["status"]);
    assert!(
        words.contains(&format!("Gemini CLI and Qwen Code {sentence}")),
        "{words}"
    );
    let words = sandbox.words(&["doctor"]);
    assert!(words.contains(&format!("Qwen Code {sentence}")), "{words}");
}

/// C3: of two locks for a directory, Claude Code connects to none.
#[test]
fn only_the_most_recently_used_editor_has_a_lock_for_claude() {
    let sandbox = Sandbox::new();
    let locks = || {
        let entries = fs::read_dir(sandbox.path("home/.claude/ide")).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "lock"))
            .collect();
        names.sort();
        names
    };
    let wait_for_lock = |port: u16| {
        wait_for("its lock to be the only one", || {
            (locks() == [format!("{port}.lock")]).then_some(())
        });
    };
    let (mut one, first) = editor(&sandbox, &[]);
    wait_for_lock(first);
    let (mut other, second) = editor(&sandbox, &[]);
    wait_for_lock(second);
    one.ask("window/focus", &json!({}));
    wait_for_lock(first);
    // A killed editor leaves the place to the other.
    one.editor.kill().unwrap();
    one.editor.wait().unwrap();
    wait_for_lock(second);
    other.ask("window/focus", &json!({}));
    wait_for_lock(second);
}

/// Difference 25.
#[test]
fn names_of_discovery_files_have_the_editors_pid_wherever_sorting_allows() {
    let sandbox = Sandbox::new();
    let editors = [editor(&sandbox, &[]), editor(&sandbox, &[])];
    let [(mut low, low_port), (mut high, high_port)] = {
        let mut editors = editors;
        editors.sort_by_key(|(plugin, _)| plugin.editor.id());
        editors
    };
    let name =
        |agent: &str, plugin: &Plugin, port: u16| format!("{agent}-ide-server-{}-{port}.json", plugin.editor.id());
    let names = || {
        let files = sandbox.discovery_files();
        let names = files
            .iter()
            .map(|file| file.file_name().unwrap().to_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let everywhere = [name("gemini", &low, low_port), name("gemini", &high, high_port)];
    let of_qwen = [name("qwen-code", &low, low_port), name("qwen-code", &high, high_port)];
    high.ask("window/focus", &json!({}));
    wait_until_found(&sandbox, high_port);
    wait_for("both to have their own names", || {
        everywhere.iter().all(|name| names().contains(name)).then_some(())
    });
    // Gemini CLI would take the larger one.
    low.ask("window/focus", &json!({}));
    wait_until_found(&sandbox, low_port);
    let now = names();
    assert!(now.contains(&everywhere[0]) && !now.contains(&everywhere[1]), "{now:?}");
    assert!(of_qwen.iter().all(|name| now.contains(name)), "{now:?}");
    // The other takes over.
    low.editor.kill().unwrap();
    low.editor.wait().unwrap();
    wait_for("its own name again", || {
        let names = names();
        (names.len() == 5 && names.contains(&everywhere[1]) && names.contains(&of_qwen[1])).then_some(())
    });
}

/// Nobody has to notice anything: the order of the files is enough.
#[test]
fn killed_editor_and_companion_are_swept_and_the_other_is_picked() {
    let sandbox = Sandbox::new();
    let (one, first) = editor(&sandbox, &[]);
    let (mut other, second) = editor(&sandbox, &[]);
    wait_until_found(&sandbox, second);
    // Stopped, so that it cannot do anything about it.
    let signal = |name: &str| {
        let sent = std::process::Command::new("kill")
            .args([name, &one.bridge.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    for child in [&mut other.bridge, &mut other.editor] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let environment = Environment::new(sandbox.path("home"), sandbox.workspace());
    let environment = environment.with("TMPDIR", sandbox.path("tmp").to_str().unwrap());
    for look_up in [lookup::gemini, lookup::qwen] {
        let lookup = look_up(&environment, &SystemProcesses::default(), &sandbox.workspace());
        assert_eq!(lookup.targets().next().unwrap().port, first, "{lookup:?}");
    }
    signal("-CONT");
    wait_until_found(&sandbox, first);
    wait_for("its own name", || {
        let own = format!("gemini-ide-server-{}-{first}.json", one.editor.id());
        let files = sandbox.discovery_files();
        (files.len() == 5 && files.iter().any(|file| file.ends_with(&own))).then_some(())
    });
}

/// Gemini CLI would go by the file that is left, because the editor in its name is alive, and try no other.
#[test]
fn killed_companion_is_swept_by_the_other() {
    let sandbox = Sandbox::new();
    let (_one, first) = editor(&sandbox, &[]);
    let (mut other, second) = editor(&sandbox, &[]);
    wait_until_found(&sandbox, second);
    other.bridge.kill().unwrap();
    other.bridge.wait().unwrap();
    wait_until_found(&sandbox, first);
}

#[test]
fn companion_without_an_editor_yields_to_one_with_an_editor() {
    let sandbox = Sandbox::new();
    let (mut editor, port) = editor(&sandbox, &[]);
    let alone = sandbox.serve();
    assert_eq!(found(&sandbox), [port, port]);
    let file = sandbox.write("a.txt", "");
    sandbox.words(&["context", "focus", &file]);
    assert_eq!(found(&sandbox), [port, port]);
    let status = sandbox.json(&["status"]);
    assert_eq!(status["found"][0]["found"]["reason"], "hasEditor");
    let words = sandbox.words(&["status"]);
    let sentence = format!(
        "would pick The Editor (pid {}), because it belongs to an editor; also running: Alongside (pid {})",
        editor.editor.id(),
        alone.pid()
    );
    assert!(words.contains(&sentence), "{words}");
    // It may be gone before it can answer.
    editor.send(&json!({ "jsonrpc": "2.0", "method": "stop", "params": {} }).to_string());
    wait_until_found(&sandbox, alone.port);
    let words = sandbox.words(&["status"]);
    assert!(words.contains("the only companion here"), "{words}");
}

#[test]
fn nested_workspaces_most_recently_used_is_picked() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.workspace().join("inner")).unwrap();
    let (mut outer, outside) = editor(&sandbox, &[]);
    let (mut inner, inside) = editor(&sandbox, &["--workspace", "inner"]);
    let wait_inside = |port: u16| {
        wait_for("both to find it", || {
            (found_from(&sandbox, "inner", &[]) == [json!(port), json!(port)]).then_some(())
        });
        assert_eq!(found(&sandbox), [outside, outside], "in the outer folder there is one");
    };
    wait_inside(inside);
    outer.ask("window/focus", &json!({}));
    wait_inside(outside);
    inner.ask("window/focus", &json!({}));
    wait_inside(inside);
}

#[test]
fn agent_in_an_editors_terminal_picks_that_editor() {
    let sandbox = Sandbox::new();
    let (mut one, first) = editor(&sandbox, &[]);
    let variables = one.ask("terminal/environment", &json!({}))["result"]["variables"].clone();
    let variables: Vec<(&str, &str)> = variables
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
        .collect();
    let (_other, second) = editor(&sandbox, &[]);
    wait_until_found(&sandbox, second);
    assert_eq!(found_from(&sandbox, ".", &variables), [first, first]);
    let words = sandbox.command(&["status"]).envs(variables).output().unwrap();
    let words = String::from_utf8(words.stdout).unwrap();
    assert!(words.contains("because this terminal belongs to it"), "{words}");
}

//! Which editor a terminal belongs to, and plugins into editors and out again.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// A pretend VS Code: it keeps its extensions in a file and fails when told to.
const PRETEND_EDITOR: &str = r#"#!/bin/sh
list="$HOME/extensions"
touch "$list"
case "$1" in
--list-extensions) cat "$list" ;;
--install-extension) test -s "$2" || exit 1; basename "$2" .vsix | sed 's/^alongside-/alongside.alongside@/' >> "$list" ;;
--uninstall-extension) grep -v "^$2@" "$list" > "$list.new"; mv "$list.new" "$list" ;;
*) exit 1 ;;
esac
"#;

/// The program, with nothing on the path but the system's own tools and what the sandbox has.
fn command(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = sandbox.command(arguments);
    let path = std::env::join_paths([sandbox.path("bin"), PathBuf::from("/bin")]).unwrap();
    command.env("PATH", path);
    command
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    command(sandbox, arguments).output().unwrap()
}

fn json_of(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    let output = run(sandbox, &[arguments, &["--json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap()
}

fn sandbox_with(program: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let bin = sandbox.path("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join(program), PRETEND_EDITOR).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(bin.join(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    sandbox
}

#[test]
fn detect_shows_editor_evidence_and_agents() {
    let sandbox = Sandbox::new();
    let output = sandbox
        .command(&["detect", "--json"])
        .env("NVIM", "/run/nvim.0")
        .output()
        .unwrap();
    let detection: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(detection["found"]["editor"], "neovim");
    assert_eq!(
        detection["found"]["evidence"][0],
        json!({ "kind": "variable", "name": "NVIM", "value": "/run/nvim.0" })
    );
    assert_eq!(
        detection["agents"][0]["detects"],
        Value::Null,
        "Neovim means nothing to the agents"
    );
    let _serving = sandbox.serve_with(&["--name", "neovim", "--display-name", "Neovim"]);
    for agent in sandbox.json(&["detect"])["agents"].as_array().unwrap().iter().take(5) {
        assert_eq!(
            agent["detects"]["displayName"], "Neovim",
            "from a discovery file: {agent}"
        );
    }
    let words = sandbox.words(&["detect"]);
    assert!(words.contains("would detect Neovim (from a discovery file)"), "{words}");
}

#[test]
fn vs_code_extension_comes_and_goes() {
    let sandbox = sandbox_with("cursor");
    let dry = run(&sandbox, &["install", "cursor", "--dry-run"]);
    let words = String::from_utf8(dry.stdout).unwrap();
    assert!(
        words.contains("would run") && words.contains("--install-extension alongside-"),
        "{words}"
    );
    assert_eq!(fs::read_to_string(sandbox.path("home/extensions")).unwrap(), "");
    assert_eq!(
        json_of(&sandbox, &["install", "cursor"])["reports"][0]["outcome"],
        "done"
    );
    assert_eq!(
        json_of(&sandbox, &["install", "cursor"])["reports"][0]["outcome"],
        "unchanged"
    );
    let status = json_of(&sandbox, &["install", "cursor", "--status"]);
    assert_eq!(status["editors"][0]["state"], "installed");
    let listed = fs::read_to_string(sandbox.path("home/extensions")).unwrap();
    assert_eq!(
        listed.trim(),
        concat!("alongside.alongside@", env!("CARGO_PKG_VERSION"))
    );
    let official = "google.gemini-cli-vscode-ide-companion";
    fs::write(sandbox.path("home/extensions"), format!("{listed}{official}@0.20.0\n")).unwrap();
    let status = json_of(&sandbox, &["install", "cursor", "--status"]);
    let sentence = status["editors"][0]["sentence"].as_str().unwrap();
    assert!(
        sentence.contains(&format!("`cursor --uninstall-extension {official}`")),
        "{sentence}"
    );
    fs::write(sandbox.path("home/extensions"), listed).unwrap();
    assert_eq!(
        json_of(&sandbox, &["uninstall", "cursor"])["reports"][0]["outcome"],
        "done"
    );
    assert_eq!(fs::read_to_string(sandbox.path("home/extensions")).unwrap(), "");
}

#[test]
fn install_without_editor_lists_and_changes_nothing() {
    let sandbox = sandbox_with("windsurf");
    let words = String::from_utf8(run(&sandbox, &["install"]).stdout).unwrap();
    assert!(
        words.contains("Would install for Windsurf") && words.contains("--yes"),
        "{words}"
    );
    let offers = json_of(&sandbox, &["install"]);
    let offered = offers["offers"].as_array().unwrap();
    assert!(offered.iter().any(|offer| offer["editor"] == "windsurf"), "{offers}");
    assert_eq!(fs::read_to_string(sandbox.path("home/extensions")).unwrap(), "");
}

#[test]
#[cfg(unix)]
fn agent_found_here_is_offered_its_hook() {
    let sandbox = sandbox_with("opencode");
    let offered = || String::from_utf8(run(&sandbox, &["install"]).stdout).unwrap();
    let words = offered();
    assert!(
        words.contains("opencode          opencode would be set to ask you before it changes a file."),
        "{words}"
    );
    let state = || {
        let status = json_of(&sandbox, &["install", "--status"]);
        let hooks = status["hooks"].as_array().unwrap().iter();
        let mut hooks = hooks.filter(|hook| hook["agent"] == "opencode");
        hooks.next().unwrap()["state"].clone()
    };
    assert_eq!(state(), "absent");
    run(&sandbox, &["install", "opencode"]);
    assert_eq!(state(), "installed");
    assert!(!offered().contains("opencode would"), "it has its hook");
}

#[test]
fn an_editor_without_an_installer_gets_the_manual_steps() {
    let sandbox = Sandbox::new();
    let output = run(&sandbox, &["install", "rustrover"]);
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8(output.stdout).unwrap();
    assert!(
        words.contains("RustRover: there is no plugin") && words.contains("Run `alongside` in your project"),
        "{words}"
    );
    for editor in ["rustrover", "sublimetext", "zed"] {
        let output = run(&sandbox, &["install", editor]);
        let words = String::from_utf8(output.stdout).unwrap();
        assert!(words.contains("`alongside lsp`"), "{words}");
    }
    let mut inside = command(&sandbox, &["install"]);
    let output = inside.env("TERMINAL_EMULATOR", "JetBrains-JediTerm").output().unwrap();
    let words = String::from_utf8(output.stdout).unwrap();
    assert!(words.contains("JetBrains IDE: there is no plugin"), "{words}");
}

#[test]
fn unknown_editor_error_lists_known_ones() {
    let sandbox = Sandbox::new();
    let error = sandbox.failure(&["install", "edlin"]);
    assert!(
        error.contains("unknown editor `edlin`") && error.contains("neovim"),
        "{error}"
    );
}

#[cfg(unix)]
#[test]
fn tools_are_registered_with_an_agent_that_needs_them() {
    let sandbox = Sandbox::new();
    let settings = sandbox.path("home/.gemini/settings.json");
    let words = |arguments: &[&str]| String::from_utf8(run(&sandbox, arguments).stdout).unwrap();
    let shown = words(&["install", "gemini", "--tools", "--dry-run"]);
    assert!(shown.contains("its model would have the editor's tools"), "{shown}");
    assert!(!settings.exists());

    let shown = words(&["install", "gemini"]);
    assert!(shown.contains("`alongside install gemini --tools`"), "{shown}");
    let shown = words(&["install", "gemini", "--tools"]);
    assert!(shown.contains("+    \"alongside\": {"), "the change is shown: {shown}");
    let installed: Value = serde_json::from_slice(&fs::read(&settings).unwrap()).unwrap();
    let server = &installed["mcpServers"]["alongside"];
    let arguments = server["args"].as_array().unwrap().iter();
    let mut tools = Command::new(server["command"].as_str().unwrap());
    tools
        .args(arguments.map(|argument| argument.as_str().unwrap()))
        .stdin(std::process::Stdio::null());
    assert!(tools.status().unwrap().success(), "{server}");
    let shown = words(&["install", "--status", "gemini"]);
    assert!(shown.contains("editor's tools registered"), "{shown}");
    let status = json_of(&sandbox, &["install", "--status", "gemini", "claude"]);
    assert_eq!(status["hooks"][0]["tools"], true, "{status}");
    assert_eq!(status["hooks"][1].get("tools"), None, "{status}");

    words(&["uninstall", "gemini"]);
    assert!(!settings.exists());
}

#[test]
fn tools_are_refused_without_an_agent_that_needs_them() {
    let sandbox = Sandbox::new();
    let error = sandbox.failure(&["install", "neovim", "--tools"]);
    assert!(
        error.contains("`--tools` needs an agent; expected gemini or qwen"),
        "{error}"
    );
    assert!(sandbox.failure(&["install", "--tools"]).contains("required"));
    let output = run(&sandbox, &["install", "claude", "--tools"]);
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        shown.contains("Claude Code has the editor's tools when it is connected"),
        "{shown}"
    );
    assert!(!sandbox.path("home/.claude").exists());
}

/// Native packages and blocks, each with what this build has for it: installed, or refused in a sentence and untouched.
#[test]
fn embedded_plugins_install_and_missing_ones_are_named() {
    for editor in ["neovim", "vim", "emacs", "helix", "kakoune"] {
        let sandbox = Sandbox::new();
        let before = sandbox.path("home");
        let report = json_of(&sandbox, &["install", editor])["reports"][0].clone();
        match report["outcome"].as_str().unwrap() {
            "done" => {
                assert_eq!(
                    json_of(&sandbox, &["install", editor])["reports"][0]["outcome"],
                    "unchanged"
                );
                let status = json_of(&sandbox, &["install", editor, "--status"]);
                assert_eq!(status["editors"][0]["state"], "installed", "{status}");
                assert_eq!(
                    json_of(&sandbox, &["uninstall", editor])["reports"][0]["outcome"],
                    "done"
                );
            }
            "refused" => {
                let sentence = report["sentence"].as_str().unwrap();
                assert!(sentence.starts_with("This build of alongside has no"), "{sentence}");
                assert_eq!(fs::read_dir(before).unwrap().count(), 0);
            }
            other => panic!("{editor}: {other}"),
        }
        let status = json_of(&sandbox, &["install", editor, "--status"]);
        assert!(
            matches!(status["editors"][0]["state"].as_str(), Some("absent" | "unavailable")),
            "{status}"
        );
    }
}

#[test]
fn uninstall_all_undoes_every_installation() {
    let sandbox = sandbox_with("code");
    let home = sandbox.path("home");
    let files = || {
        let mut files = Vec::new();
        let mut directories = vec![home.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path.clone());
                }
                files.push(path);
            }
        }
        files.sort();
        files
    };
    fs::create_dir(home.join(".gemini")).unwrap();
    fs::write(home.join(".gemini/settings.json"), "{\"mine\": 1}\n").unwrap();
    fs::write(home.join("extensions"), "").unwrap();
    let before = files();
    let names = [
        "neovim", "emacs", "helix", "kakoune", "kate", "vscode", "claude", "codex", "copilot", "gemini", "opencode",
        "qwen",
    ];
    let installed = run(&sandbox, &[&["install"], &names[..]].concat());
    assert!(installed.status.success(), "{installed:?}");
    assert_ne!(files(), before);
    let planned = json_of(&sandbox, &["uninstall", "--all", "--dry-run"]);
    assert_eq!(planned["reports"].as_array().unwrap().len(), 6, "{planned}");
    assert_eq!(planned["hooks"].as_array().unwrap().len(), 6, "{planned}");
    let removed = run(&sandbox, &["uninstall", "--all"]);
    assert!(removed.status.success(), "{removed:?}");
    assert_eq!(files(), before);
    assert_eq!(fs::read_to_string(home.join("extensions")).unwrap(), "");
    let mine = fs::read_to_string(home.join(".gemini/settings.json")).unwrap();
    assert_eq!(mine, "{\"mine\": 1}\n");
    let again = run(&sandbox, &["uninstall", "--all"]);
    assert!(again.status.success(), "{again:?}");
    assert_eq!(String::from_utf8(again.stdout).unwrap(), "Nothing is installed.\n");
    assert!(sandbox.failure(&["uninstall"]).contains("required"));
}

#[cfg(unix)]
#[test]
fn uninstall_of_everything_forgets_an_editor_that_is_gone() {
    let sandbox = sandbox_with("code");
    assert!(run(&sandbox, &["install", "vscode"]).status.success());
    fs::remove_file(sandbox.path("bin/code")).unwrap();
    // It may be there without its command.
    let named = run(&sandbox, &["uninstall", "vscode"]);
    assert!(!named.status.success(), "{named:?}");
    let planned = run(&sandbox, &["uninstall", "--all", "--dry-run"]);
    assert!(planned.status.success(), "{planned:?}");
    let removed = json_of(&sandbox, &["uninstall", "--all"]);
    assert_eq!(removed["reports"][0]["outcome"], "unchanged", "{removed}");
    let remark = removed["reports"][0]["remarks"][0].as_str().unwrap();
    assert!(
        remark.contains("`code` is not on your PATH") && remark.contains("alongside.alongside"),
        "{remark}"
    );
    let again = run(&sandbox, &["uninstall", "--all"]);
    assert!(again.status.success(), "{again:?}");
    assert_eq!(String::from_utf8(again.stdout).unwrap(), "Nothing is installed.\n");
}

/// As from another terminal: Ctrl-C in this one does not reach the editor's command either.
#[cfg(unix)]
#[test]
fn interrupted_install_ends_the_editors_command() {
    let sandbox = sandbox_with("code");
    let script = "#!/bin/sh\nsleep 600 &\necho $! > \"$HOME/pid.new\"\nmv \"$HOME/pid.new\" \"$HOME/pid\"\nwait\n";
    fs::write(sandbox.path("bin/code"), script).unwrap();
    let mut install = command(&sandbox, &["install", "vscode"]).spawn().unwrap();
    let pid = crate::sandbox::wait_for("the editor's command", || {
        fs::read_to_string(sandbox.path("home/pid")).ok()
    });
    let signal = |name: &str, pid: &str| Command::new("kill").args([name, pid]).status().unwrap().success();
    assert!(signal("-INT", &install.id().to_string()));
    assert_eq!(install.wait().unwrap().code(), Some(130));
    let is_running = || {
        // It may stay a zombie here, which has no command line.
        let line = fs::read(format!("/proc/{}/cmdline", pid.trim()));
        line.map_or_else(
            |_| !cfg!(target_os = "linux") && signal("-0", pid.trim()),
            |line| !line.is_empty(),
        )
    };
    crate::sandbox::wait_for("its end", || (!is_running()).then_some(()));
}

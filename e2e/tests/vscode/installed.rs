//! `alongside install`, `--status` and `uninstall` with the real editor, which also has an agent's own extension.

use std::fs;

use alongside_e2e::{Sandbox, alongside};
use serde_json::json;

use crate::case::{Case, Vehicle};

const OFFICIAL: &str = "google.gemini-cli-vscode-ide-companion";

#[test]
fn official_extension_is_reported_and_ours_is_removed_alone() {
    let sandbox = Sandbox::new();
    add_official_extension(&sandbox);
    let case = Case::on(Vehicle::start(sandbox, &[]));
    let window = case.open();
    let text = "Gemini CLI\u{2019}s own extension is also installed";
    window.call("notification", &json!({"text": text, "button": "Show extension"}));
    window.call("extensions", &json!({"names": ["Gemini CLI Companion"]}));
    drop(window);

    let status = run(&case, &["install", "code-server", "--status"]);
    let offer = format!("`code-server --uninstall-extension {OFFICIAL}`");
    assert!(
        status.contains("Installed; runs ") && status.contains(&offer),
        "{status}"
    );
    let again = run(&case, &["install", "code-server"]);
    assert!(again.contains(&offer), "{again}");
    let removed = run(&case, &["uninstall", "code-server"]);
    assert!(removed.contains(&offer), "{removed}");
    let status = run(&case, &["install", "code-server", "--status"]);
    assert!(status.contains("Not installed"), "{status}");
    let mut list = case.sandbox().command(case.sandbox().path("bin/code-server"));
    let listed = list.arg("--list-extensions").output().expect("list the extensions");
    assert_eq!(String::from_utf8_lossy(&listed.stdout).trim(), OFFICIAL);
}

/// Stands for the official extension, which is only in galleries: the same name, and nothing in it.
fn add_official_extension(sandbox: &Sandbox) {
    let (publisher, name) = OFFICIAL.split_once('.').expect("an id has two parts");
    let directory = format!("home/.local/share/code-server/extensions/{OFFICIAL}-0.20.0");
    let directory = sandbox.path(&directory);
    fs::create_dir_all(&directory).expect("create the extension's directory");
    let manifest = json!({
        "publisher": publisher, "name": name, "displayName": "Gemini CLI Companion", "version": "0.20.0",
        "engines": {"vscode": "^1.96.0"},
    });
    fs::write(directory.join("package.json"), manifest.to_string()).expect("write the manifest");
}

/// Runs `alongside`, and returns what it prints.
fn run(case: &Case, arguments: &[&str]) -> String {
    let mut command = case.sandbox().command(alongside());
    let output = command.args(arguments).output().expect("start alongside");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

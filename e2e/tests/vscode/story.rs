//! What a new user does: install the extension, open a folder, start an agent in the terminal, and nothing else.

use std::fs;
use std::time::Duration;

use alongside_e2e::{Capability, Cli, FakeModel, Native, Prompt, Sandbox, TIMEOUT, eventually};
use serde_json::{Value, json};

use crate::case::{Case, Vehicle, Window, vscode_proves};

/// An agent as a user starts it, and what it shows when it is ready for a prompt.
const AGENTS: [(&str, &str); 3] = [
    ("gemini", "Type your message"),
    ("qwen", "Type your message"),
    // By default a model decides about permissions, and changes are never shown.
    ("claude --permission-mode default", "manual mode on"),
];

#[test]
fn agents_in_the_terminal_are_connected_and_their_changes_reviewed() {
    let sandbox = Sandbox::new().without_ide_settings();
    let model = FakeModel::start();
    Native::Claude.set_up(&sandbox, &model);
    forget_that_editors_are_wanted(&sandbox);
    let mut variables = Native::Claude.variables(&model);
    variables.extend(
        [Cli::Gemini, Cli::Qwen]
            .iter()
            .flat_map(|cli| cli.model_variables(&model)),
    );
    let case = Case::whole(Vehicle::start(sandbox, &variables));
    let window = case.open();
    for (command, ready) in AGENTS {
        window.ask("openTerminal");
        window.type_text(&format!("{command}\n"));
        window.call("terminalShows", &json!({"text": ready}));
        window.call("statusWith", &json!({"text": "1 agent"}));
        let name = command.split(' ').next().unwrap_or(command);
        let path = case.path(&format!("{name}.txt"));
        let prompt = Prompt::WriteFile(&path.to_string_lossy(), "hello\r\nfrom 🦀").to_string();
        ask(&window, &model, &prompt);
        window.show_review();
        let written = eventually(TIMEOUT, || {
            window.press("Control+Enter");
            // Empty between creation and the agent's write.
            let text = || fs::read_to_string(&path).ok().filter(|text| !text.is_empty());
            eventually(Duration::from_secs(10), text)
        });
        assert_eq!(written.as_deref(), Some("hello\r\nfrom 🦀"), "{command}");
        window.command("Terminal: Kill All Terminals");
        window.call("statusWith", &json!({"text": "Alongside"}));
    }
    vscode_proves(Capability::Install);
}

/// Claude Code's default.
fn forget_that_editors_are_wanted(sandbox: &Sandbox) {
    let path = sandbox.path("home/.claude.json");
    let text = fs::read_to_string(&path).expect("read the settings");
    let mut settings: Value = serde_json::from_str(&text).expect("settings are JSON");
    let fields = settings.as_object_mut().expect("settings are an object");
    fields.remove("autoConnectIde").expect("the setting was there");
    fs::write(&path, settings.to_string()).expect("write the settings");
}

/// Pastes a prompt and presses Enter, which agents take for a part of the paste if it comes right after it.
fn ask(window: &Window, model: &FakeModel, prompt: &str) {
    window.call("paste", &json!({"text": prompt, "shown": "from_🦀"}));
    let arrived = eventually(TIMEOUT, || {
        window.press("Enter");
        let short = json!({"text": "1 change", "timeout": 10_000});
        window.try_call("statusWith", &short).ok()
    });
    if arrived.is_none() {
        // Fails with the model's requests as an artifact.
        model.wait_for_message(0, prompt, Duration::ZERO);
        panic!("no change arrived; the terminal shows {}", window.ask("terminal"));
    }
}

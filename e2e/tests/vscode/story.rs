//! What a new user does: install the extension, open a folder, start an agent in the terminal, and nothing else.

use std::fs;
use std::time::Duration;

use alongside_e2e::{Capability, Cli, FakeModel, Prompt, Sandbox, TIMEOUT, eventually};
use serde_json::json;

use crate::case::{Case, Vehicle, Window, vscode_proves};

#[test]
fn agents_in_the_terminal_are_connected_and_their_changes_reviewed() {
    let sandbox = Sandbox::new().without_ide_settings();
    let model = FakeModel::start();
    let agents = [Cli::Gemini, Cli::Qwen];
    let variables: Vec<(String, String)> = agents.iter().flat_map(|cli| cli.model_variables(&model)).collect();
    let case = Case::on(Vehicle::start(sandbox, &variables));
    let window = case.open();
    for cli in agents {
        window.ask("openTerminal");
        window.type_text(&format!("{}\n", cli.command()));
        window.call("terminalShows", &json!({"text": "Type your message"}));
        window.call("statusWith", &json!({"text": "1 agent"}));
        let path = case.path(&format!("{}.txt", cli.command()));
        let prompt = Prompt::WriteFile(&path.to_string_lossy(), "hello\r\nfrom 🦀").to_string();
        ask(&window, &model, &prompt);
        window.show_review();
        let written = eventually(TIMEOUT, || {
            window.press("Control+Enter");
            // Empty between creation and the agent's write.
            let text = || fs::read_to_string(&path).ok().filter(|text| !text.is_empty());
            eventually(Duration::from_secs(10), text)
        });
        assert_eq!(written.as_deref(), Some("hello\r\nfrom 🦀"));
        window.command("Terminal: Kill All Terminals");
        window.call("statusWith", &json!({"text": "Alongside"}));
    }
    vscode_proves(Capability::Install);
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

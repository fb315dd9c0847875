//! What Emacs reports to agents.

use alongside_e2e::{Capability, Sandbox};
use serde_json::json;

use super::driver::{Emacs, Version, for_both_versions};
use crate::agent::{Agent, announced};

for_both_versions!(
    focused_file_cursor_and_selection_reach_agents,
    selection_stays_in_terminals_that_know_their_companion,
    selection_is_reported_even_if_another_buffer_follows_at_once,
    split_windows_and_renamed_files_are_reported,
    file_in_another_project_adds_it_to_the_workspace,
);

async fn focused_file_cursor_and_selection_reach_agents(version: Version) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a b 'ü' #1%$.txt", "first\n🦀 second ü\nthird\n");
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    emacs.open(&path);
    agent.sees(|file| file["path"] == json!(path)).await;
    emacs.press(&["C-n", "C-f", "C-f", "C-f"]);
    let cursor = json!({ "line": 2, "character": 5 });
    agent.sees(|file| file["cursor"] == cursor).await;
    emacs.press(&["C-Space", "M-f"]);
    agent.sees(|file| file["selectedText"] == "econd").await;
    emacs.press(&["C-g"]);
    agent.sees(|file| file.get("selectedText").is_none()).await;
    // In a narrowed buffer, lines still count from the start of the file.
    emacs.eval("(progn (goto-char (point-min)) (forward-line 1) (narrow-to-region (point) (point-max)) nil)");
    emacs.press(&["C-n"]);
    let cursor = json!({ "line": 3, "character": 1 });
    agent.sees(|file| file["cursor"] == cursor).await;
    emacs.press(&["C-x", "k", "Enter"]);
    agent.sees(serde_json::Value::is_null).await;
    version.proves(Capability::Context);
}

async fn selection_stays_in_terminals_that_know_their_companion(version: Version) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "some text\n");
    let emacs = Emacs::start(&sandbox, version);
    let companion = announced(&sandbox, emacs.pid());
    let mut agent = Agent::connect(&companion).await;
    emacs.open(&path);
    emacs.press(&["C-Space", "C-e"]);
    agent.sees(|file| file["selectedText"] == "some text").await;
    let expected = format!("port {} {}", companion.0, emacs.pid());
    let question = "/bin/echo port $QWEN_CODE_IDE_SERVER_PORT $GEMINI_CLI_IDE_PID";
    for (open, ask) in [
        ("(shell)", true),
        ("(eshell)", true),
        ("(ansi-term \"/bin/sh\")", true),
        (
            "(progn (compile \"echo port $QWEN_CODE_IDE_SERVER_PORT $GEMINI_CLI_IDE_PID\") (switch-to-buffer \"*compilation*\"))",
            false,
        ),
    ] {
        emacs.eval(&format!("(progn {open} nil)"));
        if ask {
            emacs.terminal.type_line(question);
        }
        emacs.wait_for(&format!("(string-search \"\\n{expected}\" (buffer-string))"));
    }
    let mut newcomer = Agent::connect(&companion).await;
    newcomer.sees(|file| file["selectedText"] == "some text").await;
}

async fn selection_is_reported_even_if_another_buffer_follows_at_once(version: Version) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "some text\n");
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    emacs.open(&path);
    agent.sees(|file| file["path"] == json!(path)).await;
    // One macro: no timer runs between these keys.
    emacs.eval("(progn (execute-kbd-macro (kbd \"C-SPC C-e C-x b * s c r a t c h * RET\")) nil)");
    agent.sees(|file| file["selectedText"] == "some text").await;
}

async fn split_windows_and_renamed_files_are_reported(version: Version) {
    let sandbox = Sandbox::new();
    let (one, other) = (
        sandbox.write("one.txt", "1\n2\n"),
        sandbox.write("other.txt", "other\n"),
    );
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    emacs.open(&one);
    agent.sees(|file| file["path"] == json!(one)).await;
    // The same file in two windows, at two positions.
    emacs.press(&["C-x", "2", "C-n"]);
    let at = |line: u32| json!({ "line": line, "character": 1 });
    agent.sees(|file| file["cursor"] == at(2)).await;
    emacs.press(&["C-x", "o"]);
    agent.sees(|file| file["cursor"] == at(1)).await;
    emacs.open(&other);
    agent.sees(|file| file["path"] == json!(other)).await;
    emacs.press(&["C-x", "o"]);
    agent.sees(|file| file["path"] == json!(one)).await;

    let renamed = sandbox.file("renamed.txt");
    emacs.press(&["C-x", "C-w"]);
    emacs.terminal.type_line("renamed.txt");
    agent.sees(|file| file["path"] == json!(renamed)).await;
    emacs.press(&["C-x", "k", "Enter"]);
    agent.sees(|file| file["path"] == json!(other)).await;
}

async fn file_in_another_project_adds_it_to_the_workspace(version: Version) {
    let sandbox = Sandbox::new();
    let project = sandbox.path("another project");
    std::fs::create_dir_all(project.join(".git")).expect("make a project");
    std::fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").expect("make it look like one");
    let path = project.join("a.txt");
    std::fs::write(&path, "text\n").expect("write");
    let emacs = Emacs::start(&sandbox, version);
    announced(&sandbox, emacs.pid());
    emacs.open(&path);
    let folders = format!(
        "(equal (plist-get alongside-bridge-welcome :workspace) '({} {}))",
        super::driver::quoted(&sandbox.workspace()),
        super::driver::quoted(&project)
    );
    emacs.wait_for(&folders);
    let found = alongside_e2e::eventually(alongside_e2e::TIMEOUT, || {
        let file = crate::agent::discovery_files(&sandbox).pop()?;
        let text = std::fs::read_to_string(file).ok()?;
        text.contains("another project").then_some(())
    });
    assert!(found.is_some(), "agents in that project cannot find the companion");
}

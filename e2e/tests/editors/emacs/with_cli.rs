//! Emacs with the real agents, end to end.

use std::fs;

use alongside_e2e::{Agent, Cli, FakeModel, Prompt, Sandbox, TIMEOUT, eventually, for_both_agents};

use super::driver::{Emacs, Version};

for_both_agents!(selection_reaches_the_model_and_edits_are_written);
fn selection_reaches_the_model_and_edits_are_written(cli: Cli) {
    let version = match cli {
        Cli::Gemini => Version::Machine,
        Cli::Qwen => Version::Newest,
    };
    let sandbox = Sandbox::new();
    let path = sandbox.write("open file.txt", "one\r\ntwo words\r\nthree");
    let model = FakeModel::start();
    let emacs = Emacs::start(&sandbox, version);
    emacs.open(&path);
    let agent = Agent::start(&sandbox, cli, &model);
    let status = agent.wait_until_connected();
    assert!(status.contains("Connected to Emacs"), "{status}");
    emacs.press(&["C-n", "C-Space", "C-e"]);
    let received = eventually(TIMEOUT, || {
        let mark = model.mark();
        agent.prompt("Describe what I see.");
        let request = model
            .wait_for_message(mark, "Describe what I see.", TIMEOUT)
            .to_string();
        agent.wait_until_idle();
        (request.contains("two words") && request.contains("open file.txt")).then_some(())
    });
    assert!(received.is_some(), "the selection never reached the model");
    emacs.press(&["C-g"]);

    let new = sandbox.file("new.txt");
    agent.prompt(&Prompt::WriteFile(&new.to_string_lossy(), "hello\r\nworld").to_string());
    emacs.show_review();
    agent.wait_for_question();
    emacs.go_to_draft();
    emacs.press(&["M->"]);
    emacs.terminal.type_text(", edited 🦀");
    emacs.wait_for("(equal (buffer-string) \"hello\\nworld, edited 🦀\")");
    let written = eventually(TIMEOUT, || {
        emacs.press(&["C-c", "C-c"]);
        // Empty between creation and the agent's write.
        fs::read(&new).ok().filter(|bytes| !bytes.is_empty())
    });
    assert_eq!(written.as_deref(), Some("hello\r\nworld, edited 🦀".as_bytes()));
    emacs.wait_for_no_view();
}

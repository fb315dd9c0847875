//! Neovim with the real agents, end to end.

use std::fs;

use alongside_e2e::{Agent, Cli, FakeModel, Prompt, Sandbox, TIMEOUT, eventually, for_both_agents};

use crate::nvim::Neovim;

for_both_agents!(selection_reaches_the_model_and_edits_are_written);
fn selection_reaches_the_model_and_edits_are_written(cli: Cli) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("open file.txt", "one\r\ntwo words\r\nthree");
    let model = FakeModel::start();
    let neovim = Neovim::start(&sandbox);
    neovim.eval(&format!("execute('edit ' .. fnameescape('{}'))", path.display()));
    let agent = Agent::start(&sandbox, cli, &model);
    let status = agent.wait_until_connected();
    assert!(status.contains("Connected to Neovim"), "{status}");
    neovim.press("jvee");
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
    neovim.press("<Esc>");

    let new = sandbox.file("new.txt");
    agent.prompt(&Prompt::WriteFile(&new.to_string_lossy(), "hello\r\nworld").to_string());
    neovim.show_review();
    agent.wait_for_question();
    neovim.press("GA, edited 🦀<Esc>");
    neovim.wait_for("getline('$') == 'world, edited 🦀'");
    let written = eventually(TIMEOUT, || {
        let _ = neovim.run("silent! write");
        // Empty between creation and the agent's write.
        fs::read(&new).ok().filter(|text| !text.is_empty())
    });
    assert_eq!(written.as_deref(), Some("hello\r\nworld, edited 🦀".as_bytes()));
    neovim.wait_for("tabpagenr('$') == 1");
}

//! Neovim and a real command line, end to end.

use std::fs;

use alongside_e2e::{Agent, Cli, FakeModel, PATIENCE, Prompt, Sandbox, eventually, for_both_command_lines};

use crate::nvim::Neovim;

for_both_command_lines!(what_is_selected_reaches_the_model_and_what_is_edited_in_neovim_is_written);
fn what_is_selected_reaches_the_model_and_what_is_edited_in_neovim_is_written(cli: Cli) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("open file.txt", "one\r\ntwo words\r\nthree");
    let model = FakeModel::start();
    let neovim = Neovim::start(&sandbox);
    neovim.eval(&format!("execute('edit ' .. fnameescape('{}'))", path.display()));
    let agent = Agent::start(&sandbox, cli, &model);
    let status = agent.wait_until_connected();
    assert!(status.contains("Connected to Neovim"), "{status}");
    neovim.press("jvee");
    let told = eventually(PATIENCE, || {
        let mark = model.mark();
        agent.prompt("Describe what I see.");
        let request = model
            .wait_for_message(mark, "Describe what I see.", PATIENCE)
            .to_string();
        agent.wait_until_idle();
        (request.contains("two words") && request.contains("open file.txt")).then_some(())
    });
    assert!(told.is_some(), "the selection never reached the model");
    neovim.press("<Esc>");

    let new = sandbox.file("new.txt");
    agent.prompt(&Prompt::WriteFile(&new.to_string_lossy(), "hello\r\nworld").to_string());
    neovim.show_review();
    agent.wait_for_question();
    neovim.press("GA, edited 🦀<Esc>");
    neovim.wait_for("getline('$') == 'world, edited 🦀'");
    let written = eventually(PATIENCE, || {
        let _ = neovim.run("silent! write");
        // It is empty for a moment, before the agent has written it.
        fs::read(&new).ok().filter(|text| !text.is_empty())
    });
    assert_eq!(written.as_deref(), Some("hello\r\nworld, edited 🦀".as_bytes()));
    neovim.wait_for("tabpagenr('$') == 1");
}

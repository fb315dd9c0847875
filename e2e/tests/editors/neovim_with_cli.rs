//! Neovim with the real agents, end to end.

use std::fs;

use alongside_e2e::{
    Agent, Cli, FakeModel, Launch, Prompt, Sandbox, TIMEOUT, editor, eventually, for_both_agents, plugin,
};

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

for_both_agents!(change_opens_beside_the_terminal_of_its_agent);
fn change_opens_beside_the_terminal_of_its_agent(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let mut launch = Launch::plain(&sandbox, cli);
    launch.line = format!(
        "'{}' --clean --cmd 'set runtimepath^={}' -c 'terminal {}' -c startinsert",
        editor("nvim").display(),
        plugin("neovim").display(),
        cli.command()
    );
    let agent = Agent::launch(&sandbox, cli, &model, "agent-in-neovim", launch);
    let status = agent.wait_until_connected();
    assert!(status.contains("Connected to Neovim"), "{status}");
    let new = sandbox.file("new.txt");
    agent.prompt(&Prompt::WriteFile(&new.to_string_lossy(), "hello beside").to_string());
    agent.terminal.wait_for("the diff beside the agent", TIMEOUT, |screen| {
        screen.contains("+hello beside") && screen.contains("<F8>") && screen.contains("-- TERMINAL --")
    });
    agent.wait_for_question();
    agent.terminal.press("F8");
    agent.terminal.wait_for_text("new.txt (review)", TIMEOUT);
    let written = eventually(TIMEOUT, || {
        if agent.terminal.screen().contains("new.txt (review)") {
            agent.terminal.type_line(":write");
        }
        eventually(std::time::Duration::from_secs(2), || {
            fs::read_to_string(&new).ok().filter(|text| !text.is_empty())
        })
    });
    assert_eq!(written.as_deref(), Some("hello beside"));
    agent.terminal.wait_for("the agent alone", TIMEOUT, |screen| {
        !screen.contains("(review)") && !screen.contains("<F8>")
    });
}

//! What a new user does: install the plugin, open a file, start an agent, and nothing else.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use alongside_e2e::{
    Agent, Capability, Cli, FakeModel, Launch, Sandbox, TIMEOUT, Terminal, alongside, editor, eventually,
    for_both_agents, proves, version,
};
use serde_json::json;

use crate::agent::{Agent as FakeAgent, announced, discovery_files, wait_for_no_announcement};

pub(crate) struct Editor {
    /// As in `alongside install ID`.
    pub(crate) id: &'static str,
    pub(crate) command: &'static str,
    display_name: &'static str,
}

pub(crate) const NEOVIM: Editor = Editor {
    id: "neovim",
    command: "nvim",
    display_name: "Neovim",
};
pub(crate) const VIM: Editor = Editor {
    id: "vim",
    command: "vim",
    display_name: "Vim",
};

/// `PATH` with the editors under test first.
fn search_path(rest: &str) -> (String, String) {
    let neovim = editor("nvim");
    let directory = neovim.parent().expect("it is in a directory").display();
    ("PATH".to_owned(), format!("{directory}:{rest}"))
}

/// `PATH` as in the sandbox, with the editors under test first.
pub(crate) fn path(sandbox: &Sandbox) -> (String, String) {
    let variables = sandbox.environment().into_iter();
    let rest: String = variables
        .filter(|(name, _)| name == "PATH")
        .map(|(_, value)| value)
        .collect();
    search_path(&rest)
}

impl Editor {
    /// Installs the plugin and opens a file.
    fn install_and_open(&self, sandbox: &Sandbox, terminal: &Terminal, program: &str, file: &str) -> u32 {
        let line = format!("{program} install {} && {} '{file}'", self.id, self.command);
        self.open(sandbox, terminal, &line)
    }

    /// Types a line that starts the editor, and waits for the discovery file; returns the PID in its name.
    pub(crate) fn open(&self, sandbox: &Sandbox, terminal: &Terminal, line: &str) -> u32 {
        terminal.type_line(line);
        let pid = eventually(TIMEOUT, || {
            let file = discovery_files(sandbox).pop()?;
            let name = file.file_name()?.to_string_lossy().into_owned();
            name.split('-').rev().nth(1)?.parse().ok()
        });
        pid.unwrap_or_else(|| terminal.fail(&format!("{} has no companion", self.display_name)))
    }

    fn proves_install(&self) {
        let program = match self.command {
            "nvim" => editor("nvim"),
            other => other.into(),
        };
        proves(self.display_name, &version(&program), Capability::Install);
    }
}

/// Sends prompts until one of them carries the open file.
fn wait_until_model_knows(agent: &Agent, model: &FakeModel, file: &str) {
    let received = eventually(TIMEOUT, || {
        let mark = model.mark();
        agent.prompt("Describe what I see.");
        let request = model.wait_for_message(mark, "Describe what I see.", TIMEOUT);
        agent.wait_until_idle();
        request.to_string().contains(file).then_some(())
    });
    assert!(received.is_some(), "{file} never reached the model");
}

fn install_open_and_start_an_agent(editor: &Editor, cli: Cli) {
    let sandbox = Sandbox::new().without_ide_settings();
    sandbox.write("open file.txt", "text\n");
    let model = FakeModel::start();
    let terminal = Terminal::open(&sandbox, editor.id, &sandbox.workspace(), &[path(&sandbox)]);
    editor.install_and_open(&sandbox, &terminal, "alongside", "open file.txt");
    let agent = Agent::start(&sandbox, cli, &model);
    let status = agent.wait_until_connected();
    assert!(
        status.contains(&format!("Connected to {}", editor.display_name)),
        "{status}"
    );
    wait_until_model_knows(&agent, &model, "open file.txt");
    agent.kill();
    terminal.type_line(":qall!");
    wait_for_no_announcement(&sandbox);
    editor.proves_install();
}

for_both_agents!(installed_neovim_plugin_reports_the_open_file);
fn installed_neovim_plugin_reports_the_open_file(cli: Cli) {
    install_open_and_start_an_agent(&NEOVIM, cli);
}

for_both_agents!(installed_vim_plugin_reports_the_open_file);
fn installed_vim_plugin_reports_the_open_file(cli: Cli) {
    install_open_and_start_an_agent(&VIM, cli);
}

#[test]
fn agent_in_a_neovim_terminal_connects_to_that_neovim() {
    let sandbox = Sandbox::new();
    sandbox.write("open file.txt", "text\n");
    sandbox.write("other file.txt", "text\n");
    let model = FakeModel::start();
    let launch = Launch::plain(&sandbox, Cli::Gemini);
    let launch = Launch {
        environment: [launch.environment, vec![path(&sandbox)]].concat(),
        ..launch
    };
    let agent = Agent::prepare(&sandbox, Cli::Gemini, &model, "neovim", launch);
    NEOVIM.install_and_open(&sandbox, &agent.terminal, "alongside", "open file.txt");
    agent.terminal.type_line(":terminal");
    agent.terminal.wait_for_text("term://", TIMEOUT);
    agent.terminal.type_text("i");
    let other = Terminal::open(&sandbox, "other", &sandbox.workspace(), &[path(&sandbox)]);
    other.type_line("nvim 'other file.txt'");
    // Used last, so elsewhere agents find this one first.
    let is_announced = eventually(TIMEOUT, || (discovery_files(&sandbox).len() == 2).then_some(()));
    assert!(is_announced.is_some(), "{:?}", discovery_files(&sandbox));
    agent.run("gemini");
    agent.wait_until_connected();
    wait_until_model_knows(&agent, &model, "open file.txt");
}

/// Another program on the PATH, such as npm's wrapper, is not started.
#[tokio::test]
async fn plugin_starts_the_program_that_installed_it() {
    for editor in [NEOVIM, VIM] {
        let sandbox = Sandbox::new();
        let path = sandbox.write("a.txt", "text\n");
        let wrapper = sandbox.path("wrapper/alongside");
        fs::create_dir(sandbox.path("wrapper")).expect("make a directory");
        fs::write(&wrapper, "#!/bin/sh\nexit 1\n").expect("write a wrapper");
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).expect("make it executable");
        let rest = format!("{}:/usr/local/bin:/usr/bin:/bin", sandbox.path("wrapper").display());
        let terminal = Terminal::open(&sandbox, editor.id, &sandbox.workspace(), &[search_path(&rest)]);
        let program = format!("'{}'", alongside().display());
        let pid = editor.install_and_open(&sandbox, &terminal, &program, "a.txt");
        let mut agent = FakeAgent::connect(&announced(&sandbox, pid)).await;
        agent.sees(|file| file["path"] == json!(path)).await;
    }
}

#[tokio::test]
async fn plugin_finds_a_moved_program_on_the_path() {
    for editor in [NEOVIM, VIM] {
        let sandbox = Sandbox::new();
        let path = sandbox.write("a.txt", "text\n");
        let old = sandbox.path("old-alongside");
        fs::copy(alongside(), &old).expect("copy the program");
        let terminal = Terminal::open(&sandbox, editor.id, &sandbox.workspace(), &[self::path(&sandbox)]);
        let old = old.display();
        let line = format!(
            "'{old}' install {} && rm '{old}' && {} a.txt",
            editor.id, editor.command
        );
        let pid = editor.open(&sandbox, &terminal, &line);
        let mut agent = FakeAgent::connect(&announced(&sandbox, pid)).await;
        agent.sees(|file| file["path"] == json!(path)).await;
    }
}

/// Scripts wait for Neovim to exit, and have no use for a companion.
#[test]
fn headless_neovim_starts_no_companion_and_uninstall_removes_the_plugin() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "text\n");
    let run = |program: &std::path::Path, arguments: &[&str]| {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(sandbox.environment())
            .current_dir(sandbox.workspace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("start it");
        let status = eventually(TIMEOUT, || child.try_wait().expect("wait for it"));
        let Some(status) = status else {
            let _ = child.kill();
            panic!("{arguments:?} did not exit");
        };
        let output = child.wait_with_output().expect("read what it printed");
        let printed = [output.stdout, output.stderr].concat();
        assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&printed));
        String::from_utf8_lossy(&printed).trim().to_owned()
    };
    let question = [
        "--headless",
        "a.txt",
        "+sleep 200m",
        "+echo exists(':AlongsideStart')",
        "+qall",
    ];
    run(&alongside(), &["install", "neovim"]);
    assert_eq!(run(&editor("nvim"), &question), "2");
    assert!(discovery_files(&sandbox).is_empty());
    run(&alongside(), &["uninstall", "neovim"]);
    assert_eq!(run(&editor("nvim"), &question), "0");
}

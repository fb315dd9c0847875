//! When an agent cannot connect, `doctor` predicts it and explains why.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use alongside_e2e::{Agent, Cli, Companion, FakeModel, Launch, Outcome, Sandbox, TIMEOUT, eventually, for_both_agents};
use serde_json::{Value, json};

for_both_agents!(wrong_token_is_refused_and_diagnosed);
fn wrong_token_is_refused_and_diagnosed(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let companion = Companion::start(&sandbox);
    let launch = Launch::plain(&sandbox, cli);
    let healthy = launch.doctor(&sandbox);
    assert!(healthy.success, "expected doctor to pass, got {healthy:?}");

    let token = companion.token();
    for file in &companion.files {
        let tampered = fs::read_to_string(file)
            .expect("read a discovery file")
            .replace(&token, "wrong");
        fs::write(file, tampered).expect("write a discovery file");
    }
    let ill = launch.doctor(&sandbox);
    assert_diagnosis(&ill, &["unauthori", "401", "token"]);

    let agent = Agent::launch(&sandbox, cli, &model, cli.command(), launch);
    wait_for_status(&agent, &["Disconnected"]);
    assert!(companion.agents().is_empty());
    assert!(
        companion.json(&["context", "show"]).is_object(),
        "the companion is unharmed"
    );
}

for_both_agents!(other_directory_is_refused_and_diagnosed);
fn other_directory_is_refused_and_diagnosed(cli: Cli) {
    let sandbox = Sandbox::new();
    let elsewhere = sandbox.path("elsewhere");
    fs::create_dir(&elsewhere).expect("create a directory");
    let model = FakeModel::start();
    let companion = Companion::start(&sandbox);
    let launch = Launch::plain(&sandbox, cli).in_directory(&elsewhere);
    let ill = launch.doctor(&sandbox);
    assert_diagnosis(&ill, &["workspace", "director"]);

    let agent = Agent::launch(&sandbox, cli, &model, cli.command(), launch);
    let sentence = match cli {
        Cli::Gemini => "Directory mismatch",
        Cli::Qwen => "not supported",
    };
    wait_for_status(&agent, &[sentence]);
    assert!(companion.agents().is_empty());
}

for_both_agents!(doctor_predicts_what_the_agent_does);
/// Sets up every relevant situation with files and variables, and checks that the agent does what `doctor` predicts.
fn doctor_predicts_what_the_agent_does(cli: Cli) {
    let sandbox = Sandbox::new();
    let companion = Companion::start(&sandbox);
    let model = FakeModel::start();
    let scene = Scene::new(&sandbox, &companion);
    let in_container = Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists();
    let vscode: &[(&str, &str)] = &[("TERM_PROGRAM", "vscode")];
    let port = companion.port.to_string();
    let token = companion.token();
    let workspace = sandbox.workspace().to_string_lossy().into_owned();
    let variables = [
        ("TERM_PROGRAM", "vscode"),
        ("GEMINI_CLI_IDE_SERVER_PORT", &port),
        ("GEMINI_CLI_IDE_AUTH_TOKEN", &token),
        ("GEMINI_CLI_IDE_WORKSPACE_PATH", &workspace),
        ("QWEN_CODE_IDE_SERVER_PORT", &port),
        ("QWEN_CODE_IDE_WORKSPACE_PATH", &workspace),
    ];
    let rows: Vec<Row<'_>> = vec![
        Row::new("a good file", (true, true)).file(&scene, |_| {}),
        Row::new("the port as a string", (true, true)).file(&scene, |file| file["port"] = json!(port)),
        Row::new("no file at all", (false, false)),
        Row::new("no editor's name, plain terminal", (false, false)).file(&scene, without_name),
        Row::new("no editor's name, VS Code", (true, true))
            .file(&scene, without_name)
            .with(vscode),
        Row::new("no editor's name, Zed", (true, false))
            .file(&scene, without_name)
            .with(&[("ZED_SESSION_ID", "1")]),
        Row::new("another workspace", (false, false)).file(&scene, |file| file["workspacePath"] = json!("/elsewhere")),
        Row::new("an empty workspace", (false, false)).file(&scene, |file| file["workspacePath"] = json!("")),
        Row::new("a wrong token", (false, false)).file(&scene, |file| file["authToken"] = json!("wrong")),
        Row::new("a closed port", (false, false)).file(&scene, |file| file["port"] = json!(closed_port())),
        Row::new("a dead process", (true, false))
            .dead_process()
            .file(&scene, |_| {}),
        Row::new("a stale file of a dead process next to a valid file", (true, true))
            .file(&scene, |_| {})
            .dead_process()
            .file(&scene, |file| file["port"] = json!(closed_port())),
        Row::new("a leftover of a live process that comes first", (false, true))
            .file(&scene, |_| {})
            .first(&scene)
            .file(&scene, |file| file["port"] = json!(closed_port())),
        Row::new("only variables", (true, false)).with(&variables),
        Row::new("only variables, plain terminal", (false, false)).with(&variables[1..]),
        Row::new("no sign that the container is the editor's", (!in_container, true))
            .file(&scene, |_| {})
            .with(&[("SSH_CONNECTION", "")]),
    ];
    let wrong: Vec<String> = rows.iter().filter_map(|row| scene.mismatch(row, cli, &model)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A discovery directory separate from the companion's own, which the companion watches.
struct Scene<'a> {
    sandbox: &'a Sandbox,
    good: Value,
    port: u16,
    /// Two live processes, in PID order.
    processes: [Child; 2],
}

struct Row<'a> {
    name: &'a str,
    /// Whether Gemini CLI and Qwen Code connect.
    expected: (bool, bool),
    environment: Vec<(&'a str, &'a str)>,
    files: Vec<(u32, Value)>,
    process: Option<u32>,
}

impl<'a> Row<'a> {
    fn new(name: &'a str, expected: (bool, bool)) -> Self {
        Self {
            name,
            expected,
            environment: Vec::new(),
            files: Vec::new(),
            process: None,
        }
    }

    /// Adds a file for each agent: the valid one, changed. Later files are newer.
    fn file(mut self, scene: &Scene<'_>, change: impl Fn(&mut Value)) -> Self {
        let process = self.process.unwrap_or(scene.processes[0].id());
        let mut file = scene.good.clone();
        file["ppid"] = json!(process);
        change(&mut file);
        self.files.push((process, file));
        self
    }

    /// The next file has the PID of a dead process.
    fn dead_process(mut self) -> Self {
        let mut child = Command::new("true").spawn().expect("start a process");
        child.wait().expect("wait for it");
        self.process = Some(child.id());
        self
    }

    /// The next file has the PID of a live process, and Gemini CLI considers it before the others.
    fn first(mut self, scene: &Scene<'_>) -> Self {
        self.process = Some(scene.processes[1].id());
        self
    }

    fn with(mut self, environment: &[(&'a str, &'a str)]) -> Self {
        self.environment.extend(environment);
        self
    }
}

impl<'a> Scene<'a> {
    fn new(sandbox: &'a Sandbox, companion: &Companion<'_>) -> Self {
        let text = fs::read_to_string(&companion.files[0]).expect("read a discovery file");
        let mut processes = [(); 2].map(|()| Command::new("sleep").arg("600").spawn().expect("start a process"));
        processes.sort_by_key(Child::id);
        Self {
            sandbox,
            processes,
            good: serde_json::from_str(&text).expect("a discovery file is JSON"),
            port: companion.port,
        }
    }

    /// Writes the files of a row, runs `doctor`, starts the agent, and returns any mismatch.
    fn mismatch(&self, row: &Row<'_>, cli: Cli, model: &FakeModel) -> Option<String> {
        let launch = self.prepare(row, cli);
        let outcome = launch.doctor(self.sandbox);
        let expected = match cli {
            Cli::Gemini => row.expected.0,
            Cli::Qwen => row.expected.1,
        };
        let foretold = connects(&outcome, cli);
        if foretold != Some(expected) || outcome.success != (row.expected == (true, true)) {
            return Some(format!(
                "{}: expected {expected}, foretold {foretold:?} in {outcome:#?}",
                row.name
            ));
        }
        let agent = Agent::launch(self.sandbox, cli, model, cli.command(), launch);
        let status = wait_for_status(&agent, &["Connected to", "Disconnected", "not supported"]);
        let connected = status.contains("Connected to");
        (connected != expected).then(|| format!("{}: foretold {expected}, but {status}", row.name))
    }

    fn prepare(&self, row: &Row<'_>, cli: Cli) -> Launch {
        let place = self.sandbox.path("place");
        let _ = fs::remove_dir_all(&place);
        let (gemini, qwen) = (place.join("tmp/gemini/ide"), place.join("qwen/ide"));
        fs::create_dir_all(&gemini).expect("create a directory");
        fs::create_dir_all(&qwen).expect("create a directory");
        self.sandbox.write_settings(Cli::Qwen, &place.join("qwen"));
        for (number, (process, file)) in (0..).zip(&row.files) {
            let port = self.port + number;
            write(&gemini.join(format!("gemini-ide-server-{process}-{port}.json")), file);
            write(&qwen.join(format!("{port}.lock")), file);
        }
        let mut launch = Launch::plain(self.sandbox, cli);
        launch = launch.with("TMPDIR", &place.join("tmp").to_string_lossy());
        launch = launch.with("QWEN_HOME", &place.join("qwen").to_string_lossy());
        for (name, value) in &row.environment {
            launch = launch.with(name, value);
        }
        launch
    }
}

impl Drop for Scene<'_> {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Whether an agent would connect according to `doctor`.
fn connects(outcome: &Outcome, cli: Cli) -> Option<bool> {
    let report: Value = serde_json::from_str(&outcome.stdout).ok()?;
    let mut agents = report["agents"].as_array()?.iter();
    agents.find(|agent| agent["agent"] == cli.command())?["connects"].as_bool()
}

fn without_name(file: &mut Value) {
    file.as_object_mut()
        .expect("a discovery file is an object")
        .remove("ideInfo");
}

fn closed_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("bind a port");
    listener.local_addr().expect("a bound socket has an address").port()
}

fn write(path: &PathBuf, file: &Value) {
    fs::write(path, file.to_string()).expect("write a discovery file");
}

/// Asserts that `doctor` fails and mentions one of these words.
fn assert_diagnosis(outcome: &Outcome, words: &[&str]) {
    assert!(!outcome.success, "the doctor found nothing: {outcome:?}");
    let text = format!("{}{}", outcome.stdout, outcome.stderr).to_lowercase();
    assert!(
        words.iter().any(|word| text.contains(word)),
        "no word of {words:?} in {outcome:?}"
    );
}

/// Polls until the agent shows one of these messages.
fn wait_for_status(agent: &Agent, sentences: &[&str]) -> String {
    let status = eventually(TIMEOUT, || {
        let status = agent.ide_status();
        sentences
            .iter()
            .any(|sentence| status.contains(sentence))
            .then_some(status)
    });
    status.unwrap_or_else(|| {
        agent
            .terminal
            .fail(&format!("/ide status never showed any of {sentences:?}"))
    })
}

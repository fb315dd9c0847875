//! The chat with the real agents: `qwen --acp`, `gemini --acp` and `qwen serve`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use alongside_core::Token;
use alongside_e2e::{
    Cli, Companion, FakeModel, PATIENCE, Prompt, Sandbox, eventually, for_both_command_lines, node, npm_package,
};
use alongside_front::client::Client;
use alongside_front::protocol::{ChatPhase, ChatState, Nothing, Request};
use serde_json::Value;

fn answer(companion: &Companion<'_>, prompt: &str, agent: &str) -> Value {
    let outcome = companion.command(&["chat", "-p", prompt, "--agent", agent]);
    assert!(outcome.success, "{outcome:?}");
    serde_json::from_str(&outcome.stdout).expect("one JSON value")
}

/// The chat as a page that comes late sees it.
fn state(sandbox: &Sandbox, companion: &Companion<'_>) -> ChatState {
    let record = sandbox
        .path("home/.local/state/alongside/companions")
        .join(format!("{}.json", companion.pid()));
    let record: Value = serde_json::from_slice(&fs::read(record).expect("a record")).expect("it is JSON");
    let port = record["frontPort"]
        .as_u64()
        .and_then(|port| u16::try_from(port).ok())
        .expect("a port");
    let token = Token::parse(record["frontToken"].as_str().expect("a token")).expect("a token");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (mut client, _) = Client::connect(port, &token, "chat", false).await.expect("connect");
        client.call(Request::ChatState(Nothing {})).await.expect("the state")
    })
}

/// What was said, turn by turn.
fn turns(state: &ChatState) -> Vec<(String, String)> {
    let mut turns: Vec<(String, String)> = Vec::new();
    for event in &state.events {
        let text = event["text"].as_str().or_else(|| event["content"]["text"].as_str());
        let text = text.unwrap_or_default();
        match event["type"].as_str() {
            Some("promptAccepted" | "userMessage") => turns.push((text.to_owned(), String::new())),
            Some("assistantChunk") => turns.last_mut().expect("an answer has a prompt").1.push_str(text),
            _ => {}
        }
    }
    turns
}

fn a_child_answers_and_is_there_again_after_a_crash(cli: Cli) {
    let (sandbox, model) = (Sandbox::new(), FakeModel::start());
    let mut companion = Companion::start_with_variables(&sandbox, cli.model_variables(&model));
    let first = answer(&companion, "one", cli.command());
    assert_eq!(first["answer"], "OK.", "{first}");
    companion.kill();
    companion.restart();
    let connected = eventually(PATIENCE * 2, || {
        let state = state(&sandbox, &companion);
        (state.changed.phase == ChatPhase::Connected).then_some(state)
    });
    let restored = connected.expect("the companion connects by itself");
    assert_eq!(turns(&restored), [("one".to_owned(), "OK.".to_owned())]);
    let second = answer(&companion, "two", cli.command());
    assert_eq!(second["answer"], "OK.", "{second}");
    let both = ["one", "two"].map(|prompt| (prompt.to_owned(), "OK.".to_owned()));
    assert_eq!(turns(&state(&sandbox, &companion)), both);
}
for_both_command_lines!(a_child_answers_and_is_there_again_after_a_crash);

fn what_a_child_writes_is_reviewed_and_asked_about_once(cli: Cli) {
    let (sandbox, model) = (Sandbox::new(), FakeModel::start());
    let companion = Companion::start_with_variables(&sandbox, cli.model_variables(&model));
    // A new file: Qwen Code changes none that it has not read in the same session.
    let file = sandbox.file("new.txt");
    let path = file.to_string_lossy().into_owned();
    let prompt = Prompt::WriteFile(&path, "two\n").to_string();
    std::thread::scope(|scope| {
        let turn = scope.spawn(|| companion.command(&["chat", "-p", &prompt, "--agent", cli.command()]));
        let review = eventually(PATIENCE * 2, || {
            let review = companion.reviews().into_iter().next();
            review.map(Some).or_else(|| turn.is_finished().then_some(None))
        });
        let Some(Some(review)) = review else {
            panic!("there is no review: {:?}", turn.join())
        };
        let edited = sandbox.path("edited");
        fs::write(&edited, "two, edited\n").expect("write the edit");
        companion.json(&[
            "diff",
            "accept",
            &review.id,
            "--content-file",
            &edited.to_string_lossy(),
        ]);
        let outcome = turn.join().expect("the command ends");
        assert!(outcome.success, "{outcome:?}");
        assert!(!outcome.stderr.contains("declined"), "the agent asked too: {outcome:?}");
    });
    assert_eq!(fs::read_to_string(&file).expect("the file"), "two, edited\n");
}
for_both_command_lines!(what_a_child_writes_is_reviewed_and_asked_about_once);

/// A real `qwen serve`. Dropping it kills it, and the agents that it has started.
struct Daemon {
    child: Child,
    port: u16,
}

impl Daemon {
    fn start(sandbox: &Sandbox, model: &FakeModel, port: u16) -> Self {
        let mut command = Command::new(node());
        command
            .arg(npm_package("@qwen-code/qwen-code/cli-entry.js"))
            .args(["serve", "--port", &port.to_string(), "--workspace"])
            .arg(sandbox.workspace())
            .env_clear()
            .envs(sandbox.environment())
            .envs(Cli::Qwen.model_variables(model))
            .current_dir(sandbox.workspace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("start qwen serve");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let port = lines.find_map(|line| {
            let line = line.expect("a line");
            let (_, rest) = line.split_once("listening on http://127.0.0.1:")?;
            rest.split(|character: char| !character.is_ascii_digit())
                .next()?
                .parse()
                .ok()
        });
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            port: port.expect("it says where it listens"),
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn a_conversation_in_the_real_daemon_survives_the_end_of_companion_and_daemon() {
    let (sandbox, model) = (Sandbox::new(), FakeModel::start());
    let mut daemon = Daemon::start(&sandbox, &model, 0);
    let url = format!("http://127.0.0.1:{}", daemon.port);
    let mut companion = Companion::start_with_variables(&sandbox, vec![("QWEN_IDE_DAEMON_URL".to_owned(), url)]);
    let said = |prompts: &[&str]| -> Vec<(String, String)> {
        prompts
            .iter()
            .map(|prompt| ((*prompt).to_owned(), "OK.".to_owned()))
            .collect()
    };
    assert_eq!(answer(&companion, "one", "daemon")["answer"], "OK.");
    companion.kill();
    companion.restart();
    assert_eq!(answer(&companion, "two", "daemon")["answer"], "OK.");
    assert_eq!(turns(&state(&sandbox, &companion)), said(&["one", "two"]));
    daemon.kill();
    daemon = Daemon::start(&sandbox, &model, daemon.port);
    let back = eventually(PATIENCE, || {
        let outcome = companion.command(&["chat", "-p", "three", "--agent", "daemon"]);
        outcome.success.then_some(())
    });
    assert!(back.is_some(), "{:?}", state(&sandbox, &companion));
    assert_eq!(turns(&state(&sandbox, &companion)), said(&["one", "two", "three"]));
    daemon.kill();
    companion.kill();
    daemon = Daemon::start(&sandbox, &model, daemon.port);
    companion.restart();
    assert_eq!(answer(&companion, "four", "daemon")["answer"], "OK.");
    assert_eq!(
        turns(&state(&sandbox, &companion)),
        said(&["one", "two", "three", "four"])
    );
    drop(daemon);
}

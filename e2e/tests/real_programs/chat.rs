//! Chat with the real agents: `qwen --acp`, `gemini --acp` and `qwen serve`.

use std::fs;

use alongside_core::Secret;
use alongside_e2e::{Cli, Companion, FakeModel, Prompt, QwenDaemon, Sandbox, TIMEOUT, eventually, for_both_agents};
use alongside_front::client::{Client, ClientError};
use alongside_protocol::chat::{AgentCommand, AgentEvent};
use alongside_protocol::{ChatCommand, ChatPhase, ChatState, Empty, Method, requests};
use serde_json::Value;

fn answer(companion: &Companion<'_>, prompt: &str, agent: &str) -> Value {
    let outcome = companion.command(&["chat", "-p", prompt, "--agent", agent]);
    assert!(outcome.success, "{outcome:?}");
    serde_json::from_str(&outcome.stdout).expect("one JSON value")
}

/// The chat as a newly opened page sees it.
fn state(companion: &Companion<'_>) -> ChatState {
    call::<requests::ChatState>(companion, Empty {}).expect("the state")
}

/// Calls the companion as a page does.
fn call<M: Method>(companion: &Companion<'_>, params: M::Params) -> Result<M::Response, ClientError> {
    let (port, token) = companion.front_end();
    let token = Secret::parse(&token).expect("a token");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (mut client, _) = Client::connect(port, &token, "chat", false).await?;
        client.call::<M>(params).await
    })
}

/// The conversation, turn by turn.
fn turns(state: &ChatState) -> Vec<(String, String)> {
    let mut turns: Vec<(String, String)> = Vec::new();
    for event in &state.events {
        match &**event {
            AgentEvent::PromptAccepted { text, .. } => turns.push((text.clone(), String::new())),
            AgentEvent::UserMessage { content, .. } => {
                turns.push((content.as_text().unwrap_or_default().to_owned(), String::new()));
            }
            AgentEvent::AssistantChunk { content, .. } => {
                let answer = &mut turns.last_mut().expect("an answer has a prompt").1;
                answer.push_str(content.as_text().unwrap_or_default());
            }
            _ => {}
        }
    }
    turns
}

fn local_agent_answers_and_restarts_after_crash(cli: Cli) {
    let (sandbox, model) = (Sandbox::new(), FakeModel::start());
    let mut companion = Companion::start_with_variables(&sandbox, cli.model_variables(&model));
    let first = answer(&companion, "one", cli.command());
    assert_eq!(first["answer"], "OK.", "{first}");
    companion.kill();
    companion.restart();
    let connected = eventually(TIMEOUT * 2, || {
        let state = state(&companion);
        (state.changed.phase == ChatPhase::Connected).then_some(state)
    });
    let restored = connected.expect("the companion reconnects automatically");
    assert_eq!(turns(&restored), [("one".to_owned(), "OK.".to_owned())]);
    let second = answer(&companion, "two", cli.command());
    assert_eq!(second["answer"], "OK.", "{second}");
    let both = ["one", "two"].map(|prompt| (prompt.to_owned(), "OK.".to_owned()));
    assert_eq!(turns(&state(&companion)), both);
}
for_both_agents!(local_agent_answers_and_restarts_after_crash);

fn local_agent_write_is_reviewed_once(cli: Cli) {
    let (sandbox, model) = (Sandbox::new(), FakeModel::start());
    let companion = Companion::start_with_variables(&sandbox, cli.model_variables(&model));
    // A new file: Qwen Code only changes files it has read in the same session.
    let file = sandbox.file("new.txt");
    let path = file.to_string_lossy().into_owned();
    let prompt = Prompt::WriteFile(&path, "two\n").to_string();
    std::thread::scope(|scope| {
        let turn = scope.spawn(|| companion.command(&["chat", "-p", &prompt, "--agent", cli.command()]));
        let review = eventually(TIMEOUT * 2, || {
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
for_both_agents!(local_agent_write_is_reviewed_once);

const TOKEN: &str = "the token of the daemon";

/// A companion configured with a daemon.
fn companion_of<'a>(sandbox: &'a Sandbox, daemon: &QwenDaemon) -> Companion<'a> {
    let variables = [
        ("QWEN_IDE_DAEMON_URL", format!("http://127.0.0.1:{}", daemon.port)),
        ("QWEN_SERVER_TOKEN", TOKEN.to_owned()),
    ];
    Companion::start_with_variables(sandbox, variables.map(|(name, value)| (name.to_owned(), value)).into())
}

#[test]
fn daemon_conversation_survives_companion_and_daemon_restarts() {
    let (sandbox, model) = (Sandbox::new(), FakeModel::start());
    let mut daemon = QwenDaemon::start(&sandbox, &model, TOKEN);
    let mut companion = companion_of(&sandbox, &daemon);
    let expected_turns = |prompts: &[&str]| -> Vec<(String, String)> {
        prompts
            .iter()
            .map(|prompt| ((*prompt).to_owned(), "OK.".to_owned()))
            .collect()
    };
    assert_eq!(answer(&companion, "one", "daemon")["answer"], "OK.");
    companion.kill();
    companion.restart();
    assert_eq!(answer(&companion, "two", "daemon")["answer"], "OK.");
    assert_eq!(turns(&state(&companion)), expected_turns(&["one", "two"]));
    daemon.restart(&sandbox, &model, TOKEN);
    // An interrupted request may have been processed, and retrying would send it twice; so send without waiting.
    send_prompt(&companion, "three");
    let shown = eventually(TIMEOUT * 2, || {
        let shown = turns(&state(&companion));
        let is_answered = shown.len() > 2 && shown.iter().all(|(_, answer)| answer == "OK.");
        is_answered.then_some(shown)
    });
    assert_eq!(shown, Some(expected_turns(&["one", "two", "three"])));
    daemon.kill();
    companion.kill();
    daemon.restart(&sandbox, &model, TOKEN);
    companion.restart();
    assert_eq!(answer(&companion, "four", "daemon")["answer"], "OK.");
    assert_eq!(
        turns(&state(&companion)),
        expected_turns(&["one", "two", "three", "four"])
    );
}

/// Sends a message to the selected agent without waiting for the answer.
fn send_prompt(companion: &Companion<'_>, text: &str) {
    let sent = eventually(TIMEOUT, || {
        let blocks = vec![text.into()];
        let command = AgentCommand::Prompt { blocks, id: None };
        call::<requests::ChatCommand>(companion, ChatCommand { command }).ok()
    });
    assert!(sent.is_some(), "{:?}", state(companion));
}

#[test]
fn daemon_answer_is_shown_once_despite_kills() {
    const WORDS: usize = 1500;
    let whole = (0..WORDS)
        .map(|number| format!("word{number} "))
        .collect::<Vec<_>>()
        .concat();
    let (sandbox, model) = (Sandbox::new(), FakeModel::start());
    let mut daemon = QwenDaemon::start(&sandbox, &model, TOKEN);
    let mut companion = companion_of(&sandbox, &daemon);
    assert_eq!(answer(&companion, "one", "daemon")["answer"], "OK.");
    let prompt = Prompt::Count(WORDS).to_string();
    for (turn, victims) in [
        (1, "companion"),
        (2, "daemon"),
        (3, "companion and daemon"),
        (4, "companion"),
    ] {
        send_prompt(&companion, &prompt);
        let shown = |companion: &Companion<'_>| {
            let turn = turns(&state(companion)).into_iter().nth(turn);
            turn.map_or_else(String::new, |(_, answer)| answer)
        };
        let begun = |companion: &Companion<'_>| Some(shown(companion)).filter(|answer| answer.len() > 100);
        let before = eventually(TIMEOUT, || begun(&companion)).expect("an answer begins");
        assert!(
            before.len() < whole.len(),
            "the answer was over before anything was killed"
        );
        if victims.contains("companion") {
            companion.kill();
        }
        if victims.contains("daemon") {
            daemon.restart(&sandbox, &model, TOKEN);
        }
        if victims.contains("companion") {
            companion.restart();
        }
        // The daemon continues its answer without us; a killed daemon's answer ends where it was.
        let is_settled = |state: &ChatState| {
            let turn = turns(state).into_iter().nth(turn).unwrap_or_default();
            state.changed.phase == ChatPhase::Connected && (victims.contains("daemon") || turn.1 == whole)
        };
        let settled = eventually(TIMEOUT * 2, || Some(state(&companion)).filter(is_settled));
        let settled = settled.unwrap_or_else(|| panic!("{victims}: {:?}", turns(&state(&companion))));
        let shown = turns(&settled);
        let prompts: Vec<&str> = shown.iter().map(|(prompt, _)| prompt.as_str()).collect();
        assert_eq!(prompts[1..], vec![prompt.as_str(); turn], "{victims}");
        let answer = &shown[turn].1;
        assert!(answer.starts_with(&before), "{victims}: {before:?} became {answer:?}");
        assert!(whole.starts_with(answer.as_str()), "{victims}: {answer:?}");
    }
}

//! The chat in a real browser, with real `qwen serve` and `qwen --acp` processes and a scripted model.

use std::fs;

use alongside_e2e::{Cli, Companion, CutProxy, FakeModel, MODEL_KEY, Prompt, QwenDaemon, Sandbox, TIMEOUT, eventually};
use serde_json::{Value, json};

use crate::browser::{Scenario, artifacts, login_link};

/// Must not reach the page.
const TOKEN: &str = "s3cret-token-of-the-daemon";

/// Configures the daemon in the settings of a sandbox.
fn use_daemon(sandbox: &Sandbox, port: u16) {
    let settings = format!("[daemon]\nenabled = true\nurl = 'http://127.0.0.1:{port}'\ntoken = '{TOKEN}'\n");
    sandbox.write_config(&settings);
}

fn words(count: usize) -> String {
    let words: Vec<String> = (0..count).map(|number| format!("word{number} ")).collect();
    words.concat()
}

fn texts(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

#[test]
fn daemon_chat_works_and_no_secret_reaches_the_page() {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let daemon = QwenDaemon::start(&sandbox, &model, TOKEN);
    let proxy = CutProxy::start(daemon.port);
    use_daemon(&sandbox, proxy.port);
    let companion = Companion::start(&sandbox);
    let files = ["first.txt", "second.txt", "third.txt"].map(|name| sandbox.file(name));
    let write = |path: &std::path::Path| Prompt::WriteFile(&path.to_string_lossy(), "by the agent\n").to_string();
    let prompts = json!({
        "count": Prompt::Count(60).to_string(),
        "slow": Prompt::Slow.to_string(),
        "write": write(&files[0]),
        "writeAgain": write(&files[1]),
        "writeOnceMore": write(&files[2]),
        "ask": Prompt::Ask.to_string(),
        "again": Prompt::Say("Still here.").to_string(),
    });
    let details = json!({"other": login_link(&companion), "prompts": prompts});
    let mut scenario = Scenario::start(&sandbox, &companion, "chat-daemon", details);
    let asked = scenario.wait_until("asked");
    let field = |name: &str| asked[name].as_str().unwrap_or_default();
    daemon.vote(TOKEN, field("request"), field("option"));
    scenario.resume();
    scenario.wait_until("answered elsewhere");
    for file in &files {
        let written = eventually(TIMEOUT, || fs::read_to_string(file).ok());
        assert_eq!(written.as_deref(), Some("by the agent\n"), "{}", file.display());
    }
    let mark = model.mark();
    scenario.resume();
    scenario.wait_until("before death");
    assert!(
        model.received_since(mark).contains("Blue"),
        "the answer reached the model"
    );
    daemon.kill_agent();
    scenario.resume();
    let result = scenario.finish().without_complaints();

    let seen = &result["seen"];
    let text = |name: &str| seen[name].as_str().unwrap_or_default();
    assert!(
        text("locality").contains("credentials of the daemon\u{2019}s host"),
        "{seen:#}"
    );
    assert_eq!(text("counted").trim(), words(60).trim());
    assert_eq!(text("cancelled"), "Cancelled. Send a message to continue.");
    assert_eq!(text("kept"), "kept");
    assert_eq!(text("focus"), "prompt", "the focus stays");
    let kinds: Vec<&str> = seen["offered"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|option| option["kind"].as_str())
        .collect();
    assert!(
        kinds.contains(&"allow_once") && kinds.contains(&"reject_once"),
        "{seen:#}"
    );
    assert!(text("own").starts_with("You chose: "), "{seen:#}");
    assert!(text("otherPage").starts_with("Answered on another page: "), "{seen:#}");
    assert!(text("elsewhere").starts_with("Answered elsewhere: "), "{seen:#}");
    assert_eq!(seen["openForms"], 0);
    assert_ne!(seen["model"], seen["otherModel"]);
    assert_eq!(
        seen["after"]["messages"], seen["before"]["messages"],
        "the messages are there after reopening"
    );

    // Every byte that the browser got.
    let received = texts(&result["received"]).join("\n");
    assert!(received.contains("word59"), "the search finds what is there");
    assert!(received.contains("by the agent"), "the search finds what is there");
    let clients = proxy.client_ids();
    assert!(!clients.is_empty(), "the companion had an id with the daemon");
    let mut secrets = vec![
        TOKEN.to_owned(),
        format!(":{}", daemon.port),
        format!(":{}", proxy.port),
        MODEL_KEY[..6].to_owned(),
        MODEL_KEY[MODEL_KEY.len() - 6..].to_owned(),
    ];
    secrets.extend(clients);
    for secret in &secrets {
        if let Some(place) = received.find(secret) {
            let from = place.saturating_sub(80);
            panic!(
                "{secret}: \u{2026}{}",
                &received[from..(place + 80).min(received.len())]
            );
        }
    }
}

#[test]
fn cut_connections_neither_lose_nor_double_words() {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let daemon = QwenDaemon::start(&sandbox, &model, TOKEN);
    let proxy = CutProxy::start(daemon.port);
    use_daemon(&sandbox, proxy.port);
    let companion = Companion::start(&sandbox);
    let prompt = Prompt::Count(1000).to_string();
    let mut scenario = Scenario::start(&sandbox, &companion, "chat-cuts", json!({"prompts": {"count": prompt}}));
    scenario.wait_until("cut the daemon");
    proxy.cut();
    scenario.resume();
    let result = scenario.finish().without_complaints();
    assert_eq!(result["typed"], "half a thought");
    assert_eq!(
        result["reloaded"], "half a thought",
        "the unsent message survives a reload"
    );
    assert_eq!(result["view"], "chat");
    assert_eq!(texts(&result["messages"]), [prompt]);
    assert_eq!(texts(&result["answers"]).concat().trim(), words(1000).trim());
}

const MARKDOWN: &str = "## What I would do\n\nGive the policy a **deadline**:\n\n```rust\npub struct Policy {\n    pub attempts: u32,\n    pub deadline: Duration,\n}\n```\n\n1. note when it *began*\n2. look before each wait\n   - enough left: wait\n   - too little: give up\n\n| | before | after |\n|---|---|---|\n| longest | no end | 30 s |\n\n> Zero means: never again.\n\nSee [the notes](https://doc.rust-lang.org/std/time/).\n\nThe end.";

const HOSTILE: &str = "<script>document.title='taken'; alert(1)</script>\n\n<img src=x onerror=\"document.title='taken'\">\n\nAn <b>inline</b> tag, [a](javascript:alert(1)), [b](data:text/html,<script>alert(1)</script>), [c](https://bank.example@evil.example/), [d](https://example.com/x).\n\n![spy](https://evil.example/pixel.png)\n\nif (level != \"user\u{202e} \u{2066}// Check if admin\u{2069} \u{2066}\")\n\n```html\n<script>document.title='taken'</script>\n```\n\n<iframe src=\"javascript:alert(1)\"></iframe>\n\n<svg onload=alert(1)>\n\nthe last line";

#[test]
fn local_agent_writes_are_reviewed_and_hostile_answer_is_text() {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let companion = Companion::start_with_variables(&sandbox, Cli::Qwen.model_variables(&model));
    let file = sandbox.file("written.txt");
    let prompts = json!({
        "markdown": Prompt::Say(MARKDOWN).to_string(),
        "write": Prompt::WriteFile(&file.to_string_lossy(), "by the agent\n").to_string(),
        "hostile": Prompt::Say(HOSTILE).to_string(),
        "huge": Prompt::Code(3000).to_string(),
    });
    let played = Scenario::start(&sandbox, &companion, "chat-child", json!({"prompts": prompts})).finish();
    let result = played.without_complaints();
    let seen = &result["seen"];
    let locality = seen["locality"].as_str().unwrap_or_default();
    assert!(locality.contains("File writes go through review."), "{locality}");
    let written = fs::read_to_string(&file).expect("read the file");
    assert_eq!(written, "by the agent and by me\n", "the edited text was written");

    let hostile = &seen["hostile"];
    assert!(
        !hostile["title"].as_str().unwrap_or_default().contains("taken"),
        "{hostile:#}"
    );
    assert_eq!(hostile["elements"], 0, "no markup in an answer");
    let links = texts(&hostile["links"]);
    assert_eq!(
        links,
        [
            "https://example.com/x noopener noreferrer",
            "https://evil.example/pixel.png noopener noreferrer"
        ]
    );
    assert_eq!(texts(&hostile["refused"]).len(), 3, "{hostile:#}");
    assert_eq!(hostile["directions"], 4, "directional characters are marked");
    assert_eq!(seen["code"], 3000 * 43 - 1);
    assert_eq!(result["elsewhere"], json!([]), "no request to another host");

    let faults = &result["faults"];
    let path = artifacts().join("axe.json");
    fs::write(path, format!("{faults:#}")).expect("save the axe results");
    let states = faults.as_object().expect("faults by state");
    assert!(states.len() >= 8, "only {} states were checked", states.len());
    let serious: Vec<(&String, &Value)> = states
        .iter()
        .flat_map(|(state, faults)| faults.as_array().into_iter().flatten().map(move |fault| (state, fault)))
        .filter(|(_, fault)| fault["impact"] == "serious" || fault["impact"] == "critical")
        .collect();
    assert!(serious.is_empty(), "{serious:#?}");
}

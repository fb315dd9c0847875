//! The chat in the side bar, with real `qwen serve` and `qwen --acp` processes and a scripted model.

use std::fs;
use std::path::Path;

use alongside_e2e::{Cli, CutProxy, FakeModel, MODEL_KEY, Prompt, QwenDaemon, Sandbox, TIMEOUT, eventually};
use serde_json::{Value, json};

use crate::case::{Case, Vehicle, Window};

/// Must not reach the webview.
const TOKEN: &str = "s3cret-token-of-the-daemon";

/// Settings of the machine that code-server runs on; a workspace cannot change these.
fn write_machine_settings(sandbox: &Sandbox, settings: &Value) {
    let directory = sandbox.path("home/.local/share/code-server/Machine");
    fs::create_dir_all(&directory).expect("create the directory of the settings");
    fs::write(directory.join("settings.json"), settings.to_string()).expect("write the settings");
}

fn chat(window: &Window, method: &str, parameters: &Value) -> Value {
    window.call("chat", &json!({"method": method, "parameters": parameters}))
}

fn text_of(window: &Window, test_id: &str) -> String {
    let text = chat(window, "text", &json!([test_id]));
    text.as_str().unwrap_or_default().to_owned()
}

/// Sends a message, also while the agent is coming back, and waits for the end of the turn.
fn say(window: &Window, prompt: &Prompt<'_>, answer: &str) {
    chat(window, "sendEventually", &json!([prompt.to_string()]));
    chat(window, "until", &json!([answer]));
    chat(window, "rest", &json!([]));
}

fn written(path: &Path) -> Option<String> {
    eventually(TIMEOUT, || fs::read_to_string(path).ok())
}

/// Where the agent runs is shown in detail.
fn check_locality(window: &Window) {
    chat(window, "click", &json!(["locality-details"]));
    let ownership = text_of(window, "ownership");
    assert!(
        ownership.contains("Credentialsof the user who started the daemon"),
        "{ownership}"
    );
    window.picture_of_side_bar("locality");
    chat(window, "open", &json!(["preflight"]));
    assert!(
        text_of(window, "preflight").contains("Node.js version"),
        "the daemon's checks"
    );
    chat(window, "click", &json!(["drawer-close"]));
}

#[test]
fn daemon_chat_works_and_no_secret_reaches_the_webview() {
    let model = FakeModel::start();
    let sandbox = Sandbox::new();
    let daemon = QwenDaemon::start(&sandbox, &model, TOKEN);
    let proxy = CutProxy::start(daemon.port);
    let url = format!("http://127.0.0.1:{}", proxy.port);
    write_machine_settings(
        &sandbox,
        &json!({"alongside.daemon.enabled": true, "alongside.daemon.url": url}),
    );
    let case = Case::whole(Vehicle::start(sandbox, &[]));
    let file = case.path("written.txt");
    let window = case.open();
    window.call("storeDaemonToken", &json!({"token": TOKEN}));
    window.ask("openChat");
    window.call("fold", &json!({"section": "Pending Changes"}));
    chat(&window, "choose", &json!(["daemon"]));
    let locality = text_of(&window, "locality");
    assert!(
        locality.contains("credentials of the daemon\u{2019}s host"),
        "{locality}"
    );

    check_locality(&window);

    // An answer streams, and another one is cancelled.
    say(&window, &Prompt::Explain, "in one line");
    window.picture_of_side_bar("chat");
    say(&window, &Prompt::Count(60), "word59");
    chat(&window, "send", &json!([Prompt::Slow.to_string()]));
    chat(&window, "until", &json!(["slow3"]));
    chat(&window, "escape", &json!([]));
    chat(&window, "rest", &json!([]));
    assert_eq!(
        text_of(&window, "chat-notice"),
        "Cancelled. Send a message to continue."
    );

    // A permission request is answered here.
    chat(&window, "setMode", &json!(["default"]));
    let write = Prompt::WriteFile(&file.to_string_lossy(), "by the agent\n").to_string();
    chat(&window, "send", &json!([write]));
    chat(&window, "allowOnce", &json!([]));
    chat(&window, "until", &json!(["DONE."]));
    chat(&window, "rest", &json!([]));
    assert!(text_of(&window, "answered").starts_with("You chose: "));
    assert_eq!(written(&file).as_deref(), Some("by the agent\n"));

    // The event stream is cut and resumed.
    proxy.cut();
    say(&window, &Prompt::Say("After the cut."), "After the cut.");

    // A killed companion comes back with the conversation.
    let messages = chat(&window, "messages", &json!([]));
    let killed = case.companion();
    killed.kill();
    assert!(eventually(TIMEOUT, || (case.companion().pid != killed.pid).then_some(())).is_some());
    say(&window, &Prompt::Say("After the crash."), "After the crash.");
    let after = chat(&window, "messages", &json!([]));
    let known = messages.as_array().map_or(0, Vec::len);
    assert_eq!(
        after.as_array().map(|after| &after[..known]),
        messages.as_array().map(Vec::as_slice)
    );

    // A hidden view comes back with the conversation and the unsent message.
    chat(&window, "fill", &json!(["not sent yet"]));
    window.ask("hideChat");
    window.ask("openChat");
    chat(&window, "until", &json!(["After the crash."]));
    assert_eq!(chat(&window, "messages", &json!([])), after);
    assert_eq!(chat(&window, "unsent", &json!([])), "not sent yet");
    chat(&window, "fill", &json!([""]));

    // So does a reloaded window.
    window.ask("reload");
    window.ask("openChat");
    chat(&window, "until", &json!(["word59"]));
    chat(&window, "back", &json!([]));
    assert_eq!(chat(&window, "messages", &json!([])), after);
    say(&window, &Prompt::Say("After the reload."), "After the reload.");

    assert_eq!(chat(&window, "faults", &json!([])), json!([]), "a conversation");

    // Every byte that reached a frame, and the document itself.
    let document = chat(&window, "document", &json!([]));
    let policy = document["policy"].as_str().unwrap_or_default();
    assert!(policy.starts_with("default-src 'none'; script-src 'nonce-"), "{policy}");
    let received = format!("{}\n{}", window.ask("received"), document["html"]);
    for expected in [
        "word59",
        "by the agent",
        "After the cut.",
        "After the crash.",
        "After the reload.",
    ] {
        assert!(received.contains(expected), "the search finds {expected}");
    }
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
            let from = received.floor_char_boundary(place.saturating_sub(80));
            panic!("{secret} reached the webview: …{}", &received[from..place]);
        }
    }
}

#[test]
fn review_of_the_chats_agent_opens_as_a_diff() {
    let model = FakeModel::start();
    let case = Case::on(Vehicle::start(Sandbox::new(), &Cli::Qwen.model_variables(&model)));
    let file = case.path("written.txt");
    case.write_settings(&json!({"workbench.colorTheme": "Dark Modern"}));
    let window = case.open();
    window.ask("openChat");
    assert_eq!(chat(&window, "faults", &json!([])), json!([]), "no agent");
    chat(&window, "choose", &json!(["qwen"]));
    let write = Prompt::WriteFile(&file.to_string_lossy(), "by the agent\n").to_string();
    chat(&window, "send", &json!([write]));
    chat(&window, "waitFor", &json!(["open-review"]));
    assert_eq!(chat(&window, "faults", &json!([])), json!([]), "a pending review");
    chat(&window, "click", &json!(["open-review"]));
    window.call("diff", &json!({}));
    window.wait_for_draft_line("by the agent");
    window.call("titleAction", &json!({"label": "Accept Change"}));
    chat(&window, "until", &json!(["DONE."]));
    assert_eq!(written(&file).as_deref(), Some("by the agent\n"));
}

#[tokio::test]
async fn changed_daemon_settings_restart_the_companion_and_keep_what_is_pending() {
    let enabled = |url: &str| json!({"alongside.daemon.enabled": true, "alongside.daemon.url": url});
    let sandbox = Sandbox::new();
    write_machine_settings(&sandbox, &enabled("http://127.0.0.1:1"));
    let case = Case::on(Vehicle::start(sandbox, &[]));
    let path = case.write("a.txt", "one\n");
    let window = case.open();
    let mut agent = case.agent().await;
    agent.propose(&path, "two\n").await;
    let before = case.companion();
    window.call("storeDaemonToken", &json!({"token": TOKEN}));
    before.wait_until_exited();
    agent.reconnect().await;
    let after = case.companion();
    assert_eq!(after.port_and_token, before.port_and_token);

    // An address that cannot be used is reported, and changes nothing else.
    write_machine_settings(case.sandbox(), &enabled("http://example.com"));
    let reported = eventually(TIMEOUT, || {
        let shown = window.ask("notifications").to_string();
        shown
            .contains("invalid alongside.daemon.url: it must use a loopback address")
            .then_some(())
    });
    assert!(reported.is_some(), "{}", window.ask("notifications"));
    agent.reconnect().await;
    window.show_review();
    assert_eq!(window.accept(&mut agent).await, "two\n");
}

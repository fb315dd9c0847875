//! The official SDK, at the versions used by the agents.
//!
//! The agents hide their transport errors; these tests see them.

use std::fs;
use std::time::Duration;

use alongside_e2e::{Companion, Sandbox, Sdk, SdkClient, never_during};
use serde_json::{Value, json};

const COMMAND_LINE: &str = "streamable-http-client";

#[test]
fn gemini_sdk_version_supports_everything() {
    check_sdk(Sdk::V1_23);
}

#[test]
fn qwen_sdk_version_supports_everything() {
    check_sdk(Sdk::V1_30);
}

fn check_sdk(sdk: Sdk) {
    let sandbox = Sandbox::new();
    let file = sandbox.write("open.txt", "text\n");
    let mut companion = Companion::start(&sandbox);
    let token = companion.token();
    let connect = |token: &str, name: &str| SdkClient::connect(sdk, companion.port, token, name);

    let refused = connect("wrong", COMMAND_LINE).err().expect("a wrong token is refused");
    assert!(refused.contains("token") || refused.contains("401"), "{refused}");

    let mut client = connect(&token, COMMAND_LINE).expect("connect");
    assert_eq!(client.connected["protocol"], sdk.protocol());
    assert!(client.connected["session"].is_string(), "{}", client.connected);
    assert_eq!(client.request("ping", &json!({})), json!({}));
    let tools = client.request("tools/list", &json!({}));
    let names: Vec<&Value> = tools["tools"]
        .as_array()
        .expect("a list of tools")
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert!(
        names.contains(&&json!("openDiff")) && names.contains(&&json!("closeDiff")),
        "{names:?}"
    );

    // The context is sent when the stream opens, and again when it changes.
    client.wait_for_notification("ide/contextUpdate", |_| true);
    companion.json(&[
        "context",
        "focus",
        &file.to_string_lossy(),
        "--line",
        "1",
        "--select",
        "text",
    ]);
    let has_file = |params: &Value| params["workspaceState"]["openFiles"][0]["path"] == *file.to_string_lossy();
    let update = client.wait_for_notification("ide/contextUpdate", has_file);
    let first = &update["workspaceState"]["openFiles"][0];
    assert_eq!(first["selectedText"], "text", "{update}");
    assert_eq!(first["isActive"], true, "{update}");
    assert_eq!(
        update,
        companion.json(&["context", "show"]),
        "`context show` is what agents get"
    );

    let mut stranger = connect(&token, "somebody-else").expect("connect");
    decisions(&sandbox, &companion, &mut client, &mut stranger);

    // A clean restart goes unnoticed: same session, no transport errors.
    let path = sandbox.file("during-restart.txt").to_string_lossy().into_owned();
    client.call("openDiff", &json!({"filePath": path, "newContent": "new"}));
    drop(stranger);
    companion.terminate();
    client.wait_for_notification("ide/diffRejected", |params| params["filePath"] == path);
    companion.restart();
    companion.json(&[
        "context",
        "focus",
        &file.to_string_lossy(),
        "--line",
        "1",
        "--select",
        "after the restart",
    ]);
    client.wait_for_notification("ide/contextUpdate", |params| {
        params.to_string().contains("after the restart")
    });
    client.call("openDiff", &json!({"filePath": path, "newContent": "newer"}));
    companion.json(&["diff", "accept", &path]);
    client.wait_for_notification("ide/diffAccepted", |params| params["content"] == "newer");
    assert_eq!(client.transport_errors(), Vec::<Value>::new());
}

fn decisions(sandbox: &Sandbox, companion: &Companion<'_>, client: &mut SdkClient, stranger: &mut SdkClient) {
    // The path is returned unchanged, however unusual: agents use it as a lookup key.
    let odd = format!("{}/./sub/../odd name.txt", sandbox.workspace().display());
    let opened = client.call("openDiff", &json!({"filePath": odd, "newContent": "one\r\ntwo"}));
    assert_eq!(opened["content"], json!([]), "{opened}");
    let review = companion.reviews().pop().expect("the change is listed immediately");
    companion.json(&["diff", "accept", &review.id]);
    let accepted = client.wait_for_notification("ide/diffAccepted", |_| true);
    assert_eq!(accepted, json!({"filePath": odd, "content": "one\r\ntwo"}));

    client.call("openDiff", &json!({"filePath": odd, "newContent": "again"}));
    let review = companion.reviews().pop().expect("the change is listed immediately");
    companion.json(&["diff", "reject", &review.id]);
    let rejected = client.wait_for_notification("ide/diffRejected", |_| true);
    assert_eq!(rejected["filePath"], odd.as_str());

    // `closeDiff` returns the current draft, sends no notification, and returns an empty object when there is nothing.
    let draft = sandbox.path("draft");
    fs::write(&draft, "drafted").expect("write the draft");
    client.call("openDiff", &json!({"filePath": odd, "newContent": "proposed"}));
    let review = companion.reviews().pop().expect("the change is listed immediately");
    companion.json(&["diff", "edit", &review.id, "--content-file", &draft.to_string_lossy()]);
    let close = json!({"filePath": odd, "suppressNotification": true});
    assert_eq!(only_text(&client.call("closeDiff", &close)), r#"{"content":"drafted"}"#);
    assert_eq!(only_text(&client.call("closeDiff", &close)), "{}");
    assert!(companion.reviews().is_empty());

    // Clients other than the two agents get what the specification says: the text itself.
    stranger.call("openDiff", &json!({"filePath": odd, "newContent": "proposed"}));
    assert_eq!(
        only_text(&stranger.call("closeDiff", &json!({"filePath": odd}))),
        "proposed"
    );

    let quiet = never_during(Duration::from_millis(500), || {
        let rejected = client.unread_notifications("ide/diffRejected");
        let accepted = client.unread_notifications("ide/diffAccepted");
        !rejected.is_empty() || !accepted.is_empty()
    });
    assert!(quiet, "a closed or foreign change was notified");
    assert_eq!(client.transport_errors(), Vec::<Value>::new());
}

fn only_text(result: &Value) -> String {
    let content = result["content"].as_array().expect("a result has content");
    assert_eq!(content.len(), 1, "{result}");
    content[0]["text"].as_str().expect("it is a text").to_owned()
}

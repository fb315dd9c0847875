//! Only a tab that used a login link is allowed, and it shows its secret to no other program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use alongside_e2e::{Companion, Sandbox, TIMEOUT, eventually};
use serde_json::json;

use crate::browser::Scenario;

#[test]
fn only_the_logged_in_page_is_allowed() {
    let sandbox = Sandbox::new();
    let companion = Companion::start(&sandbox);
    let result = Scenario::start(&sandbox, &companion, "security", json!({}))
        .finish()
        .without_complaints();

    let expected = json!({
        "page": 200,
        "script": 200,
        "login": 404,
        "foreign host": 403,
        "foreign origin": 403,
        "socket": 101,
        "socket without origin": 403,
        "socket of a foreign origin": 403,
        "socket of the null origin": 403,
    });
    assert_eq!(result["status"], expected);
    assert_eq!(result["usedLink"]["title"], "This link is no longer valid");
    assert_eq!(result["bareUrl"]["title"], "This tab is not logged in");
    for screen in ["usedLink", "bareUrl"] {
        let text = result[screen]["text"].as_str().unwrap_or_default();
        assert!(text.contains("alongside page"), "no next step: {text}");
    }
    assert_eq!(
        result["bareUrl"]["sockets"],
        json!([]),
        "there is nothing to log in with"
    );
    assert_eq!(
        result["fromForeignPage"],
        json!({"socket": "refused", "read": "refused", "session": null})
    );
    assert_eq!(result["framed"], false);

    let address = result["address"].as_str().unwrap_or_default();
    assert!(!address.contains("key"), "the key stays in the address: {address}");
    assert_eq!(result["hasSession"], true);
    assert_eq!(result["requestsWithSecrets"], json!([]));
    assert_eq!(result["cookies"], json!([]));
    assert_eq!(result["cookiesSent"], json!([]));

    let policy = result["headers"]["content-security-policy"]
        .as_str()
        .expect("the page has a content security policy");
    let directive = |name: &str| {
        let mut directives = policy.split(';').map(str::trim);
        directives.find_map(|directive| directive.strip_prefix(name)?.strip_prefix(' '))
    };
    assert_eq!(directive("default-src"), Some("'none'"), "{policy}");
    assert_eq!(directive("script-src"), Some("'self'"), "{policy}");
    assert_eq!(directive("frame-ancestors"), Some("'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
}

#[test]
fn page_opens_through_a_file_that_is_removed_then() {
    let sandbox = Sandbox::new();
    // A browser that only records what it was started with.
    let (browser, record) = (sandbox.path("bin/xdg-open"), sandbox.path("opened"));
    let script = format!(
        "#!/bin/sh\necho \"$1\" > '{0}.new' && mv '{0}.new' '{0}'\n",
        record.display()
    );
    fs::write(&browser, script).expect("write the browser");
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).expect("make it executable");
    let companion = Companion::start(&sandbox);
    companion.json(&["page", "--open"]);
    let opened = eventually(TIMEOUT, || fs::read_to_string(&record).ok()).expect("the browser was started");
    let file = Path::new(opened.trim());
    assert!(file.is_file(), "{opened}");
    let details = json!({"file": format!("file://{}", file.display())});
    let result = Scenario::start(&sandbox, &companion, "open", details)
        .finish()
        .without_complaints();
    let address = result["address"].as_str().unwrap_or_default();
    assert!(
        address.starts_with("http://127.0.0.1:") && !address.contains("key"),
        "{address}"
    );
    assert!(!file.exists(), "the link was used");
}

#[test]
fn program_that_takes_the_pages_port_learns_nothing() {
    let sandbox = Sandbox::new();
    let mut companion = Companion::start(&sandbox);
    let mut scenario = Scenario::start(&sandbox, &companion, "stranger", json!({}));
    scenario.wait_until("connected");
    companion.kill();
    scenario.resume();
    scenario.wait_until("refused");
    companion.restart();
    scenario.resume();
    let result = scenario.finish().without_complaints();

    let session = result["session"].as_str().expect("the page has a session");
    let received = &result["received"];
    assert!(!received.to_string().contains(session), "{received:#}");
    let heads = received["heads"].to_string().to_lowercase();
    assert!(!heads.contains("cookie") && !heads.contains("authorization"), "{heads}");
    let messages = received["messages"].as_array().expect("a list of messages");
    assert_eq!(messages.len(), 1, "only the response to its challenge: {messages:?}");
    let rest = received["rest"].as_str().unwrap_or_default();
    assert!(rest.len() <= 16, "no more than the frame that closes: {rest:?}");
    assert_ne!(result["state"], "open");
    assert_eq!(result["isSame"], true, "and the page is logged in as before");
}

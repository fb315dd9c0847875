//! Only a tab that used a login link is allowed, and it shows its secret to no other program.

use alongside_e2e::{Companion, Sandbox};
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

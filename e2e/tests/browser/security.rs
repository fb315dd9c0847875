//! Only a browser that opened a login link is allowed, and only from the page itself.

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
        "page without cookie": 401,
        "script without cookie": 401,
        "unknown key": 403,
        "used link": 403,
        "page": 200,
        "foreign host": 403,
        "foreign origin": 403,
        "socket": 101,
        "socket without cookie": 401,
        "socket without origin": 403,
        "socket of a foreign origin": 403,
        "socket of the null origin": 403,
    });
    assert_eq!(result["status"], expected);
    assert_eq!(result["usedLink"], "This link is no longer valid");
    let refusal = result["bodies"]["page without cookie"].as_str().unwrap_or_default();
    assert!(refusal.contains("alongside page"), "no next step: {refusal}");
    assert_eq!(
        result["fromForeignPage"],
        json!({"socket": "refused", "read": "refused"})
    );
    assert_eq!(result["framed"], false);

    let address = result["address"].as_str().unwrap_or_default();
    assert!(!address.contains("key"), "the key stays in the address: {address}");
    let cookies = result["cookies"].as_array().expect("a list of cookies");
    assert_eq!(cookies.len(), 1, "{cookies:?}");
    assert_eq!(cookies[0]["httpOnly"], true);
    assert_eq!(cookies[0]["sameSite"], "Strict");
    assert_eq!(result["readable"], "", "no script can read the cookie");

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

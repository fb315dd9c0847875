//! A user without an agent tries a review on the empty page.

use std::path::PathBuf;
use std::time::Duration;

use alongside_e2e::{Companion, Sandbox, eventually};
use serde_json::json;

use crate::browser::Scenario;

const TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn sample_review_is_opened_decided_and_cleaned_up() {
    let sandbox = Sandbox::new();
    let companion = Companion::start(&sandbox);
    let mut scenario = Scenario::start(&sandbox, &companion, "first-run", json!({}));
    scenario.wait_until("sample");
    let reviews = companion.reviews();
    assert_eq!(reviews.len(), 1, "only one at a time");
    let file = PathBuf::from(&reviews[0].path);
    assert!(
        file.exists() && !file.starts_with(sandbox.file("")),
        "{}",
        file.display()
    );
    scenario.resume();
    scenario.wait_until("accepted");
    let removed = eventually(TIMEOUT, || (!file.exists()).then_some(()));
    assert!(removed.is_some(), "{} is left", file.display());
    scenario.resume();
    let result = scenario.finish().without_complaints();
    let text = result["text"].as_str().expect("the text of the empty page");
    assert!(
        text.contains("Start an agent such as gemini, qwen or claude in") && text.contains("alongside demo"),
        "{text}"
    );
    assert!(
        result["sample"].to_string().contains("rye bread"),
        "{}",
        result["sample"]
    );
    assert!(companion.reviews().is_empty());
}

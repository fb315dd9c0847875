//! A file that changes in the same place as a pending change.

use std::fs;

use serde_json::json;

use crate::case::Case;

#[tokio::test]
async fn conflict_is_an_error_until_one_of_three_texts_is_chosen() {
    let case = Case::new();
    let path = case.path("a.txt");
    let window = case.open();
    let mut agent = case.agent().await;
    for (choice, line) in [
        ("Keep mine", "2 mine"),
        ("Use the agent\u{2019}s version", "2"),
        ("Use the file\u{2019}s version", "TWO"),
    ] {
        case.write("a.txt", "one\ntwo\nthree\n");
        agent.propose(&path, "one\n2\nthree\n").await;
        window.show_review();
        window.type_after("2", " mine");
        window.wait_for_states(&["Edited"]);
        fs::write(&path, "one\nTWO\nthree\n").expect("change the file");
        window.wait_for_states(&["Conflict"]);
        window.call("errorAt", &json!({"text": "2 mine"}));
        let refused = json!({"text": "conflict"});
        window.press("Control+Enter");
        window.call("notification", &refused);
        assert_eq!(case.pending(), 1, "it cannot be accepted yet");

        window.click_lens(choice, 0);
        window.wait_for_draft_line(line);
        window.ask("noError");
        window.command("Notifications: Clear All Notifications");
        window.call("clickDraft", &json!({"text": line}));
        assert_eq!(
            window.accept(&mut agent).await,
            format!("one\n{line}\nthree\n"),
            "{choice}"
        );
    }
}

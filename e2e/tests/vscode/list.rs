//! Pending changes in the side bar and in the status bar's menu, and keys and menus to decide them.

use serde_json::json;

use crate::case::{Case, decision_by};
use crate::hunks::lines;

#[tokio::test]
async fn changes_are_listed_and_decided_from_the_list_the_menu_and_by_ctrl_s() {
    let case = Case::new();
    let first = case.write("first.txt", "one\n");
    let second = case.write("second.txt", &lines(10, |_| false));
    let third = case.path("third.txt");
    let window = case.open();
    let mut agent = case.agent().await;
    window.ask("openSideBar");
    window.call("listed", &json!({"rows": []}));
    agent.propose(&first, "two\n").await;
    agent
        .propose(&second, &lines(10, |number| number == 3 || number == 8))
        .await;
    agent.propose(&third, "new\n").await;
    let rows = ["first.txt+1 \u{2212}1", "second.txt+2 \u{2212}2", "third.txt+1"];
    window.call("listed", &json!({"rows": rows}));

    let reject = json!({"file": "first.txt", "label": "Reject Change"});
    let decision = decision_by(&mut agent, || {
        window.call("rowAction", &reject);
    })
    .await;
    assert_eq!(decision["method"], "ide/diffRejected", "{decision}");
    assert_eq!(decision["params"]["filePath"], json!(first), "{decision}");
    window.call("listed", &json!({"rows": ["second.txt", "third.txt"]}));

    // Chosen among several, with one hunk rejected from the menu of its line number.
    window.call("menu", &json!({"label": "second.txt"}));
    window.ask("diff");
    window.call("lineNumberMenu", &json!({"line": 8, "title": "Reject Hunk"}));
    window.wait_for_states(&["Accepted", "Rejected"]);
    window.call(
        "listed",
        &json!({"rows": ["second.txt+1 \u{2212}1 \u{b7} edited", "third.txt"]}),
    );
    window.call("clickDraft", &json!({"text": "changed 3"}));
    let decision = decision_by(&mut agent, || window.press("Control+S")).await;
    assert_eq!(
        decision["params"]["content"],
        lines(10, |number| number == 3),
        "{decision}"
    );
    window.ask("noDiff");
    window.call("listed", &json!({"rows": ["third.txt"]}));

    let accept = json!({"file": "third.txt", "label": "Accept Change"});
    let decision = decision_by(&mut agent, || {
        window.call("rowAction", &accept);
    })
    .await;
    assert_eq!(decision["params"]["content"], "new\n", "{decision}");
    window.call("listed", &json!({"rows": []}));
    assert_eq!(window.ask("dialogs"), json!([]));
}

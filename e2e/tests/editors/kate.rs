//! The language server in a real Kate, installed as a user installs it.

use alongside_e2e::{Capability, Sandbox, proves, version};
use serde_json::json;

use crate::agent::{Agent, announced};
use crate::desktop::Desktop;

/// What opens the menu of code actions.
const MENU: &str = "alt+Return";

fn proven(capability: Capability) {
    proves("Kate", &version("kate".as_ref()), capability);
}

#[tokio::test]
async fn hunks_and_changes_are_decided_in_kate_and_a_selection_is_sent() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    sandbox.install("kate");
    let mut desktop = Desktop::start(&sandbox);
    let file = path.display().to_string();
    let pid = desktop.open("kate", &["-n", "--startanon", &file], "a.md");
    let mut agent = Agent::connect(&announced(&sandbox, pid)).await;
    agent.sees(|file| file["path"] == json!(path)).await;

    let proposal = "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n";
    agent.propose(&path, proposal).await;
    desktop.press(&["ctrl+Home"]);
    // The first action is to reject the hunk at the cursor. After that it is to accept it, and the second to accept the change.
    desktop.choose(MENU, &["Down", "Return"], || desktop.is_edited());
    desktop.choose(MENU, &["Down", "Down", "Return"], || desktop.reviews().is_empty());
    let decision = agent.decision().await;
    assert_eq!(decision["method"], "ide/diffAccepted");
    assert_eq!(
        decision["params"]["content"],
        "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n"
    );

    // On a line without a hunk the second action is to reject the change.
    agent.propose(&path, proposal).await;
    desktop.press(&["ctrl+Home", "Down", "Down", "Down"]);
    desktop.choose(MENU, &["Down", "Down", "Return"], || desktop.reviews().is_empty());
    assert_eq!(agent.decision().await["method"], "ide/diffRejected");

    // Without changes the only action is to send the selection.
    desktop.press(&["ctrl+Home", "shift+Down", "shift+Down"]);
    desktop.choose(MENU, &["Down", "Return"], || true);
    agent.sees(|file| file["selectedText"] == "one\ntwo\n").await;
    for capability in [
        Capability::Context,
        Capability::Review,
        Capability::Hunk,
        Capability::Install,
    ] {
        proven(capability);
    }
}

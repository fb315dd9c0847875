//! What agents learn about the window.

use alongside_e2e::Capability;

use crate::case::{Case, vscode_proves};

#[tokio::test]
async fn agent_sees_open_files_cursor_and_selection() {
    let case = Case::new();
    let path = case.write("first file.txt", "one\ntwo words\nthree\n");
    let second = case.write("second.txt", "2\n");
    let window = case.open();
    let mut agent = case.agent().await;
    window.open_file(&second, 1, 1);
    agent
        .sees(|file| file["path"] == second.to_string_lossy().as_ref())
        .await;
    window.open_file(&path, 2, 5);
    let file = agent
        .sees(|file| file["path"] == path.to_string_lossy().as_ref() && file["cursor"]["line"] == 2)
        .await;
    assert_eq!(file["cursor"]["character"], 5, "{file}");
    for _ in 0.."words".len() {
        window.press("Shift+ArrowRight");
    }
    let file = agent.sees(|file| file["selectedText"] == "words").await;
    assert_eq!(file["isActive"], true, "{file}");
    vscode_proves(Capability::Context);
}

//! Comments on lines as the reason for rejecting a change.

use std::io::Write as _;
use std::process::Stdio;

use alongside_e2e::alongside;
use serde_json::json;

use crate::case::Case;

/// Claude Code's hook takes a reason; Gemini CLI and Qwen Code have no place for one.
#[test]
fn comment_on_a_line_is_the_reason_for_rejecting() {
    let case = Case::new();
    let path = case.write("a.txt", "one\ntwo\n");
    let window = case.open();
    case.companion();
    let mut command = case.sandbox().command(alongside());
    command.args(["hook", "claude"]).current_dir(&case.folder);
    let mut hook = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start alongside");
    let call = json!({
        "session_id": "s", "cwd": case.folder, "permission_mode": "acceptEdits", "hook_event_name": "PreToolUse",
        "tool_name": "Write", "tool_input": {"file_path": path, "content": "one\n2\n"}, "tool_use_id": "t",
    });
    let mut input = hook.stdin.take().expect("its input is piped");
    writeln!(input, "{call}").expect("write the call");
    drop(input);

    window.show_review();
    window.call("clickDraft", &json!({"text": "2"}));
    let comment = json!({"text": "Keep the word.", "button": "Reject Change with Comments"});
    window.call("comment", &comment);
    let output = hook.wait_with_output().expect("wait for the hook");
    let answer = String::from_utf8_lossy(&output.stdout);
    assert!(
        answer.contains("deny") && answer.contains("Line 2: Keep the word."),
        "{output:?}"
    );
    window.ask("noDiff");
}

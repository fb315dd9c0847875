//! What the program prints.

use serde_json::json;

use crate::sandbox::Sandbox;

#[test]
fn command_without_a_companion_names_the_next_step() {
    let sandbox = Sandbox::new();
    let error = sandbox.failure(&["diff", "list"]);
    assert!(
        error.contains("no companion is running for") && error.contains("run `alongside` there to start one"),
        "{error}"
    );
    assert!(sandbox.words(&["status"]).contains("No companion is running."));
    assert_eq!(sandbox.json(&["status"])["companions"], json!([]));
    assert!(sandbox.failure(&["stop"]).contains("no companion is running for"));
    assert_eq!(sandbox.json(&["stop", "--all"]), json!({ "stopped": [] }));
}

#[test]
fn error_lists_companions_of_other_directories() {
    let sandbox = Sandbox::new();
    let _serving = sandbox.serve();
    let home = sandbox.path("home");
    let error = sandbox.failure(&["diff", "list", "--workspace", home.to_str().unwrap()]);
    assert!(error.contains(sandbox.workspace().to_str().unwrap()), "{error}");
}

#[test]
fn invalid_argument_is_a_usage_error() {
    let sandbox = Sandbox::new();
    for arguments in [
        &["dif"][..],
        &["context", "focus"],
        &["context", "focus", "a", "--line", "0"],
    ] {
        assert_eq!(sandbox.output(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn serve_prints_events() {
    let sandbox = Sandbox::new();
    let mut child = sandbox
        .command(&[])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    crate::sandbox::wait_for("the companion", || {
        (sandbox.json(&["status"])["here"] != json!(null)).then_some(())
    });
    sandbox.words(&["stop"]);
    assert!(crate::sandbox::wait_for("its end", || child.try_wait().unwrap()).success());
    let words = std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
    assert!(
        words.contains("is running for") && words.contains("Start `gemini` or `qwen`"),
        "{words}"
    );
}

#[test]
fn second_companion_prints_a_note_about_the_first() {
    let sandbox = Sandbox::new();
    let first = sandbox.serve();
    let mut second = sandbox
        .command(&["serve"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    crate::sandbox::wait_for("the second", || {
        (sandbox.json(&["status"])["companions"].as_array().unwrap().len() == 2).then_some(())
    });
    sandbox.words(&["stop"]);
    assert!(
        crate::sandbox::wait_for("its end", || second.try_wait().unwrap()).success(),
        "the one that was used last is meant"
    );
    let words = std::io::read_to_string(second.stdout.take().unwrap()).unwrap();
    assert!(
        words.contains(&format!(
            "Alongside (pid {}) is also running for this directory",
            first.pid()
        )),
        "{words}"
    );
}

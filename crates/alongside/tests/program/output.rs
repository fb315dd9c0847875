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
        words.contains("is running for") && words.contains("Start an agent in another terminal"),
        "{words}"
    );
    // Paths and links are as long as they are.
    for line in words
        .lines()
        .filter(|line| !line.contains('/') || line.contains("/ide"))
    {
        assert!(line.chars().count() <= 80, "{line:?} does not fit into a terminal");
    }
}

#[test]
fn bridge_help_shows_required_options_as_required() {
    let help = Sandbox::new().words(&["bridge", "--help"]);
    assert!(
        help.contains("Usage: alongside bridge [OPTIONS] --name <ID> --pid <N>\n"),
        "{help}"
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

#[cfg(unix)]
#[test]
fn folder_names_reach_the_terminal_escaped() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("evil\x1b]0;title\x07\u{202e}\nname");
    let other = sandbox.path("other\x1b[2Jname");
    std::fs::create_dir(&folder).unwrap();
    std::fs::create_dir(&other).unwrap();
    let (folder, other) = (folder.to_str().unwrap(), other.to_str().unwrap());
    let mut serving = sandbox
        .command(&["serve", "--workspace", folder])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    crate::sandbox::wait_for("the companion", || {
        (sandbox.json(&["status", "--workspace", folder])["here"] != json!(null)).then_some(())
    });
    let mut printed = Vec::new();
    for arguments in [
        &["status", "--workspace", folder][..],
        &["doctor", "--workspace", folder],
        &["diff", "show", "evil\x1b[2J.txt", "--workspace", folder],
        &["diff", "show", "1", "--workspace", other],
        &["context", "show", "--workspace", other],
        &["stop", "--workspace", other],
        &["page", "--workspace", other],
        &["stop", "--workspace", folder],
    ] {
        let output = sandbox.output(arguments);
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        printed.push((format!("{arguments:?}"), text));
    }
    assert!(crate::sandbox::wait_for("its end", || serving.try_wait().unwrap()).success());
    let greeting = std::io::read_to_string(serving.stdout.take().unwrap()).unwrap();
    printed.push(("serve".to_owned(), greeting));
    let is_raw =
        |text: &str| text.contains(['\x1b', '\x07', '\u{202e}']) || text.lines().any(|line| line.starts_with("name"));
    let raw: Vec<_> = printed.iter().filter(|(_, text)| is_raw(text)).collect();
    assert!(raw.is_empty(), "{raw:#?}");
    assert!(printed[0].1.contains("evil\\u{1b}]0;title"), "{}", printed[0].1);
}

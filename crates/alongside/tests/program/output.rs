//! What the program prints.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, Serving};

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
    assert_eq!(sandbox.json(&["stop", "--all"]), json!({ "stopped": [], "failed": [] }));
}

/// Two companions, and the place and text of the record of the first that is looked at.
fn two_companions(sandbox: &Sandbox) -> ([Serving; 2], PathBuf, Value) {
    let mut both = [sandbox.serve(), sandbox.serve()];
    both.sort_by_key(Serving::pid);
    let records = sandbox.path("home/.local/state/alongside/companions");
    let path = records.join(format!("{}.json", both[0].pid()));
    let record = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    (both, path, record)
}

#[test]
fn stop_of_all_goes_on_after_one_that_cannot_be_stopped() {
    let sandbox = Sandbox::new();
    let ([first, second], path, mut record) = two_companions(&sandbox);
    record["frontToken"] = "0".repeat(64).into();
    std::fs::write(&path, record.to_string()).unwrap();
    let output = sandbox.output(&["stop", "--all", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(second.wait().0, Some(0));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["failed"][0]["pid"], first.pid(), "{report}");
    let message = report["failed"][0]["message"].as_str().unwrap();
    assert!(message.contains("refused the connection"), "{message}");
    let error = sandbox.failure(&["stop", "--all"]);
    assert!(
        error.starts_with(&format!("alongside: cannot stop the companion (pid {}): ", first.pid())),
        "{error}"
    );
}

#[test]
fn companion_that_ends_by_itself_is_not_a_failure_to_stop_it() {
    let sandbox = Sandbox::new();
    let ([first, second], path, mut record) = two_companions(&sandbox);
    let hung = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    record["frontPort"] = hung.local_addr().unwrap().port().into();
    std::fs::write(&path, record.to_string()).unwrap();
    let stop = sandbox
        .command(&["stop", "--all", "--json"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (connection, _) = hung.accept().unwrap();
    let pid = second.pid();
    first.kill();
    drop(connection);
    let output = stop.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(second.wait().0, Some(0));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report, json!({ "stopped": [pid], "failed": [] }));
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

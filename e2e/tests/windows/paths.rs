//! Paths on Windows: what agents compare, what is hidden, and what messages show.

use std::fs;
use std::process::Stdio;

use alongside_e2e::wine::{finished, output};
use alongside_e2e::{Cli, TIMEOUT, Wine, eventually, for_both_agents};
use serde_json::Value;

for_both_agents!(doctor_refuses_what_the_agents_own_code_refuses);

/// A prefix that Gemini CLI removes, and that makes it another directory for Qwen Code.
fn doctor_refuses_what_the_agents_own_code_refuses(agent: Cli) {
    let wine = Wine::new();
    let _companion = wine.serve();
    for file in wine.discovery_files() {
        let text = fs::read_to_string(&file).expect("read a discovery file");
        let changed = text.replace(r#""C:\\proj"#, r#""\\\\?\\C:\\proj"#);
        fs::write(&file, changed).expect("change a discovery file");
    }
    let answer = wine.ask(agent, None).get();
    let connected = answer["state"]["status"] == "connected";
    assert_eq!(connected, matches!(agent, Cli::Gemini), "{answer}");
    let doctor = wine.alongside(&["doctor", "--json"]);
    let report: Value = serde_json::from_slice(&doctor.stdout).expect("it prints JSON");
    let agents = report["agents"].as_array().expect("it lists the agents");
    let name = match agent {
        Cli::Gemini => "gemini",
        Cli::Qwen => "qwen",
    };
    let found = agents.iter().find(|found| found["agent"] == name);
    assert_eq!(found.expect("it is listed")["connects"], connected, "{report}");
}

#[test]
fn temporary_directory_that_other_users_may_read_is_warned_of() {
    let wine = Wine::new();
    fs::create_dir_all(wine.drive("shared")).expect("create a directory");
    let warning = "outside your profile";
    let usual = wine.alongside(&["doctor"]);
    let usual = String::from_utf8_lossy(&usual.stdout);
    assert!(usual.contains("Searched") && !usual.contains(warning), "{usual}");
    let mut command = wine.command("cmd");
    command.args(["/d", "/c", r"set TEMP=C:\shared& C:\alongside.exe doctor"]);
    let shared = output(command);
    let shared = String::from_utf8_lossy(&shared.stdout);
    assert!(shared.contains(r"Searched C:\shared\gemini\ide"), "{shared}");
    assert!(shared.contains(warning), "{shared}");

    let mut command = wine.command("cmd");
    command.args(["/d", "/c", r"set TEMP=C:\shared& C:\alongside.exe serve --plain"]);
    let companion = command.stdout(Stdio::piped()).spawn().expect("start a companion");
    let stopped = eventually(TIMEOUT, || wine.alongside(&["stop"]).status.success().then_some(()));
    assert!(stopped.is_some(), "the companion does not start");
    let printed = finished(companion).stdout;
    let printed = String::from_utf8_lossy(&printed);
    assert!(printed.contains(warning), "{printed}");
}

/// `C:\a/b` works, but is not how anyone writes it.
#[test]
fn messages_have_one_separator() {
    let wine = Wine::new();
    for agent in ["claude", "opencode", "copilot", "codex", "gemini", "qwen"] {
        fs::write(wine.drive(&format!("npm/{agent}.cmd")), "@exit /b 1\r\n").expect("write a script");
    }
    let _companion = wine.serve();
    let commands: [&[&str]; 6] = [
        &["doctor"],
        &["status"],
        &["detect"],
        &["install", "--status"],
        &["install", "helix", "--dry-run"],
        &["install", "claude", "--dry-run"],
    ];
    for arguments in commands {
        let output = wine.alongside(arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!text.is_empty(), "{arguments:?}: {output:?}");
        let mixed: Vec<&str> = text
            .split_whitespace()
            .filter(|word| word.contains(r":\") && word.contains('/'))
            .collect();
        assert!(mixed.is_empty(), "{arguments:?}: {mixed:?}");
    }
}

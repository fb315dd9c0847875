//! The discovery files: when they exist, what they contain, which users can read them.

use std::fs;
use std::net::TcpStream;
use std::process::Command;

use alongside_protocol::{Folders, requests};
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, wait_for};

/// The folders of a discovery file, separated by colons. Claude Code's has a list.
fn workspace_of(content: &Value) -> Value {
    let Some(folders) = content["workspaceFolders"].as_array() else {
        return content["workspacePath"].clone();
    };
    let folders: Vec<&str> = folders.iter().filter_map(Value::as_str).collect();
    json!(folders.join(":"))
}

#[test]
fn ready_line_is_printed_after_the_files_are_written() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    assert_eq!(serving.ready["pid"], serving.pid());
    assert_eq!(serving.ready["workspace"], json!([sandbox.workspace()]));
    assert_eq!(serving.files.len(), 5);
    assert!(
        TcpStream::connect(("127.0.0.1", serving.port)).is_ok(),
        "files are written after listening"
    );
    let mut announced = serving.files.clone();
    announced.sort();
    assert_eq!(sandbox.discovery_files(), announced);
    for file in &serving.files {
        let content: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        assert_eq!(content["port"], serving.port);
        assert_eq!(workspace_of(&content), json!(sandbox.workspace()));
        assert_eq!(
            content["ideInfo"],
            json!({ "name": "alongside", "displayName": "Alongside" })
        );
    }
    serving.signal("TERM");
    let (code, rest) = serving.wait();
    assert_eq!((code, rest.as_str()), (Some(0), ""), "one line and nothing else");
}

#[cfg(unix)]
#[test]
fn files_with_a_token_are_readable_by_the_user_only() {
    use std::os::unix::fs::PermissionsExt;

    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let record = sandbox
        .path("home/.local/state/alongside/companions")
        .join(format!("{}.json", serving.pid()));
    for file in serving.files.iter().chain([&record]) {
        assert_eq!(
            (mode(file), mode(file.parent().unwrap())),
            (0o600, 0o700),
            "{}",
            file.display()
        );
    }
}

#[test]
fn files_are_removed_however_the_companion_stops() {
    for signal in ["INT", "TERM", "HUP", "QUIT"] {
        let sandbox = Sandbox::new();
        let serving = sandbox.serve();
        serving.signal(signal);
        assert_eq!(serving.wait().0, Some(0), "{signal}");
        assert!(sandbox.discovery_files().is_empty(), "{signal}");
    }
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    sandbox.words(&["stop"]);
    assert_eq!(serving.wait().0, Some(0));
    assert!(sandbox.discovery_files().is_empty());
}

#[test]
fn companion_stops_with_its_editor() {
    let sandbox = Sandbox::new();
    let mut editor = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = editor.id().to_string();
    let serving = sandbox.serve_with(&["--name", "neovim", "--display-name", "Neovim", "--pid", &pid]);
    let named = serving
        .files
        .iter()
        .filter(|file| file.to_str().unwrap().contains(&format!("-{pid}-")))
        .count();
    assert_eq!(named, 2, "files are named after the editor: {:?}", serving.files);
    editor.kill().unwrap();
    editor.wait().unwrap();
    assert_eq!(serving.wait().0, Some(0));
    assert!(sandbox.discovery_files().is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn removed_file_is_written_again() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    for file in &serving.files {
        fs::remove_file(file).unwrap();
        wait_for("the file", || file.exists().then_some(()));
    }
    // Stopped, so that it does not write while we remove.
    serving.signal("STOP");
    let stat = format!("/proc/{}/stat", serving.pid());
    wait_for("its stop", || {
        fs::read_to_string(&stat).unwrap().contains(") T ").then_some(())
    });
    fs::remove_dir_all(sandbox.path("tmp/gemini")).unwrap();
    serving.signal("CONT");
    wait_for("the directory", || {
        serving.files.iter().all(|file| file.exists()).then_some(())
    });
    fs::remove_file(&serving.files[0]).unwrap();
    wait_for("the file in the new directory", || {
        serving.files[0].exists().then_some(())
    });
}

#[test]
fn only_leftovers_of_a_killed_companion_are_swept() {
    let sandbox = Sandbox::new();
    let stranger = sandbox.path("tmp/gemini/ide");
    fs::create_dir_all(&stranger).unwrap();
    let stranger = stranger.join("gemini-ide-server-999999-1.json");
    fs::write(
        &stranger,
        r#"{"port":1,"workspacePath":"/","ideInfo":{"name":"a","displayName":"A"}}"#,
    )
    .unwrap();
    let killed = sandbox.serve_with(&["--name", "one"]);
    let leftovers = killed.files.clone();
    killed.kill();
    assert!(leftovers.iter().all(|file| file.exists()));
    let _serving = sandbox.serve_with(&["--name", "two"]);
    assert!(leftovers.iter().all(|file| !file.exists()));
    assert!(stranger.exists());
}

#[test]
fn workspace_of_several_folders_is_announced() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("other")).unwrap();
    let other = sandbox.path("other");
    let serving = sandbox.serve_with(&["--workspace", ".", "--workspace", other.to_str().unwrap()]);
    let content: Value = serde_json::from_slice(&fs::read(&serving.files[0]).unwrap()).unwrap();
    let expected = format!("{}:{}", sandbox.workspace().display(), other.display());
    assert_eq!(content["workspacePath"], expected);
    let status = sandbox.json(&["status", "--workspace", other.to_str().unwrap()]);
    assert_eq!(status["here"], serving.pid());
}

#[test]
fn workspace_that_is_not_a_directory_is_refused() {
    let sandbox = Sandbox::new();
    let error = sandbox.failure(&["serve", "--workspace", "missing"]);
    assert!(error.contains("cannot use the workspace folder missing"), "{error}");
    let file = sandbox.write("a.txt", "");
    assert!(
        sandbox
            .failure(&["serve", "--workspace", &file])
            .contains("is not a directory")
    );
    assert!(sandbox.discovery_files().is_empty());
}

#[test]
fn doctor_reports_whether_both_agents_would_connect() {
    let sandbox = Sandbox::new();
    let none = sandbox.output(&["doctor", "--json"]);
    assert_eq!(none.status.code(), Some(1));
    let finding: Value = serde_json::from_slice(&none.stdout).unwrap();
    assert_eq!(finding["ok"], false);
    assert!(
        finding["agents"][0]["hint"]
            .as_str()
            .is_some_and(|hint| !hint.is_empty()),
        "{finding}"
    );

    let serving = sandbox.serve();
    let healthy = sandbox.json(&["doctor"]);
    assert_eq!(healthy["ok"], true, "{healthy}");
    assert_eq!(healthy["agents"][0]["target"]["port"], serving.port);
    assert!(!healthy.to_string().contains(&serving.token()), "the token is secret");

    let file = serving
        .files
        .iter()
        .find(|file| file.starts_with(sandbox.path("tmp/gemini")))
        .unwrap();
    let tampered = fs::read_to_string(file)
        .unwrap()
        .replace(&serving.token(), &"0".repeat(64));
    fs::write(file, tampered).unwrap();
    let wrong = sandbox.output(&["doctor", "--json"]);
    let finding: Value = serde_json::from_slice(&wrong.stdout).unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    assert_eq!(finding["agents"][0]["refusal"]["rule"], "tokenRefused", "{finding}");
    assert_eq!(finding["agents"][1]["connects"], true, "{finding}");
}

#[test]
fn doctor_tries_a_program_that_an_agent_would_start() {
    let sandbox = Sandbox::new();
    // Its file for Gemini CLI is where no agent looks.
    let mut command = sandbox.command(&["serve", "--json"]);
    command.env("TMPDIR", sandbox.path("home"));
    let _serving = crate::sandbox::Serving::start(command);
    let workspace = sandbox.workspace();
    let arguments = json!(["mcp-stdio", "--workspace", workspace]).to_string();
    for (program, connects) in [(env!("CARGO_BIN_EXE_alongside"), true), ("false", false)] {
        let mut doctor = sandbox.command(&["doctor", "--json"]);
        let output = doctor
            .env("TERM_PROGRAM", "vscode")
            .env("GEMINI_CLI_IDE_WORKSPACE_PATH", &workspace)
            .env("GEMINI_CLI_IDE_SERVER_STDIO_COMMAND", program)
            .env("GEMINI_CLI_IDE_SERVER_STDIO_ARGS", &arguments)
            .output()
            .unwrap();
        let finding: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(finding["agents"][0]["connects"], connects, "{finding}");
        assert_eq!(output.status.success(), connects);
        if !connects {
            let reason = finding["agents"][0]["reason"].as_str().unwrap();
            assert!(reason.contains("it exited without responding"), "{reason}");
        }
    }
}

/// A front end adds a folder to the workspace: agents in there find the companion from then on.
#[tokio::test]
async fn workspace_change_updates_the_files() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let other = sandbox.path("other folder");
    fs::create_dir(&other).unwrap();
    let mut front_end = serving.front_end(&sandbox).await;
    let folders = Folders {
        folders: vec![sandbox.workspace(), other.clone()],
    };
    front_end.call::<requests::WorkspaceSet>(folders).await.unwrap();
    let expected = format!("{}:{}", sandbox.workspace().display(), other.display());
    for file in &serving.files {
        wait_for("the new workspace", || {
            let content: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
            (workspace_of(&content) == expected.as_str()).then_some(())
        });
    }
    assert_eq!(
        sandbox.json(&["doctor", "--workspace", other.to_str().unwrap()])["ok"],
        true
    );
    let relative = Folders {
        folders: vec!["relative".into()],
    };
    let refused = front_end.call::<requests::WorkspaceSet>(relative).await;
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("absolute path to an existing directory")
    );
}

/// An ignore file that nothing writes to stands for every slow read: opening it waits for a writer.
#[cfg(unix)]
#[tokio::test]
async fn workspace_change_reaches_the_files_while_a_read_hangs() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let folder = sandbox.path("slow");
    fs::create_dir(&folder).unwrap();
    let pipe = folder.join(".geminiignore");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut front_end = serving.front_end(&sandbox).await;
    let folders = Folders {
        folders: vec![folder.clone()],
    };
    front_end.call::<requests::WorkspaceSet>(folders).await.unwrap();
    for file in &serving.files {
        wait_for("the new workspace", || {
            let content: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
            (workspace_of(&content) == json!(folder)).then_some(())
        });
    }
    serving.signal("TERM");
    assert_eq!(serving.wait().0, Some(0));
    assert!(sandbox.discovery_files().is_empty());
}

//! Each package, installed into a directory of its own, used, and removed: nothing stays there, and in the home only what the README
//! lists.
//!
//! `ALONGSIDE_PACKAGES` has the packages; `cargo xtask package --check` makes them.

#![allow(missing_docs, clippy::expect_used, clippy::panic)]

mod archive;
mod deb;
mod npm;
mod registry;
mod vsix;
mod wheel;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use alongside_testing::Sandbox;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn packages() -> PathBuf {
    let directory = std::env::var_os("ALONGSIDE_PACKAGES");
    directory
        .map(PathBuf::from)
        .expect("no packages; run `cargo xtask package --check`")
}

/// A package, whose name has the version in it.
fn package(name: &str) -> PathBuf {
    let path = packages().join(name.replace("VERSION", VERSION));
    assert!(path.is_file(), "{} is missing", path.display());
    path
}

fn sandbox() -> Sandbox {
    let mut sandbox = Sandbox::new("alongside-packages-");
    sandbox.set("LANG", "C.UTF-8");
    sandbox
}

/// Runs a command to its end, and returns what it prints.
fn run(command: &mut Command) -> String {
    let output = command.output().expect("start it");
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).expect("it prints text")
}

fn json(command: &mut Command) -> Value {
    serde_json::from_str(&run(command)).expect("it prints JSON")
}

/// All files below a directory, by their relative paths; links are not followed.
fn files(directory: &Path) -> Vec<PathBuf> {
    fn collect(directory: &Path, base: &Path, found: &mut Vec<PathBuf>) {
        let Ok(entries) = fs::read_dir(directory) else { return };
        for entry in entries {
            let path = entry.expect("read a directory").path();
            if path.is_dir() && !path.is_symlink() {
                collect(&path, base, found);
            } else {
                found.push(path.strip_prefix(base).expect("it is below").to_owned());
            }
        }
    }
    let mut found = Vec::new();
    collect(directory, directory, &mut found);
    found.sort();
    found
}

/// Uses a program as its users do. `started` is what they start, `program` the real program behind it.
fn use_it(sandbox: &Sandbox, started: &Path, program: &Path) {
    let version = run(sandbox.command(started).arg("--version"));
    assert_eq!(version.trim(), format!("alongside {VERSION}"));
    let (home, temporary) = (sandbox.path("home"), sandbox.path("tmp"));
    let before = (entries(&home), entries(&temporary));
    for signal in [Signal::INT, Signal::TERM] {
        serves_until(sandbox, started, signal);
    }
    plugins_start(sandbox, started, program);
    hooks_are_undone(sandbox, started);
    let new = |now: Vec<String>, before: &[String]| -> Vec<String> {
        let new = now.into_iter().filter(|entry| !before.contains(entry));
        // The state of a workspace, which the next companion there continues.
        new.filter(|entry| !entry.starts_with(&format!("{JOURNAL}/"))).collect()
    };
    let expected: Vec<String> = LEFT_IN_HOME.map(str::to_owned).into();
    assert_eq!(new(entries(&home), &before.0), new(expected, &before.0));
    let mut left = new(entries(&temporary), &before.1);
    // npm's command is started with Node.
    left.retain(|entry| !entry.starts_with("node-compile-cache"));
    assert_eq!(left, LEFT_IN_TEMPORARY);
}

const JOURNAL: &str = ".local/state/alongside/journal";

/// What a companion, installations and their removal leave; the README lists it.
const LEFT_IN_HOME: [&str; 12] = [
    ".claude",
    ".claude/ide",
    ".copilot",
    ".copilot/ide",
    ".local",
    ".local/state",
    ".local/state/alongside",
    ".local/state/alongside/companions",
    JOURNAL,
    ".local/state/alongside/sockets",
    ".qwen",
    ".qwen/ide",
];

const LEFT_IN_TEMPORARY: [&str; 6] = [
    "codex-ipc",
    "codex-ipc/alongside.lock",
    "gemini",
    "gemini/ide",
    "qwen",
    "qwen/ide",
];

/// All files and directories below a directory, by their relative paths.
fn entries(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        let Ok(entries) = fs::read_dir(next) else { continue };
        for entry in entries {
            let path = entry.expect("read a directory").path();
            let relative = path.strip_prefix(directory).expect("it is below");
            found.push(relative.to_string_lossy().into_owned());
            if path.is_dir() && !path.is_symlink() {
                directories.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Installs hooks, which change the agents' settings, and undoes everything at once.
fn hooks_are_undone(sandbox: &Sandbox, started: &Path) {
    run(sandbox.command(started).args(["install", "helix", "claude", "gemini"]));
    assert!(sandbox.path("home/.gemini/settings.json").is_file());
    run(sandbox.command(started).args(["uninstall", "--all"]));
}

/// Starts a companion, and stops it with a signal to what was started.
fn serves_until(sandbox: &Sandbox, started: &Path, signal: Signal) {
    command_serves_until(sandbox, sandbox.command(started), started, signal);
}

/// The same with a command that has arguments. `program` reports the state.
fn command_serves_until(sandbox: &Sandbox, mut command: Command, program: &Path, signal: Signal) {
    command.args(["serve", "--json"]).stdout(Stdio::piped());
    let mut child = command.spawn().expect("start the companion");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("it is piped");
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("read what it prints");
    let ready: Value = serde_json::from_str(&line).expect("it prints JSON");
    let announced: Vec<PathBuf> = serde_json::from_value(ready["files"].clone()).expect("it lists its files");
    assert!(
        !announced.is_empty() && announced.iter().all(|file| file.is_file()),
        "{ready}"
    );
    let status = json(sandbox.command(program).args(["status", "--json"]));
    assert_eq!(status["companions"][0]["pid"], ready["pid"], "{status}");
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .expect("it has a PID");
    kill_process(pid, signal).expect("send the signal");
    let status = child.wait().expect("wait for it");
    assert!(status.success(), "{signal:?}: {status}");
    let left: Vec<&PathBuf> = announced.iter().filter(|file| file.exists()).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Installs a plugin: it has the path of the real program, which works on its own, and `--status` says so.
fn plugins_start(sandbox: &Sandbox, started: &Path, program: &Path) {
    run(sandbox.command(started).args(["install", "neovim"]));
    let receipt = "home/.local/share/nvim/site/pack/alongside/start/alongside/.alongside-installed.json";
    let receipt = fs::read(sandbox.path(receipt)).expect("read what the plugin was installed with");
    let receipt: Value = serde_json::from_slice(&receipt).expect("it is JSON");
    let recorded = PathBuf::from(receipt["program"].as_str().expect("it is a path"));
    assert!(
        is_executable(&recorded),
        "{} is not the program itself",
        recorded.display()
    );
    assert_eq!(file(&recorded), file(program), "{}", recorded.display());
    let mut alone = Command::new(&recorded);
    alone.env_clear().arg("--version").stdin(Stdio::null());
    assert_eq!(run(&mut alone).trim(), format!("alongside {VERSION}"));
    serves_until(sandbox, &recorded, Signal::INT);
    let status = json(
        sandbox
            .command(started)
            .args(["install", "neovim", "--status", "--json"]),
    );
    assert_eq!(status["editors"][0]["program"], receipt["program"], "{status}");
    run(sandbox.command(started).args(["uninstall", "neovim"]));
    assert!(!sandbox.path("home/.local/share/nvim/site").exists());
    helix_starts(sandbox, started, program);
}

/// What Helix's configuration starts is the same program, whatever the PATH of the editor is.
fn helix_starts(sandbox: &Sandbox, started: &Path, program: &Path) {
    let bin = started.parent().expect("it is in a directory");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a PATH"));
    // As in an activated virtual environment.
    run(sandbox.command(started).env("PATH", path).args(["install", "helix"]));
    let languages =
        fs::read_to_string(sandbox.path("home/.config/helix/languages.toml")).expect("read what was written");
    let languages: toml::Table = languages.parse().expect("it is TOML");
    let server = &languages["language-server"]["alongside"];
    let text = |value: &toml::Value| value.as_str().expect("it is text").to_owned();
    let mut arguments: Vec<String> = server["args"].as_array().expect("a list").iter().map(text).collect();
    assert_eq!(arguments.pop().as_deref(), Some("lsp"));
    let mut command = Command::new(text(&server["command"]));
    command.args(&arguments).arg("--version").stdin(Stdio::null());
    assert_eq!(
        run(command.env_clear().env("PATH", "/usr/bin:/bin")).trim(),
        format!("alongside {VERSION}")
    );
    let mut command = sandbox.command(text(&server["command"]));
    command.args(&arguments).env("PATH", "/usr/bin:/bin");
    command_serves_until(sandbox, command, started, Signal::INT);
    let status = json(
        sandbox
            .command(started)
            .args(["install", "helix", "--status", "--json"]),
    );
    let found = status["editors"][0]["program"].as_str().expect("it is a path");
    assert_eq!(file(Path::new(found)), file(program), "{status}");
    run(sandbox.command(started).args(["uninstall", "helix"]));
}

/// What is equal for all links to a file.
fn file(path: &Path) -> (u64, u64) {
    let metadata = fs::metadata(path).expect("it exists");
    (metadata.dev(), metadata.ino())
}

/// Whether a file is a program for Linux, not a script that starts one.
fn is_executable(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && &magic == b"\x7fELF"
}

/// The completion scripts and manual pages that a package puts somewhere.
fn has_completions_and_pages(bash: &Path, page: &Path) {
    let script = format!("source '{}' && complete -p alongside", bash.display());
    let complete = run(Command::new("bash").args(["-c", &script]).stdin(Stdio::null()));
    assert!(complete.contains("alongside"), "{complete}");
    assert!(page.is_file(), "{} is missing", page.display());
}

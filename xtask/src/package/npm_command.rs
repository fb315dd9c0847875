//! npm's command, `packaging/npm/alongside.js`, with a script in place of the program.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::Duration;

use super::{copy, output, stage, write};
use crate::{npm, root};

/// Waits until Node is done with the command's code, says whether a read from its stdin blocks, and reads a line.
const PROGRAM: &str = r#"#!/usr/bin/env python3
import os, sys
open(os.environ["DONE"]).read()
print(os.get_blocking(0), flush=True)
print(sys.stdin.readline(), end="", flush=True)
"#;

/// Node runs this before the command's code, and what is in it after that code.
const NODE_IS_DONE: &str = "setImmediate(() => require('node:fs').writeFileSync(process.env.DONE, ''));\n";

/// Node ends instead, as if it had crashed. The program still waits for it.
const NODE_CRASHES: &str = "setImmediate(() => process.kill(process.pid, 'SIGKILL'));\n";

const TIMEOUT: Duration = Duration::from_mins(1);

/// The packages as npm installs them, with that script as the program. Returns the command.
fn install(name: &str) -> PathBuf {
    let package = stage(name).unwrap().join("node_modules/alongside-ide");
    let mut node = Command::new(npm::node());
    node.args(["-p", "`${process.platform}-${process.arch}`"]);
    let platform = String::from_utf8(output(node).unwrap()).unwrap();
    let name = format!("@alongside-ide/{}", platform.trim());
    let program = package.join("node_modules").join(&name).join("bin/alongside");
    write(&program, PROGRAM).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let manifest = format!("{{\"name\": \"alongside-ide\", \"optionalDependencies\": {{\"{name}\": \"0\"}}}}");
    write(&package.join("package.json"), manifest).unwrap();
    let command = package.join("bin/alongside.js");
    copy(&root().join("packaging/npm/alongside.js"), &command).unwrap();
    command
}

/// Node and the program that it starts.
struct Started {
    node: Child,
    stdin: ChildStdin,
    /// What they print. Disconnected once both have ended.
    lines: Receiver<String>,
}

impl Started {
    /// Starts npm's command. Node runs this code before the command's.
    fn new(name: &str, before: &str) -> Self {
        let command = install(name);
        let directory = command.parent().unwrap();
        let (script, done) = (directory.join("before.js"), directory.join("done"));
        write(&script, before).unwrap();
        assert!(Command::new("mkfifo").arg(&done).status().unwrap().success());
        let mut node = Command::new(npm::node());
        node.arg("--require").arg(&script).arg(&command).env("DONE", &done);
        // A group of their own, with which both can be ended.
        node.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut node = node.spawn().unwrap();
        let (stdin, stdout) = (node.stdin.take().unwrap(), node.stdout.take().unwrap());
        let (send, lines) = mpsc::channel();
        // It ends with the programs.
        thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            lines.for_each(|line| drop(send.send(line)));
        });
        Self { node, stdin, lines }
    }

    /// Ends both. The program's parent may have ended already.
    fn kill(&mut self) {
        let group = format!("-{}", self.node.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.node.wait();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // The id of a group that has ended may be another one's.
        if self.lines.try_recv() != Err(TryRecvError::Disconnected) {
            self.kill();
        }
    }
}

/// Node has a file description of a pipe in common with the program: if Node makes it non-blocking, the program's read fails.
#[test]
fn program_behind_npms_command_waits_for_input_from_a_pipe() {
    let mut started = Started::new("npm-command-test", NODE_IS_DONE);
    let printed = |started: &Started| started.lines.recv_timeout(TIMEOUT);
    assert_eq!(printed(&started).as_deref(), Ok("True"), "a read blocks");
    started.stdin.write_all(b"hello\n").unwrap();
    assert_eq!(printed(&started).as_deref(), Ok("hello"));
    assert_eq!(printed(&started), Err(RecvTimeoutError::Disconnected));
    assert!(started.node.wait().unwrap().success());
}

/// Then nothing is printed, and nothing would end the program.
#[test]
fn program_ends_with_a_failed_test_of_npms_command() {
    let mut started = Started::new("npm-command-crash-test", NODE_CRASHES);
    assert!(!started.node.wait().unwrap().success());
    assert_eq!(started.lines.try_recv(), Err(TryRecvError::Empty), "the program waits");
    started.kill();
    assert_eq!(started.lines.recv_timeout(TIMEOUT), Err(RecvTimeoutError::Disconnected));
}

//! npm's command, `packaging/npm/alongside.js`, with a script in place of the program.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

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

/// Node has a file description of a pipe in common with the program: if Node makes it non-blocking, the program's read fails.
#[test]
fn program_behind_npms_command_waits_for_input_from_a_pipe() {
    let command = install("npm-command-test");
    let directory = command.parent().unwrap();
    let (before, done) = (directory.join("before.js"), directory.join("done"));
    write(&before, NODE_IS_DONE).unwrap();
    assert!(Command::new("mkfifo").arg(&done).status().unwrap().success());
    let mut node = Command::new(npm::node());
    node.arg("--require").arg(&before).arg(&command).env("DONE", &done);
    let mut child = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(printed.next().unwrap().unwrap(), "True", "a read blocks");
    stdin.write_all(b"hello\n").unwrap();
    assert_eq!(printed.next().unwrap().unwrap(), "hello");
    assert!(child.wait().unwrap().success());
}

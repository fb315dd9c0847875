//! The sandbox of a test with real agents.

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::Cli;
use crate::programs;

/// See [`alongside_testing::Sandbox`].
pub struct Sandbox(alongside_testing::Sandbox);

impl Deref for Sandbox {
    type Target = alongside_testing::Sandbox;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Sandbox {
    /// Empty directories, settings for both agents, and `gemini`, `qwen` and `alongside` on the PATH.
    pub fn new() -> Self {
        let mut sandbox = alongside_testing::Sandbox::new("alongside-e2e-");
        for name in ["runtime", "bin"] {
            fs::create_dir(sandbox.path(name)).expect("create a directory of the sandbox");
        }
        for name in ["home", "tmp", "runtime", "workspace", "bin"] {
            fs::set_permissions(sandbox.path(name), fs::Permissions::from_mode(0o700)).expect("close it to others");
        }
        sandbox.set_directory("XDG_RUNTIME_DIR", "runtime");
        // The same as the defaults: a stdio companion is started without these variables.
        sandbox.set_directory("XDG_STATE_HOME", "home/.local/state");
        sandbox.set_directory("XDG_CONFIG_HOME", "home/.config");
        sandbox.set("LANG", "C.UTF-8");
        let path = std::env::var("PATH").unwrap_or_default();
        sandbox.set("PATH", format!("{}:{path}", sandbox.path("bin").display()));
        let sandbox = Self(sandbox);
        for cli in [Cli::Gemini, Cli::Qwen] {
            sandbox.write_settings(cli, &sandbox.path("home").join(format!(".{}", cli.command())));
            sandbox.write_command(cli.command(), &cli.start_line());
        }
        sandbox.write_command("alongside", &shell_quoted(&programs::alongside()));
        sandbox
    }

    /// Writes an agent's settings into its settings directory.
    pub fn write_settings(&self, cli: Cli, directory: &Path) {
        let (version, login) = match cli {
            Cli::Gemini => (None, "gemini-api-key"),
            Cli::Qwen => (Some(4), "openai"),
        };
        let mut settings = json!({
            "ide": {"enabled": true, "hasSeenNudge": true},
            "security": {"auth": {"selectedType": login}, "folderTrust": {"enabled": false}},
            "general": {
                "enableAutoUpdate": false,
                "enableAutoUpdateNotification": false,
                "checkpointing": {"enabled": false}
            },
            "privacy": {"usageStatisticsEnabled": false},
            "telemetry": {"enabled": false},
            "ui": {"hideTips": true, "hideBanner": true}
        });
        if let Some(version) = version {
            settings["$version"] = json!(version);
        }
        fs::create_dir_all(directory).expect("create the directory of the settings");
        fs::write(directory.join("settings.json"), settings.to_string()).expect("write the settings");
        if cli == Cli::Gemini {
            // VS Code's terminal triggers this prompt once; it would swallow the first key.
            fs::write(directory.join("state.json"), r#"{"terminalSetupPromptShown":true}"#).expect("write the state");
        }
    }

    /// The default state: no agent is configured to connect to editors.
    #[must_use]
    pub fn without_ide_settings(self) -> Self {
        for cli in [Cli::Gemini, Cli::Qwen] {
            let path = self.path("home").join(format!(".{}/settings.json", cli.command()));
            let text = fs::read_to_string(&path).expect("read the settings");
            let mut settings: Value = serde_json::from_str(&text).expect("settings are JSON");
            settings.as_object_mut().expect("settings are an object").remove("ide");
            fs::write(&path, settings.to_string()).expect("write the settings");
        }
        self
    }

    /// Runs `alongside install` for an agent or an editor.
    pub fn install(&self, name: &str) {
        self.install_with(&[name]);
    }

    /// Runs `alongside install` with these arguments.
    pub fn install_with(&self, arguments: &[&str]) {
        let mut command = self.command(programs::alongside());
        let output = command.arg("install").args(arguments).output();
        let output = output.expect("start alongside");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "alongside install {arguments:?} failed: {text}"
        );
    }

    /// Adds a command to the PATH.
    pub(crate) fn write_command(&self, name: &str, line: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\nexec {line} \"$@\"\n")).expect("write a command");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("make it executable");
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

/// A path quoted as one shell word.
pub(crate) fn shell_quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

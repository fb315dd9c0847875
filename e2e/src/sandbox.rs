//! A home, temporary directories and a workspace for one test, deleted when it ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cli::Cli;
use crate::programs;

/// The directories of one test. Declare it before everything that lives in it, so that it is dropped last.
pub struct Sandbox {
    root: TempDir,
}

impl Sandbox {
    /// Empty directories, settings for both agents, and `gemini`, `qwen` and `alongside` on the PATH.
    pub fn new() -> Self {
        let root = tempfile::Builder::new()
            .prefix("alongside-e2e-")
            .tempdir()
            .expect("create a temporary directory");
        let sandbox = Self { root };
        for name in ["home", "tmp", "runtime", "workspace", "bin"] {
            let directory = sandbox.path(name);
            fs::create_dir(&directory).expect("create a directory of the sandbox");
            fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).expect("close it to others");
        }
        for cli in [Cli::Gemini, Cli::Qwen] {
            sandbox.write_settings(cli, &sandbox.path("home").join(format!(".{}", cli.command())));
            sandbox.write_command(cli.command(), &cli.start_line());
        }
        sandbox.write_command("alongside", &shell_quoted(&programs::alongside()));
        sandbox
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The directory that the editor has open.
    pub fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.workspace().join(name)
    }

    /// Writes a file in the workspace and returns its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        fs::create_dir_all(path.parent().expect("a file has a parent")).expect("create its directory");
        fs::write(&path, text).expect("write a file of the workspace");
        path
    }

    /// The complete environment of a process in the sandbox: only PATH is inherited.
    pub fn environment(&self) -> Vec<(String, String)> {
        let path = std::env::var("PATH").unwrap_or_default();
        let directory = |name: &str| self.path(name).to_string_lossy().into_owned();
        [
            ("HOME", directory("home")),
            ("TMPDIR", directory("tmp")),
            ("XDG_RUNTIME_DIR", directory("runtime")),
            // The same as the defaults: a stdio companion is started without these variables.
            ("XDG_STATE_HOME", directory("home/.local/state")),
            ("XDG_CONFIG_HOME", directory("home/.config")),
            ("PATH", format!("{}:{path}", directory("bin"))),
            ("LANG", "C.UTF-8".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
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

    fn write_command(&self, name: &str, line: &str) {
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

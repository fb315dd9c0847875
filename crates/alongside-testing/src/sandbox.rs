//! A home, a temporary directory and a workspace for one test, deleted when it ends.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The directories and the environment of one test. Declare it before everything that lives in it, so that it is dropped last.
pub struct Sandbox {
    _directory: TempDir,
    root: PathBuf,
    environment: BTreeMap<String, String>,
}

impl Sandbox {
    /// With the empty directories `home`, `tmp` and `workspace`. The environment has `HOME`, `TMPDIR` and the inherited `PATH`.
    pub fn new(prefix: &str) -> Self {
        let directory = tempfile::Builder::new().prefix(prefix).tempdir();
        let directory = directory.expect("create a temporary directory");
        // Programs print paths without symbolic links.
        let root = alongside_platform::path::real(directory.path()).expect("the directory exists");
        let mut sandbox = Self {
            _directory: directory,
            root,
            environment: BTreeMap::new(),
        };
        for name in ["home", "tmp", "workspace"] {
            fs::create_dir(sandbox.path(name)).expect("create a directory of the sandbox");
        }
        sandbox.set("PATH", std::env::var("PATH").unwrap_or_default());
        sandbox.set_directory("HOME", "home");
        sandbox.set_directory("TMPDIR", "tmp");
        sandbox
    }

    /// Sets a variable of the environment.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.environment.insert(name.to_owned(), value.into());
    }

    /// Sets a variable to a path in the sandbox.
    pub fn set_directory(&mut self, name: &str, directory: &str) {
        self.set(name, self.path(directory).to_string_lossy());
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
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
        write(&path, text);
        path
    }

    /// Writes alongside's settings.
    pub fn write_config(&self, text: &str) {
        write(&self.path("home/.config/alongside/config.toml"), text);
    }

    /// The complete environment of a process in the sandbox.
    pub fn environment(&self) -> Vec<(String, String)> {
        self.environment.clone().into_iter().collect()
    }

    /// A program in the workspace, with only this environment and without input.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.workspace())
            .env_clear()
            .envs(&self.environment)
            .stdin(Stdio::null());
        command
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a file has a parent")).expect("create its directory");
    fs::write(path, text).expect("write a file of the sandbox");
}

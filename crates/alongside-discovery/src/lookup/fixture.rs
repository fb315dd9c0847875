//! A fake machine for the lookup tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use alongside_core::dialect::McpAgent;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Lookup, LookupFailure, gemini, qwen};
use crate::process::ProcessTable;
use crate::{Environment, Platform};

/// PIDs that are alive in every fixture.
pub(super) const ALIVE: [u32; 3] = [500, 600, 700];
pub(super) const FOREIGN: u32 = 800;
pub(super) const DEAD: u32 = 424_242;
pub(super) const BOTH: [McpAgent; 2] = [McpAgent::Gemini, McpAgent::Qwen];

/// A fake machine: a home, a temporary directory, a project, some processes.
pub(super) struct Fixture {
    pub(super) directory: TempDir,
    pub(super) environment: Environment,
    pub(super) processes: ProcessTable,
}

impl Fixture {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = alongside_platform::path::real(directory.path()).unwrap();
        for name in ["project/src", "other", "tmp/gemini/ide", "home/.qwen/ide"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let environment = Environment {
            platform: Platform::Unix,
            pid: 100,
            ..Environment::new(root.join("home"), root.join("project"))
        };
        let environment = environment.with("TMPDIR", root.join("tmp").to_str().unwrap());
        let processes = ALIVE
            .iter()
            .fold(ProcessTable::default(), |table, pid| table.with(*pid, 1, "editor"));
        Self {
            directory,
            environment,
            processes: processes
                .with_foreign(FOREIGN)
                .with(100, 50, "node")
                .with(50, 40, "bash")
                .with(40, 30, "tmux"),
        }
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.environment = self.environment.with(name, value);
        self
    }

    pub(super) fn path(&self, below: &str) -> PathBuf {
        alongside_platform::path::real(self.directory.path())
            .unwrap()
            .join(below)
    }

    /// The JSON of a typical discovery file.
    pub(super) fn file(&self, port: u16, pid: u32) -> Value {
        json!({
            "port": port,
            "workspacePath": self.path("project"),
            "authToken": format!("token-{port}"),
            "ideInfo": { "name": "neovim", "displayName": "Neovim" },
            "ppid": pid,
        })
    }

    /// Writes a file where an agent looks.
    pub(super) fn put(&self, agent: McpAgent, port: u16, pid: u32, contents: &Value) -> PathBuf {
        let path = match agent {
            McpAgent::Gemini => self.path(&format!("tmp/gemini/ide/gemini-ide-server-{pid}-{port}.json")),
            McpAgent::Qwen => self.path(&format!("home/.qwen/ide/{port}.lock")),
        };
        put_at(&path, contents);
        path
    }

    pub(super) fn lookup(&self, agent: McpAgent) -> Lookup {
        self.look_from(agent, "project")
    }

    pub(super) fn look_from(&self, agent: McpAgent, below: &str) -> Lookup {
        let here = self.path(below);
        match agent {
            McpAgent::Gemini => gemini(&self.environment, &self.processes, &here),
            McpAgent::Qwen => qwen(&self.environment, &self.processes, &here),
        }
    }
}

/// Writes a file that is newer than all earlier ones.
pub(super) fn put_at(path: &Path, contents: &Value) {
    let count = fs::read_dir(path.parent().unwrap()).unwrap().count();
    fs::write(path, contents.to_string()).unwrap();
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + 10 * u64::try_from(count).unwrap());
    fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(modified)
        .unwrap();
}

pub(super) fn without(mut file: Value, key: &str) -> Value {
    file.as_object_mut().unwrap().remove(key);
    file
}

pub(super) fn with(mut file: Value, key: &str, value: impl Into<Value>) -> Value {
    file[key] = value.into();
    file
}

pub(super) fn ports(lookup: &Lookup) -> Vec<u16> {
    lookup.targets().map(|target| target.port).collect()
}

pub(super) fn tokens(lookup: &Lookup) -> Vec<Option<&str>> {
    lookup
        .targets()
        .map(|target| target.token.as_ref().map(alongside_core::Secret::reveal))
        .collect()
}

pub(super) fn display_name(lookup: &Lookup) -> Option<&str> {
    lookup.identity.as_ref().map(|identity| identity.display_name.as_str())
}

pub(super) fn failure(lookup: &Lookup) -> &LookupFailure {
    lookup.failure().unwrap_or_else(|| panic!("{:?}", lookup.outcome))
}

pub(super) fn shown(lookup: &Lookup) -> String {
    failure(lookup).agent_message().unwrap()
}

pub(super) fn is_not_supported(lookup: &Lookup) -> bool {
    shown(lookup).starts_with("IDE integration is not supported in your current environment.")
}

//! The records of running companions, by which commands find them.

use std::fs;
use std::path::{Path, PathBuf};

use alongside_core::Secret;
use alongside_core::dialect::DIALECTS;
use alongside_core::printable::printable_line;
use alongside_discovery::process::{Alive, Processes, StartStamp, SystemProcesses};
use alongside_discovery::{Announcement, Environment, LastUse};
use alongside_front::client::{Client, ClientError};
use alongside_platform::path::{is_in, real_or_same};
use alongside_platform::{Platform, unless_held};
use alongside_protocol::Hello;
use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};

use crate::places::{Places, write_private};

/// What a companion writes about itself, for the commands of the same user.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompanionRecord {
    pub pid: u32,
    /// When that process started, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started: Option<StartStamp>,
    /// The agents' port.
    pub port: u16,
    /// The agents' token.
    token: Secret,
    /// The front ends' port.
    front_port: u16,
    /// The front ends' token.
    front_token: Secret,
    pub workspace: Vec<PathBuf>,
    /// Other paths of the folders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<PathBuf>,
    name: String,
    pub display_name: String,
    /// The editor's process, or the companion's own.
    pub editor_pid: u32,
    /// Written when it changes which companion agents find, not with every use.
    #[serde(default)]
    pub last_use: LastUse,
    /// Whether it serves one command only, and stops with it. Others should not use it.
    #[serde(default)]
    pub is_private: bool,
    #[serde(skip)]
    path: PathBuf,
}

impl CompanionRecord {
    /// Writes the record of this process.
    pub fn write(
        places: &Places,
        announcement: &Announcement,
        front_port: u16,
        front_token: &Secret,
        is_private: bool,
    ) -> Result<Self> {
        let pid = std::process::id();
        let record = Self {
            pid,
            started: StartStamp::of(pid),
            port: announcement.port,
            token: announcement.token.clone(),
            front_port,
            front_token: front_token.clone(),
            workspace: announcement.workspace.clone(),
            aliases: announcement.aliases.clone(),
            name: announcement.name.clone(),
            display_name: announcement.display_name.clone(),
            editor_pid: announcement.pid,
            last_use: announcement.last_use,
            is_private,
            path: places.companions().join(format!("{pid}.json")),
        };
        record.save()?;
        Ok(record)
    }

    pub fn set_workspace(&mut self, workspace: &[PathBuf], aliases: &[PathBuf]) {
        self.workspace = workspace.to_vec();
        self.aliases = aliases.to_vec();
        self.save_or_log();
    }

    pub fn set_last_use(&mut self, last_use: LastUse) {
        if std::mem::replace(&mut self.last_use, last_use) != last_use {
            self.save_or_log();
        }
    }

    fn save_or_log(&self) {
        if let Err(error) = self.save() {
            tracing::error!(%error, "cannot write the companion's record; commands may not find it");
        }
    }

    pub fn remove(&self) {
        // It may have been removed by hand.
        let _ = unless_held(|| fs::remove_file(&self.path));
    }

    pub async fn connect(&self, watch: bool) -> Result<Client, ClientError> {
        let hello = Hello {
            watch,
            ..Hello::new("alongside")
        };
        self.connect_as(hello).await
    }

    pub async fn connect_as(&self, hello: Hello) -> Result<Client, ClientError> {
        Ok(Client::connect_as(self.front_port, &self.front_token, hello).await?.0)
    }

    /// Where agents that need a socket connect.
    fn socket(&self) -> Option<PathBuf> {
        let state = self.path.parent()?.parent()?;
        let socket = state.join("sockets").join(crate::sockets::name_of(self.pid));
        socket.exists().then_some(socket)
    }

    /// What was announced to agents.
    pub fn announcement(&self) -> Announcement {
        Announcement {
            port: self.port,
            token: self.token.clone(),
            workspace: self.workspace.clone(),
            name: self.name.clone(),
            display_name: self.display_name.clone(),
            pid: self.editor_pid,
            last_use: self.last_use,
            aliases: self.aliases.clone(),
            socket: self.socket(),
            // Only the companion itself knows, and no other program writes its files.
            directories: Vec::new(),
            sorts_by_pid: false,
            is_first: false,
        }
    }

    pub fn has_editor(&self) -> bool {
        self.editor_pid != self.pid
    }

    /// Whether an agent in a directory could find it.
    pub fn serves(&self, directory: &Path) -> bool {
        self.workspace
            .iter()
            .any(|folder| is_in(Platform::current(), folder, directory))
    }

    /// Whether the companion that wrote it is running: its PID may belong to another program now.
    fn is_current(&self) -> bool {
        let is_reused = || {
            let now = StartStamp::of(self.pid);
            self.started.is_some() && now.is_some() && now != self.started
        };
        SystemProcesses::default().is_alive(self.pid) != Alive::No && !is_reused()
    }

    fn save(&self) -> Result<()> {
        let text = serde_json::to_vec(self)?;
        write_private(&self.path, &text).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// The records of all live companions; those of dead ones are removed.
pub fn all(places: &Places) -> Vec<CompanionRecord> {
    let Ok(entries) = fs::read_dir(places.companions()) else {
        return Vec::new();
    };
    let mut records: Vec<CompanionRecord> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|is| is == "json"))
        .filter_map(|path| {
            let record: CompanionRecord = match serde_json::from_slice(&fs::read(&path).ok()?) {
                Ok(record) => record,
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "ignoring an invalid companion record");
                    return None;
                }
            };
            if !record.is_current() {
                let _ = unless_held(|| fs::remove_file(&path));
                return None;
            }
            Some(CompanionRecord { path, ..record })
        })
        .collect();
    records.sort_by_key(|record| record.pid);
    records
}

/// The companion that agents find from a directory: the one that this terminal's variables name, else the most recently used.
pub fn nearest(places: &Places, directory: &Path) -> Option<CompanionRecord> {
    nearest_of(places, directory, |_| true)
}

/// The same, without the private companions of other commands.
pub fn nearest_shared(places: &Places, directory: &Path) -> Option<CompanionRecord> {
    nearest_of(places, directory, |record| !record.is_private)
}

fn nearest_of(
    places: &Places,
    directory: &Path,
    is_wanted: impl Fn(&CompanionRecord) -> bool,
) -> Option<CompanionRecord> {
    let directory = real_or_same(directory);
    let named = ports_of_terminal(&Environment::current());
    all(places)
        .into_iter()
        .filter(|record| record.serves(&directory) && is_wanted(record))
        .max_by_key(|record| (named.contains(&record.port), record.last_use, record.pid))
}

/// The ports that this terminal's variables name; set by an editor or `alongside run`.
pub fn ports_of_terminal(environment: &Environment) -> Vec<u16> {
    DIALECTS
        .iter()
        .filter_map(|dialect| environment.variable(dialect.search?.variables().port)?.parse().ok())
        .collect()
}

/// Connects to the nearest companion, or returns an error that says how to start one.
pub async fn connect_nearest(directory: &Path) -> Result<Client> {
    let record = nearest_or_error(&Places::of_user()?, directory)?;
    Ok(record.connect(false).await?)
}

/// The nearest companion, or an error that says how to start one.
pub fn nearest_or_error(places: &Places, directory: &Path) -> Result<CompanionRecord> {
    nearest(places, directory).ok_or_else(|| no_companion(places, directory))
}

fn no_companion(places: &Places, directory: &Path) -> anyhow::Error {
    let others: Vec<String> = all(places)
        .iter()
        .flat_map(|record| {
            record
                .workspace
                .iter()
                .map(|folder| printable_line(&folder.to_string_lossy()))
        })
        .collect();
    let directory = printable_line(&directory.to_string_lossy());
    if others.is_empty() {
        anyhow!("no companion is running for {directory}; run `alongside` there to start one")
    } else {
        anyhow!(
            "no companion is running for {directory}; run `alongside` there to start one, or pick one of these with --workspace: {}",
            others.join(", ")
        )
    }
}

#[cfg(test)]
impl CompanionRecord {
    /// A record for tests, of an editor's companion.
    pub fn sample(pid: u32, folder: &str, last_use: LastUse) -> Self {
        Self {
            pid,
            started: StartStamp::of(pid),
            port: 1,
            token: Secret::from_bytes([1; 32]),
            front_port: 2,
            front_token: Secret::from_bytes([2; 32]),
            workspace: vec![PathBuf::from(folder)],
            aliases: Vec::new(),
            name: "neovim".to_owned(),
            display_name: "Neovim".to_owned(),
            editor_pid: pid + 1,
            last_use,
            is_private: false,
            path: PathBuf::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The only record there is, of this process.
    fn saved_record(scratch: &tempfile::TempDir) -> (Places, CompanionRecord) {
        let places = crate::test_companion::places(scratch);
        let mut record = CompanionRecord::sample(std::process::id(), "/a", LastUse::default());
        record.path = places.companions().join("1.json");
        record.save().unwrap();
        assert_eq!(all(&places).len(), 1);
        (places, record)
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn record_of_a_reused_pid_is_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let (places, mut record) = saved_record(&scratch);
        // As if this PID had belonged to a companion that started when the first process did.
        record.started = StartStamp::of(1);
        record.save().unwrap();
        assert!(all(&places).is_empty());
        assert!(!record.path.exists());
    }

    #[test]
    fn command_announces_the_other_paths_of_a_folder_too() {
        let scratch = tempfile::tempdir().unwrap();
        let (places, mut record) = saved_record(&scratch);
        record.set_workspace(&["/a".into()], &["/z/a".into()]);
        let announcement = all(&places)[0].announcement();
        assert_eq!(announcement.workspace, [PathBuf::from("/a")]);
        assert_eq!(announcement.aliases, [PathBuf::from("/z/a")]);
    }

    #[test]
    fn record_with_an_invalid_token_is_ignored() {
        let scratch = tempfile::tempdir().unwrap();
        let (places, record) = saved_record(&scratch);
        let text = fs::read_to_string(&record.path).unwrap();
        for token in ["token", "frontToken"] {
            let mut broken: serde_json::Value = serde_json::from_str(&text).unwrap();
            for invalid in ["", "abc", "zz"] {
                broken[token] = invalid.into();
                fs::write(&record.path, broken.to_string()).unwrap();
                assert!(all(&places).is_empty(), "{token}: {invalid:?}");
            }
        }
    }
}

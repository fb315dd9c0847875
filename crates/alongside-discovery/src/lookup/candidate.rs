//! One discovery file that an agent considers, and what the agent does with it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;

use super::workspace::{Validator, WorkspaceMatch};
use crate::document::{self, Document, WorkspacePath};
use crate::process::{Alive, Processes};

/// A discovery file as an agent sees it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    pub path: PathBuf,
    /// How the agent found it.
    pub source: Source,
    /// The owner's user ID, where the platform has one.
    pub owner: Option<u32>,
    pub owner_is_us: bool,
    /// Its permissions, such as `0o600`. Neither agent checks them, but other users could read an open file.
    pub mode: Option<u32>,
    /// The mtime, which Qwen Code sorts by.
    pub modified: Option<SystemTime>,
    /// The PID in its name, or its `ppid`.
    pub pid: Option<u64>,
    pub alive: Option<Alive>,
    /// Its content; `None` if it is unreadable or not JSON.
    pub fields: Option<Fields>,
    /// How its workspace relates to the working directory.
    pub workspace: Option<WorkspaceMatch>,
    pub verdict: CandidateStatus,
    #[serde(skip)]
    pub(super) document: Option<Document>,
}

/// The fields of a discovery file that are safe to show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fields {
    /// The port, as written.
    pub port: Option<String>,
    pub workspace_path: Option<String>,
    pub has_token: bool,
    pub name: Option<String>,
    pub display_name: Option<String>,
    /// Whether it has a command to start instead of a port.
    pub has_stdio: bool,
    /// The program that wrote it, if it has a `companion` key like ours.
    pub companion: Option<String>,
}

/// How an agent found a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// By listing the directory.
    Listing,
    /// By the port in the port variable.
    PortVariable,
    /// By the legacy name with the editor's PID.
    LegacyPid,
    /// By the legacy name with the port from the port variable.
    LegacyPort,
}

/// What an agent does with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CandidateStatus {
    /// The agent uses it.
    Chosen,
    /// The agent uses it only to report that the directory does not match.
    ChosenDespiteMismatch,
    /// Valid, but another was preferred; it is not tried even if that one does not respond.
    LostTie,
    /// Tried if the ones before it do not respond.
    TriedLater,
    /// Owned by another user.
    Foreign,
    /// Unreadable, or not a JSON object.
    Unreadable,
    /// Its workspace does not contain the working directory.
    Outside,
    /// It has no `workspacePath`.
    WithoutWorkspace,
    /// Its `workspacePath` is empty.
    WithoutFolder,
    /// The agent deletes it because its `ppid` is dead.
    DeletedParentGone,
    /// The agent deletes it because its `ppid` belongs to another user.
    DeletedParentForeign,
    /// The agent deletes it because it has no `ppid` and its whole `workspacePath` is not an existing path.
    DeletedWorkspaceGone,
    /// The agent's own code throws on it, which aborts the whole lookup.
    Fails,
}

impl CandidateStatus {
    pub fn is_deletion(self) -> bool {
        self.deletion_reason().is_some()
    }

    pub fn deletion_reason(self) -> Option<&'static str> {
        match self {
            Self::DeletedParentGone => Some("its `ppid` is not a running process"),
            Self::DeletedParentForeign => Some("its `ppid` belongs to another user"),
            Self::DeletedWorkspaceGone => {
                Some("it has no `ppid`, and its `workspacePath`, read as one path, does not exist")
            }
            _ => None,
        }
    }
}

impl fmt::Display for CandidateStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(reason) = self.deletion_reason() {
            return write!(formatter, "deleted by the agent: {reason}");
        }
        formatter.write_str(match self {
            Self::Chosen => "chosen",
            Self::ChosenDespiteMismatch => "chosen as a fallback, although its workspace is elsewhere",
            Self::LostTie => "usable, but another one ranks higher",
            Self::TriedLater => "tried if the ones before it do not respond",
            Self::Foreign => "ignored: owned by another user",
            Self::Unreadable => "ignored: unreadable or not a JSON object",
            Self::Outside => "skipped: its workspace does not contain the working directory",
            Self::WithoutWorkspace => "skipped: it has no workspace",
            Self::WithoutFolder => "skipped: its editor has no folder open",
            Self::Fails => "breaks the agent's search: its `workspacePath` is not a string or cannot be resolved",
            Self::DeletedParentGone | Self::DeletedParentForeign | Self::DeletedWorkspaceGone => "deleted by the agent",
        })
    }
}

impl Candidate {
    /// Inspects a file; `None` if it does not exist.
    pub(super) fn inspect(
        path: PathBuf,
        source: Source,
        pid_in_name: Option<u64>,
        validator: &Validator<'_>,
        processes: &dyn Processes,
    ) -> Option<Self> {
        fs::symlink_metadata(&path).ok()?;
        let metadata = fs::metadata(&path).ok();
        let document = document::read_text(&path).and_then(|(_, text)| Document::parse(&text));
        let (owner, mode) = metadata.as_ref().map_or((None, None), owner_and_mode);
        let pid = pid_in_name.or_else(|| document.as_ref()?.parent().and_then(document::to_pid));
        let workspace = document.as_ref().map(|document| {
            if document.is_null() {
                WorkspaceMatch::Fails
            } else {
                validator.compare(&document.workspace_path())
            }
        });
        Some(Self {
            source,
            owner,
            owner_is_us: owner.is_none() || owner == validator.environment.uid,
            mode,
            modified: metadata.and_then(|metadata| metadata.modified().ok()),
            pid,
            alive: pid.map(|pid| is_alive(processes, pid)),
            fields: document.as_ref().map(fields),
            verdict: match workspace {
                None => CandidateStatus::Unreadable,
                Some(WorkspaceMatch::Contains) => CandidateStatus::LostTie,
                Some(WorkspaceMatch::Outside(_)) => CandidateStatus::Outside,
                Some(WorkspaceMatch::Missing) => CandidateStatus::WithoutWorkspace,
                Some(WorkspaceMatch::Empty) => CandidateStatus::WithoutFolder,
                Some(WorkspaceMatch::Fails) => CandidateStatus::Fails,
            },
            workspace,
            document,
            path,
        })
    }

    pub(super) fn contains(&self) -> bool {
        self.workspace == Some(WorkspaceMatch::Contains)
    }

    /// What Qwen Code's cleanup would do with it: any error from `kill`, even a permission error, counts as dead.
    pub(super) fn deletion(&self, working_directory: &Path) -> Option<CandidateStatus> {
        let document = self.document.as_ref()?;
        if document.parent().is_some() {
            return match self.alive {
                Some(Alive::Yes) => None,
                Some(Alive::YesButForeign) => Some(CandidateStatus::DeletedParentForeign),
                Some(Alive::No) | None => Some(CandidateStatus::DeletedParentGone),
            };
        }
        let exists = match document.workspace_path() {
            WorkspacePath::Text(text) => working_directory.join(text).exists(),
            WorkspacePath::Missing | WorkspacePath::Other => false,
        };
        (document.has_workspace_path() && !exists).then_some(CandidateStatus::DeletedWorkspaceGone)
    }
}

fn is_alive(processes: &dyn Processes, pid: u64) -> Alive {
    u32::try_from(pid).map_or(Alive::No, |pid| processes.is_alive(pid))
}

fn fields(document: &Document) -> Fields {
    let (name, display_name) = document.ide_info().unzip();
    Fields {
        port: document.raw_port().map(document::to_text),
        workspace_path: match document.workspace_path() {
            WorkspacePath::Text(text) => Some(text),
            WorkspacePath::Missing | WorkspacePath::Other => None,
        },
        has_token: document.token().is_some_and(|token| !token.is_empty()),
        name,
        display_name,
        has_stdio: document.stdio().is_some(),
        companion: document.text("companion").map(str::to_owned),
    }
}

#[cfg(unix)]
fn owner_and_mode(metadata: &fs::Metadata) -> (Option<u32>, Option<u32>) {
    use std::os::unix::fs::MetadataExt;

    (Some(metadata.uid()), Some(metadata.mode() & 0o7777))
}

#[cfg(not(unix))]
fn owner_and_mode(_metadata: &fs::Metadata) -> (Option<u32>, Option<u32>) {
    (None, None)
}

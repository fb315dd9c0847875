//! Why an agent does not connect: one variant per rule that stops it.
//!
//! Each has the reason ([`Display`](std::fmt::Display)), the next step ([`LookupFailure::hint`]), and the agent's own
//! message ([`LookupFailure::agent_message`]), which is often the same for different reasons.

use std::path::{Path, PathBuf};

use alongside_core::dialect::{Dialect, McpAgent};
use serde::Serialize;
use thiserror::Error;

use super::candidate::CandidateStatus;
use crate::terminal::DIALS_HERE_IN_A_CONTAINER;

/// Why an agent does not connect.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize)]
#[serde(tag = "rule", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum LookupFailure {
    #[error("{} found no discovery file in {}", name(*agent), directory.display())]
    NoDiscoveryFile { agent: McpAgent, directory: PathBuf },
    #[error("{} ignores {} because another user owns it", name(*agent), path.display())]
    ForeignFile { agent: McpAgent, path: PathBuf },
    #[error("{} ignores {} because it is unreadable or not a JSON object", name(*agent), path.display())]
    UnreadableFile { agent: McpAgent, path: PathBuf },
    #[error(
        "{} does not recognize this terminal, and {} has no `ideInfo` to identify the editor",
        name(*agent), path.display()
    )]
    NoIdentity { agent: McpAgent, path: PathBuf },
    #[error(
        "the search by {} aborts at {}: its `workspacePath` is not a string or cannot be resolved",
        name(*agent), path.display()
    )]
    SearchFails { agent: McpAgent, path: PathBuf },
    /// Every file is for another directory, so none identifies the editor.
    #[error(
        "{} was started outside the workspace of {}: {}",
        name(*agent), path.display(), folders(roots)
    )]
    WorkspaceElsewhere {
        agent: McpAgent,
        path: PathBuf,
        roots: Vec<PathBuf>,
    },
    #[error("{} skips {} because that editor has no folder open", name(*agent), path.display())]
    FileWithoutFolder { agent: McpAgent, path: PathBuf },
    #[error("{} skips {} because it has no workspace", name(*agent), path.display())]
    FileWithoutWorkspace { agent: McpAgent, path: PathBuf },
    #[error("{} deletes {}: {}", name(*agent), path.display(), verdict.deletion_reason().unwrap_or_default())]
    FileDeleted {
        agent: McpAgent,
        path: PathBuf,
        verdict: CandidateStatus,
    },
    #[error("{} found no workspace: no usable discovery file has one, and {variable} is not set", name(*agent))]
    NoWorkspace {
        agent: McpAgent,
        /// The variable that could have set a workspace.
        variable: &'static str,
    },
    #[error("{} found a companion, but its editor has no folder open", name(*agent))]
    EmptyWorkspace { agent: McpAgent },
    #[error(
        "{} was started in {}, which is outside the workspace: {}",
        name(*agent), working_directory.display(), folders(roots)
    )]
    DirectoryMismatch {
        agent: McpAgent,
        working_directory: PathBuf,
        roots: Vec<PathBuf>,
    },
    /// All companions' workspaces are elsewhere, and no variable leads to another companion.
    #[error("{} found companions, but none whose workspace contains {}", name(*agent), working_directory.display())]
    EveryWorkspaceElsewhere {
        agent: McpAgent,
        working_directory: PathBuf,
    },
    #[error("{} has no port to connect to: neither the discovery file nor {variable} has a valid one", name(*agent))]
    NothingToDial {
        agent: McpAgent,
        /// The editor the agent detected.
        display_name: String,
        /// The variable that could have set a port.
        variable: &'static str,
    },
    /// In a container the agent connects to the container's host.
    #[error(
        "{} detects a container and connects to port {port} on the host instead of in the container",
        name(*agent)
    )]
    ContainersHost {
        agent: McpAgent,
        port: u16,
        /// The editor the agent detected.
        display_name: String,
    },
    /// No companion responds on the ports that the agent tries.
    #[error("{}", no_response(*agent, display_name, *port, path.as_deref(), hidden))]
    NobodyListens {
        agent: McpAgent,
        /// The first port the agent tries.
        port: Option<u16>,
        /// The editor the agent detected.
        display_name: String,
        /// The file with the port.
        path: Option<PathBuf>,
        /// Files of possibly running companions that this file hides from the agent.
        hidden: Vec<PathBuf>,
    },
    #[error(
        "the companion on port {port} refused {} from {}",
        if *was_sent { "the token" } else { "a request without a token" }, name(*agent)
    )]
    TokenRefused {
        agent: McpAgent,
        port: u16,
        /// The editor the agent detected.
        display_name: String,
        /// The file with the token, if it comes from one.
        path: Option<PathBuf>,
        was_sent: bool,
    },
}

impl LookupFailure {
    pub fn hint(&self) -> String {
        match self {
            Self::NoDiscoveryFile { agent, .. } => {
                let place = match agent {
                    McpAgent::Gemini => "TMPDIR",
                    McpAgent::Qwen => "HOME and QWEN_HOME",
                };
                format!(
                    "Start the companion before {}, with the same {place} for both.",
                    name(*agent)
                )
            }
            Self::ForeignFile { .. } => {
                "Run the editor and the agent as the same user, or start the agent with `alongside run`.".to_owned()
            }
            Self::UnreadableFile { path, .. } | Self::SearchFails { path, .. } => {
                format!("Remove {} and restart its companion.", path.display())
            }
            Self::NoIdentity { .. } => {
                "A different companion wrote this file. Update that companion, or start the agent in that editor's own terminal."
                    .to_owned()
            }
            Self::WorkspaceElsewhere { roots, .. } | Self::DirectoryMismatch { roots, .. } => {
                format!("Start the agent in {}, or open the agent's directory in the editor.", folders(roots))
            }
            Self::EveryWorkspaceElsewhere { .. } => {
                "Start the agent inside a folder that is open in the editor, or open the agent's directory in the editor.".to_owned()
            }
            Self::FileWithoutFolder { .. } | Self::EmptyWorkspace { .. } => {
                "Open a folder in the editor and restart the agent.".to_owned()
            }
            Self::FileWithoutWorkspace { .. } => {
                "Set QWEN_CODE_IDE_SERVER_PORT to the companion's port, or update that companion.".to_owned()
            }
            Self::FileDeleted { .. } => {
                "Restart the companion from a running editor, as the same user and not inside a different container.".to_owned()
            }
            Self::NoWorkspace { .. } => {
                "Start the companion, then run /ide enable again; `alongside doctor` lists what happened to each file.".to_owned()
            }
            Self::NothingToDial { .. } => "Restart the companion so that it rewrites its discovery file.".to_owned(),
            Self::ContainersHost { .. } => {
                let [_, variable, _] = DIALS_HERE_IN_A_CONTAINER;
                format!("Set {variable}=1 for the agent, or start it with `alongside run`, which does that for you.")
            }
            Self::NobodyListens { path, .. } => match path {
                Some(path) => format!("Remove {}; its companion is no longer running.", path.display()),
                None => "Unset the port variable, or start the companion in the editor this terminal belongs to.".to_owned(),
            },
            Self::TokenRefused {
                path: Some(path),
                was_sent: true,
                ..
            } => format!(
                "Remove {}; its token does not match the running companion.",
                path.display()
            ),
            Self::TokenRefused { .. } => {
                "Let the agent find the companion through its discovery file, or start the agent with `alongside run`.".to_owned()
            }
        }
    }

    /// What the agent prints for `/ide status` or `/ide enable`, without its colored prefix. `None` where it does not
    /// get as far as printing anything.
    pub fn agent_message(&self) -> Option<String> {
        Some(match self {
            Self::NoDiscoveryFile { agent, .. }
            | Self::ForeignFile { agent, .. }
            | Self::UnreadableFile { agent, .. }
            | Self::NoIdentity { agent, .. }
            | Self::WorkspaceElsewhere { agent, .. }
            | Self::FileWithoutFolder { agent, .. }
            | Self::FileWithoutWorkspace { agent, .. }
            | Self::FileDeleted { agent, .. } => not_supported(*agent),
            Self::SearchFails { .. } => return None,
            Self::NoWorkspace { .. } => {
                "Failed to connect to IDE companion extension. Please ensure the extension is running. \
                 To install the extension, run /ide install."
                    .to_owned()
            }
            Self::EmptyWorkspace { .. } => {
                "To use this feature, please open a workspace folder in your IDE and try again.".to_owned()
            }
            Self::DirectoryMismatch { agent, roots, .. } => format!(
                "Directory mismatch. {} is running in a different location than the open workspace in the IDE. \
                 Please run the CLI from one of the following directories: {}",
                name(*agent),
                list(roots)
            ),
            Self::EveryWorkspaceElsewhere { agent, .. } => format!(
                "Found IDE companion extension, but its workspace does not match the current directory. \
                 Run {} from the workspace open in your IDE, or switch the IDE to this project.",
                name(*agent)
            ),
            Self::NothingToDial { display_name, .. } => failed_to_connect(display_name),
            Self::ContainersHost {
                agent, display_name, ..
            }
            | Self::NobodyListens {
                agent, display_name, ..
            } => after_dialling(*agent, display_name, "fetch failed"),
            Self::TokenRefused {
                agent, display_name, ..
            } => after_dialling(
                *agent,
                display_name,
                "Streamable HTTP error: Error POSTing to endpoint: Unauthorized",
            ),
        })
    }
}

fn name(agent: McpAgent) -> &'static str {
    Dialect::of(agent.into()).display_name
}

fn list(roots: &[PathBuf]) -> String {
    let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
    roots.join(", ")
}

/// The list for our own messages, which must not be empty.
fn folders(roots: &[PathBuf]) -> String {
    if roots.is_empty() {
        "a folder with an absolute path (it has none)".to_owned()
    } else {
        list(roots)
    }
}

fn no_response(
    agent: McpAgent,
    display_name: &str,
    port: Option<u16>,
    path: Option<&Path>,
    hidden: &[PathBuf],
) -> String {
    let agent = name(agent);
    let port = port.map_or_else(|| "its port".to_owned(), |port| format!("port {port}"));
    match path {
        Some(path) if !hidden.is_empty() => format!(
            "a stale discovery file from {display_name}, {}, hides the live one: {agent} connects to {port}, where nothing is listening, and does not try another",
            path.display()
        ),
        Some(path) => format!(
            "{agent} uses {} and connects to {port}, where nothing is listening",
            path.display()
        ),
        None => format!("{agent} connects to {port}, where nothing is listening"),
    }
}

fn not_supported(agent: McpAgent) -> String {
    let editors = match agent {
        McpAgent::Gemini => "Antigravity, VS Code, or VS Code forks",
        McpAgent::Qwen => "VS Code or VS Code forks",
    };
    format!(
        "IDE integration is not supported in your current environment. To use this feature, run {} in one of these \
         supported IDEs: {editors}.",
        name(agent)
    )
}

fn failed_to_connect(display_name: &str) -> String {
    format!(
        "Failed to connect to IDE companion extension in {display_name}. Please ensure the extension is running. \
         To install the extension, run /ide install."
    )
}

/// Gemini CLI always prints the same message; Qwen Code prints its transport's first error.
fn after_dialling(agent: McpAgent, display_name: &str, detail: &str) -> String {
    match agent {
        McpAgent::Gemini => failed_to_connect(display_name),
        McpAgent::Qwen => format!(
            "IDE connection error. The connection was lost unexpectedly. Please try reconnecting by running /ide enable\n\
             {detail}"
        ),
    }
}

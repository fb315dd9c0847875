//! What differs between agents, as data.
//!
//! There are two tables. [`DIALECTS`] has a row for each agent CLI that looks for a companion: the directories and names of its
//! discovery files, and its environment variables. [`ClientDialect`] has a row for each way in which MCP clients read the
//! response to `closeDiff`. Another agent is another row.

use serde::{Deserialize, Serialize};

use crate::session::AgentIdentity;

/// An agent CLI that looks for a companion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    Gemini,
    Qwen,
}

/// One row of [`DIALECTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    pub kind: AgentKind,
    pub display_name: &'static str,
    /// The command that starts it.
    pub command: &'static str,
    /// The discovery files to write; the first is the one that it reads.
    pub files: &'static [FileRule],
    pub environment: EnvironmentNames,
    /// Its ignore file in a workspace.
    pub ignore_file: &'static str,
}

/// Directory and name of a discovery file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRule {
    pub base: BaseDirectory,
    /// Directories under the base.
    pub directories: &'static [&'static str],
    pub name: FileName,
    /// Whether the agent sorts these files by the PID in their names. Then it is not always the editor's.
    pub is_sorted_by_pid: bool,
    /// Whether to write `ppid` and `ideName` too.
    pub with_parent: bool,
}

/// Resolved in the same way as the agent does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseDirectory {
    /// Node's `os.tmpdir()`.
    NodeTemporary,
    /// `QWEN_HOME`, else `~/.qwen`.
    QwenHome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileName {
    /// `<prefix><pid>-<port>.json`
    PrefixPidPort(&'static str),
    /// `<port>.lock`
    PortLock,
}

/// Environment variables; `None` if the agent has no such variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvironmentNames {
    /// The port that breaks a tie.
    pub port: &'static str,
    /// The workspace roots.
    pub workspace: &'static str,
    pub token: Option<&'static str>,
    /// The process id that breaks a tie.
    pub pid: Option<&'static str>,
    /// The command of a stdio companion.
    pub stdio_command: &'static str,
    /// Its arguments, a JSON array.
    pub stdio_arguments: &'static str,
}

pub const DIALECTS: [Dialect; 2] = [
    Dialect {
        kind: AgentKind::Gemini,
        display_name: "Gemini CLI",
        command: "gemini",
        files: &[FileRule {
            base: BaseDirectory::NodeTemporary,
            directories: &["gemini", "ide"],
            name: FileName::PrefixPidPort("gemini-ide-server-"),
            is_sorted_by_pid: true,
            with_parent: false,
        }],
        environment: EnvironmentNames {
            port: "GEMINI_CLI_IDE_SERVER_PORT",
            workspace: "GEMINI_CLI_IDE_WORKSPACE_PATH",
            token: Some("GEMINI_CLI_IDE_AUTH_TOKEN"),
            pid: Some("GEMINI_CLI_IDE_PID"),
            stdio_command: "GEMINI_CLI_IDE_SERVER_STDIO_COMMAND",
            stdio_arguments: "GEMINI_CLI_IDE_SERVER_STDIO_ARGS",
        },
        ignore_file: ".geminiignore",
    },
    Dialect {
        kind: AgentKind::Qwen,
        display_name: "Qwen Code",
        command: "qwen",
        files: &[
            FileRule {
                base: BaseDirectory::QwenHome,
                directories: &["ide"],
                name: FileName::PortLock,
                is_sorted_by_pid: false,
                with_parent: true,
            },
            // From the specification. No release reads it so far.
            FileRule {
                base: BaseDirectory::NodeTemporary,
                directories: &["qwen", "ide"],
                name: FileName::PrefixPidPort("qwen-code-ide-server-"),
                is_sorted_by_pid: false,
                with_parent: true,
            },
        ],
        environment: EnvironmentNames {
            port: "QWEN_CODE_IDE_SERVER_PORT",
            workspace: "QWEN_CODE_IDE_WORKSPACE_PATH",
            token: None,
            pid: None,
            stdio_command: "QWEN_CODE_IDE_SERVER_STDIO_COMMAND",
            stdio_arguments: "QWEN_CODE_IDE_SERVER_STDIO_ARGS",
        },
        ignore_file: ".qwenignore",
    },
];

/// How an MCP client identifies itself in `initialize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientInfo {
    pub name: String,
    pub version: String,
}

/// How a family of MCP clients reads responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientDialect {
    /// Values of `clientInfo.name`; empty in the row for all other clients.
    pub client_names: &'static [&'static str],
    pub close_diff: CloseDiffReply,
    /// Whether the client treats an accepted empty text as "not edited".
    pub empty_means_unedited: bool,
}

/// The text block of a `closeDiff` response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseDiffReply {
    /// `{"content": …}`, or `{}` if nothing is open, as Gemini CLI and Qwen Code expect.
    Json,
    /// The final text, or an error if nothing is open, as the specification says.
    PlainText,
}

const CLIENTS: [ClientDialect; 2] = [
    ClientDialect {
        client_names: &["streamable-http-client", "stdio-client"],
        close_diff: CloseDiffReply::Json,
        empty_means_unedited: true,
    },
    ClientDialect {
        client_names: &[],
        close_diff: CloseDiffReply::PlainText,
        empty_means_unedited: false,
    },
];

impl ClientDialect {
    /// An unknown client resumed its session after a restart, so it is an agent CLI.
    pub fn of(client: Option<&ClientInfo>) -> &'static Self {
        let [agent_clis, others] = &CLIENTS;
        match client {
            Some(client) if !agent_clis.client_names.contains(&client.name.as_str()) => others,
            _ => agent_clis,
        }
    }
}

impl ClientInfo {
    /// Gemini CLI and Qwen Code send the same name, and Qwen Code always sends version 1.0.0.
    pub fn identity(&self) -> AgentIdentity {
        let is_agent_cli = CLIENTS[0].client_names.contains(&self.name.as_str());
        let (name, version) = match (is_agent_cli, self.version.as_str()) {
            (true, "1.0.0") => ("Qwen Code", ""),
            (true, version) => ("Gemini CLI", version),
            (false, version) => (self.name.as_str(), version),
        };
        AgentIdentity {
            name: name.to_owned(),
            version: (!version.is_empty()).then(|| version.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(name: &str, version: &str) -> ClientInfo {
        ClientInfo {
            name: name.to_owned(),
            version: version.to_owned(),
        }
    }

    #[test]
    fn close_diff_reply_depends_on_the_client() {
        let reply = |name: &str| ClientDialect::of(Some(&client(name, "1"))).close_diff;
        assert_eq!(reply("streamable-http-client"), CloseDiffReply::Json);
        assert_eq!(reply("stdio-client"), CloseDiffReply::Json);
        assert_eq!(reply("inspector"), CloseDiffReply::PlainText);
        assert_eq!(ClientDialect::of(None).close_diff, CloseDiffReply::Json);
    }

    #[test]
    fn client_is_identified_by_name_and_version() {
        let identity = |name, version| client(name, version).identity();
        let gemini = identity("streamable-http-client", "0.61.0");
        assert_eq!(
            (gemini.name.as_str(), gemini.version.as_deref()),
            ("Gemini CLI", Some("0.61.0"))
        );
        assert_eq!(gemini.to_string(), "Gemini CLI 0.61.0");
        let qwen = identity("streamable-http-client", "1.0.0");
        assert_eq!((qwen.name.as_str(), qwen.version.as_deref()), ("Qwen Code", None));
        assert_eq!(qwen.to_string(), "Qwen Code");
        assert_eq!(identity("inspector", "2").to_string(), "inspector 2");
        assert_eq!(identity("inspector", "").to_string(), "inspector");
    }
}

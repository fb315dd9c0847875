//! What differs between the agents, as data.
//!
//! Two tables. [`DIALECTS`] has a row for each command line that looks for a companion: where its discovery files lie,
//! what they are called, which variables it reads. [`ClientDialect`] has a row for each way MCP clients read the replies
//! of `closeDiff`. The next agent is one more row.

use serde::{Deserialize, Serialize};

use crate::session::AgentIdentity;

/// A command line that looks for a companion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    /// Google's Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
}

/// One row of [`DIALECTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Which command line this row is about.
    pub kind: AgentKind,
    /// What people call it.
    pub display_name: &'static str,
    /// The command a person types.
    pub command: &'static str,
    /// The discovery files that are written for it, the one that it really reads first.
    pub files: &'static [FileRule],
    /// Names of the environment variables that it reads.
    pub environment: EnvironmentNames,
    /// The ignore file of a workspace that people write for it.
    pub ignore_file: &'static str,
}

/// Where a discovery file lies and what it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRule {
    /// The directory that the sub-directory is in.
    pub base: BaseDirectory,
    /// Names of directories below the base.
    pub directories: &'static [&'static str],
    /// How the file is called.
    pub name: FileName,
    /// Whether `ppid` and `ideName` are written too.
    pub with_parent: bool,
}

/// A directory that is computed the way the agent computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseDirectory {
    /// Node's `os.tmpdir()`.
    NodeTemporary,
    /// `QWEN_HOME`, else `~/.qwen`.
    QwenHome,
}

/// The name of a discovery file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileName {
    /// `<prefix><pid>-<port>.json`
    PrefixPidPort(&'static str),
    /// `<port>.lock`
    PortLock,
}

/// The environment variables of one command line; `None` where it has no such variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvironmentNames {
    /// The port that breaks a tie.
    pub port: &'static str,
    /// The workspace roots.
    pub workspace: &'static str,
    /// The bearer token.
    pub token: Option<&'static str>,
    /// The process id that breaks a tie.
    pub pid: Option<&'static str>,
    /// The command of a stdio companion.
    pub stdio_command: &'static str,
    /// Its arguments, a JSON array.
    pub stdio_arguments: &'static str,
}

/// Every command line we speak to.
pub const DIALECTS: [Dialect; 2] = [
    Dialect {
        kind: AgentKind::Gemini,
        display_name: "Gemini CLI",
        command: "gemini",
        files: &[FileRule {
            base: BaseDirectory::NodeTemporary,
            directories: &["gemini", "ide"],
            name: FileName::PrefixPidPort("gemini-ide-server-"),
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
                with_parent: true,
            },
            // The specification's own place. No release reads it; it is written for those that may.
            FileRule {
                base: BaseDirectory::NodeTemporary,
                directories: &["qwen", "ide"],
                name: FileName::PrefixPidPort("qwen-code-ide-server-"),
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

/// Who an MCP client says it is, in `initialize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientInfo {
    /// `clientInfo.name`
    pub name: String,
    /// `clientInfo.version`
    pub version: String,
}

/// How a family of MCP clients reads what we answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientDialect {
    /// What `clientInfo.name` may be; empty in the row for everybody else.
    pub client_names: &'static [&'static str],
    /// What `closeDiff` answers.
    pub close_diff: CloseDiffReply,
    /// Whether an accepted empty text is taken as "the person changed nothing".
    pub empty_means_unedited: bool,
}

/// What the one text block of a `closeDiff` answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseDiffReply {
    /// `{"content": …}`, or `{}` when nothing is open: what both command lines parse.
    Json,
    /// The final text itself, or an error when nothing is open: what the specification says.
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
    /// The row for a client. One that we know nothing about is a session taken up again after a restart, and so a command line.
    pub fn of(client: Option<&ClientInfo>) -> &'static Self {
        let [command_lines, everybody_else] = &CLIENTS;
        match client {
            Some(client) if !command_lines.client_names.contains(&client.name.as_str()) => everybody_else,
            _ => command_lines,
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
    fn the_command_lines_get_json_and_everybody_else_the_specification() {
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

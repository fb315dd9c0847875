//! What differs between agents, as data.
//!
//! There are two tables. [`DIALECTS`] has a row for each agent CLI that looks for a companion: the directories, names and contents of
//! its discovery files, and its environment variables. [`ClientDialect`] has a row for each kind of client: its tools, the form in
//! which it gets the context, and how it reads responses. Another agent is another row.

use serde::{Deserialize, Serialize};

use crate::session::AgentIdentity;

/// An agent CLI that looks for a companion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    Gemini,
    Qwen,
    Claude,
    Opencode,
    Copilot,
    Codex,
}

/// An agent that looks for MCP over HTTP on a port. Each has a search of its own, but both follow one specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpAgent {
    Gemini,
    Qwen,
}

impl McpAgent {
    pub const fn variables(self) -> &'static EnvironmentNames {
        match self {
            Self::Gemini => &GEMINI_VARIABLES,
            Self::Qwen => &QWEN_VARIABLES,
        }
    }
}

impl From<McpAgent> for AgentKind {
    fn from(agent: McpAgent) -> Self {
        match agent {
            McpAgent::Gemini => Self::Gemini,
            McpAgent::Qwen => Self::Qwen,
        }
    }
}

/// One row of [`DIALECTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    pub kind: AgentKind,
    pub display_name: &'static str,
    /// The command that starts it.
    pub command: &'static str,
    /// The discovery files to write; the first is the one that it reads. Empty if it reads another agent's.
    pub files: &'static [FileRule],
    /// Its search, if that is for MCP over HTTP. These variables are set in an editor's terminals: they harm no other agent there.
    pub search: Option<McpAgent>,
    /// What `alongside run` changes, for this agent only.
    pub run: RunRule,
    /// Its ignore file in a workspace.
    pub ignore_file: Option<&'static str>,
}

/// Directory, name and content of a discovery file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRule {
    pub base: BaseDirectory,
    /// Directories under the base.
    pub directories: &'static [&'static str],
    pub name: FileName,
    pub document: DocumentKind,
    /// Whether the agent sorts these files by the PID in their names. Then it is not always the editor's.
    pub is_sorted_by_pid: bool,
    /// Whether two such files for one directory make the agent connect to neither. Then only the most recently used companion
    /// writes one.
    pub is_exclusive: bool,
}

/// The keys of a discovery file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// `port`, `workspacePath`, `authToken` and `ideInfo`.
    Mcp {
        agent: McpAgent,
        /// Whether to write `ppid` and `ideName` too.
        with_parent: bool,
    },
    /// `pid`, `workspaceFolders`, `ideName`, `transport` and `authToken`.
    WebSocket,
    /// `socketPath`, `scheme`, `headers`, `pid`, `ideName`, `timestamp`, `workspaceFolders` and `isTrusted`.
    Socket,
}

/// Resolved in the same way as the agent does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseDirectory {
    /// Node's `os.tmpdir()`.
    NodeTemporary,
    /// `QWEN_HOME`, else `~/.qwen`.
    QwenHome,
    /// `CLAUDE_CONFIG_DIR`, else `~/.claude`.
    ClaudeHome,
    /// `~/.claude`, whatever is configured.
    ClaudeDefault,
    /// `COPILOT_HOME`, else `~/.copilot`.
    CopilotHome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileName {
    /// `<prefix><pid>-<port>.json`
    PrefixPidPort(&'static str),
    /// `<port>.lock`
    PortLock,
    /// `alongside-<companion's pid>-<port>.lock`. A companion that is restarted has another name: only that makes Copilot CLI connect
    /// again.
    ProcessLock,
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

/// Environment variables of one agent's process that would harm other agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunRule {
    /// Set to the port.
    pub port: Option<&'static str>,
    pub set: &'static [(&'static str, &'static str)],
    pub remove: &'static [&'static str],
}

impl RunRule {
    const NOTHING: Self = Self {
        port: None,
        set: &[],
        remove: &[],
    };
}

const GEMINI_VARIABLES: EnvironmentNames = EnvironmentNames {
    port: "GEMINI_CLI_IDE_SERVER_PORT",
    workspace: "GEMINI_CLI_IDE_WORKSPACE_PATH",
    token: Some("GEMINI_CLI_IDE_AUTH_TOKEN"),
    pid: Some("GEMINI_CLI_IDE_PID"),
    stdio_command: "GEMINI_CLI_IDE_SERVER_STDIO_COMMAND",
    stdio_arguments: "GEMINI_CLI_IDE_SERVER_STDIO_ARGS",
};

const QWEN_VARIABLES: EnvironmentNames = EnvironmentNames {
    port: "QWEN_CODE_IDE_SERVER_PORT",
    workspace: "QWEN_CODE_IDE_WORKSPACE_PATH",
    token: None,
    pid: None,
    stdio_command: "QWEN_CODE_IDE_SERVER_STDIO_COMMAND",
    stdio_arguments: "QWEN_CODE_IDE_SERVER_STDIO_ARGS",
};

/// Names the port of the companion to connect to. opencode connects to it without the token.
const CLAUDE_PORT: &str = "CLAUDE_CODE_SSE_PORT";

/// Claude Code connects to none of two companions for one directory.
const CLAUDE_LOCK: FileRule = FileRule {
    base: BaseDirectory::ClaudeHome,
    directories: &["ide"],
    name: FileName::PortLock,
    document: DocumentKind::WebSocket,
    is_sorted_by_pid: false,
    is_exclusive: true,
};

pub const DIALECTS: [Dialect; 6] = [
    Dialect {
        kind: AgentKind::Gemini,
        display_name: "Gemini CLI",
        command: "gemini",
        files: &[FileRule {
            base: BaseDirectory::NodeTemporary,
            directories: &["gemini", "ide"],
            name: FileName::PrefixPidPort("gemini-ide-server-"),
            document: DocumentKind::Mcp {
                agent: McpAgent::Gemini,
                with_parent: false,
            },
            is_sorted_by_pid: true,
            is_exclusive: false,
        }],
        search: Some(McpAgent::Gemini),
        run: RunRule::NOTHING,
        ignore_file: Some(".geminiignore"),
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
                document: QWEN_DOCUMENT,
                is_sorted_by_pid: false,
                is_exclusive: false,
            },
            // From the specification. No release reads it so far.
            FileRule {
                base: BaseDirectory::NodeTemporary,
                directories: &["qwen", "ide"],
                name: FileName::PrefixPidPort("qwen-code-ide-server-"),
                document: QWEN_DOCUMENT,
                is_sorted_by_pid: false,
                is_exclusive: false,
            },
        ],
        search: Some(McpAgent::Qwen),
        run: RunRule::NOTHING,
        ignore_file: Some(".qwenignore"),
    },
    Dialect {
        kind: AgentKind::Claude,
        display_name: "Claude Code",
        command: "claude",
        files: &[
            CLAUDE_LOCK,
            // opencode reads this one, wherever Claude Code reads its own.
            FileRule {
                base: BaseDirectory::ClaudeDefault,
                ..CLAUDE_LOCK
            },
        ],
        search: None,
        run: RunRule {
            port: Some(CLAUDE_PORT),
            // For older releases.
            set: &[("ENABLE_IDE_INTEGRATION", "true")],
            remove: &[],
        },
        ignore_file: None,
    },
    Dialect {
        kind: AgentKind::Opencode,
        display_name: "opencode",
        command: "opencode",
        files: &[],
        search: None,
        run: RunRule {
            remove: &[CLAUDE_PORT, "OPENCODE_EDITOR_SSE_PORT"],
            ..RunRule::NOTHING
        },
        ignore_file: None,
    },
    Dialect {
        kind: AgentKind::Copilot,
        display_name: "Copilot CLI",
        command: "copilot",
        files: &[FileRule {
            base: BaseDirectory::CopilotHome,
            directories: &["ide"],
            name: FileName::ProcessLock,
            document: DocumentKind::Socket,
            is_sorted_by_pid: false,
            // Removing the file would disconnect the agent.
            is_exclusive: false,
        }],
        search: None,
        run: RunRule::NOTHING,
        ignore_file: None,
    },
    Dialect {
        kind: AgentKind::Codex,
        display_name: "Codex",
        command: "codex",
        // It knows the path of a socket.
        files: &[],
        search: None,
        run: RunRule::NOTHING,
        ignore_file: None,
    },
];

const QWEN_DOCUMENT: DocumentKind = DocumentKind::Mcp {
    agent: McpAgent::Qwen,
    with_parent: true,
};

impl Dialect {
    pub fn of(kind: AgentKind) -> &'static Self {
        let [first, ..] = &DIALECTS;
        DIALECTS.iter().find(|dialect| dialect.kind == kind).unwrap_or(first)
    }
}

/// How an MCP client identifies itself in `initialize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientInfo {
    pub name: String,
    pub version: String,
}

/// How a client is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Streamable HTTP on the agents' port.
    Http,
    /// A WebSocket on the agents' port.
    WebSocket,
    /// Streamable HTTP on a socket in the file system.
    Socket,
}

/// What a family of clients gets, and how it reads responses.
#[derive(Debug, PartialEq, Eq)]
pub struct ClientDialect {
    pub transport: Transport,
    /// Values of `clientInfo.name`; empty in the row for all other clients of the transport.
    pub client_names: &'static [&'static str],
    pub tools: ToolSet,
    pub context: ContextForm,
    /// Whether the client is sent diagnostics as they change. The others ask for them, or cannot.
    pub gets_diagnostics: bool,
    pub close_diff: CloseDiffReply,
    /// Whether the client treats an accepted empty text as "not edited".
    pub empty_means_unedited: bool,
}

/// The tools that a client can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolSet {
    /// `openDiff`, which returns immediately, and `closeDiff`.
    Notifying,
    /// `openDiff`, which returns with the decision, `close_tab`, `closeAllDiffTabs` and `getDiagnostics`.
    Claude,
    /// `open_diff`, which returns with the decision but not with a text, `close_diff`, `get_selection`, `get_diagnostics` and
    /// `update_session_name`.
    Copilot,
}

/// The form in which a client gets the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextForm {
    /// `ide/contextUpdate`, with all open files.
    OpenFiles,
    /// `selection_changed`, with the active file only.
    Selection(SelectionForm),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectionForm {
    /// Lines are numbered from 0, and a null selection clears it.
    Claude,
    /// Lines are numbered from 1, and nothing clears a selection but another one.
    Opencode,
    /// Lines are numbered from 0, and an empty path clears it.
    Copilot,
}

impl ContextForm {
    /// How many forms there are.
    pub const COUNT: usize = 4;

    /// From 0, without gaps.
    pub const fn index(self) -> usize {
        match self {
            Self::OpenFiles => 0,
            Self::Selection(SelectionForm::Claude) => 1,
            Self::Selection(SelectionForm::Opencode) => 2,
            Self::Selection(SelectionForm::Copilot) => 3,
        }
    }

    /// Whether a selection can be sent to the agent's prompt.
    pub const fn has_mentions(self) -> bool {
        !matches!(self, Self::OpenFiles)
    }
}

/// The text block of a `closeDiff` response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseDiffReply {
    /// `{"content": …}`, or `{}` if nothing is open, as Gemini CLI and Qwen Code expect.
    Json,
    /// The final text, or an error if nothing is open, as the specification says.
    PlainText,
}

static AGENT_CLIS: ClientDialect = ClientDialect {
    transport: Transport::Http,
    client_names: &["streamable-http-client", "stdio-client"],
    tools: ToolSet::Notifying,
    context: ContextForm::OpenFiles,
    gets_diagnostics: false,
    close_diff: CloseDiffReply::Json,
    empty_means_unedited: true,
};

static OTHER_CLIENTS: ClientDialect = ClientDialect {
    transport: Transport::Http,
    client_names: &[],
    tools: ToolSet::Notifying,
    context: ContextForm::OpenFiles,
    gets_diagnostics: false,
    close_diff: CloseDiffReply::PlainText,
    empty_means_unedited: false,
};

static OPENCODE: ClientDialect = ClientDialect {
    transport: Transport::WebSocket,
    client_names: &["opencode"],
    tools: ToolSet::Claude,
    context: ContextForm::Selection(SelectionForm::Opencode),
    gets_diagnostics: false,
    close_diff: CloseDiffReply::PlainText,
    empty_means_unedited: false,
};

static CLAUDE: ClientDialect = ClientDialect {
    transport: Transport::WebSocket,
    client_names: &[],
    tools: ToolSet::Claude,
    context: ContextForm::Selection(SelectionForm::Claude),
    gets_diagnostics: false,
    close_diff: CloseDiffReply::PlainText,
    empty_means_unedited: false,
};

static COPILOT: ClientDialect = ClientDialect {
    transport: Transport::Socket,
    client_names: &[],
    tools: ToolSet::Copilot,
    context: ContextForm::Selection(SelectionForm::Copilot),
    gets_diagnostics: true,
    close_diff: CloseDiffReply::PlainText,
    empty_means_unedited: false,
};

/// For each transport, the row with empty names comes last.
static CLIENTS: [&ClientDialect; 5] = [&AGENT_CLIS, &OTHER_CLIENTS, &OPENCODE, &CLAUDE, &COPILOT];

const COPILOT_NAME: &str = "copilot-cli";

/// What clients are called that send another name.
const DISPLAY_NAMES: &[(&str, &str)] = &[("claude-code", "Claude Code"), (COPILOT_NAME, "Copilot CLI")];

impl ClientDialect {
    /// A client of the agents' port. An unknown client resumed its session after a restart, so it is an agent CLI.
    pub fn of(client: Option<&ClientInfo>) -> &'static Self {
        client.map_or(&AGENT_CLIS, |client| Self::on(Transport::Http, client))
    }

    pub fn on(transport: Transport, client: &ClientInfo) -> &'static Self {
        let has_name = |dialect: &ClientDialect| {
            dialect.client_names.is_empty() || dialect.client_names.contains(&client.name.as_str())
        };
        let found = CLIENTS
            .into_iter()
            .find(|dialect| dialect.transport == transport && has_name(dialect));
        found.unwrap_or(&OTHER_CLIENTS)
    }
}

impl ClientInfo {
    /// A Copilot CLI that has not sent `initialize` since a restart.
    pub fn copilot() -> Self {
        Self {
            name: COPILOT_NAME.to_owned(),
            version: String::new(),
        }
    }

    /// Whether the client writes what the user accepted. Copilot CLI writes its own text or nothing.
    pub fn takes_edits(&self) -> bool {
        self.name != COPILOT_NAME
    }

    /// Gemini CLI and Qwen Code send the same name, and Qwen Code always sends version 1.0.0.
    pub fn identity(&self) -> AgentIdentity {
        let is_agent_cli = AGENT_CLIS.client_names.contains(&self.name.as_str());
        let (name, version) = match (is_agent_cli, self.version.as_str()) {
            (true, "1.0.0") => ("Qwen Code", ""),
            (true, version) => ("Gemini CLI", version),
            // Not its version.
            (false, "0.0.0") => (self.name.as_str(), ""),
            (false, version) => (self.name.as_str(), version),
        };
        let known = DISPLAY_NAMES.iter().find(|(sent, _)| *sent == name);
        let name = known.map_or(name, |(_, display_name)| *display_name);
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
    fn every_agent_with_a_hook_is_a_row() {
        for agent in crate::HookAgent::ALL {
            let is_row =
                |dialect: &Dialect| (dialect.command, dialect.display_name) == (agent.id(), agent.display_name());
            assert_eq!(
                DIALECTS.iter().filter(|dialect| is_row(dialect)).count(),
                1,
                "{agent:?}"
            );
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
        assert_eq!(identity("claude-code", "2.1.325").to_string(), "Claude Code 2.1.325");
        assert_eq!(identity("opencode", "0.0.0").to_string(), "opencode");
    }

    #[test]
    fn transport_decides_before_the_name() {
        let claude = client("claude-code", "2");
        assert_eq!(ClientDialect::on(Transport::Http, &claude).tools, ToolSet::Notifying);
        let form = |name| ClientDialect::on(Transport::WebSocket, &client(name, "2")).context;
        assert_eq!(form("claude-code"), ContextForm::Selection(SelectionForm::Claude));
        assert_eq!(form("another"), ContextForm::Selection(SelectionForm::Claude));
        assert_eq!(form("opencode"), ContextForm::Selection(SelectionForm::Opencode));
    }

    #[test]
    fn every_form_of_the_context_has_its_own_index() {
        let indices: std::collections::BTreeSet<usize> = CLIENTS.iter().map(|row| row.context.index()).collect();
        assert!(indices.into_iter().eq(0..ContextForm::COUNT));
    }

    #[test]
    fn port_variable_of_claude_is_kept_out_of_opencode() {
        let claude = Dialect::of(AgentKind::Claude).run.port.unwrap();
        assert!(Dialect::of(AgentKind::Opencode).run.remove.contains(&claude));
        for dialect in DIALECTS.iter().filter_map(|dialect| dialect.search) {
            assert_ne!(dialect.variables().port, claude, "it is set in every terminal");
        }
    }
}

//! What the companion announces to agents, and how each agent reads it.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use alongside_core::Secret;
use alongside_core::dialect::{DocumentKind, FileRule, McpAgent};
use serde::Serialize;

use crate::{DiscoveryError, Environment, LastUse, Platform};

/// Value of the `companion` key in every file we write. Agents ignore the key; [`crate::sweep()`] relies on it.
pub(crate) const MARK: &str = "alongside";

/// Everything an agent needs to connect to a companion.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// The loopback port that agents connect to.
    pub port: u16,
    /// The bearer token agents must send.
    pub token: Secret,
    /// Workspace folders, as absolute paths.
    pub workspace: Vec<PathBuf>,
    /// Other paths of these folders: as the user wrote them, with symlinks. For agents that do not resolve those.
    pub aliases: Vec<PathBuf>,
    /// The socket of agents that connect to one; `None` if there is none.
    pub socket: Option<PathBuf>,
    /// Directories in the workspace in which agents were started that connect only in a folder itself.
    pub directories: Vec<PathBuf>,
    /// The editor's short name, such as `neovim`. Not `vscode`: agents would offer to install an extension.
    pub name: String,
    /// The editor's display name, such as `Neovim`.
    pub display_name: String,
    /// PID of the editor, or our own. It must stay alive as long as the port is open: Qwen Code deletes a file whose
    /// `ppid` is dead, and Gemini CLI sorts it last.
    pub pid: u32,
    pub last_use: LastUse,
    /// Whether the editor's PID puts a file in its place where an agent sorts by it: the larger PID of a live process first.
    pub sorts_by_pid: bool,
    /// Whether this is the most recently used companion among those that an agent could find instead.
    pub is_first: bool,
}

/// The JSON of one discovery file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileContents<'a> {
    #[serde(flatten)]
    workspace: Workspace<'a>,
    port: u16,
    auth_token: &'a Secret,
    ide_info: IdeInfo<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ppid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ide_name: Option<&'a str>,
    companion: &'static str,
    companion_pid: u32,
    /// PID of the editor, whatever number the file name contains.
    companion_editor: u32,
    /// When the file was written, in milliseconds since 1970. The file's mtime is the last use, not this.
    companion_wrote: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    companion_host: Option<&'a str>,
}

/// The folders, and what else is in one kind of file only.
#[derive(Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", untagged)]
enum Workspace<'a> {
    Mcp {
        workspace_path: String,
    },
    WebSocket {
        /// The editor's: Claude Code deletes a file whose process is dead, and in the terminal of VS Code it connects only to an
        /// editor that it descends from.
        pid: u32,
        workspace_folders: Vec<&'a str>,
        /// Anything else makes Claude Code look for server-sent events, without the token.
        transport: &'static str,
    },
    /// Copilot CLI ignores a file that lacks any of these but the last.
    Socket {
        socket_path: &'a Path,
        scheme: &'static str,
        headers: Headers,
        pid: u32,
        timestamp: u64,
        workspace_folders: Vec<&'a str>,
        /// Otherwise Copilot CLI would not ask the user whether to trust the folder.
        is_trusted: bool,
    },
}

/// Copilot CLI sends these as they are.
#[derive(Serialize)]
struct Headers {
    #[serde(rename = "Authorization")]
    authorization: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IdeInfo<'a> {
    name: &'a str,
    display_name: &'a str,
}

impl Announcement {
    /// The number in a file name where the specifications have the editor's PID.
    ///
    /// Gemini CLI sorts live processes first, then by the larger number. So the most recently used companion has its
    /// editor's PID, and so has the next one as long as its PID is smaller. The others have the time of their last use, which is never
    /// a live process and larger than any PID. If the first one is killed, its PID is dead and smaller than those times, so
    /// no file has to be rewritten.
    pub(crate) fn number(&self, rule: &FileRule, platform: Platform) -> u64 {
        match platform {
            _ if self.sorts_by_pid || !rule.is_sorted_by_pid => u64::from(self.pid),
            Platform::Unix | Platform::MacOs => self.last_use.as_dead_process(),
            // On Windows every number counts as alive, and the larger one wins.
            Platform::Windows => 1,
        }
    }

    /// The folders as one agent reads them, in files and in variables, and those that it could not be given.
    pub(crate) fn workspace_path(&self, agent: McpAgent, platform: Platform) -> (String, Vec<DiscoveryError>) {
        // The real path of a network drive is `\\\\server\\share`; Qwen Code on the drive knows it only by its letter.
        let has_drives = platform == Platform::Windows;
        let aliases = if has_drives { &*self.aliases } else { &[] };
        workspace_path(&[&*self.workspace, aliases].concat(), agent, platform)
    }

    /// The content of one rule's discovery file, and the folders it could not include.
    pub(crate) fn contents(&self, environment: &Environment, rule: &FileRule) -> (String, Vec<DiscoveryError>) {
        let (workspace, with_parent, problems) = match rule.document {
            DocumentKind::Mcp { agent, with_parent } => {
                let (workspace_path, problems) = self.workspace_path(agent, environment.platform);
                (Workspace::Mcp { workspace_path }, with_parent, problems)
            }
            DocumentKind::WebSocket => {
                let (workspace_folders, problems) = segments(self.workspace.iter().chain(&self.aliases));
                let workspace = Workspace::WebSocket {
                    pid: self.pid,
                    workspace_folders,
                    transport: "ws",
                };
                (workspace, false, problems)
            }
            DocumentKind::Socket => {
                let folders = self.workspace.iter().chain(&self.aliases).chain(&self.directories);
                let (workspace_folders, problems) = segments(folders);
                let authorization = format!("Nonce {}", self.token.reveal());
                let socket_path = self.socket.as_deref().unwrap_or(Path::new(""));
                let is_pipe = socket_path.to_str().is_some_and(|path| path.starts_with(r"\\.\pipe\"));
                let workspace = Workspace::Socket {
                    socket_path,
                    scheme: if is_pipe { "pipe" } else { "unix" },
                    headers: Headers { authorization },
                    pid: environment.pid,
                    timestamp: unix_milliseconds(SystemTime::now()),
                    workspace_folders,
                    is_trusted: false,
                };
                (workspace, false, problems)
            }
        };
        let has_name = with_parent || matches!(rule.document, DocumentKind::WebSocket | DocumentKind::Socket);
        let contents = FileContents {
            workspace,
            port: self.port,
            auth_token: &self.token,
            ide_info: IdeInfo {
                name: &self.name,
                display_name: &self.display_name,
            },
            ppid: with_parent.then_some(self.pid),
            ide_name: has_name.then_some(&self.display_name),
            companion: MARK,
            companion_pid: environment.pid,
            companion_editor: self.pid,
            companion_wrote: unix_milliseconds(SystemTime::now()),
            companion_host: environment.host_name.as_deref(),
        };
        // Strings and numbers under fixed keys always serialize.
        (serde_json::to_string(&contents).unwrap_or_default(), problems)
    }
}

pub(crate) fn unix_milliseconds(moment: SystemTime) -> u64 {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The folders joined into one string, and the folders that do not fit in.
///
/// An empty or relative entry would make Gemini CLI match every directory, so neither is ever written.
fn workspace_path(roots: &[PathBuf], agent: McpAgent, platform: Platform) -> (String, Vec<DiscoveryError>) {
    let delimiter = platform.path_delimiter();
    let (mut segments, mut problems) = segments(roots);
    if segments.iter().any(|segment| segment.contains(delimiter)) {
        if accepts_array(agent) {
            return (serde_json::to_string(&segments).unwrap_or_default(), problems);
        }
        segments.retain(|segment| {
            let fits = !segment.contains(delimiter);
            if !fits {
                let root = PathBuf::from(segment);
                problems.push(DiscoveryError::RootHasDelimiter { root, delimiter });
            }
            fits
        });
    }
    (segments.join(&delimiter.to_string()), problems)
}

fn segments<'a>(roots: impl IntoIterator<Item = &'a PathBuf>) -> (Vec<&'a str>, Vec<DiscoveryError>) {
    let (mut segments, mut problems) = (Vec::new(), Vec::new());
    for root in roots {
        match segment(root) {
            Ok(segment) => segments.push(segment),
            Err(problem) => problems.push(problem),
        }
    }
    (segments, problems)
}

fn segment(root: &Path) -> Result<&str, DiscoveryError> {
    let owned = || root.to_owned();
    if !root.is_absolute() {
        return Err(DiscoveryError::RootNotAbsolute { root: owned() });
    }
    root.to_str()
        .ok_or_else(|| DiscoveryError::RootNotUnicode { root: owned() })
}

/// Whether the agent also reads a JSON array of folders in that string.
fn accepts_array(agent: McpAgent) -> bool {
    match agent {
        McpAgent::Gemini => false,
        McpAgent::Qwen => true,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use alongside_core::dialect::{AgentKind, Dialect};
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn announcement(workspace: &[&Path]) -> Announcement {
        Announcement {
            port: 4321,
            token: Secret::from_bytes([7; 32]),
            workspace: workspace.iter().map(|root| root.to_path_buf()).collect(),
            aliases: Vec::new(),
            socket: None,
            directories: Vec::new(),
            name: "neovim".to_owned(),
            display_name: "Neovim".to_owned(),
            pid: std::process::id(),
            last_use: LastUse::of_editor(SystemTime::now()),
            sorts_by_pid: true,
            is_first: true,
        }
    }

    #[test]
    fn folder_has_all_its_names_on_windows_only() {
        let mut announcement = announcement(&[Path::new("/server/share/proj")]);
        announcement.aliases = vec!["/z/proj".into()];
        let (_, rule) = crate::place::rules().next().unwrap();
        let path = |platform| {
            let environment = Environment {
                platform,
                ..Environment::new("/home/ada", "/")
            };
            let (contents, _) = announcement.contents(&environment, rule);
            let file: Value = serde_json::from_str(&contents).unwrap();
            file["workspacePath"].as_str().map(str::to_owned)
        };
        assert_eq!(path(Platform::Windows).as_deref(), Some("/server/share/proj;/z/proj"));
        assert_eq!(path(Platform::Unix).as_deref(), Some("/server/share/proj"));
    }

    fn joined(roots: &[&str], agent: McpAgent) -> (String, Vec<String>) {
        let roots: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
        let (text, problems) = workspace_path(&roots, agent, Platform::Unix);
        (text, problems.iter().map(ToString::to_string).collect())
    }

    fn contents(agent: AgentKind, file: usize) -> Value {
        let environment = Environment::new("/home/ada", "/project");
        let rule = &Dialect::of(agent).files[file];
        let (text, _) = announcement(&[Path::new("/a"), Path::new("/b")]).contents(&environment, rule);
        serde_json::from_str(&text).unwrap()
    }

    /// P1 and P5 of its lock: Copilot CLI ignores a file that lacks a key.
    #[test]
    fn copilots_file_has_every_key_and_the_directories_of_agents() {
        let mut announcement = announcement(&[Path::new("/a")]);
        announcement.socket = Some(PathBuf::from("/s/7.sock"));
        announcement.directories = vec![PathBuf::from("/a/b")];
        let rule = &Dialect::of(AgentKind::Copilot).files[0];
        let (text, _) = announcement.contents(&Environment::new("/home/ada", "/project"), rule);
        let content: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(content["socketPath"], "/s/7.sock");
        assert_eq!(content["scheme"], "unix");
        announcement.socket = Some(PathBuf::from(r"\\.\pipe\alongside-7"));
        let (text, _) = announcement.contents(&Environment::new("/home/ada", "/project"), rule);
        let on_windows: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(on_windows["scheme"], "pipe");
        let authorization = format!("Nonce {}", announcement.token.reveal());
        assert_eq!(content["headers"], json!({ "Authorization": authorization }));
        assert_eq!(content["pid"], std::process::id());
        assert_eq!(content["ideName"], "Neovim");
        assert_eq!(content["workspaceFolders"], json!(["/a", "/a/b"]));
        assert_eq!(content["isTrusted"], false);
        assert!(content["timestamp"].is_u64());
    }

    /// Difference 2: Qwen Code's file also needs `ppid`, and the official one has `ideName`.
    #[test]
    fn only_qwens_files_have_ppid() {
        for file in [0, 1] {
            let qwen = contents(AgentKind::Qwen, file);
            assert_eq!(qwen["ppid"], std::process::id());
            assert_eq!(qwen["ideName"], "Neovim");
        }
        let gemini = contents(AgentKind::Gemini, 0);
        assert_eq!(gemini.get("ppid"), None);
        assert_eq!(gemini.get("ideName"), None);
    }

    /// Difference 5 and difference 24: the token and `ideInfo` are always written, though drafts and official
    /// extensions omit them; without `ideInfo` an unknown editor is "not supported".
    #[test]
    fn token_and_identity_are_in_every_file() {
        for (agent, file) in [(AgentKind::Gemini, 0), (AgentKind::Qwen, 0), (AgentKind::Qwen, 1)] {
            let contents = contents(agent, file);
            assert_eq!(contents["port"], 4321);
            assert_eq!(contents["workspacePath"], "/a:/b");
            assert_eq!(contents["authToken"], Secret::from_bytes([7; 32]).reveal());
            assert_eq!(contents["ideInfo"]["name"], "neovim");
            assert_eq!(contents["ideInfo"]["displayName"], "Neovim");
            assert_eq!(contents["companion"], "alongside");
            assert_eq!(contents["companionPid"], std::process::id());
        }
    }

    /// C2: the editor's process, from which its terminals descend, and every path of a folder.
    #[test]
    fn lock_of_claude_has_what_both_readers_need() {
        let environment = Environment::new("/home/ada", "/project");
        let mut announcement = announcement(&[Path::new("/real"), Path::new("/b")]);
        announcement.aliases = vec![PathBuf::from("/link")];
        announcement.pid = 1;
        for rule in Dialect::of(AgentKind::Claude).files {
            let (text, problems) = announcement.contents(&environment, rule);
            let lock: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(lock["pid"], 1, "the editor's");
            assert_eq!(lock["workspaceFolders"], json!(["/real", "/b", "/link"]));
            assert_eq!(lock["transport"], "ws");
            assert_eq!(lock["ideName"], "Neovim");
            assert_eq!(lock["authToken"], Secret::from_bytes([7; 32]).reveal());
            assert!(
                lock.get("workspacePath").is_none() && lock.get("ppid").is_none(),
                "{lock}"
            );
            assert!(problems.is_empty());
        }
    }

    /// Difference 18: an empty segment matches every directory in Gemini CLI and a relative one none in Qwen Code.
    #[test]
    fn empty_and_relative_folders_are_skipped() {
        for agent in [McpAgent::Gemini, McpAgent::Qwen] {
            let (text, problems) = joined(&["", "/a", "src", "/b"], agent);
            assert_eq!(text, "/a:/b");
            assert_eq!(problems.len(), 2);
            assert!(problems[1].contains("`src`"), "{problems:?}");
        }
        assert_eq!(joined(&[], McpAgent::Gemini), (String::new(), Vec::new()));
    }

    #[test]
    fn folder_with_delimiter_is_skipped_only_for_gemini() {
        let (text, problems) = joined(&["/a:b", "/c"], McpAgent::Qwen);
        assert_eq!(text, r#"["/a:b","/c"]"#);
        assert!(problems.is_empty());
        let (text, problems) = joined(&["/a:b", "/c"], McpAgent::Gemini);
        assert_eq!(text, "/c");
        assert!(problems[0].contains("/a:b"), "{problems:?}");
    }

    #[cfg(unix)]
    #[test]
    fn non_unicode_folder_is_reported() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;

        let root = PathBuf::from(OsStr::from_bytes(b"/a\xff"));
        let (text, problems) = workspace_path(&[root], McpAgent::Qwen, Platform::Unix);
        assert_eq!(text, "");
        assert!(matches!(problems[..], [DiscoveryError::RootNotUnicode { .. }]));
    }
}

//! A snapshot of everything the lookup rules depend on.
//!
//! Environment variables, the home directory and the platform decide where agents look. Rules that read those from the
//! process could only be tested by changing the process, so all of them take an [`Environment`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use alongside_core::dialect::BaseDirectory;
use alongside_platform::Platform;

use crate::{dotenv, node_path, place};

/// A snapshot of the process environment.
#[derive(Clone, Debug)]
pub struct Environment {
    pub variables: BTreeMap<String, String>,
    pub home: Option<PathBuf>,
    /// The working directory, against which relative settings are resolved.
    pub working_directory: PathBuf,
    /// Whether we are in a container: `/.dockerenv` or `/run/.containerenv` exists.
    pub in_container: bool,
    /// Our PID.
    pub pid: u32,
    /// Our user id; `None` on Windows.
    pub uid: Option<u32>,
    /// The host name: PIDs in a file from another machine are meaningless here.
    pub host_name: Option<String>,
    pub platform: Platform,
}

impl Environment {
    /// The environment of the current process.
    pub fn current() -> Self {
        Self {
            variables: std::env::vars_os()
                .map(|(name, value)| {
                    (
                        name.to_string_lossy().into_owned(),
                        value.to_string_lossy().into_owned(),
                    )
                })
                .collect(),
            home: std::env::home_dir().filter(|home| !home.as_os_str().is_empty()),
            // Without a working directory no relative path can resolve anyway; the root is a harmless default.
            working_directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            in_container: Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists(),
            pid: std::process::id(),
            uid: current_uid(),
            host_name: current_host_name(),
            platform: Platform::current(),
        }
    }

    /// An environment with this home and working directory, no variables and no container, for tests and trials.
    pub fn new(home: impl Into<PathBuf>, working_directory: impl Into<PathBuf>) -> Self {
        Self {
            variables: BTreeMap::new(),
            home: Some(home.into()),
            working_directory: working_directory.into(),
            in_container: false,
            pid: std::process::id(),
            uid: current_uid(),
            host_name: current_host_name(),
            platform: Platform::current(),
        }
    }

    /// The same environment with one more variable.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// A variable, unless it is unset or empty: the agents rarely distinguish the two.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.raw_variable(name).filter(|value| !value.is_empty())
    }

    /// Node's `os.tmpdir()`, which differs from Rust's: on Unix it also reads `TMP` and `TEMP`, and trims one slash.
    pub fn node_temporary_directory(&self) -> PathBuf {
        let (directory, separator) = match self.platform {
            Platform::Windows => {
                let directory = self.first_of(&["TEMP", "TMP"]).map_or_else(
                    || {
                        format!(
                            "{}\\temp",
                            self.first_of(&["SystemRoot", "windir"]).unwrap_or("undefined")
                        )
                    },
                    str::to_owned,
                );
                (directory, '\\')
            }
            Platform::Unix | Platform::MacOs => {
                let directory = self.first_of(&["TMPDIR", "TMP", "TEMP"]).unwrap_or("/tmp");
                (directory.to_owned(), '/')
            }
        };
        let is_root = directory.len() == 1 || directory.ends_with(":\\");
        let trimmed = match directory.strip_suffix(separator) {
            Some(trimmed) if !is_root => trimmed,
            _ => &directory,
        };
        self.working_directory.join(trimmed)
    }

    /// Claude Code's own directory: `CLAUDE_CONFIG_DIR`, else `~/.claude`.
    pub fn claude_home(&self) -> PathBuf {
        self.agent_home("CLAUDE_CONFIG_DIR", ".claude")
    }

    /// `~/.claude`, where opencode looks, whatever is configured.
    pub fn default_claude_home(&self) -> PathBuf {
        let home = self.home.clone();
        home.unwrap_or_else(|| self.node_temporary_directory()).join(".claude")
    }

    /// Copilot CLI's own directory: `COPILOT_HOME`, else `~/.copilot`.
    pub fn copilot_home(&self) -> PathBuf {
        self.agent_home("COPILOT_HOME", ".copilot")
    }

    /// Codex' own directory: `CODEX_HOME`, else `~/.codex`.
    pub fn codex_home(&self) -> PathBuf {
        self.agent_home("CODEX_HOME", ".codex")
    }

    /// Gemini CLI's own directory: `.gemini` in `GEMINI_CLI_HOME`, else in the home directory.
    pub fn gemini_home(&self) -> PathBuf {
        self.agent_home("GEMINI_CLI_HOME", "").join(".gemini")
    }

    /// Whether a program is on the `PATH`.
    pub fn has_program(&self, name: &str) -> bool {
        let variable = |name| self.variable(name).unwrap_or_default();
        let is_program = &alongside_platform::is_executable;
        alongside_platform::on_path(self.platform, variable("PATH"), variable("PATHEXT"), name, is_program).is_some()
    }

    fn agent_home(&self, variable: &str, name: &str) -> PathBuf {
        match (self.variable(variable), &self.home) {
            (Some(configured), _) => self.working_directory.join(configured),
            (None, Some(home)) => home.join(name),
            (None, None) => self.node_temporary_directory().join(name),
        }
    }

    /// Qwen Code's own directory: `QWEN_HOME`, which may also be set in `~/.qwen/.env` or `~/.env`, else `~/.qwen`.
    pub fn qwen_home(&self) -> PathBuf {
        let default = match &self.home {
            Some(home) => home.join(".qwen"),
            None => self.node_temporary_directory().join(".qwen"),
        };
        let configured = match self.raw_variable("QWEN_HOME") {
            // An empty value still stops Qwen Code from reading the files.
            Some("") => None,
            Some(configured) => Some(configured.to_owned()),
            None => qwen_home_from_files(&default),
        };
        match configured {
            Some(configured) => self.expand(&configured),
            None => default,
        }
    }

    /// The sockets on which Codex CLI asks for the context, in the order in which it tries them. Empty on Windows, where it uses a
    /// named pipe.
    pub fn codex_sockets(&self) -> Vec<PathBuf> {
        let Some(uid) = self.uid else { return Vec::new() };
        // Rust's temporary directory, not Node's.
        let temporary = self.variable("TMPDIR").unwrap_or("/tmp");
        let temporary = self.working_directory.join(temporary).join("codex-ipc");
        let for_root = (uid == 0).then(|| temporary.join("ipc.sock"));
        let for_user = temporary.join(format!("ipc-{uid}.sock"));
        let in_home = self.codex_home().join("ipc").join("ipc.sock");
        [in_home].into_iter().chain(for_root).chain([for_user]).collect()
    }

    /// The directories in which other users may read the tokens in discovery files, and what to do about each.
    pub fn exposures(&self) -> Vec<String> {
        let mut found: Vec<(PathBuf, &str)> = Vec::new();
        for (_, rule) in place::rules() {
            let directory = place::base(self, rule);
            let is_known = |(known, _): &(PathBuf, &str)| {
                alongside_platform::path::key(self.platform, known)
                    == alongside_platform::path::key(self.platform, &directory)
            };
            if !found.iter().any(is_known) && self.is_outside_profile(&directory) {
                found.push((directory, remedy(rule.base)));
            }
        }
        let exposure = |(directory, remedy): (PathBuf, &str)| {
            format!(
                "{} is outside your profile, so other users may read the tokens in it; {remedy}",
                directory.display()
            )
        };
        found.into_iter().map(exposure).collect()
    }

    /// Whether a directory may be readable by other users because it is outside the user's profile: on Windows, a temporary directory
    /// such as `D:\\temp` has the permissions of its drive.
    fn is_outside_profile(&self, directory: &Path) -> bool {
        let Some(home) = self.home.as_deref().filter(|_| self.platform == Platform::Windows) else {
            return false;
        };
        // `TEMP` may be a short name such as `C:\\Users\\ADALOV~1\\…`, or lead elsewhere.
        !is_below(
            self.platform,
            &real_as_far_as_it_exists(directory),
            &real_as_far_as_it_exists(home),
        )
    }

    /// An absolute path with its links, as a shell shows it: `PWD` is the working directory as the user got there.
    pub fn logical_path(&self, path: &Path) -> PathBuf {
        let here = self.variable("PWD").map(Path::new);
        let is_here = |here: &&Path| {
            let real = alongside_platform::path::real(here).ok();
            here.is_absolute() && real.is_some() && real == alongside_platform::path::real(&self.working_directory).ok()
        };
        let here = here.filter(is_here).unwrap_or(&self.working_directory);
        node_path::resolve(here, path)
    }

    /// Expands a directory setting: `~` is the home; relative paths are relative to the working directory.
    fn expand(&self, setting: &str) -> PathBuf {
        let in_home = match setting {
            "~" => Some(""),
            _ => setting.strip_prefix("~/").or_else(|| setting.strip_prefix("~\\")),
        };
        let expanded = match in_home {
            Some(below) => {
                let segments = below.split(['/', '\\']).filter(|segment| !segment.is_empty());
                segments.fold(self.home.clone().unwrap_or_default(), |path, segment| {
                    path.join(segment)
                })
            }
            None => PathBuf::from(setting),
        };
        node_path::resolve(&self.working_directory, &expanded)
    }

    fn first_of(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.variable(name))
    }

    /// A variable that may be empty.
    pub(crate) fn raw_variable(&self, name: &str) -> Option<&str> {
        let value = match self.platform {
            Platform::Windows => {
                let mut variables = self.variables.iter();
                variables.find_map(|(key, value)| key.eq_ignore_ascii_case(name).then_some(value))
            }
            Platform::Unix | Platform::MacOs => self.variables.get(name),
        };
        value.map(String::as_str)
    }
}

/// How to have a directory of discovery files where other users cannot read them.
fn remedy(base: BaseDirectory) -> &'static str {
    match base {
        BaseDirectory::NodeTemporary => "set TEMP to a private directory",
        BaseDirectory::QwenHome => "set QWEN_HOME to a private directory",
        BaseDirectory::ClaudeHome => "set CLAUDE_CONFIG_DIR to a private directory",
        BaseDirectory::CopilotHome => "set COPILOT_HOME to a private directory",
        // No variable names it, so it is a link.
        BaseDirectory::ClaudeDefault => "replace the link with a directory in your profile",
    }
}

/// Whether a path is a directory or below it, as far as the text tells, so that it can be tested on other systems.
fn is_below(platform: Platform, path: &Path, directory: &Path) -> bool {
    let key = |path: &Path| alongside_platform::path::key(platform, path);
    let (path, directory) = (key(path), key(directory));
    let below = path
        .to_str()
        .zip(directory.to_str())
        .and_then(|(path, directory)| path.strip_prefix(directory));
    below
        .is_some_and(|below| below.is_empty() || below.starts_with('\\') || directory.to_string_lossy().ends_with('\\'))
}

/// A path with the links and short names resolved of the directories that exist.
fn real_as_far_as_it_exists(path: &Path) -> PathBuf {
    let mut ancestors = path.ancestors();
    let found = ancestors.find_map(|ancestor| Some((ancestor, alongside_platform::path::real(ancestor).ok()?)));
    match found {
        Some((ancestor, real)) => real.join(path.strip_prefix(ancestor).unwrap_or(path)),
        None => path.to_owned(),
    }
}

/// `QWEN_HOME` from the first of two files that sets it: `.env` in the default directory, then the one next to it.
fn qwen_home_from_files(default: &Path) -> Option<String> {
    let next_to_it = default.parent().map(|home| home.join(".env"));
    [Some(default.join(".env")), next_to_it]
        .into_iter()
        .flatten()
        .find_map(|file| {
            let source = std::fs::read(file).ok()?;
            dotenv::value_of(&String::from_utf8_lossy(&source), "QWEN_HOME")
        })
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere there is no user id")]
fn current_uid() -> Option<u32> {
    Some(rustix::process::getuid().as_raw())
}

#[cfg(not(unix))]
fn current_uid() -> Option<u32> {
    None
}

#[cfg(unix)]
fn current_host_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    (!name.is_empty()).then_some(name)
}

#[cfg(not(unix))]
fn current_host_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn unix() -> Environment {
        Environment {
            platform: Platform::Unix,
            ..Environment::new("/home/ada", "/project")
        }
    }

    #[test]
    fn temporary_directory_on_another_drive_is_outside_the_profile() {
        let windows = Environment {
            platform: Platform::Windows,
            ..Environment::new(r"C:\Users\ada", "/")
        };
        for (directory, outside) in [
            (r"C:\Users\ada\AppData\Local\Temp\gemini\ide", false),
            (r"c:\users\ADA\AppData", false),
            (r"C:\Users\ada2\x", true),
            (r"D:\temp\gemini\ide", true),
            (r"C:\Windows\Temp", true),
        ] {
            assert_eq!(windows.is_outside_profile(Path::new(directory)), outside, "{directory}");
        }
    }

    #[test]
    fn exposed_directory_is_reported_once_with_its_variable() {
        let windows = |home: &str| Environment {
            platform: Platform::Windows,
            working_directory: PathBuf::new(),
            ..Environment::new(home, "")
        };
        let private = windows(r"C:\Users\ada").with("TEMP", r"C:\Users\ada\Temp");
        assert_eq!(private.exposures(), <[&str; 0]>::default());
        let exposure = |directory: &str, variable: &str| {
            format!(
                "{directory} is outside your profile, so other users may read the tokens in it; set {variable} to a private directory"
            )
        };
        let all = private
            .clone()
            .with("TEMP", r"D:\temp")
            .with("QWEN_HOME", r"D:\qwen")
            .with("CLAUDE_CONFIG_DIR", r"D:\claude")
            .with("COPILOT_HOME", r"D:\copilot");
        let expected = [
            exposure(r"D:\temp", "TEMP"),
            exposure(r"D:\qwen", "QWEN_HOME"),
            exposure(r"D:\claude", "CLAUDE_CONFIG_DIR"),
            exposure(r"D:\copilot", "COPILOT_HOME"),
        ];
        let found = all.exposures();
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for line in expected {
            assert!(found.contains(&line), "{line}: {found:#?}");
        }
        let one = private
            .with("QWEN_HOME", r"D:\agents")
            .with("CLAUDE_CONFIG_DIR", r"d:\AGENTS");
        assert_eq!(one.exposures().len(), 1, "{:?}", one.exposures());
        // Elsewhere the directories have modes.
        assert_eq!(unix().exposures(), <[&str; 0]>::default());
    }

    /// A link stands for a short name, which only Windows has.
    #[cfg(unix)]
    #[test]
    fn profile_with_another_name_is_the_profile() {
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str| scratch.path().join(name);
        fs::create_dir_all(path("Ada Lovelace").join("Temp")).unwrap();
        fs::create_dir(path("elsewhere")).unwrap();
        std::os::unix::fs::symlink(path("Ada Lovelace"), path("ADALOV~1")).unwrap();
        std::os::unix::fs::symlink(path("elsewhere"), path("Ada Lovelace").join("linked")).unwrap();
        let windows = |home: &str| Environment {
            platform: Platform::Windows,
            ..Environment::new(path(home), "/")
        };
        for (directory, outside) in [
            ("Temp", false),
            ("Temp/gemini/ide", false),
            ("missing", false),
            ("linked/ide", true),
        ] {
            let directory = path("ADALOV~1").join(directory);
            for home in ["Ada Lovelace", "ADALOV~1"] {
                assert_eq!(windows(home).is_outside_profile(&directory), outside, "{directory:?}");
            }
        }
    }

    #[test]
    fn temporary_directory_matches_node() {
        assert_eq!(unix().node_temporary_directory(), Path::new("/tmp"));
        let environment = unix().with("TEMP", "/c").with("TMP", "/b/");
        assert_eq!(environment.node_temporary_directory(), Path::new("/b"));
        let environment = environment.with("TMPDIR", "/a//");
        assert_eq!(environment.node_temporary_directory().to_str(), Some("/a/"));
        assert_eq!(
            environment.with("TMPDIR", "").node_temporary_directory(),
            Path::new("/b")
        );
        assert_eq!(unix().with("TMPDIR", "/").node_temporary_directory(), Path::new("/"));
    }

    #[test]
    fn temporary_directory_on_windows_prefers_temp() {
        let windows = Environment {
            platform: Platform::Windows,
            working_directory: PathBuf::new(),
            ..unix()
        };
        let windows = windows.with("SYSTEMROOT", "C:\\Windows");
        assert_eq!(windows.node_temporary_directory().to_str(), Some("C:\\Windows\\temp"));
        let windows = windows.with("Tmp", "D:\\").with("TMPDIR", "E:\\x");
        assert_eq!(windows.node_temporary_directory().to_str(), Some("D:\\"));
        let windows = windows.with("TEMP", "C:\\t\\");
        assert_eq!(windows.node_temporary_directory().to_str(), Some("C:\\t"));
    }

    #[test]
    fn qwen_home_defaults_to_home_and_honors_the_variable() {
        assert_eq!(unix().qwen_home(), Path::new("/home/ada/.qwen"));
        assert_eq!(unix().with("QWEN_HOME", "/q").qwen_home(), Path::new("/q"));
        assert_eq!(unix().with("QWEN_HOME", "~").qwen_home(), Path::new("/home/ada"));
        assert_eq!(
            unix().with("QWEN_HOME", "~/a//b").qwen_home(),
            Path::new("/home/ada/a/b")
        );
        assert_eq!(unix().with("QWEN_HOME", "~\\a").qwen_home(), Path::new("/home/ada/a"));
        assert_eq!(unix().with("QWEN_HOME", "../q").qwen_home(), Path::new("/q"));
        assert_eq!(unix().with("QWEN_HOME", "").qwen_home(), Path::new("/home/ada/.qwen"));
    }

    /// X1: where Codex looks, and in which order.
    #[test]
    fn codex_sockets_are_in_its_own_order() {
        let user = Environment {
            uid: Some(1000),
            ..unix()
        };
        let paths = |environment: Environment| -> Vec<String> {
            let sockets = environment.codex_sockets().into_iter();
            sockets.map(|path| path.to_str().unwrap().to_owned()).collect()
        };
        let in_home = "/home/ada/.codex/ipc/ipc.sock";
        assert_eq!(paths(user.clone()), [in_home, "/tmp/codex-ipc/ipc-1000.sock"]);
        let elsewhere = user.clone().with("CODEX_HOME", "/c").with("TMPDIR", "/t");
        assert_eq!(paths(elsewhere), ["/c/ipc/ipc.sock", "/t/codex-ipc/ipc-1000.sock"]);
        let root = Environment {
            uid: Some(0),
            ..user.clone()
        };
        assert_eq!(
            paths(root),
            [in_home, "/tmp/codex-ipc/ipc.sock", "/tmp/codex-ipc/ipc-0.sock"]
        );
        assert!(paths(Environment { uid: None, ..user }).is_empty());
    }

    #[test]
    fn qwen_home_without_home_is_temporary() {
        let homeless = Environment { home: None, ..unix() };
        assert_eq!(homeless.qwen_home(), Path::new("/tmp/.qwen"));
    }

    #[test]
    fn qwen_home_from_env_files_prefers_the_inner_one() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment {
            platform: Platform::Unix,
            ..Environment::new(home.path(), "/project")
        };
        fs::write(home.path().join(".env"), "QWEN_HOME=/outer\n").unwrap();
        assert_eq!(environment.qwen_home(), Path::new("/outer"));
        fs::create_dir(home.path().join(".qwen")).unwrap();
        fs::write(home.path().join(".qwen/.env"), "OTHER=1\n").unwrap();
        assert_eq!(environment.qwen_home(), Path::new("/outer"));
        fs::write(home.path().join(".qwen/.env"), "export QWEN_HOME=\"~/inner\"\n").unwrap();
        assert_eq!(environment.qwen_home(), home.path().join("inner"));
        let emptied = environment.clone().with("QWEN_HOME", "");
        assert_eq!(emptied.qwen_home(), home.path().join(".qwen"));
        assert_eq!(environment.with("QWEN_HOME", "/set").qwen_home(), Path::new("/set"));
    }
}

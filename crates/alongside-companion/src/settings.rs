//! Settings: the user's `config.toml` and a workspace's `.alongside.toml`.
//!
//! A workspace may come from anywhere, so its file can only make things stricter. An unknown key or an invalid value is an
//! error with its line and a suggestion: a silently ignored setting is worse than none.

mod keys;
mod reader;
mod terminal;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alongside_agent::settings::DaemonSettings;
use alongside_core::Secret;
use alongside_core::privacy::{PatternError, Privacy};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use keys::{AgentKey, Key};
use reader::Reader;
pub use terminal::{RunSplit, TerminalAlert, TerminalBackground};

pub const WORKSPACE_FILE: &str = ".alongside.toml";

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `companion.name`: the short name that agents are sent.
    pub name: Option<String>,
    /// `companion.display-name`: the name that agents show.
    pub display_name: Option<String>,
    /// `page.open`: whether the review page is opened in the browser at the start.
    pub open_page: bool,
    /// `sessions.max`: how many agents may be connected.
    pub max_sessions: MaxSessions,
    /// `sessions.resume-*`: how long a restarted companion takes the port and the token of the previous one.
    pub resume: ResumeLimits,
    /// `review.outside-workspace`: whether agents may propose changes outside every root.
    pub outside_workspace: OutsideWorkspace,
    /// `hooks.without-companion`: what a hook does if no companion is running; `None` for the agent's default.
    pub without_companion: Option<WithoutCompanion>,
    /// `terminal.mouse`: whether the terminal reviewer uses the mouse, which then no longer selects text.
    pub terminal_mouse: bool,
    /// `terminal.alert`: what the terminal reviewer does when a change arrives.
    pub terminal_alert: TerminalAlert,
    /// `terminal.background`: for which background the terminal reviewer picks its colors.
    pub terminal_background: TerminalBackground,
    /// `run.split`: whether `alongside run` opens the terminal reviewer next to the agent, in tmux.
    pub run_split: RunSplit,
    /// `agents.<id>`: agents that can be started for the chat.
    pub agents: BTreeMap<String, AgentSettings>,
    /// `daemon.*`: the daemon that the chat can use.
    pub daemon: DaemonSettings,
    /// `privacy.hide`: globs, with the file that they are written in.
    hide: Vec<(PathBuf, Option<PathBuf>, Vec<String>)>,
}

/// An agent that can be started for the chat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSettings {
    /// `agents.<id>.command`: the program and its arguments.
    pub command: Vec<String>,
    /// `agents.<id>.name`: its display name.
    pub name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxSessions(pub usize);

impl Default for MaxSessions {
    fn default() -> Self {
        Self(256)
    }
}

/// How long agents and pages of a companion that ended can come back to the next one. After that it listens on another port, with
/// another token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeLimits {
    pub after_stop: Duration,
    pub after_crash: Duration,
}

impl Default for ResumeLimits {
    fn default() -> Self {
        Self {
            after_stop: Duration::from_mins(10),
            after_crash: Duration::from_hours(12),
        }
    }
}

/// Whether agents may propose changes to files outside every folder of the workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutsideWorkspace {
    /// The user sees the path and decides.
    #[default]
    Allow,
    Forbid,
}

/// What a hook does with a change that cannot be reviewed because no companion is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithoutCompanion {
    Deny,
    /// The agent does what it does without a hook. In a mode that does not ask, it writes.
    Ask,
}

#[derive(Debug)]
pub struct SettingsError {
    file: PathBuf,
    line: Option<usize>,
    message: String,
}

impl std::error::Error for SettingsError {}

impl fmt::Display for SettingsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(formatter, "{}, line {line}: {}", self.file.display(), self.message),
            None => write!(formatter, "{}: {}", self.file.display(), self.message),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner<'a> {
    User,
    Workspace(&'a Path),
}

impl Settings {
    /// Reads the user's settings and those of each folder of the workspace; missing files are skipped.
    pub fn load(user_file: &Path, workspace: &[PathBuf]) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        settings.load_file(user_file, Owner::User)?;
        for folder in workspace {
            settings.load_file(&folder.join(WORKSPACE_FILE), Owner::Workspace(folder))?;
        }
        Ok(settings)
    }

    /// The privacy rules: built in, configured, and those of the ignore files of each folder.
    pub fn privacy(&self, workspace: &[PathBuf], ignore_files: &[&str]) -> Result<Privacy, PatternError> {
        let mut privacy = Privacy::default();
        for (file, root, patterns) in &self.hide {
            let patterns = patterns.iter().map(String::as_str);
            if let Some(error) = privacy
                .hide(&file.display().to_string(), root.as_deref(), patterns)
                .pop()
            {
                return Err(error);
            }
        }
        let files = workspace
            .iter()
            .flat_map(|folder| ignore_files.iter().map(move |name| (folder, folder.join(name))));
        for (folder, file) in files {
            let Ok(text) = fs::read(&file) else { continue };
            let text = String::from_utf8_lossy(&text);
            // Git skips an invalid line as well and applies the rest of the file.
            for error in privacy.hide(&file.display().to_string(), Some(folder), text.lines()) {
                tracing::warn!(%error, "skipping an invalid line in an ignore file");
            }
        }
        Ok(privacy)
    }

    fn load_file(&mut self, file: &Path, owner: Owner<'_>) -> Result<(), SettingsError> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                let message = format!("cannot be read: {error}");
                return Err(SettingsError {
                    file: file.to_owned(),
                    line: None,
                    message,
                });
            }
        };
        let reader = Reader {
            file,
            text: &text,
            owner,
        };
        let table = DeTable::parse(&text).map_err(|error| {
            reader.error(
                error.span(),
                format!("invalid TOML: {}", error.message().replace('\n', "; ")),
            )
        })?;
        for (section, value) in table.get_ref() {
            let DeValue::Table(section_table) = value.get_ref() else {
                return Err(reader.unknown_key(section.get_ref(), section.span()));
            };
            for (key, value) in section_table {
                if section.get_ref() == "agents" {
                    self.set_agent(&reader, key.get_ref(), key.span(), value)?;
                    continue;
                }
                let name = format!("{}.{}", section.get_ref(), key.get_ref());
                let known = Key::parse(&name).filter(|key| reader.may_set(key.scope()));
                let known = known.ok_or_else(|| reader.unknown_key(&name, key.span()))?;
                self.set(&reader, known, value)?;
            }
        }
        Ok(())
    }

    fn set_agent(
        &mut self,
        reader: &Reader<'_>,
        id: &str,
        place: Range<usize>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), SettingsError> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(reader.unknown_key(&format!("agents.{id}"), place));
        };
        if !reader.may_set(AgentKey::Command.scope()) {
            return Err(reader.unknown_key(AgentKey::Command.name(), place));
        }
        let mut agent = AgentSettings::default();
        for (key, value) in table {
            let general_name = format!("agents.<id>.{}", key.get_ref());
            let name = format!("agents.{id}.{}", key.get_ref());
            match AgentKey::parse(&general_name) {
                Some(AgentKey::Command) => agent.command = reader.strings(&name, value)?,
                Some(AgentKey::Name) => agent.name = Some(reader.string(&name, value)?),
                None => return Err(reader.unknown_key(&general_name, key.span())),
            }
        }
        if agent.command.is_empty() {
            let message = format!("missing `agents.{id}.command`; expected a list such as [\"program\", \"argument\"]");
            return Err(reader.error(Some(place), message));
        }
        self.agents.insert(id.to_owned(), agent);
        Ok(())
    }

    fn set(&mut self, reader: &Reader<'_>, key: Key, value: &Spanned<DeValue<'_>>) -> Result<(), SettingsError> {
        let name = key.name();
        match key {
            Key::CompanionName => self.name = Some(reader.string(name, value)?),
            Key::CompanionDisplayName => self.display_name = Some(reader.string(name, value)?),
            Key::PageOpen => self.open_page = reader.bool(name, value)?,
            Key::DaemonEnabled => self.daemon.enabled = Some(reader.bool(name, value)?),
            Key::DaemonUrl => self.daemon.url = Some(reader.string(name, value)?),
            Key::DaemonToken => self.daemon.token = Secret::new(&reader.string(name, value)?),
            Key::DaemonTokenFile => self.daemon.token_file = Some(reader.string(name, value)?.into()),
            Key::DaemonCaFile => self.daemon.ca_file = Some(reader.string(name, value)?.into()),
            Key::PrivacyHide => {
                let root = match reader.owner {
                    Owner::User => None,
                    Owner::Workspace(root) => Some(root.to_owned()),
                };
                self.hide
                    .push((reader.file.to_owned(), root, reader.strings(name, value)?));
            }
            Key::SessionsMax => {
                let count = reader.number(name, value, 1..=1024)?;
                self.max_sessions = MaxSessions(usize::try_from(count).unwrap_or_default());
            }
            Key::ResumeAfterStop => {
                self.resume.after_stop = Duration::from_mins(reader.number(name, value, 0..=1440)?);
            }
            Key::ResumeAfterCrash => {
                self.resume.after_crash = Duration::from_hours(reader.number(name, value, 0..=720)?);
            }
            Key::HooksWithoutCompanion => {
                let words = [("deny", WithoutCompanion::Deny), ("ask", WithoutCompanion::Ask)];
                self.without_companion = Some(reader.word(name, value, &words)?);
            }
            Key::TerminalMouse => self.terminal_mouse = reader.bool(name, value)?,
            Key::TerminalAlert => self.terminal_alert = reader.word(name, value, TerminalAlert::WORDS)?,
            Key::TerminalBackground => {
                self.terminal_background = reader.word(name, value, TerminalBackground::WORDS)?;
            }
            Key::RunSplit => self.run_split = reader.word(name, value, RunSplit::WORDS)?,
            Key::ReviewOutsideWorkspace => match (reader.string(name, value)?.as_str(), reader.owner) {
                ("forbid", _) => self.outside_workspace = OutsideWorkspace::Forbid,
                ("allow", Owner::User) => self.outside_workspace = OutsideWorkspace::Allow,
                ("allow", Owner::Workspace(_)) => {
                    let message = format!(
                        "`{name}` can be \"allow\" only in your user settings; a workspace can only set \"forbid\""
                    );
                    return Err(reader.error(Some(value.span()), message));
                }
                (other, _) => {
                    let message = format!("`{name}` must be \"allow\" or \"forbid\", not \"{other}\"");
                    return Err(reader.error(Some(value.span()), message));
                }
            },
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scratch(tempfile::TempDir);

    impl Scratch {
        fn new(user: &str, workspace: &str) -> Self {
            let scratch = tempfile::tempdir().unwrap();
            fs::write(scratch.path().join("config.toml"), user).unwrap();
            fs::write(scratch.path().join(WORKSPACE_FILE), workspace).unwrap();
            Self(scratch)
        }

        fn load(&self) -> Result<Settings, String> {
            let file = self.0.path().join("config.toml");
            Settings::load(&file, &[self.0.path().to_owned()]).map_err(|error| error.to_string())
        }
    }

    #[test]
    fn missing_files_give_the_defaults() {
        assert_eq!(
            Settings::load(Path::new("/none"), &["/none".into()]).unwrap(),
            Settings::default()
        );
    }

    #[test]
    fn settings_of_user_and_workspace_are_combined() {
        let user = "[companion]\nname = 'mine'\ndisplay-name = 'Mine'\n[privacy]\nhide = ['*.secret']\n";
        let scratch = Scratch::new(
            user,
            "[review]\noutside-workspace = 'forbid'\n[privacy]\nhide = ['/drafts/']",
        );
        let settings = scratch.load().unwrap();
        assert_eq!(
            (settings.name.as_deref(), settings.display_name.as_deref()),
            (Some("mine"), Some("Mine"))
        );
        assert_eq!(settings.outside_workspace, OutsideWorkspace::Forbid);
        let folder = scratch.0.path().to_owned();
        let privacy = settings.privacy(std::slice::from_ref(&folder), &[]).unwrap();
        let hidden = |path: &Path| privacy.rule_for(path, path).is_some();
        assert!(hidden(Path::new("/a.secret")) && hidden(&folder.join("drafts/a")));
        assert!(
            !hidden(Path::new("/elsewhere/drafts/a")),
            "a workspace hides only its own files"
        );
    }

    #[test]
    fn unknown_key_is_reported_with_its_line_and_a_suggestion() {
        let error = Scratch::new("[privacy]\n\nhides = []\n", "").load().unwrap_err();
        assert!(
            error.contains("config.toml, line 3") && error.contains("did you mean `privacy.hide`?"),
            "{error}"
        );
        let error = Scratch::new("[companion]\ndisplay_name = 'a'\n", "")
            .load()
            .unwrap_err();
        assert!(error.contains("did you mean `companion.display-name`?"), "{error}");
        let error = Scratch::new("colour = 'red'\n", "").load().unwrap_err();
        assert!(
            error.contains("unknown setting `colour`; expected one of companion.name"),
            "{error}"
        );
    }

    #[test]
    fn invalid_value_is_reported_with_its_line() {
        let error = Scratch::new("[review]\noutside-workspace = 'maybe'", "")
            .load()
            .unwrap_err();
        assert!(
            error.contains("line 2") && error.contains("\"allow\" or \"forbid\""),
            "{error}"
        );
        let error = Scratch::new("[privacy]\nhide = '*.a'", "").load().unwrap_err();
        assert!(error.contains("must be a list"), "{error}");
        let error = Scratch::new("[companion]\nname = 3", "").load().unwrap_err();
        assert!(error.contains("must be a non-empty string"), "{error}");
        let error = Scratch::new("[companion\n", "").load().unwrap_err();
        assert!(error.contains("line 1") && error.contains("invalid TOML"), "{error}");
    }

    #[test]
    fn workspace_can_only_make_things_stricter() {
        let error = Scratch::new("", "[companion]\nname = 'vscode'").load().unwrap_err();
        assert!(
            error.contains("`companion.name` cannot be set by a workspace"),
            "{error}"
        );
        let error = Scratch::new("", "[review]\noutside-workspace = 'allow'")
            .load()
            .unwrap_err();
        assert!(error.contains("only in your user settings"), "{error}");
    }

    #[test]
    fn agents_and_the_daemon_are_read_from_user_settings() {
        let user = "[agents.mine]\ncommand = ['/bin/mine', '--acp']\nname = 'Mine'\n\
                    [daemon]\nenabled = true\nurl = 'http://127.0.0.1:1'\ntoken = 's3cret'\ntoken-file = '/t'\n";
        let settings = Scratch::new(user, "").load().unwrap();
        assert_eq!(settings.agents["mine"].command, ["/bin/mine", "--acp"]);
        assert_eq!(settings.agents["mine"].name.as_deref(), Some("Mine"));
        assert_eq!(settings.daemon.enabled, Some(true));
        assert_eq!(settings.daemon.url.as_deref(), Some("http://127.0.0.1:1"));
        assert_eq!(settings.daemon.token_file.as_deref(), Some(Path::new("/t")));
        assert!(!format!("{settings:?}").contains("s3cret"));
        let error = Scratch::new("[agents.mine]\nname = 'Mine'\n", "").load().unwrap_err();
        assert!(
            error.contains("line 1") && error.contains("missing `agents.mine.command`"),
            "{error}"
        );
        let error = Scratch::new("[agents.mine]\ncomand = ['a']\n", "").load().unwrap_err();
        assert!(error.contains("did you mean `agents.<id>.command`?"), "{error}");
    }

    #[test]
    fn hooks_deny_or_ask_without_a_companion() {
        let read = |user| Scratch::new(user, "").load().map(|settings| settings.without_companion);
        assert_eq!(read(""), Ok(None));
        assert_eq!(
            read("[hooks]\nwithout-companion = 'deny'"),
            Ok(Some(WithoutCompanion::Deny))
        );
        assert_eq!(
            read("[hooks]\nwithout-companion = 'ask'"),
            Ok(Some(WithoutCompanion::Ask))
        );
        let error = read("[hooks]\nwithout-companion = 'write'").unwrap_err();
        assert!(
            error.contains("line 2") && error.contains("\"deny\" or \"ask\""),
            "{error}"
        );
        let error = Scratch::new("", "[hooks]\nwithout-companion = 'ask'")
            .load()
            .unwrap_err();
        assert!(error.contains("cannot be set by a workspace"), "{error}");
    }

    #[test]
    fn workspace_cannot_set_programs_or_the_daemon() {
        for (workspace, key) in [
            ("[agents.evil]\ncommand = ['sh', '-c', 'evil']\n", "agents.<id>.command"),
            ("[agents.qwen]\nname = 'evil'\n", "agents.<id>.command"),
            ("[daemon]\nenabled = true\n", "daemon.enabled"),
            ("[daemon]\nurl = 'http://127.0.0.1:1'\n", "daemon.url"),
            ("[daemon]\ntoken = 'x'\n", "daemon.token"),
            ("[daemon]\ntoken-file = '/x'\n", "daemon.token-file"),
            ("[daemon]\nca-file = '/x'\n", "daemon.ca-file"),
        ] {
            let error = Scratch::new("", workspace).load().unwrap_err();
            let expected = format!("`{key}` cannot be set by a workspace");
            assert!(error.contains(&expected), "{workspace}: {error}");
        }
    }

    #[test]
    fn invalid_line_in_an_ignore_file_does_not_affect_the_rest() {
        let scratch = Scratch::new("", "");
        let folder = scratch.0.path().to_owned();
        fs::write(folder.join(".geminiignore"), "a{b\n*.log\n!keep.log\n").unwrap();
        let privacy = Settings::default()
            .privacy(std::slice::from_ref(&folder), &[".geminiignore", ".qwenignore"])
            .unwrap();
        let path = folder.join("x.log");
        assert!(privacy.rule_for(&path, &path).is_some());
        let kept = folder.join("keep.log");
        assert!(privacy.rule_for(&kept, &kept).is_none());
    }
}

//! What a person has configured: `config.toml` of the user and `.alongside.toml` of a workspace.
//!
//! A workspace may come from anywhere, so its file can only make things stricter. An unknown key or a bad value is an
//! error with its place and a suggestion: a setting that is silently ignored is worse than none.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use alongside_agent::settings::DaemonSettings;
use alongside_core::Secret;
use alongside_core::privacy::{PatternError, Privacy};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The name of a workspace's own settings.
pub const WORKSPACE_FILE: &str = ".alongside.toml";

/// What is configured.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `companion.name`: the short name that agents are given.
    pub name: Option<String>,
    /// `companion.display-name`: the name that agents show.
    pub display_name: Option<String>,
    /// `page.open`: whether the review page is opened in the browser at the start.
    pub open_page: bool,
    /// `review.outside-workspace`: whether agents may propose changes outside every root.
    pub outside_workspace: OutsideWorkspace,
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
    /// `agents.<id>.name`: what people call it.
    pub name: Option<String>,
}

/// Whether agents may propose changes to files outside every folder of the workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutsideWorkspace {
    /// They may: the person sees the path and decides.
    #[default]
    Allow,
    /// They may not.
    Forbid,
}

/// What is wrong with a settings file, and where.
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

/// Whose file it is; a workspace's file knows fewer keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner<'a> {
    User,
    Workspace(&'a Path),
}

const USER_KEYS: &[&str] = &[
    "companion.name",
    "companion.display-name",
    "page.open",
    "privacy.hide",
    "review.outside-workspace",
    "daemon.enabled",
    "daemon.url",
    "daemon.token",
    "daemon.token-file",
    "daemon.ca-file",
    "agents.<id>.command",
    "agents.<id>.name",
];
const WORKSPACE_KEYS: &[&str] = &["privacy.hide", "review.outside-workspace"];

impl Settings {
    /// Reads the user's settings and those of each folder of the workspace; files that do not exist say nothing.
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
            // A line that is no pattern hides nothing for git either; the rest of the file still counts.
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
                self.set(
                    &reader,
                    &format!("{}.{}", section.get_ref(), key.get_ref()),
                    key.span(),
                    value,
                )?;
            }
        }
        Ok(())
    }

    /// A command is a program that runs as the person does: a workspace, which may come from anywhere, has no say in it.
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
        if reader.owner != Owner::User {
            return Err(reader.unknown_key("agents.<id>.command", place));
        }
        let mut agent = AgentSettings::default();
        for (key, value) in table {
            let name = format!("agents.{id}.{}", key.get_ref());
            match key.get_ref().as_ref() {
                "command" => agent.command = reader.texts(&name, value)?,
                "name" => agent.name = Some(reader.text(&name, value)?),
                other => return Err(reader.unknown_key(&format!("agents.<id>.{other}"), key.span())),
            }
        }
        if agent.command.is_empty() {
            let message = format!("missing `agents.{id}.command`; expected a list such as [\"program\", \"argument\"]");
            return Err(reader.error(Some(place), message));
        }
        self.agents.insert(id.to_owned(), agent);
        Ok(())
    }

    fn set(
        &mut self,
        reader: &Reader<'_>,
        key: &str,
        key_place: Range<usize>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), SettingsError> {
        if !reader.keys().contains(&key) {
            return Err(reader.unknown_key(key, key_place));
        }
        match key {
            "companion.name" => self.name = Some(reader.text(key, value)?),
            "companion.display-name" => self.display_name = Some(reader.text(key, value)?),
            "page.open" => self.open_page = reader.truth(key, value)?,
            "daemon.enabled" => self.daemon.enabled = Some(reader.truth(key, value)?),
            "daemon.url" => self.daemon.url = Some(reader.text(key, value)?),
            "daemon.token" => self.daemon.token = Secret::new(&reader.text(key, value)?),
            "daemon.token-file" => self.daemon.token_file = Some(reader.text(key, value)?.into()),
            "daemon.ca-file" => self.daemon.ca_file = Some(reader.text(key, value)?.into()),
            "privacy.hide" => {
                let root = match reader.owner {
                    Owner::User => None,
                    Owner::Workspace(root) => Some(root.to_owned()),
                };
                self.hide
                    .push((reader.file.to_owned(), root, reader.texts(key, value)?));
            }
            _ => match (reader.text(key, value)?.as_str(), reader.owner) {
                ("forbid", _) => self.outside_workspace = OutsideWorkspace::Forbid,
                ("allow", Owner::User) => self.outside_workspace = OutsideWorkspace::Allow,
                ("allow", Owner::Workspace(_)) => {
                    let message = format!(
                        "`{key}` can be \"allow\" only in your user settings; a workspace can only set \"forbid\""
                    );
                    return Err(reader.error(Some(value.span()), message));
                }
                (other, _) => {
                    let message = format!("`{key}` must be \"allow\" or \"forbid\", not \"{other}\"");
                    return Err(reader.error(Some(value.span()), message));
                }
            },
        }
        Ok(())
    }
}

/// One file while it is read.
struct Reader<'a> {
    file: &'a Path,
    text: &'a str,
    owner: Owner<'a>,
}

impl Reader<'_> {
    fn keys(&self) -> &'static [&'static str] {
        if self.owner == Owner::User {
            USER_KEYS
        } else {
            WORKSPACE_KEYS
        }
    }

    fn error(&self, place: Option<Range<usize>>, message: String) -> SettingsError {
        let line = place.map(|place| {
            self.text
                .bytes()
                .take(place.start)
                .filter(|&byte| byte == b'\n')
                .count()
                + 1
        });
        SettingsError {
            file: self.file.to_owned(),
            line,
            message,
        }
    }

    fn unknown_key(&self, key: &str, place: Range<usize>) -> SettingsError {
        let message = if self.owner != Owner::User && USER_KEYS.contains(&key) {
            format!("`{key}` cannot be set by a workspace; move it to your user settings")
        } else {
            match closest(key, self.keys()) {
                Some(meant) => format!("unknown setting `{key}`; did you mean `{meant}`?"),
                None => format!("unknown setting `{key}`; expected one of {}", self.keys().join(", ")),
            }
        };
        self.error(Some(place), message)
    }

    fn text(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<String, SettingsError> {
        match value.get_ref() {
            DeValue::String(text) if !text.is_empty() => Ok(text.to_string()),
            _ => Err(self.error(Some(value.span()), format!("`{key}` must be a non-empty string"))),
        }
    }

    fn truth(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<bool, SettingsError> {
        match value.get_ref() {
            DeValue::Boolean(truth) => Ok(*truth),
            _ => Err(self.error(Some(value.span()), format!("`{key}` must be true or false"))),
        }
    }

    fn texts(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, SettingsError> {
        match value.get_ref() {
            DeValue::Array(items) => items.iter().map(|item| self.text(key, item)).collect(),
            _ => Err(self.error(
                Some(value.span()),
                format!("`{key}` must be a list of strings, such as [\"one\", \"two\"]"),
            )),
        }
    }
}

/// The key that was probably meant: few letters differ, in the whole or in its last part.
fn closest(key: &str, keys: &'static [&'static str]) -> Option<&'static str> {
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().replace('_', "-");
    keys.iter()
        .map(|candidate| {
            (
                distance(key, candidate).min(distance(&last(key), &last(candidate)) + 1),
                *candidate,
            )
        })
        .filter(|(distance, _)| *distance <= 3)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many letters must be changed, added or removed to get from one word to the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for place in 0..other.len() {
            let replaced = diagonal + usize::from(letter != other[place]);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row.pop().unwrap_or_default()
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
    fn files_that_do_not_exist_say_nothing() {
        assert_eq!(
            Settings::load(Path::new("/none"), &["/none".into()]).unwrap(),
            Settings::default()
        );
    }

    #[test]
    fn every_setting_is_read() {
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
            "a workspace speaks for itself only"
        );
    }

    #[test]
    fn an_unknown_key_is_reported_with_its_line_and_a_suggestion() {
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
            error.contains("there is no setting `colour`; there are companion.name"),
            "{error}"
        );
    }

    #[test]
    fn a_bad_value_is_reported_with_its_line() {
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
        assert!(error.contains("must be a text"), "{error}");
        let error = Scratch::new("[companion\n", "").load().unwrap_err();
        assert!(error.contains("line 1") && error.contains("not TOML"), "{error}");
    }

    #[test]
    fn a_workspace_can_only_make_things_stricter() {
        let error = Scratch::new("", "[companion]\nname = 'vscode'").load().unwrap_err();
        assert!(error.contains("a workspace cannot set `companion.name`"), "{error}");
        let error = Scratch::new("", "[review]\noutside-workspace = 'allow'")
            .load()
            .unwrap_err();
        assert!(error.contains("only your own settings"), "{error}");
    }

    #[test]
    fn agents_and_the_daemon_are_read_from_the_persons_own_settings() {
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
            error.contains("line 1") && error.contains("`agents.mine.command` is missing"),
            "{error}"
        );
        let error = Scratch::new("[agents.mine]\ncomand = ['a']\n", "").load().unwrap_err();
        assert!(error.contains("did you mean `agents.<id>.command`?"), "{error}");
    }

    #[test]
    fn a_workspace_starts_no_program_and_names_no_daemon() {
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
            let expected = format!("a workspace cannot set `{key}`");
            assert!(error.contains(&expected), "{workspace}: {error}");
        }
    }

    #[test]
    fn ignore_files_hide_for_their_folder_and_a_bad_line_does_not_spoil_the_rest() {
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

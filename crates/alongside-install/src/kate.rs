//! Kate: entries in the settings of its LSP client that start `alongside lsp`, and the permission to start it.
//!
//! Kate starts one server for a language, and an entry of the user's takes the place of its own. So languages get an entry only if
//! the server that Kate would start is not installed, and if the user has no entry for them.

mod katerc;

use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};

use super::plan::{Change, Plan, read};
use super::{InstallContext, InstallError, InstallState, Installer, executable_remark, machine};
use crate::detect::DetectedIde;
use katerc::Katerc;

/// A language, the highlighting modes that it has in Kate, and the programs of which Kate starts one for it.
struct Language {
    id: &'static str,
    modes: &'static str,
    servers: &'static [&'static str],
}

const fn language(id: &'static str, modes: &'static str, servers: &'static [&'static str]) -> Language {
    Language { id, modes, servers }
}

const LANGUAGES: [Language; 16] = [
    language("bash", "^Bash$", &["bash-language-server"]),
    language("c", "^(C|ANSI C89|Objective-C)$", &["clangd"]),
    language("cpp", r"^(C\+\+|ISO C\+\+|Objective-C\+\+)$", &["clangd"]),
    language("css", "^CSS$", &["vscode-css-language-server", "css-languageserver"]),
    language("go", "^Go$", &["gopls"]),
    language(
        "html",
        "^HTML$",
        &["vscode-html-language-server", "html-languageserver"],
    ),
    language("javascript", "^JavaScript.*$", &["typescript-language-server"]),
    language(
        "json",
        "^JSON$",
        &["vscode-json-language-server", "vscode-json-languageserver"],
    ),
    language("latex", "^LaTeX$", &["texlab"]),
    language("markdown", "^Markdown$", &["marksman"]),
    language("python", "^Python$", &["pylsp"]),
    language("ruby", "^Ruby$", &["solargraph"]),
    language("rust", "^Rust$", &["rust-analyzer"]),
    language("toml", "^TOML$", &["taplo"]),
    language("typescript", "^TypeScript.*$", &["typescript-language-server"]),
    language("yaml", "^YAML$", &["yaml-language-server"]),
];

pub(super) struct Kate<'a> {
    context: &'a InstallContext<'a>,
    settings: PathBuf,
    katerc: PathBuf,
    /// The program's absolute path: Kate asks before it starts any other.
    program: String,
    executable: Option<PathBuf>,
}

impl<'a> Kate<'a> {
    pub(super) fn new(context: &'a InstallContext<'a>) -> Result<Self, InstallError> {
        let machine = machine(context);
        Ok(Self {
            context,
            settings: machine.kate_settings().ok_or(InstallError::NoHome)?,
            katerc: machine.katerc().ok_or(InstallError::NoHome)?,
            program: context.program.to_string_lossy().into_owned(),
            executable: machine.executable(DetectedIde::Kate),
        })
    }

    fn text(path: &Path) -> Result<Option<String>, InstallError> {
        let not_text = |_| InstallError::NotText { path: path.to_owned() };
        read(path)?
            .map(|bytes| String::from_utf8(bytes).map_err(not_text))
            .transpose()
    }

    fn settings(&self) -> Result<Settings, InstallError> {
        let text = Self::text(&self.settings)?;
        Settings::parse(text.as_deref().unwrap_or_default()).map_err(|reason| InstallError::Configuration {
            path: self.settings.clone(),
            reason,
        })
    }

    fn katerc(&self) -> Result<Katerc, InstallError> {
        Ok(Katerc::new(Self::text(&self.katerc)?.unwrap_or_default()))
    }

    /// The server that Kate would start for a language, if it is installed.
    fn own_server(&self, language: &Language) -> Option<&'static str> {
        let mut servers = language.servers.iter().copied();
        servers.find(|server| machine(self.context).on_path(server).is_some())
    }

    /// The languages to have an entry.
    fn wanted<'b>(&'b self, settings: &'b Settings) -> impl Iterator<Item = &'static Language> + 'b {
        LANGUAGES.iter().filter(|language| {
            settings.is_ours(language.id) || (!settings.has(language.id) && self.own_server(language).is_none())
        })
    }

    fn entry(&self, language: &Language) -> CstInputValue {
        let string = |text: &str| CstInputValue::String(text.to_owned());
        let command = vec![string(&self.program), string("lsp")];
        let marks = [".git", ".hg", ".jj", ".svn"].map(string).into();
        CstInputValue::Object(vec![
            ("command".to_owned(), CstInputValue::Array(command)),
            ("rootIndicationFileNames".to_owned(), CstInputValue::Array(marks)),
            ("highlightingModeRegex".to_owned(), string(language.modes)),
        ])
    }

    /// The settings with all entries, and those that were changed.
    fn with_entries(&self) -> Result<(Settings, Vec<&'static str>), InstallError> {
        let settings = self.settings()?;
        let wanted: Vec<&Language> = self.wanted(&settings).collect();
        let mut changed = Vec::new();
        for language in wanted {
            if settings.set(language.id, self.entry(language)) {
                changed.push(language.id);
            }
        }
        Ok((settings, changed))
    }

    /// The command line that Kate compares; `None` if the file's syntax has no simple form of it.
    fn command_line(&self) -> Option<String> {
        let is_plain = !self.program.contains([',', '\\', '\n', '[', '$']) && self.program.trim() == self.program;
        is_plain.then(|| format!("{} lsp", self.program))
    }
}

/// The settings of Kate's LSP client.
struct Settings {
    root: CstRootNode,
    servers: CstObject,
}

impl Settings {
    fn parse(text: &str) -> Result<Self, String> {
        let text = if text.trim().is_empty() { "{\n}\n" } else { text };
        let root = CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| error.to_string())?;
        let settings = root.object_value().ok_or("it is not an object")?;
        if settings.get("servers").is_some() && settings.object_value("servers").is_none() {
            return Err("its `servers` is not an object".to_owned());
        }
        let servers = settings.object_value_or_set("servers");
        Ok(Self { root, servers })
    }

    fn has(&self, language: &str) -> bool {
        self.servers.get(language).is_some()
    }

    /// Whether the entry of a language starts this program.
    fn is_ours(&self, language: &str) -> bool {
        let command = || {
            let entry = self.servers.object_value(language)?.array_value("command")?;
            let words: Vec<String> = entry.elements().iter().filter_map(string).collect();
            Some(matches!(words.as_slice(), [program, mode, ..] if mode == "lsp" && is_alongside(program)))
        };
        command().unwrap_or_default()
    }

    /// The program of an entry of ours.
    fn program(&self) -> Option<PathBuf> {
        let language = self.ours().into_iter().next()?;
        let command = self.servers.object_value(language)?.array_value("command")?;
        string(command.elements().first()?).map(PathBuf::from)
    }

    fn ours(&self) -> Vec<&'static str> {
        let ids = LANGUAGES.iter().map(|language| language.id);
        ids.filter(|id| self.is_ours(id)).collect()
    }

    /// Whether that changed anything.
    fn set(&self, language: &str, entry: CstInputValue) -> bool {
        let before = self.root.to_string();
        match self.servers.get(language) {
            Some(property) => property.set_value(entry),
            None => {
                self.servers.append(language, entry);
            }
        }
        self.root.to_string() != before
    }

    fn remove(&self, language: &str) {
        if let Some(property) = self.servers.get(language) {
            property.remove();
        }
    }

    /// `None` if nothing is left of the file.
    fn text(&self) -> Option<String> {
        let settings = self.root.object_value()?;
        if self.servers.properties().is_empty()
            && let Some(servers) = settings.get("servers")
        {
            servers.remove();
        }
        (!settings.properties().is_empty()).then(|| self.root.to_string())
    }
}

fn string(node: &CstNode) -> Option<String> {
    node.as_string_lit()?.decoded_value().ok()
}

fn is_alongside(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    name == "alongside" || name == "alongside.exe"
}

impl Installer for Kate<'_> {
    fn editor(&self) -> DetectedIde {
        DetectedIde::Kate
    }

    fn executable(&self) -> Option<PathBuf> {
        self.executable.clone()
    }

    fn place(&self) -> Option<PathBuf> {
        Some(self.settings.clone())
    }

    fn obstacle(&self) -> Option<InstallError> {
        None
    }

    fn state(&self) -> Result<InstallState, InstallError> {
        let (ours, (_, changed)) = (self.settings()?.ours(), self.with_entries()?);
        let katerc = self.katerc()?;
        let is_allowed = self
            .command_line()
            .is_none_or(|command| katerc.with(&command) == katerc.text);
        Ok(match (ours.is_empty(), changed.is_empty() && is_allowed) {
            (true, _) => InstallState::Absent,
            (false, true) => InstallState::Installed,
            (false, false) => InstallState::Outdated,
        })
    }

    fn program(&self, _state: InstallState) -> Option<PathBuf> {
        self.settings().ok()?.program()
    }

    fn plan_install(&self) -> Result<Plan, InstallError> {
        let (settings, _) = self.with_entries()?;
        let mut plan = Plan::default();
        let content = settings.root.to_string();
        plan.changes
            .extend(Change::write(self.settings.clone(), content.into_bytes(), true)?);
        match self.command_line() {
            Some(command) => {
                let content = self.katerc()?.with(&command);
                plan.changes
                    .extend(Change::write(self.katerc.clone(), content.into_bytes(), true)?);
            }
            None => plan.remarks.push(
                "Kate asks once whether it may start the language server; enable its LSP plugin if it is off."
                    .to_owned(),
            ),
        }
        plan.remarks
            .extend(executable_remark(DetectedIde::Kate, self.executable.as_ref()));
        plan.remarks.push(format!(
            "Kate starts one language server for a language. For {} that is alongside now; remove an entry if you install another server.",
            settings.ours().join(", ")
        ));
        let kept = LANGUAGES.iter().filter(|language| !settings.is_ours(language.id));
        let kept: Vec<&str> = kept.map(|language| language.id).collect();
        if !kept.is_empty() {
            plan.remarks.push(format!(
                "{} keep their own servers, because those are installed or you configured them: changes to such files are not shown in Kate.",
                kept.join(", ")
            ));
        }
        Ok(plan)
    }

    fn plan_uninstall(&self) -> Result<Plan, InstallError> {
        let settings = self.settings()?;
        let mut plan = Plan::default();
        let ours = settings.ours();
        if ours.is_empty() {
            return Ok(plan);
        }
        for language in ours {
            settings.remove(language);
        }
        plan.changes.extend(replace(&self.settings, settings.text())?);
        let katerc = self.katerc()?;
        plan.changes.extend(replace(&self.katerc, katerc.without(is_own_line))?);
        Ok(plan)
    }

    fn context(&self) -> &InstallContext<'_> {
        self.context
    }
}

/// Whether an allowed command line is one that an installation added.
fn is_own_line(line: &str) -> bool {
    line.strip_suffix(" lsp").is_some_and(is_alongside)
}

/// Writes a file, or removes it without content.
fn replace(path: &Path, content: Option<String>) -> Result<Option<Change>, InstallError> {
    match (content, read(path)?) {
        (Some(content), _) => Change::write(path.to_owned(), content.into_bytes(), false),
        (None, None) => Ok(None),
        (None, Some(before)) => Ok(Some(Change::Remove {
            path: path.to_owned(),
            before,
            keep: false,
        })),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::fixture::Fixture;
    use crate::{InstallOutcome, Mode, installer};
    use alongside_discovery::Platform;

    const SETTINGS: &str = ".config/kate/lspclient/settings.json";

    #[test]
    fn kate_starts_the_server_without_asking() {
        let scene = Fixture::on(Platform::Unix);
        let context = scene.context();
        let kate = installer(DetectedIde::Kate, &context).unwrap();
        assert_eq!(kate.status().state, InstallState::Absent);
        assert_eq!(kate.install(Mode::Real).outcome, InstallOutcome::Done);
        let settings = fs::read_to_string(scene.home().join(SETTINGS)).unwrap();
        let settings: serde_json::Value = serde_json::from_str(&settings).unwrap();
        assert_eq!(
            settings["servers"]["markdown"],
            serde_json::json!({
                "command": ["/opt/alongside/bin/alongside", "lsp"],
                "rootIndicationFileNames": [".git", ".hg", ".jj", ".svn"],
                "highlightingModeRegex": "^Markdown$",
            })
        );
        assert_eq!(
            fs::read_to_string(scene.home().join(".config/katerc")).unwrap(),
            "[Kate Plugins]\nlspclientplugin=true\n\n[lspclient]\nAllowedServerCommandLines=/opt/alongside/bin/alongside lsp\n"
        );
        assert_eq!(kate.status().state, InstallState::Installed);
        assert_eq!(kate.install(Mode::Real).outcome, InstallOutcome::Unchanged);
        assert_eq!(kate.uninstall(Mode::Real).outcome, InstallOutcome::Done);
        assert!(!scene.home().join(".config").exists());
        assert_eq!(kate.uninstall(Mode::Real).outcome, InstallOutcome::Unchanged);
    }

    #[test]
    fn settings_and_servers_of_the_user_are_kept() {
        let scene = Fixture::on(Platform::Unix).with_program("pylsp");
        let (settings, katerc) = (scene.home().join(SETTINGS), scene.home().join(".config/katerc"));
        let mine =
            "{\n  \"servers\": {\n    \"rust\": {\n      \"command\": [\"mine\"]\n    }\n  },\n  \"global\": {}\n}\n";
        let rc = "[General]\nx=1\n\n[Kate Plugins]\nkatefiletreeplugin=true\nlspclientplugin=true\n\n[lspclient]\nAllowedServerCommandLines=/usr/bin/mine\nHover=true\n";
        fs::create_dir_all(settings.parent().unwrap()).unwrap();
        fs::write(&settings, mine).unwrap();
        fs::write(&katerc, rc).unwrap();
        let context = scene.context();
        let kate = installer(DetectedIde::Kate, &context).unwrap();
        let report = kate.install(Mode::Real);
        assert!(
            report
                .remarks
                .iter()
                .any(|remark| remark.starts_with("python, rust keep")),
            "{report:?}"
        );
        let written = fs::read_to_string(&settings).unwrap();
        let written: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(written["servers"]["rust"]["command"][0], "mine");
        assert!(written["servers"]["python"].is_null() && written["servers"]["go"].is_object());
        assert_eq!(
            fs::read_to_string(&katerc).unwrap(),
            rc.replace("/usr/bin/mine", "/usr/bin/mine,/opt/alongside/bin/alongside lsp")
        );
        assert_eq!(kate.uninstall(Mode::Real).outcome, InstallOutcome::Done);
        assert_eq!(fs::read_to_string(&settings).unwrap(), mine);
        assert_eq!(fs::read_to_string(&katerc).unwrap(), rc);
    }

    #[test]
    fn settings_that_are_not_understood_are_left_alone() {
        for text in ["[]", "{", r#"{"servers": 1}"#] {
            let scene = Fixture::on(Platform::Unix);
            let settings = scene.home().join(SETTINGS);
            fs::create_dir_all(settings.parent().unwrap()).unwrap();
            fs::write(&settings, text).unwrap();
            let context = scene.context();
            let report = installer(DetectedIde::Kate, &context).unwrap().install(Mode::Real);
            assert_eq!(report.outcome, InstallOutcome::Refused, "{text}");
            assert_eq!(fs::read_to_string(&settings).unwrap(), text);
        }
    }

    #[test]
    fn status_names_the_program_that_kate_starts() {
        let scene = Fixture::on(Platform::Unix);
        let mut context = scene.context();
        installer(DetectedIde::Kate, &context).unwrap().install(Mode::Real);
        let old = std::mem::replace(&mut context.program, PathBuf::from("/elsewhere/alongside"));
        let status = installer(DetectedIde::Kate, &context).unwrap().status();
        assert_eq!((status.state, status.program), (InstallState::Outdated, Some(old)));
    }
}

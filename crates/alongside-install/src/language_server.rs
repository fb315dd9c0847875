//! Helix and Kakoune: a block in their configuration that starts `alongside lsp`.
//!
//! Helix needs each language's servers listed by name, and a list replaces the built-in one. So the block repeats
//! Helix's own list for common languages, with alongside appended, and skips languages whose servers the user has
//! configured: that choice takes precedence, and only the user can add to it.

use std::path::PathBuf;

use toml::{Table, Value};

use super::block::ConfigurationBlock;
use super::plan::Plan;
use super::program::Invocation;
use super::{InstallContext, InstallError, InstallState, Installer, executable_remark, machine};
use crate::detect::DetectedIde;
use alongside_discovery::Platform;

/// Helix's languages and their servers, as of Helix 25.01. Helix skips servers that are not installed.
const HELIX_LANGUAGES: [(&str, &[&str]); 20] = [
    ("bash", &["bash-language-server"]),
    ("c", &["clangd"]),
    ("cpp", &["clangd"]),
    ("css", &["vscode-css-language-server"]),
    // For the diffs that this server shows.
    ("diff", &[]),
    ("go", &["gopls", "golangci-lint-lsp"]),
    ("html", &["vscode-html-language-server"]),
    ("java", &["jdtls"]),
    ("javascript", &["typescript-language-server"]),
    ("json", &["vscode-json-language-server"]),
    ("jsx", &["typescript-language-server"]),
    ("lua", &["lua-language-server"]),
    ("markdown", &["marksman"]),
    ("python", &["ruff", "jedi", "pylsp"]),
    ("ruby", &["solargraph"]),
    ("rust", &["rust-analyzer"]),
    ("toml", &["taplo"]),
    ("tsx", &["typescript-language-server"]),
    ("typescript", &["typescript-language-server"]),
    ("yaml", &["yaml-language-server"]),
];

pub(super) struct LanguageServer<'a> {
    ide: DetectedIde,
    context: &'a InstallContext<'a>,
    block: ConfigurationBlock,
    /// Languages whose servers the user has configured.
    chosen: Vec<String>,
    executable: Option<PathBuf>,
}

impl<'a> LanguageServer<'a> {
    pub(super) fn new(ide: DetectedIde, context: &'a InstallContext<'a>) -> Result<Self, InstallError> {
        let machine = machine(context);
        let server = Invocation::new(context, "lsp");
        let path = match ide {
            DetectedIde::Helix => machine.helix_languages(),
            _ => machine.kakrc(),
        };
        let mut block = ConfigurationBlock {
            path: path.ok_or(InstallError::NoHome)?,
            comment: "#",
            body: String::new(),
        };
        // An unreadable or invalid file is reported on install, not on a mere status check.
        let chosen = match ide {
            DetectedIde::Helix => block
                .foreign_text()
                .map(|text| chosen_languages(&text))
                .unwrap_or_default(),
            _ => Vec::new(),
        };
        block.body = match ide {
            DetectedIde::Helix => helix_body(&server, &chosen),
            _ => kakoune_body(&server),
        };
        Ok(Self {
            ide,
            context,
            block,
            chosen,
            executable: machine.executable(ide),
        })
    }

    /// Checks that Helix can parse the file with the block in it: an invalid file breaks all language configuration.
    fn check_helix(&self) -> Result<(), InstallError> {
        let refuse = |reason: String| InstallError::Configuration {
            path: self.block.path.clone(),
            reason,
        };
        if let Err(error) = self.block.foreign_text()?.parse::<Table>() {
            return Err(refuse(format!("it is not valid TOML: {}", error.message())));
        }
        if let Err(error) = self.block.text_with_block()?.parse::<Table>() {
            return Err(refuse(format!(
                "its contents conflict with the block ({}); merge this by hand:\n{}",
                error.message(),
                self.block.body
            )));
        }
        Ok(())
    }
}

/// The languages for which the user has configured servers.
fn chosen_languages(text: &str) -> Vec<String> {
    let table: Table = text.parse().unwrap_or_default();
    let languages = table
        .get("language")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let chosen = languages
        .iter()
        .filter(|language| language.get("language-servers").is_some());
    chosen
        .filter_map(|language| Some(language.get("name")?.as_str()?.to_owned()))
        .collect()
}

fn helix_body(server: &Invocation, chosen: &[String]) -> String {
    let (command, arguments) = in_toml(server);
    let mut body = format!("[language-server.alongside]\ncommand = {command}\nargs = {arguments}\n");
    for (language, servers) in HELIX_LANGUAGES {
        if chosen.iter().any(|name| name == language) {
            continue;
        }
        let servers: Vec<String> = servers
            .iter()
            .chain(&["alongside"])
            .map(|server| format!("{server:?}"))
            .collect();
        body.push_str(&format!(
            "\n[[language]]\nname = {language:?}\nlanguage-servers = [{}]\n",
            servers.join(", ")
        ));
    }
    body
}

/// kakoune-lsp fires `LSPDefaultConfig` when it looks for servers. Its own hooks run first and set servers only where
/// none are set, so ours appends to the existing value. Without kakoune-lsp the event never fires.
const KAKOUNE_BODY: &str = r#"remove-hooks global alongside
hook -group alongside global User LSPDefaultConfig=.* %{
    # kakoune-lsp gives up on a buffer if any of its servers is missing; in that case use only this one.
    evaluate-commands %sh{
        printf '%s\n' "$kak_opt_lsp_servers" | awk '
            /^ *\[[^].]+\] *$/ { if (server) print server; gsub(/[][ ]/, ""); server = $0 }
            /^ *command *=/ { split($0, parts, "\""); server = parts[2] }
            END { if (server) print server }
        ' | while read -r server; do
            command -v "$server" >/dev/null || { echo 'set-option buffer lsp_servers ""'; break; }
        done
    }
    set-option -add buffer lsp_servers %{
        [alongside]
        command = COMMAND
        args = ARGUMENTS
        root_globs = [".git", ".hg", ".jj", ".svn"]
    }
}"#;

fn kakoune_body(server: &Invocation) -> String {
    let (command, arguments) = in_toml(server);
    KAKOUNE_BODY
        .replace("COMMAND", &command)
        .replace("ARGUMENTS", &arguments)
}

fn in_toml(server: &Invocation) -> (String, String) {
    let command = Value::from(server.command.as_str()).to_string();
    (command, Value::from(server.arguments.clone()).to_string())
}

/// The server that a block starts. Its first two assignments are the same in both files.
fn server_in(block: &str) -> Option<Invocation> {
    let line = |name: &str| block.lines().map(str::trim).find(|line| line.starts_with(name));
    let table: Table = format!("{}\n{}", line("command = ")?, line("args = ")?).parse().ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let arguments = table.get("args")?.as_array()?.iter().filter_map(text);
    Some(Invocation {
        command: text(table.get("command")?)?,
        arguments: arguments.collect(),
    })
}

impl Installer for LanguageServer<'_> {
    fn editor(&self) -> DetectedIde {
        self.ide
    }

    fn executable(&self) -> Option<PathBuf> {
        self.executable.clone()
    }

    fn place(&self) -> Option<PathBuf> {
        Some(self.block.path.clone())
    }

    fn obstacle(&self) -> Option<InstallError> {
        let is_windows = self.context.environment.platform == Platform::Windows;
        (self.ide == DetectedIde::Kakoune && is_windows).then_some(InstallError::NotOnWindows("Kakoune"))
    }

    fn state(&self) -> Result<InstallState, InstallError> {
        self.block.state()
    }

    fn program(&self, _state: InstallState) -> Option<PathBuf> {
        server_in(&self.block.present()?)?.program(self.context)
    }

    fn plan_install(&self) -> Result<Plan, InstallError> {
        if self.ide == DetectedIde::Helix {
            self.check_helix()?;
        }
        let mut plan = self.block.plan_install()?;
        plan.remarks
            .extend(executable_remark(self.ide, self.executable.as_ref()));
        if !self.chosen.is_empty() {
            plan.remarks.push(format!(
                "You configured the language servers for {} yourself; add \"alongside\" to them by hand.",
                self.chosen.join(", ")
            ));
        }
        if self.ide == DetectedIde::Kakoune && machine(self.context).on_path("kak-lsp").is_none() {
            plan.remarks
                .push("This needs kakoune-lsp, but `kak-lsp` is not on your PATH.".to_owned());
        }
        Ok(plan)
    }

    fn plan_uninstall(&self) -> Result<Plan, InstallError> {
        self.block.plan_uninstall()
    }

    fn context(&self) -> &InstallContext<'_> {
        self.context
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::fixture::Fixture;
    use crate::{InstallOutcome, Mode, installer};

    fn put(path: &Path, content: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    #[test]
    fn block_installs_and_uninstalls_on_every_platform() {
        let rows = [
            (DetectedIde::Helix, Platform::Unix, ".config/helix/languages.toml"),
            (DetectedIde::Helix, Platform::MacOs, ".config/helix/languages.toml"),
            (
                DetectedIde::Helix,
                Platform::Windows,
                "AppData/Roaming/helix/languages.toml",
            ),
            (DetectedIde::Kakoune, Platform::Unix, ".config/kak/kakrc"),
            (DetectedIde::Kakoune, Platform::MacOs, ".config/kak/kakrc"),
        ];
        for (ide, platform, below) in rows {
            let scene = Fixture::on(platform);
            let file = scene.home().join(below);
            let mine = "# my own\n";
            put(&file, mine);
            let context = scene.context();
            let installer = installer(ide, &context).unwrap();
            assert_eq!(installer.install(Mode::Real).outcome, InstallOutcome::Done);
            assert!(fs::read_to_string(&file).unwrap().starts_with(mine));
            assert_eq!(installer.status().state, InstallState::Installed);
            assert_eq!(installer.install(Mode::Real).outcome, InstallOutcome::Unchanged);
            assert_eq!(installer.uninstall(Mode::Real).outcome, InstallOutcome::Done);
            assert_eq!(fs::read_to_string(&file).unwrap(), mine);
        }
    }

    #[test]
    fn configured_servers_win_with_a_remark() {
        let scene = Fixture::on(Platform::Unix);
        let file = scene.home().join(".config/helix/languages.toml");
        put(
            &file,
            "[[language]]\nname = \"rust\"\nlanguage-servers = [\"mine\"]\n\n[[language]]\nname = \"go\"\nauto-format = false\n",
        );
        let context = scene.context();
        let installer = installer(DetectedIde::Helix, &context).unwrap();
        let report = installer.install(Mode::Real);
        assert!(
            report
                .remarks
                .iter()
                .any(|remark| remark.contains("servers for rust yourself; add")),
            "{report:?}"
        );
        let table: Table = fs::read_to_string(&file).unwrap().parse().unwrap();
        let languages = table["language"].as_array().unwrap();
        let of = |name: &str| {
            languages
                .iter()
                .filter(|language| language["name"].as_str() == Some(name))
                .count()
        };
        assert_eq!((of("rust"), of("go"), of("python")), (1, 2, 1));
        let server = &table["language-server"]["alongside"];
        assert_eq!(server["command"].as_str(), Some("sh"));
        let arguments = server["args"].as_array().unwrap();
        let script = arguments[1].as_str().unwrap();
        assert!(script.contains(context.program.to_str().unwrap()), "{script}");
        assert_eq!(arguments.last().unwrap().as_str(), Some("lsp"), "more can be added");
    }

    #[test]
    fn program_on_the_path_is_started_by_its_path() {
        for (ide, platform, command) in [
            (DetectedIde::Helix, Platform::Unix, "command = \"sh\""),
            (DetectedIde::Helix, Platform::MacOs, "command = \"sh\""),
            (DetectedIde::Helix, Platform::Windows, "alongside.exe"),
            (DetectedIde::Kakoune, Platform::Unix, "command = \"sh\""),
        ] {
            let name = if platform == Platform::Windows {
                "alongside.exe"
            } else {
                "alongside"
            };
            let scene = Fixture::on(platform).with_program(name);
            let mut context = scene.context();
            context.program = scene.home().parent().unwrap().join("bin").join(name);
            let installer = installer(ide, &context).unwrap();
            installer.install(Mode::Real);
            let text = fs::read_to_string(installer.place().unwrap()).unwrap();
            assert!(text.contains(command), "{text}");
            assert!(text.contains(context.program.to_str().unwrap()), "{text}");
            assert_eq!(installer.status().program.as_ref(), Some(&context.program));
        }
    }

    #[test]
    fn status_names_the_program_that_the_block_starts() {
        for (ide, platform) in [
            (DetectedIde::Helix, Platform::Unix),
            (DetectedIde::Helix, Platform::Windows),
            (DetectedIde::Kakoune, Platform::Unix),
        ] {
            let scene = Fixture::on(platform);
            let mut context = scene.context();
            context.program = scene.home().join("it's old/alongside");
            installer(ide, &context).unwrap().install(Mode::Real);
            let old = std::mem::replace(&mut context.program, scene.home().join("new/alongside"));
            let status = installer(ide, &context).unwrap().status();
            assert_eq!(
                (status.state, status.program.as_ref()),
                (InstallState::Outdated, Some(&old)),
                "{ide:?}"
            );
            let sentence = format!("but its program {} no longer exists; run", old.display());
            assert!(status.sentence.contains(&sentence), "{}", status.sentence);
        }
    }

    #[test]
    fn file_that_would_break_helix_is_left_alone() {
        for text in [
            "not toml at all [",
            "language = []\n",
            "[language-server.alongside]\ncommand = \"other\"\n",
        ] {
            let scene = Fixture::on(Platform::Unix);
            let file = scene.home().join(".config/helix/languages.toml");
            put(&file, text);
            let context = scene.context();
            let report = installer(DetectedIde::Helix, &context).unwrap().install(Mode::Real);
            assert_eq!(report.outcome, InstallOutcome::Refused, "{text}");
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
    }

    #[test]
    fn documentation_matches_installed_block() {
        let documentation = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/EDITORS.md");
        let documentation = fs::read_to_string(documentation).unwrap();
        for (mark, body) in [
            ("toml", helix_body(&Invocation::by_name("lsp"), &[])),
            ("kak", kakoune_body(&Invocation::by_name("lsp"))),
        ] {
            let snippet = format!("```{mark}\n{}\n```", body.trim_end());
            assert!(
                documentation.contains(&snippet),
                "docs/EDITORS.md should have:\n{snippet}"
            );
        }
    }

    #[test]
    fn kakoune_is_unavailable_on_windows() {
        let scene = Fixture::on(Platform::Windows);
        let context = scene.context();
        let report = installer(DetectedIde::Kakoune, &context).unwrap().install(Mode::Real);
        assert!(
            report.sentence.contains("does not run on Windows"),
            "{}",
            report.sentence
        );
    }
}

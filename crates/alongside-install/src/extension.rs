//! VS Code and its forks: our extension, installed with the editor's own command.

use std::path::{Path, PathBuf};

use super::plan::{Attachment, Change, Plan};
use super::receipt::Receipt;
use super::{InstallContext, InstallError, InstallState, InstallStatus, Installer, digest, executables, machine, vsix};
use crate::detect::DetectedIde;

/// Our extension, by its publisher and name in `editors/vscode/package.json`.
pub(super) const OURS: &str = "alongside.alongside";

/// The agents and their vendors' extensions. Earlier versions of this program installed the first two.
const OFFICIAL: [(&str, &str); 3] = [
    ("Gemini CLI", "google.gemini-cli-vscode-ide-companion"),
    ("Qwen Code", "qwenlm.qwen-code-vscode-ide-companion"),
    ("Claude Code", "anthropic.claude-code"),
];

pub(super) struct Extension<'a> {
    ide: DetectedIde,
    context: &'a InstallContext<'a>,
    executable: Option<PathBuf>,
}

/// The extensions in an editor that matter here.
struct Present {
    /// The version of ours.
    ours: Option<String>,
    /// The agent and the id of each official one.
    official: Vec<(&'static str, &'static str)>,
}

impl<'a> Extension<'a> {
    pub(super) fn new(ide: DetectedIde, context: &'a InstallContext<'a>) -> Self {
        let machine = machine(context);
        // Antigravity exports the name of its command. It must be a plain name, because it is looked up like any other.
        let alias = context.environment.variable("ANTIGRAVITY_CLI_ALIAS");
        let alias = alias.filter(|alias| ide == DetectedIde::Antigravity && is_plain_name(alias));
        let executable = alias
            .and_then(|alias| machine.on_path(alias))
            .or_else(|| machine.executable(ide));
        Self {
            ide,
            context,
            executable,
        }
    }

    /// The editor's command.
    fn command(&self) -> Result<PathBuf, InstallError> {
        self.executable.clone().ok_or_else(|| InstallError::NoExecutable {
            editor: self.ide.display_name(),
            command: executables::usual_name(self.ide),
        })
    }

    fn package(&self) -> Result<Vec<u8>, InstallError> {
        let files = self.context.plugins.files("vscode");
        let package = files.and_then(|files| vsix::package(files, &self.context.program));
        package.ok_or(InstallError::NoPlugin(self.ide.display_name()))
    }

    fn present(&self, program: &Path) -> Result<Present, InstallError> {
        let arguments = ["--list-extensions".to_owned(), "--show-versions".to_owned()];
        let listed = self
            .context
            .runner
            .run(program, &arguments)
            .map_err(|output| InstallError::Command {
                command: format!("{} --list-extensions --show-versions", program.display()),
                output,
            })?;
        let listed: Vec<(&str, &str)> = listed
            .lines()
            .map(|line| line.trim().split_once('@').unwrap_or((line.trim(), "")))
            .collect();
        let find = |id: &str| listed.iter().find(|(listed, _)| listed.eq_ignore_ascii_case(id));
        Ok(Present {
            ours: find(OURS).map(|(_, version)| (*version).to_owned()),
            official: OFFICIAL.into_iter().filter(|(_, id)| find(id).is_some()).collect(),
        })
    }

    /// Whether the installed extension is the one that this program has.
    fn is_current(&self, version: &str) -> Result<bool, InstallError> {
        let receipt = Receipt::load(self.context);
        Ok(match receipt.extension(self.ide.id(), OURS) {
            Some(noted) => noted == noted_as(&self.package()?) && version == env!("CARGO_PKG_VERSION"),
            // From a gallery, or installed by hand.
            None => version == env!("CARGO_PKG_VERSION"),
        })
    }

    /// What to do about an official extension: two companions in one window both offer themselves to its agent, which chooses one, or
    /// as Claude Code none.
    fn duplicate_remark(&self, (agent, id): (&str, &str)) -> String {
        let (name, command) = (self.ide.display_name(), executables::usual_name(self.ide));
        format!(
            "{agent}'s own extension is also installed in {name}, and {agent} may not connect to alongside. To remove it, run `{command} --uninstall-extension {id}`; to keep it instead, run `alongside uninstall {}`.",
            self.ide.id()
        )
    }
}

/// What the receipt has for a package.
fn noted_as(package: &[u8]) -> String {
    format!("{OURS}@{}", digest(package))
}

impl Installer for Extension<'_> {
    fn editor(&self) -> DetectedIde {
        self.ide
    }

    fn executable(&self) -> Option<PathBuf> {
        self.executable.clone()
    }

    fn place(&self) -> Option<PathBuf> {
        None
    }

    fn obstacle(&self) -> Option<InstallError> {
        self.command().err()
    }

    fn state(&self) -> Result<InstallState, InstallError> {
        let Ok(program) = self.command() else {
            return Ok(InstallState::Absent);
        };
        Ok(match self.present(&program)?.ours {
            None => InstallState::Absent,
            Some(version) if self.is_current(&version)? => InstallState::Installed,
            Some(_) => InstallState::Outdated,
        })
    }

    fn program(&self, state: InstallState) -> Option<PathBuf> {
        let receipt = Receipt::load(self.context);
        // One from a gallery looks for a program itself.
        receipt.extension(self.ide.id(), OURS)?;
        match state {
            InstallState::Installed => Some(self.context.program.clone()),
            // Another version may be one from a gallery that has replaced ours.
            InstallState::Outdated => {
                let version = self.present(&self.command().ok()?).ok()?.ours?;
                let is_noted = version == env!("CARGO_PKG_VERSION");
                receipt.program(self.ide.id()).filter(|_| is_noted)
            }
            _ => None,
        }
    }

    fn plan_install(&self) -> Result<Plan, InstallError> {
        let program = self.command()?;
        let present = self.present(&program)?;
        let is_current = match &present.ours {
            Some(version) => self.is_current(version)?,
            None => false,
        };
        let mut plan = Plan::default();
        if !is_current {
            let content = self.package()?;
            let name = format!("alongside-{}.vsix", env!("CARGO_PKG_VERSION"));
            plan.changes.push(Change::Run {
                program,
                arguments: vec!["--install-extension".to_owned(), name.clone(), "--force".to_owned()],
                extension: Some(noted_as(&content)),
                attachment: Some(Attachment { name, content }),
            });
            plan.remarks.push(format!(
                "Reload open {} windows to start the extension.",
                self.ide.display_name()
            ));
        }
        let duplicates = present.official.into_iter();
        plan.remarks
            .extend(duplicates.map(|official| self.duplicate_remark(official)));
        Ok(plan)
    }

    fn plan_uninstall(&self) -> Result<Plan, InstallError> {
        let program = self.command()?;
        let receipt = Receipt::load(self.context);
        let present = self.present(&program)?;
        let is_noted = |(_, id): &(&str, &str)| receipt.extension(self.ide.id(), id).is_some();
        let (installed, theirs): (Vec<_>, Vec<_>) = present.official.into_iter().partition(is_noted);
        let ours = present.ours.map(|_| OURS);
        let removed = ours.into_iter().chain(installed.into_iter().map(|(_, id)| id));
        let changes = removed.map(|id| Change::Run {
            program: program.clone(),
            arguments: vec!["--uninstall-extension".to_owned(), id.to_owned()],
            extension: None,
            attachment: None,
        });
        let remarks = theirs.into_iter().map(|(_, id)| {
            let command = executables::usual_name(self.ide);
            format!(
                "{id} was not installed by alongside and was left alone; to remove it, run `{command} --uninstall-extension {id}`."
            )
        });
        Ok(Plan {
            changes: changes.collect(),
            remarks: remarks.collect(),
        })
    }

    fn status(&self) -> InstallStatus {
        let mut status = super::status_of(self);
        if matches!(status.state, InstallState::Installed | InstallState::Outdated) {
            let present = self.command().and_then(|program| self.present(&program));
            for official in present.map(|present| present.official).unwrap_or_default() {
                status.sentence.push(' ');
                status.sentence.push_str(&self.duplicate_remark(official));
            }
        }
        status
    }

    fn context(&self) -> &InstallContext<'_> {
        self.context
    }
}

fn is_plain_name(name: &str) -> bool {
    !name.starts_with('-')
        && name
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || "._-".contains(character))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, PROGRAM};
    use crate::{InstallOutcome, Mode, installer};
    use alongside_discovery::Platform;

    fn editor(command: &str) -> Fixture {
        Fixture::on(Platform::Unix)
            .with_program(command)
            .with_embedded_plugins()
    }

    #[test]
    fn extension_installs_and_uninstalls() {
        let scene = editor("codium");
        let context = scene.context();
        let installer = installer(DetectedIde::VsCodium, &context).unwrap();
        assert_eq!(installer.status().state, InstallState::Absent);
        assert_eq!(installer.install(Mode::DryRun).steps.len(), 1);
        assert!(scene.packages().is_empty());
        let report = installer.install(Mode::Real);
        assert_eq!(report.outcome, InstallOutcome::Done, "{report:?}");
        assert!(
            report.steps[0].subject.contains("--install-extension alongside-"),
            "{report:?}"
        );
        assert_eq!(installer.status().state, InstallState::Installed);
        assert_eq!(installer.install(Mode::Real).outcome, InstallOutcome::Unchanged);
        assert_eq!(installer.uninstall(Mode::Real).outcome, InstallOutcome::Done);
        assert!(scene.extensions().is_empty());
        assert_eq!(installer.uninstall(Mode::Real).outcome, InstallOutcome::Unchanged);
        assert_eq!(scene.count_files(), 0, "no receipt is left");
    }

    #[test]
    fn installed_package_has_the_path_of_this_program() {
        let scene = editor("code");
        let context = scene.context();
        let installer = installer(DetectedIde::VsCode, &context).unwrap();
        installer.install(Mode::Real);
        assert_eq!(installer.status().program, Some(PathBuf::from(PROGRAM)));
        let package = &scene.packages()[0];
        assert!(package.starts_with(b"PK"));
        assert!(
            package
                .windows(PROGRAM.len())
                .any(|window| window == PROGRAM.as_bytes())
        );
    }

    #[test]
    fn program_of_an_extension_from_a_gallery_is_unknown() {
        let listed = format!("{OURS}@{}", env!("CARGO_PKG_VERSION"));
        let scene = editor("code").with_answer(&listed);
        let context = scene.context();
        let status = installer(DetectedIde::VsCode, &context).unwrap().status();
        assert_eq!((status.state, status.program), (InstallState::Installed, None));
    }

    #[test]
    fn package_of_another_program_is_outdated() {
        let scene = editor("code");
        installer(DetectedIde::VsCode, &scene.context())
            .unwrap()
            .install(Mode::Real);
        let moved = InstallContext {
            program: PathBuf::from("/elsewhere/alongside"),
            ..scene.context()
        };
        let installer = installer(DetectedIde::VsCode, &moved).unwrap();
        let status = installer.status();
        assert_eq!(status.state, InstallState::Outdated);
        assert_eq!(status.program, Some(PathBuf::from(PROGRAM)));
        let sentence = format!("but its program {PROGRAM} no longer exists");
        assert!(status.sentence.contains(&sentence), "{}", status.sentence);
        assert_eq!(installer.install(Mode::Real).outcome, InstallOutcome::Done);
        assert_eq!(installer.status().state, InstallState::Installed);
    }

    #[test]
    fn official_extension_is_reported_and_stays() {
        let (agent, id) = OFFICIAL[1];
        let scene = editor("code").with_answer(&format!("{id}@0.22.0"));
        let context = scene.context();
        let installer = installer(DetectedIde::VsCode, &context).unwrap();
        let report = installer.install(Mode::Real);
        let offer = format!("`code --uninstall-extension {id}`");
        assert!(
            report
                .remarks
                .iter()
                .any(|remark| remark.starts_with(agent) && remark.contains(&offer)),
            "{report:?}"
        );
        let status = installer.status();
        assert_eq!(status.state, InstallState::Installed);
        assert!(status.sentence.contains(&offer), "{}", status.sentence);
        let report = installer.uninstall(Mode::Real);
        assert_eq!(report.steps.len(), 1);
        assert!(report.remarks[0].contains("left alone"), "{report:?}");
        assert_eq!(scene.extensions(), [format!("{id}@0.22.0")]);
    }

    #[test]
    fn official_extension_that_alongside_installed_is_removed() {
        let (_, id) = OFFICIAL[0];
        let scene = editor("code").with_answer(id);
        let context = scene.context();
        Receipt::update(&context, |receipt| {
            receipt.add("vscode", vec![id.to_owned()], Vec::new(), Path::new(PROGRAM));
        })
        .unwrap();
        let report = installer(DetectedIde::VsCode, &context).unwrap().uninstall(Mode::Real);
        assert_eq!(report.outcome, InstallOutcome::Done, "{report:?}");
        assert!(scene.extensions().is_empty());
    }

    #[test]
    fn missing_editor_error_names_its_command() {
        let scene = Fixture::on(Platform::Unix);
        let context = scene.context();
        let report = installer(DetectedIde::Windsurf, &context).unwrap().install(Mode::Real);
        assert_eq!(report.outcome, InstallOutcome::Refused);
        assert!(
            report
                .sentence
                .starts_with("Cannot find Windsurf: `windsurf` is not on your PATH"),
            "{}",
            report.sentence
        );
    }

    #[test]
    fn editor_command_error_is_reported() {
        let scene = Fixture::on(Platform::Unix)
            .with_program("code")
            .with_failing_commands("no network");
        let context = scene.context();
        let report = installer(DetectedIde::VsCode, &context).unwrap().install(Mode::Real);
        assert!(report.sentence.contains("failed: no network"), "{}", report.sentence);
    }

    #[test]
    fn alias_with_path_or_option_is_not_run() {
        assert!(is_plain_name("agy-nightly"));
        for alias in ["../agy", "-x", "/bin/agy", "a b", "a;b"] {
            assert!(!is_plain_name(alias), "{alias}");
        }
        let scene = Fixture::on(Platform::Unix).with_program("agy-nightly");
        let scene = scene.with_variable("ANTIGRAVITY_CLI_ALIAS", "agy-nightly");
        let context = scene.context();
        let status = installer(DetectedIde::Antigravity, &context).unwrap().status();
        assert!(status.executable.unwrap().ends_with("agy-nightly"));
    }
}

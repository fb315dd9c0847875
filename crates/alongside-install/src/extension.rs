//! VS Code and its forks: the agents' official companion extensions, installed with the editor's own command.

use std::path::{Path, PathBuf};

use super::plan::{Change, Plan};
use super::receipt::Receipt;
use super::{InstallContext, InstallError, InstallState, Installer, executables, machine};
use crate::detect::DetectedIde;

/// The agents' commands and their vendors' extensions.
const COMPANIONS: [(&str, &str); 2] = [
    ("gemini", "google.gemini-cli-vscode-ide-companion"),
    ("qwen", "qwenlm.qwen-code-vscode-ide-companion"),
];

pub(super) struct Extension<'a> {
    ide: DetectedIde,
    context: &'a InstallContext<'a>,
    executable: Option<PathBuf>,
    /// Extensions for the installed agents; all of them if no agent is installed.
    wanted: Vec<&'static str>,
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
        let is_present = |(command, _): &&(&str, &str)| machine.on_path(command).is_some();
        let mut wanted: Vec<&str> = COMPANIONS.iter().filter(is_present).map(|(_, id)| *id).collect();
        if wanted.is_empty() {
            wanted = COMPANIONS.iter().map(|(_, id)| *id).collect();
        }
        Self {
            ide,
            context,
            executable,
            wanted,
        }
    }

    fn program(&self) -> Result<PathBuf, InstallError> {
        self.executable.clone().ok_or_else(|| InstallError::NoExecutable {
            editor: self.ide.display_name(),
            command: executables::usual_name(self.ide),
        })
    }

    /// The companion extensions already installed in the editor.
    fn present(&self, program: &Path) -> Result<Vec<&'static str>, InstallError> {
        let arguments = ["--list-extensions".to_owned()];
        let listed = self
            .context
            .runner
            .run(program, &arguments)
            .map_err(|output| InstallError::Command {
                command: format!("{} --list-extensions", program.display()),
                output,
            })?;
        let has = |id: &&str| listed.lines().any(|line| line.trim().eq_ignore_ascii_case(id));
        Ok(COMPANIONS.iter().map(|(_, id)| *id).filter(has).collect())
    }
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
        self.program().err()
    }

    fn state(&self) -> Result<InstallState, InstallError> {
        let Ok(program) = self.program() else {
            return Ok(InstallState::Absent);
        };
        let present = self.present(&program)?;
        let count = self.wanted.iter().filter(|id| present.contains(id)).count();
        Ok(match count {
            0 => InstallState::Absent,
            _ if count == self.wanted.len() => InstallState::Installed,
            _ => InstallState::Outdated,
        })
    }

    fn plan_install(&self) -> Result<Plan, InstallError> {
        let program = self.program()?;
        let present = self.present(&program)?;
        let missing = self.wanted.iter().filter(|id| !present.contains(id));
        let changes = missing.map(|id| Change::Run {
            program: program.clone(),
            arguments: vec!["--install-extension".to_owned(), (*id).to_owned(), "--force".to_owned()],
            extension: Some((*id).to_owned()),
        });
        let changes: Vec<Change> = changes.collect();
        let mut remarks = Vec::new();
        if !changes.is_empty() {
            remarks.push(format!(
                "These are the agents' official companion extensions; you do not need alongside in {}.",
                self.ide.display_name()
            ));
        }
        Ok(Plan { changes, remarks })
    }

    fn plan_uninstall(&self) -> Result<Plan, InstallError> {
        let program = self.program()?;
        let receipt = Receipt::load(self.context);
        let present = self.present(&program)?;
        let (ours, theirs): (Vec<_>, Vec<_>) = present
            .into_iter()
            .partition(|id| receipt.has_extension(self.ide.id(), id));
        let changes = ours.into_iter().map(|id| Change::Run {
            program: program.clone(),
            arguments: vec!["--uninstall-extension".to_owned(), id.to_owned()],
            extension: None,
        });
        let remarks = theirs.into_iter().map(|id| {
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
    use crate::fixture::Fixture;
    use crate::{InstallOutcome, Mode, installer};
    use alongside_discovery::Platform;

    #[test]
    fn both_companions_install_and_uninstall() {
        let scene = Fixture::on(Platform::Unix).with_program("codium");
        let context = scene.context();
        let installer = installer(DetectedIde::VsCodium, &context).unwrap();
        assert_eq!(installer.status().state, InstallState::Absent);
        assert_eq!(installer.install(Mode::DryRun).steps.len(), 2);
        assert!(scene.ran().iter().all(|command| command.ends_with("--list-extensions")));
        assert_eq!(installer.install(Mode::Real).outcome, InstallOutcome::Done);
        assert!(
            scene
                .ran()
                .iter()
                .any(|command| command.ends_with("--install-extension qwenlm.qwen-code-vscode-ide-companion --force"))
        );
        assert_eq!(installer.status().state, InstallState::Installed);
        assert_eq!(installer.install(Mode::Real).outcome, InstallOutcome::Unchanged);
        assert_eq!(installer.uninstall(Mode::Real).outcome, InstallOutcome::Done);
        assert_eq!(installer.uninstall(Mode::Real).outcome, InstallOutcome::Unchanged);
    }

    #[test]
    fn extension_that_was_there_before_stays() {
        let theirs = COMPANIONS[1].1;
        let scene = Fixture::on(Platform::Unix).with_program("code").with_answer(theirs);
        let context = scene.context();
        let installer = installer(DetectedIde::VsCode, &context).unwrap();
        assert_eq!(installer.install(Mode::Real).steps.len(), 1);
        let report = installer.uninstall(Mode::Real);
        assert_eq!(report.steps.len(), 1);
        assert!(report.steps[0].subject.ends_with(COMPANIONS[0].1), "{report:?}");
        assert!(report.remarks[0].contains("left alone"), "{report:?}");
        assert_eq!(context.runner.run(std::path::Path::new("code"), &[]).unwrap(), theirs);
        assert_eq!(scene.count_files(), 0, "no receipt is left");
    }

    #[test]
    fn only_companions_of_installed_agents_are_installed() {
        let scene = Fixture::on(Platform::Unix).with_program("code").with_program("gemini");
        let context = scene.context();
        let report = installer(DetectedIde::VsCode, &context).unwrap().install(Mode::Real);
        assert_eq!(report.steps.len(), 1);
        assert!(report.steps[0].subject.contains("google.gemini-cli"), "{report:?}");
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

//! Emacs: a package directory, and a block in the init file that loads it.

use std::path::PathBuf;

use super::block::ConfigurationBlock;
use super::package::Package;
use super::plan::Plan;
use super::{InstallContext, InstallError, InstallState, Installer, executable_remark, machine};
use crate::detect::DetectedIde;

/// A missing or broken plugin must not stop Emacs from starting, hence `require` with `noerror`.
const BODY: &str = "\
(add-to-list 'load-path (expand-file-name \"alongside\" user-emacs-directory))
(when (and (require 'alongside nil t) (fboundp 'alongside-mode))
  (alongside-mode 1))";

/// Frameworks that own the init file: how to recognize them, and where their users write instead.
const FRAMEWORKS: [(&str, &str, &str); 3] = [
    ("bin/doom", "Doom Emacs", "config.el in your Doom directory"),
    ("bin/doom.cmd", "Doom Emacs", "config.el in your Doom directory"),
    (
        "core/core-spacemacs.el",
        "Spacemacs",
        "dotspacemacs/user-config in your .spacemacs",
    ),
];

pub(super) struct Emacs<'a> {
    context: &'a InstallContext<'a>,
    has_plugin: bool,
    directory: PathBuf,
    package: Package,
    block: ConfigurationBlock,
    executable: Option<PathBuf>,
}

impl<'a> Emacs<'a> {
    pub(super) fn new(context: &'a InstallContext<'a>) -> Result<Self, InstallError> {
        let machine = machine(context);
        let (directory, init) = machine.emacs().ok_or(InstallError::NoHome)?;
        let files = context.plugins.files("emacs");
        Ok(Self {
            context,
            has_plugin: files.is_some(),
            package: Package {
                directory: directory.join("alongside"),
                own_parents: 0,
                program: context.program.clone(),
                files: files.cloned().unwrap_or_default(),
            },
            block: ConfigurationBlock {
                path: init,
                comment: ";;",
                body: BODY.to_owned(),
            },
            directory,
            executable: machine.executable(DetectedIde::Emacs),
        })
    }

    /// In Doom and Spacemacs the init file belongs to the framework, not the user.
    fn check_framework(&self) -> Result<(), InstallError> {
        let found = FRAMEWORKS.iter().find(|(mark, ..)| self.directory.join(mark).exists());
        match found {
            Some((_, name, place)) => Err(InstallError::Configuration {
                path: self.block.path.clone(),
                reason: format!("it is managed by {name}; add this to {place} by hand:\n{BODY}"),
            }),
            None => Ok(()),
        }
    }
}

impl Installer for Emacs<'_> {
    fn editor(&self) -> DetectedIde {
        DetectedIde::Emacs
    }

    fn executable(&self) -> Option<PathBuf> {
        self.executable.clone()
    }

    fn place(&self) -> Option<PathBuf> {
        Some(self.package.directory.clone())
    }

    fn obstacle(&self) -> Option<InstallError> {
        (!self.has_plugin).then_some(InstallError::NoPlugin("Emacs"))
    }

    fn state(&self) -> Result<InstallState, InstallError> {
        Ok(match (self.package.state()?, self.block.state()?) {
            (InstallState::Absent, InstallState::Absent) => InstallState::Absent,
            // One without the other is a partial installation.
            (InstallState::Absent, _) | (_, InstallState::Absent) => InstallState::Outdated,
            (InstallState::Installed, block) => block,
            (package, _) => package,
        })
    }

    fn program(&self, _state: InstallState) -> Option<PathBuf> {
        self.package.installed_program()
    }

    fn plan_install(&self) -> Result<Plan, InstallError> {
        self.check_framework()?;
        // The block comes last: it must not reference files that could not be written.
        let mut plan = self.package.plan_install()?.then(self.block.plan_install()?);
        plan.remarks
            .extend(executable_remark(DetectedIde::Emacs, self.executable.as_ref()));
        Ok(plan)
    }

    fn plan_uninstall(&self) -> Result<Plan, InstallError> {
        Ok(self.block.plan_uninstall()?.then(self.package.plan_uninstall()?))
    }

    fn context(&self) -> &InstallContext<'_> {
        self.context
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::fixture::Fixture;
    use crate::{InstallOutcome, Mode, installer};
    use alongside_discovery::Platform;

    fn scene(platform: Platform) -> Fixture {
        Fixture::on(platform).with_plugin("emacs", "alongside.el", "(provide 'alongside)\n")
    }

    #[test]
    fn init_file_survives_on_every_platform() {
        let rows = [
            (Platform::Unix, ".emacs.d"),
            (Platform::MacOs, ".emacs.d"),
            (Platform::Windows, "AppData/Roaming/.emacs.d"),
        ];
        for (platform, below) in rows {
            let scene = scene(platform);
            let directory = scene.home().join(below);
            let init = directory.join("init.el");
            let mine = ";;; init.el -*- lexical-binding: t -*-\n(setq my-own t)\n";
            fs::create_dir_all(&directory).unwrap();
            fs::write(&init, mine).unwrap();
            let context = scene.context();
            let installer = installer(DetectedIde::Emacs, &context).unwrap();
            let planned = installer.install(Mode::DryRun);
            let difference = planned.steps.last().unwrap().difference.as_ref().unwrap();
            assert!(
                difference.contains("+(add-to-list 'load-path") && !difference.contains("-(setq"),
                "{difference}"
            );
            let report = installer.install(Mode::Real);
            assert_eq!(report.outcome, InstallOutcome::Done, "{report:?}");
            assert!(fs::read_to_string(&init).unwrap().starts_with(mine));
            let backup = report.steps.last().unwrap().backup.as_ref().unwrap();
            assert_eq!(fs::read_to_string(backup).unwrap(), mine);
            assert!(directory.join("alongside/alongside.el").exists());
            assert_eq!(installer.status().state, InstallState::Installed);
            assert_eq!(installer.install(Mode::Real).outcome, InstallOutcome::Unchanged);
            assert_eq!(installer.uninstall(Mode::Real).outcome, InstallOutcome::Done);
            assert_eq!(fs::read_to_string(&init).unwrap(), mine);
            assert!(!directory.join("alongside").exists());
            assert_eq!(installer.status().state, InstallState::Absent);
        }
    }

    #[test]
    fn partial_installation_is_completed() {
        let scene = scene(Platform::Unix);
        let context = scene.context();
        let installer = installer(DetectedIde::Emacs, &context).unwrap();
        installer.install(Mode::Real);
        fs::remove_file(scene.home().join(".emacs.d/init.el")).unwrap();
        assert_eq!(installer.status().state, InstallState::Outdated);
        assert_eq!(installer.install(Mode::Real).outcome, InstallOutcome::Done);
        assert_eq!(installer.status().state, InstallState::Installed);
    }

    #[cfg(unix)]
    #[test]
    fn failed_install_reports_steps_and_can_be_retried() {
        let scene = scene(Platform::Unix);
        // A dangling symlink cannot be followed, and must not be replaced.
        let init = scene.home().join(".emacs.d/init.el");
        fs::create_dir(scene.home().join(".emacs.d")).unwrap();
        std::os::unix::fs::symlink(scene.home().join("gone/init.el"), &init).unwrap();
        let context = scene.context();
        let installer = installer(DetectedIde::Emacs, &context).unwrap();
        let report = installer.install(Mode::Real);
        assert_eq!(report.outcome, InstallOutcome::Failed);
        assert!(
            report.sentence.starts_with("Cannot write") && !report.steps.is_empty(),
            "{report:?}"
        );
        assert!(fs::symlink_metadata(&init).unwrap().is_symlink());
        fs::remove_file(&init).unwrap();
        assert_eq!(installer.install(Mode::Real).outcome, InstallOutcome::Done);
        assert_eq!(installer.status().state, InstallState::Installed);
    }

    #[test]
    fn doom_and_spacemacs_get_manual_steps() {
        for (mark, name, _) in FRAMEWORKS {
            let scene = scene(Platform::Unix);
            let mark = scene.home().join(".emacs.d").join(mark);
            fs::create_dir_all(mark.parent().unwrap()).unwrap();
            fs::write(&mark, "").unwrap();
            let context = scene.context();
            let report = installer(DetectedIde::Emacs, &context).unwrap().install(Mode::Real);
            assert_eq!(report.outcome, InstallOutcome::Refused);
            assert!(
                report.sentence.contains(name) && report.sentence.contains("load-path"),
                "{}",
                report.sentence
            );
        }
    }
}

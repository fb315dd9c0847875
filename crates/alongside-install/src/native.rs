//! Neovim and Vim: a native package, which both load at startup without configuration.

use std::path::PathBuf;

use super::package::Package;
use super::places::inside;
use super::plan::Plan;
use super::{InstallContext, InstallError, InstallState, Installer, executable_remark, machine, plugins};
use crate::detect::DetectedIde;

pub(super) struct Native<'a> {
    ide: DetectedIde,
    context: &'a InstallContext<'a>,
    has_plugin: bool,
    package: Package,
    executable: Option<PathBuf>,
    /// Neovim's data directory, where plugin managers also install.
    base: PathBuf,
}

impl<'a> Native<'a> {
    pub(super) fn new(ide: DetectedIde, context: &'a InstallContext<'a>) -> Result<Self, InstallError> {
        let machine = machine(context);
        let base = match ide {
            DetectedIde::Neovim => machine.neovim_data(),
            _ => machine.vim_directory(),
        };
        let base = base.ok_or(InstallError::NoHome)?;
        let packages = match ide {
            DetectedIde::Neovim => inside(&base, "site/pack"),
            _ => base.join("pack"),
        };
        let files = context.plugins.files(ide.id());
        let has_plugin = files.is_some();
        let mut files = files.cloned().unwrap_or_default();
        if let Some(tags) = plugins::help_tags(&files) {
            files.insert("doc/tags".to_owned(), tags);
        }
        Ok(Self {
            ide,
            context,
            has_plugin,
            package: Package {
                directory: inside(&packages, "alongside/start/alongside"),
                own_parents: 2,
                program: context.program.clone(),
                files,
            },
            executable: machine.executable(ide),
            base,
        })
    }

    /// In an editor that is too old, the plugin fails in confusing ways.
    fn version_remark(&self) -> Option<String> {
        let minimum = match self.ide {
            DetectedIde::Neovim => (0, 10),
            _ => (9, 0),
        };
        let printed = self
            .context
            .runner
            .run(self.executable.as_ref()?, &["--version".to_owned()]);
        let version = version(&printed.ok()?)?;
        (version < minimum).then(|| {
            let name = self.ide.display_name();
            format!(
                "You have {name} {}.{}; the plugin needs {}.{} or newer.",
                version.0, version.1, minimum.0, minimum.1
            )
        })
    }

    /// lazy.nvim stops Neovim from loading native packages, so its users have to list ours.
    fn plugin_manager_remark(&self) -> Option<String> {
        let is_lazy = self.ide == DetectedIde::Neovim && self.base.join("lazy").join("lazy.nvim").is_dir();
        is_lazy.then(|| {
            format!(
                "lazy.nvim prevents Neovim from loading native packages; add `{{ dir = {:?} }}` to your plugin specs.",
                self.package.directory.to_string_lossy()
            )
        })
    }
}

impl Installer for Native<'_> {
    fn editor(&self) -> DetectedIde {
        self.ide
    }

    fn executable(&self) -> Option<PathBuf> {
        self.executable.clone()
    }

    fn place(&self) -> Option<PathBuf> {
        Some(self.package.directory.clone())
    }

    fn obstacle(&self) -> Option<InstallError> {
        (!self.has_plugin).then(|| InstallError::NoPlugin(self.ide.display_name()))
    }

    fn state(&self) -> Result<InstallState, InstallError> {
        self.package.state()
    }

    fn program(&self, _state: InstallState) -> Option<PathBuf> {
        self.package.installed_program()
    }

    fn plan_install(&self) -> Result<Plan, InstallError> {
        let mut plan = self.package.plan_install()?;
        plan.remarks
            .extend(executable_remark(self.ide, self.executable.as_ref()));
        plan.remarks.extend(self.version_remark());
        plan.remarks.extend(self.plugin_manager_remark());
        Ok(plan)
    }

    fn plan_uninstall(&self) -> Result<Plan, InstallError> {
        self.package.plan_uninstall()
    }

    fn context(&self) -> &InstallContext<'_> {
        self.context
    }
}

/// Major and minor version: `NVIM v0.10.4`, `VIM - Vi IMproved 9.1 (2024 Jan 02, …)`.
fn version(printed: &str) -> Option<(u32, u32)> {
    printed.lines().next()?.split_whitespace().find_map(|word| {
        let (major, rest) = word.strip_prefix('v').unwrap_or(word).split_once('.')?;
        let minor = rest.split(|character: char| !character.is_ascii_digit()).next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::fixture::Fixture;
    use crate::{InstallOutcome, Mode, installer};
    use alongside_discovery::Platform;

    #[test]
    fn package_is_installed_where_each_editor_looks() {
        let rows = [
            (
                DetectedIde::Neovim,
                Platform::Unix,
                ".local/share/nvim/site/pack/alongside/start/alongside",
            ),
            (
                DetectedIde::Neovim,
                Platform::MacOs,
                ".local/share/nvim/site/pack/alongside/start/alongside",
            ),
            (
                DetectedIde::Neovim,
                Platform::Windows,
                "AppData/Local/nvim-data/site/pack/alongside/start/alongside",
            ),
            (DetectedIde::Vim, Platform::Unix, ".vim/pack/alongside/start/alongside"),
            (DetectedIde::Vim, Platform::MacOs, ".vim/pack/alongside/start/alongside"),
            (
                DetectedIde::Vim,
                Platform::Windows,
                "vimfiles/pack/alongside/start/alongside",
            ),
        ];
        for (ide, platform, below) in rows {
            let scene = Fixture::on(platform).with_plugin(ide.id(), "plugin/alongside.vim", "plugin");
            let scene = scene.with_plugin(ide.id(), "doc/alongside.txt", "*alongside*");
            let context = scene.context();
            let installer = installer(ide, &context).unwrap();
            assert_eq!(installer.status().state, InstallState::Absent);
            let planned = installer.install(Mode::DryRun);
            assert_eq!(planned.outcome, InstallOutcome::Planned);
            assert_eq!(scene.count_files(), 0, "a dry run writes nothing");
            let report = installer.install(Mode::Real);
            assert_eq!(report.outcome, InstallOutcome::Done, "{report:?}");
            assert_eq!(report.steps, planned.steps);
            let directory = scene.home().join(below);
            assert_eq!(
                fs::read_to_string(directory.join("plugin/alongside.vim")).unwrap(),
                "plugin"
            );
            assert!(directory.join("doc/tags").exists());
            assert_eq!(installer.install(Mode::Real).outcome, InstallOutcome::Unchanged);
            assert_eq!(installer.status().state, InstallState::Installed);
            assert_eq!(installer.uninstall(Mode::Real).outcome, InstallOutcome::Done);
            assert_eq!(scene.count_files(), 0);
            assert_eq!(installer.uninstall(Mode::Real).outcome, InstallOutcome::Unchanged);
        }
    }

    #[test]
    fn status_names_the_program_that_the_plugin_runs() {
        let scene = Fixture::on(Platform::Unix).with_plugin("vim", "plugin/alongside.vim", "plugin");
        let mut context = scene.context();
        context.program = scene.home().join("old/alongside");
        fs::create_dir(scene.home().join("old")).unwrap();
        fs::write(&context.program, "").unwrap();
        let status = |context: &crate::InstallContext<'_>| installer(DetectedIde::Vim, context).unwrap().status();
        assert_eq!(status(&context).program, None);
        installer(DetectedIde::Vim, &context).unwrap().install(Mode::Real);
        let (old, installed) = (context.program.clone(), status(&context));
        assert_eq!(installed.program.as_ref(), Some(&old));
        assert!(
            installed.sentence.ends_with(&format!("; runs {}.", old.display())),
            "{}",
            installed.sentence
        );

        context.program = scene.home().join("new/alongside");
        let other = status(&context);
        assert_eq!(
            (other.state, other.program.as_ref()),
            (InstallState::Outdated, Some(&old))
        );
        let sentence = format!("but it runs {}; run `alongside install vim`", old.display());
        assert!(other.sentence.contains(&sentence), "{}", other.sentence);
        fs::remove_file(&old).unwrap();
        let moved = status(&context);
        let sentence = format!("but its program {} no longer exists; run", old.display());
        assert!(moved.sentence.contains(&sentence), "{}", moved.sentence);
        installer(DetectedIde::Vim, &context).unwrap().install(Mode::Real);
        assert_eq!(status(&context).program.as_ref(), Some(&context.program));
    }

    #[test]
    fn build_without_plugin_reports_it() {
        let scene = Fixture::on(Platform::Unix);
        let context = scene.context();
        let installer = installer(DetectedIde::Neovim, &context).unwrap();
        let report = installer.install(Mode::Real);
        assert_eq!(report.outcome, InstallOutcome::Refused);
        assert_eq!(
            report.sentence,
            "This build of alongside does not include the plugin for Neovim."
        );
        assert_eq!(installer.status().state, InstallState::Unavailable);
        assert_eq!(scene.count_files(), 0);
    }

    #[test]
    fn versions_are_parsed() {
        assert_eq!(version("NVIM v0.10.4\nBuild type: Release\n"), Some((0, 10)));
        assert_eq!(version("NVIM v0.12.0-dev-123+gabc\n"), Some((0, 12)));
        assert_eq!(version("VIM - Vi IMproved 9.0 (2022 Jun 28, compiled)\n"), Some((9, 0)));
        assert_eq!(version("no version.\n"), None);
        assert_eq!(version(""), None);
    }

    #[test]
    fn old_editor_gets_a_remark() {
        let scene = Fixture::on(Platform::Unix)
            .with_plugin("neovim", "plugin/alongside.lua", "x")
            .with_program("nvim")
            .with_answer("NVIM v0.7.2");
        let context = scene.context();
        let report = installer(DetectedIde::Neovim, &context).unwrap().install(Mode::DryRun);
        assert!(
            report.remarks[0].contains("Neovim 0.7; the plugin needs 0.10"),
            "{report:?}"
        );
    }

    #[test]
    fn remarks_name_obstacles() {
        let scene = Fixture::on(Platform::Unix).with_plugin("neovim", "plugin/alongside.lua", "x");
        fs::create_dir_all(scene.home().join(".local/share/nvim/lazy/lazy.nvim")).unwrap();
        let context = scene.context();
        let report = installer(DetectedIde::Neovim, &context).unwrap().install(Mode::DryRun);
        let remarks = report.remarks.join("\n");
        for part in ["Neovim was not found", "lazy.nvim"] {
            assert!(remarks.contains(part), "{part}: {remarks}");
        }
    }
}

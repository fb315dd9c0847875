//! Installs plugins into editors and removes them.
//!
//! Every editor has an [`Installer`] with the same operations. An installer first computes a [`Plan`], which can be
//! previewed (a dry run) or applied, so the preview always matches what is done. Three rules hold everywhere:
//! installing twice changes nothing the second time, the user's own text is preserved, and files are written
//! atomically.

mod agents;
mod block;
pub mod detect;
mod emacs;
mod error;
mod executables;
mod extension;
#[cfg(test)]
mod fixture;
mod hooks;
mod kate;
mod language_server;
mod native;
mod package;
mod places;
mod plan;
mod plugins;
mod program;
mod receipt;
mod runner;
mod vsix;

use std::path::{Path, PathBuf};

use serde::Serialize;

pub use agents::{AgentReport, connect_agents, disconnect_agents};
pub use error::InstallError;
pub use hooks::{HookReport, HookStatus, Tools, hook_status, install_hook, settings_with_hook, uninstall_hook};
pub use plan::{Action, Plan, Step};
pub use plugins::{PluginFiles, Plugins};
pub use program::{stable_program, temporary_remark};
pub use runner::{Runner, SystemRunner};

use crate::detect::{DetectedIde, Family};
use alongside_core::HookAgent;
use alongside_discovery::Environment;
use places::SystemPaths;
use receipt::Receipt;

/// Everything installers depend on.
pub struct InstallContext<'a> {
    pub environment: &'a Environment,
    pub plugins: &'a Plugins,
    /// Path of this program, as [`stable_program`] returns it.
    pub program: PathBuf,
    pub runner: &'a dyn Runner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Real,
    DryRun,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum InstallOutcome {
    Done,
    Unchanged,
    /// It would be done (dry run).
    Planned,
    /// It was not done, and nothing has changed.
    Refused,
    /// It was started but not completed.
    Failed,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstallReport {
    pub editor: DetectedIde,
    pub outcome: InstallOutcome,
    pub sentence: String,
    pub steps: Vec<Step>,
    pub remarks: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum InstallState {
    /// Complete, and as this program would install it.
    Installed,
    /// Older, or incomplete.
    Outdated,
    /// Changed by the user since.
    Edited,
    /// Symlinked by the user.
    Linked,
    Absent,
    /// It cannot be installed; `sentence` has the reason.
    Unavailable,
}

/// The status of an editor and its plugin.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstallStatus {
    pub editor: DetectedIde,
    pub state: InstallState,
    pub sentence: String,
    /// The editor's command, if found.
    pub executable: Option<PathBuf>,
    /// Where the plugin is installed.
    pub place: Option<PathBuf>,
    /// The program that the plugin starts, if known.
    pub program: Option<PathBuf>,
}

pub trait Installer {
    fn editor(&self) -> DetectedIde;

    /// The editor's command, if found.
    fn executable(&self) -> Option<PathBuf>;

    /// Where the plugin is installed, if that is a path.
    fn place(&self) -> Option<PathBuf>;

    /// A missing requirement that makes installing impossible.
    fn obstacle(&self) -> Option<InstallError>;

    fn state(&self) -> Result<InstallState, InstallError>;

    /// The program that the installed plugin starts, read from what was written, if known.
    fn program(&self, state: InstallState) -> Option<PathBuf>;

    fn plan_install(&self) -> Result<Plan, InstallError>;

    fn plan_uninstall(&self) -> Result<Plan, InstallError>;

    fn context(&self) -> &InstallContext<'_>;

    /// Installs or updates the plugin.
    fn install(&self, mode: Mode) -> InstallReport {
        let plan = match self.obstacle() {
            Some(obstacle) => Err(obstacle),
            None => self.plan_install(),
        };
        let name = self.editor().display_name();
        let messages = Messages {
            done: format!("Installed for {name}{}.", at(self.place())),
            planned: format!("Would install for {name}{}.", at(self.place())),
            unchanged: format!("Already installed for {name}{}.", at(self.place())),
        };
        let (directories, extensions) = match &plan {
            Ok(plan) => (plan.new_directories(), plan.extensions()),
            Err(_) => (Vec::new(), Vec::new()),
        };
        let mut report = report(self.editor(), plan, mode, self.context().runner, messages);
        if matches!(report.outcome, InstallOutcome::Done | InstallOutcome::Failed) && mode == Mode::Real {
            let ran = report.steps.iter().filter(|step| step.action == Action::Run).count();
            let extensions = extensions.into_iter().take(ran).collect();
            let id = self.editor().id();
            let noted = Receipt::update(self.context(), |receipt| {
                receipt.add(id, extensions, directories, &self.context().program);
            });
            report.remarks.extend(noted.err().map(|error| capitalized(&error)));
        }
        report
    }

    fn uninstall(&self, mode: Mode) -> InstallReport {
        let name = self.editor().display_name();
        let messages = Messages {
            done: format!("Removed from {name}."),
            planned: format!("Would remove from {name}."),
            unchanged: format!("Not installed for {name}; nothing to remove."),
        };
        let id = self.editor().id();
        let plan = self.plan_uninstall().map(|mut plan| {
            if !plan.is_empty() {
                let directories = Receipt::load(self.context()).directories(id).into_iter();
                plan.changes
                    .extend(directories.map(|path| plan::Change::RemoveDirectory { path }));
            }
            plan
        });
        let mut report = report(self.editor(), plan, mode, self.context().runner, messages);
        if matches!(report.outcome, InstallOutcome::Done | InstallOutcome::Unchanged) && mode == Mode::Real {
            let noted = Receipt::update(self.context(), |receipt| receipt.forget(id));
            report.remarks.extend(noted.err().map(|error| capitalized(&error)));
        }
        report
    }

    /// The same when everything is removed. An editor that was uninstalled, and has no command that could be asked, is only forgotten:
    /// otherwise this would fail each time.
    fn uninstall_with_all(&self, mode: Mode) -> InstallReport {
        let Err(InstallError::NoExecutable { editor, command }) = self.plan_uninstall() else {
            return self.uninstall(mode);
        };
        let mut remarks = vec![format!(
            "`{command}` is not on your PATH or in the usual locations. If {editor} is still installed, remove the extension {} in it.",
            extension::OURS
        )];
        if mode == Mode::Real {
            let noted = Receipt::update(self.context(), |receipt| receipt.forget(self.editor().id()));
            remarks.extend(noted.err().map(|error| capitalized(&error)));
        }
        InstallReport {
            editor: self.editor(),
            outcome: InstallOutcome::Unchanged,
            sentence: format!("{editor} was not found; nothing to remove."),
            steps: Vec::new(),
            remarks,
        }
    }

    fn status(&self) -> InstallStatus {
        status_of(self)
    }
}

fn status_of(installer: &(impl Installer + ?Sized)) -> InstallStatus {
    let place = at(installer.place());
    let found = installer.state();
    let program = found.as_ref().ok().and_then(|state| installer.program(*state));
    let runs = program
        .as_ref()
        .map(|program| format!("; runs {}", program.display()))
        .unwrap_or_default();
    let (state, sentence) = match (found, installer.obstacle()) {
        (Err(error), _) => (InstallState::Unavailable, capitalized(&error)),
        (Ok(InstallState::Absent), Some(obstacle)) => (InstallState::Unavailable, capitalized(&obstacle)),
        (Ok(state), _) => (
            state,
            match state {
                InstallState::Installed => format!("Installed{place}{runs}."),
                InstallState::Outdated => format!(
                    "Installed{place}, but {}; run `alongside install {}` to update it.",
                    outdated(installer.context(), program.as_deref()),
                    installer.editor().id()
                ),
                InstallState::Edited => format!("Installed{place}, with local edits{runs}."),
                InstallState::Linked => format!("Linked{place}; managed outside alongside and left alone."),
                InstallState::Absent | InstallState::Unavailable => "Not installed.".to_owned(),
            },
        ),
    };
    InstallStatus {
        editor: installer.editor(),
        state,
        sentence,
        executable: installer.executable(),
        place: installer.place(),
        program,
    }
}

/// Why an installation is out of date, as far as it is about the program that it starts.
fn outdated(context: &InstallContext<'_>, program: Option<&Path>) -> String {
    match program {
        Some(program) if !program.exists() => format!("its program {} no longer exists", program.display()),
        Some(program) if program != context.program => format!("it runs {}", program.display()),
        _ => "out of date".to_owned(),
    }
}

/// The message for each outcome.
struct Messages {
    done: String,
    planned: String,
    unchanged: String,
}

struct RunResult {
    outcome: InstallOutcome,
    sentence: String,
    steps: Vec<Step>,
    remarks: Vec<String>,
}

fn run_plan(plan: Result<Plan, InstallError>, mode: Mode, runner: &dyn Runner, messages: Messages) -> RunResult {
    let refused = |error: &InstallError| RunResult {
        outcome: InstallOutcome::Refused,
        sentence: capitalized(error),
        steps: Vec::new(),
        remarks: Vec::new(),
    };
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => return refused(&error),
    };
    let (outcome, sentence, steps) = match mode {
        _ if plan.is_empty() => (InstallOutcome::Unchanged, messages.unchanged, Vec::new()),
        Mode::DryRun => (InstallOutcome::Planned, messages.planned, plan.preview()),
        Mode::Real => match plan.carry_out(runner) {
            Ok(steps) => (InstallOutcome::Done, messages.done, steps),
            Err(interrupted) if interrupted.steps.is_empty() => return refused(&interrupted.error),
            Err(interrupted) => (
                InstallOutcome::Failed,
                capitalized(&interrupted.error),
                interrupted.steps,
            ),
        },
    };
    RunResult {
        outcome,
        sentence,
        steps,
        remarks: plan.remarks,
    }
}

fn report(
    editor: DetectedIde,
    plan: Result<Plan, InstallError>,
    mode: Mode,
    runner: &dyn Runner,
    messages: Messages,
) -> InstallReport {
    let RunResult {
        outcome,
        sentence,
        steps,
        remarks,
    } = run_plan(plan, mode, runner, messages);
    InstallReport {
        editor,
        outcome,
        sentence,
        steps,
        remarks,
    }
}

/// The installer for an editor, or manual steps if it has none.
pub fn installer<'a>(
    ide: DetectedIde,
    context: &'a InstallContext<'a>,
) -> Result<Box<dyn Installer + 'a>, InstallError> {
    Ok(match ide {
        DetectedIde::Neovim | DetectedIde::Vim => Box::new(native::Native::new(ide, context)?),
        DetectedIde::Emacs => Box::new(emacs::Emacs::new(context)?),
        DetectedIde::Helix | DetectedIde::Kakoune => Box::new(language_server::LanguageServer::new(ide, context)?),
        // Elsewhere its settings are in other places.
        DetectedIde::Kate if context.environment.platform == alongside_discovery::Platform::Unix => {
            Box::new(kate::Kate::new(context)?)
        }
        // Its terminals run on a machine that is recreated each time.
        DetectedIde::CloudShell => return Err(InstallError::Manual(manual_steps(ide))),
        _ if ide.family() == Family::VsCode => Box::new(extension::Extension::new(ide, context)),
        _ => return Err(InstallError::Manual(manual_steps(ide))),
    })
}

pub fn installable() -> impl Iterator<Item = DetectedIde> {
    DetectedIde::ALL.iter().copied().filter(|ide| {
        let is_plugin = matches!(
            ide,
            DetectedIde::Neovim
                | DetectedIde::Vim
                | DetectedIde::Emacs
                | DetectedIde::Helix
                | DetectedIde::Kakoune
                | DetectedIde::Kate
        );
        is_plugin || (ide.family() == Family::VsCode && *ide != DetectedIde::CloudShell)
    })
}

/// The editors and agents for which something was installed. An extension that is not noted came from a gallery, and a plugin that is
/// a link is managed elsewhere.
pub fn installed(context: &InstallContext<'_>) -> (Vec<DetectedIde>, Vec<HookAgent>) {
    let receipt = Receipt::load(context);
    let is_ours = |state| {
        matches!(
            state,
            InstallState::Installed | InstallState::Outdated | InstallState::Edited
        )
    };
    let editors = installable().filter(|ide| {
        let is_present = || {
            let installer = installer(*ide, context).ok()?;
            installer.state().ok().map(is_ours)
        };
        receipt.has_editor(ide.id()) || (ide.family() != Family::VsCode && is_present().unwrap_or_default())
    });
    (editors.collect(), hooks::installed_hooks(context))
}

/// Manual steps for an editor without an installer.
pub fn manual_steps(ide: DetectedIde) -> String {
    let name = ide.display_name();
    let client = match ide {
        DetectedIde::Zed | DetectedIde::SublimeText | DetectedIde::QtCreator | DetectedIde::Kate => {
            Some("its language client")
        }
        _ if ide.family() == Family::JetBrains => Some("the LSP4IJ plugin"),
        _ => None,
    };
    let server = client.map(|client| {
        format!(
            " To have reviews in {name} itself, set up `alongside lsp` as a language server with {client}; see docs/EDITORS.md."
        )
    });
    format!(
        "there is no plugin for {name} yet. Run `alongside` in your project, in a terminal in {name} or elsewhere; `gemini` and `qwen` then connect automatically. Review changes on the page (`alongside page --open`) or with `alongside diff`, and use `alongside context focus FILE` to tell agents what you are looking at.{}",
        server.unwrap_or_default()
    )
}

/// A content hash: FNV-1a plus the length. Detects edits, not attacks, and is stable across versions of this program.
fn digest(content: &[u8]) -> String {
    let hash = content.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}-{}", content.len())
}

fn at(place: Option<PathBuf>) -> String {
    place
        .map(|place| format!(" in {}", place.display()))
        .unwrap_or_default()
}

fn capitalized(error: &InstallError) -> String {
    let sentence = error.to_string();
    let mut characters = sentence.chars();
    let first = characters.next().map(|first| first.to_uppercase().collect::<String>());
    let sentence = first.unwrap_or_default() + characters.as_str();
    if sentence.ends_with('.') {
        sentence
    } else {
        sentence + "."
    }
}

/// The real machine.
fn machine<'a>(context: &'a InstallContext<'_>) -> SystemPaths<'a> {
    SystemPaths {
        environment: context.environment,
        exists: &|path| path.exists(),
        is_program: &alongside_platform::is_executable,
    }
}

fn executable_remark(ide: DetectedIde, executable: Option<&PathBuf>) -> Option<String> {
    executable.is_none().then(|| {
        let (name, command) = (ide.display_name(), executables::usual_name(ide));
        format!("{name} was not found: `{command}` is not on your PATH.")
    })
}

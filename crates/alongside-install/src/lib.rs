//! Plugins into editors, and out again.
//!
//! Every editor that has an [`Installer`] is served by the same three verbs. An installer first works out a [`Plan`], which
//! can be shown (a dry run) or carried out; so what is shown and what is done cannot differ. Three rules hold everywhere:
//! doing it twice does nothing the second time, what a person wrote is kept, and a file is written whole or not at all.

mod agents;
mod block;
pub mod detect;
mod emacs;
mod error;
mod executables;
mod extension;
#[cfg(test)]
mod fixture;
mod language_server;
mod native;
mod package;
mod places;
mod plan;
mod plugins;
mod runner;

use std::path::PathBuf;

use serde::Serialize;

pub use agents::{AgentReport, connect_agents};
pub use error::InstallError;
pub use plan::{Action, Plan, Step};
pub use plugins::{PluginFiles, Plugins};
pub use runner::{Runner, SystemRunner};

use crate::detect::{DetectedIde, Family};
use alongside_discovery::Environment;
use places::SystemPaths;

/// All that installers depend on.
pub struct InstallContext<'a> {
    /// The user's directories and path.
    pub environment: &'a Environment,
    /// The plugins to install.
    pub plugins: &'a Plugins,
    /// This program, for editors that must be told where it is.
    pub program: PathBuf,
    /// Runs the commands of editors.
    pub runner: &'a dyn Runner,
}

/// Whether to do it or to say what would be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Do it.
    Real,
    /// Change nothing.
    DryRun,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum InstallOutcome {
    Done,
    /// There was nothing to do.
    Unchanged,
    /// It would be done.
    Planned,
    /// It was not done, and nothing has changed.
    Refused,
    /// It was begun and could not be finished.
    Failed,
}

/// What was done, or why not.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstallReport {
    pub editor: DetectedIde,
    /// How it went.
    pub outcome: InstallOutcome,
    /// The same in a sentence.
    pub sentence: String,
    /// What was done, or would be.
    pub steps: Vec<Step>,
    /// What a person should know besides.
    pub remarks: Vec<String>,
}

/// How much of an installation is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum InstallState {
    /// All of it, as this program would install it.
    Installed,
    /// An older one, or not all of it.
    Outdated,
    /// Somebody has changed it since.
    Edited,
    /// Somebody has linked it there.
    Linked,
    /// Nothing.
    Absent,
    /// It cannot be installed; the sentence says why.
    Unavailable,
}

/// What there is of an editor and its plugin.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstallStatus {
    pub editor: DetectedIde,
    /// How much is installed.
    pub state: InstallState,
    /// The same in a sentence.
    pub sentence: String,
    /// The editor's command, if it was found.
    pub executable: Option<PathBuf>,
    /// Where the plugin goes.
    pub place: Option<PathBuf>,
}

/// Installs the plugin of one editor.
pub trait Installer {
    fn editor(&self) -> DetectedIde;

    /// The editor's command, if it was found.
    fn executable(&self) -> Option<PathBuf>;

    /// Where the plugin goes, if that is a place in the file system.
    fn place(&self) -> Option<PathBuf>;

    /// What is needed besides and is not there; then nothing can be installed.
    fn obstacle(&self) -> Option<InstallError>;

    /// How much is installed.
    fn state(&self) -> Result<InstallState, InstallError>;

    /// What installing would do.
    fn plan_install(&self) -> Result<Plan, InstallError>;

    /// What uninstalling would do.
    fn plan_uninstall(&self) -> Result<Plan, InstallError>;

    /// Runs the commands of the editor.
    fn runner(&self) -> &dyn Runner;

    /// Installs the plugin, or brings it up to date.
    fn install(&self, mode: Mode) -> InstallReport {
        let plan = match self.obstacle() {
            Some(obstacle) => Err(obstacle),
            None => self.plan_install(),
        };
        let name = self.editor().display_name();
        let words = Messages {
            done: format!("Installed for {name}{}.", at(self.place())),
            planned: format!("Would install for {name}{}.", at(self.place())),
            unchanged: format!("Already installed for {name}{}.", at(self.place())),
        };
        report(self.editor(), plan, mode, self.runner(), words)
    }

    /// Removes what was installed, and nothing else.
    fn uninstall(&self, mode: Mode) -> InstallReport {
        let name = self.editor().display_name();
        let words = Messages {
            done: format!("Removed from {name}."),
            planned: format!("Would remove from {name}."),
            unchanged: format!("Not installed for {name}; nothing to remove."),
        };
        report(self.editor(), self.plan_uninstall(), mode, self.runner(), words)
    }

    fn status(&self) -> InstallStatus {
        let place = at(self.place());
        let (state, sentence) = match (self.state(), self.obstacle()) {
            (Err(error), _) => (InstallState::Unavailable, capitalised(&error)),
            (Ok(InstallState::Absent), Some(obstacle)) => (InstallState::Unavailable, capitalised(&obstacle)),
            (Ok(state), _) => (
                state,
                match state {
                    InstallState::Installed => format!("Installed{place}."),
                    InstallState::Outdated => format!(
                        "Installed{place}, but out of date; run `alongside install {}` to update it.",
                        self.editor().id()
                    ),
                    InstallState::Edited => format!("Installed{place}, with local edits."),
                    InstallState::Linked => format!("Linked{place}; managed outside alongside and left alone."),
                    InstallState::Absent | InstallState::Unavailable => "Not installed.".to_owned(),
                },
            ),
        };
        InstallStatus {
            editor: self.editor(),
            state,
            sentence,
            executable: self.executable(),
            place: self.place(),
        }
    }
}

/// What is said about each way it may go.
struct Messages {
    done: String,
    planned: String,
    unchanged: String,
}

/// How it went, whatever it was.
struct RunResult {
    outcome: InstallOutcome,
    sentence: String,
    steps: Vec<Step>,
    remarks: Vec<String>,
}

fn run_plan(plan: Result<Plan, InstallError>, mode: Mode, runner: &dyn Runner, words: Messages) -> RunResult {
    let refused = |error: &InstallError| RunResult {
        outcome: InstallOutcome::Refused,
        sentence: capitalised(error),
        steps: Vec::new(),
        remarks: Vec::new(),
    };
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => return refused(&error),
    };
    let (outcome, sentence, steps) = match mode {
        _ if plan.is_empty() => (InstallOutcome::Unchanged, words.unchanged, Vec::new()),
        Mode::DryRun => (InstallOutcome::Planned, words.planned, plan.preview()),
        Mode::Real => match plan.carry_out(runner) {
            Ok(steps) => (InstallOutcome::Done, words.done, steps),
            Err(interrupted) if interrupted.steps.is_empty() => return refused(&interrupted.error),
            Err(interrupted) => (
                InstallOutcome::Failed,
                capitalised(&interrupted.error),
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
    words: Messages,
) -> InstallReport {
    let RunResult {
        outcome,
        sentence,
        steps,
        remarks,
    } = run_plan(plan, mode, runner, words);
    InstallReport {
        editor,
        outcome,
        sentence,
        steps,
        remarks,
    }
}

/// The installer of an editor, or the steps to take by hand where there is none.
pub fn installer<'a>(
    ide: DetectedIde,
    setting: &'a InstallContext<'a>,
) -> Result<Box<dyn Installer + 'a>, InstallError> {
    Ok(match ide {
        DetectedIde::Neovim | DetectedIde::Vim => Box::new(native::Native::new(ide, setting)?),
        DetectedIde::Emacs => Box::new(emacs::Emacs::new(setting)?),
        DetectedIde::Helix | DetectedIde::Kakoune => Box::new(language_server::LanguageServer::new(ide, setting)?),
        // Its terminals run on a machine that is made anew each time.
        DetectedIde::CloudShell => return Err(InstallError::Manual(manual_steps(ide))),
        _ if ide.family() == Family::VsCode => Box::new(extension::Extension::new(ide, setting)),
        _ => return Err(InstallError::Manual(manual_steps(ide))),
    })
}

/// The editors that have an installer.
pub fn installable() -> impl Iterator<Item = DetectedIde> {
    DetectedIde::ALL.iter().copied().filter(|ide| {
        let is_plugin = matches!(
            ide,
            DetectedIde::Neovim | DetectedIde::Vim | DetectedIde::Emacs | DetectedIde::Helix | DetectedIde::Kakoune
        );
        is_plugin || (ide.family() == Family::VsCode && *ide != DetectedIde::CloudShell)
    })
}

/// What to do by hand for an editor that has no installer.
pub fn manual_steps(ide: DetectedIde) -> String {
    let name = ide.display_name();
    format!(
        "there is no plugin for {name} yet. Run `alongside` in your project, in a terminal in {name} or elsewhere; `gemini` and `qwen` then connect automatically. Review changes on the page (`alongside page --open`) or with `alongside diff`, and use `alongside context focus FILE` to tell agents what you are looking at"
    )
}

/// A number that changes with the content: FNV-1a with the length. It tells apart what was edited, by accident and not
/// by an enemy, and stays the same from one version of this program to the next.
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

fn capitalised(error: &InstallError) -> String {
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

/// The machine that is really there.
fn machine<'a>(setting: &'a InstallContext<'_>) -> SystemPaths<'a> {
    SystemPaths {
        environment: setting.environment,
        exists: &|path| path.exists(),
    }
}

/// How an editor calls this program: by its name where that is on the path, so that an update is found too.
fn program_name(setting: &InstallContext<'_>) -> String {
    match machine(setting).on_path("alongside") {
        Some(_) => "alongside".to_owned(),
        None => setting.program.to_string_lossy().into_owned(),
    }
}

fn executable_remark(ide: DetectedIde, executable: Option<&PathBuf>) -> Option<String> {
    executable.is_none().then(|| {
        let (name, command) = (ide.display_name(), executables::usual_name(ide));
        format!("{name} was not found: `{command}` is not on your PATH.")
    })
}

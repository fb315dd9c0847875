//! `alongside install` and `alongside uninstall`: plugins into editors, and out again.

use std::process::ExitCode;

use alongside_discovery::Environment;
use alongside_discovery::process::SystemProcesses;
use alongside_install::detect::{DetectedIde, detect};
use alongside_install::{
    Action, AgentReport, InstallContext, InstallError, InstallOutcome, InstallReport, InstallState, InstallStatus,
    Mode, Plugins, Step, SystemRunner, connect_agents, installable, installer,
};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::command_line::{Common, Install, Uninstall};
use crate::output::Output;
use crate::printable::{printable_difference, printable_line};

pub(crate) fn install(common: &Common, install: &Install) -> Result<ExitCode> {
    let surroundings = OwnedContext::current()?;
    let setting = surroundings.setting();
    let output = common.output();
    let named = editors(&install.editors)?;
    if install.status {
        let editors = if named.is_empty() {
            installable().collect()
        } else {
            named
        };
        return Ok(show_status(output, &editors, &setting, install.editors.is_empty()));
    }
    let mode = if install.dry_run { Mode::DryRun } else { Mode::Real };
    if named.is_empty() && !install.yes {
        return Ok(offer(output, &setting));
    }
    let editors = if named.is_empty() { found(&setting) } else { named };
    if editors.is_empty() {
        bail!("no supported editor found; name one, for example `alongside install neovim`");
    }
    let reports = editors.iter().map(|ide| match installer(*ide, &setting) {
        Ok(installer) => installer.install(mode),
        Err(error) => refusal(*ide, &error),
    });
    let reports: Vec<InstallReport> = reports.collect();
    let has_any = reports.iter().any(|report| report.outcome != InstallOutcome::Refused);
    // An editor with a plugin is of no use as long as no agent looks for it.
    let agents = if has_any {
        connect_agents(&setting, mode)
    } else {
        Vec::new()
    };
    let code = show_reports(output, &reports, &agents);
    // Of all that were found some may have no plugin yet; that is no failure as long as the others went well.
    let has_failed = reports.iter().any(|report| report.outcome == InstallOutcome::Failed);
    Ok(if install.yes && has_any && !has_failed {
        ExitCode::SUCCESS
    } else {
        code
    })
}

pub(crate) fn uninstall(common: &Common, uninstall: &Uninstall) -> Result<ExitCode> {
    let surroundings = OwnedContext::current()?;
    let setting = surroundings.setting();
    let mode = if uninstall.dry_run { Mode::DryRun } else { Mode::Real };
    let editors = editors(&uninstall.editors)?;
    let reports = editors.iter().map(|ide| match installer(*ide, &setting) {
        Ok(installer) => installer.uninstall(mode),
        Err(error) => refusal(*ide, &error),
    });
    Ok(show_reports(common.output(), &reports.collect::<Vec<_>>(), &[]))
}

/// What installers depend on, as it is for this process.
struct OwnedContext {
    environment: Environment,
    plugins: Plugins,
    program: std::path::PathBuf,
}

impl OwnedContext {
    fn current() -> Result<Self> {
        Ok(Self {
            environment: Environment::current(),
            plugins: Plugins::embedded(),
            program: std::env::current_exe().context("cannot determine the path of this program")?,
        })
    }

    fn setting(&self) -> InstallContext<'_> {
        InstallContext {
            environment: &self.environment,
            plugins: &self.plugins,
            program: self.program.clone(),
            runner: &SystemRunner,
        }
    }
}

fn editors(names: &[String]) -> Result<Vec<DetectedIde>> {
    let mut editors: Vec<DetectedIde> = Vec::new();
    for name in names {
        let Some(ide) = DetectedIde::from_name(name) else {
            let known: Vec<&str> = installable().map(DetectedIde::id).collect();
            bail!("unknown editor `{name}`; supported editors: {}", known.join(", "));
        };
        if !editors.contains(&ide) {
            editors.push(ide);
        }
    }
    Ok(editors)
}

/// The editors that are there and can be installed for; that of this terminal first.
fn found(setting: &InstallContext<'_>) -> Vec<DetectedIde> {
    let own = own_editor(setting);
    let mut found: Vec<DetectedIde> = installable()
        .filter(|ide| {
            let installer = installer(*ide, setting);
            let is_there = installer.is_ok_and(|installer| installer.executable().is_some());
            // These borrow the command of VS Code, so their command alone says nothing.
            let is_borrowed = matches!(ide, DetectedIde::Codespaces | DetectedIde::FirebaseStudio);
            is_there && (!is_borrowed || own == Some(*ide))
        })
        .collect();
    found.sort_by_key(|ide| Some(*ide) != own);
    found
}

fn own_editor(setting: &InstallContext<'_>) -> Option<DetectedIde> {
    detect(setting.environment, &SystemProcesses::default())
        .found
        .map(|finding| finding.ide)
}

/// Lists what could be done, and does nothing.
fn offer(output: Output, setting: &InstallContext<'_>) -> ExitCode {
    let mut reports: Vec<InstallReport> = found(setting)
        .into_iter()
        .filter_map(|ide| Some(installer(ide, setting).ok()?.install(Mode::DryRun)))
        .collect();
    // The editor that somebody sits in is spoken of even if nothing can be installed for it.
    if let Some(own) = own_editor(setting)
        && reports.iter().all(|report| report.editor != own)
    {
        let report = match installer(own, setting) {
            Ok(installer) => installer.install(Mode::DryRun),
            Err(error) => refusal(own, &error),
        };
        reports.insert(0, report);
    }
    output.answer(
        &json!({ "offers": reports.iter().map(to_json).collect::<Vec<_>>() }),
        || {
            if reports.is_empty() {
                return "No supported editor found. You can still run `alongside` in a terminal next to any editor.\n"
                    .to_owned();
            }
            let mut words = String::new();
            for report in &reports {
                words.push_str(&format!(
                    "{:<18}{}\n",
                    report.editor.id(),
                    printable_line(&report.sentence)
                ));
                let planned = report.steps.iter().filter(|step| step.action == Action::Run);
                for step in planned {
                    words.push_str(&format!("{:<18}  runs {}\n", "", printable_line(&step.subject)));
                }
                for remark in &report.remarks {
                    words.push_str(&format!("{:<18}  {}\n", "", printable_line(remark)));
                }
            }
            if reports.iter().any(|report| report.outcome == InstallOutcome::Planned) {
                words.push_str(
                    "\nRun `alongside install <name>` to install one, or `alongside install --yes` to install all.\n",
                );
            }
            words
        },
    );
    ExitCode::SUCCESS
}

fn show_status(output: Output, editors: &[DetectedIde], setting: &InstallContext<'_>, is_overview: bool) -> ExitCode {
    let statuses: Vec<InstallStatus> = editors
        .iter()
        .map(|ide| match installer(*ide, setting) {
            Ok(installer) => installer.status(),
            Err(error) => InstallStatus {
                editor: *ide,
                state: InstallState::Unavailable,
                sentence: refusal(*ide, &error).sentence,
                executable: None,
                place: None,
            },
        })
        // Nobody wants to read about a dozen editors that they do not have.
        .filter(|status| !is_overview || output.json || status.executable.is_some() || is_present(status.state))
        .collect();
    output.answer(&json!({ "editors": statuses }), || {
        if statuses.is_empty() {
            return "No supported editor found.\n".to_owned();
        }
        let lines = statuses
            .iter()
            .map(|status| format!("{:<18}{}\n", status.editor.id(), printable_line(&status.sentence)));
        lines.collect()
    });
    ExitCode::SUCCESS
}

fn is_present(state: InstallState) -> bool {
    !matches!(state, InstallState::Absent | InstallState::Unavailable)
}

fn refusal(ide: DetectedIde, error: &InstallError) -> InstallReport {
    InstallReport {
        editor: ide,
        outcome: InstallOutcome::Refused,
        sentence: format!("{}: {error}.", ide.display_name()),
        steps: Vec::new(),
        remarks: Vec::new(),
    }
}

fn show_reports(output: Output, reports: &[InstallReport], agents: &[AgentReport]) -> ExitCode {
    let values: Vec<Value> = reports.iter().map(to_json).collect();
    output.answer(&json!({ "reports": values, "agents": agents }), || {
        let mut words = String::new();
        for report in reports {
            words += &report_words(report.outcome, &report.sentence, &report.steps, &report.remarks, output);
        }
        for report in agents {
            words += &report_words(report.outcome, &report.sentence, &report.steps, &report.remarks, output);
        }
        words
    });
    let has_failed =
        |report: &InstallReport| matches!(report.outcome, InstallOutcome::Refused | InstallOutcome::Failed);
    let agent_failed = |report: &AgentReport| report.outcome == InstallOutcome::Failed;
    if reports.iter().any(has_failed) || agents.iter().any(agent_failed) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn to_json(report: &InstallReport) -> Value {
    let mut value = json!(report);
    value["displayName"] = json!(report.editor.display_name());
    value
}

fn report_words(outcome: InstallOutcome, sentence: &str, steps: &[Step], remarks: &[String], output: Output) -> String {
    let mut words = format!("{}\n", printable_line(sentence));
    for step in steps {
        let verb = match (outcome, step.action) {
            (InstallOutcome::Planned, Action::Create) => "would create",
            (InstallOutcome::Planned, Action::Change) => "would change",
            (InstallOutcome::Planned, Action::Remove) => "would remove",
            (InstallOutcome::Planned, Action::Run) => "would run",
            (_, Action::Create) => "created",
            (_, Action::Change) => "changed",
            (_, Action::Remove) => "removed",
            (_, Action::Run) => "ran",
        };
        words.push_str(&format!("  {verb} {}\n", printable_line(&step.subject)));
        if let Some(backup) = &step.backup {
            words.push_str(&format!("  backup: {}\n", backup.display()));
        }
        if let Some(difference) = &step.difference {
            words.push_str(&printable_difference(difference, output.colours()));
        }
    }
    for remark in remarks {
        words.push_str(&format!("Note: {}\n", printable_line(remark)));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_editor_is_answered_with_the_known_ones() {
        let error = editors(&["ed".to_owned()]).unwrap_err().to_string();
        assert!(
            error.contains("unknown editor `ed`") && error.contains("neovim, vim, emacs"),
            "{error}"
        );
        let names = ["nvim", "Neovim", "emacs"].map(str::to_owned);
        assert_eq!(editors(&names).unwrap(), [DetectedIde::Neovim, DetectedIde::Emacs]);
    }
}

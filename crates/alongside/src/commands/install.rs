//! `alongside install` and `alongside uninstall`: install and remove editor plugins and agents' hooks.

use std::process::ExitCode;

use alongside_core::HookAgent;
use alongside_discovery::Environment;
use alongside_discovery::process::SystemProcesses;
use alongside_install::detect::{DetectedIde, detect};
use alongside_install::{
    Action, AgentReport, HookReport, HookStatus, InstallContext, InstallError, InstallOutcome, InstallReport,
    InstallState, InstallStatus, Mode, Plugins, Step, SystemRunner, Tools, connect_agents, disconnect_agents,
    hook_status, install_hook, installable, installed, installer, stable_program, temporary_remark, uninstall_hook,
};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::command_line::{Common, Install, Uninstall};
use crate::output::Output;
use crate::printable::{printable_difference, printable_line};
use crate::signals::ShutdownSignals;

/// The shell convention for Ctrl-C.
const INTERRUPTED: i32 = 130;

pub(crate) fn install(common: &Common, install: &Install) -> Result<ExitCode> {
    let owned = OwnedContext::current()?;
    let context = owned.context();
    let output = common.output();
    let named = Named::parse(&install.names)?;
    if install.tools && named.agents.is_empty() {
        bail!("`--tools` needs an agent; expected gemini or qwen");
    }
    if install.status {
        let (editors, agents) = if install.names.is_empty() {
            (installable().collect(), found_agents(&context))
        } else {
            (named.editors, named.agents)
        };
        let hooks: Vec<HookStatus> = agents.iter().map(|agent| hook_status(*agent, &context)).collect();
        return Ok(show_status(
            output,
            &editors,
            &hooks,
            &context,
            install.names.is_empty(),
        ));
    }
    let mode = if install.dry_run { Mode::DryRun } else { Mode::Real };
    if let Some(remark) = temporary_remark(&context.program) {
        output.news(&format!("Note: {remark}."));
        output.remark(&remark);
    }
    if install.names.is_empty() && !install.yes {
        return Ok(offer(output, &context));
    }
    let editors = if install.names.is_empty() {
        found(&context)
    } else {
        named.editors
    };
    if editors.is_empty() && named.agents.is_empty() {
        bail!("no supported editor found; name one, for example `alongside install neovim`");
    }
    let reports = editors.iter().map(|ide| match installer(*ide, &context) {
        Ok(installer) => installer.install(mode),
        Err(error) => refusal(*ide, &error),
    });
    let reports: Vec<InstallReport> = reports.collect();
    let has_any = reports.iter().any(|report| report.outcome != InstallOutcome::Refused);
    // A plugin is useless as long as no agent connects to it.
    let mut agents = if has_any {
        connect_agents(&context, mode)
    } else {
        Vec::new()
    };
    let mut hooks = Vec::new();
    let tools = if install.tools { Tools::Register } else { Tools::Keep };
    for agent in &named.agents {
        let (hook, connected) = install_hook(*agent, tools, &context, mode);
        hooks.push(hook);
        agents.extend(connected.filter(|connected| agents.iter().all(|known| known.agent != connected.agent)));
    }
    let code = show_reports(output, &reports, &agents, &hooks);
    // With `--yes`, an editor without a plugin is not a failure as long as the others succeeded.
    let has_failed = reports.iter().any(|report| report.outcome == InstallOutcome::Failed);
    Ok(if install.yes && has_any && !has_failed {
        ExitCode::SUCCESS
    } else {
        code
    })
}

pub(crate) fn uninstall(common: &Common, uninstall: &Uninstall) -> Result<ExitCode> {
    let owned = OwnedContext::current()?;
    let context = owned.context();
    let mode = if uninstall.dry_run { Mode::DryRun } else { Mode::Real };
    let Named { editors, agents } = if uninstall.all {
        let (editors, agents) = installed(&context);
        Named { editors, agents }
    } else {
        Named::parse(&uninstall.names)?
    };
    let hooks = agents.iter().map(|agent| uninstall_hook(*agent, &context, mode));
    let (hooks, disconnected): (Vec<HookReport>, Vec<Option<AgentReport>>) = hooks.unzip();
    let reports = editors.iter().map(|ide| match installer(*ide, &context) {
        Ok(installer) if uninstall.all => installer.uninstall_with_all(mode),
        Ok(installer) => installer.uninstall(mode),
        Err(error) => refusal(*ide, &error),
    });
    let reports: Vec<InstallReport> = reports.collect();
    let removed = reports
        .iter()
        .filter(|report| !matches!(report.outcome, InstallOutcome::Refused | InstallOutcome::Failed));
    let mut removed: Vec<DetectedIde> = removed.map(|report| report.editor).collect();
    if uninstall.all {
        // An editor whose command is gone needs the setting no longer.
        removed.clone_from(&editors);
    }
    let mut agents: Vec<AgentReport> = disconnected.into_iter().flatten().collect();
    if uninstall.all || !editors.is_empty() {
        agents.extend(disconnect_agents(&context, &removed, mode));
    }
    if uninstall.all && reports.is_empty() && hooks.is_empty() && agents.is_empty() {
        let nothing = json!({ "reports": [], "agents": [], "hooks": [] });
        common
            .output()
            .answer(&nothing, || "Nothing is installed.\n".to_owned());
        return Ok(ExitCode::SUCCESS);
    }
    Ok(show_reports(common.output(), &reports, &agents, &hooks))
}

/// The owned values behind an [`InstallContext`].
struct OwnedContext {
    environment: Environment,
    plugins: Plugins,
    program: std::path::PathBuf,
    runner: SystemRunner,
}

impl OwnedContext {
    fn current() -> Result<Self> {
        let environment = Environment::current();
        let own = std::env::current_exe().context("cannot determine the path of this program")?;
        let runner = SystemRunner::default();
        end_with_signals(runner.clone())?;
        Ok(Self {
            runner,
            program: stable_program(&environment, own),
            environment,
            plugins: Plugins::embedded(),
        })
    }

    fn context(&self) -> InstallContext<'_> {
        InstallContext {
            environment: &self.environment,
            plugins: &self.plugins,
            program: self.program.clone(),
            runner: &self.runner,
        }
    }
}

/// A signal ends this program as always, but an editor's command first.
fn end_with_signals(runner: SystemRunner) -> Result<()> {
    let mut signals = ShutdownSignals::register().context("cannot install signal handlers")?;
    tokio::spawn(async move {
        signals.received().await;
        runner.interrupt();
        std::process::exit(INTERRUPTED);
    });
    Ok(())
}

/// What a command line names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Named {
    editors: Vec<DetectedIde>,
    agents: Vec<HookAgent>,
}

impl Named {
    fn parse(names: &[String]) -> Result<Self> {
        let mut found = Self::default();
        for name in names {
            if let Some(agent) = HookAgent::from_id(name) {
                if !found.agents.contains(&agent) {
                    found.agents.push(agent);
                }
                continue;
            }
            let Some(ide) = DetectedIde::from_name(name) else {
                let editors: Vec<&str> = installable().map(DetectedIde::id).collect();
                bail!(
                    "unknown editor `{name}`; supported editors: {}; agents: {}",
                    editors.join(", "),
                    HookAgent::ALL.map(HookAgent::id).join(", ")
                );
            };
            if !found.editors.contains(&ide) {
                found.editors.push(ide);
            }
        }
        Ok(found)
    }
}

/// The installed editors that have an installer; this terminal's editor first.
fn found(context: &InstallContext<'_>) -> Vec<DetectedIde> {
    let own = own_editor(context);
    let mut found: Vec<DetectedIde> = installable()
        .filter(|ide| {
            let installer = installer(*ide, context);
            let is_there = installer.is_ok_and(|installer| installer.executable().is_some());
            // These share VS Code's command, so finding the command proves nothing.
            let is_borrowed = matches!(ide, DetectedIde::Codespaces | DetectedIde::FirebaseStudio);
            is_there && (!is_borrowed || own == Some(*ide))
        })
        .collect();
    found.sort_by_key(|ide| Some(*ide) != own);
    found
}

/// The installed agents.
fn found_agents(context: &InstallContext<'_>) -> Vec<HookAgent> {
    let is_there = |agent: &HookAgent| context.environment.has_program(agent.id());
    HookAgent::ALL.into_iter().filter(is_there).collect()
}

fn own_editor(context: &InstallContext<'_>) -> Option<DetectedIde> {
    detect(context.environment, &SystemProcesses::default())
        .found
        .map(|finding| finding.ide)
}

/// Lists what could be installed, and changes nothing.
fn offer(output: Output, context: &InstallContext<'_>) -> ExitCode {
    let mut reports: Vec<InstallReport> = found(context)
        .into_iter()
        .filter_map(|ide| Some(installer(ide, context).ok()?.install(Mode::DryRun)))
        .collect();
    // Always mention the editor of this terminal, even if nothing can be installed for it.
    if let Some(own) = own_editor(context)
        && reports.iter().all(|report| report.editor != own)
    {
        let report = match installer(own, context) {
            Ok(installer) => installer.install(Mode::DryRun),
            Err(error) => refusal(own, &error),
        };
        reports.insert(0, report);
    }
    let agents = found_agents(context).into_iter();
    let hooks = agents.map(|agent| install_hook(agent, Tools::Keep, context, Mode::DryRun).0);
    let hooks: Vec<HookReport> = hooks.collect();
    output.answer(
        &json!({ "offers": reports.iter().map(to_json).collect::<Vec<_>>(), "hooks": hooks }),
        || {
            let mut text = String::new();
            if reports.is_empty() {
                text.push_str(
                    "No supported editor found. You can still run `alongside` in a terminal next to any editor.\n",
                );
            }
            for report in &reports {
                text.push_str(&format!(
                    "{:<18}{}\n",
                    report.editor.id(),
                    printable_line(&report.sentence)
                ));
                let planned = report.steps.iter().filter(|step| step.action == Action::Run);
                for step in planned {
                    text.push_str(&format!("{:<18}  runs {}\n", "", printable_line(&step.subject)));
                }
                for remark in &report.remarks {
                    text.push_str(&format!("{:<18}  {}\n", "", printable_line(remark)));
                }
            }
            let is_planned = |outcome| outcome == InstallOutcome::Planned;
            for report in hooks.iter().filter(|report| is_planned(report.outcome)) {
                let sentence = printable_line(&report.sentence);
                text.push_str(&format!("{:<18}{sentence}\n", report.agent.id()));
            }
            let has_hook = hooks.iter().any(|report| is_planned(report.outcome));
            if reports.iter().any(|report| is_planned(report.outcome)) {
                text.push_str(
                    "\nRun `alongside install <name>` to install one, or `alongside install --yes` to install all editors' plugins.\n",
                );
            } else if has_hook {
                text.push_str("\nRun `alongside install <name>` to install one.\n");
            }
            text
        },
    );
    ExitCode::SUCCESS
}

fn show_status(
    output: Output,
    editors: &[DetectedIde],
    hooks: &[HookStatus],
    context: &InstallContext<'_>,
    is_overview: bool,
) -> ExitCode {
    let statuses: Vec<InstallStatus> = editors
        .iter()
        .map(|ide| match installer(*ide, context) {
            Ok(installer) => installer.status(),
            Err(error) => InstallStatus {
                editor: *ide,
                state: InstallState::Unavailable,
                sentence: refusal(*ide, &error).sentence,
                executable: None,
                place: None,
                program: None,
            },
        })
        // Without arguments, leave out editors that are not on this machine.
        .filter(|status| !is_overview || output.json || status.executable.is_some() || is_present(status.state))
        .collect();
    output.answer(&json!({ "editors": statuses, "hooks": hooks }), || {
        if statuses.is_empty() && hooks.is_empty() {
            return "No supported editor found.\n".to_owned();
        }
        let lines = statuses
            .iter()
            .map(|status| format!("{:<18}{}\n", status.editor.id(), printable_line(&status.sentence)));
        let hooks = hooks
            .iter()
            .map(|status| format!("{:<18}{}\n", status.agent.id(), printable_line(&status.sentence)));
        lines.chain(hooks).collect()
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

fn show_reports(output: Output, reports: &[InstallReport], agents: &[AgentReport], hooks: &[HookReport]) -> ExitCode {
    let values: Vec<Value> = reports.iter().map(to_json).collect();
    output.answer(&json!({ "reports": values, "agents": agents, "hooks": hooks }), || {
        let mut text = String::new();
        for report in reports {
            text += &report_text(report.outcome, &report.sentence, &report.steps, &report.remarks, output);
        }
        for report in hooks {
            text += &report_text(report.outcome, &report.sentence, &report.steps, &report.remarks, output);
        }
        for report in agents {
            text += &report_text(report.outcome, &report.sentence, &report.steps, &report.remarks, output);
        }
        text
    });
    let has_failed =
        |report: &InstallReport| matches!(report.outcome, InstallOutcome::Refused | InstallOutcome::Failed);
    let agent_failed = |report: &AgentReport| report.outcome == InstallOutcome::Failed;
    let hook_failed = |report: &HookReport| matches!(report.outcome, InstallOutcome::Refused | InstallOutcome::Failed);
    if reports.iter().any(has_failed) || agents.iter().any(agent_failed) || hooks.iter().any(hook_failed) {
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

fn report_text(outcome: InstallOutcome, sentence: &str, steps: &[Step], remarks: &[String], output: Output) -> String {
    let mut text = format!("{}\n", printable_line(sentence));
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
        text.push_str(&format!("  {verb} {}\n", printable_line(&step.subject)));
        if let Some(backup) = &step.backup {
            text.push_str(&format!("  backup: {}\n", backup.display()));
        }
        if let Some(difference) = &step.difference {
            text.push_str(&printable_difference(difference, output.colors()));
        }
    }
    for remark in remarks {
        text.push_str(&format!("Note: {}\n", printable_line(remark)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_name_error_lists_supported_ones() {
        let error = Named::parse(&["ed".to_owned()]).unwrap_err().to_string();
        for part in ["unknown editor `ed`", "neovim, vim, emacs", "claude, codex"] {
            assert!(error.contains(part), "{error}");
        }
        let names = ["nvim", "claude", "Neovim", "emacs", "claude"].map(str::to_owned);
        let found = Named::parse(&names).unwrap();
        assert_eq!(found.editors, [DetectedIde::Neovim, DetectedIde::Emacs]);
        assert_eq!(found.agents, [HookAgent::Claude]);
    }
}

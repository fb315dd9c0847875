//! The hook that makes an agent ask the companion before it changes a file, and the editor's tools for its model.
//!
//! For opencode it is a plugin file; for the others, entries in a settings file in which everything else is preserved. A hook left behind
//! could block every edit, so its command does nothing if this program is gone, and `uninstall` restores the file byte for byte
//! if nothing else has changed it.

mod definition;
mod settings;
mod tools;
mod trust;

use std::path::PathBuf;

use alongside_core::HookAgent;
use alongside_core::dialect::{AgentKind, DIALECTS, Dialect};
use alongside_discovery::Platform;
use alongside_discovery::lookup::hook_program;
use serde::Serialize;
use serde_json::json;

use self::settings::Edited;
pub use self::tools::Tools;
use super::agents::{self, AgentReport};
use super::plan::{Change, read, without_backups};
use super::receipt::{ChangedFile, Receipt};
use super::{
    InstallContext, InstallError, InstallOutcome, InstallState, Messages, Mode, Plan, RunResult, Step, capitalized,
    machine, outdated, run_plan,
};

/// The result for one agent's hook.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HookReport {
    pub agent: HookAgent,
    pub outcome: InstallOutcome,
    pub sentence: String,
    pub steps: Vec<Step>,
    pub remarks: Vec<String>,
}

/// Whether an agent has the hook.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HookStatus {
    pub agent: HookAgent,
    pub state: InstallState,
    pub sentence: String,
    /// Whether the editor's tools are registered; `None` for an agent whose settings have no place for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// The file with the hook.
    pub place: Option<PathBuf>,
    /// The program that the hook starts, if known.
    pub program: Option<PathBuf>,
}

impl HookReport {
    fn new(agent: HookAgent, result: RunResult) -> Self {
        Self {
            agent,
            outcome: result.outcome,
            sentence: result.sentence,
            steps: result.steps,
            remarks: result.remarks,
        }
    }

    fn note(&mut self, receipt: Result<(), InstallError>) {
        self.remarks.extend(receipt.err().map(|error| capitalized(&error)));
    }
}

/// Installs or updates an agent's hook, and the setting with which it connects automatically, if it has one.
pub fn install_hook(
    agent: HookAgent,
    tools: Tools,
    context: &InstallContext<'_>,
    mode: Mode,
) -> (HookReport, Option<AgentReport>) {
    let dialect = connecting_dialect(agent);
    let connected = dialect.map(|dialect| agents::connect(dialect, context, mode));
    let name = agent.display_name();
    let messages = match tools {
        Tools::Keep => Messages {
            done: format!("{name} will now ask you before it changes a file."),
            planned: format!("{name} would be set to ask you before it changes a file."),
            unchanged: format!("{name} already asks you before it changes a file."),
        },
        Tools::Register => Messages {
            done: format!("{name} will now ask you before it changes a file, and its model has the editor's tools."),
            planned: format!(
                "{name} would be set to ask you before it changes a file, and its model would have the editor's tools."
            ),
            unchanged: format!(
                "{name} already asks you before it changes a file, and its model already has the editor's tools."
            ),
        },
    };
    let plan = plan_install(agent, tools, context);
    let changed = plan.as_ref().ok().and_then(|plan| changed_file(agent, plan, context));
    let mut report = HookReport::new(agent, run_plan(plan, mode, context.runner, messages));
    if let (InstallOutcome::Done, Some(changed)) = (report.outcome, changed) {
        report.note(Receipt::update(context, |receipt| receipt.set_hook(agent, changed)));
    }
    (report, connected)
}

/// Removes an agent's hook, and sets its setting back unless an editor's plugin needs it.
pub fn uninstall_hook(agent: HookAgent, context: &InstallContext<'_>, mode: Mode) -> (HookReport, Option<AgentReport>) {
    let name = agent.display_name();
    let messages = Messages {
        done: format!("{name} no longer asks you before it changes a file."),
        planned: format!("{name}'s hook would be removed."),
        unchanged: format!("{name} has no hook of alongside; nothing to remove."),
    };
    let plan = plan_uninstall(agent, context);
    let mut report = HookReport::new(agent, run_plan(plan, mode, context.runner, messages));
    if mode == Mode::Real && matches!(report.outcome, InstallOutcome::Done | InstallOutcome::Unchanged) {
        report.note(Receipt::update(context, |receipt| receipt.forget_hook(agent)));
    }
    let receipt = Receipt::load(context);
    let dialect = connecting_dialect(agent).filter(|_| !receipt.has_others(&[]));
    let disconnected = dialect.and_then(|dialect| {
        let setting = receipt.setting(dialect.kind)?;
        Some(agents::disconnect(dialect, setting, context, mode))
    });
    (report, disconnected)
}

/// The agents that have a hook, or of which one is noted.
pub(super) fn installed_hooks(context: &InstallContext<'_>) -> Vec<HookAgent> {
    let receipt = Receipt::load(context);
    let has_hook = |agent: &HookAgent| {
        let plan = plan_uninstall(*agent, context);
        receipt.hook(*agent).is_some() || plan.is_ok_and(|plan| !plan.is_empty())
    };
    HookAgent::ALL.into_iter().filter(has_hook).collect()
}

/// Settings with nothing but the hook, for an agent that takes settings on its command line.
pub fn settings_with_hook(agent: HookAgent, program: &std::path::Path) -> String {
    let hooks = definition::hooks(agent, program).into_iter();
    let hooks = hooks.map(|hook| (hook.event.to_owned(), json!([settings::value(&hook.entry)])));
    json!({ "hooks": hooks.collect::<serde_json::Map<_, _>>() }).to_string()
}

/// The row of an agent with a setting to connect automatically.
fn connecting_dialect(agent: HookAgent) -> Option<&'static Dialect> {
    let kind = match agent {
        HookAgent::Gemini => AgentKind::Gemini,
        HookAgent::Qwen => AgentKind::Qwen,
        HookAgent::Claude | HookAgent::Codex | HookAgent::Copilot | HookAgent::Opencode => return None,
    };
    DIALECTS.iter().find(|dialect| dialect.kind == kind)
}

pub fn hook_status(agent: HookAgent, context: &InstallContext<'_>) -> HookStatus {
    let place = place(agent, context).ok();
    let settings = place.as_deref().and_then(|place| read_text(place).ok().flatten());
    let has_tools = settings.as_deref().is_some_and(tools::are_registered);
    let program = settings.as_deref().and_then(|settings| hook_program(agent, settings));
    let tools = tools::are_supported(agent).then_some(has_tools);
    let plans = (
        plan_install(agent, Tools::Keep, context),
        plan_uninstall(agent, context),
    );
    let (state, sentence) = match plans {
        (Err(error), _) | (_, Err(error)) => (InstallState::Unavailable, capitalized(&error)),
        (Ok(install), _) if install.is_empty() => {
            let tools = match tools {
                Some(true) => "; editor's tools registered",
                Some(false) => "; editor's tools not registered",
                None => "",
            };
            let sentence = format!("Hook installed; runs {}{tools}.", context.program.display());
            (InstallState::Installed, sentence)
        }
        (_, Ok(uninstall)) if uninstall.is_empty() => (InstallState::Absent, "No hook installed.".to_owned()),
        _ => (
            InstallState::Outdated,
            format!(
                "Hook installed, but {}; run `alongside install {}` to update it.",
                outdated(context, program.as_deref()),
                agent.id()
            ),
        ),
    };
    HookStatus {
        agent,
        state,
        sentence,
        tools,
        place,
        program,
    }
}

fn place(agent: HookAgent, context: &InstallContext<'_>) -> Result<PathBuf, InstallError> {
    machine(context).hook_file(agent).ok_or(InstallError::NoHome)
}

fn plan_install(agent: HookAgent, tools: Tools, context: &InstallContext<'_>) -> Result<Plan, InstallError> {
    if let (Tools::Register, Some(reason)) = (tools, tools::refusal(agent)) {
        return Err(InstallError::Manual(reason));
    }
    if context.environment.platform == Platform::Windows {
        let reason = "hooks need a POSIX shell; if you use WSL, run `alongside install` inside it";
        return Err(InstallError::Manual(reason.to_owned()));
    }
    let path = place(agent, context)?;
    let text = read_text(&path)?;
    let wanted = if agent == HookAgent::Opencode {
        if text.as_deref().is_some_and(|text| !definition::is_plugin(text)) {
            let reason = "it is not alongside's; rename it and try again".to_owned();
            return Err(InstallError::Configuration { path, reason });
        }
        Some(definition::plugin(&context.program))
    } else {
        match settings::add(text.as_deref().unwrap_or_default(), agent, &context.program, tools) {
            Edited::Already => None,
            Edited::Now(text) => Some(text),
            Edited::NotUnderstood(reason) => return Err(InstallError::Configuration { path, reason }),
        }
    };
    let is_without_tools = |text: &String| tools::are_supported(agent) && !tools::are_registered(text);
    let suggests_tools = wanted.as_ref().is_some_and(is_without_tools);
    let change = match wanted {
        Some(wanted) if agent == HookAgent::Opencode => Change::write_own(path, wanted.into_bytes())?,
        Some(wanted) => {
            let receipt = Receipt::load(context);
            let known = receipt.hook(agent).filter(|known| known.path == path);
            // What we wrote needs no backup.
            let is_untouched = known.is_some_and(|known| text.as_ref() == Some(&known.after));
            Change::write(path, wanted.into_bytes(), !is_untouched)?
        }
        None => None,
    };
    let is_disabled = text.as_deref().is_some_and(|text| settings::is_disabled(text, agent));
    let disabled = is_disabled.then(|| format!("{}'s settings disable all hooks.", agent.display_name()));
    let mut remarks: Vec<String> = disabled.into_iter().collect();
    if change.is_some() {
        remarks.extend(definition::remarks(agent).iter().map(|remark| (*remark).to_owned()));
    }
    if suggests_tools {
        remarks.push(format!(
            "Run `alongside install {} --tools` to let its model ask your editor for diagnostics and open files too.",
            agent.id()
        ));
    }
    Ok(Plan {
        changes: change.into_iter().collect(),
        remarks,
    })
}

fn plan_uninstall(agent: HookAgent, context: &InstallContext<'_>) -> Result<Plan, InstallError> {
    let path = place(agent, context)?;
    let mut plan = Plan::default();
    let receipt = Receipt::load(context);
    let known = receipt.hook(agent).filter(|known| known.path == path);
    let Some(text) = read_text(&path)? else {
        return Ok(plan);
    };
    let is_untouched = known.is_some_and(|known| known.after == text);
    let remove = |keep| Change::Remove {
        path: path.clone(),
        before: text.clone().into_bytes(),
        keep,
    };
    if agent == HookAgent::Opencode {
        if definition::is_plugin(&text) {
            plan.changes
                .push(remove(!is_untouched && text != definition::plugin(&context.program)));
        }
    } else {
        match known.filter(|_| is_untouched).map(|known| &known.before) {
            Some(None) => plan.changes.push(remove(false)),
            Some(Some(before)) => {
                let before = before.clone().into_bytes();
                plan.changes.extend(Change::write(path.clone(), before, false)?);
            }
            None => match settings::remove(&text, agent) {
                Edited::Already => {}
                Edited::Now(text) => plan
                    .changes
                    .extend(Change::write(path.clone(), text.into_bytes(), false)?),
                Edited::NotUnderstood(reason) => return Err(InstallError::Configuration { path, reason }),
            },
        }
    }
    if agent == HookAgent::Codex {
        let own = path.with_file_name("config.toml");
        let forgotten = read_text(&own)?.and_then(|own| trust::forget(&own, &path, &text));
        let forgotten = forgotten.map(|text| Change::write(own, text.into_bytes(), false));
        plan.changes.extend(forgotten.transpose()?.flatten());
    }
    if let Some(known) = known {
        let before = known.before.as_deref().map(str::as_bytes);
        plan.changes
            .extend(without_backups(&path, |content| Some(content) != before));
        let directories = known.directories.iter().cloned();
        plan.changes
            .extend(directories.map(|path| Change::RemoveDirectory { path }));
    }
    Ok(plan)
}

fn read_text(path: &std::path::Path) -> Result<Option<String>, InstallError> {
    let text = read(path)?.map(String::from_utf8).transpose();
    text.map_err(|_| InstallError::NotText { path: path.to_owned() })
}

/// What a plan changes, with the file as it would be without the hook.
fn changed_file(agent: HookAgent, plan: &Plan, context: &InstallContext<'_>) -> Option<ChangedFile> {
    let receipt = Receipt::load(context);
    plan.changes.iter().find_map(|change| {
        let Change::Write {
            path, before, content, ..
        } = change
        else {
            return None;
        };
        let before = before.clone().and_then(|before| String::from_utf8(before).ok());
        let known = receipt.hook(agent).filter(|known| known.path == *path);
        let (before, directories) = match known {
            Some(known) if before.as_ref() == Some(&known.after) => (known.before.clone(), known.directories.clone()),
            _ if agent == HookAgent::Opencode => (None, plan.new_directories()),
            _ => {
                let without = |text: String| match settings::remove(&text, agent) {
                    Edited::Now(without) => without,
                    Edited::Already | Edited::NotUnderstood(_) => text,
                };
                (before.map(without), plan.new_directories())
            }
        };
        Some(ChangedFile {
            path: path.clone(),
            before,
            after: String::from_utf8(content.clone()).ok()?,
            directories,
        })
    })
}

#[cfg(test)]
mod tests;

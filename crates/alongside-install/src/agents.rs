//! Settings that make agents connect to editors automatically.
//!
//! An agent looks for a companion only if its settings say so, which is not the default: the user would have to know
//! about `/ide enable` and type it once. So `install` also changes that setting for every installed agent. A setting
//! that the user has already made is left alone, and everything else in the file is preserved.

use std::path::PathBuf;

use alongside_core::dialect::{AgentKind, DIALECTS, Dialect};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use serde::Serialize;

use super::plan::{Change, read, without_backups};
use super::receipt::{ChangedSetting, Receipt};
use super::{
    InstallContext, InstallError, InstallOutcome, Messages, Mode, Plan, RunResult, Step, capitalized, machine, run_plan,
};
use crate::detect::DetectedIde;
use alongside_discovery::Environment;

/// The result for one agent's settings.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentReport {
    pub agent: AgentKind,
    pub outcome: InstallOutcome,
    pub sentence: String,
    pub steps: Vec<Step>,
    pub remarks: Vec<String>,
}

impl AgentReport {
    fn new(dialect: &Dialect, result: RunResult) -> Self {
        Self {
            agent: dialect.kind,
            outcome: result.outcome,
            sentence: result.sentence,
            steps: result.steps,
            remarks: result.remarks,
        }
    }

    /// Remarks that the receipt could not be written.
    fn note(&mut self, receipt: Result<(), InstallError>) {
        self.remarks.extend(receipt.err().map(|error| capitalized(&error)));
    }
}

/// Makes every installed agent connect automatically.
pub fn connect_agents(context: &InstallContext<'_>, mode: Mode) -> Vec<AgentReport> {
    let there = DIALECTS.iter().filter(|dialect| is_there(dialect, context));
    there.map(|dialect| connect(dialect, context, mode)).collect()
}

pub(super) fn connect(dialect: &Dialect, context: &InstallContext<'_>, mode: Mode) -> AgentReport {
    let name = dialect.display_name;
    let messages = Messages {
        done: format!("{name} will now connect to your editor automatically."),
        planned: format!("{name} would be set to connect to your editor automatically."),
        unchanged: format!("{name} already connects to your editor automatically."),
    };
    let (plan, messages) = match plan(dialect, context.environment) {
        Ok(Some(plan)) => (Ok(plan), messages),
        Ok(None) => {
            let unchanged = format!(
                "{name} is configured not to connect to editors; that setting was left alone. Run `/ide enable` in it to change this."
            );
            (Ok(Plan::default()), Messages { unchanged, ..messages })
        }
        Err(error) => (Err(error), messages),
    };
    let setting = plan.as_ref().ok().and_then(|plan| changed_setting(dialect.kind, plan));
    let mut report = AgentReport::new(dialect, run_plan(plan, mode, context.runner, messages));
    if let (InstallOutcome::Done, Some(setting)) = (report.outcome, setting) {
        report.note(Receipt::update(context, |receipt| receipt.set_setting(setting)));
    }
    if report.outcome == InstallOutcome::Refused {
        report.remarks.push(format!(
            "Run `/ide enable` in {name} once; after that it connects automatically."
        ));
    }
    report
}

/// Sets the agents' settings back to what they were, unless an editor that is not in `editors` needs them.
pub fn disconnect_agents(context: &InstallContext<'_>, editors: &[DetectedIde], mode: Mode) -> Vec<AgentReport> {
    let receipt = Receipt::load(context);
    let ids: Vec<&str> = editors.iter().map(|editor| editor.id()).collect();
    if receipt.has_others(&ids) {
        return Vec::new();
    }
    let changed = DIALECTS
        .iter()
        .filter_map(|dialect| Some((dialect, receipt.setting(dialect.kind)?)));
    changed
        .map(|(dialect, setting)| disconnect(dialect, setting, context, mode))
        .collect()
}

pub(super) fn disconnect(
    dialect: &Dialect,
    setting: &ChangedSetting,
    context: &InstallContext<'_>,
    mode: Mode,
) -> AgentReport {
    let name = dialect.display_name;
    let messages = Messages {
        done: format!("{name}'s setting for editors is as it was before."),
        planned: format!("{name}'s setting for editors would be set back."),
        unchanged: format!("{name}'s setting for editors was changed since and was left alone."),
    };
    let mut report = AgentReport::new(dialect, run_plan(plan_back(setting), mode, context.runner, messages));
    if mode == Mode::Real && matches!(report.outcome, InstallOutcome::Done | InstallOutcome::Unchanged) {
        report.note(Receipt::update(context, |receipt| receipt.forget_setting(dialect.kind)));
    }
    report
}

fn plan_back(setting: &ChangedSetting) -> Result<Plan, InstallError> {
    let path = setting.path.clone();
    let mut plan = Plan::default();
    let Some(current) = read(&path)? else {
        return Ok(plan);
    };
    let text = String::from_utf8(current.clone()).map_err(|_| InstallError::NotText { path: path.clone() })?;
    match &setting.before {
        None if text == setting.after => plan.changes.push(Change::Remove {
            path: path.clone(),
            before: current,
            keep: false,
        }),
        Some(before) if text == setting.after => {
            plan.changes
                .extend(Change::write(path.clone(), before.clone().into_bytes(), false)?);
        }
        before => {
            let had_ide = before.as_deref().is_some_and(|before| before.contains("\"ide\""));
            if let Some(text) = without_enabled(&text, had_ide) {
                plan.changes
                    .extend(Change::write(path.clone(), text.into_bytes(), false)?);
            }
        }
    }
    let before = setting.before.as_deref().map(str::as_bytes);
    plan.changes
        .extend(without_backups(&path, |content| Some(content) != before));
    let directories = setting.directories.iter().cloned();
    plan.changes
        .extend(directories.map(|path| Change::RemoveDirectory { path }));
    Ok(plan)
}

/// The settings without `ide.enabled`, and without `ide` if that was added too; `None` if it is not `true` any more.
fn without_enabled(text: &str, had_ide: bool) -> Option<String> {
    let root = CstRootNode::parse(text, &ParseOptions::default()).ok()?;
    let settings = root.object_value()?;
    let ide = settings.object_value("ide")?;
    let enabled = ide.get("enabled")?;
    if !enabled.value()?.as_boolean_lit()?.value() {
        return None;
    }
    enabled.remove();
    if !had_ide && ide.properties().is_empty() {
        settings.get("ide")?.remove();
    }
    Some(root.to_string())
}

/// What a plan changes in an agent's settings.
fn changed_setting(agent: AgentKind, plan: &Plan) -> Option<ChangedSetting> {
    plan.changes.iter().find_map(|change| match change {
        Change::Write {
            path, before, content, ..
        } => Some(ChangedSetting {
            agent,
            path: path.clone(),
            before: before.clone().and_then(|before| String::from_utf8(before).ok()),
            after: String::from_utf8(content.clone()).ok()?,
            directories: plan.new_directories(),
        }),
        _ => None,
    })
}

/// Where the setting for editors is; `None` for an agent without one.
fn directory(kind: AgentKind, environment: &Environment) -> Option<PathBuf> {
    match kind {
        AgentKind::Gemini => {
            let home = environment.variable("GEMINI_CLI_HOME").filter(|home| !home.is_empty());
            let home = home.map(PathBuf::from).or_else(|| environment.home.clone());
            Some(home?.join(".gemini"))
        }
        AgentKind::Qwen => Some(environment.qwen_home()),
        AgentKind::Claude | AgentKind::Opencode | AgentKind::Copilot | AgentKind::Codex => None,
    }
}

/// Whether the agent has a setting for editors and is installed; without it, settings would be clutter.
fn is_there(dialect: &Dialect, context: &InstallContext<'_>) -> bool {
    directory(dialect.kind, context.environment)
        .is_some_and(|directory| directory.is_dir() || machine(context).on_path(dialect.command).is_some())
}

/// The planned change; `None` if the user has disabled the setting.
fn plan(dialect: &Dialect, environment: &Environment) -> Result<Option<Plan>, InstallError> {
    let directory = directory(dialect.kind, environment).ok_or(InstallError::NoHome)?;
    let path = directory.join("settings.json");
    let text = match read(&path)? {
        Some(bytes) => String::from_utf8(bytes).map_err(|_| InstallError::NotText { path: path.clone() })?,
        None => String::new(),
    };
    match enabled(&text) {
        Enabled::Already => Ok(Some(Plan::default())),
        Enabled::NotWanted => Ok(None),
        Enabled::Now(text) => {
            let change = Change::write(path, text.into_bytes(), true)?;
            Ok(Some(Plan {
                changes: change.into_iter().collect(),
                remarks: Vec::new(),
            }))
        }
        Enabled::NotUnderstood(reason) => Err(InstallError::Configuration { path, reason }),
    }
}

/// The state of the setting, and the text with it enabled.
#[derive(Debug, PartialEq, Eq)]
enum Enabled {
    Already,
    NotWanted,
    Now(String),
    NotUnderstood(String),
}

/// Settings are JSON with comments. Everything else in them is preserved.
fn enabled(text: &str) -> Enabled {
    let text = if text.trim().is_empty() { "{\n}\n" } else { text };
    let root = match CstRootNode::parse(text, &ParseOptions::default()) {
        Ok(root) => root,
        Err(error) => return Enabled::NotUnderstood(error.to_string()),
    };
    let not_an_object = |what: &str| Enabled::NotUnderstood(format!("{what} is not an object"));
    let Some(settings) = root.object_value() else {
        return not_an_object("it");
    };
    if settings.get("ide").is_some() && settings.object_value("ide").is_none() {
        return not_an_object("its `ide`");
    }
    let ide = settings.object_value_or_set("ide");
    let enabled = ide.get("enabled").and_then(|property| property.value());
    match enabled.map(|value| value.as_boolean_lit().map(|literal| literal.value())) {
        None => {
            ide.append("enabled", CstInputValue::Bool(true));
            Enabled::Now(root.to_string())
        }
        Some(Some(true)) => Enabled::Already,
        Some(Some(false)) => Enabled::NotWanted,
        Some(None) => Enabled::NotUnderstood("its `ide.enabled` is not true or false".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::fixture::Fixture;
    use alongside_discovery::Platform;

    #[test]
    fn enabling_preserves_everything_else() {
        for (before, after) in [
            ("", "{\n  \"ide\": {\n    \"enabled\": true\n  }\n}\n"),
            ("{}", "{\n  \"ide\": {\n    \"enabled\": true\n  }\n}"),
            (
                "{\n  // mine\n  \"ui\": {\"theme\": \"x\"} /* last */\n}\n",
                "{\n  // mine\n  \"ui\": {\"theme\": \"x\"}, /* last */\n  \"ide\": {\n    \"enabled\": true\n  }\n}\n",
            ),
            (
                "{\n  \"ide\": {\n    \"hasSeenNudge\": true\n  },\n  \"a\": 1\n}\n",
                "{\n  \"ide\": {\n    \"hasSeenNudge\": true,\n    \"enabled\": true\n  },\n  \"a\": 1\n}\n",
            ),
        ] {
            assert_eq!(enabled(before), Enabled::Now(after.to_owned()), "{before}");
        }
    }

    #[test]
    fn existing_choice_and_invalid_settings_are_left_alone() {
        assert_eq!(enabled(r#"{"ide": {"enabled": true}}"#), Enabled::Already);
        assert_eq!(enabled(r#"{"ide": {"enabled": false}}"#), Enabled::NotWanted);
        for strange in ["[]", r#"{"ide": 1}"#, r#"{"ide": {"enabled": "yes"}}"#, "{"] {
            assert!(matches!(enabled(strange), Enabled::NotUnderstood(_)), "{strange}");
        }
    }

    #[test]
    fn uninstall_sets_the_setting_back() {
        for before in [
            None,
            Some("{\n  // mine\n  \"a\": 1\n}"),
            Some("{\"ide\": {\"hasSeenNudge\": true}}\n"),
        ] {
            for edit in [false, true] {
                let scene = Fixture::on(Platform::Unix);
                let settings = scene.home().join(".gemini/settings.json");
                fs::create_dir_all(scene.home().join(".gemini")).unwrap();
                if let Some(before) = before {
                    fs::write(&settings, before).unwrap();
                }
                connect_agents(&scene.context(), Mode::Real);
                let mut expected = before.map(str::to_owned);
                if edit {
                    let text = fs::read_to_string(&settings).unwrap();
                    fs::write(&settings, text.replacen('{', "{\n  \"later\": 2,", 1)).unwrap();
                    let text = before.unwrap_or("{}");
                    expected = Some(text.replacen('{', "{\n  \"later\": 2,", 1));
                }
                let report = disconnect_agents(&scene.context(), &[], Mode::Real).remove(0);
                assert_eq!(report.outcome, InstallOutcome::Done, "{report:?}");
                let now = fs::read_to_string(&settings).ok();
                let plain = |text: Option<String>| {
                    text.map(|text| text.split_whitespace().collect::<String>().replace(",}", "}"))
                };
                if edit {
                    assert_eq!(plain(now), plain(expected));
                } else {
                    assert_eq!(now, expected);
                }
                let files = fs::read_dir(scene.home().join(".gemini")).unwrap().count();
                assert_eq!(files, usize::from(settings.exists()), "no backup is left");
                assert!(!scene.home().join(".local").exists(), "nor the receipt");
                assert!(disconnect_agents(&scene.context(), &[], Mode::Real).is_empty());
            }
        }
    }

    #[test]
    fn own_choice_survives_uninstall() {
        let scene = Fixture::on(Platform::Unix);
        let settings = scene.home().join(".gemini/settings.json");
        fs::create_dir_all(scene.home().join(".gemini")).unwrap();
        fs::write(&settings, r#"{"ide": {"enabled": true}}"#).unwrap();
        connect_agents(&scene.context(), Mode::Real);
        assert!(disconnect_agents(&scene.context(), &[], Mode::Real).is_empty());
        assert_eq!(fs::read_to_string(&settings).unwrap(), r#"{"ide": {"enabled": true}}"#);
    }

    #[test]
    fn only_installed_agents_are_changed_once() {
        let scene = Fixture::on(Platform::Unix);
        assert!(connect_agents(&scene.context(), Mode::Real).is_empty());
        let settings = scene.home().join(".gemini/settings.json");
        fs::create_dir_all(scene.home().join(".gemini")).unwrap();
        let outcome = |mode| {
            let reports = connect_agents(&scene.context(), mode);
            reports
                .into_iter()
                .map(|report| (report.agent, report.outcome))
                .collect::<Vec<_>>()
        };
        assert_eq!(outcome(Mode::DryRun), [(AgentKind::Gemini, InstallOutcome::Planned)]);
        assert!(!settings.exists());
        assert_eq!(outcome(Mode::Real), [(AgentKind::Gemini, InstallOutcome::Done)]);
        assert_eq!(outcome(Mode::Real), [(AgentKind::Gemini, InstallOutcome::Unchanged)]);
        fs::write(&settings, "{").unwrap();
        let report = connect_agents(&scene.context(), Mode::Real).remove(0);
        assert_eq!(report.outcome, InstallOutcome::Refused);
        assert!(report.remarks[0].contains("/ide enable"), "{report:?}");
        assert_eq!(fs::read_to_string(&settings).unwrap(), "{");
    }
}

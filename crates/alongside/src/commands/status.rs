//! `alongside status`: lists running companions.

use std::process::ExitCode;
use std::time::Duration;

use alongside_protocol::{Empty, Status, requests};
use anyhow::Result;
use serde_json::{Value, json};

use crate::command_line::Common;
use crate::printable::printable_line;
use alongside_companion::companion_record;
use alongside_companion::connect_target::ConnectTarget;
use alongside_companion::doctor;
use alongside_companion::places::Places;

/// How long `--line` waits for the companion.
const LINE_TIMEOUT: Duration = Duration::from_millis(500);

pub(crate) async fn run(common: &Common) -> Result<ExitCode> {
    let places = Places::of_user()?;
    let here = companion_record::nearest(&places, &common.directory()).map(|record| record.pid);
    let mut companions: Vec<Status> = Vec::new();
    let mut unresponsive = Vec::new();
    for record in companion_record::all(&places) {
        let answer = async { record.connect(false).await?.call::<requests::Status>(Empty {}).await };
        match answer.await {
            Ok(status) => companions.push(status),
            Err(error) => unresponsive.push(format!(
                "The companion with pid {} is not responding: {error}",
                record.pid
            )),
        }
    }
    companions.sort_by_key(|status| Some(status.pid) != here);
    let directory = common.directory();
    let directory = alongside_platform::path::real_or_same(&directory);
    let mut targets: Vec<(&str, ConnectTarget)> = doctor::look_up(&directory)?
        .into_iter()
        .filter_map(|(agent, _, target)| Some((agent, target?)))
        .collect();
    let records = companion_record::all(&places);
    let locks = doctor::locks::look_up(&directory).into_iter();
    targets.extend(locks.filter(|found| found.is_installed).filter_map(|found| {
        let target = ConnectTarget::from_locks(&found.lookup, &records)?;
        Some((found.display_name, target))
    }));
    let by_agent: Vec<Value> = targets
        .iter()
        .map(|(agent, target)| json!({ "agent": agent, "found": target }))
        .collect();
    let value = json!({ "companions": companions, "here": here, "found": by_agent, "unresponsive": unresponsive });
    common.output().answer(&value, || {
        format_companions(&companions, here, &unresponsive) + &format_targets(&targets)
    });
    Ok(ExitCode::SUCCESS)
}

/// One line about the nearest companion, for a status bar: nothing is looked up that this line does not show.
pub(crate) async fn line(common: &Common) -> Result<ExitCode> {
    let Some(record) = companion_record::nearest(&Places::of_user()?, &common.directory()) else {
        common.output().answer(&json!({ "running": false }), String::new);
        return Ok(ExitCode::SUCCESS);
    };
    let answer = async { record.connect(false).await?.call::<requests::Status>(Empty {}).await };
    // A status bar must not hang with the companion.
    let Ok(Ok(status)) = tokio::time::timeout(LINE_TIMEOUT, answer).await else {
        let value = json!({ "running": true, "responding": false });
        common
            .output()
            .answer(&value, || "alongside: not responding\n".to_owned());
        return Ok(ExitCode::FAILURE);
    };
    let mut agents: Vec<&str> = status.agents.iter().map(|agent| agent.identity.name.as_str()).collect();
    agents.dedup();
    let value =
        json!({ "running": true, "pending": status.reviews.len(), "agents": agents, "problems": status.problems });
    common.output().answer(&value, || {
        format_line(status.reviews.len(), &agents, !status.problems.is_empty())
    });
    Ok(ExitCode::SUCCESS)
}

fn format_line(pending: usize, agents: &[&str], has_problems: bool) -> String {
    let mut parts = Vec::new();
    if pending > 0 {
        parts.push(format!("{pending} pending"));
    }
    if !agents.is_empty() {
        parts.push(printable_line(&agents.join(", ")));
    }
    if has_problems {
        parts.push("problem: run `alongside status`".to_owned());
    }
    if parts.is_empty() {
        parts.push("no agents".to_owned());
    }
    format!("alongside: {}\n", parts.join(" · "))
}

fn format_companions(companions: &[Status], here: Option<u32>, unresponsive: &[String]) -> String {
    let mut text = String::new();
    if companions.is_empty() && unresponsive.is_empty() {
        return "No companion is running. Run `alongside` to start one for the current directory.\n".to_owned();
    }
    for status in companions {
        let folders: Vec<String> = status
            .workspace
            .iter()
            .map(|folder| printable_line(&folder.to_string_lossy()))
            .collect();
        let mark = if Some(status.pid) == here {
            " (this directory)"
        } else {
            ""
        };
        text.push_str(&format!(
            "{} for {}{mark}, pid {}, port {}\n",
            printable_line(&status.display_name),
            folders.join(", "),
            status.pid,
            status.port
        ));
        if status.agents.is_empty() {
            text.push_str("  no agents connected\n");
        }
        for agent in &status.agents {
            let state = if agent.listening { "connected" } else { "reconnecting" };
            text.push_str(&format!(
                "  {} is {state}\n",
                printable_line(&agent.identity.to_string())
            ));
        }
        match status.reviews.len() {
            0 => text.push_str("  no pending changes\n"),
            1 => text.push_str("  1 pending change: `alongside diff list`\n"),
            many => text.push_str(&format!("  {many} pending changes: `alongside diff list`\n")),
        }
        for problem in &status.problems {
            text.push_str(&format!("  warning: {problem}\n"));
        }
    }
    for line in unresponsive {
        text.push_str(&format!("{line}\n"));
    }
    text
}

/// `a`, `a and b`, `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    }
}

/// Which companion agents started here would pick; one sentence if they agree.
fn format_targets(targets: &[(&str, ConnectTarget)]) -> String {
    let agree = targets.windows(2).all(|pair| pair[0].1 == pair[1].1);
    let sentence = |agents: &str, target: &ConnectTarget| format!("{agents} started here {}\n", target.to_text());
    match targets {
        [(_, first), ..] if agree => {
            let agents: Vec<&str> = targets.iter().map(|(agent, _)| *agent).collect();
            sentence(&listed(&agents), first)
        }
        _ => targets.iter().map(|(agent, target)| sentence(agent, target)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_short_and_safe() {
        assert_eq!(format_line(0, &[], false), "alongside: no agents\n");
        assert_eq!(
            format_line(2, &["Gemini CLI"], false),
            "alongside: 2 pending · Gemini CLI\n"
        );
        assert_eq!(format_line(0, &["a\x1b[2J"], false), "alongside: a\\u{1b}[2J\n");
    }
}

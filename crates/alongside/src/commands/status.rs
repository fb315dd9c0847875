//! `alongside status`: the companions that run.

use std::process::ExitCode;

use alongside_protocol::{Empty, Status, requests};
use anyhow::Result;
use serde_json::{Value, json};

use crate::command_line::Common;
use crate::printable::printable_line;
use alongside_companion::doctor;
use alongside_companion::places::Places;
use alongside_companion::running;
use alongside_companion::who::Found;

pub(crate) async fn run(common: &Common) -> Result<ExitCode> {
    let places = Places::of_user()?;
    let here = running::nearest(&places, &common.directory()).map(|record| record.pid);
    let mut companions: Vec<Status> = Vec::new();
    let mut silent = Vec::new();
    for record in running::all(&places) {
        let answer = async { record.connect(false).await?.call::<requests::Status>(Empty {}).await };
        match answer.await {
            Ok(status) => companions.push(status),
            Err(error) => silent.push(format!(
                "The companion with pid {} is not responding: {error}",
                record.pid
            )),
        }
    }
    companions.sort_by_key(|status| Some(status.pid) != here);
    let directory = common.directory();
    let directory = directory.canonicalize().unwrap_or(directory);
    let found: Vec<(&str, Found)> = doctor::look_up(&directory)?
        .into_iter()
        .filter_map(|(agent, _, found)| Some((agent, found?)))
        .collect();
    let by_agent: Vec<Value> = found
        .iter()
        .map(|(agent, found)| json!({ "agent": agent, "found": found }))
        .collect();
    let value = json!({ "companions": companions, "here": here, "found": by_agent, "silent": silent });
    common
        .output()
        .answer(&value, || words(&companions, here, &silent) + &who_is_found(&found));
    Ok(ExitCode::SUCCESS)
}

fn words(companions: &[Status], here: Option<u32>, silent: &[String]) -> String {
    let mut words = String::new();
    if companions.is_empty() && silent.is_empty() {
        return "No companion is running. Run `alongside` to start one for the current directory.\n".to_owned();
    }
    for status in companions {
        let folders: Vec<String> = status
            .workspace
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        let mark = if Some(status.pid) == here {
            " (this directory)"
        } else {
            ""
        };
        words.push_str(&format!(
            "{} for {}{mark}, pid {}, port {}\n",
            status.display_name,
            folders.join(", "),
            status.pid,
            status.port
        ));
        if status.agents.is_empty() {
            words.push_str("  no agents connected\n");
        }
        for agent in &status.agents {
            let state = if agent.listening { "connected" } else { "reconnecting" };
            words.push_str(&format!("  {} is {state}\n", printable_line(&agent.name)));
        }
        match status.reviews.len() {
            0 => words.push_str("  no pending changes\n"),
            1 => words.push_str("  1 pending change: `alongside diff list`\n"),
            many => words.push_str(&format!("  {many} pending changes: `alongside diff list`\n")),
        }
        for problem in &status.problems {
            words.push_str(&format!("  warning: {problem}\n"));
        }
    }
    for line in silent {
        words.push_str(&format!("{line}\n"));
    }
    words
}

/// Who is found by agents that are started here; in one sentence, if they agree.
fn who_is_found(found: &[(&str, Found)]) -> String {
    let agree = found.windows(2).all(|pair| pair[0].1 == pair[1].1);
    let sentence = |agents: &str, found: &Found| format!("{agents} started here {}\n", found.words());
    match found {
        [(_, first), ..] if agree => {
            let agents: Vec<&str> = found.iter().map(|(agent, _)| *agent).collect();
            sentence(&agents.join(" and "), first)
        }
        _ => found.iter().map(|(agent, found)| sentence(agent, found)).collect(),
    }
}

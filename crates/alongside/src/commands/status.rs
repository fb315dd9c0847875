//! `alongside status`: the companions that run.

use std::process::ExitCode;

use alongside_front::protocol::{Nothing, Request, Status};
use anyhow::Result;
use serde_json::json;

use crate::command_line::Common;
use crate::places::Places;
use crate::printable::printable_line;
use crate::running;

pub(crate) async fn run(common: &Common) -> Result<ExitCode> {
    let places = Places::of_user()?;
    let here = running::nearest(&places, &common.directory()).map(|record| record.pid);
    let mut companions: Vec<Status> = Vec::new();
    let mut silent = Vec::new();
    for record in running::all(&places) {
        let answer = async { record.connect(false).await?.call(Request::Status(Nothing {})).await };
        match answer.await {
            Ok(status) => companions.push(status),
            Err(error) => silent.push(format!(
                "The companion with pid {} does not answer: {error}",
                record.pid
            )),
        }
    }
    companions.sort_by_key(|status| Some(status.pid) != here);
    let value = json!({ "companions": companions, "here": here, "silent": silent });
    common.output().answer(&value, || words(&companions, here, &silent));
    Ok(ExitCode::SUCCESS)
}

fn words(companions: &[Status], here: Option<u32>, silent: &[String]) -> String {
    let mut words = String::new();
    if companions.is_empty() && silent.is_empty() {
        return "No companion runs. `alongside` starts one for the current directory.\n".to_owned();
    }
    for status in companions {
        let folders: Vec<String> = status
            .workspace
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        let mark = if Some(status.pid) == here {
            " (this directory's)"
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
            words.push_str("  no agent is connected\n");
        }
        for agent in &status.agents {
            let state = if agent.listening { "connected" } else { "briefly away" };
            words.push_str(&format!("  {} is {state}\n", printable_line(&agent.name)));
        }
        match status.reviews.len() {
            0 => words.push_str("  no change waits\n"),
            1 => words.push_str("  1 change waits: `alongside diff list`\n"),
            many => words.push_str(&format!("  {many} changes wait: `alongside diff list`\n")),
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

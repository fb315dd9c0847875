//! Claude Code: `<port>.lock` in its own directory.

use std::path::Path;

use alongside_core::{HookAgent, Secret};
use serde_json::Value;

use super::{Advice, Endpoint, Lock, LockLookup, LockOutcome, LockStatus, nothing_found, read_json, review_advice};
use crate::Environment;
use crate::process::{Alive, Processes};

const PORT: &str = "CLAUDE_CODE_SSE_PORT";
const AUTO_CONNECT: &str = "CLAUDE_CODE_AUTO_CONNECT_IDE";

/// How far it looks for the editor among its ancestors.
const MAX_ANCESTORS: usize = 10;

/// What Claude Code, started in `working_directory`, would connect to.
pub fn claude(environment: &Environment, processes: &impl Processes, working_directory: &Path) -> LockLookup {
    let home = environment.claude_home();
    let directory = home.join("ide");
    let variable = environment.variable(PORT);
    let forced: Option<u16> = variable.and_then(|port| port.parse().ok());
    let locks: Vec<(Lock, LockStatus)> = Lock::all(&directory)
        .into_iter()
        .filter(|lock| lock.port().is_some())
        .map(|lock| {
            let is_forced = forced.is_some() && lock.port() == forced;
            let mut status = judge(&lock, processes, working_directory, is_forced);
            let must_descend = !is_forced && is_in_vscode(environment);
            if status == LockStatus::AlsoMatches && must_descend && !descends_from(environment, processes, &lock) {
                status = LockStatus::OtherEditor;
            }
            (lock, status)
        })
        .collect();
    let usable = |(lock, status): &(Lock, LockStatus)| {
        *status == LockStatus::AlsoMatches && (forced.is_none() || lock.port() == forced)
    };
    let matching: Vec<usize> = (0..locks.len()).filter(|index| usable(&locks[*index])).collect();
    let outcome = match matching.as_slice() {
        [] if forced.is_some() => LockOutcome::Fails(Advice::new(
            format!(
                "{PORT} is {}, and no running companion has that port",
                forced.unwrap_or_default()
            ),
            format!("Unset {PORT}, or open another terminal."),
        )),
        [] => LockOutcome::Fails(nothing_found("Claude Code", &directory)),
        [only] => {
            let (lock, _) = &locks[*only];
            let endpoint = Endpoint::WebSocket {
                port: lock.port().unwrap_or_default(),
                token: lock.text("authToken").and_then(Secret::new),
            };
            if forced.is_some() || connects_by_itself(environment, &home) {
                LockOutcome::Connects(endpoint)
            } else {
                let step = "Type /ide in Claude Code, choose the editor, and answer Yes; or start it with `alongside run claude`.";
                let step = step.to_owned();
                LockOutcome::AfterStep { endpoint, step }
            }
        }
        several => LockOutcome::Fails(Advice::new(
            format!(
                "{} running editors have a lock file for this directory, and then Claude Code connects to none",
                several.len()
            ),
            "Close one of them, or start Claude Code with `alongside run claude`.",
        )),
    };
    let chosen = (matching.len() == 1).then(|| matching[0]);
    let candidates = locks.iter().enumerate().map(|(index, (lock, status))| {
        lock.candidate(if chosen == Some(index) {
            LockStatus::Chosen
        } else {
            status.clone()
        })
    });
    LockLookup {
        candidates: candidates.collect(),
        display_name: chosen.and_then(|index| locks[index].0.display_name()),
        outcome,
        advice: review_advice(HookAgent::Claude, environment, working_directory),
        working_directory: working_directory.to_owned(),
        directory,
    }
}

fn judge(lock: &Lock, processes: &impl Processes, here: &Path, is_forced: bool) -> LockStatus {
    if lock.content.is_none() {
        return LockStatus::Invalid("it is not valid JSON; Claude Code deletes it".to_owned());
    }
    if let Some(pid) = lock.pid()
        && u32::try_from(pid).is_ok_and(|pid| processes.is_alive(pid) == Alive::No)
    {
        return LockStatus::DeadProcess(pid);
    }
    if lock.text("transport") != Some("ws") {
        return LockStatus::Invalid("its transport is not `ws`".to_owned());
    }
    let folders = lock.folders();
    // As they are written: links are not followed.
    if is_forced || folders.iter().any(|folder| here.starts_with(folder)) {
        LockStatus::AlsoMatches
    } else {
        LockStatus::OtherFolder(folders)
    }
}

/// Whether this is a terminal of VS Code or an editor built on it.
fn is_in_vscode(environment: &Environment) -> bool {
    environment.variable("TERM_PROGRAM") == Some("vscode")
}

fn descends_from(environment: &Environment, processes: &impl Processes, lock: &Lock) -> bool {
    let parent = |pid: &u32| processes.find(*pid).map(|process| process.parent);
    let ancestors = std::iter::successors(parent(&environment.pid), parent).take(MAX_ANCESTORS);
    let editor = lock.pid().and_then(|pid| u32::try_from(pid).ok());
    ancestors.into_iter().any(|ancestor| Some(ancestor) == editor)
}

fn connects_by_itself(environment: &Environment, home: &Path) -> bool {
    if let Some(value) = environment.variable(AUTO_CONNECT) {
        return value == "true";
    }
    if is_in_vscode(environment) {
        return true;
    }
    let directory = match environment.variable("CLAUDE_CONFIG_DIR") {
        Some(_) => Some(home),
        None => environment.home.as_deref(),
    };
    let state = directory.and_then(|directory| read_json(&directory.join(".claude.json")));
    state.is_some_and(|state| state["autoConnectIde"] == Value::Bool(true))
}

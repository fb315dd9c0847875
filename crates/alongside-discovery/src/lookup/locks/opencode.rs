//! opencode: Claude Code's lock files, with rules of its own.

use std::cmp::Reverse;
use std::path::Path;

use alongside_core::{HookAgent, Secret};

use super::{Advice, Endpoint, Lock, LockCandidate, LockLookup, LockOutcome, LockStatus, nothing_found, review_advice};
use crate::Environment;
use crate::process::{Alive, Processes};

/// With one of these opencode reads no lock file, so it has no token and is refused.
const PORTS: [&str; 2] = ["CLAUDE_CODE_SSE_PORT", "OPENCODE_EDITOR_SSE_PORT"];

/// What opencode, started in `working_directory`, would connect to.
pub fn opencode(environment: &Environment, processes: &impl Processes, working_directory: &Path) -> LockLookup {
    let home = environment.home.clone().unwrap_or_default();
    let directory = home.join(".claude").join("ide");
    let mut candidates = Vec::new();
    let mut best: Option<(usize, Lock)> = None;
    let rank = |lock: &Lock| {
        let longest = lock
            .folders()
            .into_iter()
            .filter(|folder| working_directory.starts_with(folder));
        let longest = longest.map(|folder| folder.components().count()).max();
        Reverse((longest, lock.modified))
    };
    for lock in Lock::all(&directory).into_iter().filter(|lock| lock.port().is_some()) {
        let folders = lock.folders();
        let status = match (&lock.content, lock.text("transport")) {
            (None, _) => LockStatus::Invalid("it is not valid JSON".to_owned()),
            (Some(_), None | Some("ws")) => {
                if folders.iter().any(|folder| working_directory.starts_with(folder)) {
                    LockStatus::AlsoMatches
                } else {
                    LockStatus::OtherFolder(folders)
                }
            }
            _ => LockStatus::Invalid("its transport is not `ws`".to_owned()),
        };
        candidates.push(lock.candidate(status.clone()));
        let is_better = best.as_ref().is_none_or(|(_, best)| rank(&lock) < rank(best));
        if status == LockStatus::AlsoMatches && is_better {
            best = Some((candidates.len() - 1, lock));
        }
    }
    LockLookup {
        display_name: best.as_ref().and_then(|(_, lock)| lock.display_name()),
        outcome: outcome(environment, processes, best, &mut candidates, &directory),
        advice: review_advice(HookAgent::Opencode, environment, working_directory),
        working_directory: working_directory.to_owned(),
        directory,
        candidates,
    }
}

fn outcome(
    environment: &Environment,
    processes: &impl Processes,
    best: Option<(usize, Lock)>,
    candidates: &mut [LockCandidate],
    directory: &Path,
) -> LockOutcome {
    if let Some(variable) = PORTS.into_iter().find(|name| environment.variable(name).is_some()) {
        return LockOutcome::Fails(Advice::new(
            format!("{variable} is set, and then opencode sends no token"),
            format!("Unset {variable}, or start opencode with `alongside run opencode`."),
        ));
    }
    let Some((index, lock)) = best else {
        return LockOutcome::Fails(nothing_found("opencode", directory));
    };
    if let Some(pid) = lock.pid()
        && u32::try_from(pid).is_ok_and(|pid| processes.is_alive(pid) == Alive::No)
    {
        candidates[index].status = LockStatus::DeadProcess(pid);
        return LockOutcome::Fails(Advice::new(
            format!("opencode keeps trying {}, whose editor has exited", lock.path.display()),
            "Delete that file.",
        ));
    }
    candidates[index].status = LockStatus::Chosen;
    LockOutcome::Connects(Endpoint::WebSocket {
        port: lock.port().unwrap_or_default(),
        token: lock.text("authToken").and_then(Secret::new),
    })
}

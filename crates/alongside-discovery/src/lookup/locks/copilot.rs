//! Copilot CLI: any lock file in its directory, and a socket.

use std::path::{Path, PathBuf};

use alongside_core::HookAgent;
use serde_json::Value;

use super::{Advice, Endpoint, Lock, LockLookup, LockOutcome, LockStatus, nothing_found, read_json, review_advice};
use crate::Environment;
use crate::process::{Alive, Processes};

const REQUIRED: [&str; 7] = [
    "socketPath",
    "scheme",
    "headers",
    "pid",
    "ideName",
    "timestamp",
    "workspaceFolders",
];

/// What Copilot CLI, started in `working_directory`, would connect to.
pub fn copilot(environment: &Environment, processes: &impl Processes, working_directory: &Path) -> LockLookup {
    let home = environment.copilot_home();
    let directory = home.join("ide");
    let (mut chosen, mut display_name): (Option<PathBuf>, _) = (None, None);
    let mut near: Option<PathBuf> = None;
    let mut candidates = Vec::new();
    for lock in Lock::all(&directory) {
        let mut status = judge(&lock, processes, working_directory);
        match &status {
            LockStatus::AlsoMatches if chosen.is_none() => {
                chosen = lock.text("socketPath").map(PathBuf::from);
                display_name = lock.display_name();
                status = LockStatus::Chosen;
            }
            LockStatus::OtherFolder(folders) => {
                let is_near =
                    |folder: &&PathBuf| working_directory.starts_with(folder) || folder.starts_with(working_directory);
                near = near.or_else(|| folders.iter().find(is_near).cloned());
            }
            _ => {}
        }
        candidates.push(lock.candidate(status));
    }
    let settings = read_json(&home.join("settings.json")).unwrap_or_default();
    let outcome = match (chosen, near) {
        (Some(path), _) if settings["ide"]["autoConnect"] == Value::Bool(false) => LockOutcome::AfterStep {
            endpoint: Endpoint::Socket { path },
            step: "Type /ide in Copilot CLI and choose the editor: `ide.autoConnect` is off in its settings."
                .to_owned(),
        },
        (Some(path), _) => LockOutcome::Connects(Endpoint::Socket { path }),
        (None, Some(folder)) => LockOutcome::Fails(Advice::new(
            "Copilot CLI connects only in the very folder that is open in the editor",
            format!("Start it in {}, or with `alongside run copilot`.", folder.display()),
        )),
        (None, None) => LockOutcome::Fails(nothing_found("Copilot CLI", &directory)),
    };
    LockLookup {
        display_name,
        outcome,
        advice: review_advice(HookAgent::Copilot, environment, working_directory),
        working_directory: working_directory.to_owned(),
        directory,
        candidates,
    }
}

fn judge(lock: &Lock, processes: &impl Processes, here: &Path) -> LockStatus {
    let Some(content) = &lock.content else {
        return LockStatus::Invalid("it is not valid JSON".to_owned());
    };
    if let Some(missing) = REQUIRED.into_iter().find(|key| content.get(key).is_none()) {
        return LockStatus::Invalid(format!("`{missing}` is missing"));
    }
    let pid = lock.pid().unwrap_or_default();
    if u32::try_from(pid).is_ok_and(|pid| processes.is_alive(pid) == Alive::No) {
        return LockStatus::DeadProcess(pid);
    }
    if !accepts(Path::new(lock.text("socketPath").unwrap_or_default())) {
        return LockStatus::Unreachable;
    }
    let folders = lock.folders();
    // Neither a parent nor a child of the folder, and links are not followed. Comparing components ignores a final slash.
    if folders.iter().any(|folder| folder.components().eq(here.components())) {
        LockStatus::AlsoMatches
    } else {
        LockStatus::OtherFolder(folders)
    }
}

#[cfg(unix)]
pub(super) fn accepts(socket: &Path) -> bool {
    std::os::unix::net::UnixStream::connect(socket).is_ok()
}

/// A named pipe is not opened just to look: that would use up one of its instances.
#[cfg(not(unix))]
pub(super) fn accepts(_: &Path) -> bool {
    true
}

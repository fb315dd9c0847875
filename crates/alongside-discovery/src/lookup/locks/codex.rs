//! Codex: one socket that all editors share.

use std::path::Path;

use alongside_core::HookAgent;

use super::copilot::accepts;
use super::{Advice, Endpoint, LockCandidate, LockLookup, LockOutcome, LockStatus, review_advice};
use crate::Environment;

/// What Codex, started in `working_directory`, would ask after `/ide`.
pub fn codex(environment: &Environment, working_directory: &Path) -> LockLookup {
    let home = environment.codex_home();
    let mut endpoint = None;
    let mut candidates = Vec::new();
    for path in environment.codex_sockets() {
        if endpoint.is_some() || !path.exists() {
            continue;
        }
        let status = judge(&path, environment.uid);
        if status == LockStatus::Chosen {
            endpoint = Some(Endpoint::Socket { path: path.clone() });
        }
        candidates.push(LockCandidate { path, status });
    }
    let outcome = match endpoint {
        Some(endpoint) => LockOutcome::AfterStep {
            endpoint,
            step: "Type /ide in Codex, once in each session.".to_owned(),
        },
        None => LockOutcome::Fails(Advice::new(
            "no companion listens where Codex looks",
            "Start `alongside serve` or an editor with the plugin, then type /ide in Codex.",
        )),
    };
    LockLookup {
        // It asks whatever listens.
        display_name: None,
        outcome,
        advice: review_advice(HookAgent::Codex, environment, working_directory),
        working_directory: working_directory.to_owned(),
        directory: home.join("ipc"),
        candidates,
    }
}

#[cfg(unix)]
fn judge(socket: &Path, uid: Option<u32>) -> LockStatus {
    use std::os::unix::fs::MetadataExt;

    let directory = socket.parent().unwrap_or(socket);
    match directory.symlink_metadata() {
        Ok(metadata) if !metadata.is_dir() || Some(metadata.uid()) != uid => {
            LockStatus::Invalid("its directory is not yours".to_owned())
        }
        Ok(metadata) if metadata.mode() & 0o022 != 0 => {
            LockStatus::Invalid("other users can write to its directory".to_owned())
        }
        Ok(_) if accepts(socket) => LockStatus::Chosen,
        _ => LockStatus::Unreachable,
    }
}

#[cfg(not(unix))]
fn judge(socket: &Path, _: Option<u32>) -> LockStatus {
    if accepts(socket) {
        LockStatus::Chosen
    } else {
        LockStatus::Unreachable
    }
}

//! Codex: one socket that all editors share.

use std::path::Path;

use super::copilot::accepts;
use super::hook::{Hook, missing_hook};
use super::{Advice, Endpoint, LockCandidate, LockLookup, LockOutcome, LockStatus, read_json};
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
        advice: advice(&home),
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

/// Codex shows changes to no editor, so only a hook can review them.
fn advice(home: &Path) -> Vec<Advice> {
    let hooks = read_json(&home.join("hooks.json")).unwrap_or_default();
    match Hook::find(&hooks, "codex") {
        Hook::Installed => Vec::new(),
        Hook::Stale(path) => Hook::Stale(path).stale("codex").into_iter().collect(),
        Hook::Missing => vec![missing_hook("codex", "Codex shows its changes to no editor", "")],
    }
}

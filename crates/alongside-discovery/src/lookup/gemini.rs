//! Gemini CLI's lookup.
//!
//! It lists one directory, sorts by the PID in the file names, keeps the files whose workspace contains the working
//! directory, and uses one of them. If that one's companion does not respond, no other file is tried.

use std::cmp::Reverse;
use std::fs;
use std::path::Path;

use alongside_core::Secret;
use alongside_core::dialect::{Dialect, McpAgent};
use serde_json::Value;

use super::candidate::{Candidate, CandidateStatus, Source};
use super::target::{self, CONTAINER_HOST, Dial, LOCAL_HOST, Target};
use super::workspace::{Validator, WorkspaceMatch};
use super::{Identity, Lookup, LookupFailure, LookupResult, identity};
use crate::document::{self, Document};
use crate::process::{Alive, Processes, ide_process};
use crate::terminal::dials_the_containers_host;
use crate::{Environment, Platform, place};

const AGENT: McpAgent = McpAgent::Gemini;

/// What Gemini CLI would do if started in `working_directory`.
pub fn gemini(environment: &Environment, processes: &dyn Processes, working_directory: &Path) -> Lookup {
    let dialect = Dialect::of(AGENT.into());
    let ide_process = ide_process(environment, processes, AGENT.variables().pid);
    let validator = Validator {
        agent: AGENT,
        environment,
        working_directory,
    };
    let directory = place::directory(environment, &dialect.files[0]);

    let mut candidates = candidates(dialect, &directory, ide_process.pid, &validator, processes);
    let choice = choose(&mut candidates, environment.variable(AGENT.variables().port));
    let (chosen, failing) = match choice {
        Selection::One(index) => (Some(index), None),
        Selection::Nothing => (None, None),
        Selection::Fails(index) => (None, Some(index)),
    };
    let document = chosen.and_then(|index: usize| candidates[index].document.as_ref());
    let identity = identity::detect(AGENT, environment, &ide_process, document);
    let outcome = match (failing, &identity) {
        (Some(index), _) => LookupResult::Fails(LookupFailure::SearchFails {
            agent: AGENT,
            path: candidates[index].path.clone(),
        }),
        (None, None) => LookupResult::Fails(unsupported(&candidates, chosen, &directory)),
        (None, Some(identity)) => connect(&validator, chosen.map(|index| &candidates[index]), identity),
    };
    Lookup {
        agent: AGENT,
        working_directory: working_directory.to_owned(),
        directory,
        ide_process,
        identity,
        candidates,
        chosen,
        outcome,
    }
}

enum Selection {
    One(usize),
    Nothing,
    Fails(usize),
}

/// The files in the order they are considered: the legacy name first, then the listed ones.
fn candidates(
    dialect: &Dialect,
    directory: &Path,
    ide_pid: u32,
    validator: &Validator<'_>,
    processes: &dyn Processes,
) -> Vec<Candidate> {
    let inspect = |name: &str, source, pid| Candidate::inspect(directory.join(name), source, pid, validator, processes);
    let mut listed: Vec<Candidate> = Vec::new();
    if let Ok(entries) = fs::read_dir(directory) {
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if let Some(parts) = place::parse_file_name(&dialect.files[0], name) {
                listed.extend(inspect(name, Source::Listing, parts.pid));
            }
        }
    }
    // On Windows every PID except zero counts as alive.
    let counts_as_alive = |candidate: &Candidate| match validator.environment.platform {
        Platform::Windows => candidate.pid != Some(0),
        Platform::Unix | Platform::MacOs => matches!(candidate.alive, Some(Alive::Yes | Alive::YesButForeign)),
    };
    // Gemini CLI keeps files with the same PID in directory order, which is unspecified; ours is by name.
    listed.sort_by(|left, right| left.path.cmp(&right.path));
    listed.sort_by_key(|candidate| {
        let is_ides = candidate.pid == Some(u64::from(ide_pid));
        Reverse((is_ides, counts_as_alive(candidate), candidate.pid))
    });
    let legacy_name = place::legacy_file_name(dialect, &ide_pid.to_string());
    let legacy = legacy_name.and_then(|name| inspect(&name, Source::LegacyPid, Some(u64::from(ide_pid))));
    legacy.into_iter().chain(listed).collect()
}

/// Chooses a file and records every file's status.
fn choose(candidates: &mut [Candidate], port_variable: Option<&str>) -> Selection {
    for candidate in candidates.iter_mut() {
        if !candidate.owner_is_us {
            candidate.verdict = CandidateStatus::Foreign;
        } else if !candidate.document.as_ref().is_some_and(Document::is_object) {
            candidate.verdict = CandidateStatus::Unreadable;
        }
    }
    let usable: Vec<usize> = (0..candidates.len())
        .filter(|index| {
            !matches!(
                candidates[*index].verdict,
                CandidateStatus::Foreign | CandidateStatus::Unreadable
            )
        })
        .collect();
    // A legacy file always wins, wherever its workspace is.
    let legacy = usable
        .iter()
        .copied()
        .find(|index| candidates[*index].source == Source::LegacyPid);
    if legacy.is_none()
        && let Some(index) = usable
            .iter()
            .copied()
            .find(|index| candidates[*index].verdict == CandidateStatus::Fails)
    {
        return Selection::Fails(index);
    }
    let matching: Vec<usize> = usable
        .iter()
        .copied()
        .filter(|index| candidates[*index].contains())
        .collect();
    let pool = if matching.is_empty() { &usable } else { &matching };
    let of_variable = port_variable.and_then(|wanted| {
        let has_port = |index: &&usize| {
            let port = candidates[**index].document.as_ref().and_then(Document::raw_port);
            port.map(document::to_text).as_deref() == Some(wanted)
        };
        pool.iter().find(has_port).copied()
    });
    let Some(index) = legacy.or(of_variable).or_else(|| pool.first().copied()) else {
        return Selection::Nothing;
    };
    if candidates[index].verdict == CandidateStatus::Fails {
        return Selection::Fails(index);
    }
    candidates[index].verdict = match candidates[index].workspace {
        Some(WorkspaceMatch::Outside(_)) => CandidateStatus::ChosenDespiteMismatch,
        _ => CandidateStatus::Chosen,
    };
    Selection::One(index)
}

/// The steps after the editor is known: the workspace, then the ports.
fn connect(validator: &Validator<'_>, chosen: Option<&Candidate>, identity: &Identity) -> LookupResult {
    let environment = validator.environment;
    let names = AGENT.variables();
    let workspace = match chosen.and_then(|candidate| candidate.workspace.clone()) {
        None | Some(WorkspaceMatch::Missing) => {
            // Empty is different from unset: it means that no folder is open.
            let text = environment.raw_variable(names.workspace);
            text.map_or(WorkspaceMatch::Missing, |text| validator.compare_text(text))
        }
        Some(workspace) => workspace,
    };
    if let Some(failure) = refuse_workspace(AGENT, names.workspace, validator.working_directory, workspace) {
        return LookupResult::Fails(failure);
    }

    let document = chosen.and_then(|candidate| candidate.document.as_ref());
    // A stale file's old token is sent even to a port from the variable.
    let from_file = document.and_then(Document::token);
    let token_path = from_file.and(chosen).map(|candidate| candidate.path.clone());
    let token = from_file.or_else(|| environment.variable(names.token?));
    let host = if dials_the_containers_host(environment) {
        CONTAINER_HOST
    } else {
        LOCAL_HOST
    };
    let target = |port: &Value, named_by: Option<&Candidate>| {
        Some(Dial::Http(Target {
            host,
            port: target::lenient_port(port)?,
            token: token.and_then(Secret::new),
            token_path: token_path.clone(),
            display_name: identity.display_name.clone(),
            pid: named_by.and_then(|candidate| candidate.pid),
            path: named_by.map(|candidate| candidate.path.clone()),
        }))
    };
    let of_variable = environment
        .variable(names.port)
        .map(|port| Value::String(port.to_owned()));
    let attempts = [
        document.and_then(Document::port).and_then(|port| target(port, chosen)),
        target::stdio_of(document),
        of_variable.and_then(|port| target(&port, None)),
        target::stdio_from_variables(environment, names.stdio_command, names.stdio_arguments),
    ];
    let attempts: Vec<Dial> = attempts.into_iter().flatten().collect();
    if attempts.is_empty() {
        return LookupResult::Fails(LookupFailure::NothingToDial {
            agent: AGENT,
            display_name: identity.display_name.clone(),
            variable: names.port,
        });
    }
    LookupResult::Connects(attempts)
}

/// The workspace rule that stops an agent, if any.
pub(super) fn refuse_workspace(
    agent: McpAgent,
    variable: &'static str,
    working_directory: &Path,
    workspace: WorkspaceMatch,
) -> Option<LookupFailure> {
    match workspace {
        WorkspaceMatch::Contains => None,
        WorkspaceMatch::Missing | WorkspaceMatch::Fails => Some(LookupFailure::NoWorkspace { agent, variable }),
        WorkspaceMatch::Empty => Some(LookupFailure::EmptyWorkspace { agent }),
        WorkspaceMatch::Outside(roots) => Some(LookupFailure::DirectoryMismatch {
            agent,
            working_directory: working_directory.to_owned(),
            roots,
        }),
    }
}

/// Why no file identifies the editor.
fn unsupported(candidates: &[Candidate], chosen: Option<usize>, directory: &Path) -> LookupFailure {
    let agent = AGENT;
    let path = |candidate: &Candidate| candidate.path.clone();
    if let Some(index) = chosen {
        let path = path(&candidates[index]);
        return LookupFailure::NoIdentity { agent, path };
    }
    let with = |verdict| {
        candidates
            .iter()
            .find(|candidate| candidate.verdict == verdict)
            .map(path)
    };
    if let Some(path) = with(CandidateStatus::Foreign) {
        LookupFailure::ForeignFile { agent, path }
    } else if let Some(path) = with(CandidateStatus::Unreadable) {
        LookupFailure::UnreadableFile { agent, path }
    } else {
        let directory = directory.to_owned();
        LookupFailure::NoDiscoveryFile { agent, directory }
    }
}

//! Qwen Code's lookup.
//!
//! It first looks for the port variable's file, then for legacy names, then lists its directory, deletes files it
//! considers stale, and uses the newest one whose workspace contains the working directory. If that companion does not
//! respond, it tries the others.
//!
//! A file found through the port variable or a legacy name is chosen without any cleanup. In that case stale files,
//! including the chosen one, are deleted only after no companion responded. The other files' statuses record the
//! deletion anyway; the chosen file's stays [`CandidateStatus::Chosen`].

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

use alongside_core::Secret;
use alongside_core::dialect::{Dialect, McpAgent};
use serde_json::Value;

use super::candidate::{Candidate, CandidateStatus, Source};
use super::gemini::refuse_workspace;
use super::target::{self, CONTAINER_HOST, Dial, LOCAL_HOST, Target};
use super::workspace::{Validator, WorkspaceMatch};
use super::{Identity, Lookup, LookupFailure, LookupResult, identity};
use crate::document::Document;
use crate::process::{Processes, ide_process};
use crate::{Environment, place};

const AGENT: McpAgent = McpAgent::Qwen;

/// What Qwen Code would do if started in `working_directory`.
pub fn qwen(environment: &Environment, processes: &dyn Processes, working_directory: &Path) -> Lookup {
    let dialect = Dialect::of(AGENT.into());
    let ide_process = ide_process(environment, processes, AGENT.variables().pid);
    let directory = place::directory(environment, &dialect.files[0]);
    let mut search = Search {
        dialect,
        directory: &directory,
        validator: Validator {
            agent: AGENT,
            environment,
            working_directory,
        },
        processes,
        port_variable: port_variable(environment),
        candidates: Vec::new(),
        rejected_ports: Vec::new(),
    };
    let choice = search.choose(ide_process.pid);
    let chosen = choice.as_ref().ok().copied().flatten();
    let document = chosen.and_then(|index| search.candidates[index].document.as_ref());
    let identity = identity::detect(AGENT, environment, &ide_process, document);
    let outcome = match (choice, &identity) {
        (Err(Failing(path)), _) => LookupResult::Fails(LookupFailure::SearchFails { agent: AGENT, path }),
        (Ok(chosen), None) => LookupResult::Fails(search.unsupported(chosen)),
        (Ok(chosen), Some(identity)) => search.connect(chosen, identity),
    };
    Lookup {
        agent: AGENT,
        working_directory: working_directory.to_owned(),
        ide_process,
        identity,
        candidates: search.candidates,
        chosen,
        outcome,
        directory,
    }
}

/// Statuses of unusable files, the most nearly usable first.
const NEAREST_FIRST: [CandidateStatus; 7] = [
    CandidateStatus::Outside,
    CandidateStatus::WithoutFolder,
    CandidateStatus::WithoutWorkspace,
    CandidateStatus::DeletedParentGone,
    CandidateStatus::DeletedParentForeign,
    CandidateStatus::DeletedWorkspaceGone,
    CandidateStatus::Unreadable,
];

/// The file on which Qwen Code's own code throws.
struct Failing(PathBuf);

struct Search<'a> {
    dialect: &'static Dialect,
    directory: &'a Path,
    validator: Validator<'a>,
    processes: &'a dyn Processes,
    port_variable: Option<&'a str>,
    candidates: Vec<Candidate>,
    /// Ports of workspaces elsewhere, each with its candidate's index. The JSON type matters: JavaScript's set
    /// distinguishes 8080 from "8080", so a port rejected as a number is still tried when the variable has it.
    rejected_ports: Vec<(usize, Value)>,
}

impl Search<'_> {
    fn choose(&mut self, ide_pid: u32) -> Result<Option<usize>, Failing> {
        let direct = match self.choose_by_port_variable() {
            Some(index) => Some(index),
            None => self.choose_by_legacy_name(ide_pid)?,
        };
        // List the other files even if one was already chosen: they are tried when it does not respond.
        let active = self.list();
        if direct.is_some() {
            return Ok(direct);
        }
        // Connecting repeats the lookup, without the files that the first one deleted: their ports are not rejected.
        let candidates = &self.candidates;
        self.rejected_ports
            .retain(|(index, _)| !candidates[*index].verdict.is_deletion());
        for index in active {
            let candidate = &mut self.candidates[index];
            let port = candidate.document.as_ref().and_then(Document::port).cloned();
            match candidate.workspace {
                Some(WorkspaceMatch::Contains) => {
                    candidate.verdict = CandidateStatus::Chosen;
                    return Ok(Some(index));
                }
                Some(WorkspaceMatch::Fails) => return Err(Failing(candidate.path.clone())),
                Some(WorkspaceMatch::Outside(_) | WorkspaceMatch::Empty) => {
                    self.rejected_ports.extend(port.map(|port| (index, port)));
                }
                Some(WorkspaceMatch::Missing) | None => {}
            }
        }
        Ok(None)
    }

    /// The port variable's file is read without any cleanup and need not have a workspace.
    fn choose_by_port_variable(&mut self) -> Option<usize> {
        let port = self.port_variable?;
        let index = self.inspect(self.directory.join(format!("{port}.lock")), Source::PortVariable)?;
        let candidate = &mut self.candidates[index];
        match candidate.workspace {
            Some(WorkspaceMatch::Contains | WorkspaceMatch::Missing) => {
                candidate.verdict = CandidateStatus::Chosen;
                return Some(index);
            }
            Some(WorkspaceMatch::Outside(_) | WorkspaceMatch::Empty) => {
                let written = candidate.document.as_ref().and_then(Document::raw_port).cloned();
                self.rejected_ports
                    .push((index, written.unwrap_or_else(|| port.into())));
            }
            // Only here does Qwen Code catch the exception.
            Some(WorkspaceMatch::Fails) | None => {}
        }
        None
    }

    fn choose_by_legacy_name(&mut self, ide_pid: u32) -> Result<Option<usize>, Failing> {
        let temporary = self.validator.environment.node_temporary_directory();
        let by_pid = (ide_pid.to_string(), Source::LegacyPid);
        let by_port = self.port_variable.map(|port| (port.to_owned(), Source::LegacyPort));
        for (number, source) in [Some(by_pid), by_port].into_iter().flatten() {
            let name = place::legacy_file_name(self.dialect, &number);
            let Some(index) = name.and_then(|name| self.inspect(temporary.join(name), source)) else {
                continue;
            };
            let candidate = &mut self.candidates[index];
            match candidate.workspace {
                // If it is not JSON, the next name is tried; if it is JSON, it is final.
                None => continue,
                Some(WorkspaceMatch::Contains | WorkspaceMatch::Missing) => {
                    candidate.verdict = CandidateStatus::Chosen;
                    return Ok(Some(index));
                }
                Some(WorkspaceMatch::Fails) => return Err(Failing(candidate.path.clone())),
                Some(WorkspaceMatch::Outside(_) | WorkspaceMatch::Empty) => {
                    let port = candidate.document.as_ref().and_then(Document::port).cloned();
                    self.rejected_ports.extend(port.map(|port| (index, port)));
                    if source == Source::LegacyPort {
                        self.rejected_ports.push((index, number.into()));
                    }
                }
            }
            break;
        }
        Ok(None)
    }

    /// Lists the directory, records which files would be deleted, and returns the rest, newest first.
    fn list(&mut self) -> Vec<usize> {
        let Ok(entries) = fs::read_dir(self.directory) else {
            return Vec::new();
        };
        let mut paths: Vec<PathBuf> = entries
            .flatten()
            .filter(|entry| {
                let name = entry.file_name();
                name.to_str()
                    .is_some_and(|name| place::parse_file_name(&self.dialect.files[0], name).is_some())
            })
            .map(|entry| entry.path())
            .collect();
        let modified = |path: &PathBuf| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        paths.sort_by_cached_key(|path| Reverse((modified(path), path.clone())));
        let mut active = Vec::new();
        for path in paths {
            let known = self.candidates.iter().position(|candidate| candidate.path == path);
            let Some(index) = known.or_else(|| self.inspect(path, Source::Listing)) else {
                continue;
            };
            let candidate = &mut self.candidates[index];
            let is_chosen = candidate.verdict == CandidateStatus::Chosen;
            match candidate.deletion(self.validator.working_directory) {
                Some(_) if is_chosen => {}
                Some(deletion) => candidate.verdict = deletion,
                None if candidate.document.is_none() => {}
                None => {
                    if candidate.verdict == CandidateStatus::LostTie {
                        candidate.verdict = CandidateStatus::TriedLater;
                    }
                    active.push(index);
                }
            }
        }
        active
    }

    fn inspect(&mut self, path: PathBuf, source: Source) -> Option<usize> {
        let candidate = Candidate::inspect(path, source, None, &self.validator, self.processes)?;
        self.candidates.push(candidate);
        Some(self.candidates.len() - 1)
    }

    fn connect(&mut self, chosen: Option<usize>, identity: &Identity) -> LookupResult {
        let environment = self.validator.environment;
        let names = AGENT.variables();
        let workspace = match chosen.and_then(|index| self.candidates[index].workspace.clone()) {
            None | Some(WorkspaceMatch::Missing) => {
                let text = environment.raw_variable(names.workspace);
                text.map_or(WorkspaceMatch::Missing, |text| self.validator.compare_text(text))
            }
            Some(workspace) => workspace,
        };
        let working_directory = self.validator.working_directory;
        if let Some(failure) = refuse_workspace(AGENT, names.workspace, working_directory, workspace) {
            return LookupResult::Fails(failure);
        }

        let mut attempts = Attempts {
            in_container: environment.in_container,
            display_name: &identity.display_name,
            token: None,
            dials: Vec::new(),
        };
        if let Some(index) = chosen {
            let candidate = &self.candidates[index];
            attempts.take_token(candidate);
            if let Some(port) = candidate.document.as_ref().and_then(Document::port) {
                attempts.dial(port, Some(candidate));
                let fallbacks = match self.fallbacks(index) {
                    Ok(fallbacks) => fallbacks,
                    Err(Failing(path)) if attempts.dials.is_empty() => {
                        return LookupResult::Fails(LookupFailure::SearchFails { agent: AGENT, path });
                    }
                    // Listing the fallbacks throws, so nothing after this is ever tried.
                    Err(_) => return LookupResult::Connects(attempts.dials),
                };
                for fallback in fallbacks {
                    self.candidates[fallback].verdict = CandidateStatus::TriedLater;
                    attempts.take_token(&self.candidates[fallback]);
                    let port = self.candidates[fallback].document.as_ref().and_then(Document::port);
                    if let Some(port) = port {
                        attempts.dial(port, Some(&self.candidates[fallback]));
                    }
                }
            }
            let stdio = target::stdio_of(self.candidates[index].document.as_ref());
            attempts.dials.extend(stdio);
        }
        let of_variable = self.port_variable.map(|port| Value::String(port.to_owned()));
        if let Some(port) = of_variable.filter(|port| !self.rejected_ports.iter().any(|(_, rejected)| rejected == port))
        {
            attempts.dial(&port, None);
        }
        let stdio = target::stdio_from_variables(environment, names.stdio_command, names.stdio_arguments);
        attempts.dials.extend(stdio);
        if !attempts.dials.is_empty() {
            return LookupResult::Connects(attempts.dials);
        }
        LookupResult::Fails(if self.rejected_ports.is_empty() {
            LookupFailure::NothingToDial {
                agent: AGENT,
                display_name: identity.display_name.clone(),
                variable: names.port,
            }
        } else {
            LookupFailure::EveryWorkspaceElsewhere {
                agent: AGENT,
                working_directory: working_directory.to_owned(),
            }
        })
    }

    /// The files to try when the chosen companion does not respond: first those whose workspace contains the working
    /// directory, then those without one. Ports that were already tried are skipped.
    fn fallbacks(&self, chosen: usize) -> Result<Vec<usize>, Failing> {
        let port = |index: usize| self.candidates[index].document.as_ref().and_then(Document::port);
        let mut fallbacks = Vec::new();
        for (index, candidate) in self.candidates.iter().enumerate() {
            let is_listed = candidate.path.parent() == Some(self.directory) && !candidate.verdict.is_deletion();
            if !is_listed {
                continue;
            }
            let is_null = candidate.document.as_ref().is_some_and(Document::is_null);
            let is_another = port(index).is_some() && port(index) != port(chosen);
            match candidate.workspace {
                Some(WorkspaceMatch::Contains | WorkspaceMatch::Missing) if is_another => fallbacks.push(index),
                Some(WorkspaceMatch::Fails) if is_another || is_null => {
                    return Err(Failing(candidate.path.clone()));
                }
                _ => {}
            }
        }
        fallbacks.sort_by_key(|index| {
            let candidate = &self.candidates[*index];
            (!candidate.contains(), Reverse(candidate.modified))
        });
        Ok(fallbacks)
    }

    /// Why no file identifies the editor.
    fn unsupported(&self, chosen: Option<usize>) -> LookupFailure {
        let agent = AGENT;
        if let Some(index) = chosen {
            let path = self.candidates[index].path.clone();
            return LookupFailure::NoIdentity { agent, path };
        }
        let nearest = NEAREST_FIRST
            .iter()
            .find_map(|verdict| self.candidates.iter().find(|candidate| candidate.verdict == *verdict));
        let Some(candidate) = nearest else {
            let directory = self.directory.to_owned();
            return LookupFailure::NoDiscoveryFile { agent, directory };
        };
        let path = candidate.path.clone();
        match (candidate.verdict, &candidate.workspace) {
            (CandidateStatus::Outside, Some(WorkspaceMatch::Outside(roots))) => {
                let roots = roots.clone();
                LookupFailure::WorkspaceElsewhere { agent, path, roots }
            }
            (CandidateStatus::WithoutFolder, _) => LookupFailure::FileWithoutFolder { agent, path },
            (CandidateStatus::WithoutWorkspace, _) => LookupFailure::FileWithoutWorkspace { agent, path },
            (verdict, _) if verdict.is_deletion() => LookupFailure::FileDeleted { agent, path, verdict },
            _ => LookupFailure::UnreadableFile { agent, path },
        }
    }
}

/// The targets so far, and the current token, which is kept until a file has another.
struct Attempts<'a> {
    in_container: bool,
    display_name: &'a str,
    token: Option<(Secret, PathBuf)>,
    dials: Vec<Dial>,
}

impl Attempts<'_> {
    fn take_token(&mut self, candidate: &Candidate) {
        let token = candidate.document.as_ref().and_then(Document::token);
        if let Some(token) = token.and_then(Secret::new) {
            self.token = Some((token, candidate.path.clone()));
        }
    }

    /// Adds this machine first, then the container's host, if there is one and its name resolves.
    fn dial(&mut self, port: &Value, candidate: Option<&Candidate>) {
        let Some(port) = target::strict_port(port) else {
            return;
        };
        let hosts = if self.in_container {
            &[LOCAL_HOST, CONTAINER_HOST][..]
        } else {
            &[LOCAL_HOST][..]
        };
        for host in hosts {
            self.dials.push(Dial::Http(Target {
                host,
                port,
                token: self.token.as_ref().map(|(token, _)| token.clone()),
                token_path: self.token.as_ref().map(|(_, path)| path.clone()),
                display_name: self.display_name.to_owned(),
                pid: candidate.and_then(|candidate| candidate.pid),
                path: candidate.map(|candidate| candidate.path.clone()),
            }));
        }
    }
}

/// The port variable, if it contains only digits and a valid port.
fn port_variable(environment: &Environment) -> Option<&str> {
    let port = environment.variable(AGENT.variables().port)?;
    let is_port = place::number(port).is_some_and(|port| (1..=65535).contains(&port));
    is_port.then_some(port)
}

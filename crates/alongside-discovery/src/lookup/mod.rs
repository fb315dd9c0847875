//! The agents' side of discovery: what each agent finds, chooses and connects to, and where and why it stops.
//!
//! [`gemini()`] and [`qwen()`] follow the agents' own code step by step, with the same quirks, but change nothing:
//! where Qwen Code would delete a file, the file's [`CandidateStatus`] records that. Both follow Gemini CLI 0.61.0 and
//! Qwen Code 0.24.4.
//!
//! The result is a list of [targets](Dial) in the order the agent tries them, or a [`LookupFailure`]. Callers do the
//! connecting; when it fails, [`Lookup::nobody_answered`] and [`Lookup::token_refused`] return the matching failure.

mod candidate;
mod failure;
#[cfg(test)]
mod fixture;
mod gemini;
mod identity;
pub mod locks;
#[cfg(test)]
mod matrix_tests;
#[cfg(test)]
mod precedence_tests;
#[cfg(test)]
mod quirk_tests;
mod qwen;
mod target;
mod unreviewed;
mod workspace;

use std::path::{Path, PathBuf};

use alongside_core::dialect::McpAgent;
use serde::Serialize;

pub use candidate::{Candidate, CandidateStatus, Fields, Source};
pub use failure::LookupFailure;
pub use gemini::gemini;
pub use identity::{Identity, IdentitySource};
pub use qwen::qwen;
pub use target::{CONTAINER_HOST, Dial, LOCAL_HOST, Target};
pub use unreviewed::{Unreviewed, hook_program, program as program_in_command, unreviewed};
pub use workspace::WorkspaceMatch;

use crate::Environment;
use crate::process::{IdeProcess, Processes};

/// What an agent would do if started in `working_directory`.
pub fn of(agent: McpAgent, environment: &Environment, processes: &dyn Processes, working_directory: &Path) -> Lookup {
    match agent {
        McpAgent::Gemini => gemini(environment, processes, working_directory),
        McpAgent::Qwen => qwen(environment, processes, working_directory),
    }
}

/// Every step of an agent's lookup.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lookup {
    pub agent: McpAgent,
    pub working_directory: PathBuf,
    /// The directory it searches for files.
    pub directory: PathBuf,
    /// The process it treats as the editor.
    pub ide_process: IdeProcess,
    /// The editor it detected, if any.
    pub identity: Option<Identity>,
    /// The files it considers, in its order.
    pub candidates: Vec<Candidate>,
    /// The one it uses: an index into `candidates`.
    pub chosen: Option<usize>,
    pub outcome: LookupResult,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum LookupResult {
    /// It tries these in order until one responds.
    Connects(Vec<Dial>),
    Fails(LookupFailure),
}

impl Lookup {
    /// The file that the agent uses.
    pub fn chosen(&self) -> Option<&Candidate> {
        self.candidates.get(self.chosen?)
    }

    /// The agent's targets in its order; empty if the lookup failed.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        let dials = match &self.outcome {
            LookupResult::Connects(dials) => dials.as_slice(),
            LookupResult::Fails(_) => &[],
        };
        dials.iter().filter_map(|dial| match dial {
            Dial::Http(target) => Some(target),
            Dial::Stdio { .. } => None,
        })
    }

    /// Why the agent gives up without connecting to anything, if it does.
    pub fn failure(&self) -> Option<&LookupFailure> {
        match &self.outcome {
            LookupResult::Connects(_) => None,
            LookupResult::Fails(failure) => Some(failure),
        }
    }

    /// The failure if every target was tried and none responded.
    ///
    /// For Gemini CLI this is often caused by a stale file that sorts before a running companion's file and hides it.
    pub fn nobody_answered(&self) -> LookupFailure {
        let first = self.targets().next();
        let display_name = self.display_name();
        if let Some(target) = first.filter(|target| target.host == CONTAINER_HOST) {
            return LookupFailure::ContainersHost {
                agent: self.agent,
                port: target.port,
                display_name,
            };
        }
        let hidden = self
            .candidates
            .iter()
            .filter(|candidate| candidate.verdict == CandidateStatus::LostTie);
        LookupFailure::NobodyListens {
            agent: self.agent,
            port: first.map(|target| target.port),
            display_name,
            path: self.chosen().map(|candidate| candidate.path.clone()),
            hidden: hidden.map(|candidate| candidate.path.clone()).collect(),
        }
    }

    /// The failure if a target refused the token (401).
    pub fn token_refused(&self, target: &Target) -> LookupFailure {
        LookupFailure::TokenRefused {
            agent: self.agent,
            port: target.port,
            display_name: self.display_name(),
            path: target.token_path.clone(),
            was_sent: target.token.is_some(),
        }
    }

    fn display_name(&self) -> String {
        let name = self.identity.as_ref().map(|identity| identity.display_name.clone());
        name.unwrap_or_default()
    }
}

//! The agents' side of discovery: what each of them finds, chooses and dials, and why it stops where it stops.
//!
//! [`gemini()`] and [`qwen()`] take the steps of the command lines' own code, in the same order and with the same quirks, but
//! change nothing: where Qwen Code would delete a file, the file's [`CandidateStatus`] says so. Both were written down from Gemini
//! CLI 0.61.0 and Qwen Code 0.24.4.
//!
//! The outcome is a list of [targets](Dial) in the order the agent tries them, or a [`LookupFailure`]. Dialling is somebody
//! else's work; when it fails, [`Lookup::nobody_answered`] and [`Lookup::token_refused`] say what that means.

mod candidate;
mod failure;
#[cfg(test)]
mod fixture;
mod gemini;
mod identity;
#[cfg(test)]
mod matrix_tests;
#[cfg(test)]
mod precedence_tests;
#[cfg(test)]
mod quirk_tests;
mod qwen;
mod target;
mod workspace;

use std::path::PathBuf;

use alongside_core::dialect::AgentKind;
use serde::Serialize;

pub use candidate::{Candidate, CandidateStatus, Fields, Source};
pub use failure::LookupFailure;
pub use gemini::gemini;
pub use identity::{Identity, IdentitySource};
pub use qwen::qwen;
pub use target::{CONTAINER_HOST, Dial, LOCAL_HOST, Target};
pub use workspace::WorkspaceMatch;

use crate::process::IdeProcess;

/// All that an agent's search came to.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lookup {
    pub agent: AgentKind,
    /// The directory it was started in.
    pub working_directory: PathBuf,
    /// The directory it looks for files in.
    pub directory: PathBuf,
    /// The process it takes for the editor.
    pub ide_process: IdeProcess,
    /// The editor it believes to be in, if it believes that at all.
    pub identity: Option<Identity>,
    /// The files it considers, in the order it does.
    pub candidates: Vec<Candidate>,
    /// Which of them it goes by: an index into `candidates`.
    pub chosen: Option<usize>,
    /// What comes of it.
    pub outcome: LookupResult,
}

/// What an agent does in the end.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum LookupResult {
    /// It tries these, one after the other, until one answers.
    Connects(Vec<Dial>),
    /// It gives up.
    Fails(LookupFailure),
}

impl Lookup {
    /// The file that the agent goes by.
    pub fn chosen(&self) -> Option<&Candidate> {
        self.candidates.get(self.chosen?)
    }

    /// What the agent dials, in its order; nothing if it refuses.
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

    /// Why the agent gives up, if it does so without dialling.
    pub fn failure(&self) -> Option<&LookupFailure> {
        match &self.outcome {
            LookupResult::Connects(_) => None,
            LookupResult::Fails(failure) => Some(failure),
        }
    }

    /// What it means when every target was dialled and none answered.
    ///
    /// For Gemini CLI that is often a leftover which sorts before the file of a live companion, and hides it.
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

    /// What it means when a target answered that the token is wrong (401).
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

//! Which editor this terminal belongs to.
//!
//! Two tables answer it. Variables come first: an editor's terminal sets some that no other program sets. But they are
//! inherited, so a Neovim inside the terminal of VS Code has the signs of both; then the process tree says which is
//! nearer. The process tree also tells apart the editors that set the same variables, which are the makes of VS Code and of
//! the IntelliJ platform, and it is all there is for editors that set none.
//!
//! What the agents believe is another matter: they know fewer editors, by fewer signs. That is [`crate::lookup`].

mod editor;
mod program;
mod rules;

use serde::Serialize;

pub use editor::{DetectedIde, Family};

use alongside_discovery::Environment;
use alongside_discovery::process::Processes;

/// As far as the agents look.
const MAX_DEPTH: usize = 32;

/// What speaks for an editor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Evidence {
    /// A variable of this terminal.
    Variable { name: String, value: String },
    /// A process that this terminal runs in.
    Process {
        /// Its id.
        pid: u32,
        /// Its command line.
        command: String,
    },
}

/// An editor and what speaks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DetectedEditor {
    /// The editor.
    pub ide: DetectedIde,
    /// What speaks for it.
    pub evidence: Vec<Evidence>,
}

/// What was found out about this terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Detection {
    /// The editor that this terminal belongs to.
    pub found: Option<DetectedEditor>,
    /// Other editors that left signs, further out.
    pub others: Vec<DetectedEditor>,
}

/// Finds the editor that this terminal belongs to.
pub fn detect(environment: &Environment, processes: &dyn Processes) -> Detection {
    let ancestors = ancestors(environment, processes);
    let mut findings = from_variables(environment);
    refine(&mut findings, &ancestors);
    if findings.is_empty() {
        findings = ancestors;
    } else {
        add_processes(&mut findings, &ancestors);
    }
    let mut findings = findings.into_iter();
    Detection {
        found: findings.next(),
        others: findings.collect(),
    }
}

/// The editors whose variables are set, in the table's order.
fn from_variables(environment: &Environment) -> Vec<DetectedEditor> {
    let mut findings: Vec<DetectedEditor> = Vec::new();
    let mut spent: Vec<&str> = Vec::new();
    for rule in rules::VARIABLES {
        // One variable speaks for one editor: the first of its rules that fits is the most particular.
        let value = environment.variable(rule.name).filter(|value| rule.wanted.fits(value));
        let Some(value) = value.filter(|_| !spent.contains(&rule.name)) else {
            continue;
        };
        spent.push(rule.name);
        let evidence = Evidence::Variable {
            name: rule.name.to_owned(),
            value: value.to_owned(),
        };
        add(&mut findings, rule.ide, evidence);
    }
    findings
}

/// The ancestors that are editors, the nearest first.
fn ancestors(environment: &Environment, processes: &dyn Processes) -> Vec<DetectedEditor> {
    let mut findings = Vec::new();
    let mut current = processes.find(environment.pid).map(|own| own.parent);
    for _ in 0..MAX_DEPTH {
        let Some(process) = current.filter(|pid| *pid > 0).and_then(|pid| processes.find(pid)) else {
            break;
        };
        if let Some(ide) = program::editor(&process.command) {
            let evidence = Evidence::Process {
                pid: process.pid,
                command: process.command,
            };
            add(&mut findings, ide, evidence);
        }
        current = Some(process.parent).filter(|parent| *parent != process.pid);
    }
    findings
}

/// Puts a member in the place of its family's common name.
fn refine(findings: &mut Vec<DetectedEditor>, ancestors: &[DetectedEditor]) {
    let generic: Vec<DetectedIde> = findings
        .iter()
        .map(|finding| finding.ide)
        .filter(|ide| ide.is_generic())
        .collect();
    for generic in generic {
        let is_member = |finding: &&DetectedEditor| finding.ide != generic && finding.ide.family() == generic.family();
        let by_variable = findings.iter().find(is_member).map(|finding| finding.ide);
        let by_process = ancestors
            .iter()
            .find(|finding| finding.ide.family() == generic.family());
        let Some(member) = by_variable.or_else(|| by_process.map(|finding| finding.ide)) else {
            continue;
        };
        let Some(position) = findings.iter().position(|finding| finding.ide == generic) else {
            continue;
        };
        let common = findings.remove(position);
        match findings.iter_mut().find(|finding| finding.ide == member) {
            Some(finding) => finding.evidence.extend(common.evidence),
            None => findings.insert(position, DetectedEditor { ide: member, ..common }),
        }
    }
}

/// Lets the process tree confirm what variables say, and decide which is nearest where they name several editors.
fn add_processes(findings: &mut Vec<DetectedEditor>, ancestors: &[DetectedEditor]) {
    let nearest = ancestors
        .iter()
        .find(|ancestor| findings.iter().any(|finding| finding.ide == ancestor.ide))
        .map(|ancestor| ancestor.ide);
    for ancestor in ancestors {
        for evidence in &ancestor.evidence {
            add(findings, ancestor.ide, evidence.clone());
        }
    }
    if let Some(position) = nearest.and_then(|nearest| findings.iter().position(|finding| finding.ide == nearest)) {
        let finding = findings.remove(position);
        findings.insert(0, finding);
    }
}

fn add(findings: &mut Vec<DetectedEditor>, ide: DetectedIde, evidence: Evidence) {
    match findings.iter_mut().find(|finding| finding.ide == ide) {
        Some(finding) => finding.evidence.push(evidence),
        None => findings.push(DetectedEditor {
            ide,
            evidence: vec![evidence],
        }),
    }
}

#[cfg(test)]
mod tests;

//! Which editor this terminal belongs to.
//!
//! Two tables decide it. Variables come first: an editor's terminal sets some that no other program sets. But variables
//! are inherited, so Neovim inside a VS Code terminal has both editors' variables; the process tree then decides which
//! is nearer. The process tree also distinguishes editors that set the same variables (VS Code forks and IntelliJ-based
//! IDEs), and is the only evidence for editors that set none.
//!
//! What the agents detect is separate: they know fewer editors, by fewer signs. See `alongside_discovery::lookup`.

mod editor;
mod program;
mod rules;

use serde::Serialize;

pub use editor::{DetectedIde, Family};
pub use program::name_of_process;

use alongside_discovery::Environment;
use alongside_discovery::process::Processes;

/// The same depth as the agents.
const MAX_DEPTH: usize = 32;

/// Evidence for an editor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Evidence {
    /// A variable in this terminal.
    Variable { name: String, value: String },
    /// An ancestor process of this terminal.
    Process { pid: u32, command: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DetectedEditor {
    pub ide: DetectedIde,
    pub evidence: Vec<Evidence>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Detection {
    pub found: Option<DetectedEditor>,
    /// Other editors with evidence, further up.
    pub others: Vec<DetectedEditor>,
}

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

/// The editors whose variables are set, in table order.
fn from_variables(environment: &Environment) -> Vec<DetectedEditor> {
    let mut findings: Vec<DetectedEditor> = Vec::new();
    let mut spent: Vec<&str> = Vec::new();
    for rule in rules::VARIABLES {
        // One variable is evidence for one editor: its first matching rule is the most specific.
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

/// The ancestors that are editors, nearest first.
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

/// Replaces a family's generic entry with the member found in the process tree.
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

/// Adds evidence from the process tree, and moves the nearest editor first if variables indicate several.
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

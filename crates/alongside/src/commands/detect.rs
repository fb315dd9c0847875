//! `alongside detect`: which editor this terminal belongs to, and what each agent takes it for.

use std::process::ExitCode;

use alongside_core::dialect::{AgentKind, DIALECTS};
use alongside_discovery::Environment;
use alongside_discovery::lookup::{self, Identity, IdentitySource};
use alongside_discovery::process::SystemProcesses;
use alongside_install::detect::{DetectedEditor, Detection, Evidence, detect};
use serde_json::{Value, json};

use crate::command_line::Common;
use crate::printable::printable_line;

/// Longer command lines are cut for people: an editor made with Electron has a page of them.
const COMMAND_LENGTH: usize = 80;

pub(crate) fn run(common: &Common) -> ExitCode {
    let directory = common.directory();
    let mut environment = Environment::current();
    environment.working_directory.clone_from(&directory);
    let processes = SystemProcesses::default();
    let detection = detect(&environment, &processes);
    let beliefs: Vec<Belief> = DIALECTS
        .iter()
        .map(|dialect| {
            let lookup = match dialect.kind {
                AgentKind::Gemini => lookup::gemini(&environment, &processes, &directory),
                AgentKind::Qwen => lookup::qwen(&environment, &processes, &directory),
            };
            Belief {
                agent: dialect.kind,
                display_name: dialect.display_name,
                identity: lookup.identity,
            }
        })
        .collect();
    common
        .output()
        .answer(&to_json(&detection, &beliefs), || words(&detection, &beliefs));
    ExitCode::SUCCESS
}

/// The editor that an agent, started here, would take itself to be in.
struct Belief {
    agent: AgentKind,
    display_name: &'static str,
    identity: Option<Identity>,
}

fn to_json(detection: &Detection, beliefs: &[Belief]) -> Value {
    let finding = |finding: &DetectedEditor| {
        json!({
            "editor": finding.ide,
            "displayName": finding.ide.display_name(),
            "evidence": finding.evidence,
        })
    };
    let agents: Vec<Value> = beliefs
        .iter()
        .map(|belief| json!({ "agent": belief.agent, "displayName": belief.display_name, "detects": belief.identity }))
        .collect();
    json!({
        "found": detection.found.as_ref().map(finding),
        "others": detection.others.iter().map(finding).collect::<Vec<_>>(),
        "agents": agents,
    })
}

fn words(detection: &Detection, beliefs: &[Belief]) -> String {
    let mut words = String::new();
    match &detection.found {
        Some(finding) => {
            words.push_str(&format!("This terminal belongs to {}.\n", finding.ide.display_name()));
            push_evidence(&mut words, finding);
        }
        None => words.push_str(
            "This terminal does not belong to an editor: no environment variable or parent process points to one.\n",
        ),
    }
    for finding in &detection.others {
        words.push_str(&format!("Outer editor: {}.\n", finding.ide.display_name()));
        push_evidence(&mut words, finding);
    }
    for belief in beliefs {
        words.push_str(&belief.words());
    }
    words
}

fn push_evidence(words: &mut String, finding: &DetectedEditor) {
    for evidence in &finding.evidence {
        let sentence = match evidence {
            Evidence::Variable { name, value } => format!("{name} is `{}`", shortened(value)),
            Evidence::Process { pid, command } => format!("running as process {pid}: {}", shortened(command)),
        };
        words.push_str(&format!("  {sentence}\n"));
    }
}

fn shortened(text: &str) -> String {
    let text = printable_line(text);
    if text.chars().count() <= COMMAND_LENGTH {
        return text;
    }
    text.chars().take(COMMAND_LENGTH).chain(['…']).collect()
}

impl Belief {
    fn words(&self) -> String {
        let name = self.display_name;
        match &self.identity {
            Some(identity) => {
                let source = match identity.source {
                    IdentitySource::File => "from a discovery file",
                    IdentitySource::Terminal => "from this terminal's environment",
                };
                format!(
                    "{name} would detect {} ({source}).\n",
                    printable_line(&identity.display_name)
                )
            }
            None => format!(
                "{name} would not detect an editor here. Run `alongside` to start a companion for this directory.\n"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use alongside_install::detect::DetectedIde;

    use super::*;

    #[test]
    fn the_words_name_the_editor_the_evidence_and_the_agents_beliefs() {
        let evidence = Evidence::Process {
            pid: 7,
            command: format!("/usr/bin/hx {}", "x".repeat(200)),
        };
        let finding = DetectedEditor {
            ide: DetectedIde::Helix,
            evidence: vec![evidence],
        };
        let detection = Detection {
            found: Some(finding),
            others: Vec::new(),
        };
        let belief = Belief {
            agent: AgentKind::Qwen,
            display_name: "Qwen Code",
            identity: None,
        };
        let words = words(&detection, &[belief]);
        assert!(
            words.contains("belongs to Helix.\n  running as process 7: /usr/bin/hx xxx"),
            "{words}"
        );
        assert!(
            words.contains("…\nQwen Code would not detect an editor here."),
            "{words}"
        );
    }
}

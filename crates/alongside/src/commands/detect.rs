//! `alongside detect`: which editor this terminal belongs to, and which editor each agent detects.

use std::process::ExitCode;

use alongside_core::dialect::{AgentKind, DIALECTS};
use alongside_discovery::Environment;
use alongside_discovery::lookup::{self, Identity, IdentitySource};
use alongside_discovery::process::SystemProcesses;
use alongside_install::detect::{DetectedEditor, Detection, Evidence, detect};
use serde_json::{Value, json};

use alongside_companion::doctor::{self, locks::Found};

use crate::command_line::Common;
use crate::printable::printable_line;

/// Longer values are truncated in text output: an Electron-based editor's command line can fill a page.
const COMMAND_LENGTH: usize = 80;

pub(crate) fn run(common: &Common) -> ExitCode {
    let directory = common.directory();
    let mut environment = Environment::current();
    environment.working_directory.clone_from(&directory);
    let processes = SystemProcesses::default();
    let detection = detect(&environment, &processes);
    let agents: Vec<AgentDetection> = DIALECTS
        .iter()
        .filter_map(|dialect| {
            let lookup = lookup::of(dialect.search?, &environment, &processes, &directory);
            Some(AgentDetection {
                agent: dialect.kind,
                display_name: dialect.display_name,
                identity: lookup.identity,
            })
        })
        .collect();
    let locks = doctor::locks::look_up(&directory);
    common.output().answer(&to_json(&detection, &agents, &locks), || {
        text(&detection, &agents) + &locks.iter().filter_map(lock_text).collect::<String>()
    });
    ExitCode::SUCCESS
}

/// The editor that an agent started here would detect.
struct AgentDetection {
    agent: AgentKind,
    display_name: &'static str,
    identity: Option<Identity>,
}

/// The same for an agent that reads lock files, if it is installed.
fn lock_text(found: &Found) -> Option<String> {
    let name = found.display_name;
    let display_name = found.lookup.display_name.as_deref();
    found.is_installed.then(|| match display_name {
        Some(editor) => format!("{name} would detect {} (from a lock file).\n", printable_line(editor)),
        None => format!("{name} would detect no editor.\n"),
    })
}

fn to_json(detection: &Detection, agents: &[AgentDetection], locks: &[Found]) -> Value {
    let finding = |finding: &DetectedEditor| {
        json!({
            "editor": finding.ide,
            "displayName": finding.ide.display_name(),
            "evidence": finding.evidence,
        })
    };
    let of_locks = locks.iter().map(|found| {
        let detects = found.lookup.display_name.as_ref();
        let detects = detects.map(|name| json!({ "displayName": name, "source": "lockFile" }));
        json!({ "agent": found.id, "displayName": found.display_name, "installed": found.is_installed, "detects": detects })
    });
    let agents: Vec<Value> = agents
        .iter()
        .map(|agent| json!({ "agent": agent.agent, "displayName": agent.display_name, "detects": agent.identity }))
        .chain(of_locks)
        .collect();
    json!({
        "found": detection.found.as_ref().map(finding),
        "others": detection.others.iter().map(finding).collect::<Vec<_>>(),
        "agents": agents,
    })
}

fn text(detection: &Detection, agents: &[AgentDetection]) -> String {
    let mut text = String::new();
    match &detection.found {
        Some(finding) => {
            text.push_str(&format!("This terminal belongs to {}.\n", finding.ide.display_name()));
            push_evidence(&mut text, finding);
        }
        None => text.push_str(
            "This terminal does not belong to an editor: no environment variable or parent process points to one.\n",
        ),
    }
    for finding in &detection.others {
        text.push_str(&format!("Outer editor: {}.\n", finding.ide.display_name()));
        push_evidence(&mut text, finding);
    }
    for agent in agents {
        text.push_str(&agent.text());
    }
    text
}

fn push_evidence(text: &mut String, finding: &DetectedEditor) {
    for evidence in &finding.evidence {
        let sentence = match evidence {
            Evidence::Variable { name, value } => format!("{name} is `{}`", shortened(value)),
            Evidence::Process { pid, command } => format!("running as process {pid}: {}", shortened(command)),
        };
        text.push_str(&format!("  {sentence}\n"));
    }
}

fn shortened(text: &str) -> String {
    let text = printable_line(text);
    if text.chars().count() <= COMMAND_LENGTH {
        return text;
    }
    text.chars().take(COMMAND_LENGTH).chain(['…']).collect()
}

impl AgentDetection {
    fn text(&self) -> String {
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
    fn text_has_editor_evidence_and_agents() {
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
        let agent = AgentDetection {
            agent: AgentKind::Qwen,
            display_name: "Qwen Code",
            identity: None,
        };
        let text = text(&detection, &[agent]);
        assert!(
            text.contains("belongs to Helix.\n  running as process 7: /usr/bin/hx xxx"),
            "{text}"
        );
        assert!(text.contains("…\nQwen Code would not detect an editor here."), "{text}");
    }
}

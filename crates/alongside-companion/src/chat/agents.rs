//! The agents available in the chat.
//!
//! Local agents are known ones or from the user's settings; the daemon is available if the settings or the environment enable it. Nothing
//! here starts anything.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alongside_agent::AgentTarget;
use alongside_agent::OpenSession;
use alongside_agent::acp::{AcpOptions, AgentProcess, KNOWN_AGENTS, KnownAgent, ReviewGate};
use alongside_agent::daemon::DaemonOptions;
use alongside_agent::settings::{DaemonTarget, SettingsError, resolve_daemon};
use alongside_protocol::{ChatAgent, ChatAgentKind};

use crate::settings::Settings;

/// The id of the daemon's agent.
pub(super) const DAEMON: &str = "daemon";

/// The agents that are listed even if they are not installed, so that the list is never empty.
const ALWAYS_LISTED: &[&str] = &["qwen", "gemini"];

/// An available agent.
pub(super) struct AgentOption {
    pub(super) id: String,
    name: String,
    how: Launch,
}

enum Launch {
    Child(AgentProcess),
    Daemon(Result<DaemonTarget, SettingsError>),
}

/// Why an agent cannot be connected to: a sentence, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unavailable(pub(super) String);

/// All available agents, in display order. `is_there` tells which programs are installed.
pub(super) fn choices(
    settings: &Settings,
    environment: impl Fn(&str) -> Option<String>,
    is_there: impl Fn(&Path) -> bool,
) -> Vec<AgentOption> {
    let known = KNOWN_AGENTS
        .iter()
        .filter(|agent| !settings.agents.contains_key(agent.id));
    let mut choices: Vec<AgentOption> = known
        .filter_map(|agent| {
            let installed = agent.commands.iter().find(|command| is_there(Path::new(command[0])));
            let listed = || agent.commands.first().filter(|_| ALWAYS_LISTED.contains(&agent.id));
            let (program, arguments) = installed.or_else(listed)?.split_first()?;
            Some(AgentOption {
                id: agent.id.to_owned(),
                name: agent.name.to_owned(),
                how: Launch::Child(AgentProcess::new(program, arguments)),
            })
        })
        .collect();
    choices.extend(settings.agents.iter().filter_map(|(id, agent)| {
        let (program, arguments) = agent.command.split_first()?;
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Some(AgentOption {
            id: id.clone(),
            name: agent.name.clone().unwrap_or_else(|| id.clone()),
            how: Launch::Child(AgentProcess::new(program, &arguments)),
        })
    }));
    let read_file = |path: &Path| -> io::Result<String> { std::fs::read_to_string(path) };
    if let Some(daemon) = resolve_daemon(&settings.daemon, environment, read_file).transpose() {
        choices.push(AgentOption {
            id: DAEMON.to_owned(),
            name: "Qwen Code (daemon)".to_owned(),
            how: Launch::Daemon(daemon),
        });
    }
    choices
}

impl AgentOption {
    pub(super) fn describe(&self) -> ChatAgent {
        ChatAgent {
            id: self.id.clone(),
            name: self.name.clone(),
            kind: match self.how {
                Launch::Child(_) => ChatAgentKind::Child,
                Launch::Daemon(_) => ChatAgentKind::Daemon,
            },
            problem: self.problem(),
        }
    }

    pub(super) fn is_child(&self) -> bool {
        matches!(self.how, Launch::Child(_))
    }

    /// What is known about a local agent.
    pub(super) fn known(&self) -> Option<&'static KnownAgent> {
        match &self.how {
            Launch::Child(process) => KnownAgent::find(&self.id, &process.program),
            Launch::Daemon(_) => None,
        }
    }

    /// The daemon's address, which is never sent to front ends.
    pub(super) fn address(&self) -> Option<String> {
        match &self.how {
            Launch::Daemon(Ok(target)) => Some(target.address.to_string()),
            _ => None,
        }
    }

    fn problem(&self) -> Option<String> {
        match &self.how {
            Launch::Child(process) if !alongside_platform::is_installed(&process.program) => Some(format!(
                "`{}` is not installed or not on your PATH.",
                process.program.display()
            )),
            Launch::Daemon(Err(error)) => Some(format!("{error}.")),
            _ => None,
        }
    }

    pub(super) fn target(
        &self,
        workspace: PathBuf,
        gate: Arc<dyn ReviewGate>,
        open: OpenSession,
    ) -> Result<AgentTarget, Unavailable> {
        match &self.how {
            Launch::Child(process) => Ok(AgentTarget::Child(Box::new(AcpOptions {
                open,
                known: self.known(),
                ..AcpOptions::new(process.clone(), workspace, gate)
            }))),
            Launch::Daemon(Ok(target)) => Ok(AgentTarget::Daemon(Box::new(DaemonOptions {
                address: target.address.clone(),
                token: target.token.clone(),
                ca_file: target.ca_file.clone(),
                workspace: workspace.to_str().map(str::to_owned),
                open,
                ..DaemonOptions::default()
            }))),
            Launch::Daemon(Err(error)) => Err(Unavailable(format!("{error}."))),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::AgentSettings;

    use super::*;

    fn describe(settings: &Settings, variables: &[(&str, &str)]) -> Vec<ChatAgent> {
        describe_with(settings, variables, &[])
    }

    /// With these programs installed.
    fn describe_with(settings: &Settings, variables: &[(&str, &str)], programs: &[&str]) -> Vec<ChatAgent> {
        let environment = |name: &str| {
            let mut variables = variables.iter();
            variables
                .find(|(own, _)| *own == name)
                .map(|(_, value)| (*value).to_owned())
        };
        let is_there = |program: &Path| programs.iter().any(|installed| program == Path::new(installed));
        choices(settings, environment, is_there)
            .iter()
            .map(AgentOption::describe)
            .collect()
    }

    #[test]
    fn daemon_is_offered_only_if_enabled() {
        let ids = |variables: &[(&str, &str)]| -> Vec<String> {
            let agents = describe(&Settings::default(), variables);
            agents.into_iter().map(|agent| agent.id).collect()
        };
        assert_eq!(ids(&[]), ["qwen", "gemini"]);
        let variables = [("QWEN_IDE_DAEMON_URL", "http://127.0.0.1:1")];
        assert_eq!(ids(&variables), ["qwen", "gemini", "daemon"]);
    }

    #[test]
    fn known_agents_are_offered_if_installed() {
        let programs = ["opencode", "claude-code-acp", "codex-acp", "copilot", "hermes-acp"];
        let agents = describe_with(&Settings::default(), &[], &programs);
        let ids: Vec<&str> = agents.iter().map(|agent| agent.id.as_str()).collect();
        assert_eq!(
            ids,
            ["qwen", "gemini", "claude", "codex", "copilot", "hermes", "opencode"]
        );
    }

    #[test]
    fn configured_agent_replaces_a_known_one() {
        let mut settings = Settings::default();
        let agent = AgentSettings {
            command: vec!["/nowhere/qwen".to_owned()],
            name: None,
        };
        settings.agents.insert("qwen".to_owned(), agent);
        let agents = describe(&settings, &[]);
        let qwen: Vec<_> = agents.iter().filter(|agent| agent.id == "qwen").collect();
        assert_eq!(qwen.len(), 1);
        let problem = qwen[0].problem.as_deref().unwrap();
        assert!(problem.contains("/nowhere/qwen"), "{problem}");
    }

    #[test]
    fn a_daemon_that_cannot_be_used_says_why() {
        let variables = [("QWEN_IDE_DAEMON_URL", "http://me:s3cret@127.0.0.1:1")];
        let agents = describe(&Settings::default(), &variables);
        let problem = agents[2].problem.as_deref().unwrap();
        assert!(
            problem.contains("credentials") && !problem.contains("s3cret"),
            "{problem}"
        );
    }
}

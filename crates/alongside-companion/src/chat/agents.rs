//! The agents that a person can speak to.
//!
//! Those that are started are known here or named in the person's own settings; the daemon is there if settings or environment ask
//! for it. Nothing of this starts anything.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alongside_agent::AgentTarget;
use alongside_agent::OpenSession;
use alongside_agent::acp::{AcpOptions, AgentProcess, ReviewGate};
use alongside_agent::daemon::DaemonOptions;
use alongside_agent::settings::{DaemonTarget, SettingsError, resolve_daemon};
use alongside_protocol::{ChatAgent, ChatAgentKind};

use crate::settings::Settings;

/// The id of the agent in the daemon.
pub(super) const DAEMON: &str = "daemon";

/// An agent that can be chosen.
pub(super) struct Choice {
    pub(super) id: String,
    name: String,
    how: How,
}

enum How {
    Child(AgentProcess),
    Daemon(Result<DaemonTarget, SettingsError>),
}

/// Why an agent cannot be connected to: a sentence, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unusable(pub(super) String);

/// All agents that can be chosen, in the order in which they are offered.
pub(super) fn choices(settings: &Settings, environment: impl Fn(&str) -> Option<String>) -> Vec<Choice> {
    let known = [
        ("qwen", "Qwen Code", AgentProcess::qwen()),
        ("gemini", "Gemini CLI", AgentProcess::gemini()),
    ];
    let mut choices: Vec<Choice> = known
        .into_iter()
        .filter(|(id, ..)| !settings.agents.contains_key(*id))
        .map(|(id, name, process)| Choice {
            id: id.to_owned(),
            name: name.to_owned(),
            how: How::Child(process),
        })
        .collect();
    choices.extend(settings.agents.iter().filter_map(|(id, agent)| {
        let (program, arguments) = agent.command.split_first()?;
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Some(Choice {
            id: id.clone(),
            name: agent.name.clone().unwrap_or_else(|| id.clone()),
            how: How::Child(AgentProcess::new(program, &arguments)),
        })
    }));
    let read_file = |path: &Path| -> io::Result<String> { std::fs::read_to_string(path) };
    if let Some(daemon) = resolve_daemon(&settings.daemon, environment, read_file).transpose() {
        choices.push(Choice {
            id: DAEMON.to_owned(),
            name: "Qwen Code (daemon)".to_owned(),
            how: How::Daemon(daemon),
        });
    }
    choices
}

impl Choice {
    /// The agent as people choose it.
    pub(super) fn describe(&self) -> ChatAgent {
        ChatAgent {
            id: self.id.clone(),
            name: self.name.clone(),
            kind: match self.how {
                How::Child(_) => ChatAgentKind::Child,
                How::Daemon(_) => ChatAgentKind::Daemon,
            },
            problem: self.problem(),
        }
    }

    pub(super) fn is_child(&self) -> bool {
        matches!(self.how, How::Child(_))
    }

    /// The address of the daemon, which no front end is told.
    pub(super) fn address(&self) -> Option<String> {
        match &self.how {
            How::Daemon(Ok(target)) => Some(target.address.to_string()),
            _ => None,
        }
    }

    fn problem(&self) -> Option<String> {
        match &self.how {
            How::Child(process) if !is_there(&process.program) => Some(format!(
                "`{}` is not installed or not on your PATH.",
                process.program.display()
            )),
            How::Daemon(Err(error)) => Some(format!("{error}.")),
            _ => None,
        }
    }

    /// What to connect to.
    pub(super) fn target(
        &self,
        workspace: PathBuf,
        gate: Arc<dyn ReviewGate>,
        open: OpenSession,
    ) -> Result<AgentTarget, Unusable> {
        match &self.how {
            How::Child(process) => Ok(AgentTarget::Child(Box::new(AcpOptions {
                open,
                ..AcpOptions::new(process.clone(), workspace, gate)
            }))),
            How::Daemon(Ok(target)) => Ok(AgentTarget::Daemon(Box::new(DaemonOptions {
                address: target.address.clone(),
                token: target.token.clone(),
                ca_file: target.ca_file.clone(),
                workspace: workspace.to_str().map(str::to_owned),
                open,
                ..DaemonOptions::default()
            }))),
            How::Daemon(Err(error)) => Err(Unusable(format!("{error}."))),
        }
    }
}

/// Whether a program can be found, where the system would look for it.
fn is_there(program: &Path) -> bool {
    let suffixes: &[&str] = if cfg!(windows) {
        &["", ".exe", ".cmd", ".bat"]
    } else {
        &[""]
    };
    let exists = |path: &Path| {
        suffixes.iter().any(|suffix| {
            let mut path = path.as_os_str().to_owned();
            path.push(suffix);
            Path::new(&path).is_file()
        })
    };
    if program.components().count() > 1 {
        return exists(program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| exists(&directory.join(program)))
}

#[cfg(test)]
mod tests {
    use crate::settings::AgentSettings;

    use super::*;

    fn describe(settings: &Settings, variables: &[(&str, &str)]) -> Vec<ChatAgent> {
        let environment = |name: &str| {
            let mut variables = variables.iter();
            variables
                .find(|(own, _)| *own == name)
                .map(|(_, value)| (*value).to_owned())
        };
        choices(settings, environment).iter().map(Choice::describe).collect()
    }

    #[test]
    fn the_known_agents_are_there_and_the_daemon_only_if_somebody_asks_for_it() {
        let ids = |variables: &[(&str, &str)]| -> Vec<String> {
            let agents = describe(&Settings::default(), variables);
            agents.into_iter().map(|agent| agent.id).collect()
        };
        assert_eq!(ids(&[]), ["qwen", "gemini"]);
        let variables = [("QWEN_IDE_DAEMON_URL", "http://127.0.0.1:1")];
        assert_eq!(ids(&variables), ["qwen", "gemini", "daemon"]);
    }

    #[test]
    fn an_agent_of_the_settings_takes_the_place_of_a_known_one() {
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

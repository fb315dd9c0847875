//! The agents that read lock files, or know one socket.

use std::path::Path;

use alongside_core::dialect::{AgentKind, Dialect};
use alongside_core::printable::printable_line;
use alongside_discovery::Environment;
use alongside_discovery::lookup::locks::{self, Advice, Endpoint, LockLookup, LockOutcome, LockStatus};
use alongside_discovery::process::SystemProcesses;
use alongside_mcp::client::SocketClient;
use serde_json::{Value, json};

/// One of these agents, and what it finds.
pub struct Found {
    pub id: &'static str,
    pub display_name: &'static str,
    pub is_installed: bool,
    pub lookup: LockLookup,
}

/// What each of these agents would find from a directory. Blocks.
pub fn look_up(directory: &Path) -> Vec<Found> {
    let mut environment = Environment::current();
    directory.clone_into(&mut environment.working_directory);
    let processes = SystemProcesses::default();
    let found = |kind, lookup| {
        let dialect = Dialect::of(kind);
        Found {
            id: dialect.command,
            display_name: dialect.display_name,
            is_installed: environment.has_program(dialect.command),
            lookup,
        }
    };
    vec![
        found(AgentKind::Claude, locks::claude(&environment, &processes, directory)),
        found(
            AgentKind::Opencode,
            locks::opencode(&environment, &processes, directory),
        ),
        found(AgentKind::Copilot, locks::copilot(&environment, &processes, directory)),
        found(AgentKind::Codex, locks::codex(&environment, directory)),
    ]
}

pub(super) struct LockCheck {
    found: Found,
    /// Why the agent would not connect.
    problem: Option<Advice>,
}

impl LockCheck {
    pub(super) async fn new(found: Found) -> Self {
        let problem = match &found.lookup.outcome {
            LockOutcome::Fails(advice) => Some(advice.clone()),
            LockOutcome::Connects(endpoint) | LockOutcome::AfterStep { endpoint, .. } => try_endpoint(endpoint).await,
        };
        Self { found, problem }
    }

    /// An agent that is not installed does not have to connect.
    pub(super) fn is_healthy(&self) -> bool {
        self.problem.is_none() || !self.found.is_installed
    }

    pub(super) fn to_json(&self) -> Value {
        let found = &self.found;
        let mut value = json!({
            "agent": found.id,
            "displayName": found.display_name,
            "installed": found.is_installed,
            "connects": self.problem.is_none(),
            "lookup": found.lookup,
            "advice": found.lookup.advice,
        });
        if let Some(problem) = &self.problem {
            value["reason"] = json!(problem.message);
            value["hint"] = json!(problem.hint);
        } else if let LockOutcome::AfterStep { step, .. } = &found.lookup.outcome {
            value["step"] = json!(step);
        }
        value
    }

    /// Nothing about an agent that is not installed.
    pub(super) fn to_text(&self) -> Option<String> {
        let Found {
            display_name: name,
            lookup,
            ..
        } = &self.found;
        if !self.found.is_installed {
            return None;
        }
        let mut text = match (&self.problem, &lookup.outcome) {
            (Some(problem), _) => format!(
                "✗ {name} would not connect: {}\n  → {}\n",
                printable_line(&problem.message),
                printable_line(&problem.hint)
            ),
            (None, LockOutcome::AfterStep { step, .. }) => {
                format!("✓ {name} can connect, after one step\n  → {step}\n")
            }
            (None, _) => format!("✓ {name} would connect{}\n", place(lookup)),
        };
        text.extend(lookup.advice.iter().map(note));
        text.push_str(&format!("  Searched {}\n", lookup.directory.display()));
        for candidate in &lookup.candidates {
            let status = describe(&candidate.status);
            text.push_str(&format!("    {}: {status}\n", candidate.path.display()));
        }
        Some(text)
    }
}

/// Advice as a note below a check.
pub(super) fn note(advice: &Advice) -> String {
    let (message, hint) = (printable_line(&advice.message), printable_line(&advice.hint));
    format!("  note: {message}\n  → {hint}\n")
}

fn place(lookup: &LockLookup) -> String {
    match lookup.endpoint() {
        Some(Endpoint::WebSocket { port, .. }) => format!(" at 127.0.0.1:{port}"),
        Some(Endpoint::Socket { path }) => format!(" at {}", path.display()),
        None => String::new(),
    }
}

fn describe(status: &LockStatus) -> String {
    match status {
        LockStatus::Chosen => "used".to_owned(),
        LockStatus::AlsoMatches => "matches too".to_owned(),
        LockStatus::OtherFolder(folders) => {
            let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
            format!("for another directory: {}", printable_line(&folders.join(", ")))
        }
        LockStatus::DeadProcess(pid) => format!("its editor, process {pid}, has exited"),
        LockStatus::OtherEditor => "for another editor than the one of this terminal".to_owned(),
        LockStatus::Unreachable => "nothing listens on its socket".to_owned(),
        LockStatus::Invalid(reason) => format!("ignored: {reason}"),
    }
}

/// Why a connection fails. A socket was tried by the lookup, as the agent does.
async fn try_endpoint(endpoint: &Endpoint) -> Option<Advice> {
    let Endpoint::WebSocket { port, token } = endpoint else {
        return None;
    };
    let refused = |message: String| Advice {
        message,
        hint: "Stop the editor that the lock file belongs to, or delete the file.".to_owned(),
    };
    // As Claude Code; opencode offers no subprotocol, but is otherwise the same.
    match SocketClient::connect(*port, token.as_ref(), Some("mcp")).await {
        Ok(client) => {
            client.end().await;
            None
        }
        Err(error) => Some(refused(error.to_string())),
    }
}

//! The agents that read lock files, or know one socket.

use std::path::Path;

use alongside_core::Secret;
use alongside_core::printable::printable_line;
use alongside_discovery::Environment;
use alongside_discovery::lookup::locks::{self, Advice, Endpoint, LockLookup, LockOutcome, LockStatus};
use alongside_discovery::process::SystemProcesses;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::RESPONSE_TIMEOUT;

/// One of these agents, and what it finds.
pub(super) struct Found {
    id: &'static str,
    display_name: &'static str,
    is_installed: bool,
    lookup: LockLookup,
}

/// Blocks.
pub(super) fn look_up(directory: &Path) -> Vec<Found> {
    let mut environment = Environment::current();
    directory.clone_into(&mut environment.working_directory);
    let processes = SystemProcesses::default();
    let found = |id, display_name, lookup| Found {
        id,
        display_name,
        is_installed: environment.has_program(id),
        lookup,
    };
    vec![
        found(
            "claude",
            "Claude Code",
            locks::claude(&environment, &processes, directory),
        ),
        found(
            "opencode",
            "opencode",
            locks::opencode(&environment, &processes, directory),
        ),
        found(
            "copilot",
            "Copilot CLI",
            locks::copilot(&environment, &processes, directory),
        ),
        found("codex", "Codex", locks::codex(&environment, directory)),
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
        });
        if let Some(problem) = &self.problem {
            value["reason"] = json!(problem.message);
            value["hint"] = json!(problem.hint);
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
        for advice in &lookup.advice {
            text.push_str(&format!(
                "  note: {}\n  → {}\n",
                printable_line(&advice.message),
                printable_line(&advice.hint)
            ));
        }
        text.push_str(&format!("  Searched {}\n", lookup.directory.display()));
        for candidate in &lookup.candidates {
            let status = describe(&candidate.status);
            text.push_str(&format!("    {}: {status}\n", candidate.path.display()));
        }
        Some(text)
    }
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
    match timeout(RESPONSE_TIMEOUT, upgrade(*port, token.as_ref())).await {
        Ok(Ok(101)) => None,
        Ok(Ok(401)) => Some(refused(format!("port {port} refuses the token in its lock file"))),
        Ok(Ok(status)) => Some(refused(format!("port {port} responds with HTTP status {status}"))),
        Ok(Err(error)) => Some(refused(format!("port {port} cannot be reached: {error}"))),
        Err(_) => Some(refused(format!("port {port} does not respond"))),
    }
}

/// Asks for a WebSocket as Claude Code does, and returns the status.
async fn upgrade(port: u16, token: Option<&Secret>) -> std::io::Result<u16> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let token = token.map(Secret::reveal).unwrap_or_default();
    let head = format!(
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: YWxvbmdzaWRlIGRvY3Rvcg==\r\nSec-WebSocket-Protocol: mcp\r\n\
         X-Claude-Code-Ide-Authorization: {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    // `HTTP/1.1 101`
    let mut start = [0; 12];
    stream.read_exact(&mut start).await?;
    let status = std::str::from_utf8(&start[9..])
        .ok()
        .and_then(|status| status.parse().ok());
    status.ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}

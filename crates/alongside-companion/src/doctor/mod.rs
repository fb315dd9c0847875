//! Whether each command line would reach a companion, and if not, which rule stops it.

mod program;

use std::path::{Path, PathBuf};
use std::time::Duration;

use alongside_core::Secret;
use alongside_core::dialect::{AgentKind, ClientInfo, DIALECTS, Dialect};
use alongside_discovery::Environment;
use alongside_discovery::lookup::{self, Dial, Lookup, LookupFailure, LookupResult, Target};
use alongside_discovery::process::SystemProcesses;
use alongside_mcp::client::{Client, ClientError};
use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::places::Places;
use crate::running;
use crate::who::Found;
use alongside_core::printable::printable_line;

/// Both command lines wait longer, but a companion on this machine answers at once or never.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was found for every command line.
pub struct Diagnosis {
    directory: PathBuf,
    findings: Vec<Finding>,
}

/// Looks from a directory as each command line would, and dials.
pub async fn examine(directory: &Path) -> Result<Diagnosis> {
    let directory = directory
        .canonicalize()
        .with_context(|| format!("{} is not a directory", directory.display()))?;
    let mut findings = Vec::new();
    for (display_name, lookup, found) in look_up(&directory)? {
        let end = dial(&lookup).await;
        findings.push(Finding {
            display_name,
            lookup,
            found,
            end,
        });
    }
    Ok(Diagnosis { directory, findings })
}

/// What each command line would find from a directory, by its name, and which companion of ours that is.
pub fn look_up(directory: &Path) -> Result<Vec<(&'static str, Lookup, Option<Found>)>> {
    let records = running::all(&Places::of_user()?);
    let mut environment = Environment::current();
    directory.clone_into(&mut environment.working_directory);
    let terminal = running::ports_of_terminal(&environment);
    let processes = SystemProcesses::default();
    let look = |dialect: &'static Dialect| {
        let lookup = match dialect.kind {
            AgentKind::Gemini => lookup::gemini(&environment, &processes, directory),
            AgentKind::Qwen => lookup::qwen(&environment, &processes, directory),
        };
        let found = Found::of(&lookup, &records, &terminal);
        (dialect.display_name, lookup, found)
    };
    Ok(DIALECTS.iter().map(look).collect())
}

impl Diagnosis {
    /// Whether both would connect.
    pub fn is_healthy(&self) -> bool {
        self.findings.iter().all(|finding| finding.end.connects())
    }

    pub fn to_json(&self) -> Value {
        let agents: Vec<Value> = self.findings.iter().map(Finding::to_json).collect();
        json!({ "ok": self.is_healthy(), "directory": self.directory, "agents": agents })
    }

    pub fn words(&self) -> String {
        self.findings.iter().map(Finding::words).collect::<Vec<_>>().join("\n")
    }
}

/// One command line, what it finds and how far it gets.
struct Finding {
    display_name: &'static str,
    lookup: Lookup,
    /// The companion of ours that it finds.
    found: Option<Found>,
    end: End,
}

/// How far a command line gets.
enum End {
    /// It reaches a companion that has both tools.
    Connects {
        host: &'static str,
        port: u16,
        path: Option<PathBuf>,
        server: String,
    },
    /// It starts a program that has both tools, and speaks with that.
    Starts { command: String, server: String },
    /// A rule stops it.
    Refuses(LookupFailure),
    /// Something answers, but it is not a companion as it should be.
    Fails { place: String, reason: String },
}

impl End {
    fn connects(&self) -> bool {
        matches!(self, Self::Connects { .. } | Self::Starts { .. })
    }
}

/// Dials what the command line would dial, in its order, until one answers.
async fn dial(lookup: &Lookup) -> End {
    let dials = match &lookup.outcome {
        LookupResult::Fails(refusal) => return End::Refuses(refusal.clone()),
        LookupResult::Connects(dials) => dials,
    };
    let mut first_failure = None;
    for dial in dials {
        let target = match dial {
            Dial::Http(target) => target,
            Dial::Stdio { command, arguments } => {
                let line = [std::slice::from_ref(command), arguments.as_slice()].concat().join(" ");
                let asked = program::ask(command, arguments, &me(), PATIENCE).await;
                match asked.and_then(|(server, tools)| check_tools(&tools).map(|()| server)) {
                    Ok(server) => return End::Starts { command: line, server },
                    Err(reason) => first_failure.get_or_insert(End::Fails {
                        place: format!("`{}`", printable_line(&line)),
                        reason,
                    }),
                };
                continue;
            }
        };
        match shake_hands(target).await {
            Ok(server) => {
                return End::Connects {
                    host: target.host,
                    port: target.port,
                    path: target.path.clone(),
                    server,
                };
            }
            Err(ClientError::Refused { .. }) => {}
            Err(ClientError::Unauthorized { .. }) => {
                first_failure.get_or_insert(End::Refuses(lookup.token_refused(target)));
            }
            Err(error) => {
                first_failure.get_or_insert(End::Fails {
                    place: format!("port {}", target.port),
                    reason: error.to_string(),
                });
            }
        }
    }
    first_failure.unwrap_or_else(|| End::Refuses(lookup.nobody_answered()))
}

/// Connects as the command line would and looks for the two tools without which it shows no changes.
async fn shake_hands(target: &Target) -> Result<String, ClientError> {
    let token = target.token.as_ref().map(Secret::reveal).unwrap_or_default();
    let client = Client::connect(target.host, target.port, token)
        .await?
        .timeout(PATIENCE);
    let server = client.initialize(&me()).await?.server_info;
    let tools = client.request("tools/list", Value::Null).await?;
    // The session would be dropped by itself after a while.
    let _ = client.end().await;
    let names: Vec<String> = tools["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["name"].as_str().map(str::to_owned))
        .collect();
    check_tools(&names).map_err(ClientError::NotMcp)?;
    Ok(format!("{} {}", server.name, server.version))
}

/// Without these two a command line shows no changes.
fn check_tools(names: &[String]) -> Result<(), String> {
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if has("openDiff") && has("closeDiff") {
        Ok(())
    } else {
        Err("it does not provide the openDiff and closeDiff tools".to_owned())
    }
}

/// Who the doctor says it is.
fn me() -> ClientInfo {
    ClientInfo {
        name: "alongside-doctor".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

impl Finding {
    fn to_json(&self) -> Value {
        let mut value = json!({
            "agent": self.lookup.agent,
            "displayName": self.display_name,
            "connects": self.end.connects(),
            "lookup": self.lookup,
        });
        if let Some(found) = &self.found {
            value["found"] = json!(found);
        }
        match &self.end {
            End::Connects {
                host,
                port,
                path,
                server,
            } => {
                value["target"] = json!({ "host": host, "port": port, "server": server });
                if let Some(path) = path {
                    value["target"]["file"] = json!(path);
                }
            }
            End::Starts { command, server } => value["target"] = json!({ "command": command, "server": server }),
            End::Refuses(refusal) => {
                value["refusal"] = json!(refusal);
                value["reason"] = json!(refusal.to_string());
                value["hint"] = json!(refusal.hint());
                if let Some(shown) = refusal.agent_message() {
                    value["shows"] = json!(shown);
                }
            }
            End::Fails { place, reason } => value["reason"] = json!(format!("{place}: {reason}")),
        }
        value
    }

    fn words(&self) -> String {
        let name = self.display_name;
        let mut words = match &self.end {
            End::Connects {
                host,
                port,
                path,
                server,
            } => {
                let file = path
                    .as_ref()
                    .map(|path| format!("  via {}\n", path.display()))
                    .unwrap_or_default();
                format!("✓ {name} would connect to {server} at {host}:{port}\n{file}")
            }
            End::Starts { command, server } => format!(
                "✓ {name} would start `{}` ({})\n",
                printable_line(command),
                printable_line(server)
            ),
            End::Refuses(refusal) => {
                let mut words = format!("✗ {name} would not connect: {refusal}\n  → {}\n", refusal.hint());
                if let Some(shown) = refusal.agent_message() {
                    words.push_str(&format!("  It reports: {}\n", printable_line(&shown)));
                }
                words
            }
            End::Fails { place, reason } => {
                format!(
                    "✗ {name} would not connect to {place}: {}\n  → Stop whatever is running there, or remove the discovery file or variable that points to it.\n",
                    printable_line(reason)
                )
            }
        };
        if let Some(found) = &self.found {
            words.push_str(&format!("  {name} started here {}\n", found.words()));
        }
        if let Some(identity) = &self.lookup.identity {
            words.push_str(&format!(
                "  Detected editor: {}\n",
                printable_line(&identity.display_name)
            ));
        }
        words.push_str(&format!("  Searched {}\n", self.lookup.directory.display()));
        for candidate in &self.lookup.candidates {
            words.push_str(&format!("    {}: {}\n", candidate.path.display(), candidate.verdict));
            if candidate.mode.is_some_and(|mode| mode & 0o077 != 0) {
                words.push_str("      warning: its token is readable by other users\n");
            }
        }
        words
    }
}

//! Whether each agent would reach a companion that works, and if not, which rule or problem stops it.

pub mod locks;
mod program;

use std::path::{Path, PathBuf};
use std::time::Duration;

use alongside_core::dialect::{ClientInfo, DIALECTS, Dialect, McpAgent};
use alongside_core::{HookAgent, Secret};
use alongside_discovery::Environment;
use alongside_discovery::lookup::locks::Advice;
use alongside_discovery::lookup::{self, Dial, Lookup, LookupFailure, LookupResult, Target};
use alongside_discovery::process::SystemProcesses;
use alongside_mcp::client::{Client, ClientError};
use alongside_protocol::{Empty, requests};
use anyhow::{Context, Result};
use locks::LockCheck;
use serde_json::{Value, json};

use crate::companion_record;
use crate::connect_target::ConnectTarget;
use crate::places::Places;
use alongside_core::printable::printable_line;

/// Both CLIs wait longer, but a companion on this machine responds at once or never.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

pub struct Diagnosis {
    directory: PathBuf,
    checks: Vec<AgentCheck>,
    lock_checks: Vec<LockCheck>,
    /// What is wrong with the directory's companion, such as a full disk.
    problems: Vec<String>,
}

/// Searches from a directory as each agent would, and connects.
pub async fn examine(directory: &Path) -> Result<Diagnosis> {
    let directory = alongside_platform::path::real(directory)
        .with_context(|| format!("{} is not a directory", directory.display()))?;
    let looking = {
        let directory = directory.clone();
        tokio::task::spawn_blocking(move || anyhow::Ok((look_up(&directory)?, locks::look_up(&directory))))
    };
    let (lookups, lock_lookups) = looking.await.context("cannot look for companions")??;
    let mut checks = Vec::new();
    for (display_name, lookup, target) in lookups {
        let result = dial(&lookup).await;
        checks.push(AgentCheck {
            display_name,
            advice: review_advice(&lookup),
            lookup,
            target,
            result,
        });
    }
    let mut lock_checks = Vec::new();
    for found in lock_lookups {
        lock_checks.push(LockCheck::new(found).await);
    }
    let problems = problems_at(&directory).await;
    Ok(Diagnosis {
        directory,
        checks,
        lock_checks,
        problems,
    })
}

/// Whether the agent, if it is installed, would change files without showing them.
fn review_advice(lookup: &Lookup) -> Option<Advice> {
    let agent = match lookup.agent {
        McpAgent::Gemini => HookAgent::Gemini,
        McpAgent::Qwen => HookAgent::Qwen,
    };
    let environment = Environment::current();
    let reason = lookup::unreviewed(agent, &environment, &lookup.working_directory)?;
    let advice = reason.advice(agent, environment.platform);
    environment.has_program(agent.id()).then_some(advice)
}

/// Nothing if there is no companion, or if it does not respond: the checks say so.
async fn problems_at(directory: &Path) -> Vec<String> {
    let status = async {
        let mut client = companion_record::connect_nearest(directory).await?;
        anyhow::Ok(client.call::<requests::Status>(Empty {}).await?)
    };
    status.await.map(|status| status.problems).unwrap_or_default()
}

/// What each agent, by its name, would find from a directory, and which of our companions that is. Blocks.
pub fn look_up(directory: &Path) -> Result<Vec<(&'static str, Lookup, Option<ConnectTarget>)>> {
    let records = companion_record::all(&Places::of_user()?);
    let mut environment = Environment::current();
    directory.clone_into(&mut environment.working_directory);
    let terminal = companion_record::ports_of_terminal(&environment);
    let processes = SystemProcesses::default();
    let look = |dialect: &'static Dialect| {
        let lookup = lookup::of(dialect.search?, &environment, &processes, directory);
        let target = ConnectTarget::from_lookup(&lookup, &records, &terminal);
        Some((dialect.display_name, lookup, target))
    };
    Ok(DIALECTS.iter().filter_map(look).collect())
}

impl Diagnosis {
    pub fn is_healthy(&self) -> bool {
        let connects = self.checks.iter().all(|check| check.result.connects());
        connects && self.lock_checks.iter().all(LockCheck::is_healthy) && self.problems.is_empty()
    }

    pub fn to_json(&self) -> Value {
        let checks = self.checks.iter().map(AgentCheck::to_json);
        let agents: Vec<Value> = checks.chain(self.lock_checks.iter().map(LockCheck::to_json)).collect();
        json!({ "ok": self.is_healthy(), "directory": self.directory, "agents": agents, "problems": self.problems })
    }

    pub fn to_text(&self) -> String {
        let warning = |problem: &String| format!("warning: {problem}\n");
        let checks = self.checks.iter().map(AgentCheck::to_text);
        let lock_checks = self.lock_checks.iter().filter_map(LockCheck::to_text);
        let exposures = Environment::current().exposures();
        checks
            .chain(lock_checks)
            .chain(exposures.iter().map(warning))
            .chain(self.problems.iter().map(warning))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

struct AgentCheck {
    display_name: &'static str,
    lookup: Lookup,
    /// Which of our companions it would pick.
    target: Option<ConnectTarget>,
    result: CheckResult,
    /// What does not stop the agent, but the user should know.
    advice: Option<Advice>,
}

/// How far an agent gets.
enum CheckResult {
    /// It reaches a companion that has both tools.
    Connects {
        host: &'static str,
        port: u16,
        path: Option<PathBuf>,
        server: String,
    },
    /// It starts a program that has both tools.
    Starts { command: String, server: String },
    /// A rule stops it.
    Refuses(LookupFailure),
    /// Something responds, but not like a companion.
    Fails { place: String, reason: String },
}

impl CheckResult {
    fn connects(&self) -> bool {
        matches!(self, Self::Connects { .. } | Self::Starts { .. })
    }
}

/// Connects to what the agent would connect to, in its order, until one responds.
async fn dial(lookup: &Lookup) -> CheckResult {
    let dials = match &lookup.outcome {
        LookupResult::Fails(refusal) => return CheckResult::Refuses(refusal.clone()),
        LookupResult::Connects(dials) => dials,
    };
    let mut first_failure = None;
    for dial in dials {
        let target = match dial {
            Dial::Http(target) => target,
            Dial::Stdio { command, arguments } => {
                let line = [std::slice::from_ref(command), arguments.as_slice()].concat().join(" ");
                let asked = program::ask(command, arguments, &client_info(), RESPONSE_TIMEOUT).await;
                match asked.and_then(|(server, tools)| check_tools(&tools).map(|()| server)) {
                    Ok(server) => return CheckResult::Starts { command: line, server },
                    Err(reason) => first_failure.get_or_insert(CheckResult::Fails {
                        place: format!("`{}`", printable_line(&line)),
                        reason,
                    }),
                };
                continue;
            }
        };
        match handshake(target).await {
            Ok(server) => {
                return CheckResult::Connects {
                    host: target.host,
                    port: target.port,
                    path: target.path.clone(),
                    server,
                };
            }
            Err(ClientError::Refused { .. }) => {}
            Err(ClientError::Unauthorized { .. }) => {
                first_failure.get_or_insert(CheckResult::Refuses(lookup.token_refused(target)));
            }
            Err(error) => {
                first_failure.get_or_insert(CheckResult::Fails {
                    place: format!("port {}", target.port),
                    reason: error.to_string(),
                });
            }
        }
    }
    first_failure.unwrap_or_else(|| CheckResult::Refuses(lookup.nobody_answered()))
}

/// Connects as the agent would and looks for the two tools without which it shows no changes.
async fn handshake(target: &Target) -> Result<String, ClientError> {
    let token = target.token.as_ref().map(Secret::reveal).unwrap_or_default();
    let client = Client::connect(target.host, target.port, token)
        .await?
        .timeout(RESPONSE_TIMEOUT);
    let server = client.initialize(&client_info()).await?.server_info;
    let tools = client.request("tools/list", Value::Null).await?;
    // Otherwise the session would expire after a while.
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

/// Without these two an agent shows no changes.
fn check_tools(names: &[String]) -> Result<(), String> {
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if has("openDiff") && has("closeDiff") {
        Ok(())
    } else {
        Err("it does not provide the openDiff and closeDiff tools".to_owned())
    }
}

fn client_info() -> ClientInfo {
    ClientInfo {
        name: "alongside-doctor".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

impl AgentCheck {
    fn to_json(&self) -> Value {
        let mut value = json!({
            "agent": self.lookup.agent,
            "displayName": self.display_name,
            "connects": self.result.connects(),
            "lookup": self.lookup,
            "advice": self.advice.iter().collect::<Vec<_>>(),
        });
        if let Some(target) = &self.target {
            value["found"] = json!(target);
        }
        match &self.result {
            CheckResult::Connects {
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
            CheckResult::Starts { command, server } => {
                value["target"] = json!({ "command": command, "server": server });
            }
            CheckResult::Refuses(refusal) => {
                value["refusal"] = json!(refusal);
                value["reason"] = json!(refusal.to_string());
                value["hint"] = json!(refusal.hint());
                if let Some(shown) = refusal.agent_message() {
                    value["shows"] = json!(shown);
                }
            }
            CheckResult::Fails { place, reason } => value["reason"] = json!(format!("{place}: {reason}")),
        }
        value
    }

    fn to_text(&self) -> String {
        let name = self.display_name;
        let mut text = match &self.result {
            CheckResult::Connects {
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
            CheckResult::Starts { command, server } => format!(
                "✓ {name} would start `{}` ({})\n",
                printable_line(command),
                printable_line(server)
            ),
            CheckResult::Refuses(refusal) => {
                let mut text = format!("✗ {name} would not connect: {refusal}\n  → {}\n", refusal.hint());
                if let Some(shown) = refusal.agent_message() {
                    text.push_str(&format!("  It reports: {}\n", printable_line(&shown)));
                }
                text
            }
            CheckResult::Fails { place, reason } => {
                format!(
                    "✗ {name} would not connect to {place}: {}\n  → Stop whatever is running there, or remove the discovery file or variable that points to it.\n",
                    printable_line(reason)
                )
            }
        };
        text.extend(self.advice.iter().map(locks::note));
        if let Some(target) = &self.target {
            text.push_str(&format!("  {name} started here {}\n", target.to_text()));
        }
        if let Some(identity) = &self.lookup.identity {
            text.push_str(&format!(
                "  Detected editor: {}\n",
                printable_line(&identity.display_name)
            ));
        }
        text.push_str(&format!("  Searched {}\n", self.lookup.directory.display()));
        for candidate in &self.lookup.candidates {
            text.push_str(&format!("    {}: {}\n", candidate.path.display(), candidate.verdict));
            if candidate.mode.is_some_and(|mode| mode & 0o077 != 0) {
                text.push_str("      warning: its token is readable by other users\n");
            }
        }
        text
    }
}

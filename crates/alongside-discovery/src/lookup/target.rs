//! What an agent connects to.

use std::path::PathBuf;

use alongside_core::Secret;
use serde::Serialize;
use serde_json::Value;

use crate::document::{self, Document};
use crate::{Environment, node_path, place};

/// The loopback address, spelled as in both agents.
pub const LOCAL_HOST: &str = "127.0.0.1";

/// The name of the container's host inside the container.
pub const CONTAINER_HOST: &str = "host.docker.internal";

/// One attempt by an agent to reach a companion.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Dial {
    /// POST to `http://<host>:<port>/mcp`.
    Http(Target),
    /// Start a program and talk to it over stdio.
    #[serde(rename_all = "camelCase")]
    Stdio { command: String, arguments: Vec<String> },
}

/// A port that an agent connects to.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// [`CONTAINER_HOST`] may not resolve; connecting then fails like any other connection.
    pub host: &'static str,
    pub port: u16,
    /// The token to send, if known. Never printed or serialized.
    #[serde(skip)]
    pub token: Option<Secret>,
    /// The file with the token; `None` if it comes from a variable or there is none.
    pub token_path: Option<PathBuf>,
    /// The editor name that the agent shows once connected.
    pub display_name: String,
    /// The PID from the file's name or its `ppid`.
    pub pid: Option<u64>,
    /// The file with the port; `None` if it comes from a variable.
    pub path: Option<PathBuf>,
}

/// The port as Gemini CLI parses it: the number at the start of the string.
pub(super) fn lenient_port(value: &Value) -> Option<u16> {
    let number = node_path::parse_integer(&document::to_text(value))?;
    u16::try_from(number).ok().filter(|port| *port > 0)
}

/// The port as Qwen Code uses it: put into a URL as is.
pub(super) fn strict_port(value: &Value) -> Option<u16> {
    let number = place::number(&document::to_text(value))?;
    u16::try_from(number).ok().filter(|port| *port > 0)
}

/// The command that a file says to start.
pub(super) fn stdio_of(document: Option<&Document>) -> Option<Dial> {
    let (command, arguments) = document?.stdio()?;
    Some(Dial::Stdio { command, arguments })
}

/// The command that the variables say to start.
pub(super) fn stdio_from_variables(environment: &Environment, command: &str, arguments: &str) -> Option<Dial> {
    let command = environment.variable(command)?.to_owned();
    let arguments = environment
        .variable(arguments)
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    let arguments = document::strings(arguments.as_ref());
    Some(Dial::Stdio { command, arguments })
}

//! What an agent dials.

use std::path::PathBuf;

use alongside_core::Secret;
use serde::Serialize;
use serde_json::Value;

use crate::document::{self, Document};
use crate::{Environment, node_path, place};

/// The loopback address, written as both agents write it.
pub const LOCAL_HOST: &str = "127.0.0.1";

/// How the machine that a container runs on is called inside it.
pub const CONTAINER_HOST: &str = "host.docker.internal";

/// One attempt of an agent to reach a companion.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Dial {
    /// It posts to `http://<host>:<port>/mcp`.
    Http(Target),
    /// It starts a program and speaks over its standard input and output.
    #[serde(rename_all = "camelCase")]
    Stdio {
        /// The program.
        command: String,
        arguments: Vec<String>,
    },
}

/// A port that an agent dials.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The host. [`CONTAINER_HOST`] may not resolve; then dialling it fails like anything else.
    pub host: &'static str,
    pub port: u16,
    /// The token that is sent, if one is known. It is never printed or serialised.
    #[serde(skip)]
    pub token: Option<Secret>,
    /// The file that the token is from; `None` if it is from a variable, or there is none.
    pub token_path: Option<PathBuf>,
    /// The editor that the agent shows as connected.
    pub display_name: String,
    /// The process id that the file's name or its `ppid` gives.
    pub pid: Option<u64>,
    /// The file that names the port; `None` if it is from a variable.
    pub path: Option<PathBuf>,
}

/// The port that Gemini CLI reads from a value: the number that its text begins with.
pub(super) fn lenient_port(value: &Value) -> Option<u16> {
    let number = node_path::parse_integer(&document::to_text(value))?;
    u16::try_from(number).ok().filter(|port| *port > 0)
}

/// The port that Qwen Code reads from a value: it goes into a URL as it is.
pub(super) fn strict_port(value: &Value) -> Option<u16> {
    let number = place::number(&document::to_text(value))?;
    u16::try_from(number).ok().filter(|port| *port > 0)
}

/// The program that a file says to start.
pub(super) fn stdio_of(document: Option<&Document>) -> Option<Dial> {
    let (command, arguments) = document?.stdio()?;
    Some(Dial::Stdio { command, arguments })
}

/// The program that the variables say to start.
pub(super) fn stdio_from_variables(environment: &Environment, command: &str, arguments: &str) -> Option<Dial> {
    let command = environment.variable(command)?.to_owned();
    let arguments = environment
        .variable(arguments)
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    let arguments = document::strings(arguments.as_ref());
    Some(Dial::Stdio { command, arguments })
}

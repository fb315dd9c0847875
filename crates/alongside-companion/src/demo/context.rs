//! What the agents receive that show no changes to editors.

use std::time::Duration;

use alongside_core::Secret;
use alongside_core::dialect::ClientInfo;
use alongside_discovery::Environment;
use alongside_mcp::client::SocketClient;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::time::timeout;

use super::ContextAgent;

/// Codex waits this long.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The context, in the agent's own form.
pub async fn context_for(agent: ContextAgent, port: u16, token: &Secret, environment: &Environment) -> Result<Value> {
    let asking = async {
        match agent {
            ContextAgent::Opencode => ask_as_opencode(port, token).await,
            ContextAgent::Codex => ask_as_codex(environment).await,
        }
    };
    timeout(TIMEOUT, asking)
        .await
        .context("the companion did not respond")?
}

async fn ask_as_opencode(port: u16, token: &Secret) -> Result<Value> {
    let mut socket = SocketClient::connect(port, Some(token), None).await?;
    let me = ClientInfo {
        name: "opencode".to_owned(),
        version: "0.0.0".to_owned(),
    };
    socket.initialize(&me).await?;
    loop {
        let mut message = socket.next().await?;
        if message["method"] == "selection_changed" {
            socket.end().await;
            return Ok(message["params"].take());
        }
    }
}

#[cfg(unix)]
async fn ask_as_codex(environment: &Environment) -> Result<Value> {
    use alongside_wire::length_prefixed::{read_frame, write_frame};
    use serde_json::json;
    use tokio::net::UnixStream;

    const MAX_BYTES: usize = 4 * 1024 * 1024;

    let mut stream = None;
    for socket in environment.codex_sockets() {
        if let Ok(connected) = UnixStream::connect(&socket).await {
            stream = Some(connected);
            break;
        }
    }
    let mut stream = stream.context("no companion listens where Codex looks")?;
    let request = json!({
        "type": "request",
        "requestId": "demo",
        "sourceClientId": "codex-tui",
        "version": 0,
        "method": "ide-context",
        "params": { "workspaceRoot": environment.working_directory },
    });
    write_frame(&mut stream, &request.to_string()).await?;
    let response = read_frame(&mut stream, MAX_BYTES).await?;
    let mut response: Value = serde_json::from_slice(&response.context("the companion closed the connection")?)?;
    if response["resultType"] != "success" {
        bail!("the companion responded with {}", response["error"]);
    }
    Ok(response["result"]["ideContext"].take())
}

#[cfg(not(unix))]
#[expect(clippy::unused_async, reason = "the other one waits")]
async fn ask_as_codex(_: &Environment) -> Result<Value> {
    bail!("Codex is not supported on Windows yet")
}

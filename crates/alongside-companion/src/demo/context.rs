//! What the agents receive that show no changes to editors.

use std::time::Duration;

use alongside_core::context::Cursor;
use alongside_core::dialect::ClientInfo;
use alongside_discovery::{Announcement, Environment};
use alongside_front::client::Client;
use alongside_mcp::client::SocketClient;
use alongside_protocol::{Empty, FilePath, Focus, requests};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::time::timeout;

use super::ContextAgent;
use super::sample::Sample;
use crate::companion_record::CompanionRecord;

/// Codex waits this long.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Between two attempts to get the context as Codex does.
const PAUSE: Duration = Duration::from_millis(50);

/// The context, in the agent's own form. If no file is active, a sample file is, until the agent has the context.
pub async fn context_for(agent: ContextAgent, companion: &CompanionRecord, environment: &Environment) -> Result<Value> {
    let mut front_end = companion.connect(false).await?;
    let sample = focus_sample_if_needed(&mut front_end).await?;
    let asking = async {
        match agent {
            ContextAgent::Opencode => ask_as_opencode(&companion.announcement()).await,
            // Codex asks for the context, so nothing tells it that a focus has been published.
            ContextAgent::Codex => loop {
                let context = ask_as_codex(environment).await?;
                if !context["activeFile"].is_null() {
                    break Ok(context);
                }
                tokio::time::sleep(PAUSE).await;
            },
        }
    };
    let context = timeout(TIMEOUT, asking).await;
    if let Some(sample) = sample {
        let path = sample.path().to_owned();
        front_end.call::<requests::ContextClose>(FilePath { path }).await?;
    }
    context.context("the companion did not respond")?
}

/// Agents are sent no selection while no file is active, and the demo would have nothing to show.
async fn focus_sample_if_needed(front_end: &mut Client) -> Result<Option<Sample>> {
    let shown = front_end.call::<requests::ContextShow>(Empty {}).await?;
    let files = &shown.context.workspace_state.open_files;
    if files.iter().any(|file| file.is_active == Some(true)) {
        return Ok(None);
    }
    let sample = tokio::task::spawn_blocking(Sample::create).await??;
    let cursor = Some(Cursor { line: 3, character: 3 });
    let focus = Focus {
        path: sample.path().to_owned(),
        cursor,
        selection_start: cursor,
        selected_text: Some("bread".to_owned()),
    };
    front_end.call::<requests::ContextFocus>(focus).await?;
    Ok(Some(sample))
}

async fn ask_as_opencode(companion: &Announcement) -> Result<Value> {
    let mut socket = SocketClient::connect(companion.port, Some(&companion.token), None).await?;
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

    const MAX_BYTES: usize = 4 * 1024 * 1024;

    let mut stream = connect_to_router(environment).await;
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

/// Tries again while there is none: a companion that has just started competes for the socket after it is announced.
#[cfg(unix)]
async fn connect_to_router(environment: &Environment) -> tokio::net::UnixStream {
    loop {
        for socket in environment.codex_sockets() {
            if let Ok(connected) = tokio::net::UnixStream::connect(&socket).await {
                return connected;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(not(unix))]
#[expect(clippy::unused_async, reason = "the other one waits")]
async fn ask_as_codex(_: &Environment) -> Result<Value> {
    bail!("Codex is not supported on Windows yet")
}

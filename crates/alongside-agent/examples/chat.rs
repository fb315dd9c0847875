//! A chat with `qwen serve` in the terminal.
//!
//! ```text
//! qwen serve                                       # in a project directory, in another terminal
//! cargo run -p alongside-agent --example chat      # here
//! ```
//!
//! Environment variables: `QWEN_IDE_DAEMON_URL` (default `http://127.0.0.1:4170`), `QWEN_SERVER_TOKEN`, and `CA_FILE` for https.
//!
//! Type a prompt. `/cancel` cancels the turn, `/model` and `/mode` switch, a number responds to a permission request, `/quit` exits.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::io::Write;

use alongside_agent::conversation::{PermissionDecision, PermissionRequest, TurnEnd};
use alongside_agent::daemon::DaemonOptions;
use alongside_agent::settings::{DaemonSettings, resolve_daemon};
use alongside_agent::{AgentCommand, AgentEvent, AgentManager, AgentTarget};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let settings = DaemonSettings {
        enabled: Some(true),
        ca_file: std::env::var_os("CA_FILE").map(Into::into),
        ..DaemonSettings::default()
    };
    let environment = |name: &str| std::env::var(name).ok();
    let Some(daemon) = resolve_daemon(&settings, environment, |path| std::fs::read_to_string(path))? else {
        return Ok(());
    };
    let (manager, mut events) = AgentManager::new();
    let options = DaemonOptions {
        address: daemon.address,
        token: daemon.token,
        ca_file: daemon.ca_file,
        // Otherwise a model decides what needs your permission.
        mode: Some("default".to_owned()),
        ..DaemonOptions::default()
    };
    if let Err(error) = manager.connect(AgentTarget::Daemon(Box::new(options))).await {
        println!("{error}");
        println!("{}", error.hint().unwrap_or_default());
        return Ok(());
    }
    let mut lines = BufReader::new(stdin()).lines();
    let mut approval: Option<Box<PermissionRequest>> = None;
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(AgentEvent::ApprovalOpened { request }) => {
                    show_approval(&request);
                    approval = Some(request);
                }
                Some(AgentEvent::ApprovalClosed { .. }) => approval = None,
                Some(event) => show(&event),
                None => return Ok(()),
            },
            line = lines.next_line() => {
                let Some(line) = line? else { return Ok(()) };
                let command = match (line.trim().split_once(' ').unwrap_or((line.trim(), "")), approval.as_deref()) {
                    (("", _), _) => continue,
                    (("/quit", _), _) => return Ok(()),
                    (("/cancel", _), _) => AgentCommand::Cancel,
                    (("/model", model), _) => AgentCommand::SetModel { model_id: model.to_owned() },
                    (("/mode", mode), _) => AgentCommand::SetMode { mode_id: mode.to_owned() },
                    ((number, _), Some(request)) => answer(request, number),
                    _ => AgentCommand::Prompt { blocks: vec![line.as_str().into()], id: None },
                };
                if let Err(error) = manager.execute(command).await {
                    println!("! {error}");
                }
            }
        }
    }
}

/// The option with this number; anything else is a "no".
fn answer(request: &PermissionRequest, number: &str) -> AgentCommand {
    let chosen = number
        .parse::<usize>()
        .ok()
        .and_then(|number| request.options.get(number.checked_sub(1)?));
    AgentCommand::Answer {
        request_id: request.request_id.clone(),
        decision: chosen.map_or(PermissionDecision::Cancel, |option| {
            PermissionDecision::select(&option.option_id)
        }),
    }
}

fn show_approval(request: &PermissionRequest) {
    println!("\n? {}", request.tool_call.title);
    for question in &request.questions {
        println!("  {}", question.question);
    }
    for (index, option) in request.options.iter().enumerate() {
        println!("  {}. {}", index + 1, option.name);
    }
}

fn show(event: &AgentEvent) {
    match event {
        AgentEvent::Connected(session) => {
            println!("{} in {}", session.agent, session.workspace);
            println!("Files, MCP servers, skills and credentials are those of the daemon.");
        }
        AgentEvent::UserMessage { content, .. } => println!("\n> {}", content.as_text().unwrap_or("…")),
        AgentEvent::AssistantChunk { content, .. } => {
            print!("{}", content.as_text().unwrap_or("…"));
            let _ = std::io::stdout().flush();
        }
        AgentEvent::ToolCall { call, .. } => println!("\n* {} ({})", call.title, call.status.as_str()),
        AgentEvent::TurnEnded { end, .. } => match end {
            TurnEnd::Completed { stop_reason } | TurnEnd::Cancelled { stop_reason } => println!("\n-- {stop_reason}"),
            TurnEnd::Failed { message, .. } => println!("\n-- failed: {message}"),
        },
        AgentEvent::Models(models) => println!("model: {}", models.current.as_deref().unwrap_or("?")),
        AgentEvent::ModelChanged { model_id } => println!("model: {model_id}"),
        AgentEvent::ModeChanged { mode_id } => println!("mode: {mode_id}"),
        AgentEvent::Notice { message, .. } => println!("! {message}"),
        AgentEvent::Interrupted { reason, .. } => println!("\n! {reason}; trying again"),
        AgentEvent::Disconnected { reason, .. } => println!("\n! {reason}"),
        _ => {}
    }
}

//! `alongside mcp-stdio`: relays MCP over stdio, for agents that launch their companion as a command.

use std::process::ExitCode;

use alongside_mcp::client::{Client, stdio};
use alongside_mcp::tool_server;
use anyhow::{Context, Result, anyhow};

use super::editor_tools::EditorTools;
use crate::command_line::Common;
use alongside_companion::companion_record;
use alongside_companion::places::Places;

pub(crate) async fn run(common: &Common) -> Result<ExitCode> {
    let directory = common.directory();
    let announcement = companion_record::nearest(&Places::of_user()?, &directory)
        .map(|record| record.announcement())
        .ok_or_else(|| {
            anyhow!(
                "no companion is running for {}; run `alongside` there to start one",
                directory.display()
            )
        })?;
    let client = Client::new("127.0.0.1", announcement.port, announcement.token.reveal())?;
    stdio::relay(client, tokio::io::stdin(), tokio::io::stdout())
        .await
        .context("cannot communicate with the agent")?;
    Ok(ExitCode::SUCCESS)
}

/// `alongside mcp-stdio --tools`: an MCP server for the model.
pub(crate) async fn serve_tools(common: &Common) -> Result<ExitCode> {
    let tools = EditorTools {
        directory: common.directory(),
    };
    tool_server::serve(tools, tokio::io::stdin(), tokio::io::stdout())
        .await
        .context("cannot communicate with the agent")?;
    Ok(ExitCode::SUCCESS)
}

//! A file for each command.

mod bridge;
mod chat;
mod completions;
mod context;
mod demo;
mod detect;
mod diff;
mod doctor;
mod editor_tools;
mod hook;
mod install;
mod lsp;
mod man;
mod mcp_stdio;
mod page;
mod review;
mod run;
mod send_selection;
mod serve;
mod status;
mod stop;

use std::process::ExitCode;

use anyhow::Result;

use crate::command_line::{Command, CommandLine, Serve};

/// Does what was typed.
pub(crate) async fn run(command_line: CommandLine) -> Result<ExitCode> {
    let CommandLine { common, command } = command_line;
    match command {
        None => serve::run(&common, Serve::default()).await,
        Some(Command::Serve(serve)) => serve::run(&common, serve).await,
        Some(Command::Bridge(bridge)) => bridge::run(&common, bridge).await,
        Some(Command::Lsp(lsp)) => lsp::run(&common, lsp).await,
        Some(Command::Context(context)) => context::run(&common, context).await,
        Some(Command::Diff(diff)) => diff::run(&common, diff).await,
        Some(Command::Review(review)) => review::run(&common, review).await,
        Some(Command::Status { line: false }) => status::run(&common).await,
        Some(Command::Status { line: true }) => status::line(&common).await,
        Some(Command::Page { open }) => page::run(&common, open).await,
        Some(Command::Chat(chat)) => chat::run(&common, chat).await,
        Some(Command::Stop(stop)) => stop::run(&common, &stop).await,
        Some(Command::Doctor) => doctor::run(&common).await,
        Some(Command::SendSelection { session }) => send_selection::run(&common, session).await,
        Some(Command::Demo(demo)) => demo::run(&common, demo).await,
        Some(Command::Run(run)) => run::run(&common, run).await,
        Some(Command::Detect) => Ok(detect::run(&common)),
        Some(Command::Install(install)) => install::install(&common, &install),
        Some(Command::Uninstall(uninstall)) => install::uninstall(&common, &uninstall),
        Some(Command::Completions { shell }) => Ok(completions::run(&common, shell)),
        Some(Command::Man { out }) => man::run(&common, out.as_deref()),
        Some(Command::Hook { agent }) => Ok(hook::run(agent).await),
        Some(Command::McpStdio { tools: false }) => mcp_stdio::run(&common).await,
        Some(Command::McpStdio { tools: true }) => mcp_stdio::serve_tools(&common).await,
    }
}

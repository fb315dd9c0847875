//! `alongside` puts any terminal coding agent alongside any editor.
//!
//! This crate is the binary: the command line, the wiring of the other crates, and exit codes. `companion` is the running
//! companion; `commands` has a file for each command.

mod command_line;
mod commands;
mod companion;
mod doctor;
mod output;
mod places;
mod printable;
mod running;
mod settings;
mod signals;

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use tracing_subscriber::EnvFilter;

use command_line::CommandLine;

fn main() -> ExitCode {
    let command_line = CommandLine::parse();
    let output = command_line.common.output();
    start_logging(command_line.common.verbose);
    let result = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the asynchronous runtime")
        .and_then(|runtime| {
            let result = runtime.block_on(commands::run(command_line));
            // A thread that waits for standard input would keep the process alive.
            runtime.shutdown_background();
            result
        });
    result.unwrap_or_else(|error| {
        output.error(&error);
        ExitCode::FAILURE
    })
}

/// Logs go to standard error: standard output belongs to answers and protocols.
fn start_logging(verbose: bool) {
    let default = if verbose {
        "alongside=debug,alongside_mcp=debug,alongside_front=debug,info"
    } else {
        "error"
    };
    let filter = EnvFilter::try_from_env("ALONGSIDE_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .init();
}

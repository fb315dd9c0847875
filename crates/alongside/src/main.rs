//! `alongside` puts any terminal coding agent alongside any editor.
//!
//! This crate is the binary: command-line parsing, output and exit codes. `commands` has one file per command.

mod command_line;
mod commands;
mod output;
mod printable;
mod signals;

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use command_line::CommandLine;

/// More than all files that may be read at the same time (ARCHITECTURE.md, bounds).
const BLOCKING_THREADS: usize = 192;

fn main() -> ExitCode {
    let command_line = CommandLine::parse();
    if command_line.is_companion() {
        alongside_companion::memory::configure();
    }
    let output = command_line.common.output();
    start_logging(command_line.common.verbose);
    let result = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build()
        .context("cannot start the async runtime")
        .and_then(|runtime| {
            let result = runtime.block_on(commands::run(command_line));
            // A thread that reads stdin would keep the process alive.
            runtime.shutdown_background();
            result
        });
    result.unwrap_or_else(|error| {
        output.error(&error);
        ExitCode::FAILURE
    })
}

/// Logs go to stderr, because stdout carries results and protocols. `ALONGSIDE_LOG` sets the filter, as in
/// `alongside_mcp=trace,info`.
fn start_logging(verbose: bool) {
    let default = Targets::new().with_default(if verbose {
        LevelFilter::DEBUG
    } else {
        LevelFilter::ERROR
    });
    let configured = std::env::var("ALONGSIDE_LOG").ok().and_then(|text| text.parse().ok());
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        // It would report a closed stderr on stderr, and panic.
        .log_internal_errors(false)
        .with_target(false);
    tracing_subscriber::registry()
        .with(layer.with_filter(configured.unwrap_or(default)))
        .init();
}

//! `cargo xtask load [--minutes M]`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command's output")]

use std::process::ExitCode;
use std::time::Duration;

use alongside_trials::load::{Options, run};

const USAGE: &str = "Usage: cargo xtask load [--minutes M]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let minutes = match arguments.as_slice() {
        [] => Some(10.0),
        ["--minutes", minutes] => minutes.parse().ok(),
        _ => None,
    };
    let Some(duration) = minutes.and_then(|minutes: f64| Duration::try_from_secs_f64(minutes * 60.0).ok()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let report = match runtime {
        Ok(runtime) => runtime.block_on(run(&Options { duration })),
        Err(error) => {
            eprintln!("cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("{report}");
    if report.failures().is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

//! `cargo xtask faults [--kills N] [--seed S] [--verbose]`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command's output")]

use std::process::ExitCode;

use alongside_testing::Dice;
use alongside_trials::faults::{Invariant, Options, Report, disk, run};

const USAGE: &str = "Usage: cargo xtask faults [--kills N] [--seed S] [--verbose]";

fn main() -> ExitCode {
    if std::env::var_os(alongside_testing::agent::VARIABLE).is_some() {
        alongside_testing::agent::run();
    }
    let Some(options) = parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    disk::enter_namespace();
    println!(
        "seed {} ({} kills): the same seed is the same plan",
        options.seed, options.kills
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let report = match runtime {
        Ok(runtime) => runtime.block_on(run(&options)),
        Err(error) => {
            eprintln!("cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    print(&options, &report);
    if report.violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options {
        kills: 100,
        seed: Dice::fresh_seed(),
        verbose: false,
    };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--kills" => options.kills = arguments.next()?.parse().ok()?,
            "--seed" => options.seed = arguments.next()?.parse().ok()?,
            "--verbose" => options.verbose = true,
            _ => return None,
        }
    }
    Some(options)
}

fn print(options: &Options, report: &Report) {
    let seconds = report.duration.as_secs_f64();
    println!(
        "{} kills in {} rounds, {seconds:.0} s, seed {}",
        report.kills, report.rounds, options.seed
    );
    for (what, count) in &report.counts {
        println!("  {count:>7} {what}");
    }
    println!("violations:");
    for invariant in Invariant::ALL {
        let count = report
            .violations
            .iter()
            .filter(|(_, violated, _)| *violated == invariant)
            .count();
        println!("  {count:>7} {}", invariant.describe());
    }
}

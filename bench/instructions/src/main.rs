//! Instruction counts of the hot paths: deterministic where times are not, so that a regression of a few percent fails on a busy machine too.
//!
//! Each path runs in a process of its own under callgrind, which counts only what [`counted`] calls. `cargo xtask instructions` builds
//! this program and compares its counts with `bench/instructions.json`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod callgrind;
mod paths;
mod record;

use std::env;
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::record::{Comparison, Record};

const USAGE: &str = "usage: alongside-instructions check FILE | write FILE ENVIRONMENT | run PATH";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["check", file] => check(Path::new(file)),
        ["write", file, environment] => write(Path::new(file), environment),
        ["run", path] => run(path),
        _ => Err(anyhow::anyhow!(USAGE)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn check(file: &Path) -> Result<()> {
    let record = Record::read(file)?;
    let comparison = Comparison::new(&record, &callgrind::count_all()?);
    print!("{comparison}");
    if comparison.has_regression() {
        bail!(
            "some paths need more than {} % more instructions than {} says, or are not in it. Find out why: \
             `valgrind --tool=callgrind target/instructions/alongside-instructions run PATH` and `callgrind_annotate` show where. \
             If the cost is wanted, run `cargo xtask instructions --write` and give the reason in the commit message",
            record.tolerance_percent,
            file.display()
        );
    }
    Ok(())
}

fn write(file: &Path, environment: &str) -> Result<()> {
    let previous = Record::read(file).unwrap_or_default();
    let counts = callgrind::count_all()?;
    print!("{}", Comparison::new(&previous, &counts));
    Record {
        measured_with: environment.to_owned(),
        instructions: counts,
        ..previous
    }
    .write(file)
}

fn run(name: &str) -> Result<()> {
    let path = paths::PATHS.iter().find(|(known, _)| *known == name);
    let (_, path) = path.with_context(|| format!("unknown path `{name}`"))?;
    path()
}

/// Runs what is counted: callgrind collects from the entry of this function to its end.
#[inline(never)]
fn counted<T>(work: impl FnOnce() -> T) -> T {
    black_box(work())
}

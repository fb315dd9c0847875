//! The driver of `cargo xtask bench`, which builds everything and says where it is.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command's output")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use alongside_bench::processes::load_average;
use alongside_bench::results::{PARTIAL_PATH, Results, machine};
use alongside_bench::row::Row;
use alongside_bench::run::{Options, Run};
use alongside_bench::subject::Programs;
use alongside_bench::{document, scenarios, supervisor, table};
use anyhow::{Context, Result, bail};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let options = options(std::env::args().skip(1))?;
    let root = path("ALONGSIDE_ROOT")?;
    if options.write {
        document::write(&root, &Results::read(&root)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !supervisor::is_worker() {
        return supervisor::supervise(std::env::args_os().skip(1));
    }
    supervisor::stop_with_supervisor();
    // A part of it, or a few rounds, are not what documents should say.
    let is_whole = !options.quick && options.only.is_none();
    let run = Run::new(programs()?, options, &root)?;
    let before = load_average();
    let mut results = Results {
        machine: machine(),
        program: program(&run.programs.ours)?,
        node: version(&run.programs.node.0)?.trim_start_matches('v').to_owned(),
        load: (before, before),
        rows: Vec::new(),
    };
    let measured = measure(&run, |rows| {
        results.rows.extend(rows);
        results.load.1 = load_average();
        if is_whole { results.write_partial(&root) } else { Ok(()) }
    });
    if let Err(error) = measured {
        if !results.rows.is_empty() {
            print(&results);
        }
        if is_whole {
            eprintln!("bench: what was measured before the failure is in {PARTIAL_PATH}");
        }
        return Err(error);
    }
    let concluded = print(&results);
    let missing: Vec<&str> = results.missing().collect();
    if !missing.is_empty() {
        bail!("the run is not complete: {}", missing.join("; "));
    }
    if is_whole {
        results.write(&root)?;
        document::write_charts(&root, &results)?;
    }
    Ok(concluded)
}

/// Prints the table. It is a failure if a bar has no conclusion.
fn print(results: &Results) -> ExitCode {
    let rows = &results.rows;
    println!("Measured: {}\n", results.program);
    println!("{}", table::text(rows));
    println!("In brackets: a multiple of alongside's figure. ± is half the distance of the quartiles of all rounds.");
    println!(
        "Load average {:.2} before, {:.2} after.",
        results.load.0, results.load.1
    );
    let open = table::open_bars(rows);
    for (verdict, bar) in &open {
        println!("{bar}: {}", verdict.text());
    }
    let undecided = open.iter().filter(|(verdict, _)| !verdict.is_conclusion()).count();
    if undecided == 0 {
        return ExitCode::SUCCESS;
    }
    eprintln!("bench: no conclusion about {undecided} of the bars; run it again when the machine is idle");
    ExitCode::FAILURE
}

fn path(name: &str) -> Result<PathBuf> {
    let value = std::env::var_os(name).map(PathBuf::from);
    value.with_context(|| format!("{name} is not set; run `cargo xtask bench`"))
}

fn programs() -> Result<Programs> {
    Ok(Programs {
        ours: path("ALONGSIDE_BIN")?,
        node: (path("ALONGSIDE_NODE")?, path("ALONGSIDE_BENCH_NODE")?),
        rmcp: path("ALONGSIDE_BENCH_RMCP")?,
        floor: path("ALONGSIDE_BENCH_FLOOR")?,
    })
}

fn version(program: &Path) -> Result<String> {
    let output = Command::new(program).arg("--version").output();
    let output = output.with_context(|| format!("cannot start {}", program.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Its version, and the commit if `cargo xtask bench` built it.
fn program(program: &Path) -> Result<String> {
    let version = version(program)?;
    let commit = std::env::var("ALONGSIDE_BENCH_COMMIT").ok();
    Ok(commit.map_or(version.clone(), |commit| format!("{version} (commit {commit})")))
}

/// Passes on the rows of each scenario as soon as it is done.
fn measure(run: &Run, mut done: impl FnMut(Vec<Row>) -> Result<()>) -> Result<()> {
    let mut names = Vec::new();
    let mut measured = 0;
    for mut scenario in scenarios::all() {
        names.push(scenario.name());
        if run
            .options
            .only
            .as_deref()
            .is_some_and(|only| !scenario.name().contains(only))
        {
            continue;
        }
        eprint!("bench: {} …", scenario.name());
        let start = Instant::now();
        let rows = scenario.run(run);
        eprintln!(" {} s", start.elapsed().as_secs());
        done(rows.with_context(|| format!("cannot measure {}", scenario.name()))?)?;
        measured += 1;
    }
    if measured == 0 {
        bail!("nothing to measure; expected one of {}", names.join(", "));
    }
    Ok(())
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options::default();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => options.quick = true,
            "--write" => options.write = true,
            "--only" => options.only = Some(arguments.next().context("--only needs a name")?),
            other => bail!("unknown option `{other}`; expected one of --quick, --only NAME, --write"),
        }
    }
    Ok(options)
}

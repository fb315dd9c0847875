//! Development tasks of alongside: `cargo xtask test`, `cargo xtask ci` and what belongs to them.
//!
//! One command on a fresh machine runs every test there is, with the real programs. It installs what it may, says exactly
//! what is missing where it may not, and leaves nothing out in silence. It has no dependencies, so that it starts at once.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod editors;
mod machine;
mod npm;
mod plan;
mod table;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use plan::Plan;

const USAGE: &str = "\
Usage: cargo xtask <TASK>

Tasks:
  test              run all tests: crate tests, then end-to-end tests with real agents, editors and a browser
  test --only NAME  run only the tests whose name contains NAME
  editors           download the editors that the tests need
  table             check README.md's editor table against the last test run
  table --write     update it
  ci                check formatting, lints and documentation, then run every test";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut plan = Plan::default();
    match arguments.as_slice() {
        ["test"] => test(&mut plan, None),
        ["test", "--only", name] => test(&mut plan, Some(name)),
        ["editors"] => plan.step("editors", editors::prepare),
        ["table"] => plan.step("what is proven", table::check),
        ["table", "--write"] => plan.step("what is proven", table::write),
        ["ci"] => {
            checks(&mut plan);
            test(&mut plan, None);
        }
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    plan.carry_out()
}

fn checks(plan: &mut Plan) {
    plan.step("formatting", || run(cargo(&["fmt", "--all", "--check"])));
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    plan.step("lints", move || run(cargo(&clippy)));
    plan.step("documentation", || {
        let mut command = cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
        command.env("RUSTDOCFLAGS", "-D warnings");
        run(command)
    });
}

fn test(plan: &mut Plan, only: Option<&str>) {
    // A part of the tests proves a part of the table.
    let whole = only.is_none();
    let only: Vec<String> = only.into_iter().map(str::to_owned).collect();
    let filter = only.clone();
    let (in_browser, in_editors, with_agents) = (only.clone(), only.clone(), only.clone());
    plan.step("programs of the machine", machine::prepare);
    plan.step("npm packages", npm::install);
    plan.step("the page", npm::check_page);
    plan.step("tests of the crates", move || {
        let mut command = cargo(&["test", "--locked"]);
        command.args(filter);
        run(command)
    });
    plan.step("release binary", || {
        run(cargo(&["build", "--release", "--locked", "--package", "alongside"]))
    });
    plan.step("end-to-end tests", move || {
        end_to_end(&["--lib", "--test", "real_programs"], &only)
    });
    plan.step("agents spoken to directly", move || {
        let mut command = cargo(&["test", "--locked", "--package", "alongside-agent"]);
        command
            .args(["--features", "real-programs", "--test", "real"])
            .args(with_agents);
        command.args(["--", "--test-threads=2"]);
        command.env("ALONGSIDE_NODE", npm::node());
        command.env("ALONGSIDE_NODE_MODULES", root().join("e2e/node_modules"));
        run(command)
    });
    plan.step("browser", move || end_to_end(&["--test", "browser"], &in_browser));
    plan.step("editors", move || {
        editors::prepare()?;
        table::forget()?;
        end_to_end(&["--test", "editors"], &in_editors)
    });
    if whole {
        plan.step("what is proven", table::check);
    }
}

fn end_to_end(targets: &[&str], only: &[String]) -> Result<(), String> {
    let mut command = cargo(&["test", "--locked", "--package", "alongside-e2e"]);
    command.args(targets).args(only);
    // Each test starts programs that take a processor for themselves for some seconds.
    command.args(["--", "--test-threads=2"]);
    command.env("ALONGSIDE_BIN", release_binary()?);
    run(command)
}

/// The cargo that runs us, in the root of the repository.
fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command whose output is for the person to see.
fn run(mut command: Command) -> Result<(), String> {
    let status = command
        .status()
        .map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{command:?} ended with {status}"))
    }
}

fn release_binary() -> Result<PathBuf, String> {
    Ok(target_directory()?.join("release").join("alongside"))
}

/// Where our own build is, wherever cargo was told to put that.
fn target_directory() -> Result<PathBuf, String> {
    let own = env::current_exe().map_err(|error| format!("cannot determine where xtask is: {error}"))?;
    let target = own.ancestors().nth(2).ok_or("xtask is not in a target directory")?;
    Ok(target.to_owned())
}

/// The root of the repository. Cargo tells where we are at run time too, which stays right when the repository moves.
fn root() -> PathBuf {
    let own =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    own.parent().map(Path::to_owned).unwrap_or(own)
}

//! Development tasks: `cargo xtask test`, `cargo xtask ci` and others.
//!
//! On a fresh machine, one command runs every test, including those with real programs. It installs what it can,
//! reports exactly what is missing where it cannot, and skips nothing silently. It has no dependencies, so it builds
//! quickly.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod agents;
mod bench;
mod cache;
mod code_server;
mod deny;
mod editors;
mod fuzz;
mod instructions;
mod machine;
mod npm;
mod package;
mod plan;
mod platforms;
mod second_attempt;
mod table;
mod toolchain;
mod trials;
mod wine;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use package::Choice;
use plan::{Plan, Verdict};

const USAGE: &str = "\
Usage: cargo xtask <TASK>

Tasks:
  test              run all tests: crate tests, then end-to-end tests with real agents, editors and a browser
  test --only NAME  run only the tests whose name contains NAME
  faults            kill and stop companions at random moments, and check that nothing acknowledged is lost;
                    [--kills N] (100) [--seed S] [--verbose]
  faults --real     a shorter run with the real agents
  load              as many agents as the program allows, some of which never read, and 10,000 that vanish;
                    [--minutes M] (10)
  bench             measure start, memory, latency and CPU time next to other companions; [--quick] [--only NAME]
                    [--bin PATH], or ALONGSIDE_BIN, to measure a program that is built already
  bench --write     write the last results into docs/PERFORMANCE.md and README.md
  fuzz              every fuzz target for a minute, or [--seconds N]
  fuzz TARGET       one of them for ten minutes
  instructions      count the instructions of hot paths with callgrind, and compare them with bench/instructions.json
  instructions --write
                    update the file; the commit message gives the reason
  deny              check licenses, sources and known vulnerabilities of dependencies, with cargo-deny
  editors           download the editors that the tests need
  agents            download the agents' native programs that the tests need
  code-server       download code-server, with which the VS Code extension is tested
  package           build everything that is published, for each platform that can be built here, then install and use
                    what this machine can install
  package TARGET... only for these targets; adds to what is there
  package --manifests
                    only the manifests, for the packages in target/packages
  package --check   install and use packages that are made with ALONGSIDE_BIN, or a release build
  platforms         compile for Windows, macOS, Linux on ARM and static Linux, with warnings as errors, and run what
                    can be run here: the static program in an empty root, Windows in wine, ARM in qemu
  platforms --quick the part of it that `ci` runs
  pictures          take the pictures in the VS Code extension's README
  record            record the terminal session in the README
  table             check README.md's tables against the last test run
  table --write     update them
  ci                check formatting, lints and documentation, then run every test";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut plan = Plan::default();
    match arguments.as_slice() {
        ["test"] => test(&mut plan, None),
        ["test", "--only", name] => test(&mut plan, Some(name)),
        ["faults", "--real"] => real_faults(&mut plan),
        ["faults", options @ ..] => trial(&mut plan, "faults", options),
        ["fuzz"] => plan.step("fuzz", || fuzz::fuzz(None, 60)),
        ["fuzz", "--seconds", seconds] if seconds.parse::<u32>().is_ok() => {
            let seconds = seconds.parse().unwrap_or(60);
            plan.step("fuzz", move || fuzz::fuzz(None, seconds));
        }
        ["fuzz", target] if !target.starts_with('-') => {
            let target = (*target).to_owned();
            plan.step("fuzz", move || fuzz::fuzz(Some(&target), 600));
        }
        ["bench", options @ ..] => {
            let options: Vec<String> = options.iter().map(ToString::to_string).collect();
            plan.step("bench", move || bench::bench(&options));
        }
        ["load", options @ ..] => trial(&mut plan, "load", options),
        ["instructions"] => plan.step("instruction counts", instructions::check),
        ["instructions", "--write"] => plan.step("instruction counts", instructions::write),
        ["deny"] => plan.step("dependencies", deny::check),
        ["editors"] => plan.step("editors", editors::prepare),
        ["agents"] => plan.step("agents", agents::prepare),
        ["code-server"] => plan.step("code-server", code_server::prepare),
        ["package"] => packages(&mut plan, Choice::All),
        ["package", "--check"] => check_packages(&mut plan),
        ["package", "--manifests"] => plan.step("manifests", || package::package(&Choice::Manifests)),
        ["package", targets @ ..] if targets.iter().all(|target| !target.starts_with('-')) => {
            let targets = targets.iter().map(ToString::to_string).collect();
            plan.step("packages", move || package::package(&Choice::Targets(targets)));
        }
        ["platforms"] => platforms::all(&mut plan),
        ["platforms", "--quick"] => platforms::quick(&mut plan),
        ["pictures"] => pictures(&mut plan),
        ["record"] => record(&mut plan),
        ["table"] => plan.step("README table", table::check),
        ["table", "--write"] => plan.step("README table", table::write),
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
    plan.run()
}

fn packages(plan: &mut Plan, choice: Choice) {
    if !package::TESTS_RUN_HERE {
        plan.step("packages", move || package::package(&choice));
        plan.step("installation of the packages", || {
            Ok(Verdict::NotChecked(
                "the packages are installed and used on Linux on x86-64 only".to_owned(),
            ))
        });
        return;
    }
    // Before the long builds.
    plan.step("system programs", package::require_tests);
    plan.step("packages", move || package::package(&choice));
    plan.step("installation of the packages", package::test);
    plan.step("program for ARM, in qemu", package::test_arm);
}

/// With `ALONGSIDE_BIN`, or a release build.
fn check_packages(plan: &mut Plan) {
    let given = env::var_os("ALONGSIDE_BIN").map(PathBuf::from);
    if given.is_none() {
        release_build(plan);
    }
    plan.step("packages", move || match given {
        Some(program) => package::check(&program),
        None => package::check(&release_binary()?),
    });
}

fn release_build(plan: &mut Plan) {
    plan.step("release binary", || {
        run(cargo(&["build", "--release", "--locked", "--package", "alongside"]))
    });
}

fn trial(plan: &mut Plan, name: &'static str, options: &[&str]) {
    let options: Vec<String> = options.iter().map(ToString::to_string).collect();
    plan.step(name, move || trials::run_trial(name, &options));
}

/// The tests with the real agents, for more rounds than usual.
fn real_faults(plan: &mut Plan) {
    plan.step("npm packages", npm::install);
    plan.step("binary", || {
        run(cargo(&["build", "--locked", "--package", "alongside"]))
    });
    plan.step("faults with the real agents", || {
        let mut command = cargo(&["test", "--locked", "--package", "alongside-e2e"]);
        command.args(["--test", "real_programs", "faults::", "--", "--nocapture"]);
        command.env("ALONGSIDE_BIN", target_directory()?.join("debug").join("alongside"));
        command.env("ALONGSIDE_FAULT_ROUNDS", "15");
        run(command)
    });
}

/// Takes the pictures in the extension's README, with the tests that show what is on them.
fn pictures(plan: &mut Plan) {
    plan.step("npm packages", npm::install);
    plan.step("code-server", code_server::prepare);
    release_build(plan);
    plan.step("pictures", || {
        let mut command = end_to_end_command("vscode")?;
        command.args([
            "--",
            "all_changes_are_reviewed_in_one_editor",
            "daemon_chat_works_and_no_secret_reaches_the_webview",
        ]);
        command.env("ALONGSIDE_PICTURES", root().join("editors/vscode/images"));
        run(command)
    });
}

/// Records a session of the terminal reviewer with the real program, as an asciicast and as an SVG.
fn record(plan: &mut Plan) {
    plan.step("binary", || {
        run(cargo(&["build", "--locked", "--package", "alongside"]))
    });
    plan.step("recording", || {
        let mut command = cargo(&["run", "--locked", "--package", "alongside", "--example", "record", "--"]);
        command.arg(target_directory()?.join("debug").join("alongside"));
        command.arg(root().join("docs/images"));
        run(command)
    });
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
    plan.step("dependencies", deny::check);
}

fn test(plan: &mut Plan, only: Option<&str>) {
    // A filtered run proves only part of the README table.
    let is_full_run = only.is_none();
    let only: Vec<String> = only.into_iter().map(str::to_owned).collect();
    let filter = only.clone();
    let (in_browser, in_editors, with_agents, with_native) = (only.clone(), only.clone(), only.clone(), only.clone());
    let in_vscode = only.clone();
    plan.step("system programs", machine::prepare);
    plan.step("npm packages", npm::install);
    plan.step("agents", agents::prepare);
    plan.step("page", npm::check_page);
    plan.step("crate tests", move || {
        let mut command = cargo_test();
        command.args(["--exclude", "alongside-e2e"]).args(filter);
        // Tests that need root or a system program fail without it instead of passing.
        command.env("ALONGSIDE_TESTS", "all");
        run(command)
    });
    // Most of it is one thread that links.
    plan.at_the_same_time("release binary", || {
        // Before the first test that writes new ones.
        table::delete_records()?;
        run(cargo(&["build", "--release", "--locked", "--package", "alongside"]))
    });
    plan.step("VS Code extension", || npm::check_extension(&release_binary()?));
    if is_full_run {
        plan.step("packages", || package::check(&release_binary()?));
    }
    plan.step("end-to-end tests", move || end_to_end("real_programs", &only));
    plan.at_the_same_time("agent tests", move || end_to_end("agents", &with_native));
    plan.step("ACP and daemon tests", move || {
        let tests = || {
            let mut command = cargo_test();
            command.args(["--features", "alongside-agent/real-programs", "--test", "real"]);
            command.env("ALONGSIDE_NODE", npm::node());
            command.env("ALONGSIDE_NODE_MODULES", root().join("e2e/node_modules"));
            command
        };
        let mut command = tests();
        command.args(with_agents).args(["--", "--test-threads=2"]);
        second_attempt::run(command, || Ok(tests()))
    });
    plan.at_the_same_time("browser tests", move || end_to_end("browser", &in_browser));
    plan.step("editor tests", move || {
        editors::prepare()?;
        end_to_end("editors", &in_editors)
    });
    plan.at_the_same_time("VS Code tests", move || {
        code_server::prepare()?;
        end_to_end("vscode", &in_vscode)
    });
    if is_full_run {
        plan.step("README table", table::check);
        platforms::quick(plan);
        plan.step("faults", || {
            trials::run_with_release("faults", &["--kills", "100", "--seed", "1"])
        });
        plan.at_the_same_time("fuzz", || fuzz::fuzz(None, 3));
        plan.at_the_same_time("instruction counts", instructions::check);
        // Alone, because it measures.
        plan.step("load", || trials::run_with_release("load", &["--minutes", "1"]));
    }
}

fn end_to_end(target: &str, only: &[String]) -> Result<Verdict, String> {
    let mut command = end_to_end_command(target)?;
    // Each test starts programs that fully use a core for several seconds.
    command.args(only).args(["--", "--test-threads=2"]);
    second_attempt::run(command, || end_to_end_command(target))
}

fn end_to_end_command(target: &str) -> Result<Command, String> {
    let mut command = cargo_test();
    command.args(["--test", target]);
    command.env("ALONGSIDE_BIN", release_binary()?);
    command.env("ALONGSIDE_AGENTS", agents::directory()?);
    command.env("ALONGSIDE_CODE_SERVER", code_server::directory()?);
    command.env("ALONGSIDE_EDITORS", editors::directory()?);
    Ok(command)
}

/// `cargo test` of the whole workspace, from which the caller chooses: with fewer packages, cargo would build those again that have
/// fewer features then.
fn cargo_test() -> Command {
    cargo(&["test", "--locked", "--workspace"])
}

/// The cargo that runs us, in the repository root.
fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command with its output shown.
fn run(mut command: Command) -> Result<(), String> {
    let status = command
        .status()
        .map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{command:?} failed: {status}"))
    }
}

fn release_binary() -> Result<PathBuf, String> {
    Ok(target_directory()?.join("release").join("alongside"))
}

/// Our own target directory, even if it was moved with `CARGO_TARGET_DIR`.
fn target_directory() -> Result<PathBuf, String> {
    let own = env::current_exe().map_err(|error| format!("cannot determine where xtask is: {error}"))?;
    let target = own.ancestors().nth(2).ok_or("xtask is not in a target directory")?;
    Ok(target.to_owned())
}

/// The repository root. Read at run time too, so that it stays right when the repository moves.
fn root() -> PathBuf {
    let own =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    own.parent().map(Path::to_owned).unwrap_or(own)
}

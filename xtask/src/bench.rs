//! `cargo xtask bench`: builds and installs what is compared, then runs the driver in `bench/`.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{cargo, npm, release_binary, root, run, target_directory};

/// The companions that ours is compared with.
const REFERENCES: &str = "bench/reference";

/// The options of a run; what is not ours is the driver's.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    program: Option<PathBuf>,
    /// Whether anything is measured: `--write` only updates documents from the last results.
    measures: bool,
    others: Vec<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self {
            program: env::var_os("ALONGSIDE_BIN").map(PathBuf::from),
            measures: true,
            others: Vec::new(),
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--bin" => {
                    let program = arguments.next().ok_or("--bin needs the path of a program")?;
                    options.program = Some(PathBuf::from(program));
                }
                "--write" => {
                    options.measures = false;
                    options.others.push(argument.clone());
                }
                _ => options.others.push(argument.clone()),
            }
        }
        Ok(options)
    }
}

/// Measures, or only writes what was measured into the documents.
pub(crate) fn bench(arguments: &[String]) -> Result<(), String> {
    let start = Instant::now();
    let options = Options::parse(arguments)?;
    run(cargo(&[
        "build",
        "--release",
        "--locked",
        "--package",
        "alongside-bench",
    ]))?;
    let built = target_directory()?.join("release");
    let mut command = Command::new(built.join("bench"));
    command.args(&options.others).env("ALONGSIDE_ROOT", root());
    if options.measures {
        // Only of a program that is built here is it known which commit it is of.
        let is_ours = options.program.is_none();
        let (program, rmcp) = std::thread::scope(|scope| {
            // Beside ours, which is linked on one core for most of the time.
            let rmcp = scope.spawn(rmcp);
            let program = options.program.map_or_else(ours, Ok);
            let rmcp = rmcp
                .join()
                .unwrap_or_else(|_| Err("building the reference panicked".to_owned()));
            Ok::<_, String>((program?, rmcp?))
        })?;
        if is_ours && let Some(commit) = commit() {
            command.env("ALONGSIDE_BENCH_COMMIT", commit);
        }
        let node = root().join(REFERENCES).join("node");
        npm::install_in(&node)?;
        // What drives the page.
        npm::install_in(&root().join("e2e"))?;
        command.env("ALONGSIDE_BIN", absolute(&program)?);
        command.env("ALONGSIDE_NODE", npm::node_in(&node));
        command.env("ALONGSIDE_BENCH_NODE", node.join("companion.mjs"));
        command.env("ALONGSIDE_BENCH_RMCP", rmcp);
        command.env("ALONGSIDE_BENCH_FLOOR", built.join("floor"));
    }
    if let Some(expected) = expected(options.measures, start.elapsed()) {
        println!("xtask: {expected}");
    }
    let status = command
        .status()
        .map_err(|error| format!("cannot start the benchmark: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err("it did not finish, or has no conclusion; see above".to_owned())
    }
}

/// What to expect after the build, if anything is measured.
fn expected(measures: bool, build: Duration) -> Option<String> {
    measures.then(|| format!("built in {} s; measuring takes six minutes", build.as_secs()))
}

/// The commit of the sources, and whether they differ from it. `None` without git.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root()).output().ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=10", "HEAD"])?;
    // Results of an earlier run are no part of the program.
    let changes = git(&[
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
        "crates",
        "web",
        "Cargo.toml",
        "Cargo.lock",
    ])?;
    Some(if changes.is_empty() {
        commit
    } else {
        format!("{commit} with changes")
    })
}

fn ours() -> Result<PathBuf, String> {
    run(cargo(&["build", "--release", "--locked", "--package", "alongside"]))?;
    release_binary()
}

/// Builds the reference with the official Rust SDK. It has a lock file of its own.
fn rmcp() -> Result<PathBuf, String> {
    let target = target_directory()?.join("bench-rmcp");
    let manifest = root().join(REFERENCES).join("rmcp/Cargo.toml");
    let mut command = cargo(&["build", "--release", "--locked", "--manifest-path"]);
    command.arg(manifest).arg("--target-dir").arg(&target);
    run(command)?;
    Ok(target.join("release/alongside-bench-rmcp"))
}

/// The programs are started in other directories.
fn absolute(path: &Path) -> Result<OsString, String> {
    let path = std::path::absolute(path).map_err(|error| format!("cannot resolve {}: {error}", path.display()))?;
    if path.is_file() {
        Ok(path.into_os_string())
    } else {
        Err(format!("cannot measure {}: there is no such program", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn program_is_ours_and_everything_else_is_the_drivers() {
        let options = parse(&["--quick", "--bin", "a", "--only", "start"]).unwrap();
        assert_eq!(options.program, Some(PathBuf::from("a")));
        assert!(options.measures);
        assert_eq!(options.others, ["--quick", "--only", "start"]);
        assert!(parse(&["--bin"]).is_err());
    }

    #[test]
    fn writing_measures_nothing() {
        assert!(!parse(&["--write"]).unwrap().measures);
        assert_eq!(expected(false, Duration::ZERO), None);
        assert!(expected(true, Duration::ZERO).is_some());
    }
}

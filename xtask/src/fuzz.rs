//! Fuzzing with libFuzzer, in `fuzz/`: coverage instrumentation works with a stable compiler.

use std::fs;
use std::path::Path;

use crate::{cargo, root, run, target_directory};

/// What `cargo fuzz` passes, without the sanitizers, which need a nightly compiler: the fuzzed code has no `unsafe`.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Fuzzes one target, or all, for this many seconds each. What is found stays in the target directory.
pub(crate) fn fuzz(only: Option<&str>, seconds: u32) -> Result<(), String> {
    let directory = root().join("fuzz");
    let target = target_directory()?.join("fuzz");
    let mut build = cargo(&["build", "--release", "--locked", "--target", TRIPLE]);
    build.arg("--manifest-path").arg(directory.join("Cargo.toml"));
    build.arg("--target-dir").arg(&target).env("RUSTFLAGS", FLAGS);
    run(build)?;
    for name in targets(&directory)? {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let (found, failures) = (target.join("corpus").join(&name), target.join("failures"));
        for folder in [&found, &failures] {
            fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        }
        let mut fuzzer = std::process::Command::new(target.join(TRIPLE).join("release").join(&name));
        fuzzer.arg(format!("-max_total_time={seconds}"));
        fuzzer.args([
            "-timeout=60",
            "-rss_limit_mb=2048",
            "-print_final_stats=0",
            "-verbosity=0",
        ]);
        fuzzer.arg(format!("-artifact_prefix={}/{name}-", failures.display()));
        fuzzer.arg(&found).arg(directory.join("corpus").join(&name));
        eprintln!("xtask: fuzzing {name} for {seconds} s");
        run(fuzzer).map_err(|error| {
            let hint = format!("copy it to fuzz/corpus/{name} once it is fixed");
            format!("{error}; the input is in {}: {hint}", failures.display())
        })?;
    }
    Ok(())
}

/// Naming the target keeps the flags away from build scripts.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

fn targets(directory: &Path) -> Result<Vec<String>, String> {
    let folder = directory.join("fuzz_targets");
    let entries = fs::read_dir(&folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

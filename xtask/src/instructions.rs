//! Instruction counts of the hot paths, compared with `bench/instructions.json`.

use std::env;
use std::fs;
use std::process::Command;

use crate::machine;
use crate::plan::Verdict;
use crate::{cargo, root, run, target_directory};

const FILE: &str = "bench/instructions.json";

/// Measures and compares. With another compiler, C library or processor the counts say nothing about our code.
pub(crate) fn check() -> Result<Verdict, String> {
    let environment = match environment() {
        Ok(environment) => environment,
        Err(reason) => return Ok(Verdict::NotChecked(reason)),
    };
    let file = root().join(FILE);
    let record = fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let measured_with =
        measured_with(&record).ok_or("bench/instructions.json does not say what it was measured with")?;
    if measured_with != environment {
        return Ok(Verdict::NotChecked(format!(
            "the counts are from {measured_with}, and here is {environment}; on a checkout whose counts are right, \
             run `cargo xtask instructions --write`"
        )));
    }
    count(&["check", FILE])?;
    Ok(Verdict::Passed)
}

/// Measures and updates the file.
pub(crate) fn write() -> Result<(), String> {
    count(&["write", FILE, &environment()?])
}

fn count(arguments: &[&str]) -> Result<(), String> {
    machine::require(&[machine::VALGRIND])?;
    let profile = ["--profile", "instructions", "--package", "alongside-instructions"];
    let mut build = cargo(&["build", "--locked"]);
    build.args(profile);
    run(build)?;
    let mut command = Command::new(target_directory()?.join("instructions").join("alongside-instructions"));
    command.args(arguments).current_dir(root());
    run(command).map_err(|_| "see the table above".to_owned())
}

fn measured_with(record: &str) -> Option<&str> {
    let line = record
        .lines()
        .find_map(|line| line.trim().strip_prefix("\"measured_with\": \""))?;
    line.strip_suffix("\",")
}

/// What counts depend on, other than our code: libraries choose other instructions on another processor.
fn environment() -> Result<String, String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("instructions are counted on Linux on x86-64 only".to_owned());
    }
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let compiler = first_line(Command::new(rustc).arg("--version").current_dir(root()))?;
    let library = first_line(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let has_avx2 = processor.split_ascii_whitespace().any(|flag| flag == "avx2");
    let extension = if has_avx2 { "with AVX2" } else { "without AVX2" };
    Ok(format!("{compiler}, {library}, x86-64 {extension}"))
}

fn first_line(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("cannot start {command:?}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().filter(|_| output.status.success());
    line.map(str::to_owned)
        .ok_or_else(|| format!("{command:?} failed: {}", output.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_says_what_it_was_measured_with() {
        let record = "{\n  \"tolerance_percent\": 3.0,\n  \"measured_with\": \"rustc 1, glibc 2\",\n}";
        assert_eq!(measured_with(record), Some("rustc 1, glibc 2"));
        assert_eq!(measured_with("{}"), None);
    }
}

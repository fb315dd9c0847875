//! Processes from `/proc`, as `ps` would print them.

use std::fs;
use std::time::{Duration, SystemTime};

use super::ProcessInfo;

/// A process as `ps -o ppid=,command=` shows it.
pub(super) fn find(pid: u32) -> Option<ProcessInfo> {
    let status = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let command_line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    parse(pid, &String::from_utf8_lossy(&status), &command_line)
}

pub(super) fn started(pid: u32) -> Option<SystemTime> {
    let status = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let ticks = start_ticks(&String::from_utf8_lossy(&status))?;
    let boot = boot_seconds(&fs::read_to_string("/proc/stat").ok()?)?;
    let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
    let since_boot = Duration::from_millis(ticks.saturating_mul(1000) / ticks_per_second);
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(boot) + since_boot)
}

/// The ticks since boot, and which boot: exact, unlike a time of day, which changes when the clock is set.
pub(super) fn start_stamp(pid: u32) -> Option<String> {
    let status = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let ticks = start_ticks(&String::from_utf8_lossy(&status))?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Some(format!("{ticks} {}", boot.trim()))
}

fn parse(pid: u32, status: &str, command_line: &[u8]) -> Option<ProcessInfo> {
    let parent = fields(status)?.nth(1)?.parse().ok()?;
    let command = String::from_utf8_lossy(command_line)
        .replace('\0', " ")
        .trim()
        .to_owned();
    // Kernel threads have no command line; `ps` prints their name in brackets.
    let command = if command.is_empty() {
        format!("[{}]", name(status)?)
    } else {
        command
    };
    Some(ProcessInfo { pid, parent, command })
}

fn start_ticks(status: &str) -> Option<u64> {
    // The start time is field 22; `fields` starts at field 3.
    fields(status)?.nth(19)?.parse().ok()
}

fn boot_seconds(statistics: &str) -> Option<u64> {
    statistics
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()
}

/// The fields after the name, which is in parentheses and may itself contain spaces and parentheses.
fn fields(status: &str) -> Option<std::str::SplitAsciiWhitespace<'_>> {
    Some(status.rsplit_once(')')?.1.split_ascii_whitespace())
}

fn name(status: &str) -> Option<&str> {
    Some(status.split_once('(')?.1.rsplit_once(')')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "42 (my (odd) name) S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3";

    #[test]
    fn name_with_parentheses_is_parsed() {
        let process = parse(42, STATUS, b"/bin/bash\0-l\0").unwrap();
        assert_eq!((process.parent, process.command.as_str()), (7, "/bin/bash -l"));
        assert_eq!(start_ticks(STATUS), Some(98765));
    }

    #[test]
    fn process_without_command_line_shows_bracketed_name() {
        assert_eq!(parse(42, STATUS, b"").unwrap().command, "[my (odd) name]");
    }

    #[test]
    fn boot_time_is_parsed() {
        assert_eq!(
            boot_seconds("cpu 1 2\nbtime 1700000000\nprocesses 3\n"),
            Some(1_700_000_000)
        );
    }
}

//! Processes from `ps`, for macOS and other systems without `/proc`.

use std::time::{Duration, SystemTime};

use super::ProcessInfo;

/// A process as `ps` prints it, which is also what the agents run.
#[cfg(not(target_os = "linux"))]
pub(super) fn find(pid: u32) -> Option<ProcessInfo> {
    let output = std::process::Command::new("ps")
        .args(["-o", "ppid=,command=", "-p", &pid.to_string()])
        .output()
        .ok()?;
    parse(pid, &String::from_utf8_lossy(&output.stdout))
}

/// The start time as `ps` prints it, in one language and time zone.
pub(super) fn start_stamp(pid: u32) -> Option<String> {
    let output = std::process::Command::new("ps")
        .args(["-o", "lstart=", "-p", &pid.to_string()])
        .envs([("LC_ALL", "C"), ("TZ", "UTC")])
        .output()
        .ok()?;
    let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!printed.is_empty()).then_some(printed)
}

/// When a process started, from how long it has been running: that is a number in every language.
pub(super) fn started(pid: u32) -> Option<SystemTime> {
    let output = std::process::Command::new("ps")
        .args(["-o", "etime=", "-p", &pid.to_string()])
        .output()
        .ok()?;
    SystemTime::now().checked_sub(elapsed(&String::from_utf8_lossy(&output.stdout))?)
}

/// `[[days-]hours:]minutes:seconds`.
fn elapsed(printed: &str) -> Option<Duration> {
    let (days, rest) = printed.trim().split_once('-').unwrap_or(("0", printed.trim()));
    let clock = rest.split(':').try_fold((0_u64, 0), |(sum, parts), part| {
        Some((sum * 60 + part.parse::<u64>().ok()?, parts + 1))
    });
    let (seconds, parts) = clock?;
    let days: u64 = days.parse().ok()?;
    (parts > 1).then(|| Duration::from_secs(days * 24 * 3600 + seconds))
}

fn parse(pid: u32, output: &str) -> Option<ProcessInfo> {
    let output = output.trim();
    let (parent, command) = output.split_once(char::is_whitespace).unwrap_or((output, ""));
    Some(ProcessInfo {
        pid,
        parent: parent.parse().ok()?,
        command: command.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ps_line_is_parent_then_command() {
        let process = parse(9, "   12 /bin/zsh -i\n").unwrap();
        assert_eq!((process.parent, process.command.as_str()), (12, "/bin/zsh -i"));
        assert_eq!(parse(9, ""), None);
    }

    #[test]
    fn elapsed_time_may_have_hours_and_days() {
        for (printed, seconds) in [
            ("      00:05\n", Some(5)),
            ("01:02:03", Some(3723)),
            ("2-01:00:00", Some(176_400)),
            ("", None),
            ("5", None),
            ("a:b", None),
        ] {
            assert_eq!(elapsed(printed), seconds.map(Duration::from_secs), "{printed}");
        }
    }

    /// On a machine without it there is nothing to compare.
    fn has_ps() -> bool {
        let has_ps = std::process::Command::new("ps").output().is_ok();
        if !has_ps {
            // `cargo xtask test` sets it.
            assert!(
                std::env::var_os("ALONGSIDE_TESTS").is_none(),
                "install `ps`, with which this is compared"
            );
            eprintln!("skipped: there is no `ps` to compare with");
        }
        has_ps
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn ps_and_proc_agree_on_start() {
        if !has_ps() {
            return;
        }
        let pid = std::process::id();
        let printed = started(pid).unwrap();
        let exact = super::super::linux::started(pid).unwrap();
        let distance = printed.duration_since(exact).unwrap_or_else(|error| error.duration());
        assert!(distance < Duration::from_secs(30), "{distance:?}");
    }

    #[test]
    fn start_stamp_is_one_line_per_process() {
        if !has_ps() {
            return;
        }
        let stamp = start_stamp(std::process::id()).unwrap();
        assert!(stamp.contains(':') && !stamp.contains('\n'), "{stamp}");
        assert_eq!(start_stamp(u32::MAX), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn ps_and_proc_agree_on_parent() {
        if !has_ps() {
            return;
        }
        let pid = std::process::id();
        let arguments = ["-o", "ppid=,command=", "-p", &pid.to_string()];
        let output = std::process::Command::new("ps").args(arguments).output().unwrap();
        let printed = parse(pid, &String::from_utf8_lossy(&output.stdout)).unwrap();
        assert_eq!(Some(printed), super::super::linux::find(pid));
    }
}

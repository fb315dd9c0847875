//! Processes from `ps`, for macOS and other systems without `/proc`.

use super::ProcessInfo;

/// A process as `ps` prints it, which is also what the agents run.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn find(pid: u32) -> Option<ProcessInfo> {
    let output = std::process::Command::new("ps")
        .args(["-o", "ppid=,command=", "-p", &pid.to_string()])
        .output()
        .ok()?;
    parse(pid, &String::from_utf8_lossy(&output.stdout))
}

/// The start time as `ps` prints it, in one language and time zone.
#[cfg(any(all(unix, not(target_os = "linux")), test))]
pub(super) fn start_stamp(pid: u32) -> Option<String> {
    let output = std::process::Command::new("ps")
        .args(["-o", "lstart=", "-p", &pid.to_string()])
        .envs([("LC_ALL", "C"), ("TZ", "UTC")])
        .output()
        .ok()?;
    let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!printed.is_empty()).then_some(printed)
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

    #[cfg(unix)]
    #[test]
    fn start_stamp_is_one_line_per_process() {
        // Nothing to check on a machine without `ps`.
        let Some(stamp) = start_stamp(std::process::id()) else {
            return;
        };
        assert!(stamp.contains(':') && !stamp.contains('\n'), "{stamp}");
        assert_eq!(start_stamp(u32::MAX), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn ps_and_proc_agree_on_parent() {
        let pid = std::process::id();
        let arguments = ["-o", "ppid=,command=", "-p", &pid.to_string()];
        // Nothing to compare on a machine without `ps`.
        let Ok(output) = std::process::Command::new("ps").args(arguments).output() else {
            return;
        };
        let printed = parse(pid, &String::from_utf8_lossy(&output.stdout)).unwrap();
        assert_eq!(Some(printed), super::super::linux::find(pid));
    }
}

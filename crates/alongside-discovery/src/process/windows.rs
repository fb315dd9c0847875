//! Processes from one PowerShell snapshot, as the agents query it on Windows.

use serde_json::Value;

use super::{ProcessInfo, ProcessTable};

/// All processes; empty if PowerShell fails.
#[cfg(windows)]
pub(super) fn snapshot() -> ProcessTable {
    const QUERY: &str = "Get-CimInstance Win32_Process | Select-Object ProcessId,ParentProcessId,Name,CommandLine | \
                         ConvertTo-Json -Compress";
    let output = std::process::Command::new("powershell")
        .args(["-NoProfile", "-NonInteractive", "-Command", QUERY])
        .output();
    match output {
        Ok(output) => parse(&String::from_utf8_lossy(&output.stdout)),
        Err(_) => ProcessTable::default(),
    }
}

/// Parses the snapshot's JSON: an array, or a single object if there is only one process.
fn parse(output: &str) -> ProcessTable {
    let processes = match serde_json::from_str(output.trim()) {
        Ok(Value::Array(processes)) => processes,
        Ok(process) => vec![process],
        Err(_) => Vec::new(),
    };
    ProcessTable::new(processes.iter().filter_map(process))
}

fn process(row: &Value) -> Option<ProcessInfo> {
    let id = |key: &str| row.get(key)?.as_u64().and_then(|id| u32::try_from(id).ok());
    Some(ProcessInfo {
        pid: id("ProcessId")?,
        parent: id("ParentProcessId").unwrap_or(0),
        command: row
            .get("CommandLine")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Processes;

    #[test]
    fn snapshot_may_be_array_or_single_process() {
        let table = parse(
            r#"[{"ProcessId":4,"ParentProcessId":0,"Name":"System","CommandLine":null},
                {"ProcessId":9,"ParentProcessId":4,"Name":"a.exe","CommandLine":"a.exe -x"},{"Name":"odd"}]"#,
        );
        assert_eq!(table.find(4).unwrap().command, "");
        assert_eq!(table.find(9).unwrap().parent, 4);
        let table = parse(r#"{"ProcessId":9,"ParentProcessId":4,"CommandLine":"a.exe"}"#);
        assert_eq!(table.find(9).unwrap().command, "a.exe");
        assert_eq!(parse("not JSON").find(9), None);
    }
}

//! What a process has used, from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use parking_lot::Mutex;

/// In kB of 1,024 bytes, as `/proc` has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    pub rss_kilobytes: f64,
    pub pss_kilobytes: f64,
}

pub struct Process {
    id: u32,
    directory: PathBuf,
    /// The CPU time of each thread when it was last seen: threads end, and what they used still counts.
    threads: Mutex<BTreeMap<String, u64>>,
}

impl Process {
    pub fn new(id: u32) -> Self {
        Self {
            id,
            directory: PathBuf::from(format!("/proc/{id}")),
            threads: Mutex::default(),
        }
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    /// The CPU time of all threads so far. The scheduler counts it in nanoseconds, unlike `/proc/PID/stat`, which has hundredths of a
    /// second.
    pub fn cpu(&self) -> Result<Duration> {
        let mut threads = self.threads.lock();
        let tasks = fs::read_dir(self.directory.join("task")).context("cannot list a program's threads")?;
        for task in tasks.flatten() {
            // A thread may be gone by now.
            let used = fs::read_to_string(task.path().join("schedstat"))
                .ok()
                .and_then(|text| first_number(&text));
            if let Some(used) = used {
                threads.insert(task.file_name().to_string_lossy().into_owned(), used);
            }
        }
        Ok(Duration::from_nanos(threads.values().sum()))
    }

    pub fn memory(&self) -> Result<Memory> {
        let text = fs::read_to_string(self.directory.join("smaps_rollup")).context("cannot read a program's memory")?;
        let kilobytes = |name: &str| {
            let number = text.lines().find_map(|line| first_number(line.strip_prefix(name)?));
            let number = number.and_then(|number| u32::try_from(number).ok());
            number
                .map(f64::from)
                .with_context(|| format!("a program's memory has no {name}"))
        };
        Ok(Memory {
            rss_kilobytes: kilobytes("Rss:")?,
            pss_kilobytes: kilobytes("Pss:")?,
        })
    }
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// The load average of the last minute.
pub fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_process_uses_cpu_and_memory() {
        let own = Process::new(std::process::id());
        let before = own.cpu().unwrap();
        let start = std::time::Instant::now();
        while start.elapsed() < Duration::from_millis(30) {
            std::hint::spin_loop();
        }
        // What runs now is counted when the scheduler looks next.
        std::thread::sleep(Duration::from_millis(5));
        assert!(own.cpu().unwrap() > before);
        let memory = own.memory().unwrap();
        assert!(memory.rss_kilobytes >= memory.pss_kilobytes && memory.pss_kilobytes > 0.0);
    }
}

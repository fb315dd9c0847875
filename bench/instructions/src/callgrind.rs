//! Running paths under callgrind.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};

use crate::paths::PATHS;

/// Two at a time: more would need more memory than a small machine has.
const PROCESSES: usize = 2;

pub(crate) fn count_all() -> Result<BTreeMap<String, u64>> {
    let folder = tempfile::tempdir().context("cannot create a temporary directory")?;
    let next = AtomicUsize::new(0);
    let count_some = || {
        let mut counts = BTreeMap::new();
        while let Some((name, _)) = PATHS.get(next.fetch_add(1, Ordering::Relaxed)) {
            counts.insert((*name).to_owned(), count(name, folder.path())?);
        }
        Ok(counts)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..PROCESSES).map(|_| scope.spawn(count_some)).collect();
        let mut all = BTreeMap::new();
        for thread in threads {
            let counts: Result<_> = thread.join().map_err(|_| anyhow!("a thread panicked"))?;
            all.extend(counts?);
        }
        Ok(all)
    })
}

fn count(name: &str, folder: &Path) -> Result<u64> {
    let file = folder.join(name.replace(|character: char| !character.is_ascii_alphanumeric(), "-"));
    let program = env::current_exe().context("cannot find this program")?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", "--collect-atstart=no"])
        .arg("--toggle-collect=*alongside_instructions*counted*")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .args(["run", name])
        // The environment is on the stack, where its size moves what is counted.
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("TMPDIR", folder)
        .output()
        .context("cannot start valgrind; install the package valgrind")?;
    ensure!(
        output.status.success(),
        "`{name}` failed under callgrind: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report = fs::read_to_string(&file).with_context(|| format!("cannot read the counts of `{name}`"))?;
    let total = report.lines().find_map(|line| line.strip_prefix("totals: "));
    let count: u64 = total
        .and_then(|total| total.trim().parse().ok())
        .with_context(|| format!("callgrind printed no total for `{name}`"))?;
    ensure!(
        count > 0,
        "callgrind counted nothing for `{name}`: does it call `counted`?"
    );
    Ok(count)
}

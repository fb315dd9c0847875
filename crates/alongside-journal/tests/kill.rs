//! A second process is refused, and what a killed one acknowledged is there.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use alongside_journal::{Directory, Log, MAX_INLINE_BYTES, OpenError, StoredText};
use tempfile::TempDir;

const FOLDER: &str = "ALONGSIDE_JOURNAL_TEST_FOLDER";

fn text(number: usize) -> Arc<str> {
    format!("{number} ").repeat(MAX_INLINE_BYTES).into()
}

/// Appends until it is killed, and prints what was acknowledged.
fn append_forever(folder: &Path) {
    let directory = Directory::open(folder).unwrap();
    let (mut log, _) = Log::open(&directory, "state").unwrap();
    for number in 0.. {
        let stored = directory.texts().store(&text(number)).unwrap();
        log.append(&[serde_json::to_vec(&(number, stored)).unwrap()]).unwrap();
        println!("acknowledged {number}");
    }
}

#[test]
fn records_and_texts_acknowledged_by_a_killed_process_are_there_and_only_then_is_another_let_in() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return append_forever(Path::new(&folder));
    }
    let folder = TempDir::new().unwrap();
    let name = "records_and_texts_acknowledged_by_a_killed_process_are_there_and_only_then_is_another_let_in";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let number = |line: &String| line.split_once("acknowledged ")?.1.parse::<usize>().ok();
    lines
        .by_ref()
        .filter_map(|line| number(&line))
        .find(|number| *number == 30);
    assert!(matches!(Directory::open(folder.path()), Err(OpenError::InUse)));
    child.kill().unwrap();
    child.wait().unwrap();
    let last = lines.filter_map(|line| number(&line)).last().unwrap_or(30);

    let directory = Directory::open(folder.path()).unwrap();
    let (_log, recovered) = Log::open(&directory, "state").unwrap();
    assert_eq!(recovered.damage, None);
    assert!(recovered.records.len() > last, "{} of {last}", recovered.records.len());
    for (position, record) in recovered.records.iter().enumerate() {
        let (number, stored): (usize, StoredText) = serde_json::from_slice(record).unwrap();
        assert_eq!(number, position);
        assert_eq!(directory.texts().load(&stored).unwrap(), text(number));
    }
}

/// No sleeping here: the thread is what is tested, so the test waits for what it does.
#[test]
fn thread_syncs_and_removes_unused_texts_without_being_asked() {
    let folder = TempDir::new().unwrap();
    let directory = Directory::open(folder.path()).unwrap();
    let (mut log, _) = Log::open(&directory, "state").unwrap();
    let stored = directory.texts().store(&text(1)).unwrap();
    log.append(&[b"record".to_vec()]).unwrap();
    directory.texts().remove(stored.file_name().unwrap());
    while directory.texts().load(&stored).is_ok() {
        std::thread::yield_now();
    }
    assert_eq!(directory.problem(), None);
}

//! Logs in a real directory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use alongside_journal::{Directory, Log, OpenError, Recovered};
use tempfile::TempDir;

fn records(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn open(path: &Path) -> (Log, Recovered) {
    Log::open(&Directory::open(path).unwrap(), "state").unwrap()
}

#[test]
fn appended_records_are_there_after_reopening_in_their_order() {
    let folder = TempDir::new().unwrap();
    let (mut log, recovered) = open(folder.path());
    assert!(recovered.records.is_empty() && recovered.damage.is_none());
    let epoch = *log.epoch();
    assert_eq!(epoch.to_string().len(), 8);
    log.append(&records(&["one", "", "three"])).unwrap();
    log.append(&records(&["four"])).unwrap();
    drop(log);

    let (mut log, recovered) = open(folder.path());
    assert_eq!(recovered.records, records(&["one", "", "three", "four"]));
    assert_eq!(recovered.damage, None);
    assert_eq!(recovered.epoch, epoch);
    log.append(&records(&["five"])).unwrap();
    drop(log);
    let (_, recovered) = open(folder.path());
    assert_eq!(recovered.records.len(), 5);
}

#[test]
fn compaction_replaces_everything_and_keeps_the_epoch() {
    let folder = TempDir::new().unwrap();
    let (mut log, _) = open(folder.path());
    let epoch = *log.epoch();
    log.append(&records(&["one", "two"])).unwrap();
    log.compact(&records(&["both"])).unwrap();
    log.append(&records(&["three"])).unwrap();
    drop(log);
    let (log, recovered) = open(folder.path());
    assert_eq!(recovered.records, records(&["both", "three"]));
    assert_eq!(*log.epoch(), epoch);
    let names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(!names.iter().any(|name| name == "state-1"), "{names:?}");
}

#[test]
fn log_wants_compaction_above_twice_its_snapshot_and_4_mib() {
    let folder = TempDir::new().unwrap();
    let (mut log, _) = open(folder.path());
    let mib = vec![vec![b'x'; (1 << 20) + 1024]];
    for _ in 0..4 {
        assert!(!log.wants_compaction());
        log.append(&mib).unwrap();
    }
    assert!(log.wants_compaction());
    log.compact(&mib).unwrap();
    for _ in 0..5 {
        assert!(!log.wants_compaction(), "{}", log.size());
        log.append(&mib).unwrap();
    }
    assert!(log.wants_compaction());
}

#[test]
fn second_user_of_a_directory_is_refused_until_the_first_is_gone() {
    let folder = TempDir::new().unwrap();
    let directory = Directory::open(folder.path()).unwrap();
    assert!(matches!(Directory::open(folder.path()), Err(OpenError::InUse)));
    let (log, _) = Log::open(&directory, "state").unwrap();
    drop(directory);
    assert!(
        matches!(Directory::open(folder.path()), Err(OpenError::InUse)),
        "the log is still open"
    );
    drop(log);
    Directory::open(folder.path()).unwrap();
}

#[test]
fn second_log_of_a_name_is_refused_until_the_first_is_gone() {
    let folder = TempDir::new().unwrap();
    let directory = Directory::open(folder.path()).unwrap();
    let (mut log, _) = Log::open(&directory, "state").unwrap();
    log.append(&records(&["one"])).unwrap();
    assert!(matches!(Log::open(&directory, "state"), Err(OpenError::InUse)));
    Log::open(&directory, "chat").unwrap();
    log.compact(&records(&["two"])).unwrap();
    assert!(matches!(Log::open(&directory, "state"), Err(OpenError::InUse)));
    drop(log);
    let (_, recovered) = Log::open(&directory, "state").unwrap();
    assert_eq!(recovered.records, records(&["two"]));
}

#[cfg(unix)]
#[test]
fn files_are_private() {
    use std::os::unix::fs::PermissionsExt;

    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let (mut log, _) = open(&path);
    log.append(&records(&["one"])).unwrap();
    for (name, mode) in [("", 0o700), ("texts", 0o700), ("lock", 0o600), ("state-1", 0o600)] {
        let found = fs::metadata(path.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{name}");
    }
}

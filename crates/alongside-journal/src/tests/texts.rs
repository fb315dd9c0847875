//! Texts of any size.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use crate::disk::{Disk, Folder};
use crate::{Directory, Fault, Log, MAX_INLINE_BYTES, SimDisk, StoredText};

fn directory(disk: &SimDisk) -> (Directory, Log) {
    let directory = Directory::on(Arc::new(disk.clone()));
    let (log, _) = Log::open(&directory, "state").unwrap();
    (directory, log)
}

fn large(fill: &str) -> Arc<str> {
    fill.repeat(MAX_INLINE_BYTES).into()
}

fn texts(disk: &SimDisk) -> Vec<String> {
    disk.names(Folder::Texts).unwrap()
}

fn name(stored: &StoredText) -> String {
    match stored {
        StoredText::File { name, .. } => name.clone(),
        StoredText::Inline(_) => panic!("it is inline"),
    }
}

#[test]
fn small_texts_are_inline_and_large_ones_have_files() {
    let disk = SimDisk::new(0);
    let (directory, _log) = directory(&disk);
    let longest: Arc<str> = "x".repeat(MAX_INLINE_BYTES).into();
    let stored = directory.texts().store(&longest).unwrap();
    assert_eq!(stored, StoredText::Inline(longest.clone()));
    assert_eq!(directory.texts().load(&stored).unwrap(), longest);
    assert!(texts(&disk).is_empty());

    let longer: Arc<str> = format!("{longest}\u{0}ü\r\n").into();
    let stored = directory.texts().store(&longer).unwrap();
    assert_eq!(texts(&disk), [name(&stored)]);
    let json = serde_json::to_string(&stored).unwrap();
    let read: StoredText = serde_json::from_str(&json).unwrap();
    assert_eq!(read, stored);
    assert_eq!(directory.texts().load(&read).unwrap(), longer);
}

#[test]
fn stored_text_has_the_same_json_as_in_format_1() {
    let file = StoredText::File {
        name: "1-0".to_owned(),
        length: 3,
        crc: 4,
    };
    for (stored, json) in [
        (StoredText::Inline("text".into()), r#"{"inline":"text"}"#),
        (file, r#"{"file":{"name":"1-0","length":3,"crc":4}}"#),
    ] {
        assert_eq!(serde_json::to_string(&stored).unwrap(), json);
    }
}

#[test]
fn changed_text_is_an_error() {
    let disk = SimDisk::new(0);
    let (directory, _log) = directory(&disk);
    let stored = directory.texts().store(&large("ab")).unwrap();
    let path = format!("texts/{}", name(&stored));
    let changes: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes[7] ^= 1,
        |bytes| bytes.truncate(100),
        |bytes| bytes.push(b'x'),
        |bytes| bytes[0] = 0xff,
    ];
    for change in changes {
        let before = disk.read(&path).unwrap();
        disk.corrupt(&path, change);
        let error = directory.texts().load(&stored).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        disk.corrupt(&path, |bytes| *bytes = before);
    }
    directory.texts().load(&stored).unwrap();
    let bytes = vec![0xff; MAX_INLINE_BYTES];
    let invalid = StoredText::File {
        name: name(&stored),
        length: bytes.len() as u64,
        crc: crc32fast::hash(&bytes),
    };
    disk.corrupt(&path, |contents| *contents = bytes);
    assert!(directory.texts().load(&invalid).is_err(), "not UTF-8");
}

#[test]
fn names_do_not_lead_out_of_the_folder() {
    let disk = SimDisk::new(0);
    let (directory, mut log) = directory(&disk);
    log.append(&[vec![1]]).unwrap();
    for name in ["../state-1", "/etc/passwd", "", "..", "a/b", "a\\b", "C:a"] {
        let calls = disk.calls();
        let (length, crc, name) = (0, 0, name.to_owned());
        let stored = StoredText::File { name, length, crc };
        assert!(directory.texts().load(&stored).is_err());
        directory.texts().remove(&stored);
        assert_eq!(disk.calls(), calls, "{stored:?}");
    }
    directory.sync().unwrap();
    assert!(disk.names(Folder::Root).unwrap().contains(&"state-1".to_owned()));
}

#[test]
fn removed_text_stays_until_the_logs_are_synced() {
    let disk = SimDisk::new(0);
    let (directory, mut log) = directory(&disk);
    let stored = directory.texts().store(&large("ab")).unwrap();
    log.append(&[b"names it".to_vec()]).unwrap();
    directory.sync().unwrap();
    log.append(&[b"drops it".to_vec()]).unwrap();
    directory.texts().remove(&stored);
    directory.texts().load(&stored).unwrap();
    directory.sync().unwrap();
    assert!(texts(&disk).is_empty());
}

#[test]
fn retain_removes_what_is_not_named_but_nothing_stored_since_the_start() {
    let disk = SimDisk::new(0);
    let (before, log) = directory(&disk);
    let kept = before.texts().store(&large("ab")).unwrap();
    before.texts().store(&large("cd")).unwrap();
    drop((before, log));

    let (directory, _log) = directory(&disk);
    let new = directory.texts().store(&large("ef")).unwrap();
    directory.texts().retain(HashSet::from([name(&kept)]));
    directory.sync().unwrap();
    assert_eq!(directory.texts().load(&kept).unwrap(), large("ab"));
    assert_eq!(directory.texts().load(&new).unwrap(), large("ef"));
    assert_eq!(texts(&disk).len(), 2);
}

#[test]
fn text_removed_before_it_was_synced_is_never_synced() {
    let disk = SimDisk::new(0);
    let (directory, _log) = directory(&disk);
    directory.sync().unwrap();
    let calls = disk.calls();
    let stored = directory.texts().store(&large("ab")).unwrap();
    directory.texts().remove(&stored);
    directory.sync().unwrap();
    assert_eq!(disk.calls() - calls, 3, "create, write, remove");
    assert!(texts(&disk).is_empty());
}

#[test]
fn names_of_texts_whose_sync_failed_are_synced_before_records_count_as_durable() {
    for seed in 0..20 {
        let disk = SimDisk::new(seed);
        let (directory, mut log) = directory(&disk);
        directory.sync().unwrap();
        let stored = directory.texts().store(&large("ab")).unwrap();
        log.append(&[b"names it".to_vec()]).unwrap();
        // After opening and syncing the text.
        disk.fail_at(disk.calls() + 2, Fault::Broken);
        directory.sync().unwrap_err();
        directory.sync().unwrap();
        let after = Directory::on(Arc::new(disk.lose_power()));
        assert_eq!(after.texts().load(&stored).unwrap(), large("ab"));
    }
}

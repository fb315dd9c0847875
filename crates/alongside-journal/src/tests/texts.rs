//! Texts of any size.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
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
    stored.file_name().expect("it has a file").to_owned()
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
    let changed = StoredText::Changed {
        from: Box::new(file.clone()),
        changes: serde_json::from_str(r#"[{"range":{"start":1,"end":2},"text":"x"}]"#).unwrap(),
    };
    for (stored, json) in [
        (StoredText::Inline("text".into()), r#"{"inline":"text"}"#),
        (file, r#"{"file":{"name":"1-0","length":3,"crc":4}}"#),
        (
            changed,
            r#"{"changed":{"from":{"file":{"name":"1-0","length":3,"crc":4}},"changes":[{"range":{"start":1,"end":2},"text":"x"}]}}"#,
        ),
    ] {
        assert_eq!(serde_json::to_string(&stored).unwrap(), json);
        assert_eq!(serde_json::from_str::<StoredText>(json).unwrap(), stored);
    }
}

/// A text with changes.
fn changed(text: &str, changes: &[(Range<usize>, &str)]) -> Arc<str> {
    let mut result = text.to_owned();
    for (range, new) in changes.iter().rev() {
        result.replace_range(range.clone(), new);
    }
    result.into()
}

#[test]
fn large_text_with_few_changes_needs_no_file_of_its_own() {
    let disk = SimDisk::new(0);
    let (directory, _log) = directory(&disk);
    let (texts_of, from) = (directory.texts(), large("ab"));
    let stored_from = texts_of.store(&from).unwrap();
    let changes = [(0..0, "first "), (100..102, ""), (from.len()..from.len(), "ü last")];
    for changes in [&changes[..], &[]] {
        let text = changed(&from, changes);
        let stored = texts_of
            .store_changed(&text, &stored_from, changes.iter().cloned())
            .unwrap();
        assert_eq!(texts(&disk), [name(&stored_from)]);
        assert_eq!(name(&stored), name(&stored_from), "it needs the file of the other one");
        assert_eq!(texts_of.load(&stored).unwrap(), text);
    }

    let short: Arc<str> = "short".into();
    let stored = texts_of.store_changed(&short, &stored_from, std::iter::once((0..from.len(), "short")));
    assert_eq!(stored.unwrap(), StoredText::Inline(short));
}

#[test]
fn text_with_large_or_many_changes_has_its_own_file() {
    let disk = SimDisk::new(0);
    let (directory, _log) = directory(&disk);
    let (texts_of, from) = (directory.texts(), large("abcdefgh"));
    let stored_from = texts_of.store(&from).unwrap();
    let long = "x".repeat(from.len() / 4);
    let large_change = vec![(0..1, long.as_str())];
    let many_changes: Vec<_> = (0..1000).map(|at| (at..at + 1, "x")).collect();
    for changes in [large_change, many_changes] {
        let text = changed(&from, &changes);
        let stored = texts_of
            .store_changed(&text, &stored_from, changes.into_iter())
            .unwrap();
        assert!(matches!(stored, StoredText::File { .. }));
        assert_eq!(texts_of.load(&stored).unwrap(), text);
    }
    let short = texts_of.store(&"short".into()).unwrap();
    let stored = texts_of
        .store_changed(&from, &short, std::iter::once((0..5, &*from)))
        .unwrap();
    assert!(matches!(stored, StoredText::File { .. }), "a record has no text twice");
}

#[test]
fn changes_that_do_not_fit_their_text_are_an_error() {
    let disk = SimDisk::new(0);
    let (directory, _log) = directory(&disk);
    let from = directory.texts().store(&"aüb".into()).unwrap();
    for ranges in ["2,3", "0,9", "9,9", "3,1", "1,3,0,1", "1,18446744073709551615"] {
        let numbers: Vec<&str> = ranges.split(',').collect();
        let changes = numbers.chunks(2).map(|range| {
            let (start, end) = (range[0], range[1]);
            format!(r#"{{"range":{{"start":{start},"end":{end}}},"text":""}}"#)
        });
        let changes = changes.collect::<Vec<_>>().join(",");
        let stored = StoredText::Changed {
            from: Box::new(from.clone()),
            changes: serde_json::from_str(&format!("[{changes}]")).unwrap(),
        };
        let error = directory.texts().load(&stored).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{ranges}");
    }
    let unchanged = |from| StoredText::Changed {
        from: Box::new(from),
        changes: Arc::default(),
    };
    let once = unchanged(from);
    assert_eq!(&*directory.texts().load(&once).unwrap(), "aüb");
    let error = directory.texts().load(&unchanged(once)).unwrap_err();
    assert_eq!(
        error.kind(),
        io::ErrorKind::InvalidData,
        "changes of changes are never written"
    );
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
        let stored = StoredText::File {
            name: name.to_owned(),
            length: 0,
            crc: 0,
        };
        assert!(directory.texts().load(&stored).is_err());
        directory.texts().remove(name);
        assert_eq!(disk.calls(), calls, "{name}");
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
    directory.texts().remove(&name(&stored));
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
    directory.texts().remove(&name(&stored));
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

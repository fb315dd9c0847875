//! A disk that is full, or fails once.

use std::io;
use std::sync::Arc;

use crate::disk::{Disk, Folder};
use crate::generation::RESERVE_BYTES;
use crate::sync::{SyncThread, Syncer};
use crate::{Directory, Fault, Log, Recovered, SimDisk};

fn open(disk: &SimDisk) -> (Directory, Log, Recovered) {
    let directory = Directory::on(Arc::new(disk.clone()));
    let (log, recovered) = Log::open(&directory, "state").unwrap();
    (directory, log, recovered)
}

fn record(size: usize, fill: u8) -> Vec<u8> {
    vec![fill; size]
}

#[test]
fn full_disk_refuses_large_appends_and_takes_small_ones_from_the_reserve() {
    let disk = SimDisk::new(0);
    let (_directory, mut log, _) = open(&disk);
    log.append(&[record(10, 1)]).unwrap();
    disk.set_capacity(Some(disk.used()));

    let error = log.append(&[record(20 * 1024, 2)]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    let mut expected = vec![record(10, 1)];
    let reserve = usize::try_from(RESERVE_BYTES).unwrap();
    for _ in 0..reserve / 1_000 {
        log.append(&[record(900, 3)]).unwrap();
        expected.push(record(900, 3));
    }
    assert_eq!(open(&disk.kill()).2.records, expected);

    // The reserve is used up.
    while log.append(&[record(900, 4)]).is_ok() {
        expected.push(record(900, 4));
    }
    assert_eq!(open(&disk.kill()).2.records, expected);

    disk.set_capacity(None);
    log.append(&[record(20 * 1024, 5)]).unwrap();
    expected.push(record(20 * 1024, 5));
    let (_, _, recovered) = open(&disk.lose_power().kill());
    assert!(recovered.records.len() <= expected.len());
    let (_, _, recovered) = open(&disk.kill());
    assert_eq!(recovered.records, expected);
    assert_eq!(recovered.damage, None);
}

#[test]
fn full_disk_refuses_a_compaction_and_the_log_goes_on() {
    let disk = SimDisk::new(0);
    let (directory, mut log, _) = open(&disk);
    log.append(&[record(100, 1)]).unwrap();
    disk.set_capacity(Some(disk.used() + 2_000));
    assert!(log.compact(&[record(100, 2)]).is_err());
    log.append(&[record(100, 3)]).unwrap();
    directory.sync().unwrap();
    let (_, mut log, recovered) = open(&disk.lose_power());
    assert_eq!(recovered.records, [record(100, 1), record(100, 3)]);
    log.append(&[record(100, 4)]).unwrap();
}

#[test]
fn failed_compaction_is_not_wanted_again_at_once() {
    let disk = SimDisk::new(0);
    let (_directory, mut log, _) = open(&disk);
    log.append(&[record(5 << 20, 1)]).unwrap();
    assert!(log.wants_compaction());
    disk.fail_at(disk.calls(), Fault::Full);
    log.compact(&[]).unwrap_err();
    assert!(!log.wants_compaction());
    log.append(&[record(2 << 20, 1)]).unwrap();
    assert!(log.wants_compaction());
}

/// A batch whose first record was written completely when the write failed.
#[test]
fn nothing_of_a_failed_append_comes_back() {
    for seed in 0..50 {
        let disk = SimDisk::new(seed);
        let (directory, mut log, _) = open(&disk);
        log.append(&[record(10, 1)]).unwrap();
        directory.sync().unwrap();
        disk.fail_at(disk.calls(), Fault::Broken);
        log.append(&[record(600, 2), record(600, 3), record(600, 4)])
            .unwrap_err();
        assert_eq!(open(&disk.kill()).2.records, [record(10, 1)]);
        assert_eq!(open(&disk.lose_power()).2.records, [record(10, 1)]);
        log.append(&[record(600, 5)]).unwrap();
        assert_eq!(open(&disk.kill()).2.records, [record(10, 1), record(600, 5)]);
    }
}

/// The operating system may have dropped what it could not write, so a second sync proves nothing.
#[test]
fn log_whose_sync_failed_is_durable_again_only_after_a_compaction() {
    let disk = SimDisk::new(0);
    let (directory, mut log, _) = open(&disk);
    directory.sync().unwrap();
    log.append(&[record(10, 1)]).unwrap();
    disk.fail_at(disk.calls(), Fault::Broken);
    assert!(directory.sync().is_err());
    assert!(directory.sync().is_err());
    assert!(directory.problem().is_some());
    assert!(log.wants_compaction());
    log.append(&[record(10, 2)]).unwrap();
    log.compact(&[record(10, 1), record(10, 2)]).unwrap();
    assert!(!log.wants_compaction());
    directory.sync().unwrap();
    assert_eq!(directory.problem(), None);
    assert_eq!(open(&disk.lose_power()).2.records, [record(10, 1), record(10, 2)]);
}

#[test]
fn text_that_does_not_fit_is_refused_and_leaves_nothing_behind() {
    let disk = SimDisk::new(0);
    let (directory, _log, _) = open(&disk);
    disk.set_capacity(Some(disk.used() + 40_000));
    let text: Arc<str> = "x".repeat(50_000).into();
    assert_eq!(
        directory.texts().store(&text).unwrap_err().kind(),
        io::ErrorKind::StorageFull
    );
    assert!(disk.names(Folder::Texts).unwrap().is_empty());
    directory.texts().store(&"x".repeat(40_000).into()).unwrap();
}

#[test]
fn new_log_waits_for_the_disk_and_gets_its_name_with_the_first_record() {
    let disk = SimDisk::new(0);
    let (_directory, mut log, _) = open(&disk);
    assert_eq!(disk.names(Folder::Root).unwrap(), ["state-1.new"]);
    assert_eq!(open(&disk.lose_power()).2.damage, None);

    let failing = disk.calls();
    disk.fail_at(failing, Fault::Broken);
    assert!(log.append(&[record(10, 1)]).is_err());
    assert!(log.append(&[record(10, 1)]).is_err(), "a sync that failed was trusted");
    assert!(log.wants_compaction());
    log.compact(&[]).unwrap();
    log.append(&[record(10, 2)]).unwrap();
    assert_eq!(disk.names(Folder::Root).unwrap(), ["state-2"]);
    assert_eq!(open(&disk.kill()).2.records, [record(10, 2)]);
}

#[test]
fn new_log_gets_its_name_with_a_sync() {
    let disk = SimDisk::new(0);
    let (directory, log, _) = open(&disk);
    directory.sync().unwrap();
    let (_, found, recovered) = open(&disk.lose_power());
    assert_eq!((found.epoch(), recovered.damage), (log.epoch(), None));
}

#[test]
fn too_large_record_is_refused_before_anything_is_written() {
    let disk = SimDisk::new(0);
    let (_directory, mut log, _) = open(&disk);
    let calls = disk.calls();
    let error = log.append(&[record(10, 1), vec![0; 1 << 28]]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert_eq!(disk.calls(), calls);
}

#[test]
fn disk_use_stays_below_twice_what_is_live_and_some_slack() {
    let disk = SimDisk::new(0);
    let (directory, mut log, _) = open(&disk);
    let live: Vec<_> = (0..50).map(|number| record(20 * 1024, number)).collect();
    let size: usize = live.iter().map(Vec::len).sum();
    let mut most = 0;
    for number in 0..2_000_u32 {
        log.append(&[record(8 * 1024, 0)]).unwrap();
        if number % 50 == 0 {
            directory.sync().unwrap();
        }
        if log.wants_compaction() {
            log.compact(&live).unwrap();
        }
        most = most.max(disk.used());
    }
    assert!(most > 4 << 20, "nothing was measured");
    assert!(most < 2 * size + (5 << 20), "{most}");
}

#[test]
fn thread_tries_again_after_a_sync_that_was_asked_for_failed() {
    let disk = SimDisk::new(0);
    let syncer = Syncer::new(Arc::new(disk.clone()));
    let directory = Directory::with(syncer.clone(), Some(SyncThread::start(syncer).unwrap()));
    let (_log, _) = Log::open(&directory, "state").unwrap();
    directory.sync().unwrap();
    directory.texts().store(&"x".repeat(40_000).into()).unwrap();
    disk.fail_at(disk.calls(), Fault::Broken);
    let _ = directory.sync();
    while directory.problem().is_some() {
        std::thread::yield_now();
    }
}

#[test]
fn handles_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Directory>();
    shared::<Log>();
    shared::<crate::Handover<Vec<u8>>>();
    shared::<crate::Ticket>();
}

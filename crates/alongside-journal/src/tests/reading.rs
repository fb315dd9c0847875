//! Files that were cut off, damaged, written by another version, or by no journal at all.

use std::sync::Arc;

use proptest::prelude::*;

use crate::disk::{Disk, Folder};
use crate::format::{Epoch, FRAMES_START, HEADER_OFFSETS, Header, Kind, MARK_OFFSETS, encode_mark, push_frame};
use crate::read::{Unreadable, read};
use crate::{Directory, Log, Recovered, SimDisk};

/// Format 1.0 as it was first released. Never change this file: later versions must read it.
const GOLDEN: &[u8] = include_bytes!("../../tests/golden/format-1.0");

const HEADER: Header = Header {
    epoch: Epoch(0x0123_4567),
    generation: 1,
    first_seq: 1,
    salt: 0x89ab_cdef,
};

/// A snapshot of two records, and three that were appended: sizes around a sector, so that each has one of its own.
fn records() -> Vec<Vec<u8>> {
    let sizes = [300, 0, 700, 1, 900];
    (1..).zip(sizes).map(|(fill, size)| vec![fill; size]).collect()
}

/// A file with these records, and where each frame begins; the last one is the end.
fn file() -> (Vec<u8>, Vec<usize>) {
    let mut frames = Vec::new();
    let mut starts = Vec::new();
    let mut push = |frames: &mut Vec<u8>, kind, payload: &[u8]| {
        starts.push(FRAMES_START + frames.len());
        push_frame(frames, HEADER.salt, kind, starts.len() as u64, payload).unwrap();
    };
    for (position, record) in records().iter().enumerate() {
        if position == 2 {
            push(&mut frames, Kind::Whole, &[]);
        }
        push(&mut frames, Kind::Record, record);
    }
    let end = FRAMES_START + frames.len();
    starts.push(end);
    let mut file = HEADER.encode_head(end as u64);
    file.extend(frames);
    (file, starts)
}

fn with_zeros(mut file: Vec<u8>) -> Vec<u8> {
    file.resize(file.len() + 3_000, 0);
    file
}

fn set_mark(file: &mut [u8], durable_end: usize) {
    for offset in MARK_OFFSETS {
        let mark = encode_mark(durable_end as u64);
        file[offset..offset + mark.len()].copy_from_slice(&mark);
    }
}

/// Opens a directory with these files.
fn open(files: &[(&str, &[u8])]) -> (SimDisk, Log, Recovered) {
    let disk = SimDisk::new(0);
    for (name, contents) in files {
        let file = disk.create(name).unwrap();
        file.write_at(0, contents).unwrap();
    }
    let (log, recovered) = Log::open(&Directory::on(Arc::new(disk.clone())), "state").unwrap();
    (disk, log, recovered)
}

/// Opens a file, appends, and opens it again: the same records and one more, and nothing to report.
fn open_and_go_on(file: &[u8]) -> (SimDisk, Recovered) {
    let (disk, mut log, recovered) = open(&[("state-1", file)]);
    log.append(&[b"more".to_vec()]).unwrap();
    let mut expected = recovered.records.clone();
    expected.push(b"more".to_vec());
    let (_, again) = Log::open(&Directory::on(Arc::new(disk.kill())), "state").unwrap();
    assert_eq!(again.records, expected);
    assert_eq!(again.damage, None);
    assert_eq!(again.epoch, recovered.epoch);
    (disk, recovered)
}

#[test]
fn golden_file_of_format_1_0_is_read_and_written_byte_for_byte() {
    let (file, _) = file();
    assert_eq!(file, GOLDEN);
    let (_, recovered) = open_and_go_on(GOLDEN);
    assert_eq!(recovered.records, records());
    assert_eq!(recovered.damage, None);
    assert_eq!(recovered.epoch.to_string(), "01234567");
}

#[test]
fn cut_off_tail_is_dropped_silently() {
    let (whole, starts) = file();
    let kept = |end: usize| starts[1..].iter().filter(|frame_end| **frame_end <= end).count();
    for cut in (starts[3]..whole.len()).step_by(11).chain(starts[3..6].iter().copied()) {
        // The snapshot's marker is a frame, but no record.
        let expected = &records()[..kept(cut) - 1];
        for file in [whole[..cut].to_vec(), with_zeros(whole[..cut].to_vec())] {
            let (_, recovered) = open_and_go_on(&file);
            assert_eq!(recovered.records, expected, "cut at {cut}");
            assert_eq!(recovered.damage, None, "cut at {cut}");
        }
    }
}

#[test]
fn flipped_or_overwritten_last_record_is_dropped_silently() {
    let (whole, starts) = file();
    for at in [starts[5], starts[5] + 5, starts[5] + 9, starts[5] + 20, whole.len() - 1] {
        for value in [0x00, 0x01, 0x80, 0xff] {
            let mut file = with_zeros(whole.clone());
            file[at] ^= value;
            if value == 0 {
                file[at..].fill(0xaa);
            }
            let (_, recovered) = open_and_go_on(&file);
            assert_eq!(recovered.records, records()[..4], "{value} at {at}");
            assert_eq!(recovered.damage, None);
        }
    }
}

#[test]
fn damage_in_the_middle_loses_only_what_was_hit_and_is_reported_once_with_a_copy() {
    let (whole, starts) = file();
    // Frame 2 is the marker of the snapshot.
    for (frame, lost) in [(0, 0), (1, 1), (3, 2), (4, 3)] {
        for at in [
            starts[frame],
            starts[frame] + 4,
            starts[frame] + 8,
            starts[frame + 1] - 1,
        ] {
            let mut file = with_zeros(whole.clone());
            file[at] ^= 0x10;
            let (disk, recovered) = open_and_go_on(&file);
            let mut expected = records();
            expected.remove(lost);
            assert_eq!(recovered.records, expected, "frame {frame}, at {at}");
            let damage = recovered.damage.unwrap().to_string();
            assert!(damage.contains("/simulated/state-1.damaged"), "{damage}");
            assert!(damage.contains("damaged bytes were skipped"), "{damage}");
            assert_eq!(disk.read("state-1.damaged").unwrap(), file);
            assert_eq!(recovered.epoch, HEADER.epoch);
        }
    }
}

#[test]
fn two_damaged_places_lose_two_records() {
    let (mut file, starts) = file();
    file[starts[0] + 20] ^= 1;
    file[starts[3] + 20] ^= 1;
    let (_, recovered) = open_and_go_on(&file);
    let all = records();
    assert_eq!(recovered.records, [&all[1], &all[3], &all[4]].map(Clone::clone));
}

#[test]
fn zeroed_sector_of_synced_records_is_skipped() {
    let (whole, starts) = file();
    let mut file = with_zeros(whole);
    let sector = starts[3].next_multiple_of(512);
    file[sector..sector + 512].fill(0);
    let (_, recovered) = open_and_go_on(&file);
    assert_eq!(recovered.records.last(), records().last());
    assert!(recovered.damage.is_some());
}

/// Otherwise an old decision could be missing while one that builds on it is there.
#[test]
fn hole_in_unsynced_records_ends_the_log_there() {
    let (whole, starts) = file();
    let mut file = with_zeros(whole);
    set_mark(&mut file, starts[3]);
    file[starts[3]..starts[3] + 512].fill(0);
    let (_, recovered) = open_and_go_on(&file);
    assert_eq!(recovered.records, records()[..2]);
    let damage = recovered.damage.unwrap().to_string();
    assert!(
        damage.contains("not saved completely before the computer stopped"),
        "{damage}"
    );
}

#[test]
fn one_damaged_header_or_mark_does_no_harm() {
    let (whole, _) = file();
    for offset in HEADER_OFFSETS.into_iter().chain(MARK_OFFSETS) {
        for at in offset..offset + 12 {
            let mut file = whole.clone();
            file[at] ^= 1;
            let (_, recovered) = open_and_go_on(&file);
            assert_eq!(recovered.records, records(), "at {at}");
            assert_eq!(recovered.damage, None);
            assert_eq!(recovered.epoch, HEADER.epoch);
        }
    }
}

#[test]
fn file_without_a_header_is_set_aside_and_reported() {
    for contents in [&b""[..], b"hello", &[0; 5_000], &[0xff; 5_000]] {
        let (disk, recovered) = open_and_go_on(contents);
        assert!(recovered.records.is_empty());
        let damage = recovered.damage.unwrap().to_string();
        assert!(
            damage.ends_with("the damaged file is /simulated/state-1.damaged"),
            "{damage}"
        );
        assert_eq!(disk.read("state-1.damaged").unwrap(), contents);
    }
}

#[test]
fn other_major_version_is_left_alone_and_reported() {
    let (mut file, _) = file();
    file[8] = 2;
    file[HEADER_OFFSETS[1] + 8] = 2;
    let (disk, recovered) = open_and_go_on(&file);
    assert!(recovered.records.is_empty());
    let damage = recovered.damage.unwrap().to_string();
    assert!(
        damage.contains("in format 2; it was left alone in /simulated/state-1.format-2"),
        "{damage}"
    );
    assert_eq!(disk.read("state-1.format-2").unwrap(), file);
}

#[test]
fn later_minor_version_and_its_unknown_frames_are_read() {
    let (mut file, starts) = file();
    let end = *starts.last().unwrap();
    let mut unknown = Vec::new();
    push_frame(&mut unknown, HEADER.salt, Kind::Unknown, 7, b"later").unwrap();
    push_frame(&mut unknown, HEADER.salt, Kind::Record, 8, b"record").unwrap();
    file.extend(unknown);
    set_mark(&mut file, end);
    for offset in HEADER_OFFSETS {
        file[offset + 10] = 9;
        let crc = crc32fast::hash(&file[offset..offset + 36]).to_le_bytes();
        file[offset + 36..offset + 40].copy_from_slice(&crc);
    }
    let (_, recovered) = open_and_go_on(&file);
    assert_eq!(recovered.records.len(), 6);
    assert_eq!(recovered.records[5], b"record");
    assert_eq!(recovered.damage, None);
}

#[test]
fn newest_generation_with_a_whole_snapshot_counts() {
    let (older, starts) = file();
    let header = Header {
        generation: 2,
        ..HEADER
    };
    let mut newer = header.encode_head(5_000);
    push_frame(&mut newer, header.salt, Kind::Record, 1, b"new").unwrap();
    let incomplete = newer.clone();
    push_frame(&mut newer, header.salt, Kind::Whole, 2, b"").unwrap();

    let (_, _, recovered) = open(&[("state-1", &older), ("state-2", &newer)]);
    assert_eq!(recovered.records, [b"new"]);
    assert_eq!(recovered.damage, None);

    let (disk, log, recovered) = open(&[("state-1", &older), ("state-2", &incomplete)]);
    assert_eq!(recovered.records, records());
    assert!(recovered.damage.is_some());
    assert!(disk.read("state-2.damaged").is_ok());
    drop(log);

    // Without an older one, what is left is better than nothing.
    let (_, recovered) = open_and_go_on(&older[..starts[1]]);
    assert_eq!(recovered.records, records()[..1]);
    assert!(recovered.damage.is_some());
}

#[test]
fn unfinished_generations_and_old_copies_are_removed() {
    let (file, _) = file();
    let (disk, log, recovered) = open(&[
        ("state-7", &file),
        ("state-8.new", b"unfinished"),
        ("state-3.damaged", b""),
        ("state-4.damaged", b""),
        ("state-5.damaged", b""),
        ("state-6.damaged", b""),
        ("states-9", b"of another log"),
        ("state-x-1", b"of another log"),
    ]);
    assert_eq!(recovered.records, records());
    drop(log);
    let directory = Directory::on(Arc::new(disk.clone()));
    let _log = Log::open(&directory, "state").unwrap();
    directory.sync().unwrap();
    let mut names = disk.names(Folder::Root).unwrap();
    names.sort();
    let expected = [
        "state-4.damaged",
        "state-5.damaged",
        "state-6.damaged",
        "state-7",
        "state-x-1",
        "states-9",
    ];
    assert_eq!(names, expected);
}

#[test]
fn damaged_log_on_a_full_disk_is_used_as_it_is() {
    let (mut file, starts) = file();
    file[starts[3] + 20] ^= 1;
    let disk = SimDisk::new(0);
    disk.create("state-1").unwrap().write_at(0, &with_zeros(file)).unwrap();
    disk.set_capacity(Some(disk.used() + 100));
    for appended in 0..3 {
        let directory = Directory::on(Arc::new(disk.clone()));
        let (mut log, recovered) = Log::open(&directory, "state").unwrap();
        assert_eq!(recovered.records.len(), 4 + appended);
        assert!(recovered.damage.unwrap().to_string().ends_with("/simulated/state-1"));
        log.append(&[b"decision".to_vec()]).unwrap();
    }
}

/// A text that contains what looks like a frame must not become one when the record around it is damaged.
#[test]
fn frame_inside_a_text_is_not_found() {
    let mut inner = Vec::new();
    push_frame(&mut inner, 0, Kind::Record, 8, b"forged").unwrap();
    let (mut file, starts) = file();
    let end = *starts.last().unwrap();
    push_frame(&mut file, HEADER.salt, Kind::Record, 7, &inner).unwrap();
    push_frame(&mut file, HEADER.salt, Kind::Record, 8, b"real").unwrap();
    let length = file.len();
    set_mark(&mut file, length);
    file[end] ^= 1;
    let (_, recovered) = open_and_go_on(&file);
    assert_eq!(recovered.records.last().unwrap(), b"real");
    assert_eq!(recovered.records.len(), 6);
}

/// Contents made up of false frames would take quadratic time to search.
#[test]
fn search_for_frames_gives_up_and_says_so() {
    let (mut file, starts) = file();
    file.truncate(starts[5]);
    let length = 1_u32 << 20;
    while file.len() < 3 << 20 {
        file.extend(length.to_le_bytes());
        file.extend([0; 4]);
        file.extend(6_u64.to_le_bytes());
    }
    set_mark(&mut file, 3 << 20);
    let (_, recovered) = open_and_go_on(&file);
    assert_eq!(recovered.records, records()[..4]);
    assert!(recovered.damage.is_some());
}

fn is_subsequence(part: &[Vec<u8>], all: &[Vec<u8>]) -> bool {
    let mut all = all.iter();
    part.iter().all(|record| all.any(|other| other == record))
}

/// One change to a file.
#[derive(Clone, Debug)]
enum Change {
    Flip(usize, u8),
    Zero(usize, usize),
    Garbage(usize, Vec<u8>),
    Insert(usize, Vec<u8>),
    Cut(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = 0_usize..6_000;
    let bytes = prop::collection::vec(any::<u8>(), 1..600);
    prop_oneof![
        (at.clone(), any::<u8>()).prop_map(|(at, bits)| Change::Flip(at, bits)),
        (at.clone(), 1_usize..1_000).prop_map(|(at, length)| Change::Zero(at, length)),
        (at.clone(), bytes.clone()).prop_map(|(at, bytes)| Change::Garbage(at, bytes)),
        (at.clone(), bytes).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        at.prop_map(Change::Cut),
    ]
}

fn apply(file: &mut Vec<u8>, change: Change) {
    let length = file.len();
    if length == 0 {
        return;
    }
    match change {
        Change::Flip(at, bits) => file[at % length] ^= bits,
        Change::Zero(at, count) => file[at % length..].iter_mut().take(count).for_each(|byte| *byte = 0),
        Change::Garbage(at, bytes) => {
            let there = file[at % length..].iter_mut();
            there.zip(bytes).for_each(|(there, byte)| *there = byte);
        }
        Change::Insert(at, bytes) => {
            let at = at % length;
            file.splice(at..at, bytes);
        }
        Change::Cut(at) => file.truncate(at % length),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reader_accepts_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..3_000)) {
        prop_assert!(matches!(read(&bytes), Err(Unreadable::Damaged)));
    }

    #[test]
    fn reader_accepts_any_frames(bytes in prop::collection::vec(prop_oneof![Just(0), Just(8), any::<u8>()], 0..300)) {
        let mut file = HEADER.encode_head(1 << 30);
        file.extend(bytes);
        let generation = read(&file).unwrap();
        prop_assert!(generation.records.is_empty());
    }

    #[test]
    fn damaged_file_is_read_without_inventing_records_and_recovered_once(
        changes in prop::collection::vec(change(), 1..4),
    ) {
        let mut file = with_zeros(file().0);
        for change in changes {
            apply(&mut file, change);
        }
        let (_, recovered) = open_and_go_on(&file);
        prop_assert!(is_subsequence(&recovered.records, &records()));
    }
}

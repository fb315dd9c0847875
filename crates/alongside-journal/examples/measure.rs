//! How long the journal takes: `cargo run --release -p alongside-journal --example measure -- [directory]`.
//!
//! Kinds are interleaved in rounds, and everything is synced before each, so that none pays for another. The thread syncs
//! in the background, as in the companion.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for developers")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use alongside_journal::{Directory, Handover, Log, StoredText};

const ROUNDS: usize = 5;

fn main() {
    let parent = std::env::args_os()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(parent).unwrap();
    println!("| | median (rounds) | 99 of 100 below |\n|---|---|---|");
    writes(&folder.path().join("writes"));
    recovery(&folder.path().join("recovery"));
    disk_use(&folder.path().join("disk-use"));
}

/// Something that is timed, so many times a round.
struct Kind {
    name: &'static str,
    count: usize,
    /// Bytes of the record, or of each of the two texts it names.
    size: Size,
    rounds: Vec<Duration>,
    all: Vec<Duration>,
}

#[derive(Clone, Copy)]
enum Size {
    Record(usize),
    Texts(usize),
    /// The same, with nothing left to sync from the time before.
    CalmTexts(usize),
    /// A record through the handover.
    Handed(usize),
}

fn writes(path: &Path) {
    let directory = Directory::open(path).unwrap();
    let (mut log, _) = Log::open(&directory, "state").unwrap();
    let kind = |name, count, size| Kind {
        name,
        count,
        size,
        rounds: Vec::new(),
        all: Vec::new(),
    };
    let mut kinds = [
        kind("append 300 B", 5_000, Size::Record(300)),
        kind("the same through the handover", 5_000, Size::Handed(300)),
        kind("two texts of 1 KiB, and their record", 2_000, Size::Texts(1 << 10)),
        kind("two texts of 100 KiB", 50, Size::CalmTexts(100 << 10)),
        kind("the same, without a pause", 200, Size::Texts(100 << 10)),
        kind("two texts of 5 MiB", 6, Size::CalmTexts(5 << 20)),
        kind("the same, without a pause", 6, Size::Texts(5 << 20)),
    ];
    for _ in 0..ROUNDS {
        for kind in &mut kinds {
            directory.sync().unwrap();
            let times: Vec<_> = (0..kind.count)
                .map(|_| write(&directory, &mut log, kind.size))
                .collect();
            kind.rounds.push(quantile(&times, 50));
            kind.all.extend(times);
            log.compact(&[]).unwrap();
        }
    }
    for kind in kinds {
        let (low, high) = (kind.rounds.iter().min().unwrap(), kind.rounds.iter().max().unwrap());
        let median = quantile(&kind.rounds, 50);
        let most = quantile(&kind.all, 99);
        println!("| {} | {median:.1?} ({low:.1?}–{high:.1?}) | {most:.1?} |", kind.name);
    }
}

fn write(directory: &Directory, log: &mut Log, size: Size) -> Duration {
    match size {
        Size::Record(size) => {
            let record = [vec![b'x'; size]];
            timed(|| log.append(&record).unwrap())
        }
        Size::Handed(size) => {
            let handover = Handover::new();
            timed(|| {
                let ticket = handover.push(vec![b'x'; size]);
                handover.lead(|batch| log.append(&batch).map_err(|error| error.to_string().into()));
                ticket.wait().unwrap();
            })
        }
        Size::CalmTexts(size) => {
            directory.sync().unwrap();
            write(directory, log, Size::Texts(size))
        }
        Size::Texts(size) => {
            let texts: [Arc<str>; 2] = ["a", "b"].map(|text| text.repeat(size).into());
            let mut stored = Vec::new();
            let time = timed(|| {
                stored.extend(texts.iter().map(|text| directory.texts().store(text).unwrap()));
                log.append(&[serde_json::to_vec(&stored).unwrap()]).unwrap();
            });
            // Only the large ones, for the space. For some seconds, ext4 searches all inodes just freed for each new file.
            for file in stored
                .iter()
                .filter_map(StoredText::file_name)
                .filter(|_| size > 1 << 20)
            {
                directory.texts().remove(file);
            }
            time
        }
    }
}

fn recovery(path: &Path) {
    let directory = Directory::open(path).unwrap();
    let (mut log, _) = Log::open(&directory, "state").unwrap();
    let text: Arc<str> = "x".repeat(20 << 10).into();
    let record = serde_json::to_vec(&StoredText::Inline(text)).unwrap();
    for _ in 0..1_000 {
        log.append(std::slice::from_ref(&record)).unwrap();
    }
    drop((log, directory));
    let times: Vec<_> = (0..9)
        .map(|_| {
            let mut opened = None;
            let time = timed(|| {
                let directory = Directory::open(path).unwrap();
                opened = Some(Log::open(&directory, "state").unwrap());
            });
            assert_eq!(opened.unwrap().1.records.len(), 1_000);
            time
        })
        .collect();
    let (low, high) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    println!(
        "| recovery of 1,000 records of 20 KiB | {:.1?} ({low:.1?}–{high:.1?}) | |",
        quantile(&times, 50)
    );
}

fn disk_use(path: &Path) {
    let directory = Directory::open(path).unwrap();
    let (mut log, _) = Log::open(&directory, "state").unwrap();
    let live: Vec<_> = (0..100).map(|_| vec![b'x'; 20 << 10]).collect();
    let mut most = 0;
    let mut compactions = Vec::new();
    for number in 0..10_000 {
        let record = if number % 10 == 0 { 20 << 10 } else { 300 };
        log.append(&[vec![b'x'; record]]).unwrap();
        if log.wants_compaction() {
            most = most.max(bytes_in(path));
            compactions.push(timed(|| log.compact(&live).unwrap()));
        }
    }
    most = most.max(bytes_in(path));
    log.compact(&live).unwrap();
    println!(
        "\nDisk use during 10,000 appends with 2.0 MB live: at most {:.1} MB; compacted: {:.1} MB; {} compactions of {:.1?}.",
        megabytes(most),
        megabytes(bytes_in(path)),
        compactions.len(),
        quantile(&compactions, 50),
    );
}

fn timed(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

fn quantile(times: &[Duration], percent: usize) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

fn bytes_in(path: &Path) -> u64 {
    let entries = fs::read_dir(path).unwrap();
    entries.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[allow(clippy::cast_precision_loss, reason = "one digit is printed")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

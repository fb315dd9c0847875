//! Random histories with a crash at any disk call, compared with a model.
//!
//! The model is the list of states that the log went through, one per record. What a process finds after a kill is a
//! state at or after the last acknowledged one; after a power loss, at or after the last synced one. Calls that fail
//! leave no state behind.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use crate::disk::{Disk, Folder};
use crate::{Directory, Fault, Log, MAX_INLINE_BYTES, Recovered, SimDisk, StoredText};

#[derive(Clone, Debug)]
enum Step {
    /// Records of these sizes, in one batch.
    Append(Vec<usize>),
    /// A text, and a record that names it.
    AddText,
    /// A record that a text is no longer needed, and its removal.
    DropText,
    /// With the records of the texts still needed, and some others.
    Compact,
    Sync,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Kill,
    PowerLoss,
}

/// The life of one process.
#[derive(Clone, Debug)]
struct Life {
    steps: Vec<Step>,
    /// Calls that fail, and how.
    faults: Vec<(u64, bool)>,
    /// The call to crash at, if the process gets there.
    crash_at: u64,
    end: End,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    number: u64,
    text: Option<StoredText>,
    drops: Option<u64>,
    padding: String,
}

/// The numbers of the records in the log.
type State = Vec<u64>;

struct Model {
    records: BTreeMap<u64, Record>,
    /// From the last one known to be durable.
    states: Vec<State>,
    acknowledged: usize,
    next: u64,
    /// Lost with the power before they were synced.
    lost_texts: BTreeSet<u64>,
    /// Nothing but kills so far: there is nothing to report.
    only_kills: bool,
}

impl Model {
    fn new() -> Self {
        Self {
            records: BTreeMap::new(),
            states: vec![State::new()],
            acknowledged: 0,
            next: 0,
            lost_texts: BTreeSet::new(),
            only_kills: true,
        }
    }

    fn record(&mut self, size: usize, text: Option<StoredText>, drops: Option<u64>) -> Record {
        let record = Record {
            number: self.next,
            text,
            drops,
            padding: "x".repeat(size),
        };
        self.records.insert(record.number, record.clone());
        self.next += 1;
        record
    }

    fn current(&self) -> &State {
        &self.states[self.acknowledged]
    }

    fn live_texts(&self, state: &State) -> BTreeMap<u64, StoredText> {
        let mut live = BTreeMap::new();
        for number in state {
            let record = &self.records[number];
            if let Some(text) = &record.text {
                live.insert(*number, text.clone());
            }
            if let Some(dropped) = record.drops {
                live.remove(&dropped);
            }
        }
        live
    }

    /// What the log should now go through. Until `acknowledge` it is only possible.
    fn attempt(&mut self, states: impl IntoIterator<Item = State>) {
        self.states.truncate(self.acknowledged + 1);
        self.states.extend(states);
    }

    fn acknowledge(&mut self) {
        self.acknowledged = self.states.len() - 1;
    }

    fn reject(&mut self) {
        self.states.truncate(self.acknowledged + 1);
    }

    fn synced(&mut self) {
        self.states.drain(..self.acknowledged);
        self.acknowledged = 0;
    }
}

fn encode(record: &Record) -> Vec<u8> {
    serde_json::to_vec(record).unwrap()
}

fn text_of(number: u64) -> Arc<str> {
    format!("text {number} ").repeat(MAX_INLINE_BYTES / 6).into()
}

struct Process<'a> {
    model: &'a mut Model,
    disk: SimDisk,
    directory: Directory,
    log: Log,
}

impl Process<'_> {
    fn append(&mut self, records: &[Record]) -> bool {
        let mut state = self.model.current().clone();
        let mut states = Vec::new();
        for record in records {
            state.push(record.number);
            states.push(state.clone());
        }
        self.model.attempt(states);
        let payloads: Vec<_> = records.iter().map(encode).collect();
        let appended = self.log.append(&payloads).is_ok();
        self.settle(appended)
    }

    fn settle(&mut self, succeeded: bool) -> bool {
        if succeeded {
            self.model.acknowledge();
        } else if !self.disk.has_crashed() {
            self.model.reject();
        }
        succeeded
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Append(sizes) => {
                let records: Vec<_> = sizes.iter().map(|size| self.model.record(*size, None, None)).collect();
                self.append(&records);
            }
            Step::AddText => {
                let Ok(text) = self.directory.texts().store(&text_of(self.model.next)) else {
                    return;
                };
                let record = self.model.record(10, Some(text.clone()), None);
                if !self.append(&[record]) {
                    self.directory.texts().remove(&file_name(&text));
                }
            }
            Step::DropText => {
                let Some((number, text)) = self.model.live_texts(self.model.current()).pop_first() else {
                    return;
                };
                let record = self.model.record(10, None, Some(number));
                if self.append(&[record]) {
                    self.directory.texts().remove(&file_name(&text));
                }
            }
            Step::Compact => {
                let state = self.model.current().clone();
                let live = self.model.live_texts(&state);
                let needed = |number: &u64| {
                    let record = &self.model.records[number];
                    live.contains_key(number)
                        || (record.text.is_none() && record.drops.is_none() && number.is_multiple_of(3))
                };
                let snapshot: State = state.iter().copied().filter(needed).collect();
                let payloads: Vec<_> = snapshot
                    .iter()
                    .map(|number| encode(&self.model.records[number]))
                    .collect();
                self.model.attempt([snapshot]);
                let compacted = self.log.compact(&payloads).is_ok();
                self.settle(compacted);
            }
            Step::Sync => {
                if self.directory.sync().is_ok() {
                    self.model.synced();
                }
            }
        }
    }
}

fn open(disk: &SimDisk) -> (Directory, Log, Recovered) {
    let directory = Directory::on(Arc::new(disk.clone()));
    let (log, recovered) = Log::open(&directory, "state").unwrap();
    (directory, log, recovered)
}

fn live(model: &mut Model, disk: &SimDisk, life: &Life) -> SimDisk {
    for (call, full) in &life.faults {
        disk.fail_at(*call, if *full { Fault::Full } else { Fault::Broken });
    }
    disk.fail_at(life.crash_at, Fault::Crash);
    let directory = Directory::on(Arc::new(disk.clone()));
    if let Ok((log, _)) = Log::open(&directory, "state") {
        let mut process = Process {
            model,
            disk: disk.clone(),
            directory,
            log,
        };
        for step in &life.steps {
            if process.disk.has_crashed() {
                break;
            }
            process.step(step);
        }
    }
    match life.end {
        End::Kill => disk.kill(),
        End::PowerLoss => disk.lose_power(),
    }
}

/// Opens what is left, checks it against the model, and brings the model up to date. Leaves the disk as it is.
fn check(model: &mut Model, disk: &SimDisk, life: &Life) {
    let copy = disk.kill();
    let (directory, log, recovered) = open(&copy);
    let state: State = recovered
        .records
        .iter()
        .map(|payload| {
            let record: Record = serde_json::from_slice(payload).unwrap();
            assert_eq!(*payload, encode(&model.records[&record.number]));
            record.number
        })
        .collect();
    let oldest = match life.end {
        End::Kill => model.acknowledged,
        End::PowerLoss => 0,
    };
    let found = model.states[oldest..].iter().position(|possible| *possible == state);
    let Some(found) = found.map(|found| found + oldest) else {
        panic!("found {state:?}, expected one of {:?}", &model.states[oldest..]);
    };
    model.only_kills &= life.faults.is_empty() && matches!(life.end, End::Kill);
    if model.only_kills {
        assert_eq!(recovered.damage, None);
    }
    check_texts(model, &directory, &state, &model.states[oldest].clone());

    // Recovering twice is recovering once.
    drop(log);
    let (_, log, twice) = open(&copy.kill());
    assert_eq!(twice.records, recovered.records);
    assert_eq!(twice.damage, None);
    // A log has no name before something is appended. Until then nobody can have seen its epoch on the disk.
    let has_name = copy.names(Folder::Root).unwrap().iter().any(|name| !name.contains('.'));
    assert!(!has_name || twice.epoch == recovered.epoch);
    assert!(log.size() < 1 << 20);
    check_leftovers(model, &copy, &directory, &state);

    match life.end {
        End::Kill => {
            model.states.truncate(found + 1);
            model.acknowledged = found;
        }
        End::PowerLoss => {
            model.states = vec![state];
            model.acknowledged = 0;
        }
    }
}

/// Texts of durable records are there. Others may be missing after a power loss, but are never wrong.
fn check_texts(model: &mut Model, directory: &Directory, state: &State, durable: &State) {
    for (number, text) in model.live_texts(state) {
        match directory.texts().load(&text) {
            Ok(loaded) => assert_eq!(loaded, text_of(number), "text {number}"),
            Err(error) if durable.contains(&number) && !model.lost_texts.contains(&number) => {
                panic!("text {number}: {error}")
            }
            Err(_) => {
                model.lost_texts.insert(number);
            }
        }
    }
}

/// After a sync there is nothing on the disk but what is needed.
fn check_leftovers(model: &Model, disk: &SimDisk, directory: &Directory, state: &State) {
    let _log = Log::open(directory, "state").unwrap();
    let live = model.live_texts(state);
    let names: HashSet<String> = live.values().map(file_name).collect();
    directory.texts().retain(names.clone());
    directory.sync().unwrap();
    for name in disk.names(Folder::Texts).unwrap() {
        assert!(names.contains(&name), "{name} is left over");
    }
    let logs = disk.names(Folder::Root).unwrap();
    let logs: Vec<_> = logs.iter().filter(|name| !name.ends_with(".damaged")).collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
}

fn file_name(text: &StoredText) -> String {
    text.file_name().expect("the model's texts are large").to_owned()
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => prop::collection::vec(prop_oneof![0_usize..200, 200_usize..3_000], 1..5).prop_map(Step::Append),
        2 => Just(Step::AddText),
        2 => Just(Step::DropText),
        1 => Just(Step::Compact),
        2 => Just(Step::Sync),
    ];
    prop::collection::vec(step, 0..25)
}

fn lives(faults: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Life>> {
    let life = (
        steps(),
        prop::collection::vec((0_u64..100, any::<bool>()), faults),
        0_u64..120,
        prop_oneof![Just(End::Kill), Just(End::PowerLoss)],
    );
    let life = life.prop_map(|(steps, faults, crash_at, end)| Life {
        steps,
        faults,
        crash_at,
        end,
    });
    prop::collection::vec(life, 1..4)
}

fn run(lives: &[Life], seed: u64) {
    let mut disk = SimDisk::new(seed);
    let mut model = Model::new();
    for life in lives {
        disk = live(&mut model, &disk, life);
        check(&mut model, &disk, life);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_crash_leaves_a_state_at_or_after_what_was_acknowledged_or_synced(
        lives in lives(0..1),
        seed in any::<u64>(),
    ) {
        run(&lives, seed);
    }

    #[test]
    fn failed_calls_change_nothing_and_later_ones_go_on(lives in lives(1..4), seed in any::<u64>()) {
        run(&lives, seed);
    }
}

/// A few in every run; `PROPTEST_CASES` for more.
fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(80)
}

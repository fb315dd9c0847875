//! A disk in memory that fails and crashes on request, for tests.
//!
//! It distinguishes what was written from what was synced. After a kill ([`SimDisk::kill`]) everything written is there,
//! and any prefix of the write under way. After a power loss ([`SimDisk::lose_power`]) each 512-byte sector has any of
//! the contents it had since the file's last sync, independent of all others; so have lengths and names.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::disk::{Disk, DiskFile, Folder, TEXTS_PREFIX};

const SECTOR: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process is killed during this call; every later one fails.
    Crash,
    /// This call fails: the disk is full.
    Full,
    /// This call fails: an I/O error.
    Broken,
}

/// Clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    sim: Arc<Mutex<Sim>>,
}

#[derive(Default)]
struct Sim {
    inodes: BTreeMap<usize, Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    unsynced_names: Vec<NameChange>,
    calls: u64,
    bytes_written: usize,
    faults: BTreeMap<u64, Fault>,
    crashed: bool,
    capacity: Option<usize>,
    random: Random,
}

#[derive(Clone, Default)]
struct Inode {
    contents: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

#[derive(Clone)]
enum NameChange {
    Create(String, usize),
    /// Of this file: a power loss never names a file that did not have the name.
    Rename(String, String, usize),
    Remove(String),
}

impl SimDisk {
    /// An empty disk. The seed decides everything that is left to chance.
    pub fn new(seed: u64) -> Self {
        let sim = Sim {
            random: Random(seed),
            ..Sim::default()
        };
        Self {
            sim: Arc::new(Mutex::new(sim)),
        }
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.sim.lock().calls
    }

    /// How many bytes were written to files, also those written over.
    pub fn bytes_written(&self) -> usize {
        self.sim.lock().bytes_written
    }

    /// Lets a call fail, counted from the first one ever made, which is 0.
    pub fn fail_at(&self, call: u64, fault: Fault) {
        self.sim.lock().faults.insert(call, fault);
    }

    /// Whether [`Fault::Crash`] came true.
    pub fn has_crashed(&self) -> bool {
        self.sim.lock().crashed
    }

    /// Limits the sum of all files' lengths.
    pub fn set_capacity(&self, bytes: Option<usize>) {
        self.sim.lock().capacity = bytes;
    }

    /// The sum of all files' lengths.
    pub fn used(&self) -> usize {
        self.sim.lock().used()
    }

    /// The disk that the next process finds after this one was killed.
    #[must_use]
    pub fn kill(&self) -> Self {
        let sim = self.sim.lock();
        let next = Sim {
            inodes: sim.inodes.clone(),
            names: sim.names.clone(),
            durable_names: sim.durable_names.clone(),
            unsynced_names: sim.unsynced_names.clone(),
            capacity: sim.capacity,
            random: Random(sim.random.0),
            ..Sim::default()
        };
        Self {
            sim: Arc::new(Mutex::new(next)),
        }
    }

    /// The disk that the next process finds after a power loss.
    #[must_use]
    pub fn lose_power(&self) -> Self {
        let killed = self.kill();
        {
            let mut sim = killed.sim.lock();
            let sim = &mut *sim;
            let mut names = std::mem::take(&mut sim.durable_names);
            for change in std::mem::take(&mut sim.unsynced_names) {
                if sim.random.below(2) == 0 {
                    change.apply(&mut names);
                }
            }
            sim.inodes.retain(|inode, _| names.values().any(|named| named == inode));
            for inode in sim.inodes.values_mut() {
                inode.lose_power(&mut sim.random);
            }
            sim.names.clone_from(&names);
            sim.durable_names = names;
        }
        killed
    }

    /// Changes a file behind the journal's back. Durable at once.
    pub fn corrupt(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut sim = self.sim.lock();
        if let Some(inode) = sim.names.get(name).copied().and_then(|id| sim.inodes.get_mut(&id)) {
            change(&mut inode.contents);
            inode.sync();
        }
    }
}

impl Sim {
    /// Counts a call. The outer error is that of a process that is gone, the inner one this call's own, which may come
    /// after a part of its effect.
    fn call(&mut self) -> io::Result<Result<(), io::Error>> {
        if self.crashed {
            return Err(io::Error::other("the process was killed"));
        }
        let call = self.calls;
        self.calls += 1;
        Ok(match self.faults.get(&call) {
            None => Ok(()),
            Some(Fault::Full) => Err(io::ErrorKind::StorageFull.into()),
            Some(Fault::Broken) => Err(io::Error::other("input/output error")),
            Some(Fault::Crash) => {
                self.crashed = true;
                Err(io::Error::other("the process was killed"))
            }
        })
    }

    /// A call that happens completely or not at all.
    fn atomic_call(&mut self, effect: impl FnOnce(&mut Self)) -> io::Result<()> {
        let result = self.call()?;
        if result.is_ok() || (self.crashed && self.random.below(2) == 0) {
            effect(self);
        }
        result
    }

    fn used(&self) -> usize {
        let inodes = self.names.values().filter_map(|inode| self.inodes.get(inode));
        inodes.map(|inode| inode.contents.len()).sum()
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        self.names
            .get(name)
            .copied()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.unsynced_names.push(change);
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Create(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            Self::Rename(from, to, inode) => {
                if names.get(from) == Some(inode) {
                    names.remove(from);
                }
                names.insert(to.clone(), *inode);
            }
            Self::Remove(name) => {
                names.remove(name);
            }
        }
    }

    fn folder(&self) -> Folder {
        match self {
            Self::Create(name, _) | Self::Rename(name, ..) | Self::Remove(name) => Folder::of(name),
        }
    }
}

impl Inode {
    fn apply(&mut self, change: Change) {
        match &change {
            Change::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if self.contents.len() < end {
                    self.contents.resize(end, 0);
                }
                self.contents[*offset..end].copy_from_slice(bytes);
            }
            Change::Length(length) => self.contents.resize(*length, 0),
        }
        self.unsynced.push(change);
    }

    fn sync(&mut self) {
        self.unsynced.clear();
        self.durable.clone_from(&self.contents);
    }

    /// Each sector keeps the contents it had after any of the unsynced changes, and so does the length.
    fn lose_power(&mut self, random: &mut Random) {
        let mut contents = std::mem::take(&mut self.durable);
        let mut length = Versioned::new(contents.len());
        let mut lost_sectors = BTreeMap::new();
        for change in std::mem::take(&mut self.unsynced) {
            let (offset, bytes) = match change {
                Change::Write { offset, bytes } => {
                    length.change(length.latest.max(offset + bytes.len()), random);
                    (offset, bytes)
                }
                Change::Length(new) => {
                    let cut = vec![0; length.latest.saturating_sub(new)];
                    length.change(new, random);
                    (new, cut)
                }
            };
            let end = offset + bytes.len();
            if contents.len() < end {
                contents.resize(end, 0);
            }
            let mut at = offset;
            while at < end {
                let sector = at / SECTOR;
                let next = ((sector + 1) * SECTOR).min(end);
                // Once a change of a sector is lost, the later ones are, too.
                let lost = lost_sectors.entry(sector).or_insert(false);
                *lost = *lost || random.below(3) == 0;
                if !*lost {
                    contents[at..next].copy_from_slice(&bytes[at - offset..next - offset]);
                }
                at = next;
            }
        }
        contents.resize(length.kept, 0);
        self.contents.clone_from(&contents);
        self.durable = contents;
    }
}

/// A value of which a power loss keeps some version.
struct Versioned {
    latest: usize,
    kept: usize,
    lost: bool,
}

impl Versioned {
    fn new(value: usize) -> Self {
        Self {
            latest: value,
            kept: value,
            lost: false,
        }
    }

    fn change(&mut self, value: usize, random: &mut Random) {
        if value != self.latest {
            self.latest = value;
            self.lost = self.lost || random.below(3) == 0;
        }
        if !self.lost {
            self.kept = value;
        }
    }
}

impl Disk for SimDisk {
    fn names(&self, folder: Folder) -> io::Result<Vec<String>> {
        let mut sim = self.sim.lock();
        sim.call()??;
        let names = sim.names.keys().filter(|name| Folder::of(name) == folder);
        let names = names.map(|name| name.strip_prefix(TEXTS_PREFIX).unwrap_or(name).to_owned());
        Ok(names.collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut sim = self.sim.lock();
        sim.call()??;
        let inode = sim.find(name)?;
        Ok(sim.inodes[&inode].contents.clone())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut sim = self.sim.lock();
        let inode = sim.inodes.keys().next_back().map_or(0, |last| last + 1);
        sim.atomic_call(|sim| {
            sim.inodes.insert(inode, Inode::default());
            sim.change_names(NameChange::Create(name.to_owned(), inode));
        })?;
        Ok(Box::new(SimFile {
            sim: self.sim.clone(),
            inode,
        }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut sim = self.sim.lock();
        sim.call()??;
        let inode = sim.find(name)?;
        Ok(Box::new(SimFile {
            sim: self.sim.clone(),
            inode,
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut sim = self.sim.lock();
        let inode = sim.find(from)?;
        sim.atomic_call(|sim| sim.change_names(NameChange::Rename(from.to_owned(), to.to_owned(), inode)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut sim = self.sim.lock();
        sim.find(name)?;
        sim.atomic_call(|sim| sim.change_names(NameChange::Remove(name.to_owned())))
    }

    fn sync_folder(&self, folder: Folder) -> io::Result<()> {
        self.sim.lock().atomic_call(|sim| {
            let changes = std::mem::take(&mut sim.unsynced_names);
            let (synced, unsynced) = changes.into_iter().partition(|change| change.folder() == folder);
            sim.unsynced_names = unsynced;
            let synced: Vec<NameChange> = synced;
            for change in synced {
                change.apply(&mut sim.durable_names);
            }
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("/simulated").join(name)
    }
}

struct SimFile {
    sim: Arc<Mutex<Sim>>,
    inode: usize,
}

impl SimFile {
    fn change(sim: &mut Sim, inode: usize, change: Change) {
        if let Some(inode) = sim.inodes.get_mut(&inode) {
            inode.apply(change);
        }
    }
}

impl DiskFile for SimFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut sim = self.sim.lock();
        let mut result = sim.call()?;
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let length = sim.inodes.get(&self.inode).map_or(0, |inode| inode.contents.len());
        let mut written = bytes.len();
        if let Some(capacity) = sim.capacity {
            let free = capacity.saturating_sub(sim.used());
            let fits = (length + free).saturating_sub(offset);
            if fits < written {
                written = fits;
                result = result.and(Err(io::ErrorKind::StorageFull.into()));
            }
        }
        if result.is_err() {
            written = sim.random.below(written + 1);
        }
        if written > 0 {
            sim.bytes_written += written;
            let bytes = bytes[..written].to_vec();
            Self::change(&mut sim, self.inode, Change::Write { offset, bytes });
        }
        result
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).map_err(io::Error::other)?;
        let inode = self.inode;
        let mut sim = self.sim.lock();
        sim.atomic_call(|sim| Self::change(sim, inode, Change::Length(length)))
    }

    fn sync(&self) -> io::Result<()> {
        let inode = self.inode;
        self.sim.lock().atomic_call(|sim| {
            if let Some(inode) = sim.inodes.get_mut(&inode) {
                inode.sync();
            }
        })
    }
}

/// `SplitMix64`: small, and the same on every platform.
#[derive(Default)]
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % limit as u64).unwrap_or(0)
    }
}

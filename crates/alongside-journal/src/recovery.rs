//! Opens a log after whatever happened to the process before.
//!
//! The newest generation with a whole snapshot counts; a generation gets its name only when it has one, so an older one is
//! needed only after damage. A damaged generation is rewritten from what can be read of it, and kept as a copy. What
//! cannot be read at all, or is of another major version, is renamed and left alone. Recovering again changes nothing.

use std::cmp::Reverse;
use std::io;

use crate::damage::{Damage, Finding, Loss};
use crate::directory::{Directory, OpenError};
use crate::disk::{Disk, Folder};
use crate::format::{Epoch, Header};
use crate::generation::{self, file_name, parse_name};
use crate::log::{Found, Log};
use crate::random::random_u32;
use crate::read::{self, Generation, Unreadable};

/// Copies of damaged generations that are kept of a log.
const MAX_COPIES: usize = 3;

/// What a log had in it when it was opened.
#[derive(Debug)]
pub struct Recovered {
    /// The payloads of the last snapshot and of everything appended since.
    pub records: Vec<Vec<u8>>,
    /// What could not be read.
    pub damage: Option<Damage>,
    pub epoch: Epoch,
}

pub(crate) fn open(directory: &Directory, name: &str) -> Result<(Log, Recovered), OpenError> {
    if directory.syncer().is_open(name) {
        return Err(OpenError::InUse);
    }
    let disk = &*directory.syncer().disk;
    let mut recovery = Recovery::look(disk, name)?;
    let (log, records) = match recovery.chosen.take() {
        None => {
            let new = generation::create_unnamed(disk, name, recovery.header(Epoch(random_u32()), 1))?;
            (Log::from_new(directory, name, new), Vec::new())
        }
        Some(chosen) if chosen.generation.is_damaged() => recovery.repair(directory, chosen)?,
        Some(chosen) => recovery.resume(directory, chosen)?,
    };
    recovery.remove_old_copies();
    directory.syncer().log_opened(name, log.file().clone(), recovery.stale);
    let recovered = Recovered {
        records,
        damage: Damage::new(name, recovery.findings),
        epoch: *log.epoch(),
    };
    Ok((log, recovered))
}

struct Recovery<'a> {
    disk: &'a dyn Disk,
    log: &'a str,
    chosen: Option<Chosen>,
    /// No generation with this number, or a copy of one, was ever there.
    next_generation: u64,
    /// Generations to be removed once the chosen one is durable.
    stale: Vec<String>,
    copies: Vec<(u64, String)>,
    findings: Vec<Finding>,
}

struct Chosen {
    name: String,
    length: usize,
    generation: Generation,
}

impl<'a> Recovery<'a> {
    /// Reads generations from the newest until one counts.
    fn look(disk: &'a dyn Disk, log: &'a str) -> io::Result<Self> {
        let mut recovery = Self {
            disk,
            log,
            chosen: None,
            next_generation: 1,
            stale: Vec::new(),
            copies: Vec::new(),
            findings: Vec::new(),
        };
        let mut numbers = Vec::new();
        for name in disk.names(Folder::Root)? {
            let Some((number, extension)) = parse_name(log, &name) else {
                continue;
            };
            recovery.next_generation = recovery.next_generation.max(number.saturating_add(1));
            match extension {
                "" => numbers.push(number),
                // Never finished.
                ".new" => recovery.stale.push(name),
                ".damaged" => recovery.copies.push((number, name)),
                _ => {}
            }
        }
        numbers.sort_unstable_by_key(|number| Reverse(*number));
        for number in numbers {
            recovery.consider(file_name(log, number))?;
        }
        Ok(recovery)
    }

    fn consider(&mut self, name: String) -> io::Result<()> {
        let newer = self.chosen.as_ref();
        if newer.is_some_and(|newer| newer.generation.snapshot_end.is_some()) {
            self.stale.push(name);
            return Ok(());
        }
        let bytes = self.disk.read(&name)?;
        match read::read(&bytes) {
            Ok(generation) => {
                // A newer one without a whole snapshot counts only if there is nothing better.
                if newer.is_none() || generation.snapshot_end.is_some() {
                    let length = bytes.len();
                    let chosen = Chosen {
                        name,
                        length,
                        generation,
                    };
                    if let Some(incomplete) = self.chosen.replace(chosen) {
                        self.set_aside(&incomplete.name, "damaged", Loss::Incomplete)?;
                    }
                } else {
                    self.set_aside(&name, "damaged", Loss::Incomplete)?;
                }
            }
            Err(Unreadable::OtherFormat { major }) => {
                self.set_aside(&name, &format!("format-{major}"), Loss::OtherFormat { major })?;
            }
            Err(Unreadable::Damaged) => self.set_aside(&name, "damaged", Loss::Unreadable)?,
        }
        Ok(())
    }

    fn set_aside(&mut self, name: &str, extension: &str, loss: Loss) -> io::Result<()> {
        let copy = format!("{name}.{extension}");
        self.disk.rename(name, &copy)?;
        self.report(&copy, loss);
        if let Some((number, ".damaged")) = parse_name(self.log, &copy) {
            self.copies.push((number, copy));
        }
        Ok(())
    }

    fn report(&mut self, copy: &str, loss: Loss) {
        let copy = self.disk.path(copy);
        self.findings.push(Finding { loss, copy });
    }

    /// The next generation's.
    fn header(&self, epoch: Epoch, first_seq: u64) -> Header {
        Header {
            epoch,
            generation: self.next_generation,
            first_seq,
            salt: random_u32(),
        }
    }

    /// Continues with an undamaged generation.
    fn resume(&self, directory: &Directory, chosen: Chosen) -> io::Result<(Log, Vec<Vec<u8>>)> {
        let Chosen {
            name,
            length,
            generation,
        } = chosen;
        let found = Found {
            file: self.disk.open(&name)?,
            header: generation.header,
            next_seq: generation.next_seq,
            end: generation.end as u64,
            used: generation.used as u64,
            allocated: length.max(generation.end) as u64,
            snapshot_end: generation.snapshot_end.unwrap_or(0) as u64,
            durable_end: generation.durable_end,
        };
        Ok((Log::from_found(directory, self.log, found), generation.records))
    }

    /// Writes a new generation from what is left of a damaged one.
    fn repair(&mut self, directory: &Directory, chosen: Chosen) -> io::Result<(Log, Vec<Vec<u8>>)> {
        let Generation {
            header,
            ref records,
            next_seq,
            ref gaps,
            ref dropped,
            snapshot_end,
            ..
        } = chosen.generation;
        let loss = match dropped {
            _ if !gaps.is_empty() => Loss::Skipped {
                bytes: gaps.iter().map(ExactSizeIterator::len).sum(),
            },
            Some(dropped) => Loss::Dropped { bytes: dropped.len() },
            None => Loss::Incomplete,
        };
        debug_assert!(loss != Loss::Incomplete || snapshot_end.is_none());
        let new_header = self.header(header.epoch, next_seq);
        let Ok(new) = generation::create(self.disk, self.log, new_header, records) else {
            // No space for it. The damaged generation can be used, and the next start finds the same damage.
            self.report(&chosen.name, loss);
            return self.resume(directory, chosen);
        };
        // Only when the new one cannot be lost any more.
        let durable = self.disk.sync_folder(Folder::Root);
        if durable.is_err() || self.set_aside(&chosen.name, "damaged", loss.clone()).is_err() {
            self.report(&chosen.name, loss);
        }
        Ok((Log::from_new(directory, self.log, new), chosen.generation.records))
    }

    fn remove_old_copies(&mut self) {
        self.copies.sort_unstable_by_key(|(number, _)| Reverse(*number));
        let old = self.copies.drain(MAX_COPIES.min(self.copies.len())..);
        self.stale.extend(old.map(|(_, name)| name));
    }
}

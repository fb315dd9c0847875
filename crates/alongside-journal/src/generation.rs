//! Writes a new generation of a log: aside, synced, and renamed only when it is complete. Whatever fails before the
//! rename leaves the generation before it as it was. The first generation of a log is empty, so nothing needs it before the
//! first append, which syncs and renames it: a start need not wait for the disk.

use std::io;

use crate::disk::{Disk, DiskFile};
use crate::format::{FRAMES_START, Header, Kind, push_frame};

/// Kept in reserve behind the end of each log, for decisions on a full disk.
// Less in unit tests: the simulated disk keeps every version of every sector.
pub(crate) const RESERVE_BYTES: u64 = if cfg!(test) { 8 * 1024 } else { 1 << 20 };
/// The reserve is extended by this much at a time.
pub(crate) const RESERVE_STEP_BYTES: u64 = RESERVE_BYTES / 4;
const CHUNK_BYTES: usize = 1 << 20;

pub(crate) struct NewGeneration {
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) header: Header,
    pub(crate) next_seq: u64,
    pub(crate) end: u64,
    /// The length of the file, with the reserve.
    pub(crate) allocated: u64,
    /// What it still has to be renamed from and to.
    pub(crate) unnamed: Option<Unnamed>,
}

/// A generation that is not yet synced and does not have its name.
pub(crate) struct Unnamed {
    pub(crate) aside: String,
    name: String,
}

impl Unnamed {
    /// For a file that is synced.
    pub(crate) fn rename(&self, disk: &dyn Disk) -> io::Result<()> {
        disk.rename(&self.aside, &self.name)
    }
}

/// `state-3`
pub(crate) fn file_name(log: &str, generation: u64) -> String {
    format!("{log}-{generation}")
}

/// The number and the rest of `state-3` or `state-3.damaged`.
pub(crate) fn parse_name<'a>(log: &str, name: &'a str) -> Option<(u64, &'a str)> {
    let rest = name.strip_prefix(log)?.strip_prefix('-')?;
    let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
    let (number, extension) = rest.split_at(digits);
    (extension.is_empty() || extension.starts_with('.')).then_some((number.parse().ok()?, extension))
}

/// Creates a generation whose snapshot consists of these payloads. Its name is durable with the next sync.
pub(crate) fn create(disk: &dyn Disk, log: &str, header: Header, payloads: &[Vec<u8>]) -> io::Result<NewGeneration> {
    let mut new = write(disk, log, header, payloads)?;
    if let Some(unnamed) = new.unnamed.take() {
        new.file
            .sync()
            .and_then(|()| unnamed.rename(disk))
            .inspect_err(|_| remove(disk, &unnamed))?;
    }
    Ok(new)
}

/// Creates an empty generation without waiting for the disk.
pub(crate) fn create_unnamed(disk: &dyn Disk, log: &str, header: Header) -> io::Result<NewGeneration> {
    write(disk, log, header, &[])
}

fn write(disk: &dyn Disk, log: &str, header: Header, payloads: &[Vec<u8>]) -> io::Result<NewGeneration> {
    let name = file_name(log, header.generation);
    let aside = format!("{name}.new");
    let unnamed = Unnamed { aside, name };
    match write_aside(disk, &unnamed.aside, header, payloads) {
        Ok(new) => Ok(NewGeneration {
            unnamed: Some(unnamed),
            ..new
        }),
        Err(error) => {
            remove(disk, &unnamed);
            Err(error)
        }
    }
}

fn remove(disk: &dyn Disk, unnamed: &Unnamed) {
    let _ = disk.remove(&unnamed.aside);
}

fn write_aside(disk: &dyn Disk, aside: &str, header: Header, payloads: &[Vec<u8>]) -> io::Result<NewGeneration> {
    let file = disk.create(aside)?;
    let mut next_seq = header.first_seq;
    let mut end = FRAMES_START as u64;
    let mut chunk = Vec::new();
    let frames = payloads.iter().map(|payload| (Kind::Record, payload.as_slice()));
    for (kind, payload) in frames.chain([(Kind::Whole, &[][..])]) {
        push_frame(&mut chunk, header.salt, kind, next_seq, payload)?;
        next_seq += 1;
        if chunk.len() >= CHUNK_BYTES || kind == Kind::Whole {
            file.write_at(end, &chunk)?;
            end += chunk.len() as u64;
            chunk.clear();
        }
    }
    let allocated = end + RESERVE_BYTES + RESERVE_STEP_BYTES;
    file.reserve(end, allocated)?;
    file.write_at(0, &header.encode_head(end))?;
    Ok(NewGeneration {
        file,
        header,
        next_seq,
        end,
        allocated,
        unnamed: None,
    })
}

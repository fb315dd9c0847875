//! Reads one generation of a log. Works on bytes alone and accepts any.
//!
//! Frames follow each other until the zeros. Where one is not whole and there is more than zeros behind it, the reader
//! looks for the next whole frame:
//!
//! - There is none: the last write was cut off. What is left of it is ignored.
//! - There is one, and the hole is before the durable mark: the file was damaged later. The reader continues behind the
//!   hole; what a record needs of those before it is not known here.
//! - There is one, and the hole is behind the mark: power was lost before these writes were synced, and the disk kept
//!   the later ones only. The reader stops at the hole, so that what it returns is what was true at some moment.

use std::ops::Range;

use crate::format::{Candidate, FRAME_OVERHEAD, FRAMES_START, Frame, Head, Header, Kind, decode_mark};

/// One generation, as far as it can be read.
#[derive(Debug)]
pub(crate) struct Generation {
    pub(crate) header: Header,
    pub(crate) records: Vec<Vec<u8>>,
    pub(crate) next_seq: u64,
    /// Behind the last frame.
    pub(crate) end: usize,
    /// Behind the last byte that is not zero.
    pub(crate) used: usize,
    /// Behind the snapshot, if it is whole.
    pub(crate) snapshot_end: Option<usize>,
    pub(crate) durable_end: u64,
    /// What was skipped.
    pub(crate) gaps: Vec<Range<usize>>,
    /// What is behind the end although it has whole frames.
    pub(crate) dropped: Option<Range<usize>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    OtherFormat { major: u16 },
    Damaged,
}

pub(crate) fn read(file: &[u8]) -> Result<Generation, Unreadable> {
    let header = match Header::decode(file) {
        Head::Ours(header) => header,
        Head::OtherFormat { major } => return Err(Unreadable::OtherFormat { major }),
        Head::Damaged => return Err(Unreadable::Damaged),
    };
    let used = file.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mark = decode_mark(file);
    let mut generation = Generation {
        header,
        records: Vec::new(),
        next_seq: header.first_seq,
        end: FRAMES_START,
        used,
        snapshot_end: None,
        durable_end: mark.unwrap_or(0),
        gaps: Vec::new(),
        dropped: None,
    };
    let mut search = Search::new(file, used, header.salt);
    loop {
        let hole = generation.end;
        let here = Candidate::at(file, hole).and_then(|candidate| candidate.verify(header.salt));
        if let Some(frame) = here.filter(|frame| frame.seq == generation.next_seq) {
            generation.take(&frame);
        } else if hole >= used {
            break;
        } else if let Some((found, frame)) = search.next_frame(hole, generation.next_seq) {
            // Without a mark, nothing is known to be the work of a power loss.
            if mark.is_some_and(|durable| hole as u64 >= durable) {
                generation.dropped = Some(hole..used);
                break;
            }
            generation.gaps.push(hole..found);
            generation.end = found;
            generation.take(&frame);
        } else {
            if search.exhausted() {
                generation.dropped = Some(hole..used);
            }
            break;
        }
    }
    Ok(generation)
}

impl Generation {
    fn take(&mut self, frame: &Frame<'_>) {
        self.end += frame.length();
        self.next_seq = frame.seq.saturating_add(1);
        match frame.kind {
            Kind::Record => self.records.push(frame.payload.to_vec()),
            Kind::Whole => self.snapshot_end = Some(self.end),
            Kind::Unknown => {}
        }
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.snapshot_end.is_none() || !self.gaps.is_empty() || self.dropped.is_some()
    }
}

/// The search for whole frames behind holes, of limited cost.
struct Search<'a> {
    file: &'a [u8],
    /// Only zeros are behind this.
    used: usize,
    salt: u32,
    /// How many more bytes may be checked. Contents made up of false frames would otherwise take quadratic time.
    budget: usize,
}

impl<'a> Search<'a> {
    fn new(file: &'a [u8], used: usize, salt: u32) -> Self {
        let budget = file.len().saturating_mul(4).saturating_add(1 << 20);
        Self {
            file,
            used,
            salt,
            budget,
        }
    }

    fn exhausted(&self) -> bool {
        self.budget == 0
    }

    /// The next whole frame behind `hole`, where the frame `expected` should have been.
    fn next_frame(&mut self, hole: usize, expected: u64) -> Option<(usize, Frame<'a>)> {
        for offset in hole..self.used {
            let Some(candidate) = Candidate::at(self.file, offset) else {
                continue;
            };
            // The hole has room for this many frames and no more. Few false frames get past this.
            let room = ((offset - hole) / FRAME_OVERHEAD) as u64;
            if !(expected..=expected.saturating_add(room)).contains(&candidate.seq()) {
                continue;
            }
            self.budget = self.budget.saturating_sub(candidate.length());
            if self.exhausted() {
                return None;
            }
            if let Some(frame) = candidate.verify(self.salt) {
                return Some((offset, frame));
            }
        }
        None
    }
}

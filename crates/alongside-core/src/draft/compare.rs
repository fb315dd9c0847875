//! Where two texts differ, line by line, within bounded time.
//!
//! Lines that occur once on both sides are matched first, which splits nearly all texts into small pieces; the pieces go
//! to `similar`'s Myers search, because that takes a deadline. `imara-diff` has none: two files of 200,000 lines made of
//! few different lines keep it busy for half a minute.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};

use super::Deadline;
use super::lines::{count_lines, lines_of};

/// A range of lines and the lines that replace it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

/// How many bytes of whole lines two texts share at their start and at their end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    pub(super) prefix: usize,
    pub(super) suffix: usize,
}

impl Shared {
    pub(super) fn by(old: &str, new: &str) -> Self {
        let prefix = shared_prefix(old, new);
        let suffix = shared_suffix(old, new, old.len().min(new.len()) - prefix);
        Self { prefix, suffix }
    }
}

/// The changed lines between two texts, in order, with at least one unchanged line between two of them.
/// After the deadline, the rest is compared coarsely.
pub(super) fn line_changes(old: &str, new: &str, deadline: Deadline) -> Vec<Change> {
    let shared = Shared::by(old, new);
    let skipped = count_lines(old.get(..shared.prefix).unwrap_or_default());
    changes_between(old, new, shared, skipped, deadline)
}

/// The same, if it is known what they share, and how many lines that is at the start.
pub(super) fn changes_between(old: &str, new: &str, shared: Shared, skipped: usize, deadline: Deadline) -> Vec<Change> {
    let middle = |text: &'_ str| shared.prefix..text.len() - shared.suffix;
    let old = old.get(middle(old)).unwrap_or_default();
    let new = new.get(middle(new)).unwrap_or_default();
    let mut changes = changed_lines(old, new, deadline);
    for change in &mut changes {
        change.old = change.old.start + skipped..change.old.end + skipped;
        change.new = change.new.start + skipped..change.new.end + skipped;
    }
    changes
}

fn changed_lines(old: &str, new: &str, deadline: Deadline) -> Vec<Change> {
    // The search compares numbers, which is fast; each line is hashed once, here. Most lines are on both sides.
    let mut numbers = Numbers::with_capacity(count_lines(old));
    let old: Vec<u32> = lines_of(old).map(|line| numbers.of(line)).collect();
    let new: Vec<u32> = lines_of(new).map(|line| numbers.of(line)).collect();
    let mut found = Changes::default();
    let (mut old_done, mut new_done) = (0, 0);
    for (old_anchor, new_anchor) in anchors(&old, &new, numbers.lines.len()) {
        found.search(&old, old_done..old_anchor, &new, new_done..new_anchor, deadline);
        (old_done, new_done) = (old_anchor + 1, new_anchor + 1);
    }
    found.search(&old, old_done..old.len(), &new, new_done..new.len(), deadline);
    found.changes
}

/// A number for each different line. The table has only numbers, because it is read in random order: with the lines in it, that of a large
/// file would not fit into the processor's caches.
struct Numbers<'text> {
    hasher: RandomState,
    table: HashTable<u32>,
    lines: Vec<&'text str>,
}

impl<'text> Numbers<'text> {
    fn with_capacity(lines: usize) -> Self {
        Self {
            hasher: RandomState::default(),
            table: HashTable::with_capacity(lines),
            lines: Vec::with_capacity(lines),
        }
    }

    fn of(&mut self, line: &'text str) -> u32 {
        let Self { hasher, table, lines } = self;
        let known = |number: u32| lines.get(index(number)).copied().unwrap_or_default();
        let entry = table.entry(
            hasher.hash_one(line),
            |&number| known(number) == line,
            |&number| hasher.hash_one(known(number)),
        );
        match entry {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let number = compact(lines.len());
                entry.insert(number);
                lines.push(line);
                number
            }
        }
    }
}

/// No text that fits into a message has more lines.
fn compact(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn index(number: u32) -> usize {
    number as usize
}

/// Lines that occur once on both sides, in the same order. They say more about what a change means than the shortest
/// edit does, and little is left between them.
fn anchors(old: &[u32], new: &[u32], distinct: usize) -> Vec<(usize, usize)> {
    let (old, new) = (single_places(old, distinct), single_places(new, distinct));
    let both = std::iter::zip(old, new).filter_map(|(old, new)| old.zip(new));
    let mut candidates: Vec<(u32, u32)> = both.collect();
    candidates.sort_unstable();
    // The longest run with rising places on both sides: for each length, the candidate that ends a run of it earliest.
    let mut ends: Vec<(u32, u32)> = Vec::new();
    let mut before: Vec<Option<u32>> = Vec::with_capacity(candidates.len());
    for (number, &(_, place)) in candidates.iter().enumerate() {
        let number = compact(number);
        let length = ends.partition_point(|&(end, _)| end < place);
        before.push(
            length
                .checked_sub(1)
                .and_then(|last| ends.get(last))
                .map(|&(_, last)| last),
        );
        match ends.get_mut(length) {
            Some(end) => *end = (place, number),
            None => ends.push((place, number)),
        }
    }
    let mut next = ends.last().map(|&(_, last)| last);
    let mut anchors = Vec::with_capacity(ends.len());
    while let Some(number) = next {
        let anchor = candidates.get(index(number));
        anchors.extend(anchor.map(|&(old, new)| (index(old), index(new))));
        next = before.get(index(number)).copied().flatten();
    }
    anchors.reverse();
    anchors
}

/// The position of each line that occurs once.
fn single_places(lines: &[u32], distinct: usize) -> Vec<Option<u32>> {
    let mut places = vec![None; distinct];
    let mut repeated = vec![false; distinct];
    for (place, &line) in lines.iter().enumerate() {
        let line = index(line);
        if let (Some(known), Some(repeated)) = (places.get_mut(line), repeated.get_mut(line)) {
            *known = if known.is_none() && !*repeated {
                Some(compact(place))
            } else {
                None
            };
            *repeated = true;
        }
    }
    places
}

#[derive(Default)]
struct Changes {
    changes: Vec<Change>,
}

impl Changes {
    fn search(&mut self, old: &[u32], mut gone: Range<usize>, new: &[u32], mut come: Range<usize>, deadline: Deadline) {
        while !gone.is_empty() && !come.is_empty() && old.get(gone.start) == new.get(come.start) {
            gone.start += 1;
            come.start += 1;
        }
        while !gone.is_empty() && !come.is_empty() && old.get(gone.end - 1) == new.get(come.end - 1) {
            gone.end -= 1;
            come.end -= 1;
        }
        if gone.is_empty() || come.is_empty() {
            self.push(gone, come);
            return;
        }
        let old = old.get(gone.clone()).unwrap_or_default();
        let new = new.get(come.clone()).unwrap_or_default();
        for operation in capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline) {
            if operation.tag() != DiffTag::Equal {
                let (old, new) = (operation.old_range(), operation.new_range());
                self.push(
                    gone.start + old.start..gone.start + old.end,
                    come.start + new.start..come.start + new.end,
                );
            }
        }
    }

    fn push(&mut self, old: Range<usize>, new: Range<usize>) {
        match self.changes.last_mut() {
            _ if old.is_empty() && new.is_empty() => {}
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                last.old.end = old.end;
                last.new.end = new.end;
            }
            _ => self.changes.push(Change { old, new }),
        }
    }
}

fn shared_prefix(old: &str, new: &str) -> usize {
    let (old, new) = (old.as_bytes(), new.as_bytes());
    let blocks = std::iter::zip(old.chunks(BLOCK), new.chunks(BLOCK));
    let sure = blocks.take_while(|(old, new)| old == new).count() * BLOCK;
    let sure = sure.min(old.len()).min(new.len());
    let rest = std::iter::zip(old.iter().skip(sure), new.iter().skip(sure));
    let shared = sure + rest.take_while(|(old, new)| old == new).count();
    let shared = old.get(..shared).unwrap_or_default();
    shared.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)
}

/// Up to `most` bytes.
fn shared_suffix(old: &str, new: &str, most: usize) -> usize {
    let tail = |text: &'_ str| text.len() - most..text.len();
    let starts_line = |text: &str, at: usize| at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n');
    let old_tail = old.as_bytes().get(tail(old)).unwrap_or_default();
    let new_tail = new.as_bytes().get(tail(new)).unwrap_or_default();
    let blocks = std::iter::zip(old_tail.rchunks(BLOCK), new_tail.rchunks(BLOCK));
    let sure = (blocks.take_while(|(old, new)| old == new).count() * BLOCK).min(most);
    let rest = std::iter::zip(old_tail.iter().rev().skip(sure), new_tail.iter().rev().skip(sure));
    let shared = sure + rest.take_while(|(old, new)| old == new).count();
    if starts_line(old, old.len() - shared) && starts_line(new, new.len() - shared) {
        return shared;
    }
    let text = old_tail.get(most - shared..).unwrap_or_default();
    let first_end = text.iter().position(|&byte| byte == b'\n');
    first_end.map_or(0, |end| shared - end - 1)
}

/// Texts are compared in blocks first, which is much faster than byte by byte.
const BLOCK: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_are_shared() {
        assert_eq!(shared_prefix("a\nbc", "a\nbd"), 2);
        assert_eq!(shared_prefix("a", "a\n"), 0);
        assert_eq!(shared_suffix("xa\nb\n", "ya\nb\n", 4), 2);
        assert_eq!(shared_suffix("a\nb\n", "x\na\nb\n", 4), 4);
        assert_eq!(shared_suffix("ab", "b", 1), 0);
    }

    #[test]
    fn long_shared_parts_are_found_to_the_line() {
        let shared = "0123456789\n".repeat(100);
        let (old, new) = (format!("{shared}a\n{shared}"), format!("{shared}b\nc\n{shared}"));
        assert_eq!(line_changes(&old, &old, None), []);
        assert_eq!(
            line_changes(&old, &new, None),
            [Change {
                old: 100..101,
                new: 100..102
            }]
        );
    }
}

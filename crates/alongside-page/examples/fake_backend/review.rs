//! A fake review: hunks of whole lines, a draft, and the effect of edits on both.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use similar::{Algorithm, DiffOp};

use crate::samples::Sample;

pub(crate) struct Review {
    pub(crate) id: u64,
    pub(crate) path: String,
    pub(crate) session: String,
    pub(crate) agent: String,
    pub(crate) opened: u64,
    pub(crate) version: u64,
    pub(crate) draft: String,
    base: Option<String>,
    proposal: String,
    notes: Vec<String>,
    hunks: Vec<Hunk>,
    /// How many of them front ends have received.
    sent: usize,
}

#[derive(Clone, Debug)]
struct Hunk {
    id: u64,
    state: &'static str,
    yours: bool,
    base: Lines,
    proposal: Lines,
    draft: Lines,
}

/// `count` lines from `start` (0-based).
#[derive(Clone, Copy, Debug)]
struct Lines {
    start: usize,
    count: usize,
}

impl Lines {
    fn end(self) -> usize {
        self.start + self.count
    }

    fn json(self) -> Value {
        json!({"start": self.start + 1, "count": self.count})
    }
}

/// The hunks of a diff without decisions.
pub(crate) fn hunks_between(base: &str, proposal: &str) -> Value {
    let sample = Sample {
        path: String::new(),
        session: "",
        agent: "",
        base: Some(base.to_owned()),
        proposal: proposal.to_owned(),
        notes: Vec::new(),
        conflict: false,
    };
    Review::new(0, sample).hunks_json()
}

pub(crate) fn milliseconds_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

impl Review {
    pub(crate) fn new(id: u64, sample: Sample) -> Self {
        let base_text = sample.base.clone().unwrap_or_default();
        let (old, new) = (lines(&base_text), lines(&sample.proposal));
        let operations = similar::capture_diff_slices(Algorithm::Histogram, &old, &new);
        let mut hunks = Vec::new();
        for operation in operations
            .iter()
            .filter(|operation| !matches!(operation, DiffOp::Equal { .. }))
        {
            let (old, new) = (operation.old_range(), operation.new_range());
            let conflict = sample.conflict && hunks.is_empty();
            let proposal = Lines {
                start: new.start,
                count: new.len(),
            };
            let base = Lines {
                start: old.start,
                count: old.len(),
            };
            let state = if conflict { "conflict" } else { "accepted" };
            hunks.push(Hunk {
                id: hunks.len() as u64 + 1,
                state,
                yours: false,
                base,
                proposal,
                draft: proposal,
            });
        }
        Self {
            id,
            path: sample.path,
            session: sample.session.to_owned(),
            agent: sample.agent.to_owned(),
            opened: milliseconds_now(),
            version: 1,
            draft: sample.proposal.clone(),
            base: sample.base,
            proposal: sample.proposal,
            notes: sample.notes,
            sent: hunks.len(),
            hunks,
        }
    }

    pub(crate) fn conflicts(&self) -> usize {
        self.hunks.iter().filter(|hunk| hunk.state == "conflict").count()
    }

    pub(crate) fn summary(&self) -> Value {
        let added: usize = self.hunks.iter().map(|hunk| hunk.draft.count).sum();
        let removed: usize = self.hunks.iter().map(|hunk| hunk.base.count).sum();
        json!({"id": self.id, "path": self.path, "agent": self.agent, "session": self.session, "revision": 1,
            "newFile": self.base.is_none(), "edited": self.hunks.iter().any(|hunk| hunk.state == "edited"),
            "size": {"added": added, "removed": removed}, "opened": self.opened, "version": self.version,
            "conflicts": self.conflicts()})
    }

    pub(crate) fn whole(&self) -> Value {
        let mut whole = self.summary();
        whole["proposal"] = json!(self.proposal);
        whole["draft"] = json!(self.draft);
        whole["hunks"] = self.hunks_json();
        whole["notes"] = json!(self.notes);
        if let Some(base) = &self.base {
            whole["base"] = json!(base);
        }
        whole
    }

    fn hunks_json(&self) -> Value {
        self.hunks
            .iter()
            .map(|hunk| {
                json!({"id": hunk.id, "state": hunk.state, "yours": hunk.yours, "base": hunk.base.json(),
                    "proposal": hunk.proposal.json(), "draft": hunk.draft.json()})
            })
            .collect()
    }

    fn edited(&mut self, changes: &Value) -> Value {
        self.version += 1;
        let removed = std::mem::replace(&mut self.sent, self.hunks.len());
        let hunks = json!({"at": 0, "removed": removed, "now": self.hunks_json(), "shift": 0});
        json!({"review": self.id, "version": self.version, "changes": changes, "hunks": hunks})
    }

    pub(crate) fn decide(&mut self, id: &Value, accept: bool) -> Option<Value> {
        let index = self.hunks.iter().position(|hunk| *id == hunk.id)?;
        let hunk = self.hunks[index].clone();
        let base = self.base.as_deref().unwrap_or_default();
        let (source, range) = if accept {
            (&*self.proposal, hunk.proposal)
        } else {
            (base, hunk.base)
        };
        let insert = source[line_start(source, range.start)..line_start(source, range.end())].to_owned();
        let from = line_start(&self.draft, hunk.draft.start);
        let to = line_start(&self.draft, hunk.draft.end());
        let changes = json!([{"from": utf16_length(&self.draft[..from]), "to": utf16_length(&self.draft[..to]), "insert": insert}]);
        self.draft.replace_range(from..to, &insert);
        let after = range.count;
        self.hunks[index].draft.count = after;
        self.hunks[index].state = if accept { "accepted" } else { "rejected" };
        for later in &mut self.hunks[index + 1..] {
            later.draft.start = later.draft.start + after - hunk.draft.count;
        }
        Some(self.edited(&changes))
    }

    pub(crate) fn change(&mut self, changes: &Value) -> Value {
        // From last to first, so that earlier offsets stay valid.
        for change in changes.as_array().into_iter().flatten().rev() {
            let from = byte_offset(&self.draft, change["from"].as_u64().unwrap_or(0));
            let to = byte_offset(&self.draft, change["to"].as_u64().unwrap_or(0));
            let insert = change["insert"].as_str().unwrap_or_default();
            self.replace(from, to, insert);
        }
        self.edited(changes)
    }

    fn replace(&mut self, from: usize, to: usize, insert: &str) {
        let count = |text: &str| text.matches('\n').count();
        let first = count(&self.draft[..from]);
        let last = first + count(&self.draft[from..to]);
        let before = lines(&self.draft).len();
        self.draft.replace_range(from..to, insert);
        let after = lines(&self.draft).len();
        let touched = Lines {
            start: first,
            count: (last + 1).min(before).saturating_sub(first),
        };
        let overlaps = |hunk: &Hunk| {
            hunk.draft.start <= touched.end()
                && touched.start <= hunk.draft.end()
                && (hunk.draft.count == 0
                    || touched.count == 0
                    || (hunk.draft.start < touched.end() && touched.start < hunk.draft.end()))
        };
        let begin = self.hunks.iter().position(overlaps);
        let merged = if let Some(begin) = begin {
            let end = self.hunks.iter().rposition(overlaps).unwrap_or(begin);
            let (a, z) = (self.hunks[begin].clone(), self.hunks[end].clone());
            let lead = a.draft.start.saturating_sub(touched.start);
            let trail = touched.end().saturating_sub(z.draft.end());
            let span = |from: Lines, to: Lines| Lines {
                start: from.start - lead,
                count: to.end() + trail - (from.start - lead),
            };
            let hunk = Hunk {
                id: a.id,
                state: "edited",
                yours: a.yours,
                base: span(a.base, z.base),
                proposal: span(a.proposal, z.proposal),
                draft: span(a.draft, z.draft),
            };
            self.hunks.splice(begin..=end, [hunk]);
            begin
        } else {
            let place = self
                .hunks
                .iter()
                .take_while(|hunk| hunk.draft.start < touched.start)
                .count();
            let (base, proposal, draft) = match place.checked_sub(1).map(|index| &self.hunks[index]) {
                Some(hunk) => (hunk.base.end(), hunk.proposal.end(), hunk.draft.end()),
                None => (0, 0, 0),
            };
            let off = touched.start - draft;
            let id = self.hunks.iter().map(|hunk| hunk.id).max().unwrap_or(0) + 1;
            let lines = |start: usize| Lines {
                start: start + off,
                count: touched.count,
            };
            self.hunks.insert(
                place,
                Hunk {
                    id,
                    state: "edited",
                    yours: true,
                    base: lines(base),
                    proposal: lines(proposal),
                    draft: touched,
                },
            );
            place
        };
        let draft = &mut self.hunks[merged].draft;
        draft.count = (draft.count + after).saturating_sub(before);
        for later in &mut self.hunks[merged + 1..] {
            later.draft.start = (later.draft.start + after).saturating_sub(before);
        }
    }
}

/// The offset of a line.
fn line_start(text: &str, line: usize) -> usize {
    let mut breaks = text.match_indices('\n');
    match line.checked_sub(1) {
        None => 0,
        Some(before) => breaks.nth(before).map_or(text.len(), |(at, _)| at + 1),
    }
}

fn utf16_length(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().map(char::len_utf16).sum()
    }
}

fn byte_offset(text: &str, units: u64) -> usize {
    let units = usize::try_from(units).unwrap_or_default();
    if text.is_ascii() {
        return units.min(text.len());
    }
    let mut seen = 0;
    for (offset, character) in text.char_indices() {
        if seen >= units {
            return offset;
        }
        seen += character.len_utf16();
    }
    text.len()
}

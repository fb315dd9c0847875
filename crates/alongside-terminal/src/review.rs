//! The open review: its texts, its rows, and where the user is in it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use alongside_core::TextChange;
use alongside_core::draft::{Hunk, HunkId, HunkState};
use alongside_protocol::{HunkAction, ReviewEdited, ReviewSummary, ReviewTexts};

use crate::highlight::{Job, Marks, Which};
use crate::lines::Text;
use crate::message::ReviewKey;
use crate::rows::{Layout, Row, Unfolded, rows};

/// Decisions right after a review appears are ignored: the key was meant for something else. The companion has the same delay.
pub(crate) const ARM_DELAY: Duration = Duration::from_millis(400);
/// Decisions that can be undone.
const MAX_UNDO: usize = 200;
/// Further to the right, a line is data.
const MAX_COLUMN: usize = 20_000;

pub(crate) struct OpenReview {
    pub(crate) key: ReviewKey,
    pub(crate) summary: ReviewSummary,
    pub(crate) base: Arc<Text>,
    pub(crate) proposal: Arc<Text>,
    pub(crate) draft: Arc<Text>,
    pub(crate) hunks: Vec<Hunk>,
    pub(crate) notes: Vec<String>,
    pub(crate) version: u64,
    pub(crate) rows: Vec<Row>,
    pub(crate) layout: Layout,
    pub(crate) unfolded: Unfolded,
    /// The selected row.
    pub(crate) cursor: usize,
    /// The first visible row.
    pub(crate) top: usize,
    /// The first visible column.
    pub(crate) left: usize,
    /// When it appeared.
    pub(crate) shown_at: Duration,
    /// Hunks that the user decided here; others that are accepted were only proposed.
    pub(crate) decided: BTreeSet<HunkId>,
    pub(crate) undo: Vec<Undo>,
    /// A decision about the whole review is on its way.
    pub(crate) is_deciding: bool,
    pub(crate) search: Option<String>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) marks: [MarkState; 3],
    generation: u64,
}

/// What a decision about a hunk replaced.
pub(crate) struct Undo {
    pub(crate) hunk: HunkId,
    pub(crate) before: HunkState,
    /// The draft before, for what no decision restores: text that the user wrote.
    pub(crate) text: Arc<str>,
    pub(crate) was_decided: bool,
}

/// A remark about a line of the draft or, without one, about a removed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    /// From 1, in the draft.
    pub(crate) line: usize,
    /// The line's text when the comment was written.
    pub(crate) quote: String,
    pub(crate) text: String,
}

#[derive(Default)]
pub(crate) struct MarkState {
    pub(crate) marks: Marks,
    generation: u64,
    /// One job at a time: while it runs, the user may scroll through a whole file.
    is_pending: bool,
}

impl OpenReview {
    pub(crate) fn new(key: ReviewKey, texts: ReviewTexts, layout: Layout, now: Duration) -> Self {
        let mut review = Self {
            key,
            version: texts.summary.version,
            summary: texts.summary,
            base: Arc::new(Text::new(texts.base.unwrap_or_default())),
            proposal: Arc::new(Text::new(texts.proposal)),
            draft: Arc::new(Text::new(texts.draft)),
            hunks: texts.hunks,
            notes: texts.notes,
            rows: Vec::new(),
            layout,
            unfolded: Unfolded::default(),
            cursor: 0,
            top: 0,
            left: 0,
            shown_at: now,
            decided: BTreeSet::new(),
            undo: Vec::new(),
            is_deciding: false,
            search: None,
            comments: Vec::new(),
            marks: Default::default(),
            generation: 1,
        };
        review.rows = rows(&review.hunks, review.base.count(), layout, &review.unfolded);
        review.cursor = review
            .rows
            .iter()
            .position(|row| matches!(row, Row::Hunk(_)))
            .unwrap_or(0);
        review
    }

    /// Replaces the texts by those of the companion, and stays where the user is.
    pub(crate) fn catch_up(&mut self, texts: ReviewTexts, now: Duration) {
        if texts.summary.revision != self.summary.revision {
            // Another change: what was decided about the previous one does not apply.
            self.shown_at = now;
            self.decided.clear();
        }
        if texts.summary.version != self.version || texts.summary.revision != self.summary.revision {
            self.undo.clear();
        }
        self.version = texts.summary.version;
        self.summary = texts.summary;
        self.base = Arc::new(Text::new(texts.base.unwrap_or_default()));
        self.proposal = Arc::new(Text::new(texts.proposal));
        self.draft = Arc::new(Text::new(texts.draft));
        self.hunks = texts.hunks;
        self.notes = texts.notes;
        self.generation += 1;
        self.marks = Default::default();
        self.rebuild();
    }

    /// Applies an edit. `false` if it does not continue this version and everything must be fetched.
    pub(crate) fn apply(&mut self, edited: &ReviewEdited) -> bool {
        if edited.version <= self.version {
            return true;
        }
        if edited.version != self.version + 1 {
            return false;
        }
        let Ok(draft) = TextChange::apply_all(self.draft.shared(), &edited.changes) else {
            return false;
        };
        self.draft = Arc::new(Text::new(draft.into()));
        edited.hunks.apply(&mut self.hunks);
        self.version = edited.version;
        self.generation += 1;
        self.rebuild();
        true
    }

    pub(crate) fn is_armed(&self, now: Duration) -> bool {
        now >= self.shown_at + ARM_DELAY
    }

    pub(crate) fn set_layout(&mut self, layout: Layout) {
        if self.layout != layout {
            self.layout = layout;
            self.rebuild();
        }
    }

    pub(crate) fn hunk_at_cursor(&self) -> Option<&Hunk> {
        self.hunks.get(self.rows.get(self.cursor)?.hunk()?)
    }

    /// The index of the hunk at the cursor, or of the last one above it.
    pub(crate) fn hunk_index(&self) -> Option<usize> {
        self.rows.get(..=self.cursor)?.iter().rev().find_map(|row| row.hunk())
    }

    /// The line of the draft at the cursor, from 0.
    pub(crate) fn draft_line(&self) -> usize {
        let below = self.rows.get(self.cursor..).unwrap_or_default();
        let line = below.iter().find_map(|row| row.draft());
        line.unwrap_or_else(|| self.draft.count().saturating_sub(1))
    }

    pub(crate) fn move_to(&mut self, row: usize, height: usize) {
        self.cursor = row.min(self.rows.len().saturating_sub(1));
        self.scroll_to_cursor(height);
    }

    pub(crate) fn move_by(&mut self, rows: isize, height: usize) {
        self.move_to(self.cursor.saturating_add_signed(rows), height);
    }

    pub(crate) fn scroll_columns(&mut self, columns: isize) {
        self.left = self.left.saturating_add_signed(columns).min(MAX_COLUMN);
    }

    /// Scrolls without moving the cursor further than needed to keep it visible.
    pub(crate) fn scroll_by(&mut self, rows: isize, height: usize) {
        let last = self.rows.len().saturating_sub(height);
        self.top = self.top.saturating_add_signed(rows).min(last);
        let bottom = (self.top + height.saturating_sub(1)).min(self.rows.len().saturating_sub(1));
        self.cursor = self.cursor.clamp(self.top.min(bottom), bottom);
    }

    pub(crate) fn scroll_to_cursor(&mut self, height: usize) {
        let height = height.max(1);
        // A hunk is shown with some lines around it.
        let margin = 3.min(height / 4);
        if self.cursor < self.top + margin {
            self.top = self.cursor.saturating_sub(margin);
        } else if self.cursor + margin >= self.top + height {
            self.top = (self.cursor + margin + 1).saturating_sub(height);
        }
        self.top = self.top.min(self.rows.len().saturating_sub(height));
    }

    /// Selects a hunk, and shows as much of it as fits.
    pub(crate) fn choose(&mut self, index: usize, height: usize) {
        let Some(row) = self.rows.iter().position(|row| *row == Row::Hunk(index)) else {
            return;
        };
        let length = self.rows[row..]
            .iter()
            .take_while(|other| other.hunk() == Some(index))
            .count();
        self.cursor = row;
        self.top = self.top.max((row + length + 2).saturating_sub(height));
        self.scroll_to_cursor(height);
    }

    /// Goes to the next or previous hunk.
    pub(crate) fn step(&mut self, forward: bool, height: usize) {
        let current = self.hunk_index();
        let is_on = self.rows.get(self.cursor).is_some_and(|row| row.hunk().is_some());
        let next = match (current, forward) {
            (None, true) => 0,
            (None, false) => return,
            (Some(current), true) => current + 1,
            (Some(current), false) if is_on => match current.checked_sub(1) {
                Some(previous) => previous,
                None => return,
            },
            (Some(current), false) => current,
        };
        if next < self.hunks.len() {
            self.choose(next, height);
        }
    }

    pub(crate) fn choose_id(&mut self, id: HunkId, height: usize) {
        if let Some(index) = self.hunks.iter().position(|hunk| hunk.id == id) {
            self.choose(index, height);
        }
    }

    /// Shows the folded lines at the cursor. `false` if there are none.
    pub(crate) fn unfold(&mut self) -> bool {
        let Some(Row::Fold { base, .. }) = self.rows.get(self.cursor) else {
            return false;
        };
        self.unfolded.some.insert(*base);
        self.rebuild();
        true
    }

    pub(crate) fn toggle_all_folds(&mut self) {
        self.unfolded.all = !self.unfolded.all;
        self.unfolded.some.clear();
        self.rebuild();
    }

    /// Records a decision about a hunk, so that it can be undone.
    pub(crate) fn remember(&mut self, hunk: HunkId) {
        let Some(state) = self
            .hunks
            .iter()
            .find(|known| known.id == hunk)
            .map(|known| known.state)
        else {
            return;
        };
        if self.undo.len() >= MAX_UNDO {
            self.undo.remove(0);
        }
        self.undo.push(Undo {
            hunk,
            before: state,
            text: self.draft.shared().clone(),
            was_decided: !self.decided.insert(hunk),
        });
    }

    /// The decision that a hunk's earlier state stands for, if there is one.
    pub(crate) fn restoring(state: HunkState) -> Option<HunkAction> {
        match state {
            HunkState::Accepted => Some(HunkAction::Accept),
            HunkState::Rejected => Some(HunkAction::Reject),
            HunkState::Edited | HunkState::Conflict => None,
        }
    }

    /// A hunk's state for users.
    pub(crate) fn state_of(&self, hunk: &Hunk) -> &'static str {
        match hunk.state {
            HunkState::Accepted if !self.decided.contains(&hunk.id) => "proposed",
            HunkState::Accepted => "accepted",
            HunkState::Rejected => "rejected",
            HunkState::Edited => "edited",
            HunkState::Conflict => "conflict",
        }
    }

    /// What accepting the whole change does; the words of the page.
    pub(crate) fn accept_label(&self) -> String {
        let kept: Vec<&Hunk> = self
            .hunks
            .iter()
            .filter(|hunk| hunk.state != HunkState::Rejected)
            .collect();
        let is_edited = kept.iter().any(|hunk| hunk.state == HunkState::Edited || hunk.yours);
        let edited = if is_edited { ", as edited" } else { "" };
        match (kept.len(), self.hunks.len()) {
            (_, 0) => "accept".to_owned(),
            (0, _) => "accept without changes".to_owned(),
            (some, all) if some < all => format!("accept {some} of {all} hunks{edited}"),
            (_, 1) => format!("accept 1 hunk{edited}"),
            (_, all) => format!("accept all {all} hunks{edited}"),
        }
    }

    /// The rejection's reason: what was typed, and the comments.
    pub(crate) fn reason(&self, typed: &str) -> Option<String> {
        let comments = self.comments.iter().map(|comment| {
            let quote = comment.quote.trim();
            let place = if quote.is_empty() {
                format!("Line {}", comment.line)
            } else {
                format!("Line {} (`{quote}`)", comment.line)
            };
            format!("{place}: {}", comment.text.trim())
        });
        let parts: Vec<String> = std::iter::once(typed.trim().to_owned())
            .filter(|typed| !typed.is_empty())
            .chain(comments)
            .collect();
        (!parts.is_empty()).then(|| parts.join("\n"))
    }

    /// Looks for lines whose syntax is needed and not known.
    pub(crate) fn missing_marks(&mut self, height: usize) -> Vec<Job> {
        let end = (self.top + height).min(self.rows.len());
        let visible = self.rows.get(self.top..end).unwrap_or_default();
        let lines = |of: fn(&Row) -> Option<usize>| -> Option<Range<usize>> {
            let first = visible.iter().find_map(of)?;
            let last = visible.iter().rev().find_map(of)?;
            Some(first..last + 1)
        };
        let proposal = |row: &Row| match row {
            Row::Declined { proposal, .. } => Some(*proposal),
            Row::DeclinedPair { proposal, .. } => *proposal,
            _ => None,
        };
        let wanted = [
            (Which::Base, &self.base, lines(|row| row.base())),
            (Which::Proposal, &self.proposal, lines(proposal)),
            (Which::Draft, &self.draft, lines(|row| row.draft())),
        ];
        let mut jobs = Vec::new();
        for ((which, text, range), state) in wanted.into_iter().zip(&mut self.marks) {
            let Some(range) = range else { continue };
            let range = range.start..range.end.min(text.count());
            let is_known = state.generation == self.generation && state.marks.covers(&range);
            if is_known || state.is_pending {
                continue;
            }
            let lines = Job::around(&range, text.count());
            state.is_pending = true;
            jobs.push(Job {
                which,
                generation: self.generation,
                path: self.summary.path.clone(),
                text: text.clone(),
                lines,
            });
        }
        jobs
    }

    pub(crate) fn highlighted(&mut self, job: &Job, marks: Marks) {
        if job.path != self.summary.path {
            // Of the review that was open before.
            return;
        }
        let state = &mut self.marks[job.which as usize];
        state.is_pending = false;
        if job.generation == self.generation {
            state.marks = marks;
            state.generation = job.generation;
        }
    }

    pub(crate) fn marks_of(&self, which: Which) -> Option<&Marks> {
        let state = &self.marks[which as usize];
        // Lines that moved would have the colors of others.
        (state.generation == self.generation).then_some(&state.marks)
    }

    fn rebuild(&mut self) {
        let offset = self.cursor.saturating_sub(self.top);
        let anchor = self.anchor();
        self.rows = rows(&self.hunks, self.base.count(), self.layout, &self.unfolded);
        self.cursor = self.find(&anchor).min(self.rows.len().saturating_sub(1));
        self.top = self.cursor.saturating_sub(offset);
    }

    fn anchor(&self) -> Anchor {
        let Some(row) = self.rows.get(self.cursor) else {
            return Anchor::Base(0);
        };
        match (row.hunk().and_then(|index| self.hunks.get(index)), row.base()) {
            (Some(hunk), _) => {
                let index = row.hunk();
                let start = self
                    .rows
                    .iter()
                    .position(|row| row.hunk() == index)
                    .unwrap_or(self.cursor);
                Anchor::Hunk(hunk.id, hunk.base.start, self.cursor - start)
            }
            (None, Some(base)) => Anchor::Base(base),
            (None, None) => Anchor::Base(0),
        }
    }

    fn find(&self, anchor: &Anchor) -> usize {
        let by_base = |line: usize| {
            let at_or_after = |row: &Row| row.base().is_some_and(|base| base >= line);
            let found = self.rows.iter().position(at_or_after);
            // In a fold, the fold.
            match found {
                Some(row) if self.rows[row].base() != Some(line) && row > 0 => row - 1,
                Some(row) => row,
                None => self.rows.len().saturating_sub(1),
            }
        };
        match *anchor {
            Anchor::Base(line) => by_base(line),
            Anchor::Hunk(id, line, offset) => {
                let Some(index) = self.hunks.iter().position(|hunk| hunk.id == id) else {
                    return by_base(line.saturating_sub(1));
                };
                let start = self.rows.iter().position(|row| *row == Row::Hunk(index)).unwrap_or(0);
                let length = self.rows[start..]
                    .iter()
                    .take_while(|row| row.hunk() == Some(index))
                    .count();
                start + offset.min(length.saturating_sub(1))
            }
        }
    }
}

enum Anchor {
    Base(usize),
    Hunk(HunkId, usize, usize),
}

//! The open review: its head, and its texts unified or side by side.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use alongside_core::draft::{Hunk, HunkKind, HunkState};

use crate::cells::{Drawn, width};
use crate::highlight::Which;
use crate::lines::Text;
use crate::model::Model;
use crate::review::OpenReview;
use crate::rows::{Layout, Row};
use crate::theme::Side;
use crate::update::contains;
use crate::words::changed_words;

use super::list::cut_left;
use super::{Pieces, right, row};

/// Longer lines are not searched for what to mark in them.
const MAX_MARKED_BYTES: usize = 20_000;

impl Model {
    pub(super) fn draw_review_head(&self, open: &OpenReview, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let is_armed = open.is_armed(self.now) && self.is_connected(open.key.companion);
        let state = if open.is_deciding {
            (" … ".to_owned(), theme.quiet())
        } else if is_armed {
            (" ● ".to_owned(), theme.good())
        } else {
            // Keys that decide are still ignored.
            (" ○ wait ".to_owned(), theme.warning())
        };
        let position = match (open.hunk_index(), open.hunks.len()) {
            (_, 0) => "no hunks ".to_owned(),
            (Some(index), count) => format!("hunk {}/{count} ", index + 1),
            (None, count) => format!("hunk –/{count} "),
        };
        let companion = &self.companions[open.key.companion];
        let path = companion.short(&open.summary.path);
        let room = usize::from(area.width).saturating_sub(width(&state.0, 20) + 1 + width(&position, 40));
        let mut about = format!("  {}", open.summary.agent_identity());
        if open.summary.new_file {
            about.push_str(" · new");
        }
        if open.summary.revision > 1 {
            about.push_str(&format!(" · revision {}", open.summary.revision));
        }
        let name = cut_left(path, room);
        if width(&name, 400) + width(&about, 200) > room {
            about.clear();
        }
        let pieces: Pieces = vec![state, (name, theme.strong()), (about, theme.quiet())];
        let used = row(&pieces, area, theme.bar(), buffer);
        right(&[(position, theme.quiet())], area, used, theme.bar(), buffer);
    }

    pub(super) fn draw_review(&self, open: &OpenReview, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let mut area = area;
        for note in &open.notes {
            if area.height == 0 {
                return;
            }
            row(&[(format!(" {note}"), theme.warning())], area, Style::new(), buffer);
            area.y += 1;
            area.height -= 1;
        }
        let digits = open.base.count().max(open.draft.count()).max(1).to_string().len();
        let painter = Painter {
            model: self,
            open,
            digits: digits.max(2),
        };
        for offset in 0..area.height {
            let index = open.top + usize::from(offset);
            let Some(content) = open.rows.get(index) else { break };
            let place = Rect {
                y: area.y + offset,
                height: 1,
                ..area
            };
            painter.row(*content, index == open.cursor, place, buffer);
        }
    }
}

struct Painter<'a> {
    model: &'a Model,
    open: &'a OpenReview,
    digits: usize,
}

/// A line to paint.
struct Line<'a> {
    text: &'a Text,
    which: Which,
    index: usize,
    side: Side,
    /// The line on the other side that it is compared with.
    other: Option<&'a str>,
}

impl Painter<'_> {
    fn row(&self, content: Row, is_selected: bool, area: Rect, buffer: &mut Buffer) {
        let theme = self.model.options.theme;
        let mark = if is_selected { "▌" } else { " " };
        row(
            &[(mark.to_owned(), theme.accent())],
            Rect { width: 1, ..area },
            Style::new(),
            buffer,
        );
        let area = Rect {
            x: area.x + 1,
            width: area.width.saturating_sub(1),
            ..area
        };
        match content {
            Row::Hunk(index) => self.head(index, is_selected, area, buffer),
            Row::Fold { count, .. } => {
                let lines = if count == 1 { "line" } else { "lines" };
                let text = format!("{:>width$} ⋯ {count} unchanged {lines}", "", width = self.digits);
                let style = if is_selected { theme.selected() } else { Style::new() };
                row(&[(text, theme.quiet())], area, style, buffer);
            }
            _ if self.open.layout == Layout::Split => self.split(content, area, buffer),
            _ => self.unified(content, area, buffer),
        }
    }

    fn head(&self, index: usize, is_selected: bool, area: Rect, buffer: &mut Buffer) {
        let theme = self.model.options.theme;
        let Some(hunk) = self.open.hunks.get(index) else { return };
        let state = self.open.state_of(hunk);
        let style = match (hunk.state, state) {
            (HunkState::Conflict, _) => theme.bad(),
            (HunkState::Rejected, _) => theme.warning(),
            (_, "proposed") => theme.quiet(),
            _ => theme.good(),
        };
        let sign = match (hunk.state, state) {
            (HunkState::Conflict, _) => "!",
            (HunkState::Rejected, _) => "✗",
            (HunkState::Edited, _) => "✎",
            (_, "proposed") => "·",
            _ => "✓",
        };
        let mut pieces: Pieces = vec![
            (format!("{sign} {state}"), style.add_modifier(Modifier::BOLD)),
            (
                format!("  hunk {} · line {}", index + 1, hunk.draft.start),
                theme.quiet(),
            ),
        ];
        if let Some(kind) = kind(hunk) {
            pieces.push((format!(" · {kind}"), theme.warning()));
        }
        if hunk.yours {
            pieces.push((" · your edit".to_owned(), theme.quiet()));
        }
        let first = hunk.draft.start;
        let lines = first..first + hunk.draft.count.max(1);
        let comments = self
            .open
            .comments
            .iter()
            .filter(|comment| lines.contains(&comment.line))
            .count();
        if comments > 0 {
            pieces.push((
                format!(" · {}", crate::update::count(comments, "comment")),
                theme.accent(),
            ));
        }
        let row_style = if is_selected { theme.selected() } else { Style::new() };
        let used = row(&pieces, area, row_style, buffer);
        let rest = usize::from(area.width.saturating_sub(used + 2));
        let rule = Rect {
            x: area.x + used + 1,
            width: area.width.saturating_sub(used + 1),
            ..area
        };
        row(&[("─".repeat(rest), theme.quiet())], rule, row_style, buffer);
    }

    fn unified(&self, content: Row, area: Rect, buffer: &mut Buffer) {
        let open = self.open;
        let (sign, line, numbers) = match content {
            Row::Context { base, draft } | Row::Kept { base, draft, .. } => {
                (' ', self.draft(draft, Side::Context, None), (Some(base), Some(draft)))
            }
            Row::Removed { base, hunk } => {
                let other = paired(open, hunk, Some(base), None).map(|line| open.draft.line(line));
                ('-', self.base(base, Side::Removed, other), (Some(base), None))
            }
            Row::Added { draft, hunk } => {
                let other = paired(open, hunk, None, Some(draft)).map(|line| open.base.line(line));
                ('+', self.draft(draft, Side::Added, other), (None, Some(draft)))
            }
            Row::Declined { proposal, .. } => ('~', self.proposal(proposal), (None, None)),
            _ => return,
        };
        let narrow = area.width < 60;
        let number = |line: Option<usize>| line.map_or_else(String::new, |line| (line + 1).to_string());
        let digits = self.digits;
        let gutter = if narrow {
            format!("{:>digits$} ", number(numbers.1.or(numbers.0)))
        } else {
            format!("{:>digits$} {:>digits$} ", number(numbers.0), number(numbers.1))
        };
        self.numbered(&gutter, sign, &line, area, buffer);
    }

    fn split(&self, content: Row, area: Rect, buffer: &mut Buffer) {
        let open = self.open;
        let half = area.width.saturating_sub(1) / 2;
        let left_area = Rect { width: half, ..area };
        let right_area = Rect {
            x: area.x + half + 1,
            width: area.width.saturating_sub(half + 1),
            ..area
        };
        let bar = Rect {
            x: area.x + half,
            width: 1,
            ..area
        };
        row(
            &[("│".to_owned(), self.model.options.theme.quiet())],
            bar,
            Style::new(),
            buffer,
        );
        let (left, right) = match content {
            Row::Context { base, draft } => (
                Some((' ', self.base(base, Side::Context, None))),
                Some((' ', self.draft(draft, Side::Context, None))),
            ),
            Row::Pair { base, draft, .. } => {
                let left_text = base.map(|line| open.base.line(line));
                let right_text = draft.map(|line| open.draft.line(line));
                (
                    base.map(|line| ('-', self.base(line, Side::Removed, right_text))),
                    draft.map(|line| ('+', self.draft(line, Side::Added, left_text))),
                )
            }
            Row::DeclinedPair { base, proposal, .. } => (
                base.map(|line| (' ', self.base(line, Side::Context, None))),
                proposal.map(|line| ('~', self.proposal(line))),
            ),
            _ => (None, None),
        };
        let digits = self.digits;
        for (side, place) in [(left, left_area), (right, right_area)] {
            if let Some((sign, line)) = side {
                let gutter = format!("{:>digits$} ", line.index + 1);
                self.numbered(&gutter, sign, &line, place, buffer);
            }
        }
    }

    fn base<'b>(&'b self, line: usize, side: Side, other: Option<&'b str>) -> Line<'b> {
        Line {
            text: &self.open.base,
            which: Which::Base,
            index: line,
            side,
            other,
        }
    }

    fn draft<'b>(&'b self, line: usize, side: Side, other: Option<&'b str>) -> Line<'b> {
        Line {
            text: &self.open.draft,
            which: Which::Draft,
            index: line,
            side,
            other,
        }
    }

    fn proposal(&self, line: usize) -> Line<'_> {
        Line {
            text: &self.open.proposal,
            which: Which::Proposal,
            index: line,
            side: Side::Declined,
            other: None,
        }
    }

    fn numbered(&self, gutter: &str, sign: char, line: &Line<'_>, area: Rect, buffer: &mut Buffer) {
        let theme = self.model.options.theme;
        let sign_style = match line.side {
            Side::Removed => theme.bad(),
            Side::Added => theme.good(),
            Side::Context | Side::Declined => theme.quiet(),
        };
        let commented =
            line.which == Which::Draft && self.open.comments.iter().any(|comment| comment.line == line.index + 1);
        let sign = if commented { '»' } else { sign };
        let style = theme.line(line.side);
        let gutter_style = style.remove_modifier(Modifier::CROSSED_OUT);
        let pieces = [(gutter.to_owned(), theme.quiet()), (format!("{sign} "), sign_style)];
        let used = row(&pieces, area, gutter_style, buffer).min(area.width);
        let place = Rect {
            x: area.x + used,
            width: area.width - used,
            ..area
        };
        self.text(line, place, buffer);
    }

    fn text(&self, line: &Line<'_>, area: Rect, buffer: &mut Buffer) {
        let theme = self.model.options.theme;
        let text = line.text.line(line.index);
        let style = theme.line(line.side);
        let words = line.other.map(|other| match line.side {
            Side::Removed => changed_words(text, other).0,
            _ => changed_words(other, text).1,
        });
        let words = words.unwrap_or_default();
        let found = self
            .open
            .search
            .as_deref()
            .map(|pattern| matches(text, pattern))
            .unwrap_or_default();
        let marks = self
            .open
            .marks_of(line.which)
            .map_or(&[][..], |marks| marks.line(line.index));
        let drawn = Drawn {
            line: text,
            skip: self.open.left,
            style: |at| {
                let is_in = |range: &std::ops::Range<usize>| range.contains(&at);
                let after = marks.partition_point(|(range, _)| range.end <= at);
                let syntax = marks.get(after).filter(|(range, _)| is_in(range));
                let mut style = syntax.map_or(style, |(_, syntax)| style.patch(theme.syntax(*syntax, line.side)));
                if words.iter().any(is_in) {
                    style = style.patch(theme.word(line.side));
                }
                if found.iter().any(is_in) {
                    style = style.patch(theme.found());
                }
                style
            },
            special: theme.special(),
            rest: style.remove_modifier(Modifier::CROSSED_OUT),
        };
        let used = drawn.draw(area, buffer);
        // A line ending that differs is otherwise invisible.
        let whole = line.text.whole(line.index);
        let ending = if whole.ends_with("\r\n") && line.side != Side::Context {
            Some("␍")
        } else if !whole.ends_with('\n') && line.side != Side::Context {
            Some("⊘ no newline")
        } else {
            None
        };
        if let Some(ending) = ending
            && used < area.width
        {
            let place = Rect {
                x: area.x + used,
                width: area.width - used,
                ..area
            };
            row(
                &[(ending.to_owned(), theme.quiet())],
                place,
                style.remove_modifier(Modifier::CROSSED_OUT),
                buffer,
            );
        }
    }
}

/// The line on the other side of a hunk that a line is compared with.
fn paired(open: &OpenReview, hunk: usize, base: Option<usize>, draft: Option<usize>) -> Option<usize> {
    let hunk: &Hunk = open.hunks.get(hunk)?;
    let (from, to, line) = match (base, draft) {
        (Some(line), _) => (hunk.base, hunk.draft, line),
        (None, line) => (hunk.draft, hunk.base, line?),
    };
    let offset = (line + 1).checked_sub(from.start)?;
    (offset < to.count).then(|| to.start - 1 + offset)
}

fn kind(hunk: &Hunk) -> Option<&'static str> {
    match hunk.kind {
        HunkKind::Text => None,
        HunkKind::Whitespace => Some("whitespace"),
        HunkKind::LineEnding => Some("line endings"),
        HunkKind::FinalNewline => Some("final newline"),
        HunkKind::ByteOrderMark => Some("byte order mark"),
    }
}

/// Where a pattern is in a line, as far as case does not change lengths.
fn matches(line: &str, pattern: &str) -> Vec<std::ops::Range<usize>> {
    let line = line.get(..line.floor_char_boundary(MAX_MARKED_BYTES)).unwrap_or(line);
    if pattern.is_empty() || !contains(line, pattern) {
        return Vec::new();
    }
    let folded = line.to_lowercase();
    let is_exact = pattern.chars().any(char::is_uppercase) || folded.len() != line.len();
    let text = if is_exact { line } else { folded.as_str() };
    text.match_indices(pattern)
        .map(|(at, found)| at..at + found.len())
        .collect()
}

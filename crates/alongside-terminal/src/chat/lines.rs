//! The conversation as rows, laid out again only where it changed.

use std::sync::Arc;

use alongside_core::draft::Hunk;
use alongside_protocol::Texts;
use alongside_protocol::chat::{ContentBlock, OptionKind, ToolCall, ToolContent, ToolStatus};
use ratatui::style::{Modifier, Style};
use serde_json::Value;

use super::items::{Approval, Closed, Item, Level, STOPPED};
use super::transcript::texts;
use super::{Chat, markdown};
use crate::lines::Text;
use crate::rows::{Layout, Row, Unfolded, rows};
use crate::theme::{Side, Theme};
use crate::view::Pieces;

/// Rows of a tool call's output, and of a diff in it.
const MAX_OUTPUT_ROWS: usize = 12;
const MAX_DIFF_ROWS: usize = 60;
const MAX_DETAILED_ROWS: usize = 2_000;

/// What was laid out, item by item.
#[derive(Default)]
pub(crate) struct Laid {
    width: u16,
    is_detailed: bool,
    items: Vec<(Arc<Item>, Arc<Vec<Pieces>>)>,
}

impl Laid {
    pub(super) fn forget(&mut self) {
        self.items.clear();
    }

    pub(super) fn update(&mut self, chat: &Chat, width: u16, theme: Theme) {
        if self.width != width || self.is_detailed != chat.is_detailed {
            self.items.clear();
            (self.width, self.is_detailed) = (width, chat.is_detailed);
        }
        let items = &chat.shown().items;
        self.items.truncate(items.len());
        for (index, item) in items.iter().enumerate() {
            if self.items.get(index).is_some_and(|(known, _)| Arc::ptr_eq(known, item)) {
                continue;
            }
            let laid = Arc::new(lay_out(chat, item, usize::from(width), theme));
            match self.items.get_mut(index) {
                Some(known) => *known = (item.clone(), laid),
                None => self.items.push((item.clone(), laid)),
            }
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.items.iter().map(|(_, rows)| rows.len()).sum()
    }

    /// The rows from the first to before the last, counted from the start.
    pub(crate) fn rows(&self, first: usize, last: usize) -> impl Iterator<Item = &Pieces> {
        let mut start = 0;
        let visible = self.items.iter().filter_map(move |(_, rows)| {
            let (from, to) = (first.saturating_sub(start), last.saturating_sub(start));
            start += rows.len();
            rows.get(from.min(rows.len())..to.min(rows.len()))
        });
        visible.flatten()
    }
}

fn lay_out(chat: &Chat, item: &Item, width: usize, theme: Theme) -> Vec<Pieces> {
    let mut out = Vec::new();
    match item {
        Item::User { text, others, own, .. } => {
            let bar: Pieces = vec![("▌ ".to_owned(), theme.accent())];
            let style = theme.strong();
            for line in text.trim_end().split('\n') {
                markdown::wrap(&vec![(line.to_owned(), style)], width, bar.clone(), &bar, &mut out);
            }
            for block in others {
                out.push(vec![("▌ ".to_owned(), theme.accent()), (named(block), theme.quiet())]);
            }
            if !own {
                out.push(vec![("▌ from another client".to_owned(), theme.quiet())]);
            }
        }
        Item::Answer { text, .. } => out = markdown::rows(text, width, theme),
        Item::Thinking { text, .. } => {
            let style = theme.quiet().add_modifier(Modifier::ITALIC);
            let mut rows = markdown::rows(text, width, theme);
            if !chat.is_detailed && rows.len() > 3 {
                rows.truncate(2);
                rows.push(vec![("…".to_owned(), style)]);
            }
            for row in &mut rows {
                for (_, piece) in row.iter_mut() {
                    *piece = style;
                }
            }
            out = rows;
        }
        Item::Block(block) => out.push(vec![(named(block), theme.quiet())]),
        Item::Tool { call, approval } => tool(chat, call, approval.as_ref(), width, theme, &mut out),
        Item::Notice { level, message } => {
            let style = match level {
                Level::Information => theme.quiet(),
                Level::Warning | Level::Unsupported => theme.warning(),
                Level::Problem => theme.bad(),
            };
            markdown::wrap(
                &vec![(message.clone(), style)],
                width,
                Vec::new(),
                &Vec::new(),
                &mut out,
            );
        }
    }
    out.push(Vec::new());
    out
}

/// What cannot be shown in a terminal, by its name.
fn named(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.clone(),
        ContentBlock::Image { mime_type, .. } => format!("[image, {mime_type}]"),
        ContentBlock::ResourceLink { name, uri } => format!("[{name}]({uri})"),
        ContentBlock::File { name, .. } | ContentBlock::Attachment { name, .. } => format!("[{name}]"),
        ContentBlock::Other(value) => {
            let kind = value.get("type").and_then(Value::as_str).unwrap_or("unknown");
            format!("[{kind}: cannot be shown in a terminal]")
        }
    }
}

fn tool(chat: &Chat, call: &ToolCall, approval: Option<&Approval>, width: usize, theme: Theme, out: &mut Vec<Pieces>) {
    let (sign, style) = match &call.status {
        ToolStatus::Pending => ("○", theme.quiet()),
        ToolStatus::InProgress => ("◔", theme.accent()),
        ToolStatus::Completed => ("✓", theme.good()),
        ToolStatus::Failed => ("✕", theme.bad()),
        ToolStatus::Other(status) if status == STOPPED => ("–", theme.quiet()),
        ToolStatus::Other(_) => ("?", theme.quiet()),
    };
    let title = if call.title.is_empty() {
        call.tool_name.as_deref().unwrap_or("tool call")
    } else {
        &call.title
    };
    let first: Pieces = vec![(format!("{sign} "), style)];
    let rest: Pieces = vec![("  ".to_owned(), Style::new())];
    let line: Pieces = vec![
        (format!("{} ", kind(&call.kind)), theme.quiet()),
        (title.replace('\n', " "), theme.strong()),
    ];
    markdown::wrap(&line, width, first, &rest, out);
    let open = approval.filter(|approval| approval.closed.is_none());
    let limit = if chat.is_detailed {
        MAX_DETAILED_ROWS
    } else {
        MAX_OUTPUT_ROWS
    };
    for content in &call.content {
        match content {
            ToolContent::Content { content } => output(&named(content), limit, theme, out),
            ToolContent::Diff {
                path,
                old_text,
                new_text,
            } => {
                let limit = if open.is_some() || chat.is_detailed {
                    MAX_DETAILED_ROWS
                } else {
                    MAX_DIFF_ROWS
                };
                let texts = texts(old_text.as_deref(), new_text);
                let hunks = chat.diffs.iter().find(|(known, _)| *known == texts);
                diff(
                    path,
                    &texts,
                    hunks.and_then(|(_, hunks)| hunks.as_deref()),
                    limit,
                    theme,
                    out,
                );
            }
            ToolContent::Other { .. } => {}
        }
    }
    if chat.is_detailed && !call.input.is_null() {
        output(
            &serde_json::to_string_pretty(&call.input).unwrap_or_default(),
            limit,
            theme,
            out,
        );
    }
    if let Some(approval) = approval {
        request(approval, width, theme, out);
    }
}

fn kind(kind: &str) -> &'static str {
    match kind {
        "read" => "Read",
        "edit" => "Edit",
        "delete" => "Delete",
        "move" => "Move",
        "search" => "Search",
        "execute" => "Run",
        "think" => "Think",
        "fetch" => "Fetch",
        "switch_mode" => "Mode",
        _ => "Tool",
    }
}

fn output(text: &str, limit: usize, theme: Theme, out: &mut Vec<Pieces>) {
    let lines = text.trim_end().lines();
    for line in lines.clone().take(limit) {
        out.push(vec![
            ("  │ ".to_owned(), theme.quiet()),
            (line.to_owned(), theme.quiet()),
        ]);
    }
    let more = lines.count().saturating_sub(limit);
    if more > 0 {
        out.push(vec![(
            format!("  │ … {more} more lines (Ctrl-E shows them)"),
            theme.quiet(),
        )]);
    }
}

fn diff(path: &str, shown: &Texts, hunks: Option<&[Hunk]>, limit: usize, theme: Theme, out: &mut Vec<Pieces>) {
    out.push(vec![("  ".to_owned(), Style::new()), (path.to_owned(), theme.accent())]);
    let Some(hunks) = hunks else {
        out.push(vec![("  comparing…".to_owned(), theme.quiet())]);
        return;
    };
    let (base, new) = (Text::new(shown.base.clone()), Text::new(shown.proposal.clone()));
    let all = rows(hunks, base.count(), Layout::Unified, &Unfolded::default());
    for row in all.iter().take(limit) {
        let line = |sign: char, text: &str, side: Side| -> Pieces {
            let style = theme.line(side);
            vec![("  ".to_owned(), Style::new()), (format!("{sign} {text}"), style)]
        };
        out.push(match *row {
            Row::Context { base: number, .. } => line(' ', base.line(number), Side::Context),
            Row::Removed { base: number, .. } => line('-', base.line(number), Side::Removed),
            Row::Added { draft: number, .. } => line('+', new.line(number), Side::Added),
            Row::Fold { count, .. } => vec![(format!("  ⋯ {count} unchanged lines"), theme.quiet())],
            _ => continue,
        });
    }
    if all.len() > limit {
        out.push(vec![(
            format!("  … {} more rows (Ctrl-E shows them)", all.len() - limit),
            theme.quiet(),
        )]);
    }
}

fn request(approval: &Approval, width: usize, theme: Theme, out: &mut Vec<Pieces>) {
    let indent: Pieces = vec![("  ".to_owned(), Style::new())];
    let options = &approval.request.options;
    match &approval.closed {
        Some(Closed::Expired) => {
            let text = "The agent stopped before this was answered. Send your message again if you still want it.";
            markdown::wrap(
                &vec![(text.to_owned(), theme.quiet())],
                width,
                indent.clone(),
                &indent,
                out,
            );
        }
        Some(Closed::Decided { option, own }) => {
            let chosen = options.iter().find(|known| Some(&known.option_id) == option.as_ref());
            let what = chosen.map_or("cancelled", |chosen| chosen.name.as_str());
            let who = if *own { "" } else { " (decided elsewhere)" };
            out.push(vec![(format!("  → {what}{who}"), theme.quiet())]);
        }
        None => {
            for question in &approval.request.questions {
                let line: Pieces = vec![(question.question.clone(), theme.strong())];
                markdown::wrap(&line, width, indent.clone(), &indent, out);
                for (index, choice) in question.choices.iter().enumerate() {
                    out.push(vec![
                        (format!("  {}. ", index + 1), theme.accent()),
                        (choice.label.clone(), Style::new()),
                        (format!("  {}", choice.description), theme.quiet()),
                    ]);
                }
            }
            let mut line: Pieces = Vec::new();
            for (index, option) in options.iter().enumerate() {
                let style = match option.kind {
                    OptionKind::RejectOnce | OptionKind::RejectAlways => theme.bad(),
                    _ => theme.good(),
                };
                line.push((format!("[{}] ", index + 1), theme.accent()));
                line.push((format!("{}   ", option.name), style));
            }
            if approval.request.questions.is_empty() {
                markdown::wrap(&line, width, indent.clone(), &indent, out);
            }
            if let Some((received, needed)) = approval.votes {
                let votes = format!("  {received} of {} required votes received.", received + needed);
                out.push(vec![(votes, theme.quiet())]);
            }
        }
    }
}

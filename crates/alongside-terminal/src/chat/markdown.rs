//! Markdown of an answer as rows of styled text. What an agent writes is never drawn but through `cells`.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};

use crate::cells::{cells, width as columns};
use crate::highlight;
use crate::theme::{Side, Theme};
use crate::view::Pieces;

/// Longer blocks of code are not searched for their syntax, which would delay every frame.
const MAX_HIGHLIGHTED_BYTES: usize = 20_000;

pub(super) fn rows(text: &str, width: usize, theme: Theme) -> Vec<Pieces> {
    let mut writer = Writer {
        theme,
        width: width.max(8),
        rows: Vec::new(),
        line: Vec::new(),
        styles: Vec::new(),
        lists: Vec::new(),
        indents: Vec::new(),
        bullet: None,
        code: None,
        link: None,
    };
    for event in Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES) {
        writer.event(event);
    }
    writer.flush();
    while writer.rows.last().is_some_and(Vec::is_empty) {
        writer.rows.pop();
    }
    writer.rows
}

struct Writer {
    theme: Theme,
    width: usize,
    rows: Vec<Pieces>,
    /// The text of the current block.
    line: Pieces,
    styles: Vec<Style>,
    /// The next number of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    /// What is before every row of the open blocks.
    indents: Vec<(String, Style)>,
    /// What is before the first row of an item, in place of its indent.
    bullet: Option<String>,
    /// The language and the text of the open block of code.
    code: Option<(String, String)>,
    link: Option<String>,
}

impl Writer {
    fn style(&self) -> Style {
        self.styles.iter().fold(Style::new(), |all, style| all.patch(*style))
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match self.code.as_mut() {
                Some((_, code)) => code.push_str(&text),
                None => self.line.push((text.into_string(), self.style())),
            },
            Event::Code(code) => {
                let style = self.style().patch(self.theme.accent());
                self.line.push((code.into_string(), style));
            }
            Event::SoftBreak => self.line.push((" ".to_owned(), self.style())),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.flush();
                let rule = "─".repeat(self.width.min(40));
                self.rows.push(vec![(rule, self.theme.quiet())]);
                self.rows.push(Vec::new());
            }
            // Not a page: HTML is text.
            Event::Html(text) | Event::InlineHtml(text) => self.line.push((text.into_string(), self.theme.quiet())),
            Event::FootnoteReference(text) => self.line.push((format!("[{text}]"), self.theme.quiet())),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.line.push((text.into_string(), self.style())),
            Event::TaskListMarker(done) => {
                self.line
                    .push((if done { "☑ " } else { "☐ " }.to_owned(), self.theme.accent()));
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => self.styles.push(self.theme.accent().add_modifier(Modifier::BOLD)),
            Tag::Strong => self.styles.push(Style::new().add_modifier(Modifier::BOLD)),
            Tag::Emphasis => self.styles.push(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strikethrough => self.styles.push(Style::new().add_modifier(Modifier::CROSSED_OUT)),
            Tag::BlockQuote(_) => {
                self.flush();
                self.indents.push(("│ ".to_owned(), self.theme.quiet()));
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(name) => name.split([' ', ',']).next().unwrap_or_default().to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(start) => {
                self.flush();
                self.lists.push(start);
            }
            Tag::Item => {
                self.flush();
                let bullet = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                self.indents.push((" ".repeat(columns(&bullet, 20)), Style::new()));
                self.bullet = Some(bullet);
            }
            Tag::Link { dest_url, .. } => self.link = Some(dest_url.into_string()),
            Tag::TableCell if !self.line.is_empty() => self.line.push((" │ ".to_owned(), self.theme.quiet())),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.flush();
                self.gap();
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.gap();
            }
            TagEnd::Strong | TagEnd::Emphasis | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.indents.pop();
            }
            TagEnd::CodeBlock => self.write_code(),
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                if self.lists.is_empty() {
                    self.gap();
                }
            }
            TagEnd::Item => {
                self.flush();
                self.indents.pop();
                self.bullet = None;
            }
            TagEnd::Link => {
                if let Some(target) = self.link.take() {
                    let label: String = self.line.iter().map(|(text, _)| text.as_str()).collect();
                    // The text of a link must not hide where it leads.
                    if !target.is_empty() && !label.ends_with(&target) {
                        self.line.push((format!(" ({target})"), self.theme.quiet()));
                    }
                }
            }
            TagEnd::TableRow | TagEnd::TableHead => self.flush(),
            TagEnd::Table => self.gap(),
            _ => {}
        }
    }

    /// An empty row between blocks; not within lists, which stay dense.
    fn gap(&mut self) {
        if self.lists.is_empty() && !self.rows.last().is_none_or(Vec::is_empty) {
            self.rows.push(Vec::new());
        }
    }

    fn prefix(&mut self) -> (Pieces, Pieces) {
        let rest: Pieces = self.indents.clone();
        let mut first = rest.clone();
        if let Some(bullet) = self.bullet.take()
            && let Some(last) = first.last_mut()
        {
            *last = (bullet, self.theme.accent());
        }
        (first, rest)
    }

    fn flush(&mut self) {
        if self.line.is_empty() {
            return;
        }
        let line = std::mem::take(&mut self.line);
        let (first, rest) = self.prefix();
        wrap(&line, self.width, first, &rest, &mut self.rows);
    }

    fn write_code(&mut self) {
        let Some((language, code)) = self.code.take() else {
            return;
        };
        let marks = if code.len() <= MAX_HIGHLIGHTED_BYTES && !language.is_empty() {
            highlight::code(&language, &code)
        } else {
            Vec::new()
        };
        let (first, rest) = self.prefix();
        for (index, line) in code.lines().enumerate() {
            let mut row = if index == 0 { first.clone() } else { rest.clone() };
            row.push(("▏ ".to_owned(), self.theme.quiet()));
            let mut at = 0;
            for (range, syntax) in marks.get(index).map_or(&[][..], Vec::as_slice) {
                let end = range.end.min(line.len());
                if range.start >= end {
                    continue;
                }
                row.push((line[at..range.start].to_owned(), Style::new()));
                row.push((
                    line[range.start..end].to_owned(),
                    self.theme.syntax(*syntax, Side::Context),
                ));
                at = end;
            }
            row.push((line[at..].to_owned(), Style::new()));
            self.rows.push(row);
        }
        self.gap();
    }
}

/// Wraps styled text at spaces, with something before its first row and before the others.
pub(super) fn wrap(line: &Pieces, width: usize, first: Pieces, rest: &Pieces, rows: &mut Vec<Pieces>) {
    let indent: usize = rest.iter().map(|(text, _)| columns(text, width)).sum();
    let width = width.saturating_sub(indent).max(4);
    let mut row = first;
    let mut used = 0;
    for (text, style) in line {
        for word in text.split_inclusive([' ', '\n']) {
            let trimmed = word.trim_end();
            let length = columns(trimmed, width + 1);
            if used > 0 && used + length > width {
                rows.push(std::mem::replace(&mut row, rest.clone()));
                used = 0;
            }
            if length > width {
                // Longer than a row: cut.
                for cell in cells(trimmed) {
                    if used + cell.width > width {
                        rows.push(std::mem::replace(&mut row, rest.clone()));
                        used = 0;
                    }
                    used += cell.width;
                    row.push((cell.symbol.into_owned(), *style));
                }
                continue;
            }
            if used == 0 && trimmed.is_empty() {
                continue;
            }
            let word = word.trim_end_matches('\n');
            used += columns(word, width + 1);
            row.push((word.to_owned(), *style));
        }
    }
    rows.push(row);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Background, ColorDepth};

    fn shown(text: &str, width: usize) -> Vec<String> {
        let theme = Theme {
            depth: ColorDepth::None,
            background: Background::Dark,
        };
        let rows = rows(text, width, theme);
        rows.iter()
            .map(|row| row.iter().map(|(text, _)| text.as_str()).collect())
            .collect()
    }

    #[test]
    fn blocks_become_rows() {
        let text = "# Title\n\nOne **two** `three`.\n\n- a\n- b\n  1. c\n\n> quoted\n\n```rust\nfn main() {}\n```\n";
        let expected = [
            "Title",
            "",
            "One two three.",
            "",
            "• a",
            "• b",
            "  1. c",
            "",
            "│ quoted",
            "",
            "▏ fn main() {}",
        ];
        assert_eq!(shown(text, 40), expected);
    }

    #[test]
    fn long_words_and_lines_are_wrapped() {
        assert_eq!(shown("aaa bbb ccc ddd", 8), ["aaa bbb ", "ccc ddd"]);
        assert_eq!(shown(&"x".repeat(20), 8), ["xxxxxxxx", "xxxxxxxx", "xxxx"]);
    }

    #[test]
    fn link_shows_where_it_leads() {
        assert_eq!(shown("[bank](http://evil.example)", 60), ["bank (http://evil.example)"]);
    }

    #[test]
    fn unfinished_markdown_is_shown_while_it_arrives() {
        assert_eq!(shown("```rust\nlet a", 40), ["▏ let a"]);
        assert_eq!(shown("**bo", 40), ["**bo"]);
    }
}

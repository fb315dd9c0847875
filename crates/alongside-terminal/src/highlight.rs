//! The syntax of the visible lines, found in the background.
//!
//! The grammars are those of Sublime Text, as bat has them. They are loaded when the first file is shown: a companion that shows nothing
//! has none in memory.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use crate::lines::Text;
use crate::theme::Syntax;

/// Longer lines are data, and would take too long.
const MAX_LINE_BYTES: usize = 2_000;
/// Further down than this, the lines before the visible ones are only guessed to start outside of strings and comments.
const MAX_LINES_FROM_START: usize = 3_000;
/// How many lines before the visible ones are read for that guess.
const LEAD: usize = 300;
/// How many lines around the visible ones are done with them.
const MARGIN: usize = 120;

/// Which text of which state of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Base,
    Proposal,
    Draft,
}

/// Lines to look at.
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) which: Which,
    /// Counts the texts that were shown, so that a late result is recognized.
    pub(crate) generation: u64,
    pub(crate) path: Arc<str>,
    pub(crate) text: Arc<Text>,
    pub(crate) lines: Range<usize>,
}

/// The pieces of each line, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    pub(crate) first: usize,
    pub(crate) lines: Vec<Vec<(Range<usize>, Syntax)>>,
}

impl Marks {
    pub(crate) fn covers(&self, lines: &Range<usize>) -> bool {
        self.first <= lines.start && lines.end <= self.first + self.lines.len()
    }

    pub(crate) fn line(&self, line: usize) -> &[(Range<usize>, Syntax)] {
        let index = line.checked_sub(self.first);
        index.and_then(|index| self.lines.get(index)).map_or(&[], Vec::as_slice)
    }
}

impl Job {
    /// The visible lines with some around them.
    pub(crate) fn around(visible: &Range<usize>, count: usize) -> Range<usize> {
        visible.start.saturating_sub(MARGIN)..(visible.end + MARGIN).min(count)
    }

    /// Finds the syntax. Takes a moment.
    pub fn run(&self) -> Marks {
        let marks = Marks {
            first: self.lines.start,
            lines: Vec::new(),
        };
        let set = syntaxes();
        let Some(syntax) = syntax_of(set, &self.path, self.text.line(0)) else {
            return Marks {
                lines: vec![Vec::new(); self.lines.len()],
                ..marks
            };
        };
        let start = if self.lines.start <= MAX_LINES_FROM_START {
            0
        } else {
            self.lines.start - LEAD
        };
        let mut parser = Parser {
            set,
            state: ParseState::new(syntax),
            stack: ScopeStack::new(),
        };
        let mut lines = Vec::with_capacity(self.lines.len());
        for line in start..self.lines.end {
            let found = parser.line(self.text.whole(line));
            if line >= self.lines.start {
                lines.push(found);
            }
        }
        Marks { lines, ..marks }
    }
}

fn syntaxes() -> &'static SyntaxSet {
    static SYNTAXES: OnceLock<SyntaxSet> = OnceLock::new();
    SYNTAXES.get_or_init(two_face::syntax::extra_newlines)
}

fn syntax_of<'a>(set: &'a SyntaxSet, path: &str, first_line: &str) -> Option<&'a SyntaxReference> {
    let path = Path::new(path);
    let name = path.file_name()?.to_str()?;
    let by_extension = || set.find_syntax_by_extension(path.extension()?.to_str()?);
    set.find_syntax_by_extension(name)
        .or_else(by_extension)
        .or_else(|| set.find_syntax_by_first_line(first_line))
}

/// The syntax of a fenced block in an answer, by its name.
pub(crate) fn code(language: &str, text: &str) -> Vec<Vec<(Range<usize>, Syntax)>> {
    let set = syntaxes();
    let Some(syntax) = set.find_syntax_by_token(language) else {
        return Vec::new();
    };
    let mut parser = Parser {
        set,
        state: ParseState::new(syntax),
        stack: ScopeStack::new(),
    };
    text.split_inclusive('\n').map(|line| parser.line(line)).collect()
}

struct Parser<'a> {
    set: &'a SyntaxSet,
    state: ParseState,
    stack: ScopeStack,
}

impl Parser<'_> {
    fn line(&mut self, line: &str) -> Vec<(Range<usize>, Syntax)> {
        if line.len() > MAX_LINE_BYTES {
            return Vec::new();
        }
        // A grammar that fails leaves its line without colors.
        let Ok(operations) = self.state.parse_line(line, self.set) else {
            return Vec::new();
        };
        let mut found: Vec<(Range<usize>, Syntax)> = Vec::new();
        let mut start = 0;
        let mut add = |range: Range<usize>, stack: &ScopeStack| {
            if range.is_empty() {
                return;
            }
            if let Some(syntax) = classified(stack) {
                match found.last_mut() {
                    Some((last, same)) if last.end == range.start && *same == syntax => last.end = range.end,
                    _ => found.push((range, syntax)),
                }
            }
        };
        for (at, operation) in operations {
            add(start..at, &self.stack);
            start = at;
            if self.stack.apply(&operation).is_err() {
                break;
            }
        }
        add(start..line.len(), &self.stack);
        found
    }
}

fn classified(stack: &ScopeStack) -> Option<Syntax> {
    static TABLE: OnceLock<Vec<(Scope, Syntax)>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let names = [
            ("comment", Syntax::Comment),
            ("punctuation.definition.comment", Syntax::Comment),
            ("punctuation.definition.string", Syntax::String),
            ("string", Syntax::String),
            ("constant.character", Syntax::String),
            ("constant", Syntax::Number),
            ("keyword.operator", Syntax::Punctuation),
            ("keyword", Syntax::Keyword),
            ("storage", Syntax::Keyword),
            ("entity.name.tag", Syntax::Keyword),
            ("entity.name.function", Syntax::Function),
            ("support.function", Syntax::Function),
            ("variable.function", Syntax::Function),
            ("entity.other.attribute-name", Syntax::Function),
            ("entity.name", Syntax::Type),
            ("support.type", Syntax::Type),
            ("support.class", Syntax::Type),
            ("markup.heading", Syntax::Keyword),
            ("markup.raw", Syntax::String),
            ("variable", Syntax::Variable),
        ];
        let scopes = names
            .into_iter()
            .filter_map(|(name, syntax)| Some((Scope::new(name).ok()?, syntax)));
        scopes.collect()
    });
    stack.as_slice().iter().rev().find_map(|scope| {
        let entry = table.iter().find(|(known, _)| known.is_prefix_of(*scope));
        entry.map(|(_, syntax)| *syntax)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(path: &str, text: &str, lines: Range<usize>) -> Marks {
        let job = Job {
            which: Which::Draft,
            generation: 0,
            path: path.into(),
            text: Arc::new(Text::new(text.into())),
            lines,
        };
        job.run()
    }

    #[test]
    fn rust_is_recognized_by_the_name_of_the_file() {
        let marks = run("/w/main.rs", "fn main() {\n    // hi\n    print(\"a\", 1);\n}\n", 0..4);
        let kinds = |line: usize| marks.line(line).iter().map(|(_, syntax)| *syntax).collect::<Vec<_>>();
        assert!(kinds(0).contains(&Syntax::Keyword), "{marks:?}");
        assert!(kinds(1).contains(&Syntax::Comment), "{marks:?}");
        assert!(kinds(2).contains(&Syntax::String), "{marks:?}");
        assert!(kinds(2).contains(&Syntax::Number), "{marks:?}");
    }

    #[test]
    fn unknown_files_have_no_colors_but_are_covered() {
        let marks = run("/w/notes.unknown", "fn main()\n", 0..1);
        assert!(marks.covers(&(0..1)));
        assert_eq!(marks.line(0), []);
    }

    #[test]
    fn comment_that_started_above_the_window_is_known() {
        let text = format!("/*\n{}*/\n", "in a comment\n".repeat(50));
        let marks = run("a.rs", &text, 40..42);
        assert_eq!(marks.line(41), [(0..13, Syntax::Comment)]);
    }

    #[test]
    fn very_long_lines_are_left_alone() {
        let marks = run(
            "a.js",
            &format!("var x = \"{}\";\nvar y = 1;\n", "z".repeat(5_000_000)),
            0..2,
        );
        assert_eq!(marks.line(0), []);
        assert_ne!(marks.line(1), []);
    }
}

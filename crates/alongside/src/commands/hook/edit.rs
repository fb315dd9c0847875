//! Replacing a string in a text, as the agents' edit tools do, and the way back: the edit that turns one text into another.

use std::ops::Range;

/// The arguments of an edit tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) old: String,
    pub(super) new: String,
    /// Replace every occurrence.
    pub(super) all: bool,
}

impl Replacement {
    /// The text after the edit. An empty `old` creates a file. The error is for the agent: some tools accept a string that only
    /// resembles the file's text, but then what they write is not what was reviewed.
    pub(super) fn apply(&self, text: Option<&str>) -> Result<String, String> {
        let (old, new) = self.with_line_endings_of(text.unwrap_or_default());
        match text {
            None | Some("") if old.is_empty() => Ok(new),
            None => Err("the file does not exist, so nothing in it can be replaced".to_owned()),
            Some(_) if old.is_empty() => Err("the string to replace is empty, but the file is not".to_owned()),
            Some(text) => match text.matches(&old).count() {
                0 => Err("the string to replace is not in the file exactly as written; read the file again".to_owned()),
                1 => Ok(text.replacen(&old, &new, 1)),
                _ if self.all => Ok(text.replace(&old, &new)),
                count => Err(format!(
                    "the string to replace occurs {count} times in the file; include more of the lines around it"
                )),
            },
        }
    }

    /// The tools match line feeds with the line endings of the file.
    fn with_line_endings_of(&self, text: &str) -> (String, String) {
        if text.contains("\r\n") && !self.old.contains('\r') && !text.contains(&self.old) {
            return (self.old.replace('\n', "\r\n"), self.new.replace('\n', "\r\n"));
        }
        (self.old.clone(), self.new.clone())
    }

    /// The smallest edit of whole lines that turns one text into another and whose `old` occurs once. `None` if the texts are the
    /// same.
    pub(super) fn between(before: &str, after: &str) -> Option<Self> {
        if before == after {
            return None;
        }
        let (changed, new) = unique_block(before, after);
        let [old, new] = [&before[changed], &after[new]];
        // Whole lines of a file with one kind of line ending are written with line feeds, as the agent's own strings are.
        let is_crlf = old.contains("\r\n") && [old, new].iter().all(|text| is_all_crlf(text));
        let plain = |text: &str| {
            if is_crlf {
                text.replace("\r\n", "\n")
            } else {
                text.to_owned()
            }
        };
        Some(Self {
            old: plain(old),
            new: plain(new),
            all: false,
        })
    }
}

fn is_all_crlf(text: &str) -> bool {
    text.matches('\n').count() == text.matches("\r\n").count()
}

/// The differing lines of two texts, with as many lines around them as it takes for them to occur only once in the first.
pub(super) fn unique_block(before: &str, after: &str) -> (Range<usize>, Range<usize>) {
    let (old, new): (Vec<&str>, Vec<&str>) = (
        before.split_inclusive('\n').collect(),
        after.split_inclusive('\n').collect(),
    );
    let same = |one: &mut dyn Iterator<Item = (&&str, &&str)>| one.take_while(|(old, new)| old == new).count();
    let mut head = same(&mut old.iter().zip(&new));
    let rest = old.len().min(new.len()) - head;
    let mut tail = same(&mut old.iter().rev().zip(new.iter().rev())).min(rest);
    let bytes = |lines: &[&str]| -> usize { lines.iter().map(|line| line.len()).sum() };
    loop {
        let start = bytes(&old[..head]);
        let after_tail = bytes(&old[old.len() - tail..]);
        let block = start..before.len() - after_tail;
        let text = &before[block.clone()];
        // From both sides: occurrences may overlap.
        let is_unique = !text.is_empty() && [before.find(text), before.rfind(text)] == [Some(start); 2];
        if is_unique || (head == 0 && tail == 0) {
            return (block, start..after.len() - after_tail);
        }
        head = head.saturating_sub(1);
        tail = tail.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn replacement(old: &str, new: &str, all: bool) -> Replacement {
        Replacement {
            old: old.to_owned(),
            new: new.to_owned(),
            all,
        }
    }

    #[test]
    fn edit_replaces_one_occurrence_or_all() {
        assert_eq!(replacement("b", "c", false).apply(Some("a b")).unwrap(), "a c");
        assert_eq!(replacement("b", "c", true).apply(Some("b b")).unwrap(), "c c");
        assert_eq!(replacement("", "new\n", false).apply(None).unwrap(), "new\n");
        assert_eq!(
            replacement("a\nb", "c\nd", false).apply(Some("a\r\nb\r\n")).unwrap(),
            "c\r\nd\r\n"
        );
        for (edit, text, reason) in [
            (replacement("b", "c", false), Some("b b"), "2 times"),
            (replacement("x", "c", false), Some("b b"), "exactly"),
            (replacement("x", "c", false), None, "does not exist"),
            (replacement("", "c", false), Some("b"), "is empty"),
        ] {
            let error = edit.apply(text).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn smallest_edit_has_only_the_lines_it_needs() {
        let edit = Replacement::between("a\nb\nc\n", "a\nB\nc\n").unwrap();
        assert_eq!(edit, replacement("b\n", "B\n", false));
        let edit = Replacement::between("x\nb\ny\nb\nz\n", "x\nb\ny\nB\nz\n").unwrap();
        assert_eq!(edit, replacement("y\nb\nz\n", "y\nB\nz\n", false));
        let edit = Replacement::between("a\r\nb\r\n", "a\r\nB\r\n").unwrap();
        assert_eq!(edit, replacement("b\n", "B\n", false), "agents write line feeds");
        assert_eq!(Replacement::between("a\n", "a\n"), None);
        let (before, after) = ("a\na\na\n", "a\na\nb\na\n");
        let edit = Replacement::between(before, after).unwrap();
        assert_eq!(edit.apply(Some(before)).unwrap(), after, "occurrences overlap");
    }

    proptest! {
        #[test]
        fn smallest_edit_leads_to_the_text(before in "([ab]{0,2}\n){1,8}[ab]?", after in "([ab]{0,2}\n){0,8}[ab]?") {
            match Replacement::between(&before, &after) {
                None => prop_assert_eq!(before, after),
                Some(edit) => prop_assert_eq!(edit.apply(Some(&before)), Ok(after)),
            }
        }
    }
}

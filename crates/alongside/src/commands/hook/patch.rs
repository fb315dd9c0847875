//! The patches of `apply_patch`: several files, which are added, updated, moved or deleted.
//!
//! Updates are applied as Codex does: the lines of a hunk are searched for from the end of the previous hunk, exactly, then without the white
//! space at their ends, then without all white space around them.

use super::edit::unique_block;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

/// One file of a patch, with its lines as they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) path: String,
    pub(super) action: Action,
    source: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Add(String),
    Delete,
    Update { move_to: Option<String>, hunks: Vec<Hunk> },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// A line that precedes it in the file.
    context: Option<String>,
    old: Vec<String>,
    new: Vec<String>,
    is_at_end: bool,
}

/// The error is for the agent.
pub(super) fn parse(patch: &str) -> Result<Vec<Section>, String> {
    let invalid = |line: &str| format!("the patch has an unexpected line: `{line}`");
    let lines: Vec<&str> = patch.trim().lines().collect();
    let [first, lines @ .., last] = lines.as_slice() else {
        return Err("the patch is empty".to_owned());
    };
    if first.trim() != BEGIN || last.trim() != END {
        return Err(format!("the patch must start with `{BEGIN}` and end with `{END}`"));
    }
    let mut sections: Vec<Section> = Vec::new();
    for line in lines {
        let started = start(line);
        if let Some((path, action)) = started {
            sections.push(Section {
                path: path.to_owned(),
                action,
                source: format!("{line}\n"),
            });
            continue;
        }
        let section = sections.last_mut().ok_or_else(|| invalid(line))?;
        section.source += line;
        section.source += "\n";
        match &mut section.action {
            Action::Add(text) => {
                let added = line.strip_prefix('+').ok_or_else(|| invalid(line))?;
                text.push_str(added);
                text.push('\n');
            }
            Action::Delete if line.trim().is_empty() => {}
            Action::Delete => return Err(invalid(line)),
            Action::Update { move_to, hunks } => match line.strip_prefix(MOVE) {
                Some(target) if hunks.is_empty() => *move_to = Some(target.trim().to_owned()),
                _ => add_line(hunks, line).ok_or_else(|| invalid(line))?,
            },
        }
    }
    if sections.is_empty() {
        return Err("the patch changes no file".to_owned());
    }
    Ok(sections)
}

fn start(line: &str) -> Option<(&str, Action)> {
    let line = line.trim_end();
    if let Some(path) = line.strip_prefix(ADD) {
        return Some((path, Action::Add(String::new())));
    }
    if let Some(path) = line.strip_prefix(DELETE) {
        return Some((path, Action::Delete));
    }
    let path = line.strip_prefix(UPDATE)?;
    let (move_to, hunks) = (None, Vec::new());
    Some((path, Action::Update { move_to, hunks }))
}

fn add_line(hunks: &mut Vec<Hunk>, line: &str) -> Option<()> {
    if line.trim_end() == "@@" || line.starts_with("@@ ") {
        let context = line.strip_prefix("@@ ").map(str::to_owned);
        hunks.push(Hunk {
            context,
            ..Hunk::default()
        });
        return Some(());
    }
    if hunks.is_empty() {
        // The first hunk may have no header.
        hunks.push(Hunk::default());
    }
    let hunk = hunks.last_mut()?;
    if line.trim_end() == END_OF_FILE {
        hunk.is_at_end = true;
        return Some(());
    }
    let (is_old, is_new, text) = match line.chars().next() {
        None => (true, true, ""),
        Some(' ') => (true, true, &line[1..]),
        Some('-') => (true, false, &line[1..]),
        Some('+') => (false, true, &line[1..]),
        Some(_) => return None,
    };
    if is_old {
        hunk.old.push(text.to_owned());
    }
    if is_new {
        hunk.new.push(text.to_owned());
    }
    Some(())
}

/// A text after the hunks. The error is for the agent.
pub(super) fn apply(text: &str, hunks: &[Hunk]) -> Result<String, String> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    let mut result: Vec<&str> = Vec::new();
    let mut done = 0;
    for hunk in hunks {
        let mut from = done;
        if let Some(context) = &hunk.context {
            let found = seek(&lines, std::slice::from_ref(context), from, false);
            from = 1 + found.ok_or_else(|| format!("the line `{context}` is not in the file"))?;
        }
        let at = if hunk.old.is_empty() {
            // Only additions: at the end of the file.
            lines.len()
        } else {
            let trimmed = hunk.old.strip_suffix(&[String::new()]);
            let found = seek(&lines, &hunk.old, from, hunk.is_at_end)
                .map(|at| (at, hunk.old.len()))
                .or_else(|| Some((seek(&lines, trimmed?, from, hunk.is_at_end)?, trimmed?.len())));
            let (at, count) = found.ok_or_else(|| {
                format!(
                    "these lines are not in the file; read it again:\n{}",
                    hunk.old.join("\n")
                )
            })?;
            result.extend(&lines[done..at]);
            let is_trimmed = count < hunk.old.len();
            let new = if is_trimmed {
                hunk.new.strip_suffix(&[String::new()]).unwrap_or(&hunk.new)
            } else {
                &hunk.new
            };
            result.extend(new.iter().map(String::as_str));
            done = at + count;
            continue;
        };
        result.extend(&lines[done..at]);
        result.extend(hunk.new.iter().map(String::as_str));
        done = at;
    }
    result.extend(&lines[done..]);
    let mut text = result.join("\n");
    text.push('\n');
    Ok(text)
}

/// Where lines occur, at or after `from`.
fn seek(lines: &[&str], wanted: &[String], from: usize, is_at_end: bool) -> Option<usize> {
    let last = lines.len().checked_sub(wanted.len())?;
    let from = if is_at_end { last } else { from };
    let ways: [fn(&str) -> &str; 3] = [|line| line, str::trim_end, str::trim];
    ways.into_iter().find_map(|way| {
        (from..=last).find(|at| {
            let there = &lines[*at..at + wanted.len()];
            there
                .iter()
                .zip(wanted)
                .all(|(there, wanted)| way(there) == way(wanted))
        })
    })
}

/// What becomes of a section after its review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// As it was written.
    Same(Section),
    Write {
        path: String,
        before: Option<String>,
        after: String,
    },
    Delete {
        path: String,
    },
}

/// A patch from its parts.
pub(super) fn write(parts: &[Part]) -> String {
    let mut patch = format!("{BEGIN}\n");
    for part in parts {
        match part {
            Part::Same(section) => patch.push_str(&section.source),
            Part::Delete { path } => patch.push_str(&format!("{DELETE}{path}\n")),
            Part::Write { path, before, after } => match before.as_deref().filter(|before| !before.is_empty()) {
                // An empty file has no line that an update could start from.
                None => {
                    patch.push_str(&format!("{ADD}{path}\n"));
                    push_lines(&mut patch, '+', after);
                }
                Some(before) => {
                    let (old, new) = unique_block(before, after);
                    patch.push_str(&format!("{UPDATE}{path}\n@@\n"));
                    push_lines(&mut patch, '-', &before[old]);
                    push_lines(&mut patch, '+', &after[new]);
                }
            },
        }
    }
    patch + END + "\n"
}

fn push_lines(patch: &mut String, sign: char, text: &str) {
    for line in text.split_inclusive('\n') {
        patch.push(sign);
        patch.push_str(line.strip_suffix('\n').unwrap_or(line));
        patch.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATCH: &str = "*** Begin Patch\n*** Add File: new.txt\n+one\n+\n*** Update File: a.txt\n*** Move to: b.txt\n@@ fn f\n x\n-y\n+z\n@@\n-end\n*** End of File\n*** Delete File: old.txt\n*** End Patch\n";

    #[test]
    fn patch_with_several_files_is_read() {
        let sections = parse(PATCH).unwrap();
        let [added, moved, deleted] = sections.as_slice() else {
            panic!("{sections:?}");
        };
        assert_eq!(
            (added.path.as_str(), &added.action),
            ("new.txt", &Action::Add("one\n\n".into()))
        );
        assert_eq!((deleted.path.as_str(), &deleted.action), ("old.txt", &Action::Delete));
        let Action::Update { move_to, hunks } = &moved.action else {
            panic!("{moved:?}");
        };
        assert_eq!(move_to.as_deref(), Some("b.txt"));
        let text = "x\ny\nfn f\nx\ny\nend\nend\n";
        assert_eq!(apply(text, hunks).unwrap(), "x\ny\nfn f\nx\nz\nend\n");
        let same: Vec<Part> = sections.iter().cloned().map(Part::Same).collect();
        assert_eq!(write(&same), PATCH);
    }

    #[test]
    fn invalid_patch_is_refused_with_a_reason() {
        for (patch, reason) in [
            ("", "is empty"),
            ("*** Begin Patch\n*** End Patch", "changes no file"),
            ("*** Begin Patch\nx\n*** End Patch", "unexpected line: `x`"),
            (
                "*** Begin Patch\n*** Add File: a\nx\n*** End Patch",
                "unexpected line: `x`",
            ),
            ("*** Add File: a\n+x\n", "must start with"),
        ] {
            let error = parse(patch).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        let missing = [Hunk {
            old: vec!["nowhere".into()],
            ..Hunk::default()
        }];
        assert!(apply("a\n", &missing).unwrap_err().contains("nowhere"));
    }

    #[test]
    fn hunk_matches_despite_white_space() {
        let hunk = |old: &str| Hunk {
            old: vec![old.into()],
            new: vec!["new".into()],
            ..Hunk::default()
        };
        assert_eq!(apply("a  \nb\n", &[hunk("a")]).unwrap(), "new\nb\n");
        assert_eq!(apply("  a\nb", &[hunk("a")]).unwrap(), "new\nb\n");
        let append = Hunk {
            new: vec!["last".into()],
            ..Hunk::default()
        };
        assert_eq!(apply("a\n", &[append]).unwrap(), "a\nlast\n");
    }

    proptest! {
        #[test]
        fn rebuilt_patch_leads_to_the_text(before in "([ab]{0,2}\n){1,8}", after in "([ab]{0,2}\n){1,8}") {
            prop_assume!(before != after);
            let part = Part::Write { path: "a".into(), before: Some(before.clone()), after: after.clone() };
            let sections = parse(&write(&[part])).unwrap();
            let Action::Update { hunks, .. } = &sections[0].action else { panic!("{sections:?}") };
            prop_assert_eq!(apply(&before, hunks), Ok(after));
        }
    }
}

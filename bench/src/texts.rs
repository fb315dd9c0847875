//! Texts to propose.

/// Lines of code, all different.
pub fn code(lines: usize) -> String {
    (0..lines).map(|line| code_line(line, "constant")).collect()
}

/// The same with this many lines changed, at equal distances.
pub fn changed(lines: usize, changes: usize) -> String {
    let every = (lines / changes.max(1)).max(1);
    let word = |line| {
        if line % every == every / 2 {
            "replaced"
        } else {
            "constant"
        }
    };
    (0..lines).map(|line| code_line(line, word(line))).collect()
}

fn code_line(line: usize, word: &str) -> String {
    format!("    let value_{line} = {word}({line});\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_lines_change_as_wanted() {
        for (lines, changes) in [(1_000, 10), (200_000, 2_000), (50_000, 4_000)] {
            let (old, new) = (code(lines), changed(lines, changes));
            let differing = old.lines().zip(new.lines()).filter(|(old, new)| old != new).count();
            assert!(differing.abs_diff(changes) <= changes / 20, "{differing} of {changes}");
        }
    }
}

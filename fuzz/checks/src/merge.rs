//! Hunk decisions and rebases against the simplest implementation there is.

use alongside_core::draft::{Draft, Hunk, HunkDecision, HunkState};

/// Few different lines, so that repeats and ambiguous comparisons are common.
const LINES: [&str; 8] = ["a\n", "b\n", "c\n", "\n", "a\r\n", "ä b\n", "\u{feff}a\n", "d"];
const MARKER: &str = "a line that no text has\n";

/// Base and proposal are made of the bytes before and after the first 0xff; the rest after the second one decides.
pub fn hunk_merge(bytes: &[u8]) {
    let mut parts = bytes.splitn(3, |byte| *byte == 0xff);
    let mut text = || -> Vec<&'static str> {
        let lines = parts.next().unwrap_or_default().iter().take(40);
        let lines = lines.map(|byte| LINES[usize::from(*byte) % LINES.len()]);
        // Only the last line may have no line end.
        let lines: Vec<&str> = lines.collect();
        let last = lines.len().saturating_sub(1);
        let keep =
            |(position, line): (usize, &&'static str)| (position == last || line.ends_with('\n')).then_some(*line);
        lines.iter().enumerate().filter_map(keep).collect()
    };
    let (base, proposal) = (text(), text());
    let decisions = parts.next().unwrap_or_default();
    let mut draft = Draft::new(base.concat(), proposal.concat(), None);
    assert_eq!(draft.text(), proposal.concat());
    let hunks: Vec<Hunk> = draft.hunks().collect();
    for (position, hunk) in hunks.iter().enumerate() {
        let accept = decisions.get(position).is_none_or(|byte| byte % 2 == 0);
        let decision = if accept {
            HunkDecision::Accepted
        } else {
            HunkDecision::Rejected
        };
        draft.set_hunk(hunk.id, decision).unwrap();
    }
    let accepted: Vec<bool> = draft.hunks().map(|hunk| hunk.state == HunkState::Accepted).collect();
    assert_eq!(draft.text(), naive_merge(&base, &proposal, &hunks, &accepted));
    rebase(&draft, &base, &proposal, &hunks, &accepted, decisions);
}

/// Copies the base, and the proposal where a hunk is accepted.
fn naive_merge(base: &[&str], proposal: &[&str], hunks: &[Hunk], accepted: &[bool]) -> String {
    let mut merged = Vec::new();
    let mut next = 0;
    for (hunk, accepted) in hunks.iter().zip(accepted) {
        let start = hunk.base.start - 1;
        merged.extend_from_slice(&base[next..start]);
        merged.extend_from_slice(if *accepted {
            &proposal[hunk.proposal.start - 1..][..hunk.proposal.count]
        } else {
            &base[start..][..hunk.base.count]
        });
        next = start + hunk.base.count;
    }
    merged.extend_from_slice(&base[next..]);
    merged.concat()
}

/// The file changes in one line, away from every hunk: the draft changes in the same line, and nothing conflicts.
fn rebase(draft: &Draft, base: &[&str], proposal: &[&str], hunks: &[Hunk], accepted: &[bool], decisions: &[u8]) {
    let Some(changed) = decisions.last().map(|byte| usize::from(*byte) % base.len().max(1)) else {
        return;
    };
    // A line like its neighbors could be said to have changed in either place.
    let neighbors = changed.saturating_sub(1)..(changed + 2).min(base.len());
    let is_ambiguous = neighbors
        .clone()
        .any(|other| other != changed && base[other] == base[changed]);
    let is_near = hunks.iter().any(|hunk| {
        let start = hunk.base.start - 1;
        changed + 1 >= start && changed <= start + hunk.base.count
    });
    if base.is_empty() || is_ambiguous || is_near || !base[changed].ends_with('\n') {
        return;
    }
    let mut new_base = base.to_vec();
    new_base[changed] = MARKER;
    let mut rebased = draft.clone();
    let outcome = rebased.rebase(new_base.concat(), None);
    assert_eq!(outcome.conflicts, 0);
    assert_eq!(rebased.text(), naive_merge(&new_base, proposal, hunks, accepted));
}

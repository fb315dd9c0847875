//! The rules of drafts, for any texts.
//!
//! Texts are made of few different lines, so that repeats and ambiguous comparisons are common, with all kinds of line
//! endings, byte order marks and unfinished last lines.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use super::compare::line_changes;
use super::lines::count_lines;
use super::tests::{restore, store};
use super::*;

fn configuration() -> ProptestConfig {
    ProptestConfig {
        cases: 10_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..ProptestConfig::default()
    }
}

/// Picked by index, which is the fastest way to generate many texts.
const LINES: [&str; 16] = [
    "a\n",
    "a\n",
    "a\n",
    "a\n",
    "b\n",
    "b\n",
    "b\n",
    "c\n",
    "c\n",
    "c\n",
    "\n",
    "a\r\n",
    "b\r\n",
    "a\rb\n",
    "\u{feff}a\n",
    "ä b\n",
];
const LAST: [&str; 6] = ["", "", "", "", "a", "b\r"];

fn text() -> impl Strategy<Value = String> {
    (0_usize..8, prop::collection::vec(0..LINES.len(), 0..8), 0..LAST.len()).prop_map(|(mark, lines, last)| {
        let mark = if mark == 0 { "\u{feff}" } else { "" };
        let lines = lines.into_iter().map(|line| LINES[line]);
        std::iter::once(mark).chain(lines).chain([LAST[last]]).collect()
    })
}

/// What can happen to a draft.
#[derive(Clone, Debug)]
enum Action {
    Set(u32, HunkDecision),
    SetAll(HunkDecision),
    Edit(String),
    /// Replaces some lines of the draft.
    EditLines(usize, usize, String),
    Rebase(String),
    /// Replaces some lines of the file.
    RebaseLines(usize, usize, String),
}

fn choice() -> impl Strategy<Value = HunkDecision> {
    prop_oneof![
        Just(HunkDecision::Accepted),
        Just(HunkDecision::Rejected),
        Just(HunkDecision::Kept)
    ]
}

fn small() -> impl Strategy<Value = String> {
    prop::sample::select(&["", "a\n", "b\n", "x\n", "c\na\n", "x"][..]).prop_map(str::to_owned)
}

fn edit() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (0_u32..6, choice()).prop_map(|(id, choice)| Action::Set(id, choice)),
        1 => choice().prop_map(Action::SetAll),
        1 => text().prop_map(Action::Edit),
        4 => (0_usize..9, 0_usize..3, small()).prop_map(|(start, count, text)| Action::EditLines(start, count, text)),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => edit(),
        1 => text().prop_map(Action::Rebase),
        1 => (0_usize..9, 0_usize..3, small()).prop_map(|(start, count, text)| Action::RebaseLines(start, count, text)),
    ]
}

fn with_lines(text: &str, start: usize, count: usize, new: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let before = lines.iter().take(start).copied();
    before
        .chain([new])
        .chain(lines.iter().skip(start + count).copied())
        .collect()
}

fn act(draft: &mut Draft, action: &Action) {
    let edit = |draft: &mut Draft, text: &str| {
        draft.edit(text, None);
        assert_eq!(draft.text(), text);
    };
    let rebase = |draft: &mut Draft, base: &str| {
        let rebased = draft.rebase(base, None);
        assert_eq!(&**draft.base(), base);
        assert_eq!(rebased.conflicts, draft.conflicts().count());
        assert_eq!(rebased.clean, rebased.conflicts == 0);
    };
    let before = draft.outline();
    match action {
        // Not every number is a hunk id.
        Action::Set(id, choice) => drop(draft.set_hunk(HunkId(*id), *choice)),
        Action::SetAll(choice) => draft.set_all(*choice),
        Action::Edit(text) => edit(draft, text),
        Action::EditLines(start, count, new) => edit(draft, &with_lines(&draft.text(), *start, *count, new)),
        Action::Rebase(base) => rebase(draft, base),
        Action::RebaseLines(start, count, new) => rebase(draft, &with_lines(draft.base(), *start, *count, new)),
    }
    // What the journal has after it.
    let mut outline = before.clone();
    assert!(outline.apply(draft.outline().change_since(&before)));
    assert_eq!(outline, draft.outline());
}

/// Invariants of every draft.
fn check(draft: &Draft) {
    let mut proposal = draft.base().to_string();
    let changes: Vec<_> = draft.proposed_changes().collect();
    for (range, text) in changes.into_iter().rev() {
        proposal.replace_range(range, text);
    }
    assert_eq!(proposal, &**draft.proposal());
    let text = draft.text();
    let split = |text: &'_ str| -> Vec<String> { text.split_inclusive('\n').map(str::to_owned).collect() };
    let (base, proposal, lines) = (split(draft.base()), split(draft.proposal()), split(&text));
    for hunk in draft.hunks() {
        let texts = draft.hunk_texts(hunk.id).unwrap();
        let held = |lines: &[String], range: LineRange| lines[range.start - 1..range.start - 1 + range.count].concat();
        assert_eq!(held(&lines, hunk.draft), texts.draft);
        assert_eq!(held(&base, hunk.base), texts.base);
        assert_eq!(held(&proposal, hunk.proposal), texts.proposal);
        assert_eq!(texts.ancestor.is_some(), hunk.state == HunkState::Conflict);
    }
    assert_eq!(restore(&store(draft)).unwrap(), *draft);
}

fn revert_own(draft: &mut Draft) {
    let own: Vec<HunkId> = draft.hunks().filter(|hunk| hunk.yours).map(|hunk| hunk.id).collect();
    for id in own {
        draft.set_hunk(id, HunkDecision::Rejected).unwrap();
    }
}

/// A naive three-way merge; `None` if changes overlap.
fn merge(base: &str, ours: &str, theirs: &str) -> Option<String> {
    let lines = |text: &str| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>();
    let (old, mine, other) = (lines(base), lines(ours), lines(theirs));
    let mut changes: Vec<_> = line_changes(base, ours, None)
        .into_iter()
        .map(|change| (change, &mine))
        .collect();
    changes.extend(
        line_changes(base, theirs, None)
            .into_iter()
            .map(|change| (change, &other)),
    );
    changes.sort_by_key(|(change, _)| (change.old.start, change.old.end));
    let mut merged = String::new();
    let mut done: Option<(std::ops::Range<usize>, String)> = None;
    for (change, lines) in changes {
        let new = lines[change.new.clone()].concat();
        match &done {
            Some(last) if *last == (change.old.clone(), new.clone()) => continue,
            Some((last, _)) if last.end >= change.old.start => return None,
            _ => {}
        }
        let start = done.map_or(0, |(last, _)| last.end);
        merged.push_str(&old[start..change.old.start].concat());
        merged.push_str(&new);
        done = Some((change.old, new));
    }
    merged.push_str(&old[done.map_or(0, |(last, _)| last.end)..].concat());
    Some(merged)
}

proptest! {
    #![proptest_config(configuration())]

    #[test]
    fn all_accepted_is_proposal_and_all_rejected_is_base(base in text(), proposal in text()) {
        let mut draft = Draft::new(&*base, &*proposal, None);
        check(&draft);
        prop_assert_eq!(draft.text(), &*proposal);
        draft.set_all(HunkDecision::Rejected);
        check(&draft);
        prop_assert_eq!(draft.text(), base);
        draft.set_all(HunkDecision::Accepted);
        prop_assert_eq!(draft.text(), proposal);
    }

    #[test]
    fn lines_of_a_text_are_the_same_beside_another_one(base in text(), proposal in text()) {
        let base = Text::new(base.into());
        let shared = Shared::by(base.as_str(), &proposal);
        prop_assert_eq!(base.beside(proposal.as_str().into(), shared), Text::new(proposal.into()));
        let prefix = &base.as_str()[..shared.prefix];
        prop_assert_eq!(base.lines_before(shared.prefix), count_lines(prefix));
    }

    #[test]
    fn decisions_commute_and_are_reversible(
        base in text(),
        proposal in text(),
        choices in prop::collection::vec((any::<bool>(), any::<u16>()), 12),
    ) {
        let mut draft = Draft::new(&*base, &*proposal, None);
        let mut other = draft.clone();
        let choice = |accepted: bool| if accepted { HunkDecision::Accepted } else { HunkDecision::Rejected };
        let mut decisions: Vec<_> = draft.hunks().zip(choices).map(|(hunk, (accepted, rank))| (hunk.id, accepted, rank)).collect();
        for &(id, accepted, _) in &decisions {
            draft.set_hunk(id, choice(accepted)).unwrap();
        }
        decisions.sort_by_key(|(_, _, rank)| *rank);
        for &(id, accepted, _) in &decisions {
            other.set_hunk(id, choice(!accepted)).unwrap();
            let previous = other.text();
            other.set_hunk(id, choice(accepted)).unwrap();
            other.set_hunk(id, choice(!accepted)).unwrap();
            prop_assert_eq!(other.text(), previous);
            other.set_hunk(id, choice(accepted)).unwrap();
        }
        check(&draft);
        prop_assert_eq!(draft, other);
    }

    #[test]
    fn an_edited_draft_is_what_was_typed(base in text(), proposal in text(), first in text(), second in text()) {
        let mut draft = Draft::new(&*base, &*proposal, None);
        for text in [&first, &second, &base, &proposal] {
            draft.edit(text, None);
            prop_assert_eq!(&draft.text(), text);
            check(&draft);
        }
        prop_assert!(draft.hunks().all(|hunk| hunk.state == HunkState::Accepted));
    }

    #[test]
    fn any_edit_can_be_reverted_to_either_side(
        base in text(),
        proposal in text(),
        actions in prop::collection::vec(edit(), 0..5),
    ) {
        let mut draft = Draft::new(&*base, &*proposal, None);
        let original = draft.clone();
        for action in &actions {
            act(&mut draft, action);
            check(&draft);
        }
        let mut accepted = draft.clone();
        accepted.set_all(HunkDecision::Accepted);
        revert_own(&mut accepted);
        prop_assert_eq!(accepted.text(), proposal);
        prop_assert_eq!(accepted.hunks().collect::<Vec<_>>(), original.hunks().collect::<Vec<_>>());
        draft.set_all(HunkDecision::Rejected);
        prop_assert_eq!(draft.text(), base);
    }

    #[test]
    fn rejecting_everything_restores_the_file(
        base in text(),
        proposal in text(),
        actions in prop::collection::vec(action(), 0..5),
    ) {
        let mut draft = Draft::new(&*base, &*proposal, None);
        for action in &actions {
            act(&mut draft, action);
            check(&draft);
        }
        let mut accepted = draft.clone();
        accepted.set_all(HunkDecision::Accepted);
        revert_own(&mut accepted);
        prop_assert_eq!(&*accepted.text(), &**draft.proposal());
        draft.set_all(HunkDecision::Rejected);
        prop_assert_eq!(&*draft.text(), &**draft.base());
    }

    #[test]
    fn a_rejected_draft_follows_the_file(base in text(), proposal in text(), disk in text()) {
        let mut draft = Draft::new(&*base, &*proposal, None);
        draft.set_all(HunkDecision::Rejected);
        prop_assert!(draft.rebase(&*disk, None).clean);
        prop_assert_eq!(draft.text(), disk);
        check(&draft);
    }

    #[test]
    fn clean_rebase_of_accepted_draft_is_a_merge(
        base in text(),
        first in (0_usize..9, 0_usize..3, small()),
        second in (0_usize..9, 0_usize..3, small()),
    ) {
        let proposal = with_lines(&base, first.0, first.1, &first.2);
        let disk = with_lines(&base, second.0, second.1, &second.2);
        let mut draft = Draft::new(&*base, &*proposal, None);
        let rebased = draft.rebase(&*disk, None);
        check(&draft);
        match merge(&base, &proposal, &disk) {
            Some(merged) => {
                prop_assert!(rebased.clean);
                prop_assert_eq!(draft.text(), merged);
            }
            // Where the two changes overlap there is a conflict, unless both are the same; everything else that the agent
            // added is still there.
            None if rebased.clean => {
                let added = first.2.lines().filter(|line| !base.contains(line));
                for line in added {
                    prop_assert!(draft.text().contains(line), "{line:?} is lost");
                }
            }
            None => {}
        }
        draft.set_all(HunkDecision::Rejected);
        prop_assert_eq!(draft.text(), disk);
    }

    #[test]
    fn conflict_keeps_draft_and_file_text(
        base in text(),
        proposal in text(),
        actions in prop::collection::vec(edit(), 0..3),
        disk in text(),
    ) {
        let mut draft = Draft::new(&*base, &*proposal, None);
        for action in &actions {
            act(&mut draft, action);
        }
        let previous = draft.text();
        draft.rebase(&*disk, None);
        for conflict in draft.conflicts() {
            let texts = draft.hunk_texts(conflict.id).unwrap();
            prop_assert!(previous.contains(texts.draft));
            prop_assert!(disk.contains(texts.base));
            prop_assert!(texts.ancestor.is_some_and(|ancestor| base.contains(ancestor)));
        }
        // A file that did not change changes nothing.
        let again = draft.clone();
        draft.rebase(&*disk, None);
        prop_assert_eq!(draft, again);
    }

    #[test]
    fn a_tampered_draft_is_refused_or_sound(
        base in text(),
        proposal in text(),
        actions in prop::collection::vec(action(), 0..4),
        place in any::<prop::sample::Index>(),
        digit in 0_u8..10,
    ) {
        let mut draft = Draft::new(&*base, &*proposal, None);
        for action in &actions {
            act(&mut draft, action);
        }
        let mut stored = store(&draft).into_bytes();
        let digits: Vec<usize> = (0..stored.len()).filter(|&at| stored[at].is_ascii_digit()).collect();
        let at = *place.get(&digits);
        stored[at] = b'0' + digit;
        if let Ok(mut tampered) = restore(&String::from_utf8_lossy(&stored)) {
            check(&tampered);
            tampered.edit("x\n", None);
            check(&tampered);
            tampered.rebase("y\n", None);
            check(&tampered);
        }
    }
}

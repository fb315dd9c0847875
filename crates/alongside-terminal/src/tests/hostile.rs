//! Proposals that try to write to the terminal, to hide, or to take forever.

use alongside_core::printable::is_harmful;

use super::*;

/// Nothing in any cell may move the cursor or reorder text.
fn check(bench: &Bench) {
    let terminal = bench.screen();
    for cell in terminal.backend().buffer().content() {
        assert!(!cell.symbol().chars().any(is_harmful), "{:?}", cell.symbol());
        assert!(cell.symbol().chars().count() <= 8, "{:?}", cell.symbol());
    }
}

const HOSTILE: &str =
    "a\x1b[2J\x1b]0;owned\x07\x1b]52;c;AAAA\x1b\\\u{9b}31m\u{202e}evil\u{2066}\r\x08\x7f\u{200b}\u{feff}\u{e0041}";

#[test]
fn proposals_cannot_write_to_the_terminal() {
    for (width, height) in [(40, 10), (80, 24), (200, 24)] {
        let mut bench = Bench::connected(width, height);
        bench.open(
            &format!("/home/me/project/{HOSTILE}.rs"),
            &format!("{HOSTILE}\n"),
            &format!("x{HOSTILE}\ny\n"),
        );
        check(&bench);
        for keys in ["r", "s", "O", "i", "x"] {
            bench.keys(keys);
            check(&bench);
        }
        let text = bench.shown();
        assert!(text.contains("^["), "{text}");
    }
}

#[test]
fn names_and_notices_cannot_write_to_the_terminal() {
    let mut bench = Bench::connected(80, 24);
    let draft = Draft::new("a\n", "b\n", None);
    let mut summary = summary(1, HOSTILE, false, &draft);
    summary.agent = HOSTILE.to_owned();
    bench.drafts.insert(1, (summary.clone(), draft));
    bench.keys("v");
    bench.notify(Notification::ReviewOpened(summary));
    let mut agents = agents();
    agents.agents[0].identity.name = HOSTILE.to_owned();
    bench.notify(Notification::AgentsChanged(agents));
    check(&bench);
    bench.keys("q");
    check(&bench);
    bench.keys("l");
    bench.wait(500);
    check(&bench);
    bench.keys("+");
    check(&bench);
    bench.press(KeyCode::Esc);
    bench.close_elsewhere(1, ReviewOutcome::ClosedByAgent);
    check(&bench);
}

#[test]
fn combining_marks_and_wide_characters_stay_in_their_cells() {
    let mut bench = Bench::connected(60, 12);
    let zalgo = format!("z{}", "\u{30d}".repeat(50_000));
    bench.open("a.txt", "ﷺ漢字\n", &format!("e\u{301}漢字 שלום 👨‍👩‍👧 {zalgo}\n"));
    check(&bench);
    assert!(bench.shown().contains("漢字"));
}

#[test]
fn five_megabytes_on_one_line_can_be_reviewed() {
    let base = format!("var x = \"{}\";\n", "a".repeat(5_000_000));
    let proposal = base.replace("var x", "let x");
    let mut bench = Bench::connected(100, 20);
    bench.open("bundle.min.js", &base, &proposal);
    check(&bench);
    bench.press(KeyCode::Right);
    bench.press(KeyCode::End);
    check(&bench);
    bench.keys("s/aaaa");
    bench.press(KeyCode::Enter);
    check(&bench);
    bench.keys("iq");
    bench.press(KeyCode::Esc);
    assert!(bench.draft(1).len() > 5_000_000);
    bench.keys("A");
    assert_eq!(bench.decided.len(), 1);
}

#[test]
fn tiny_terminals_are_no_problem() {
    for width in 0..12 {
        for height in 0..8 {
            let mut bench = Bench::connected(width, height);
            bench.open("a.unknown", BASE, &proposal());
            check(&bench);
            for keys in ["?", "q", "v", "q", "i", "x"] {
                bench.keys(keys);
                check(&bench);
            }
        }
    }
}

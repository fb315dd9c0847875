//! A change of many hunks in a long file, measured.

use std::io::{self, Write as _};
use std::time::Instant;

use crate::case::Case;
use crate::hunks::lines;

const LINES: usize = 20_000;
const HUNKS: usize = 300;

#[tokio::test]
async fn long_file_with_many_hunks_is_reviewed() {
    let is_changed = |number: usize| number % (LINES / HUNKS) == 3 && number <= LINES / HUNKS * HUNKS;
    let case = Case::new();
    let path = case.write("long.txt", &lines(LINES, |_| false));
    let window = case.open();
    let mut agent = case.agent().await;
    agent.propose(&path, &lines(LINES, is_changed)).await;
    let start = Instant::now();
    window.show_review();
    let shown = start.elapsed();

    let start = Instant::now();
    window.click_lens("Reject hunk", 0);
    window.wait_for_states(&["Rejected"]);
    let rejected = start.elapsed();

    let start = Instant::now();
    window.type_after("line 3", " edited");
    let typed = start.elapsed();
    let start = Instant::now();
    let accepted = window.accept(&mut agent).await;
    let decided = start.elapsed();
    let wanted = lines(LINES, |number| is_changed(number) && number != 3);
    assert!(
        accepted == wanted.replacen("line 3\n", "line 3 edited\n", 1),
        "other text was accepted"
    );
    // Not `eprintln`, which the test harness captures.
    let _ = writeln!(
        io::stderr(),
        "\nVS Code, {LINES} lines with {HUNKS} hunks: shown with lenses after {shown:.1?}, one hunk rejected in \
         {rejected:.1?}, seven characters typed in {typed:.1?}, accepted in {decided:.1?}"
    );
}

//! The tables of docs/PROTOCOL.md list every method, notification and error kind, and nothing else.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;

use alongside_protocol::{ErrorKind, METHODS, NOTIFICATIONS};

/// The code in the first cell of each row, in all tables whose first column has this head.
fn first_cells(head: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/PROTOCOL.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut found = BTreeSet::new();
    let mut column = None;
    for line in text.lines() {
        let cell = line
            .strip_prefix('|')
            .and_then(|line| line.split('|').next())
            .map(str::trim);
        match (cell, column) {
            (None, _) => column = None,
            (Some(cell), None) => column = Some(cell),
            (Some(cell), Some(column)) if column == head => {
                found.extend(cell.split('`').skip(1).step_by(2).map(str::to_owned));
            }
            (Some(_), Some(_)) => {}
        }
    }
    found
}

fn all<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn every_method_and_notification_is_documented() {
    let chat = first_cells("notification, only with `chat`");
    assert_eq!(chat, all(["chat/event", "chat/changed"]));
    // The section before the first table.
    let hello = all(["hello"]);
    let documented = &(&first_cells("method") | &chat) | &hello;
    assert_eq!(documented, all(METHODS.iter().chain(NOTIFICATIONS).copied()));
}

#[test]
fn every_error_kind_is_documented() {
    let kinds = ErrorKind::ALL.iter().map(|kind| kind.as_str());
    assert_eq!(first_cells("kind"), all(kinds));
}

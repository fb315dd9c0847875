//! When changed diagnostics are sent to agents.

use super::*;
use crate::context::Cursor;
use crate::diagnostics::{Diagnostic, FileDiagnostics, FrontEndId, Severity};

const EDITOR: FrontEndId = FrontEndId(1);

fn core() -> Core {
    Core::new(vec!["/w".into()])
}

fn file(path: &str, messages: &[&str]) -> FileDiagnostics {
    let place = Cursor { line: 1, character: 1 };
    let found = |message: &&str| Diagnostic {
        start: place,
        end: place,
        severity: Severity::Error,
        message: (*message).to_owned(),
        source: None,
        code: None,
    };
    FileDiagnostics {
        path: path.to_owned(),
        diagnostics: messages.iter().map(found).collect(),
    }
}

fn report(core: &mut Core, now: Now, path: &str, messages: &[&str]) {
    core.report_diagnostics(now, EDITOR, file(path, messages), Some(path.into()))
        .unwrap();
}

/// What would be sent now; `None` if nothing is due.
fn sent(core: &mut Core) -> Option<Vec<FileDiagnostics>> {
    let is_due = core.take_effects().contains(&Effect::DiagnosticsChanged);
    is_due.then(|| core.take_changed_diagnostics())
}

#[test]
fn burst_of_reports_is_sent_once_with_the_last() {
    let mut core = core();
    for number in 1..=40 {
        report(&mut core, at(number), "/w/a", &[&number.to_string()]);
    }
    assert_eq!(core.next_deadline(), Some(Duration::from_millis(51)));
    core.tick(at(50));
    assert_eq!(sent(&mut core), None);
    core.tick(at(51));
    assert_eq!(sent(&mut core), Some(vec![file("/w/a", &["40"])]));
    assert_eq!(core.next_deadline(), None);
    report(&mut core, at(60), "/w/a", &["40"]);
    assert_eq!(core.next_deadline(), None, "nothing changed");
}

#[test]
fn diagnostics_of_a_front_end_that_left_are_cleared() {
    let mut core = core();
    report(&mut core, at(0), "/w/a", &["one"]);
    core.tick(at(50));
    sent(&mut core);
    core.front_end_left(at(60), EDITOR);
    core.tick(at(110));
    assert_eq!(sent(&mut core), Some(vec![file("/w/a", &[])]));
}

#[test]
fn new_privacy_rule_clears_diagnostics_immediately() {
    let mut core = core();
    report(&mut core, at(0), "/w/notes/a", &["one"]);
    core.tick(at(50));
    sent(&mut core);
    let mut privacy = Privacy::default();
    privacy.hide("config.toml", None, ["notes/"]);
    core.set_privacy(privacy);
    assert_eq!(sent(&mut core), Some(vec![file("/w/notes/a", &[])]));
    report(&mut core, at(60), "/w/notes/a", &["two"]);
    core.tick(at(110));
    assert_eq!(sent(&mut core), Some(Vec::new()), "a hidden file is not named");
}

#[test]
fn diagnostics_follow_the_workspace() {
    let mut core = core();
    report(&mut core, at(0), "/w/a", &["one"]);
    report(&mut core, at(0), "/v/b", &["two"]);
    core.tick(at(50));
    assert_eq!(sent(&mut core), Some(vec![file("/w/a", &["one"])]));
    core.set_workspace(vec!["/v".into()]);
    let expected = vec![file("/v/b", &["two"]), file("/w/a", &[])];
    assert_eq!(sent(&mut core), Some(expected));
}

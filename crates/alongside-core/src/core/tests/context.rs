//! When the context is sent to agents.

use super::*;
use crate::context::{Cursor, HiddenReason};

/// Focuses a file that exists.
fn focus(core: &mut Core, now: Now, path: &str, cursor: Option<Cursor>, selected_text: Option<String>) {
    core.focus_file(now, path, cursor, selected_text).unwrap();
    look_up(core, now, |path| Some(path.into()));
}

fn look_up(core: &mut Core, now: Now, find: impl Fn(&str) -> Option<PathBuf>) {
    let lookup = core.start_lookup();
    for path in core.files_to_look_up() {
        core.file_looked_up(now, lookup, &path, find(&path));
    }
}

fn published(core: &mut Core) -> Vec<IdeContext> {
    let published = core.take_effects().into_iter().filter_map(|effect| match effect {
        Effect::PublishContext(context) => Some(context),
        _ => None,
    });
    published.collect()
}

fn contexts(core: &mut Core) -> usize {
    published(core).len()
}

#[test]
fn burst_of_changes_is_sent_once_with_last_state() {
    let mut core = core();
    for line in 1..=100 {
        focus(
            &mut core,
            at(u64::from(line)),
            "/a",
            Some(Cursor { line, character: 1 }),
            None,
        );
    }
    assert_eq!(core.next_deadline(), Some(Duration::from_millis(51)));
    core.tick(at(50));
    assert_eq!(contexts(&mut core), 0);
    core.tick(at(51));
    let Some(Effect::PublishContext(context)) = core.take_effects().pop() else {
        panic!("nothing was sent")
    };
    assert_eq!(
        context.workspace_state.open_files[0].cursor,
        Some(Cursor {
            line: 100,
            character: 1
        })
    );
    assert_eq!(core.next_deadline(), None);
}

#[test]
fn same_context_is_not_sent_twice() {
    let mut core = core();
    focus(&mut core, at(0), "/a", None, None);
    core.tick(at(50));
    assert_eq!(contexts(&mut core), 1);
    focus(&mut core, at(100), "/a", None, None);
    core.tick(at(150));
    assert_eq!(contexts(&mut core), 0);
}

#[test]
fn shown_context_is_the_sent_one() {
    let mut core = core();
    focus(&mut core, at(0), "/a", None, Some("text".into()));
    let shown = core.show_context();
    assert_eq!(published(&mut core), [shown.context]);
    assert_eq!(core.next_deadline(), None);
}

#[test]
fn new_privacy_rule_applies_immediately() {
    let mut core = core();
    focus(&mut core, at(0), "/notes/a", None, None);
    core.tick(at(50));
    core.take_effects();
    let mut privacy = Privacy::default();
    privacy.hide("config.toml", None, ["notes/"]);
    core.set_privacy(privacy);
    assert_eq!(published(&mut core), [IdeContext::default()]);
}

#[test]
fn same_workspace_is_not_announced_again() {
    let mut core = core();
    core.set_workspace(vec!["/a".into()]);
    core.set_workspace(vec!["/a".into()]);
    assert_eq!(core.take_effects(), [Effect::WorkspaceChanged]);
}

#[test]
fn cursor_move_in_watched_file_looks_at_no_file() {
    let mut core = core();
    let looks = |core: &mut Core| core.take_effects().contains(&Effect::FilesChanged);
    focus(&mut core, at(0), "/a", None, None);
    assert!(looks(&mut core), "a new file");
    core.focus_file(at(1), "/a", Some(Cursor { line: 2, character: 1 }), None)
        .unwrap();
    assert!(looks(&mut core), "changes on disk would go unnoticed");
    core.set_files_watched(true);
    core.focus_file(at(2), "/a", Some(Cursor { line: 3, character: 1 }), None)
        .unwrap();
    assert!(!looks(&mut core));
    core.focus_file(at(3), "/b", None, None).unwrap();
    assert!(looks(&mut core), "another file");
}

#[test]
fn file_is_hidden_until_it_is_looked_up() {
    let mut core = core();
    core.focus_file(at(0), "/a", None, None).unwrap();
    core.tick(at(50));
    assert_eq!(contexts(&mut core), 0);
    assert_eq!(core.show_context().hidden[0].reason, HiddenReason::NotLookedUp);
    look_up(&mut core, at(60), |path| Some(path.into()));
    core.tick(at(110));
    assert_eq!(contexts(&mut core), 1);
}

#[test]
fn removed_file_leaves_the_context() {
    let mut core = core();
    focus(&mut core, at(0), "/a", None, None);
    core.tick(at(50));
    look_up(&mut core, at(60), |_| None);
    core.take_effects();
    assert_eq!(core.next_deadline(), Some(Duration::from_millis(360)));
    core.tick(at(360));
    core.tick(at(410));
    assert_eq!(published(&mut core), [IdeContext::default()]);
    assert_eq!(core.next_deadline(), None);
    look_up(&mut core, at(500), |path| Some(path.into()));
    core.tick(at(550));
    assert_eq!(published(&mut core)[0].workspace_state.open_files[0].path, "/a");
}

#[test]
fn file_that_comes_back_at_once_never_leaves_the_context() {
    let mut core = core();
    focus(&mut core, at(0), "/a", None, None);
    core.tick(at(50));
    assert_eq!(contexts(&mut core), 1);
    for start in [100, 500] {
        look_up(&mut core, at(start), |_| None);
        look_up(&mut core, at(start + 200), |_| None);
        look_up(&mut core, at(start + 290), |path| Some(path.into()));
        for later in 0..100 {
            core.tick(at(start + 4 * later));
        }
    }
    assert_eq!(contexts(&mut core), 0);
    assert_eq!(core.next_deadline(), None);
}

#[test]
fn slow_lookup_does_not_overwrite_a_newer_one() {
    let mut core = core();
    core.focus_file(at(0), "/a", None, None).unwrap();
    let (slow, fast) = (core.start_lookup(), core.start_lookup());
    core.file_looked_up(at(1), fast, "/a", None);
    core.file_looked_up(at(2), slow, "/a", Some("/a".into()));
    assert_eq!(core.show_context().hidden[0].reason, HiddenReason::NotOnDisk);
}

#[test]
fn only_files_that_may_be_sent_are_looked_up() {
    let mut core = core();
    for number in 0..30 {
        focus(&mut core, at(number), &format!("/{number}"), None, None);
    }
    assert_eq!(core.files_to_look_up().len(), 10);
    assert_eq!(core.open_paths().len(), 30);
}

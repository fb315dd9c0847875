//! The rules of the context, one example each.

use std::path::{Path, PathBuf};
use std::time::Duration;

use alongside_platform::Platform;

use super::open_files::MAX_SELECTED_BYTES;
use super::*;
use crate::privacy::Privacy;

/// What agents see if the files on disk are those that `find` finds.
fn snapshot(files: &mut OpenFiles, find: impl Fn(&Path) -> Option<PathBuf>) -> Snapshot {
    let lookup = files.start_lookup();
    for path in files.all_paths() {
        files.looked_up(Duration::ZERO, lookup, &path, find(Path::new(&*path)));
    }
    let snapshot = files.snapshot(&Privacy::default());
    assert_eq!(snapshot.context, files.context(&Privacy::default()));
    snapshot
}

fn seen_of(files: &mut OpenFiles) -> Snapshot {
    snapshot(files, |path| Some(path.to_owned()))
}

fn seen(files: &mut OpenFiles) -> Vec<File> {
    seen_of(files).context.workspace_state.open_files
}

fn paths(files: &mut OpenFiles) -> Vec<String> {
    seen(files).into_iter().map(|file| file.path).collect()
}

/// Difference 15: the newest timestamp is the active file, or none is.
#[test]
fn newest_file_is_the_only_active_one() {
    let mut files = OpenFiles::default();
    files.open(1, "/a").unwrap();
    files.focus(2, "/b", None, None).unwrap();
    files.open(3, "/c").unwrap();
    let seen = seen(&mut files);
    assert_eq!(seen[0].path, "/b");
    assert_eq!(seen.iter().filter(|file| file.is_active == Some(true)).count(), 1);
    assert!(
        seen.windows(2).all(|pair| pair[0].timestamp > pair[1].timestamp),
        "{seen:?}"
    );
}

#[test]
fn most_recently_focused_file_comes_first() {
    let mut files = OpenFiles::default();
    for (time, path) in [(1, "/a"), (2, "/b"), (3, "/c"), (4, "/a")] {
        files.focus(time, path, None, None).unwrap();
    }
    assert_eq!(paths(&mut files), ["/a", "/c", "/b"]);
}

#[test]
fn one_file_in_several_spellings_is_open_once_on_windows() {
    let mut files = OpenFiles::on(Platform::Windows);
    files.open(1, "c:/proj/a.txt").unwrap();
    files.open(2, r"C:\proj\a.txt").unwrap();
    files.focus(3, r"C:\PROJ\A.TXT", None, None).unwrap();
    files.focus(4, r"\\?\C:\proj\a.txt", None, None).unwrap();
    assert_eq!(paths(&mut files), [r"C:\proj\a.txt"]);
    assert!(files.is_focused("c:/proj/a.txt"));
    files.close(r"c:\Proj\a.txt").unwrap();
    assert_eq!(paths(&mut files), [""; 0]);
    assert_eq!(
        files.open(5, r"proj\a.txt"),
        Err(ContextError::NotAbsolute(r"proj\a.txt".to_owned()))
    );
}

#[test]
fn case_of_a_file_name_matters_on_linux_only() {
    for (platform, count) in [(Platform::Unix, 2), (Platform::MacOs, 1)] {
        let mut files = OpenFiles::on(platform);
        files.open(1, "/proj/a.txt").unwrap();
        files.focus(2, "/proj/A.txt", None, None).unwrap();
        assert_eq!(paths(&mut files).len(), count, "{platform:?}");
    }
}

#[test]
fn clock_set_back_keeps_the_order() {
    let mut files = OpenFiles::default();
    files.focus(1000, "/a", None, None).unwrap();
    files.focus(10, "/b", None, None).unwrap();
    assert_eq!(paths(&mut files), ["/b", "/a"]);
    assert!(seen(&mut files)[0].timestamp > seen(&mut files)[1].timestamp);
}

#[test]
fn opening_a_file_keeps_the_focus() {
    let mut files = OpenFiles::default();
    files
        .focus(1, "/a", Some(Cursor { line: 3, character: 4 }), None)
        .unwrap();
    files.open(2, "/b").unwrap();
    assert_eq!(paths(&mut files), ["/a", "/b"]);
    assert_eq!(seen(&mut files)[0].cursor, Some(Cursor { line: 3, character: 4 }));
}

#[test]
fn closing_active_file_activates_the_previous_one() {
    let mut files = OpenFiles::default();
    files
        .focus(1, "/a", Some(Cursor { line: 9, character: 1 }), Some("a".into()))
        .unwrap();
    files.focus(2, "/b", None, None).unwrap();
    files.close("/b").unwrap();
    assert_eq!(seen(&mut files)[0].is_active, Some(true));
    assert_eq!(seen(&mut files)[0].cursor, Some(Cursor { line: 9, character: 1 }));
    assert_eq!(files.close("/b"), Err(ContextError::NotOpen("/b".into())));
}

#[test]
fn only_active_file_has_cursor_and_selection() {
    let mut files = OpenFiles::default();
    files
        .focus(1, "/a", Some(Cursor { line: 1, character: 1 }), Some("text".into()))
        .unwrap();
    files.focus(2, "/b", None, None).unwrap();
    let seen = seen(&mut files);
    assert_eq!(
        (seen[1].cursor, seen[1].selected_text.clone(), seen[1].is_active),
        (None, None, None)
    );
}

#[test]
fn empty_selection_is_absent() {
    let mut files = OpenFiles::default();
    files.focus(1, "/a", None, Some(String::new())).unwrap();
    assert_eq!(seen(&mut files)[0].selected_text, None);
}

/// Difference 16: the limit is cut on a character boundary.
#[test]
fn long_selection_is_cut_on_a_character_boundary() {
    let mut files = OpenFiles::default();
    files
        .focus(1, "/a", None, Some("a".repeat(MAX_SELECTED_BYTES - 1) + "é and more"))
        .unwrap();
    let selected = seen(&mut files)[0].selected_text.clone().unwrap();
    assert_eq!(selected.len(), MAX_SELECTED_BYTES - 1);
}

/// Difference 17: positions count from 1.
#[test]
fn zero_based_position_is_refused() {
    let mut files = OpenFiles::default();
    let refused = files.focus(1, "/a", Some(Cursor { line: 0, character: 1 }), None);
    assert_eq!(refused, Err(ContextError::BadPosition { line: 0, character: 1 }));
    assert!(paths(&mut files).is_empty());
}

#[test]
fn relative_path_is_refused() {
    let mut files = OpenFiles::default();
    assert_eq!(files.open(1, "a.txt"), Err(ContextError::NotAbsolute("a.txt".into())));
}

#[test]
fn at_most_ten_files_are_shown() {
    let mut files = OpenFiles::default();
    for number in 0..12_u64 {
        files.focus(number, &format!("/{number}"), None, None).unwrap();
    }
    let snapshot = seen_of(&mut files);
    assert_eq!(snapshot.context.workspace_state.open_files.len(), 10);
    assert_eq!(snapshot.context.workspace_state.open_files[0].path, "/11");
    assert_eq!(snapshot.hidden.len(), 2);
}

#[test]
fn file_used_longest_ago_is_forgotten_beyond_a_thousand() {
    let mut files = OpenFiles::default();
    for number in 0..=1000 {
        files.focus(number, &format!("/{number}"), None, None).unwrap();
    }
    assert_eq!(files.all_paths().len(), 1000);
    assert_eq!(files.close("/0"), Err(ContextError::NotOpen("/0".to_owned())));
    assert_eq!(files.close("/1"), Ok(()));
}

#[test]
fn file_not_on_disk_is_hidden() {
    let mut files = OpenFiles::default();
    files.focus(1, "/there", None, None).unwrap();
    files.focus(2, "/gone", None, None).unwrap();
    let snapshot = snapshot(&mut files, |path: &Path| {
        (path == Path::new("/there")).then(|| path.to_owned())
    });
    assert_eq!(snapshot.context.workspace_state.open_files.len(), 1);
    assert_eq!(snapshot.context.workspace_state.open_files[0].is_active, Some(true));
    assert_eq!(
        snapshot.hidden,
        [Hidden {
            path: "/gone".into(),
            reason: HiddenReason::NotOnDisk
        }]
    );
}

#[test]
fn secret_is_hidden_also_behind_a_symlink() {
    let mut files = OpenFiles::default();
    files.focus(1, "/project/a.txt", None, None).unwrap();
    files
        .focus(2, "/project/.env", None, Some("PASSWORD=1".into()))
        .unwrap();
    files
        .focus(3, "/project/link", None, Some("PASSWORD=1".into()))
        .unwrap();
    let snapshot = snapshot(&mut files, |path: &Path| {
        Some(if path.ends_with("link") {
            "/project/.env".into()
        } else {
            path.to_owned()
        })
    });
    let sent = serde_json::to_string(&snapshot.context).unwrap();
    assert!(
        !sent.contains("PASSWORD") && !sent.contains(".env") && !sent.contains("link"),
        "{sent}"
    );
    assert_eq!(snapshot.hidden.len(), 2);
}

/// Difference 13: what is optional is absent, never null.
#[test]
fn absent_fields_are_never_null() {
    let mut files = OpenFiles::default();
    files.open(1, "/a").unwrap();
    let sent = serde_json::to_string(&seen_of(&mut files).context).unwrap();
    assert_eq!(
        sent,
        r#"{"workspaceState":{"openFiles":[{"path":"/a","timestamp":1,"isActive":true}]}}"#
    );
    files.set_trusted(Some(false));
    let sent = serde_json::to_string(&seen_of(&mut files).context).unwrap();
    assert!(sent.ends_with(r#""isTrusted":false}}"#), "{sent}");
}

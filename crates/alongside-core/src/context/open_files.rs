//! The files that are open in the editor, most recently used first.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::ide_context::{Cursor, File, IdeContext, WorkspaceState};
use crate::privacy::{Privacy, Rule};

/// Agents take no more files than this.
const MAX_FILES: usize = 10;
/// Agents take no more selected text than this.
const MAX_SELECTED_BYTES: usize = 16 * 1024;
/// More open files than this are not remembered: the list must not grow without a bound.
const MAX_REMEMBERED: usize = 1000;

/// Follows a path to the real file; `None` if there is no file. The core does no I/O, so it asks through this.
pub type Resolve = dyn Fn(&Path) -> Option<PathBuf> + Send;

/// What front ends said is open.
#[derive(Debug, Default)]
pub struct OpenFiles {
    /// In the order of last use, the newest first.
    files: Vec<OpenFile>,
    trusted: Option<bool>,
}

#[derive(Debug)]
struct OpenFile {
    path: String,
    used_unix_milliseconds: u64,
    focused: bool,
    cursor: Option<Cursor>,
    selected_text: Option<String>,
}

/// Why a front end's message about a file was refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ContextError {
    /// Agents cannot do anything with a relative path.
    #[error("`{0}` is not an absolute path; use an absolute path")]
    NotAbsolute(String),
    /// Lines and characters count from 1.
    #[error("line {line}, character {character} is not a valid position: both are 1-based")]
    BadPosition {
        /// What was given.
        line: u32,
        /// What was given.
        character: u32,
    },
    /// Nothing to close.
    #[error("`{0}` is not open; run `alongside context show` to list open files")]
    NotOpen(String),
}

/// What agents see, and what was kept from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// What goes out.
    pub context: IdeContext,
    /// What does not.
    pub hidden: Vec<Hidden>,
}

/// An open file that agents do not see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// Which file.
    pub path: String,
    /// Why.
    pub reason: HiddenReason,
}

/// Why an open file is not shown to agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HiddenReason {
    /// A privacy rule matched.
    Rule(Rule),
    /// It is not on disk.
    NotOnDisk,
    /// There are already enough newer ones.
    TooMany,
}

impl fmt::Display for HiddenReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(formatter, "hidden by `{}` in {}", rule.pattern, rule.origin),
            Self::NotOnDisk => formatter.write_str("not saved to disk"),
            Self::TooMany => write!(formatter, "over the limit of {MAX_FILES} files"),
        }
    }
}

impl OpenFiles {
    /// A file was opened. It takes the focus only if nothing has it.
    pub fn open(&mut self, unix_milliseconds: u64, path: &str) -> Result<(), ContextError> {
        check_path(path)?;
        if self.files.iter().any(|file| file.path == path) {
            return Ok(());
        }
        let place = self.files.iter().take_while(|file| file.focused).count();
        self.files.insert(
            place,
            OpenFile {
                path: path.to_owned(),
                used_unix_milliseconds: unix_milliseconds,
                focused: false,
                cursor: None,
                selected_text: None,
            },
        );
        self.files.truncate(MAX_REMEMBERED);
        Ok(())
    }

    /// A file got the focus, or its cursor or selection changed; it is opened if it was not.
    pub fn focus(
        &mut self,
        unix_milliseconds: u64,
        path: &str,
        cursor: Option<Cursor>,
        selected_text: Option<String>,
    ) -> Result<(), ContextError> {
        check_path(path)?;
        if let Some(Cursor { line, character }) = cursor
            && (line == 0 || character == 0)
        {
            return Err(ContextError::BadPosition { line, character });
        }
        let known = self
            .files
            .iter()
            .position(|file| file.path == path)
            .map(|place| self.files.remove(place));
        let was_focused = known.as_ref().is_some_and(|file| file.focused);
        let cursor = cursor.or(known.and_then(|file| file.cursor));
        for file in &mut self.files {
            file.focused = false;
        }
        let newest = self.files.first().map_or(0, |file| file.used_unix_milliseconds);
        self.files.insert(
            0,
            OpenFile {
                path: path.to_owned(),
                // The clock may have been set back; the newest file is the active one all the same.
                used_unix_milliseconds: if was_focused {
                    unix_milliseconds
                } else {
                    unix_milliseconds.max(newest + 1)
                },
                focused: true,
                cursor,
                selected_text: selected_text.filter(|text| !text.is_empty()).map(cut_selection),
            },
        );
        self.files.truncate(MAX_REMEMBERED);
        Ok(())
    }

    /// A file was closed; the one used before it becomes the active one.
    pub fn close(&mut self, path: &str) -> Result<(), ContextError> {
        let place = self
            .files
            .iter()
            .position(|file| file.path == path)
            .ok_or_else(|| ContextError::NotOpen(path.to_owned()))?;
        self.files.remove(place);
        Ok(())
    }

    /// Whether the front end trusts the workspace; `None` if it has no such notion.
    pub fn set_trusted(&mut self, trusted: Option<bool>) {
        self.trusted = trusted;
    }

    /// What agents may see now.
    pub fn snapshot(&self, privacy: &Privacy, resolve: &Resolve) -> Snapshot {
        let mut hidden = Vec::new();
        let mut open_files: Vec<File> = Vec::new();
        for file in &self.files {
            let reason = match resolve(Path::new(&file.path)) {
                None => Some(HiddenReason::NotOnDisk),
                Some(real) => privacy.rule_for(Path::new(&file.path), &real).map(HiddenReason::Rule),
            };
            let reason = reason.or_else(|| (open_files.len() == MAX_FILES).then_some(HiddenReason::TooMany));
            if let Some(reason) = reason {
                hidden.push(Hidden {
                    path: file.path.clone(),
                    reason,
                });
                continue;
            }
            // Agents sort by time and take the newest as the active one, so times must fall along the list.
            let timestamp = match open_files.last() {
                None => file.used_unix_milliseconds,
                Some(newer) => file.used_unix_milliseconds.min(newer.timestamp.saturating_sub(1)),
            };
            let is_first = open_files.is_empty();
            open_files.push(File {
                path: file.path.clone(),
                timestamp,
                is_active: is_first.then_some(true),
                cursor: file.cursor.filter(|_| is_first),
                selected_text: file.selected_text.clone().filter(|_| is_first),
            });
        }
        Snapshot {
            context: IdeContext {
                workspace_state: WorkspaceState {
                    open_files,
                    is_trusted: self.trusted,
                },
            },
            hidden,
        }
    }
}

fn check_path(path: &str) -> Result<(), ContextError> {
    if Path::new(path).is_absolute() {
        Ok(())
    } else {
        Err(ContextError::NotAbsolute(path.to_owned()))
    }
}

/// Cuts on a character boundary. Agents count UTF-16 units, of which a text never has more than UTF-8 bytes.
fn cut_selection(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_SELECTED_BYTES));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "it is a `Resolve`")]
    fn everything_exists(path: &Path) -> Option<PathBuf> {
        Some(path.to_owned())
    }

    fn seen(files: &OpenFiles) -> Vec<File> {
        files
            .snapshot(&Privacy::default(), &everything_exists)
            .context
            .workspace_state
            .open_files
    }

    fn paths(files: &OpenFiles) -> Vec<String> {
        seen(files).into_iter().map(|file| file.path).collect()
    }

    /// Difference 15: the newest timestamp is the active file, or none is.
    #[test]
    fn exactly_one_file_is_active_and_it_is_the_newest() {
        let mut files = OpenFiles::default();
        files.open(1, "/a").unwrap();
        files.focus(2, "/b", None, None).unwrap();
        files.open(3, "/c").unwrap();
        let seen = seen(&files);
        assert_eq!(seen[0].path, "/b");
        assert_eq!(seen.iter().filter(|file| file.is_active == Some(true)).count(), 1);
        assert!(
            seen.windows(2).all(|pair| pair[0].timestamp > pair[1].timestamp),
            "{seen:?}"
        );
    }

    #[test]
    fn the_most_recently_focused_file_comes_first() {
        let mut files = OpenFiles::default();
        for (time, path) in [(1, "/a"), (2, "/b"), (3, "/c"), (4, "/a")] {
            files.focus(time, path, None, None).unwrap();
        }
        assert_eq!(paths(&files), ["/a", "/c", "/b"]);
    }

    #[test]
    fn a_clock_set_back_does_not_change_the_order() {
        let mut files = OpenFiles::default();
        files.focus(1000, "/a", None, None).unwrap();
        files.focus(10, "/b", None, None).unwrap();
        assert_eq!(paths(&files), ["/b", "/a"]);
        assert!(seen(&files)[0].timestamp > seen(&files)[1].timestamp);
    }

    #[test]
    fn opening_a_file_does_not_take_the_focus_from_another() {
        let mut files = OpenFiles::default();
        files
            .focus(1, "/a", Some(Cursor { line: 3, character: 4 }), None)
            .unwrap();
        files.open(2, "/b").unwrap();
        assert_eq!(paths(&files), ["/a", "/b"]);
        assert_eq!(seen(&files)[0].cursor, Some(Cursor { line: 3, character: 4 }));
    }

    #[test]
    fn closing_the_active_file_makes_the_one_before_active() {
        let mut files = OpenFiles::default();
        files
            .focus(1, "/a", Some(Cursor { line: 9, character: 1 }), Some("a".into()))
            .unwrap();
        files.focus(2, "/b", None, None).unwrap();
        files.close("/b").unwrap();
        assert_eq!(seen(&files)[0].is_active, Some(true));
        assert_eq!(seen(&files)[0].cursor, Some(Cursor { line: 9, character: 1 }));
        assert_eq!(files.close("/b"), Err(ContextError::NotOpen("/b".into())));
    }

    #[test]
    fn only_the_active_file_has_a_cursor_and_a_selection() {
        let mut files = OpenFiles::default();
        files
            .focus(1, "/a", Some(Cursor { line: 1, character: 1 }), Some("text".into()))
            .unwrap();
        files.focus(2, "/b", None, None).unwrap();
        let seen = seen(&files);
        assert_eq!(
            (seen[1].cursor, seen[1].selected_text.clone(), seen[1].is_active),
            (None, None, None)
        );
    }

    #[test]
    fn an_empty_selection_is_absent() {
        let mut files = OpenFiles::default();
        files.focus(1, "/a", None, Some(String::new())).unwrap();
        assert_eq!(seen(&files)[0].selected_text, None);
    }

    /// Difference 16: the limit is cut on a character boundary.
    #[test]
    fn a_long_selection_is_cut_on_a_character_boundary() {
        let mut files = OpenFiles::default();
        files
            .focus(1, "/a", None, Some("a".repeat(MAX_SELECTED_BYTES - 1) + "é and more"))
            .unwrap();
        let selected = seen(&files)[0].selected_text.clone().unwrap();
        assert_eq!(selected.len(), MAX_SELECTED_BYTES - 1);
    }

    /// Difference 17: positions count from 1.
    #[test]
    fn a_position_counts_from_one() {
        let mut files = OpenFiles::default();
        let refused = files.focus(1, "/a", Some(Cursor { line: 0, character: 1 }), None);
        assert_eq!(refused, Err(ContextError::BadPosition { line: 0, character: 1 }));
        assert!(paths(&files).is_empty());
    }

    #[test]
    fn a_relative_path_is_refused() {
        let mut files = OpenFiles::default();
        assert_eq!(files.open(1, "a.txt"), Err(ContextError::NotAbsolute("a.txt".into())));
    }

    #[test]
    fn at_most_ten_files_are_shown() {
        let mut files = OpenFiles::default();
        for number in 0..12_u64 {
            files.focus(number, &format!("/{number}"), None, None).unwrap();
        }
        let snapshot = files.snapshot(&Privacy::default(), &everything_exists);
        assert_eq!(snapshot.context.workspace_state.open_files.len(), 10);
        assert_eq!(snapshot.context.workspace_state.open_files[0].path, "/11");
        assert_eq!(snapshot.hidden.len(), 2);
    }

    #[test]
    fn a_file_that_is_not_on_disk_is_not_shown() {
        let mut files = OpenFiles::default();
        files.focus(1, "/there", None, None).unwrap();
        files.focus(2, "/gone", None, None).unwrap();
        let snapshot = files.snapshot(&Privacy::default(), &|path: &Path| {
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
    fn a_secret_is_neither_listed_nor_selected_from_not_even_through_a_link() {
        let mut files = OpenFiles::default();
        files.focus(1, "/project/a.txt", None, None).unwrap();
        files
            .focus(2, "/project/.env", None, Some("PASSWORD=1".into()))
            .unwrap();
        files
            .focus(3, "/project/link", None, Some("PASSWORD=1".into()))
            .unwrap();
        let snapshot = files.snapshot(&Privacy::default(), &|path: &Path| {
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
    fn nothing_is_ever_null() {
        let mut files = OpenFiles::default();
        files.open(1, "/a").unwrap();
        let sent = serde_json::to_string(&files.snapshot(&Privacy::default(), &everything_exists).context).unwrap();
        assert_eq!(
            sent,
            r#"{"workspaceState":{"openFiles":[{"path":"/a","timestamp":1,"isActive":true}]}}"#
        );
        files.set_trusted(Some(false));
        let sent = serde_json::to_string(&files.snapshot(&Privacy::default(), &everything_exists).context).unwrap();
        assert!(sent.ends_with(r#""isTrusted":false}}"#), "{sent}");
    }
}

//! The files that are open in the editor, most recently used first.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use alongside_platform::{Platform, path};
use thiserror::Error;

use super::ide_context::{Cursor, File, IdeContext, WorkspaceState};
use crate::privacy::{Privacy, Rule};

/// Agents accept no more files than this.
const MAX_FILES: usize = 10;
/// Agents accept no more selected text than this.
pub(super) const MAX_SELECTED_BYTES: usize = 16 * 1024;
/// Bounds the list of open files.
const MAX_REMEMBERED: usize = 1000;
/// How long a file may be missing before agents no longer see it. A save by renaming takes much less.
const REMOVAL_GRACE: Duration = Duration::from_millis(300);
/// How many files are looked up on disk to find those that agents see.
const MAX_LOOKED_UP: usize = 64;

/// The files reported by front ends.
#[derive(Debug, Default)]
pub struct OpenFiles {
    /// Most recently used first.
    files: Vec<OpenFile>,
    trusted: Option<bool>,
    last_lookup: LookupId,
    /// Decides which spellings are one file.
    platform: Platform,
}

#[derive(Debug)]
struct OpenFile {
    path: Arc<str>,
    used_unix_milliseconds: u64,
    focused: bool,
    cursor: Option<Cursor>,
    selected_text: Option<String>,
    selection_start: Option<Cursor>,
    /// As last looked up. Hidden until then.
    real: RealFile,
    lookup: LookupId,
}

/// Where a path leads on disk.
#[derive(Debug, PartialEq, Eq)]
enum RealFile {
    NotLookedUp,
    Missing,
    At(PathBuf),
    /// It was there a moment ago. Shown until then: many editors save a file by renaming it first.
    Vanished {
        from: PathBuf,
        hidden_at: Duration,
    },
}

/// One round of looking up files on disk. Orders concurrent rounds, so that a slow one does not overwrite newer results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LookupId(u64);

#[derive(Debug, Error, PartialEq, Eq)]
pub enum ContextError {
    #[error("`{0}` is not an absolute path; use an absolute path")]
    NotAbsolute(String),
    #[error("line {line}, character {character} is not a valid position: both are 1-based")]
    BadPosition { line: u32, character: u32 },
    #[error("`{0}` is not open; run `alongside context show` to list open files")]
    NotOpen(String),
}

/// What agents see, and what is hidden from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub context: IdeContext,
    pub hidden: Vec<Hidden>,
}

/// An open file that agents do not see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    pub path: String,
    pub reason: HiddenReason,
}

/// Why an open file is not shown to agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HiddenReason {
    Rule(Rule),
    NotOnDisk,
    /// Its lookup has not finished, for example on a hung network file system.
    NotLookedUp,
    TooMany,
}

impl fmt::Display for HiddenReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(formatter, "hidden by `{}` in {}", rule.pattern, rule.origin),
            Self::NotOnDisk => formatter.write_str("not saved to disk"),
            Self::NotLookedUp => formatter.write_str("not found on disk yet"),
            Self::TooMany => write!(formatter, "over the limit of {MAX_FILES} files"),
        }
    }
}

impl OpenFiles {
    #[cfg(test)]
    pub(super) fn on(platform: Platform) -> Self {
        Self {
            platform,
            ..Self::default()
        }
    }

    /// A file was opened. It takes the focus only if nothing has it.
    pub fn open(&mut self, unix_milliseconds: u64, path: &str) -> Result<(), ContextError> {
        let path = &*self.spelled(path)?;
        if self.place(path).is_some() {
            return Ok(());
        }
        let place = self.files.iter().take_while(|file| file.focused).count();
        self.files.insert(place, OpenFile::new(path, unix_milliseconds));
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
        let path = &*self.spelled(path)?;
        cursor.map_or(Ok(()), check_position)?;
        let known = self.place(path).map(|place| self.files.remove(place));
        let mut file = known.unwrap_or_else(|| OpenFile::new(path, unix_milliseconds));
        for other in &mut self.files {
            other.focused = false;
        }
        let newest = self.files.first().map_or(0, |file| file.used_unix_milliseconds);
        // The clock may have been set back; the newest file is the active one all the same.
        file.used_unix_milliseconds = if file.focused {
            unix_milliseconds
        } else {
            unix_milliseconds.max(newest + 1)
        };
        file.focused = true;
        file.cursor = cursor.or(file.cursor);
        file.selected_text = selected_text.filter(|text| !text.is_empty()).map(cut_selection);
        file.selection_start = None;
        self.files.insert(0, file);
        self.files.truncate(MAX_REMEMBERED);
        Ok(())
    }

    /// A path as agents see it. Editors have several spellings for one file on Windows.
    fn spelled<'a>(&self, path: &'a str) -> Result<Cow<'a, str>, ContextError> {
        if path::is_absolute(self.platform, path) {
            Ok(path::spelled(self.platform, path))
        } else {
            Err(ContextError::NotAbsolute(path.to_owned()))
        }
    }

    fn place(&self, path: &str) -> Option<usize> {
        let is_same = |file: &OpenFile| path::is_same(self.platform, &file.path, path);
        self.files.iter().position(is_same)
    }

    /// Where the selected text of the focused file begins.
    pub fn set_selection_start(&mut self, start: Cursor) -> Result<(), ContextError> {
        check_position(start)?;
        if let Some(file) = self.files.first_mut().filter(|file| file.focused) {
            file.selection_start = file.selected_text.is_some().then_some(start);
        }
        Ok(())
    }

    /// A file was closed; the one used before it becomes the active one.
    pub fn close(&mut self, path: &str) -> Result<(), ContextError> {
        let place = self.place(path).ok_or_else(|| ContextError::NotOpen(path.to_owned()))?;
        self.files.remove(place);
        Ok(())
    }

    /// Whether the front end trusts the workspace; `None` if it has no such notion.
    pub fn set_trusted(&mut self, trusted: Option<bool>) {
        self.trusted = trusted;
    }

    pub(crate) fn is_focused(&self, path: &str) -> bool {
        self.files
            .iter()
            .any(|file| file.focused && path::is_same(self.platform, &file.path, path))
    }

    pub(crate) fn start_lookup(&mut self) -> LookupId {
        self.last_lookup.0 += 1;
        self.last_lookup
    }

    pub(crate) fn all_paths(&self) -> Vec<Arc<str>> {
        self.files.iter().map(|file| file.path.clone()).collect()
    }

    /// The files that decide what agents see. Known ones too: they may have been removed, or may lead elsewhere.
    pub(crate) fn to_look_up(&self, privacy: &Privacy) -> Vec<Arc<str>> {
        self.candidates(privacy).map(|file| file.path.clone()).collect()
    }

    /// Returns whether what agents see may have changed.
    pub(crate) fn looked_up(
        &mut self,
        now_monotonic: Duration,
        lookup: LookupId,
        path: &str,
        real: Option<PathBuf>,
    ) -> bool {
        let Some(file) = self.files.iter_mut().find(|file| *file.path == *path) else {
            return false;
        };
        if lookup < file.lookup {
            return false;
        }
        file.lookup = lookup;
        let before = std::mem::replace(&mut file.real, RealFile::NotLookedUp);
        let (is_new, real) = match (before, real) {
            (RealFile::At(from), None) => {
                let hidden_at = now_monotonic + REMOVAL_GRACE;
                (false, RealFile::Vanished { from, hidden_at })
            }
            (vanished @ RealFile::Vanished { .. }, None) => (false, vanished),
            (RealFile::Vanished { from, .. }, Some(real)) => (from != real, RealFile::At(real)),
            (before, real) => {
                let real = real.map_or(RealFile::Missing, RealFile::At);
                (before != real, real)
            }
        };
        file.real = real;
        is_new
    }

    /// When the next file that disappeared is to be hidden, see [`Self::hide_vanished`].
    pub(crate) fn next_to_hide(&self) -> Option<Duration> {
        let vanished = self.files.iter().filter_map(|file| match file.real {
            RealFile::Vanished { hidden_at, .. } => Some(hidden_at),
            _ => None,
        });
        vanished.min()
    }

    /// Hides the files that disappeared and did not come back. Returns whether there were any.
    pub(crate) fn hide_vanished(&mut self, now_monotonic: Duration) -> bool {
        let mut is_new = false;
        for file in &mut self.files {
            if matches!(file.real, RealFile::Vanished { hidden_at, .. } if hidden_at <= now_monotonic) {
                file.real = RealFile::Missing;
                is_new = true;
            }
        }
        is_new
    }

    pub(crate) fn to_watch(&self, privacy: &Privacy) -> BTreeSet<PathBuf> {
        let names = self.candidates(privacy).flat_map(|file| {
            let real = match &file.real {
                RealFile::At(real) | RealFile::Vanished { from: real, .. } => Some(real.clone()),
                RealFile::NotLookedUp | RealFile::Missing => None,
            };
            [Some(PathBuf::from(&*file.path)), real]
        });
        names.flatten().collect()
    }

    /// From the top, until enough files are or may become visible.
    fn candidates(&self, privacy: &Privacy) -> impl Iterator<Item = &OpenFile> {
        let mut visible = 0;
        self.files.iter().take(MAX_LOOKED_UP).take_while(move |file| {
            let is_needed = visible < MAX_FILES;
            if matches!(file.hidden(privacy), None | Some(HiddenReason::NotLookedUp)) {
                visible += 1;
            }
            is_needed
        })
    }

    /// What agents see now.
    pub fn context(&self, privacy: &Privacy) -> IdeContext {
        let visible = self.files.iter().filter(|file| file.hidden(privacy).is_none());
        self.context_of(visible)
    }

    /// What agents see now, and all that is hidden.
    pub fn snapshot(&self, privacy: &Privacy) -> Snapshot {
        let (mut visible, mut hidden) = (Vec::new(), Vec::new());
        for file in &self.files {
            let too_many = (visible.len() == MAX_FILES).then_some(HiddenReason::TooMany);
            let reason = match file.hidden(privacy) {
                Some(HiddenReason::NotLookedUp) => too_many.or(Some(HiddenReason::NotLookedUp)),
                reason => reason.or(too_many),
            };
            match reason {
                None => visible.push(file),
                Some(reason) => hidden.push(Hidden {
                    path: file.path.to_string(),
                    reason,
                }),
            }
        }
        Snapshot {
            context: self.context_of(visible.into_iter()),
            hidden,
        }
    }

    fn context_of<'files>(&self, visible: impl Iterator<Item = &'files OpenFile>) -> IdeContext {
        let mut open_files: Vec<File> = Vec::new();
        for file in visible.take(MAX_FILES) {
            // Agents sort by time and treat the newest as the active one, so times must fall along the list.
            let timestamp = match open_files.last() {
                None => file.used_unix_milliseconds,
                Some(newer) => file.used_unix_milliseconds.min(newer.timestamp.saturating_sub(1)),
            };
            let is_first = open_files.is_empty();
            open_files.push(File {
                path: file.path.to_string(),
                timestamp,
                is_active: is_first.then_some(true),
                cursor: file.cursor.filter(|_| is_first),
                selected_text: file.selected_text.clone().filter(|_| is_first),
                selection_start: file.selection_start.filter(|_| is_first),
            });
        }
        IdeContext {
            workspace_state: WorkspaceState {
                open_files,
                is_trusted: self.trusted,
            },
        }
    }
}

impl OpenFile {
    fn new(path: &str, unix_milliseconds: u64) -> Self {
        Self {
            path: path.into(),
            used_unix_milliseconds: unix_milliseconds,
            focused: false,
            cursor: None,
            selected_text: None,
            selection_start: None,
            real: RealFile::NotLookedUp,
            lookup: LookupId::default(),
        }
    }

    /// Why agents do not see it, apart from the limit.
    fn hidden(&self, privacy: &Privacy) -> Option<HiddenReason> {
        match &self.real {
            RealFile::NotLookedUp => Some(HiddenReason::NotLookedUp),
            RealFile::Missing => Some(HiddenReason::NotOnDisk),
            RealFile::At(real) | RealFile::Vanished { from: real, .. } => {
                privacy.rule_for(Path::new(&*self.path), real).map(HiddenReason::Rule)
            }
        }
    }
}

fn check_position(Cursor { line, character }: Cursor) -> Result<(), ContextError> {
    if line == 0 || character == 0 {
        return Err(ContextError::BadPosition { line, character });
    }
    Ok(())
}

/// Cuts on a character boundary. Agents count UTF-16 units, of which a text never has more than UTF-8 bytes.
fn cut_selection(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_SELECTED_BYTES));
    text
}

//! Errors and warnings that editors show, for agents that ask for them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alongside_platform::{Platform, path};
use serde::{Deserialize, Serialize};

use crate::context::{ContextError, Cursor};
use crate::privacy::Privacy;

/// Of one file. Beyond this, the least severe are left out.
const MAX_PER_FILE: usize = 200;
/// Files with diagnostics, over all front ends. Beyond this, those reported longest ago are forgotten.
const MAX_FILES: usize = 1000;
/// All texts together, with the same rule.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// A message is cut.
const MAX_MESSAGE_BYTES: usize = 4 * 1024;
/// A source or a code is cut.
const MAX_NAME_BYTES: usize = 256;
/// What a diagnostic costs in addition to its texts.
const OVERHEAD_BYTES: usize = 128;

/// The diagnostics of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiagnostics {
    /// Absolute.
    pub path: String,
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    pub start: Cursor,
    /// Right after the last character.
    pub end: Cursor,
    pub severity: Severity,
    pub message: String,
    /// The program that found it, such as `rustc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    Error,
    Warning,
    Information,
    Hint,
}

/// A connection of a front end. Its diagnostics go with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrontEndId(pub u64);

/// What front ends reported.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    /// Most recently reported last.
    reports: Vec<Report>,
    /// Paths whose diagnostics may differ from those that agents were sent.
    changed: BTreeSet<Arc<str>>,
    /// Paths whose diagnostics agents were sent.
    published: BTreeSet<Arc<str>>,
    /// Decides which spellings are one file.
    platform: Platform,
}

/// A file as one front end sees it.
#[derive(Debug, PartialEq, Eq)]
struct Report {
    front_end: FrontEndId,
    /// The same for all reports of a file.
    path: Arc<str>,
    /// With symlinks resolved.
    real: PathBuf,
    diagnostics: Vec<Diagnostic>,
    bytes: usize,
}

impl Diagnostics {
    /// Replaces what a front end reported about a file. Without a file on disk there is nothing that agents may see.
    pub(crate) fn report(
        &mut self,
        front_end: FrontEndId,
        file: FileDiagnostics,
        real: Option<PathBuf>,
    ) -> Result<(), ContextError> {
        if !path::is_absolute(self.platform, &file.path) {
            return Err(ContextError::NotAbsolute(file.path));
        }
        let positions = file.diagnostics.iter().flat_map(|found| [found.start, found.end]);
        for Cursor { line, character } in positions {
            if line == 0 || character == 0 {
                return Err(ContextError::BadPosition { line, character });
            }
        }
        let path = self.known_path(&file.path);
        let is_previous = |report: &Report| report.front_end == front_end && report.path == path;
        let previous = self.reports.iter().position(is_previous);
        let previous = previous.map(|index| self.reports.remove(index));
        let latest = real.filter(|_| !file.diagnostics.is_empty()).map(|real| {
            let diagnostics = within_limits(file.diagnostics);
            Report {
                front_end,
                path: path.clone(),
                real,
                bytes: diagnostics.iter().map(size).sum(),
                diagnostics,
            }
        });
        if previous != latest {
            self.changed.insert(path);
        }
        if let Some(latest) = latest {
            self.reports.push(latest);
            self.forget_oldest();
        }
        Ok(())
    }

    /// The path of a file as agents know it, or would. Editors have several spellings for one file on Windows and macOS.
    fn known_path(&self, path: &str) -> Arc<str> {
        let path = path::spelled(self.platform, path);
        let reported = self.reports.iter().rev().map(|report| &report.path);
        let mut known = reported.chain(&self.published).chain(&self.changed);
        // Most reports are about a file in the spelling that it had before.
        let exact = known.clone().find(|known| ***known == *path);
        let same = exact.or_else(|| known.find(|known| path::is_same(self.platform, known, &path)));
        same.map_or_else(|| path.into(), Arc::clone)
    }

    fn forget_oldest(&mut self) {
        let mut bytes: usize = self.reports.iter().map(|report| report.bytes).sum();
        let mut forgotten = 0;
        while self.reports.len() - forgotten > MAX_FILES || bytes > MAX_BYTES {
            bytes -= self.reports[forgotten].bytes;
            forgotten += 1;
        }
        self.changed
            .extend(self.reports.drain(..forgotten).map(|report| report.path));
    }

    pub(crate) fn remove(&mut self, front_end: FrontEndId) {
        let removed = self.reports.extract_if(.., |report| report.front_end == front_end);
        self.changed.extend(removed.map(|report| report.path));
    }

    /// Other files may be visible now.
    pub(crate) fn visibility_changed(&mut self) {
        self.changed.extend(self.published.iter().cloned());
        self.changed
            .extend(self.reports.iter().map(|report| report.path.clone()));
    }

    pub(crate) fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The visible diagnostics of the files in which they changed since the last call, sorted by path: none where they were cleared or
    /// hidden. A file that was never visible is not named.
    pub(crate) fn take_changes(&mut self, privacy: &Privacy, workspace: &[PathBuf]) -> Vec<FileDiagnostics> {
        let changed = std::mem::take(&mut self.changed);
        let visible = self.select(privacy, workspace, |report| changed.contains(&report.path));
        let mut visible = visible.into_iter().peekable();
        let mut files = Vec::new();
        for path in changed {
            if let Some(file) = visible.next_if(|file| *file.path == *path) {
                self.published.insert(path);
                files.push(file);
            } else if self.published.remove(&path) {
                files.push(FileDiagnostics {
                    path: path.as_ref().to_owned(),
                    diagnostics: Vec::new(),
                });
            }
        }
        files
    }

    /// Sorted by path. What several front ends report alike is there once.
    pub(crate) fn visible(
        &self,
        privacy: &Privacy,
        workspace: &[PathBuf],
        wanted: Option<&Path>,
    ) -> Vec<FileDiagnostics> {
        let key = |path: &Path| path::key(self.platform, path);
        let wanted = wanted.map(key);
        self.select(privacy, workspace, |report| {
            let is_it = |wanted: &PathBuf| *wanted == key(Path::new(&*report.path)) || *wanted == key(&report.real);
            wanted.as_ref().is_none_or(is_it)
        })
    }

    fn select(
        &self,
        privacy: &Privacy,
        workspace: &[PathBuf],
        is_wanted: impl Fn(&Report) -> bool,
    ) -> Vec<FileDiagnostics> {
        let mut files: BTreeMap<&str, Vec<Diagnostic>> = BTreeMap::new();
        for report in self.reports.iter().filter(|report| is_wanted(report)) {
            let path = Path::new(&*report.path);
            let is_in_workspace = workspace
                .iter()
                .any(|folder| path::below(self.platform, folder, &report.real).is_some());
            if is_in_workspace && privacy.rule_for(path, &report.real).is_none() {
                let found = files.entry(&*report.path).or_default();
                let is_new = report.diagnostics.iter().filter(|one| !found.contains(one));
                let new: Vec<Diagnostic> = is_new.cloned().collect();
                found.extend(new);
            }
        }
        let files = files.into_iter().map(|(path, diagnostics)| FileDiagnostics {
            path: path.to_owned(),
            diagnostics,
        });
        files.collect()
    }
}

/// The most severe ones, in the order of the front end.
fn within_limits(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    if diagnostics.len() > MAX_PER_FILE {
        let mut severities: Vec<Severity> = diagnostics.iter().map(|found| found.severity).collect();
        severities.sort_unstable();
        let least = severities[MAX_PER_FILE - 1];
        let mut room = MAX_PER_FILE - severities.iter().filter(|severity| **severity < least).count();
        diagnostics.retain(|found| {
            let has_room = found.severity < least || (found.severity == least && room > 0);
            room -= usize::from(has_room && found.severity == least);
            has_room
        });
    }
    for found in &mut diagnostics {
        cut(&mut found.message, MAX_MESSAGE_BYTES);
        for name in [&mut found.source, &mut found.code].into_iter().flatten() {
            cut(name, MAX_NAME_BYTES);
        }
    }
    diagnostics
}

fn cut(text: &mut String, limit: usize) {
    text.truncate(text.floor_char_boundary(limit));
    text.shrink_to_fit();
}

fn size(found: &Diagnostic) -> usize {
    let names = [&found.source, &found.code].into_iter().flatten();
    OVERHEAD_BYTES + found.message.len() + names.map(String::len).sum::<usize>()
}

#[cfg(test)]
mod tests;

//! Errors and warnings that editors show, for agents that ask for them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
}

/// A file as one front end sees it.
#[derive(Debug)]
struct Report {
    front_end: FrontEndId,
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
        if !Path::new(&file.path).is_absolute() {
            return Err(ContextError::NotAbsolute(file.path));
        }
        let positions = file.diagnostics.iter().flat_map(|found| [found.start, found.end]);
        for Cursor { line, character } in positions {
            if line == 0 || character == 0 {
                return Err(ContextError::BadPosition { line, character });
            }
        }
        self.reports
            .retain(|report| report.front_end != front_end || *report.path != *file.path);
        if let Some(real) = real.filter(|_| !file.diagnostics.is_empty()) {
            let diagnostics = within_limits(file.diagnostics);
            self.reports.push(Report {
                front_end,
                path: file.path.into(),
                real,
                bytes: diagnostics.iter().map(size).sum(),
                diagnostics,
            });
            self.forget_oldest();
        }
        Ok(())
    }

    fn forget_oldest(&mut self) {
        let mut bytes: usize = self.reports.iter().map(|report| report.bytes).sum();
        let mut forgotten = 0;
        while self.reports.len() - forgotten > MAX_FILES || bytes > MAX_BYTES {
            bytes -= self.reports[forgotten].bytes;
            forgotten += 1;
        }
        self.reports.drain(..forgotten);
    }

    pub(crate) fn remove(&mut self, front_end: FrontEndId) {
        self.reports.retain(|report| report.front_end != front_end);
    }

    /// Sorted by path. What several front ends report alike is there once.
    pub(crate) fn visible(
        &self,
        privacy: &Privacy,
        workspace: &[PathBuf],
        wanted: Option<&Path>,
    ) -> Vec<FileDiagnostics> {
        let mut files: BTreeMap<&str, Vec<Diagnostic>> = BTreeMap::new();
        for report in &self.reports {
            let path = Path::new(&*report.path);
            let is_wanted = wanted.is_none_or(|wanted| wanted == path || wanted == report.real);
            let is_in_workspace = workspace.iter().any(|folder| report.real.starts_with(folder));
            if is_wanted && is_in_workspace && privacy.rule_for(path, &report.real).is_none() {
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
mod tests {
    use super::*;

    const NEOVIM: FrontEndId = FrontEndId(1);
    const EMACS: FrontEndId = FrontEndId(2);

    fn found(severity: Severity, message: &str) -> Diagnostic {
        Diagnostic {
            start: Cursor { line: 1, character: 1 },
            end: Cursor { line: 1, character: 5 },
            severity,
            message: message.to_owned(),
            source: None,
            code: None,
        }
    }

    fn error(message: &str) -> Diagnostic {
        found(Severity::Error, message)
    }

    fn file(path: &str, diagnostics: Vec<Diagnostic>) -> FileDiagnostics {
        let path = path.to_owned();
        FileDiagnostics { path, diagnostics }
    }

    /// Reports a file that is on disk under the same name.
    fn report(all: &mut Diagnostics, front_end: FrontEndId, path: &str, diagnostics: Vec<Diagnostic>) {
        all.report(front_end, file(path, diagnostics), Some(path.into()))
            .unwrap();
    }

    fn visible(all: &Diagnostics) -> Vec<FileDiagnostics> {
        all.visible(&Privacy::default(), &["/w".into()], None)
    }

    #[test]
    fn report_replaces_the_previous_one_and_an_empty_one_clears() {
        let mut all = Diagnostics::default();
        report(&mut all, NEOVIM, "/w/a", vec![error("one"), error("two")]);
        report(&mut all, NEOVIM, "/w/b", vec![error("other")]);
        report(&mut all, NEOVIM, "/w/a", vec![error("three")]);
        assert_eq!(
            visible(&all),
            [file("/w/a", vec![error("three")]), file("/w/b", vec![error("other")])]
        );
        report(&mut all, NEOVIM, "/w/a", vec![]);
        assert_eq!(visible(&all), [file("/w/b", vec![error("other")])]);
    }

    #[test]
    fn front_ends_are_merged_and_leave_alone() {
        let mut all = Diagnostics::default();
        report(&mut all, NEOVIM, "/w/a", vec![error("both"), error("one")]);
        report(&mut all, EMACS, "/w/a", vec![error("both"), error("two")]);
        assert_eq!(
            visible(&all),
            [file("/w/a", vec![error("both"), error("one"), error("two")])]
        );
        all.remove(NEOVIM);
        assert_eq!(visible(&all), [file("/w/a", vec![error("both"), error("two")])]);
    }

    #[test]
    fn hidden_missing_and_foreign_files_are_not_visible() {
        let mut all = Diagnostics::default();
        report(&mut all, NEOVIM, "/w/.env", vec![error("secret")]);
        report(&mut all, NEOVIM, "/elsewhere/a", vec![error("foreign")]);
        for (path, real) in [
            ("/w/link", Some("/w/.env")),
            ("/w/out", Some("/elsewhere/a")),
            ("/w/missing", None),
        ] {
            let file = file(path, vec![error("hidden")]);
            all.report(NEOVIM, file, real.map(PathBuf::from)).unwrap();
        }
        assert_eq!(visible(&all), []);
        assert_eq!(
            all.visible(&Privacy::default(), &["/w".into()], Some(Path::new("/w/.env"))),
            []
        );
    }

    #[test]
    fn one_file_is_found_by_both_of_its_paths() {
        let mut all = Diagnostics::default();
        report(&mut all, NEOVIM, "/w/b", vec![error("other")]);
        let linked = file("/link/a", vec![error("one")]);
        all.report(NEOVIM, linked.clone(), Some("/w/a".into())).unwrap();
        for wanted in ["/link/a", "/w/a"] {
            let found = all.visible(&Privacy::default(), &["/w".into()], Some(Path::new(wanted)));
            assert_eq!(found, std::slice::from_ref(&linked), "{wanted}");
        }
    }

    #[test]
    fn diagnostics_of_a_file_are_limited_to_the_most_severe() {
        let mut all = Diagnostics::default();
        let mut reported = vec![found(Severity::Hint, "hint"), found(Severity::Warning, "first")];
        reported.extend((2..MAX_PER_FILE).map(|_| error("error")));
        reported.extend([found(Severity::Warning, "second"), found(Severity::Warning, "third")]);
        report(&mut all, NEOVIM, "/w/a", reported.clone());
        // The hint and the last warning are left out.
        let expected = all.reports[0].diagnostics.clone();
        assert_eq!(expected.len(), MAX_PER_FILE);
        assert_eq!(expected, reported[1..=MAX_PER_FILE]);
    }

    #[test]
    fn long_texts_of_diagnostics_are_cut() {
        let mut all = Diagnostics::default();
        let long = Diagnostic {
            source: Some("ü".repeat(MAX_NAME_BYTES)),
            code: Some("x".repeat(MAX_NAME_BYTES + 1)),
            ..error(&format!("x{}", "ü".repeat(MAX_MESSAGE_BYTES)))
        };
        report(&mut all, NEOVIM, "/w/a", vec![long]);
        let cut = &visible(&all)[0].diagnostics[0];
        assert_eq!(cut.message.len(), MAX_MESSAGE_BYTES - 1);
        assert_eq!(cut.source.as_ref().unwrap().len(), MAX_NAME_BYTES);
        assert_eq!(cut.code.as_ref().unwrap().len(), MAX_NAME_BYTES);
    }

    #[test]
    fn files_with_diagnostics_are_limited() {
        let mut all = Diagnostics::default();
        for number in 0..=MAX_FILES {
            report(&mut all, NEOVIM, &format!("/w/{number}"), vec![error("one")]);
        }
        assert_eq!(all.reports.len(), MAX_FILES);
        assert_eq!(&*all.reports[0].path, "/w/1");

        let long = vec![error(&"x".repeat(MAX_MESSAGE_BYTES)); MAX_PER_FILE];
        for number in 0..20 {
            report(&mut all, EMACS, &format!("/w/long{number}"), long.clone());
        }
        assert!(all.reports.iter().map(|report| report.bytes).sum::<usize>() <= MAX_BYTES);
        assert_eq!(&*all.reports.last().unwrap().path, "/w/long19");
    }

    #[test]
    fn invalid_paths_and_positions_are_refused() {
        let mut all = Diagnostics::default();
        let relative = all.report(NEOVIM, file("a", vec![]), None);
        assert_eq!(relative, Err(ContextError::NotAbsolute("a".to_owned())));
        let mut misplaced = error("one");
        misplaced.end.character = 0;
        let misplaced = all.report(NEOVIM, file("/w/a", vec![misplaced]), None);
        assert_eq!(misplaced, Err(ContextError::BadPosition { line: 1, character: 0 }));
    }
}

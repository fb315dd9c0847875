//! Changes, planned before any of them is made.
//!
//! A plan can be previewed or applied. It records every file's content when planned, and leaves a file alone if it has
//! changed since. The user's own text is backed up before it is replaced.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use alongside_core::difference;
use alongside_core::draft::DIFF_TIMEOUT;
use alongside_platform::unless_held;
use serde::Serialize;

use super::{InstallError, Runner};

/// Ends the name of a backup, followed by a number if it is not the first.
const BACKUP: &str = ".alongside-backup";

#[derive(Clone, Debug)]
pub(super) enum Change {
    Write {
        path: PathBuf,
        before: Option<Vec<u8>>,
        content: Vec<u8>,
        /// Whether the existing content must be backed up.
        keep: bool,
        /// Whether to show the user a diff.
        is_shown: bool,
    },
    Remove {
        path: PathBuf,
        before: Vec<u8>,
        keep: bool,
    },
    /// Remove a directory if it is empty.
    RemoveDirectory {
        path: PathBuf,
    },
    /// Run an editor's command.
    Run {
        program: PathBuf,
        arguments: Vec<String>,
        /// The extension that the command installs.
        extension: Option<String>,
        /// A file for the command: the argument with its name becomes a path.
        attachment: Option<Attachment>,
    },
}

/// A file that exists only while a command runs.
#[derive(Clone, Debug)]
pub(super) struct Attachment {
    pub(super) name: String,
    pub(super) content: Vec<u8>,
}

impl Attachment {
    fn run(&self, runner: &dyn Runner, program: &Path, arguments: &[String]) -> Result<String, String> {
        let attached = || -> io::Result<tempfile::TempDir> {
            let directory = tempfile::Builder::new().prefix("alongside-install-").tempdir()?;
            fs::write(directory.path().join(&self.name), &self.content)?;
            Ok(directory)
        };
        let directory = attached().map_err(|error| error.to_string())?;
        let path = directory.path().join(&self.name).to_string_lossy().into_owned();
        let arguments: Vec<String> = arguments
            .iter()
            .map(|argument| {
                if *argument == self.name {
                    path.clone()
                } else {
                    argument.clone()
                }
            })
            .collect();
        runner.run(program, &arguments)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub(super) changes: Vec<Change>,
    pub(super) remarks: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    Create,
    Change,
    Remove,
    Run,
}

/// One step that was done, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    pub action: Action,
    /// The file, or the command as the user would type it.
    pub subject: String,
    /// The diff, for a file that the user may have written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
    /// The path of the backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<PathBuf>,
}

/// How far a plan got, and what stopped it.
#[derive(Debug)]
pub(super) struct Interrupted {
    pub(super) steps: Vec<Step>,
    pub(super) error: InstallError,
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// This plan followed by another.
    #[must_use]
    pub(super) fn then(mut self, other: Self) -> Self {
        self.changes.extend(other.changes);
        self.remarks.extend(other.remarks);
        self
    }

    /// Directories that this plan will create.
    pub(super) fn new_directories(&self) -> Vec<PathBuf> {
        let written = self.changes.iter().filter_map(|change| match change {
            Change::Write { path, .. } => Some(path),
            _ => None,
        });
        let mut directories: Vec<PathBuf> = written.flat_map(|path| missing_directories(path)).collect();
        directories.sort();
        directories.dedup();
        directories
    }

    /// Extensions that this plan will install, in order.
    pub(super) fn extensions(&self) -> Vec<String> {
        let extensions = self.changes.iter().filter_map(|change| match change {
            Change::Run { extension, .. } => extension.clone(),
            _ => None,
        });
        extensions.collect()
    }

    pub fn preview(&self) -> Vec<Step> {
        self.changes.iter().filter_map(Change::step).collect()
    }

    /// Applies the plan. Stops at the first failure; completed steps stay, and a retry continues from there.
    pub(super) fn carry_out(&self, runner: &dyn Runner) -> Result<Vec<Step>, Interrupted> {
        let mut steps = Vec::new();
        for change in &self.changes {
            match change.carry_out(runner) {
                Ok(backup) => steps.extend(change.step().map(|step| Step { backup, ..step })),
                Err(error) => return Err(Interrupted { steps, error }),
            }
        }
        Ok(steps)
    }
}

impl Change {
    /// A change to a file that the user may have written; `None` if the content is the same.
    pub(super) fn write(path: PathBuf, content: Vec<u8>, keep: bool) -> Result<Option<Self>, InstallError> {
        Self::write_shown(path, content, keep, true)
    }

    /// A change to one of our own files; no diff is shown.
    pub(super) fn write_own(path: PathBuf, content: Vec<u8>) -> Result<Option<Self>, InstallError> {
        Self::write_shown(path, content, false, false)
    }

    fn write_shown(path: PathBuf, content: Vec<u8>, keep: bool, is_shown: bool) -> Result<Option<Self>, InstallError> {
        let before = read(&path)?;
        let keep = keep && before.as_ref().is_some_and(|before| !before.is_empty());
        Ok((before.as_ref() != Some(&content)).then_some(Self::Write {
            path,
            before,
            content,
            keep,
            is_shown,
        }))
    }

    fn step(&self) -> Option<Step> {
        let step = |action, subject: String, difference| {
            Some(Step {
                action,
                subject,
                difference,
                backup: None,
            })
        };
        match self {
            Self::Write {
                path,
                before,
                content,
                is_shown,
                ..
            } => {
                let action = if before.is_some() {
                    Action::Change
                } else {
                    Action::Create
                };
                let shown = before.as_ref().filter(|_| *is_shown);
                let difference = shown.map(|before| show_difference(path, before, content));
                step(action, path.display().to_string(), difference)
            }
            Self::Remove { path, .. } => step(Action::Remove, path.display().to_string(), None),
            Self::RemoveDirectory { .. } => None,
            Self::Run { program, arguments, .. } => step(Action::Run, typed(program, arguments), None),
        }
    }

    /// Applies the change and returns the path of the backup.
    fn carry_out(&self, runner: &dyn Runner) -> Result<Option<PathBuf>, InstallError> {
        match self {
            Self::Write {
                path,
                before,
                content,
                keep,
                ..
            } => {
                check_unchanged(path, before.as_deref())?;
                let backup = before.as_ref().filter(|_| *keep).map(|before| back_up(path, before));
                let backup = backup.transpose()?;
                write_whole(path, content)?;
                Ok(backup)
            }
            Self::Remove { path, before, keep } => {
                check_unchanged(path, Some(before))?;
                let backup = keep.then(|| back_up(path, before)).transpose()?;
                unless_held(|| fs::remove_file(path)).map_err(|source| write_error(path, source))?;
                Ok(backup)
            }
            Self::RemoveDirectory { path } => {
                // If it is not empty, the rest is not ours.
                let _ = fs::remove_dir(path);
                Ok(None)
            }
            Self::Run {
                program,
                arguments,
                attachment,
                ..
            } => {
                let result = match attachment {
                    Some(attachment) => attachment.run(runner, program, arguments),
                    None => runner.run(program, arguments),
                };
                result.map_err(|output| InstallError::Command {
                    command: typed(program, arguments),
                    output,
                })?;
                Ok(None)
            }
        }
    }
}

/// A file's content; `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, InstallError> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // A parent is a regular file; writing will report that.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
        Err(source) => Err(InstallError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

fn check_unchanged(path: &Path, before: Option<&[u8]>) -> Result<(), InstallError> {
    if read(path)?.as_deref() == before {
        return Ok(());
    }
    Err(InstallError::ChangedMeanwhile { path: path.to_owned() })
}

/// Copies a file's content to an unused name next to it, or to an existing backup with the same content.
fn back_up(path: &Path, content: &[u8]) -> Result<PathBuf, InstallError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut number = 1_u32;
    loop {
        let ending = if number == 1 {
            String::new()
        } else {
            format!("-{number}")
        };
        let candidate = path.with_file_name(format!("{name}{BACKUP}{ending}"));
        match fs::symlink_metadata(&candidate) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                write_whole(&candidate, content)?;
                if let Ok(metadata) = fs::metadata(path) {
                    // A configuration that only its owner can read may contain secrets, and so does its copy.
                    let _ = fs::set_permissions(&candidate, metadata.permissions());
                }
                return Ok(candidate);
            }
            Err(source) => return Err(write_error(&candidate, source)),
            Ok(_) if read(&candidate).is_ok_and(|kept| kept.as_deref() == Some(content)) => return Ok(candidate),
            Ok(_) => number += 1,
        }
    }
}

/// The parents of a path that do not exist.
pub(super) fn missing_directories(path: &Path) -> Vec<PathBuf> {
    let parents = path.ancestors().skip(1);
    parents
        .take_while(|parent| !parent.exists())
        .map(Path::to_owned)
        .collect()
}

/// Removes the backups of a file whose content is not needed any more.
pub(super) fn without_backups(path: &Path, is_needed: impl Fn(&[u8]) -> bool) -> Vec<Change> {
    let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else {
        return Vec::new();
    };
    let first = format!("{name}{BACKUP}");
    let is_backup = |entry: &str| {
        let number = entry.strip_prefix(&first)?;
        let is_own = number.is_empty()
            || number
                .strip_prefix('-')
                .is_some_and(|number| number.parse::<u32>().is_ok());
        is_own.then_some(())
    };
    let entries = path.parent().and_then(|parent| fs::read_dir(parent).ok());
    let mut backups: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|entry| {
            entry
                .file_name()
                .and_then(|name| is_backup(&name.to_string_lossy()))
                .is_some()
        })
        .collect();
    backups.sort();
    let read = backups
        .into_iter()
        .filter_map(|path| Some((fs::read(&path).ok()?, path)));
    read.filter(|(content, _)| !is_needed(content))
        .map(|(before, path)| Change::Remove {
            path,
            before,
            keep: false,
        })
        .collect()
}

/// Writes a file atomically. A symlink stays a symlink: users often link to a dotfiles repository.
pub(super) fn write_whole(path: &Path, content: &[u8]) -> Result<(), InstallError> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    let real = if is_link {
        alongside_platform::path::real(path).map_err(|source| write_error(path, source))?
    } else {
        path.to_owned()
    };
    let directory = real.parent().unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        fs::create_dir_all(directory)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".alongside-new-");
        let permissions = fs::metadata(&real).ok().map(|metadata| metadata.permissions());
        #[cfg(unix)]
        builder.permissions(permissions.clone().unwrap_or_else(|| {
            // The default for new files; the umask is applied to it.
            std::os::unix::fs::PermissionsExt::from_mode(0o666)
        }));
        let mut file = builder.tempfile_in(directory)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        if let Some(permissions) = permissions {
            file.as_file().set_permissions(permissions)?;
        }
        alongside_platform::persist(file, &real)
    };
    write().map_err(|source| write_error(path, source))
}

fn write_error(path: &Path, source: io::Error) -> InstallError {
    InstallError::Write {
        path: path.to_owned(),
        source,
    }
}

fn show_difference(path: &Path, before: &[u8], after: &[u8]) -> String {
    let name = path.display().to_string();
    difference::unified(
        &String::from_utf8_lossy(before),
        &String::from_utf8_lossy(after),
        &name,
        &name,
        Some(Instant::now() + DIFF_TIMEOUT),
    )
}

/// A command as the user would type it.
fn typed(program: &Path, arguments: &[String]) -> String {
    let words = std::iter::once(program.display().to_string()).chain(arguments.iter().cloned());
    let quoted = words.map(|word| {
        if word.contains(' ') {
            format!("\"{word}\"")
        } else {
            word
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::NoRunner;

    fn write(path: &Path, content: &str, keep: bool) -> Plan {
        let change = Change::write(path.to_owned(), content.as_bytes().to_vec(), keep).unwrap();
        Plan {
            changes: change.into_iter().collect(),
            remarks: Vec::new(),
        }
    }

    #[test]
    fn file_changed_since_the_plan_is_left_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("init.el");
        let plan = write(&file, "ours", true);
        fs::write(&file, "theirs").unwrap();
        let error = plan.carry_out(&NoRunner).unwrap_err().error;
        assert!(matches!(error, InstallError::ChangedMeanwhile { .. }), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
    }

    #[test]
    fn every_version_is_backed_up_once() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("kakrc");
        for version in ["one", "two", "one"] {
            fs::write(&file, version).unwrap();
            let steps = write(&file, "ours", true).carry_out(&NoRunner).unwrap();
            let backup = steps[0].backup.as_ref().unwrap();
            assert_eq!(fs::read_to_string(backup).unwrap(), version);
        }
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 3);
        assert!(write(&file, "ours", true).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn symlink_and_permissions_are_preserved() {
        use std::os::unix::fs::PermissionsExt;

        let scratch = tempfile::tempdir().unwrap();
        let real = scratch.path().join("dotfiles.el");
        let link = scratch.path().join("init.el");
        fs::write(&real, "mine").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let steps = write(&link, "ours", true).carry_out(&NoRunner).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "ours");
        for file in [&real, steps[0].backup.as_ref().unwrap()] {
            assert_eq!(
                fs::metadata(file).unwrap().permissions().mode() & 0o777,
                0o600,
                "{}",
                file.display()
            );
        }
    }
}

//! A private directory for drafts and diffs as files.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use alongside_core::ReviewId;

use crate::documents;

/// Only this user can enter it; it is removed on drop.
pub struct Scratch {
    directory: tempfile::TempDir,
    /// The same with symlinks resolved, for comparing.
    real: PathBuf,
    /// The parent, which also has the directories of other processes.
    all: PathBuf,
}

impl Scratch {
    /// Creates a directory in `parent`, named after this process.
    pub fn new(parent: &Path) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(parent)?;
        let prefix = format!("{}-", std::process::id());
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let directory = builder.tempdir_in(parent)?;
        let real = documents::real(directory.path());
        let all = documents::real(parent);
        Ok(Self { directory, real, all })
    }

    /// The process that created a directory with this name.
    pub fn owner(name: &str) -> Option<u32> {
        name.split_once('-')?.0.parse().ok()
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file for a review. It keeps the name of the reviewed file, so that editors highlight it the same way, plus `ending`.
    pub(super) fn write(&self, review: ReviewId, path: &str, ending: &str, text: &str) -> io::Result<PathBuf> {
        let name = Path::new(path).file_name().and_then(|name| name.to_str());
        let directory = self.directory_of(review);
        match fs::create_dir(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let file = directory.join(format!("{}{ending}", name.unwrap_or("proposal")));
        // Atomic, and created with mode 0600.
        let mut new = tempfile::NamedTempFile::new_in(&directory)?;
        new.write_all(text.as_bytes())?;
        alongside_platform::persist(new, &file)?;
        Ok(file)
    }

    /// The review that a file in this directory belongs to.
    pub(super) fn review_of(&self, real: &Path) -> Option<ReviewId> {
        let inside = real
            .strip_prefix(&self.real)
            .or_else(|_| real.strip_prefix(self.directory.path()));
        let first = inside.ok()?.components().next()?.as_os_str().to_str()?;
        first.parse().ok().map(ReviewId)
    }

    /// Whether a path is in this directory, or in that of another editor or before a restart.
    pub(super) fn holds(&self, real: &Path) -> bool {
        real.starts_with(&self.all) || real.starts_with(self.directory.path())
    }

    /// Removes all files of a review.
    pub(super) fn remove(&self, review: ReviewId) {
        // There may be none.
        let _ = fs::remove_dir_all(self.directory_of(review));
    }

    fn directory_of(&self, review: ReviewId) -> PathBuf {
        self.directory.path().join(review.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn files_are_private_and_removed_on_drop() {
        use std::os::unix::fs::PermissionsExt;

        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(&parent.path().join("drafts")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let file = scratch.write(ReviewId(3), "/w/Makefile", "", "all:\n").unwrap();
        let again = scratch.write(ReviewId(3), "/w/Makefile", "", "none:\n").unwrap();
        assert_eq!((&file, file.file_name().unwrap().to_str()), (&again, Some("Makefile")));
        assert_eq!(fs::read_to_string(&file).unwrap(), "none:\n");
        assert_eq!((mode(&file), mode(scratch.path())), (0o600, 0o700));
        assert_eq!(mode(&parent.path().join("drafts")), 0o700);
        assert_eq!(scratch.review_of(&documents::real(&file)), Some(ReviewId(3)));
        assert_eq!(scratch.review_of(Path::new("/w/Makefile")), None);
        assert!(scratch.holds(&documents::real(&file)) && !scratch.holds(Path::new("/w/Makefile")));
        let of_another = documents::real(parent.path()).join("drafts/1-x/3/Makefile");
        assert!(scratch.holds(&of_another) && scratch.review_of(&of_another).is_none());
        let name = scratch.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(Scratch::owner(&name), Some(std::process::id()));
        scratch.remove(ReviewId(3));
        assert!(!file.exists());
        drop(scratch);
        assert_eq!(fs::read_dir(parent.path().join("drafts")).unwrap().count(), 0);
    }

    #[test]
    fn path_without_a_file_name_gets_one() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(parent.path()).unwrap();
        for path in ["/..", "/", ""] {
            let file = scratch.write(ReviewId(1), path, ".diff", "").unwrap();
            assert_eq!(file.file_name().unwrap().to_str(), Some("proposal.diff"));
        }
    }
}

//! Moving a file to the place of another one.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use tempfile::NamedTempFile;

/// On Windows, a scanner or a reader that has the old file open for a moment makes a replacement fail.
const TRIES: u32 = if cfg!(windows) { 5 } else { 1 };
const DELAY: Duration = Duration::from_millis(20);

/// Renames a file, whether or not there is one with the new name.
pub fn replace(from: &Path, to: &Path) -> io::Result<()> {
    try_again(TRIES, (), |()| fs::rename(from, to).map_err(|error| (error, ())))
}

/// Gives a temporary file its name.
pub fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    try_again(TRIES, file, |file| {
        let persisted = file.persist(path).map(drop);
        persisted.map_err(|error| (error.error, error.file))
    })
}

/// Tries again while a replacement is denied. A failed try returns what the next one needs.
fn try_again<S, T>(tries: u32, mut state: S, mut action: impl FnMut(S) -> Result<T, (io::Error, S)>) -> io::Result<T> {
    let mut left = tries;
    loop {
        left = left.saturating_sub(1);
        match action(state) {
            Ok(value) => return Ok(value),
            Err((error, again)) if left > 0 && error.kind() == io::ErrorKind::PermissionDenied => {
                state = again;
                thread::sleep(DELAY);
            }
            Err((error, _)) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(times: u32, kind: io::ErrorKind) -> (io::Result<u32>, u32) {
        let mut count = 0;
        let result = try_again(3, 0, |state| {
            count += 1;
            if count <= times {
                Err((kind.into(), state + 1))
            } else {
                Ok(state)
            }
        });
        (result, count)
    }

    #[test]
    fn denied_replacement_is_tried_again() {
        assert_eq!(fails(2, io::ErrorKind::PermissionDenied).0.ok(), Some(2));
        let (result, count) = fails(9, io::ErrorKind::PermissionDenied);
        assert_eq!(
            (result.map_err(|error| error.kind()), count),
            (Err(io::ErrorKind::PermissionDenied), 3)
        );
        assert_eq!(fails(1, io::ErrorKind::NotFound).1, 1);
    }

    #[test]
    fn temporary_file_replaces_another() {
        let scratch = tempfile::tempdir().unwrap();
        let to = scratch.path().join("old");
        fs::write(&to, "old").unwrap();
        persist(NamedTempFile::new_in(scratch.path()).unwrap(), &to).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
    }

    #[test]
    fn file_is_replaced() {
        let scratch = tempfile::tempdir().unwrap();
        let (from, to) = (scratch.path().join("new"), scratch.path().join("old"));
        fs::write(&from, "new").unwrap();
        fs::write(&to, "old").unwrap();
        replace(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "new");
        assert!(!from.exists());
    }
}

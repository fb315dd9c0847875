//! Moving a file to the place of another one, and other changes of files that another program may hold for a moment.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::Platform;

/// On Windows, a scanner or a reader that has a file open for a moment makes changing it fail.
const TRIES: u32 = 5;
const DELAY: Duration = Duration::from_millis(20);

/// Renames a file, whether or not there is one with the new name.
pub fn replace(from: &Path, to: &Path) -> io::Result<()> {
    unless_held(|| fs::rename(from, to))
}

/// Gives a temporary file its name.
pub fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    try_again(Platform::current(), file, |file| {
        let persisted = file.persist(path).map(drop);
        persisted.map_err(|error| (error.error, error.file))
    })
}

/// Tries again for a moment if another program holds the file.
pub fn unless_held<T>(mut action: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    try_again(Platform::current(), (), |()| action().map_err(|error| (error, ())))
}

/// A failed try returns what the next one needs.
fn try_again<S, T>(
    platform: Platform,
    mut state: S,
    mut action: impl FnMut(S) -> Result<T, (io::Error, S)>,
) -> io::Result<T> {
    let mut left = TRIES;
    loop {
        left = left.saturating_sub(1);
        match action(state) {
            Ok(value) => return Ok(value),
            Err((error, again)) if left > 0 && is_held(platform, &error) => {
                state = again;
                thread::sleep(DELAY);
            }
            Err((error, _)) => return Err(error),
        }
    }
}

/// Whether another program may have the file open. Only the first of these errors has a kind of its own: access denied, which a
/// rename over an open file returns, a sharing violation and a lock violation.
fn is_held(platform: Platform, error: &io::Error) -> bool {
    platform == Platform::Windows && matches!(error.raw_os_error(), Some(5 | 32 | 33))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENIED: i32 = 5;

    fn fails(platform: Platform, times: u32, code: i32) -> (Result<u32, Option<i32>>, u32) {
        let mut count = 0;
        let result = try_again(platform, 0, |state| {
            count += 1;
            if count <= times {
                Err((io::Error::from_raw_os_error(code), state + 1))
            } else {
                Ok(state)
            }
        });
        (result.map_err(|error| error.raw_os_error()), count)
    }

    #[test]
    fn change_of_a_file_that_another_program_holds_is_tried_again() {
        for (code, is_retried) in [
            (DENIED, true),
            (32, true),
            (33, true),
            // Not found, the path not found, and a full disk.
            (2, false),
            (3, false),
            (112, false),
        ] {
            let error = io::Error::from_raw_os_error(code);
            assert_eq!(is_held(Platform::Windows, &error), is_retried, "{code}");
            assert!(!is_held(Platform::Unix, &error) && !is_held(Platform::MacOs, &error));
            let expected = if is_retried { (Ok(2), 3) } else { (Err(Some(code)), 1) };
            assert_eq!(fails(Platform::Windows, 2, code), expected);
        }
        assert_eq!(fails(Platform::Windows, 9, DENIED), (Err(Some(DENIED)), TRIES));
        assert_eq!(fails(Platform::Unix, 1, DENIED), (Err(Some(DENIED)), 1));
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

//! The base of a proposal: the file on disk, or the editor's unsaved text.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alongside_core::Base;
use alongside_platform::Platform;
use alongside_platform::path::{is_in, real_or_same};

use crate::settings::OutsideWorkspace;

/// Larger files cannot be reviewed.
const MAX_BASE_BYTES: u64 = 64 * 1024 * 1024;

/// Whether an agent may propose a change to this file; the error is for the agent.
pub(super) fn check(file_path: &str, workspace: &[PathBuf], outside_workspace: OutsideWorkspace) -> Result<(), String> {
    let path = Path::new(file_path);
    if !path.is_absolute() {
        return Err(format!("`{file_path}` is not an absolute path. Use an absolute path."));
    }
    if outside_workspace == OutsideWorkspace::Forbid && !is_inside(path, workspace) {
        return Err(format!(
            "`{file_path}` is outside the workspace, and the user's settings forbid changes there (review.outside-workspace)."
        ));
    }
    Ok(())
}

/// The unsaved text, or else the file on disk. The error, for the agent, says why the file cannot be reviewed.
pub(super) fn read(file_path: &str, buffer: Option<Arc<str>>) -> Result<Base, String> {
    if let Some(text) = buffer {
        return Ok(Base::Text(text));
    }
    // Before opening, because opening a pipe or a device has effects.
    let metadata = match fs::metadata(file_path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Base::Missing),
        Err(error) => return Err(format!("Cannot access `{file_path}`: {error}.")),
    };
    check_kind(file_path, &metadata)?;
    let bytes = read_bytes(file_path, metadata.len())?;
    if memchr::memchr(0, &bytes).is_some() {
        return Err(format!(
            "`{file_path}` is a binary file, so a change to it cannot be reviewed as text."
        ));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Base::Text(Arc::from(text))),
        Err(error) if looks_like_text(error.as_bytes()) => Ok(Base::OtherEncoding),
        Err(_) => Err(format!(
            "`{file_path}` is not a text file, so a change to it cannot be reviewed."
        )),
    }
}

/// Reads a file that had this length. Another one may have taken its place since.
fn read_bytes(file_path: &str, length: u64) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| format!("Cannot read `{file_path}`: {error}.");
    let mut file = open(Path::new(file_path)).map_err(failed)?;
    // Room for one more byte shows that there is no more.
    let mut bytes = Vec::with_capacity(usize::try_from(length).map_or(0, |length| length.saturating_add(1)));
    match read_once(&mut file, &mut bytes) {
        // All of it, with one system call. A pipe has no length.
        Ok(()) if length > 0 && bytes.len() as u64 == length => return Ok(bytes),
        // An error that is still there is returned below.
        Ok(()) | Err(_) => check_kind(file_path, &file.metadata().map_err(failed)?)?,
    }
    file.take(MAX_BASE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BASE_BYTES {
        return Err(too_large(file_path, bytes.len() as u64));
    }
    Ok(bytes)
}

/// Reads at most what there is room for.
#[cfg(unix)]
fn read_once(file: &mut fs::File, bytes: &mut Vec<u8>) -> io::Result<()> {
    rustix::io::read(&*file, rustix::buffer::spare_capacity(bytes))?;
    Ok(())
}

#[cfg(not(unix))]
fn read_once(file: &mut fs::File, bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.resize(bytes.capacity(), 0);
    let read = file.read(bytes);
    bytes.truncate(*read.as_ref().unwrap_or(&0));
    read.map(drop)
}

/// Opens without waiting for the other end of a pipe.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<fs::File> {
    use rustix::fs::{Mode, OFlags};

    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<fs::File> {
    fs::File::open(path)
}

fn check_kind(file_path: &str, metadata: &fs::Metadata) -> Result<(), String> {
    if metadata.is_dir() {
        return Err(format!("`{file_path}` is a directory. Use the path of a file."));
    }
    if !metadata.is_file() {
        return Err(format!("`{file_path}` is not a regular file and cannot be reviewed."));
    }
    if metadata.len() > MAX_BASE_BYTES {
        return Err(too_large(file_path, metadata.len()));
    }
    Ok(())
}

fn too_large(file_path: &str, bytes: u64) -> String {
    format!("`{file_path}` is too large to review: {bytes} bytes; the limit is {MAX_BASE_BYTES}.")
}

/// Whether bytes that are not UTF-8 are text in an older encoding: mostly ASCII, and without control characters.
fn looks_like_text(bytes: &[u8]) -> bool {
    let is_control = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\r' | b'\t' | b'\x0c');
    let ascii = bytes.iter().filter(|byte| byte.is_ascii()).count();
    !bytes.iter().any(is_control) && ascii * 2 > bytes.len()
}

/// Whether a path, which need not exist, leads into one of the folders, links and `..` followed.
fn is_inside(path: &Path, folders: &[PathBuf]) -> bool {
    let Some(real) = real_path(path) else { return false };
    folders
        .iter()
        .any(|folder| is_in(Platform::current(), &real_or_same(folder), &real))
}

/// The real path of the nearest existing ancestor, followed by the rest.
pub fn real_path(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = alongside_platform::path::real(path) {
        return Some(real);
    }
    // `..` after a missing directory cannot be checked.
    Some(real_path(path.parent()?)?.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(path: &Path) -> Result<Base, String> {
        let path = path.to_str().unwrap();
        check(path, &[], OutsideWorkspace::Allow)?;
        read(path, None)
    }

    #[test]
    fn file_is_read_byte_for_byte() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("a.txt");
        fs::write(&file, "\u{feff}one\r\ntwo").unwrap();
        assert_eq!(look(&file), Ok(Base::Text("\u{feff}one\r\ntwo".into())));
    }

    /// It may be written, or replaced, after its length is known.
    #[test]
    fn file_is_read_whole_whatever_its_length_was() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("a.txt");
        for content in [String::new(), "text".to_owned(), "long ".repeat(100_000)] {
            fs::write(&file, &content).unwrap();
            for length in [0, 3, 4, 5, 1 << 20] {
                let bytes = read_bytes(file.to_str().unwrap(), length).unwrap();
                assert!(
                    bytes == content.as_bytes(),
                    "{} of {} bytes",
                    bytes.len(),
                    content.len()
                );
            }
        }
    }

    #[test]
    fn unsaved_text_takes_precedence_over_the_file() {
        assert_eq!(
            read("/nowhere", Some("unsaved".into())),
            Ok(Base::Text("unsaved".into()))
        );
    }

    #[test]
    fn file_in_missing_directory_is_new() {
        let scratch = tempfile::tempdir().unwrap();
        assert_eq!(look(&scratch.path().join("a/b/c.txt")), Ok(Base::Missing));
    }

    #[test]
    fn unreviewable_file_is_refused_with_a_reason() {
        let scratch = tempfile::tempdir().unwrap();
        let sentence = |path: &Path| look(path).unwrap_err();
        assert!(sentence(Path::new("a.txt")).contains("not an absolute path"));
        assert!(sentence(scratch.path()).contains("is a directory"));
        let noise = scratch.path().join("noise");
        fs::write(&noise, b"\xff\xfe\xfd").unwrap();
        assert!(sentence(&noise).contains("is not a text file"));
        let binary = scratch.path().join("binary");
        fs::write(&binary, b"a\0b").unwrap();
        assert!(sentence(&binary).contains("is a binary file"));
        let below_a_file = noise.join("below");
        assert!(sentence(&below_a_file).contains("Cannot access"));
    }

    #[test]
    fn text_in_another_encoding_is_recognized() {
        let scratch = tempfile::tempdir().unwrap();
        let latin = scratch.path().join("latin.txt");
        fs::write(&latin, b"un caf\xe9\r\n").unwrap();
        assert_eq!(look(&latin), Ok(Base::OtherEncoding));
    }

    #[cfg(unix)]
    #[test]
    fn pipe_is_refused_without_reading() {
        let scratch = tempfile::tempdir().unwrap();
        let pipe = scratch.path().join("pipe");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        assert!(look(&pipe).unwrap_err().contains("is not a regular file"));
        // It may take the place of a file after the check.
        for length in [0, 7] {
            let opened = read_bytes(pipe.to_str().unwrap(), length);
            assert!(opened.unwrap_err().contains("is not a regular file"));
        }
    }

    #[test]
    fn file_over_the_limit_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let large = scratch.path().join("large");
        fs::File::create(&large).unwrap().set_len(MAX_BASE_BYTES + 1).unwrap();
        assert!(look(&large).unwrap_err().contains("is too large to review"));
    }

    #[cfg(unix)]
    #[test]
    fn symlinks_and_dots_do_not_leave_the_workspace() {
        let scratch = tempfile::tempdir().unwrap();
        let (inside, outside) = (scratch.path().join("inside"), scratch.path().join("outside"));
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir_all(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        let forbidden = |path: PathBuf| {
            check(
                path.to_str().unwrap(),
                std::slice::from_ref(&inside),
                OutsideWorkspace::Forbid,
            )
            .is_err()
        };
        assert!(!forbidden(inside.join("new/file.txt")));
        assert!(forbidden(outside.join("file.txt")));
        assert!(forbidden(inside.join("link/file.txt")));
        assert!(forbidden(inside.join("../outside/file.txt")));
        assert!(forbidden(inside.join("new/../../outside/file.txt")));
    }
}

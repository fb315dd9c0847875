//! How a path is spelled, compared and announced. A lint and a test keep `canonicalize` out of all other files.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use crate::Platform;

/// A path with its symlinks resolved, in the spelling that users, editors and agents know: on Windows, the standard
/// library's `\\?\C:\project` is a directory that Qwen Code does not recognize as `C:\project`.
#[expect(
    clippy::disallowed_methods,
    reason = "the only place that decides how a real path is spelled"
)]
pub fn real(path: &Path) -> io::Result<PathBuf> {
    let real = dunce::canonicalize(path)?;
    Ok(match real.to_str() {
        Some(text) => PathBuf::from(&*without_prefix(Platform::current(), text)),
        None => real,
    })
}

/// What `dunce` returns, spelled as everywhere: it leaves shares as they are. It also keeps `\\?\` where the path would name something
/// else without: reserved names, a dot or space at the end of a name, very long paths.
fn without_prefix(platform: Platform, real: &str) -> Cow<'_, str> {
    match real.strip_prefix(r"\\?\") {
        Some(rest) if !rest.starts_with(r"UNC\") => Cow::Borrowed(real),
        _ => spelled(platform, real),
    }
}

/// The same, or the path as it is if it leads nowhere.
pub fn real_or_same(path: &Path) -> PathBuf {
    real(path).unwrap_or_else(|_| path.to_owned())
}

/// The one spelling of an absolute path on Windows, where editors write `c:/a`, `c:\a` and `C:\a`. Elsewhere a path has
/// only one.
pub fn spelled(platform: Platform, path: &str) -> Cow<'_, str> {
    if platform != Platform::Windows {
        return Cow::Borrowed(path);
    }
    let text = path.replace('/', "\\");
    let mut text = match text.strip_prefix(r"\\?\") {
        Some(plain) if has_drive(plain) => plain.to_owned(),
        Some(plain) if plain.starts_with(r"UNC\") => format!(r"\{}", &plain[3..]),
        _ => text,
    };
    if has_drive(&text) {
        text[..1].make_ascii_uppercase();
    }
    if text == path {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(text)
    }
}

/// Whether two absolute paths name the same file, as far as their text tells.
pub fn is_same(platform: Platform, one: &str, other: &str) -> bool {
    one == other || (platform != Platform::Unix && folded(platform, one) == folded(platform, other))
}

/// A path for comparisons: file names on Windows and macOS differ by more than case.
fn folded(platform: Platform, path: &str) -> String {
    spelled(platform, path).to_lowercase()
}

/// What is equal for all spellings of a path, as far as their text tells. File names may be anything but text on Unix, where
/// they have one spelling.
pub fn key(platform: Platform, path: &Path) -> PathBuf {
    match path.to_str() {
        Some(text) if platform != Platform::Unix => PathBuf::from(folded(platform, text)),
        _ => path.to_owned(),
    }
}

/// What is below a directory, as far as the text tells; `None` if the path is not below it.
pub fn below(platform: Platform, directory: &Path, path: &Path) -> Option<PathBuf> {
    let texts = directory.to_str().zip(path.to_str());
    let (Some((directory, path)), false) = (texts, platform == Platform::Unix) else {
        return path.strip_prefix(directory).ok().map(Path::to_owned);
    };
    let separator = if platform == Platform::Windows { '\\' } else { '/' };
    let (directory, path) = (spelled(platform, directory), spelled(platform, path));
    let mut parts = path.split(separator).filter(|part| !part.is_empty());
    for part in directory.split(separator).filter(|part| !part.is_empty()) {
        if part.to_lowercase() != parts.next()?.to_lowercase() {
            return None;
        }
    }
    Some(parts.collect())
}

/// Whether a real path is this real directory, or is below it. Case matters, because real paths have the one that the files have.
pub fn is_in(platform: Platform, directory: &Path, path: &Path) -> bool {
    let texts = directory.to_str().zip(path.to_str());
    let (Some((directory, path)), Platform::Windows) = (texts, platform) else {
        return path.starts_with(directory);
    };
    // `Path::starts_with` takes `\\?\C:`, which some real paths have, and `C:` for different drives.
    let (directory, path) = (spelled(platform, directory), spelled(platform, path));
    let below = path.strip_prefix(directory.trim_end_matches('\\'));
    below.is_some_and(|below| below.is_empty() || below.starts_with('\\'))
}

/// Whether a path names one place, whatever the working directory is.
pub fn is_absolute(platform: Platform, path: &str) -> bool {
    match platform {
        Platform::Unix | Platform::MacOs => path.starts_with('/'),
        Platform::Windows => {
            let is_separator = |at: usize| path.as_bytes().get(at).is_some_and(|byte| b"\\/".contains(byte));
            (has_drive(path) && is_separator(2)) || (is_separator(0) && is_separator(1))
        }
    }
}

fn has_drive(path: &str) -> bool {
    let bytes = path.as_bytes();
    bytes.get(1) == Some(&b':') && bytes[0].is_ascii_alphabetic()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS: Platform = Platform::Windows;

    #[test]
    fn windows_path_has_one_spelling() {
        for (path, one) in [
            (r"C:\proj\a.txt", r"C:\proj\a.txt"),
            (r"c:\proj\a.txt", r"C:\proj\a.txt"),
            ("c:/proj/a.txt", r"C:\proj\a.txt"),
            (r"\\?\c:\proj", r"C:\proj"),
            (r"\\?\UNC\server\share\x", r"\\server\share\x"),
            ("//server/share/x", r"\\server\share\x"),
            (r"\\?\Volume{1}\x", r"\\?\Volume{1}\x"),
            ("", ""),
            ("ü", "ü"),
        ] {
            assert_eq!(spelled(WINDOWS, path), one, "{path}");
            assert_eq!(spelled(Platform::Unix, path), path);
            assert_eq!(spelled(Platform::MacOs, path), path);
        }
    }

    #[test]
    fn real_path_keeps_a_prefix_that_it_needs() {
        for (real, kept) in [
            (r"\\?\UNC\server\share\x", r"\\server\share\x"),
            (r"\\?\C:\proj\aux.txt", r"\\?\C:\proj\aux.txt"),
            (r"\\?\C:\proj\dots...", r"\\?\C:\proj\dots..."),
            (r"C:\proj", r"C:\proj"),
            (r"c:\proj", r"C:\proj"),
        ] {
            assert_eq!(without_prefix(WINDOWS, real), kept);
            assert_eq!(without_prefix(Platform::Unix, real), real);
        }
    }

    #[test]
    fn case_matters_on_linux_only() {
        assert!(is_same(WINDOWS, r"C:\PROJ\A.TXT", "c:/proj/a.txt"));
        assert!(!is_same(WINDOWS, r"C:\proj\a.txt", r"D:\proj\a.txt"));
        assert!(is_same(Platform::MacOs, "/Users/ada/A", "/users/ada/a"));
        assert!(!is_same(Platform::MacOs, r"/a\b", "/a/b"));
        assert!(!is_same(Platform::Unix, "/A", "/a"));
        assert!(is_same(Platform::Unix, "/a", "/a"));
    }

    #[test]
    fn key_is_the_same_for_all_spellings() {
        let key = |platform, path: &str| key(platform, Path::new(path));
        assert_eq!(key(WINDOWS, "c:/Proj/A"), key(WINDOWS, r"C:\proj\a"));
        assert_eq!(key(Platform::MacOs, "/Users/A"), key(Platform::MacOs, "/users/a"));
        assert_ne!(key(Platform::Unix, "/A"), key(Platform::Unix, "/a"));
    }

    #[test]
    fn path_is_below_a_directory_in_any_spelling() {
        let below = |platform, directory: &str, path: &str| {
            let found = below(platform, Path::new(directory), Path::new(path));
            found.map(|found| found.to_str().unwrap().to_owned())
        };
        for (directory, path, found) in [
            (r"C:\proj", r"C:\proj\src\a", Some("src/a")),
            (r"C:\proj", "c:/PROJ/src/A", Some("src/A")),
            (r"\\?\C:\proj", r"C:\proj\a", Some("a")),
            (r"C:\", r"C:\a", Some("a")),
            (r"\\server\share", r"\\?\UNC\Server\share\a", Some("a")),
            (r"C:\proj", r"C:\proj", Some("")),
            (r"C:\proj", r"C:\project\a", None),
            (r"C:\proj", r"C:\", None),
            (r"C:\proj", r"D:\proj\a", None),
        ] {
            assert_eq!(below(WINDOWS, directory, path).as_deref(), found, "{path}");
        }
        assert_eq!(
            below(Platform::MacOs, "/Users/a", "/users/A/b/c").as_deref(),
            Some("b/c")
        );
        assert_eq!(below(Platform::Unix, "/a", "/a/b").as_deref(), Some("b"));
        assert_eq!(below(Platform::Unix, "/a", "/A/b"), None);
    }

    #[test]
    fn real_path_is_in_a_directory_with_or_without_its_prefix() {
        let is_in = |platform, directory: &str, path: &str| is_in(platform, Path::new(directory), Path::new(path));
        for (directory, path, expected) in [
            (r"C:\proj", r"C:\proj", true),
            (r"C:\proj", r"C:\proj\src\a.rs", true),
            (r"C:\proj", r"\\?\C:\proj\aux.rs", true),
            (r"\\?\C:\proj\dots...", r"\\?\C:\proj\dots...\a.rs", true),
            (r"\\?\C:\proj\dots...", r"C:\proj\a.rs", false),
            (r"C:\", r"C:\a.rs", true),
            (r"C:\", r"\\?\C:\aux.rs", true),
            (r"C:\", r"D:\a.rs", false),
            (r"\\server\share", r"\\?\UNC\server\share\aux.rs", true),
            (r"\\server\share", r"\\server\share2\a.rs", false),
            (r"C:\proj", r"C:\project", false),
            (r"C:\proj", r"C:\project\a.rs", false),
            (r"C:\proj", r"C:\Proj\a.rs", false),
            (r"C:\proj\src", r"C:\proj", false),
        ] {
            assert_eq!(is_in(WINDOWS, directory, path), expected, "{directory} {path}");
        }
        for platform in [Platform::Unix, Platform::MacOs] {
            assert!(is_in(platform, "/a", "/a/b") && is_in(platform, "/", "/a") && is_in(platform, "/a", "/a"));
            assert!(!is_in(platform, "/a", "/ab") && !is_in(platform, "/a", "/A/b"));
        }
    }

    #[test]
    fn drive_without_separator_is_relative() {
        for (path, absolute) in [
            (r"C:\a", true),
            ("c:/a", true),
            (r"\\server\share", true),
            (r"\\?\C:\a", true),
            ("C:a", false),
            (r"\a", false),
            ("a", false),
            ("", false),
        ] {
            assert_eq!(is_absolute(WINDOWS, path), absolute, "{path}");
        }
        assert!(is_absolute(Platform::Unix, "/a") && !is_absolute(Platform::Unix, r"C:\a"));
    }

    #[test]
    fn real_path_of_nothing_is_the_path_itself() {
        let scratch = tempfile::tempdir().unwrap();
        let missing = scratch.path().join("missing");
        assert!(real(&missing).is_err());
        assert_eq!(real_or_same(&missing), missing);
        assert!(real(scratch.path()).unwrap().is_dir());
    }
}

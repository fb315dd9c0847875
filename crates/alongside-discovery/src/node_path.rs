//! The functions of Node's `path` module that the lookup rules depend on.
//!
//! Both agents are Node programs. How they normalize, resolve and compare paths decides whether they connect, so those
//! steps are reimplemented here exactly.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// As many as Linux follows.
const MAX_LINKS: usize = 40;

/// `path.resolve(base, path)`: absolute, without `.` and `..`, purely lexical.
pub(crate) fn resolve(base: &Path, path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for component in base.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                // At the root, `..` stays at the root; `pop` does nothing there.
                resolved.pop();
            }
            other => resolved.push(other),
        }
    }
    resolved
}

/// `fs.realpathSync(path)`: symlinks are followed, everything else stays as it is spelled.
pub(crate) fn real_path(path: &Path) -> io::Result<PathBuf> {
    follow(path, 0)
}

fn follow(path: &Path, links: usize) -> io::Result<PathBuf> {
    if links > MAX_LINKS {
        return Err(io::Error::other("too many symlinks"));
    }
    let mut real = PathBuf::new();
    let mut components = path.components();
    while let Some(component) = components.next() {
        match component {
            Component::CurDir => continue,
            Component::ParentDir => {
                real.pop();
                continue;
            }
            Component::Prefix(_) | Component::RootDir => {
                real.push(component);
                continue;
            }
            Component::Normal(_) => {}
        }
        let next = real.join(component);
        if fs::symlink_metadata(&next)?.is_symlink() {
            let target = real.join(fs::read_link(&next)?).join(components.as_path());
            return follow(&target, links + 1);
        }
        real = next;
    }
    Ok(real)
}

/// Whether `child` is `parent` or inside it, purely lexical.
pub(crate) fn is_within(parent: &Path, child: &Path, fold_case: bool) -> bool {
    if fold_case {
        return is_within(&lower_case(parent), &lower_case(child), false);
    }
    child.starts_with(parent)
}

/// JavaScript's `parseInt(text, 10)`: the number at the start of the text.
pub(crate) fn parse_integer(text: &str) -> Option<i64> {
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(digits.len());
    let number: i64 = digits[..end].parse().ok()?;
    Some(if negative { -number } else { number })
}

/// `decodeURIComponent`; `None` where that throws.
pub(crate) fn decode_percent(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let high = char::from(rest.next()?).to_digit(16)?;
        let low = char::from(rest.next()?).to_digit(16)?;
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

fn lower_case(path: &Path) -> PathBuf {
    PathBuf::from(path.to_string_lossy().to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolve_is_lexical() {
        let resolve = |path: &str| resolve(Path::new("/project"), Path::new(path));
        assert_eq!(resolve(""), Path::new("/project"));
        assert_eq!(resolve("a/./b/../c/"), Path::new("/project/a/c"));
        assert_eq!(resolve("/x/../../y"), Path::new("/y"));
    }

    #[cfg(unix)]
    #[test]
    fn real_path_is_the_systems_own() {
        use std::os::unix::fs::symlink;

        let scratch = tempfile::tempdir().unwrap();
        let at = |below: &str| scratch.path().join(below);
        fs::create_dir_all(at("a/b")).unwrap();
        symlink("a", at("relative")).unwrap();
        symlink(at("relative/b"), at("absolute")).unwrap();
        symlink("../..", at("a/b/up")).unwrap();
        symlink("loop", at("loop")).unwrap();
        for path in [
            "a",
            "relative/b",
            "absolute",
            "absolute/up/a/b",
            "a/./b/../b",
            "relative/b/..",
        ] {
            let own = alongside_platform::path::real(&at(path)).unwrap();
            assert_eq!(real_path(&at(path)).unwrap(), own, "{path}");
        }
        assert!(real_path(&at("loop")).is_err() && real_path(&at("missing")).is_err());
    }

    #[test]
    fn path_is_within_itself_and_parents_only() {
        let within = |parent: &str, child: &str| is_within(Path::new(parent), Path::new(child), false);
        assert!(within("/a", "/a"));
        assert!(within("/a/", "/a/b"));
        assert!(within("/", "/a"));
        assert!(!within("/a", "/ab"));
        assert!(!within("/a/b", "/a"));
        assert!(!within("/A", "/a"));
        assert!(is_within(Path::new("/A"), Path::new("/a/b"), true));
    }

    #[test]
    fn integers_parse_as_in_javascript() {
        assert_eq!(parse_integer("8080"), Some(8080));
        assert_eq!(parse_integer(" 12abc"), Some(12));
        assert_eq!(parse_integer("-3"), Some(-3));
        assert_eq!(parse_integer("abc"), None);
        assert_eq!(parse_integer(""), None);
    }

    #[test]
    fn bad_percent_escape_decodes_to_none() {
        assert_eq!(decode_percent("a%20b").as_deref(), Some("a b"));
        assert_eq!(decode_percent("%E4%BD%A0").as_deref(), Some("你"));
        assert_eq!(decode_percent("100%"), None);
        assert_eq!(decode_percent("%zz"), None);
        assert_eq!(decode_percent("%ff"), None);
    }
}

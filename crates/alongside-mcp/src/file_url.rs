//! `file:` URLs, which some agents use in place of paths.

use std::path::PathBuf;

/// The URL of an absolute path.
pub(crate) fn file_url(path: &str) -> String {
    let mut url = "file://".to_owned();
    if !path.starts_with('/') {
        url.push('/');
    }
    for byte in path.bytes() {
        match byte {
            b'\\' if cfg!(windows) => url.push('/'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => url.push(byte.into()),
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

/// The path of a URL, or of what is a path already; `None` if it is neither.
pub(crate) fn path_of(url: &str) -> Option<PathBuf> {
    let Some(encoded) = url.strip_prefix("file://") else {
        return Some(PathBuf::from(url)).filter(|path| path.is_absolute());
    };
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(16 * high + low).ok()?);
    }
    let path = String::from_utf8(bytes).ok()?;
    // `/C:/a` is `C:/a`.
    let path = if cfg!(windows) {
        path.trim_start_matches('/')
    } else {
        &path
    };
    Some(PathBuf::from(path)).filter(|path| path.is_absolute())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn path_survives_its_url() {
        for path in ["/w/a.txt", "/w/a b#?%.txt", "/w/ü", "/"] {
            assert_eq!(path_of(&file_url(path)).as_deref(), Some(Path::new(path)), "{path}");
            assert_eq!(path_of(path).as_deref(), Some(Path::new(path)));
        }
        assert_eq!(file_url("/w/a b.txt"), "file:///w/a%20b.txt");
        for invalid in ["file:///%", "file:///%zz", "file:///%ff", "a.txt", "", "http://a/b"] {
            assert_eq!(path_of(invalid), None, "{invalid}");
        }
    }
}

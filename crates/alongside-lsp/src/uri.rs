//! `file:` URIs.

/// The absolute path of a `file:` URI; `None` for every other kind, such as an unsaved buffer's.
pub(super) fn to_path(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    // Other hosts are not supported.
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return None;
    }
    let path = decoded(path)?;
    // A drive: `/C:/file` is `C:/file`.
    let is_drive = path.as_bytes().get(2) == Some(&b':') && path.as_bytes().get(1)?.is_ascii_alphabetic();
    Some(if cfg!(windows) && is_drive {
        path[1..].replace('/', "\\")
    } else {
        path
    })
}

/// The URI of an absolute path.
pub(super) fn of_path(path: &str) -> String {
    let mut uri = String::from("file://");
    let path = if cfg!(windows) {
        format!("/{}", path.replace('\\', "/"))
    } else {
        path.to_owned()
    };
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            // What follows is not part of the path.
            b'?' | b'#' => break,
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn paths_round_trip() {
        for path in ["/a", "/with space/ü#1%.txt", "/a+b/c:d/[e]?", "/"] {
            assert_eq!(to_path(&of_path(path)).as_deref(), Some(path));
        }
        assert_eq!(of_path("/a b/ü"), "file:///a%20b/%C3%BC");
    }

    #[test]
    fn uri_of_another_kind_or_host_has_no_path() {
        assert_eq!(to_path("file://localhost/a").as_deref(), Some("/a"));
        for uri in [
            "untitled:1",
            "file://other/a",
            "file:a",
            "file:///%f",
            "file:///%ff",
            "",
        ] {
            assert_eq!(to_path(uri), None, "{uri}");
        }
    }
}

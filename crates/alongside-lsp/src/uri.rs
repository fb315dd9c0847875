//! `file:` URIs.

use alongside_platform::{Platform, path};

/// The absolute path of a `file:` URI; `None` for every other kind, such as an unsaved buffer's.
pub(super) fn to_path(uri: &str) -> Option<String> {
    to_path_on(Platform::current(), uri)
}

/// The URI of an absolute path.
pub(super) fn of_path(path: &str) -> String {
    of_path_on(Platform::current(), path)
}

fn to_path_on(platform: Platform, uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    let (host, path) = rest.split_at(rest.find('/')?);
    let path = decoded(path)?;
    let is_local = host.is_empty() || host == "localhost";
    match platform {
        Platform::Windows if is_local => {
            // A drive: `/C:/file` is `C:/file`. Some clients send a share as `////server/share`.
            let plain = path.trim_start_matches('/');
            let plain = if path::is_absolute(platform, plain) {
                plain.to_owned()
            } else if path.starts_with("//") {
                format!("//{plain}")
            } else {
                return None;
            };
            Some(path::spelled(platform, &plain).into_owned())
        }
        Platform::Windows => Some(path::spelled(platform, &format!("//{host}{path}")).into_owned()),
        Platform::Unix | Platform::MacOs => is_local.then_some(path),
    }
}

fn of_path_on(platform: Platform, path: &str) -> String {
    let path = match platform {
        Platform::Unix | Platform::MacOs => path.to_owned(),
        Platform::Windows => {
            let plain = path::spelled(platform, path).replace('\\', "/");
            // A share is on its own host.
            match plain.strip_prefix("//") {
                Some(share) => share.to_owned(),
                None => format!("/{plain}"),
            }
        }
    };
    let mut uri = String::from("file://");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_round_trip() {
        for path in ["/a", "/with space/ü#1%.txt", "/a+b/c:d/[e]?", "/"] {
            let uri = of_path_on(Platform::Unix, path);
            assert_eq!(to_path_on(Platform::Unix, &uri).as_deref(), Some(path));
        }
        assert_eq!(of_path_on(Platform::Unix, "/a b/ü"), "file:///a%20b/%C3%BC");
        for path in [r"C:\a", r"C:\with space\ü#1%.txt", r"\\server\share\x", "C:\\"] {
            let uri = of_path_on(Platform::Windows, path);
            assert_eq!(to_path_on(Platform::Windows, &uri).as_deref(), Some(path), "{uri}");
        }
    }

    #[test]
    fn windows_drive_and_share_are_read_in_every_spelling() {
        for (uri, path) in [
            ("file:///c%3A/proj/a.txt", Some(r"C:\proj\a.txt")),
            ("file:///C:/proj", Some(r"C:\proj")),
            ("file://localhost/C:/proj", Some(r"C:\proj")),
            ("file://server/share/x", Some(r"\\server\share\x")),
            ("file:////server/share/x", Some(r"\\server\share\x")),
            ("file://///server/share/x", Some(r"\\server\share\x")),
            ("file:///proj", None),
            ("untitled:1", None),
        ] {
            assert_eq!(to_path_on(Platform::Windows, uri).as_deref(), path, "{uri}");
        }
        assert_eq!(of_path_on(Platform::Windows, r"\\?\C:\x"), "file:///C%3A/x");
        assert_eq!(
            of_path_on(Platform::Windows, r"\\server\share\x"),
            "file://server/share/x"
        );
    }

    #[test]
    fn uri_of_another_kind_or_host_has_no_path() {
        assert_eq!(to_path_on(Platform::Unix, "file://localhost/a").as_deref(), Some("/a"));
        for uri in [
            "untitled:1",
            "file://other/a",
            "file:a",
            "file:///%f",
            "file:///%ff",
            "",
        ] {
            assert_eq!(to_path_on(Platform::Unix, uri), None, "{uri}");
        }
    }
}

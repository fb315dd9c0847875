//! `file:` URIs, in which editors and agents name files.

use crate::{Platform, path};

/// How strictly a URI is one. Language clients follow the standard; agents put a path behind `file://`, more or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UriForm {
    /// `C%3A`, as VS Code writes it. A query and a fragment are not part of the path.
    LanguageClient,
    /// `C:`, as Node writes it. `?` and `#` are part of the path.
    Agent,
}

/// The absolute path of a `file:` URI; `None` for every other kind, such as an unsaved buffer's.
pub fn to_path(platform: Platform, form: UriForm, uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    // Without the slash before the drive, which would be its host.
    if platform == Platform::Windows
        && let Some(path) = decoded(form, rest)
        && path::is_absolute(platform, &path)
        && !path.starts_with(['/', '\\'])
    {
        return Some(path::spelled(platform, &path).into_owned());
    }
    let (host, path) = rest.split_at(rest.find('/')?);
    let path = decoded(form, path)?;
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

/// The URI of an absolute path.
pub fn of_path(platform: Platform, form: UriForm, path: &str) -> String {
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
    let plain: &[u8] = match form {
        UriForm::LanguageClient => b"/-._~",
        UriForm::Agent => b"/-._~:",
    };
    let mut uri = String::from("file://");
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

fn decoded(form: UriForm, text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
                let (high, low) = (digit()?, digit()?);
                u8::try_from(16 * high + low).ok()?
            }
            b'?' | b'#' if form == UriForm::LanguageClient => break,
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMS: [UriForm; 2] = [UriForm::LanguageClient, UriForm::Agent];

    #[test]
    fn path_survives_its_uri() {
        for form in FORMS {
            for path in ["/a", "/with space/ü#1%.txt", "/a+b/c:d/[e]?", "/"] {
                let uri = of_path(Platform::Unix, form, path);
                assert_eq!(to_path(Platform::Unix, form, &uri).as_deref(), Some(path));
            }
            assert_eq!(of_path(Platform::Unix, form, "/a b/ü"), "file:///a%20b/%C3%BC");
            for path in [r"C:\a", r"C:\with space\ü#1%.txt", r"\\server\share\x", "C:\\"] {
                let uri = of_path(Platform::Windows, form, path);
                assert_eq!(to_path(Platform::Windows, form, &uri).as_deref(), Some(path), "{uri}");
            }
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
            (r"file://c:\proj\a.txt", Some(r"C:\proj\a.txt")),
            ("file://C:/proj", Some(r"C:\proj")),
            ("file:///proj", None),
            ("untitled:1", None),
        ] {
            for form in FORMS {
                assert_eq!(to_path(Platform::Windows, form, uri).as_deref(), path, "{uri}");
            }
        }
    }

    #[test]
    fn windows_uri_has_one_spelling() {
        for (path, client, agent) in [
            (r"\\?\C:\x", "file:///C%3A/x", "file:///C:/x"),
            (r"c:\a b", "file:///C%3A/a%20b", "file:///C:/a%20b"),
            (r"\\server\share\x", "file://server/share/x", "file://server/share/x"),
            (
                r"\\?\UNC\server\share\x",
                "file://server/share/x",
                "file://server/share/x",
            ),
        ] {
            assert_eq!(of_path(Platform::Windows, UriForm::LanguageClient, path), client);
            assert_eq!(of_path(Platform::Windows, UriForm::Agent, path), agent);
        }
    }

    #[test]
    fn query_is_part_of_an_agents_path_only() {
        let path = |form| to_path(Platform::Unix, form, "file:///a?b#c");
        assert_eq!(path(UriForm::LanguageClient).as_deref(), Some("/a"));
        assert_eq!(path(UriForm::Agent).as_deref(), Some("/a?b#c"));
    }

    #[test]
    fn uri_of_another_kind_or_host_has_no_path() {
        for form in FORMS {
            let path = |uri| to_path(Platform::Unix, form, uri);
            assert_eq!(path("file://localhost/a").as_deref(), Some("/a"));
            for uri in [
                "untitled:1",
                "file://other/a",
                "file:a",
                "file:///%",
                "file:///%f",
                "file:///%+1",
                "file:///%zz",
                "file:///%ff",
                "http://a/b",
                "",
            ] {
                assert_eq!(path(uri), None, "{uri}");
            }
        }
    }
}

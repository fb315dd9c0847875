//! `file:` URLs, which some agents use in place of paths.

use std::path::PathBuf;

use alongside_platform::uri::{UriForm, of_path, to_path};
use alongside_platform::{Platform, path};

/// The URL of an absolute path.
pub(crate) fn file_url(path: &str) -> String {
    of_path(Platform::current(), UriForm::Agent, path)
}

/// The path of a URL, or of what is a path already; `None` if it is neither.
pub(crate) fn path_of(url: &str) -> Option<PathBuf> {
    path_on(Platform::current(), url).map(PathBuf::from)
}

fn path_on(platform: Platform, url: &str) -> Option<String> {
    if path::is_absolute(platform, url) {
        Some(url.to_owned())
    } else {
        to_path(platform, UriForm::Agent, url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_names_a_file_by_its_path_or_its_url() {
        for (platform, named, path) in [
            (Platform::Unix, "/w/a b.txt", Some("/w/a b.txt")),
            (Platform::Unix, "file:///w/a%20b.txt", Some("/w/a b.txt")),
            (Platform::Unix, "a.txt", None),
            (Platform::Unix, "", None),
            (Platform::Windows, r"C:\w\a b.txt", Some(r"C:\w\a b.txt")),
            (Platform::Windows, r"\\server\share\x", Some(r"\\server\share\x")),
            (Platform::Windows, "file:///C:/w/a%20b.txt", Some(r"C:\w\a b.txt")),
            (Platform::Windows, "file://server/share/x", Some(r"\\server\share\x")),
            (Platform::Windows, r"file://C:\w\a.txt", Some(r"C:\w\a.txt")),
            (Platform::Windows, "C:a.txt", None),
        ] {
            assert_eq!(path_on(platform, named).as_deref(), path, "{named}");
        }
    }
}

//! `file:` URIs as language clients write them.

use alongside_platform::Platform;
use alongside_platform::uri::{UriForm, of_path as uri_of_path, to_path as path_of_uri};

/// The absolute path of a `file:` URI; `None` for every other kind, such as an unsaved buffer's.
pub(super) fn to_path(uri: &str) -> Option<String> {
    path_of_uri(Platform::current(), UriForm::LanguageClient, uri)
}

/// The URI of an absolute path.
pub(super) fn of_path(path: &str) -> String {
    uri_of_path(Platform::current(), UriForm::LanguageClient, path)
}

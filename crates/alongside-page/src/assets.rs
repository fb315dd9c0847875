//! The page's files, embedded in the binary.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::sync::OnceLock;

use bytes::Bytes;
use dist::Dist;
use flate2::Compression;
use flate2::write::GzEncoder;
use parking_lot::Mutex;

/// Replaced in `index.html` with the nonce for styles.
pub(crate) const NONCE_PLACEHOLDER: &str = "%STYLE_NONCE%";

mod dist {
    #![allow(
        clippy::disallowed_methods,
        reason = "the derived code finds the folder with it in a debug build"
    )]

    use rust_embed::RustEmbed;

    /// The output of `npm run build`. A debug build reads it from disk, so that a rebuilt page shows without recompiling.
    #[derive(RustEmbed)]
    #[folder = "../../web/dist"]
    pub(super) struct Dist;
}

#[derive(Clone, Debug)]
pub(crate) struct Asset {
    pub(crate) bytes: Bytes,
    /// `None` if compression does not make it smaller.
    pub(crate) gzip: Option<Bytes>,
    pub(crate) content_type: &'static str,
    /// In quotes, as the header has it.
    pub(crate) etag: String,
}

pub(crate) fn index() -> Option<String> {
    let file = Dist::get("index.html")?;
    String::from_utf8(file.data.into_owned()).ok()
}

/// Finds only names that existed when the program was built.
pub(crate) fn find(name: &str) -> Option<Asset> {
    let content_type = content_type(name)?;
    let file = Dist::get(name)?;
    let hash = file.metadata.sha256_hash();
    let etag = hash
        .iter()
        .take(16)
        .fold(String::from("\""), |text, byte| text + &format!("{byte:02x}"))
        + "\"";
    let bytes = match file.data {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => Bytes::from(bytes),
    };
    let gzip = compressed(&etag, &bytes);
    Some(Asset {
        bytes,
        gzip,
        content_type,
        etag,
    })
}

/// `index.html` has no type here, so it is not found: it is served with a nonce instead.
fn content_type(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    match extension {
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        "txt" => Some("text/plain; charset=utf-8"),
        _ => None,
    }
}

/// Compresses each file only once.
fn compressed(etag: &str, bytes: &Bytes) -> Option<Bytes> {
    static KNOWN: OnceLock<Mutex<HashMap<String, Option<Bytes>>>> = OnceLock::new();
    let known = KNOWN.get_or_init(Mutex::default);
    if let Some(known) = known.lock().get(etag) {
        return known.clone();
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let result = encoder.write_all(bytes).and_then(|()| encoder.finish());
    let smaller = result.ok().filter(|gzip| gzip.len() < bytes.len()).map(Bytes::from);
    known.lock().insert(etag.to_owned(), smaller.clone());
    smaller
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_has_a_nonce_and_no_inline_script_or_style() {
        let index = index().unwrap();
        assert!(index.contains(NONCE_PLACEHOLDER));
        assert!(!index.contains("<style") && !index.contains(" style="));
        for script in index.split("<script").skip(1) {
            assert!(script.contains("src=\"/"), "{script}");
        }
    }

    #[test]
    fn compressed_page_is_under_400_kilobytes() {
        let total: usize = Dist::iter()
            .filter_map(|name| find(&name))
            .map(|asset| asset.gzip.unwrap_or(asset.bytes).len())
            .sum();
        assert!(total > 10_000, "web/dist is missing: npm run build");
        assert!(total < 400_000, "{total}");
    }

    #[test]
    fn unknown_names_are_not_found() {
        for name in ["", "..", "../package.json", "index.html", "nothing.js", "/main.js"] {
            assert!(find(name).is_none(), "{name}");
        }
    }
}

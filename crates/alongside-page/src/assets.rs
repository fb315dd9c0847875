//! The page's files, part of the program.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::sync::OnceLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use parking_lot::Mutex;
use rust_embed::RustEmbed;

/// What stands in `index.html` where the nonce of the page's styles goes.
pub(crate) const NONCE_PLACE: &str = "%STYLE_NONCE%";

/// `web/dist`, as `npm run build` made it. A debug build reads it from the disk, so that the page can be worked on.
#[derive(RustEmbed)]
#[folder = "../../web/dist"]
struct Dist;

/// One file.
#[derive(Clone, Debug)]
pub(crate) struct Asset {
    pub(crate) bytes: Bytes,
    /// The same, compressed; absent if that would not be smaller.
    pub(crate) gzip: Option<Bytes>,
    pub(crate) content_type: &'static str,
    /// Quoted, as it goes into the header.
    pub(crate) etag: String,
}

/// The page itself.
pub(crate) fn index() -> Option<String> {
    let file = Dist::get("index.html")?;
    String::from_utf8(file.data.into_owned()).ok()
}

/// A file by its name; only names that were there when the program was built.
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

/// The page is served as an answer of its own, with a nonce; here it has no type and so is not found.
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

/// Compresses each file once in the life of the program.
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
    fn the_page_has_a_place_for_the_nonce_and_no_inline_script_or_style() {
        let index = index().unwrap();
        assert!(index.contains(NONCE_PLACE));
        assert!(!index.contains("<style") && !index.contains(" style="));
        for script in index.split("<script").skip(1) {
            assert!(script.contains("src=\"/"), "{script}");
        }
    }

    #[test]
    fn the_whole_page_has_less_than_400_kilobytes_compressed() {
        let total: usize = Dist::iter()
            .filter_map(|name| find(&name))
            .map(|asset| asset.gzip.unwrap_or(asset.bytes).len())
            .sum();
        assert!(total > 10_000, "web/dist is missing: npm run build");
        assert!(total < 400_000, "{total}");
    }

    #[test]
    fn names_outside_of_the_page_are_not_found() {
        for name in ["", "..", "../package.json", "index.html", "nothing.js", "/main.js"] {
            assert!(find(name).is_none(), "{name}");
        }
    }
}

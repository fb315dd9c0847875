//! Packages the VS Code extension as a `.vsix`: a zip archive with a manifest.
//!
//! The package has no copy of this program, but its path. Entries are stored uncompressed: the package is written for one
//! installation, on this machine.

use std::path::Path;

use serde_json::{Value, json};

use super::plugins::PluginFiles;

/// Read by the extension's `candidates.ts`.
const RECEIPT: &str = "extension/.alongside-installed.json";

/// The package, or `None` if a file is missing from the embedded ones.
pub(super) fn package(files: &PluginFiles, program: &Path) -> Option<Vec<u8>> {
    let manifest: Value = serde_json::from_slice(files.get("package.json")?).ok()?;
    let list = std::str::from_utf8(files.get("vsix/files.txt")?).ok()?;
    let template = std::str::from_utf8(files.get("vsix/extension.vsixmanifest")?).ok()?;
    let receipt = json!({ "version": env!("CARGO_PKG_VERSION"), "program": program });
    let mut archive = Archive::default();
    archive.add("extension.vsixmanifest", fill(template, &manifest)?.as_bytes());
    archive.add("[Content_Types].xml", files.get("vsix/content-types.xml")?);
    for name in list.lines() {
        let content = files.get(name)?;
        if name == "README.md" {
            let text = without_pictures(std::str::from_utf8(content).ok()?);
            archive.add(&format!("extension/{name}"), text.as_bytes());
        } else {
            archive.add(&format!("extension/{name}"), content);
        }
    }
    archive.add(RECEIPT, receipt.to_string().as_bytes());
    Some(archive.finish())
}

/// The pictures are not in the package. `package.mjs` does the same.
fn without_pictures(text: &str) -> String {
    let paragraphs = text.split("\n\n").filter(|paragraph| !paragraph.starts_with("!["));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// Fills in the template as `package.mjs` does.
fn fill(template: &str, manifest: &Value) -> Option<String> {
    let escaped = |value: &Value| -> Option<String> {
        let text = value.as_str()?;
        Some(text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;"))
    };
    Some(
        template
            .replace("@VERSION@", &escaped(&manifest["version"])?)
            .replace("@DESCRIPTION@", &escaped(&manifest["description"])?)
            .replace("@ENGINE@", &escaped(&manifest["engines"]["vscode"])?)
            .replace("@REPOSITORY@", &escaped(&manifest["repository"]["url"])?)
            .replace("@TARGET@", ""),
    )
}

/// A zip archive with stored entries, without times.
#[derive(Default)]
struct Archive {
    entries: Vec<u8>,
    directory: Vec<u8>,
    count: u16,
}

impl Archive {
    fn add(&mut self, name: &str, content: &[u8]) {
        let offset = length(self.entries.len());
        // Version 2.0, UTF-8 names, stored, 1980-01-01.
        let mut common = vec![20, 0, 0x00, 0x08, 0, 0, 0, 0, 0x21, 0];
        common.extend(crc32(content).to_le_bytes());
        common.extend(length(content.len()).to_le_bytes());
        common.extend(length(content.len()).to_le_bytes());
        common.extend(u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes());
        common.extend([0, 0]);
        self.entries.extend(b"PK\x03\x04");
        self.entries.extend(&common);
        self.entries.extend(name.as_bytes());
        self.entries.extend(content);
        // Made on Unix: the upper half of the external attributes has the mode.
        self.directory.extend(b"PK\x01\x02\x14\x03");
        self.directory.extend(&common);
        self.directory.extend([0; 6]);
        self.directory.extend((0o100_644_u32 << 16).to_le_bytes());
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.count += 1;
    }

    fn finish(mut self) -> Vec<u8> {
        let offset = length(self.entries.len());
        let size = length(self.directory.len());
        self.entries.append(&mut self.directory);
        self.entries.extend(b"PK\x05\x06\0\0\0\0");
        self.entries.extend(self.count.to_le_bytes());
        self.entries.extend(self.count.to_le_bytes());
        self.entries.extend(size.to_le_bytes());
        self.entries.extend(offset.to_le_bytes());
        self.entries.extend([0, 0]);
        self.entries
    }
}

/// The embedded files are far smaller than 4 GiB.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn crc32(content: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            let polynomial = if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
            (crc >> 1) ^ polynomial
        })
    };
    !content.iter().fold(u32::MAX, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plugins;

    #[test]
    fn checksum_is_the_one_of_zip() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn package_has_the_extension_and_the_path_of_the_program() {
        let plugins = Plugins::embedded();
        let files = plugins.files("vscode").expect("the extension is embedded");
        let package = package(files, Path::new("/opt/x/alongside")).expect("every file is there");
        let has = |text: &str| package.windows(text.len()).any(|window| window == text.as_bytes());
        for name in [
            "extension/package.json",
            "extension/dist/extension.js",
            "extension/dist/chat.js",
            "extension/dist/chat.css",
            "extension/icon.png",
            "extension/LICENSE.txt",
            "[Content_Types].xml",
        ] {
            assert!(has(name), "{name}");
        }
        assert!(has("\"program\":\"/opt/x/alongside\""));
        assert!(has("Publisher=\"alongside\"") && !has("@VERSION@") && !has("@REPOSITORY@"));
        assert!(
            has("# Alongside for VS Code") && !has("images/"),
            "a README without pictures"
        );
    }

    /// `package.mjs` packs more; a test of `cargo xtask package` looks at that.
    #[test]
    fn every_packed_file_has_a_type() {
        let plugins = Plugins::embedded();
        let files = plugins.files("vscode").expect("the extension is embedded");
        let text = |name: &str| std::str::from_utf8(&files[name]).expect("it is text");
        let types = text("vsix/content-types.xml");
        for name in text("vsix/files.txt")
            .lines()
            .chain([RECEIPT, "extension.vsixmanifest"])
        {
            let extension = Path::new(name).extension().unwrap_or_default().to_string_lossy();
            let is_known = !extension.is_empty() && types.contains(&format!("Extension=\".{extension}\""));
            assert!(is_known, "{name} has no type in content-types.xml");
        }
    }

    #[test]
    fn sources_and_tools_are_not_embedded() {
        let plugins = Plugins::embedded();
        let files = plugins.files("vscode").expect("the extension is embedded");
        let allowed = |name: &str| name.starts_with("vsix/") || !name.contains('/') || name.starts_with("dist/");
        assert!(files.keys().all(|name| allowed(name)), "{:?}", files.keys());
        assert!(!files.contains_key("package-lock.json"));
    }
}

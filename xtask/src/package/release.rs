//! What is said about a release, from the workspace's Cargo.toml.

use std::fs;
use std::path::{Path, PathBuf};

use super::formats::extension_name;
use super::platform::Platform;
use crate::root;

/// The host of the addresses in Cargo.toml until there are real ones.
const PLACEHOLDER: &str = "example.com";

pub(super) struct Release {
    pub(super) version: String,
    pub(super) description: String,
    pub(super) license: String,
    pub(super) repository: String,
    /// With the address.
    author: String,
}

impl Release {
    pub(super) fn read() -> Result<Self, String> {
        let release = Self::parse(&read("Cargo.toml")?, &read("crates/alongside/Cargo.toml")?)?;
        release.check_changelog(&read("CHANGELOG.md")?)?;
        for manifest in [
            "editors/vscode/package.json",
            "editors/vscode/package-lock.json",
            "web/package.json",
            "web/package-lock.json",
        ] {
            release.check_manifest(manifest, &read(manifest)?)?;
        }
        for lock in ["Cargo.lock", "fuzz/Cargo.lock"] {
            release.check_lock(lock, &read(lock)?)?;
        }
        release.check_text(
            "README.md",
            &read("README.md")?,
            &format!("./{} ", release.deb("amd64")),
        )?;
        let header = format!("\n;; Version: {}\n", release.version);
        let plugin = "editors/emacs/alongside.el";
        release.check_text(plugin, &read(plugin)?, &header)?;
        for (name, line) in release.copies() {
            release.check_copy(name, &read(name)?, &line)?;
        }
        Ok(release)
    }

    fn parse(workspace: &str, program: &str) -> Result<Self, String> {
        let shared = |key: &str| value(workspace, "[workspace.package]", key);
        Ok(Self {
            version: shared("version")?,
            description: value(program, "[package]", "description")?,
            license: shared("license")?,
            repository: shared("repository")?,
            author: shared("authors")?,
        })
    }

    fn check_changelog(&self, changelog: &str) -> Result<(), String> {
        let version = &self.version;
        let newest = changelog.lines().find_map(|line| line.strip_prefix("## "));
        let newest = newest.and_then(|heading| heading.split([',', ' ']).next());
        match newest {
            Some(newest) if newest == version => Ok(()),
            _ => Err(format!(
                "CHANGELOG.md does not begin with version {version}; add `## {version}, DATE`"
            )),
        }
    }

    /// Compares the first version, which is the manifest's own.
    fn check_manifest(&self, name: &str, manifest: &str) -> Result<(), String> {
        let first = manifest.find("\"version\": ").map_or("", |at| &manifest[at..]);
        if first.starts_with(&format!("\"version\": \"{}\"", self.version)) {
            Ok(())
        } else {
            Err(self.other_version(name))
        }
    }

    /// Compares the versions of our crates, except for the fuzz targets: their workspace has a version of its own.
    fn check_lock(&self, name: &str, lock: &str) -> Result<(), String> {
        let packages = lock.split("[[package]]\n").skip(1);
        let mut versions = packages.filter_map(|package| {
            let mut strings = package.lines().map(|line| line.split('"').nth(1).unwrap_or_default());
            let (name, version) = (strings.next()?, strings.next()?);
            let is_ours = name == "alongside" || name.starts_with("alongside-");
            (is_ours && name != "alongside-fuzz").then_some(version)
        });
        if versions.all(|version| version == self.version) {
            return Ok(());
        }
        let manifest = name.replace(".lock", ".toml");
        Err(format!(
            "{name} has another version than Cargo.toml; run `cargo update --workspace --manifest-path {manifest}`"
        ))
    }

    fn check_text(&self, name: &str, text: &str, expected: &str) -> Result<(), String> {
        if text.contains(expected) {
            Ok(())
        } else {
            Err(self.other_version(name))
        }
    }

    /// Files that are not made from a template but have what is in Cargo.toml, each with how it has that.
    fn copies(&self) -> [(&'static str, String); 8] {
        let Self {
            license, repository, ..
        } = self;
        let plugin = "editors/emacs/alongside.el";
        [
            (plugin, format!("\n;; Author: {}\n", self.author())),
            (plugin, format!("\n;; URL: {repository}\n")),
            (plugin, format!("\n;; SPDX-License-Identifier: {license}\n")),
            ("editors/emacs/README.md", format!("\"{repository}.git\"")),
            ("editors/neovim/README.md", format!("'{repository}.git'")),
            ("editors/vim/README.md", format!("'{repository}.git'")),
            ("editors/vscode/package.json", format!("\"license\": \"{license}\"")),
            ("editors/vscode/package.json", format!("\"url\": \"{repository}\"")),
        ]
    }

    fn check_copy(&self, name: &str, text: &str, line: &str) -> Result<(), String> {
        // A file may have several copies, of which only some were changed.
        let is_left = !self.has_placeholders() && text.contains(PLACEHOLDER);
        if text.contains(line) && !is_left {
            return Ok(());
        }
        let line = line.trim();
        Err(format!(
            "{name} has another author, license or repository than Cargo.toml; it needs `{line}`"
        ))
    }

    fn other_version(&self, name: &str) -> String {
        format!("{name} has another version than Cargo.toml; set it to {}", self.version)
    }

    /// Fails if GitHub runs this for a tag of another version, or with placeholders: everything would be published below an address that no
    /// manifest has.
    pub(super) fn check_tag(&self, kind: Option<&str>, name: Option<&str>) -> Result<(), String> {
        let expected = format!("v{}", self.version);
        match (kind, name) {
            (Some("tag"), Some(name)) if name == expected && self.has_placeholders() => Err(format!(
                "cannot release {name}: `repository` or `authors` in Cargo.toml is a placeholder with {PLACEHOLDER}; see docs/RELEASING.md"
            )),
            (Some("tag"), Some(name)) if name == expected => Ok(()),
            (Some("tag"), name) => Err(format!(
                "the tag {} is not {expected}, the version in Cargo.toml; set the version, or tag the commit {expected}",
                name.unwrap_or("without a name")
            )),
            _ => Ok(()),
        }
    }

    /// `NAME <ADDRESS>`, as Debian wants it.
    pub(super) fn maintainer(&self) -> &str {
        &self.author
    }

    pub(super) fn author(&self) -> &str {
        self.author.split(" <").next().unwrap_or(&self.author)
    }

    pub(super) fn has_placeholders(&self) -> bool {
        [&self.repository, &self.author]
            .iter()
            .any(|text| text.contains(PLACEHOLDER))
    }

    /// The directory in an archive, and its name without the end.
    pub(super) fn name(&self, platform: &Platform) -> String {
        format!("alongside-{}-{}", self.version, platform.triple)
    }

    pub(super) fn archive(&self, out: &Path, platform: &Platform) -> PathBuf {
        let ending = if platform.is_windows() { "zip" } else { "tar.gz" };
        out.join(format!("{}.{ending}", self.name(platform)))
    }

    pub(super) fn wheel(&self, platform: &Platform) -> String {
        format!("alongside_ide-{}-py3-none-{}.whl", self.version, platform.wheel)
    }

    pub(super) fn deb(&self, architecture: &str) -> String {
        format!("alongside_{}_{architecture}.deb", self.version)
    }

    /// npm chooses the names of its packages.
    pub(super) fn npm_root(&self) -> String {
        format!("alongside-ide-{}.tgz", self.version)
    }

    /// The files that are made for a platform.
    pub(super) fn files(&self, platform: &Platform) -> Vec<String> {
        let archive = self.archive(Path::new(""), platform);
        let npm = format!("alongside-ide-{}-{}.tgz", platform.npm.name, self.version);
        let mut files = vec![archive.display().to_string(), npm, self.wheel(platform)];
        files.extend(platform.debian.map(|architecture| self.deb(architecture)));
        files.extend(platform.vscode.iter().map(|name| extension_name(name)));
        files
    }

    /// Where an archive can be downloaded.
    pub(super) fn url(&self, platform: &Platform) -> String {
        let archive = self.archive(Path::new(""), platform);
        format!(
            "{}/releases/download/v{}/{}",
            self.repository,
            self.version,
            archive.display()
        )
    }

    /// A text of `packaging/` with `@NAME@` filled in: with what is in Cargo.toml, escaped for the template's format, and with more, as it is.
    pub(super) fn fill(&self, template: &str, more: &[(&str, &str)]) -> Result<String, String> {
        let text = read(&format!("packaging/{template}"))?;
        let escape: fn(&str) -> String = match template.rsplit('.').next() {
            // A string in YAML's double quotes may be one of JSON's.
            Some("json" | "yaml") => json,
            Some("rb") => ruby,
            // The value has a line, or the rest of one, to itself.
            _ => str::to_owned,
        };
        self.fill_text(&text, more, escape)
            .map_err(|reason| format!("packaging/{template}: {reason}"))
    }

    fn fill_text(&self, text: &str, more: &[(&str, &str)], escape: fn(&str) -> String) -> Result<String, String> {
        let shared = [
            ("VERSION", self.version.as_str()),
            ("DESCRIPTION", &self.description),
            ("LICENSE", &self.license),
            ("REPOSITORY", &self.repository),
            ("MAINTAINER", self.maintainer()),
            ("AUTHOR", self.author()),
        ]
        .map(|(name, value)| (name, escape(value)));
        let shared = shared.each_ref().map(|(name, value)| (*name, value.as_str()));
        let mut parts = text.split('@');
        let mut filled = parts.next().unwrap_or_default().to_owned();
        while let Some(part) = parts.next() {
            let is_name = !part.is_empty()
                && part
                    .chars()
                    .all(|letter| letter.is_ascii_uppercase() || "_0123456789".contains(letter));
            if !is_name {
                filled.push('@');
                filled.push_str(part);
                continue;
            }
            let known = shared.iter().chain(more).find(|(name, _)| *name == part);
            let (_, value) = known.ok_or_else(|| format!("nothing is known for `@{part}@`"))?;
            filled.push_str(value);
            filled.push_str(parts.next().unwrap_or_default());
        }
        Ok(filled)
    }
}

/// The inside of a string in JSON.
pub(super) fn json(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// The inside of a Ruby string in double quotes.
pub(super) fn ruby(text: &str) -> String {
    json(text).replace('#', "\\#")
}

fn read(path: &str) -> Result<String, String> {
    let path = root().join(path);
    fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// The first string of a key's line in a section of a Cargo.toml.
fn value(manifest: &str, section: &str, key: &str) -> Result<String, String> {
    let mut lines = manifest.lines().skip_while(|line| *line != section).skip(1);
    let line = lines
        .by_ref()
        .take_while(|line| !line.starts_with('['))
        .find(|line| line.split('=').next().is_some_and(|name| name.trim() == key));
    let value = line.and_then(|line| line.split('"').nth(1));
    match value {
        // Not even a quotation mark is read.
        Some(value) if value.contains('\\') => Err(format!(
            "cannot read `{key}` in {section} of Cargo.toml: it has a backslash"
        )),
        Some(value) => Ok(value.to_owned()),
        None => Err(format!("Cargo.toml has no `{key}` in {section}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::platform::{self, PLATFORMS};
    use super::*;

    const WORKSPACE: &str = "[workspace]\nversion = \"9\"\n[workspace.package]\nversion = \"1.2.3\"\nlicense = \"MIT\"\n\
                             authors = [\"A <a@b.c>\"]\nrepository = \"https://r\"\n[x]\nversion = \"8\"\n";

    fn release() -> Release {
        Release::parse(WORKSPACE, "[package]\ndescription = \"D\"\n").unwrap()
    }

    #[test]
    fn workspace_is_the_only_source() {
        let release = release();
        assert_eq!(
            (release.version.as_str(), release.author(), release.maintainer()),
            ("1.2.3", "A", "A <a@b.c>")
        );
        assert!(Release::parse("", "").is_err());
        let escaped = Release::parse(WORKSPACE, "[package]\ndescription = \"a \\\"b\\\"\"\n");
        assert!(escaped.is_err_and(|reason| reason.contains("backslash")));
        assert!(!release.has_placeholders());
    }

    #[test]
    fn other_versions_are_refused() {
        let release = release();
        assert!(
            release
                .check_changelog("# Changelog\n\n## 1.2.3, unreleased\n\n## 1.2.2\n")
                .is_ok()
        );
        assert!(
            release
                .check_changelog("# Changelog\n\n## 1.2.2, 2026-01-01\n")
                .is_err()
        );
        assert!(release.check_manifest("x", "{\"version\": \"1.2.3\"}").is_ok());
        assert!(release.check_manifest("x", "{\"version\": \"1.2.4\"}").is_err());
        let dependency = "{\"version\": \"1.2.2\", \"packages\": {\"a\": {\"version\": \"1.2.3\"}}}";
        assert!(release.check_manifest("x", dependency).is_err());
        let lock = |version: &str| {
            let other = "[[package]]\nname = \"serde\"\nversion = \"1.0.0\"\n";
            let fuzz = "[[package]]\nname = \"alongside-fuzz\"\nversion = \"0.0.1\"\n";
            let own = format!("[[package]]\nname = \"alongside-core\"\nversion = \"{version}\"\n");
            release.check_lock("fuzz/Cargo.lock", &[other, fuzz, &own].concat())
        };
        assert_eq!(lock("1.2.3"), Ok(()));
        assert!(lock("1.2.2").unwrap_err().contains("--manifest-path fuzz/Cargo.toml`"));
        let name = release.deb("amd64");
        assert!(
            release
                .check_text("x", "apt install ./alongside_1.2.3_amd64.deb", &name)
                .is_ok()
        );
        assert!(
            release
                .check_text("x", "apt install ./alongside_1.2.2_amd64.deb", &name)
                .is_err()
        );
    }

    #[test]
    fn tag_of_another_version_is_refused() {
        let release = release();
        assert_eq!(release.check_tag(Some("tag"), Some("v1.2.3")), Ok(()));
        for name in ["v1.2.4", "1.2.3", "v1.2.3-rc.1"] {
            let reason = release.check_tag(Some("tag"), Some(name)).unwrap_err();
            assert!(reason.contains(name) && reason.contains("v1.2.3"), "{reason}");
        }
        // By hand, and outside of GitHub.
        assert_eq!(release.check_tag(Some("branch"), Some("main")), Ok(()));
        assert_eq!(release.check_tag(None, None), Ok(()));
    }

    #[test]
    fn tag_with_placeholders_is_refused() {
        for placeholder in ["https://r", "a@b.c"] {
            let workspace = WORKSPACE.replace(placeholder, "https://example.com/r");
            let release = Release::parse(&workspace, "[package]\ndescription = \"D\"\n").unwrap();
            let reason = release.check_tag(Some("tag"), Some("v1.2.3")).unwrap_err();
            assert!(reason.contains("placeholder"), "{reason}");
            assert_eq!(release.check_tag(Some("branch"), Some("main")), Ok(()));
        }
    }

    #[test]
    fn copies_of_another_repository_are_refused() {
        let release = release();
        for (name, line) in release.copies() {
            assert_eq!(release.check_copy(name, &format!("a{line}b"), &line), Ok(()));
            let reason = release.check_copy(name, "https://other", &line).unwrap_err();
            assert!(reason.contains(name), "{reason}");
        }
        let half = "'https://r.git' or 'https://example.com/r.git'";
        assert!(release.check_copy("x", half, "'https://r.git'").is_err());
    }

    /// So that `cargo test` finds it before a release does.
    #[test]
    fn every_manifest_has_the_version_of_the_workspace() {
        Release::read().unwrap();
    }

    #[test]
    fn templates_are_filled_and_unknown_names_are_errors() {
        let release = release();
        let filled = release.fill_text("a@VERSION@b @X_1@ me@host @ @", &[("X_1", "y")], json);
        assert_eq!(filled.unwrap(), "a1.2.3b y me@host @ @");
        assert!(release.fill_text("@UNKNOWN@", &[], json).is_err());
    }

    /// It has no package of its own, but emulates what the one for x64 has.
    #[test]
    fn npm_and_pip_install_the_program_on_windows_on_arm() {
        let windows = platform::find("x86_64-pc-windows-gnu").unwrap();
        assert!(windows.npm.cpu.contains(&"arm64"));
        assert!(windows.wheel.split('.').any(|tag| tag == "win_arm64"));
    }

    /// cargo-binstall downloads what is written here, and takes the program out of it. Compilers for Linux and Windows have other names
    /// than ours for systems that run our programs.
    #[test]
    fn binstall_finds_the_program_in_every_archive() {
        let manifest = read("crates/alongside/Cargo.toml").unwrap();
        let release = Release::read().unwrap();
        let own = PLATFORMS.iter().map(|platform| (platform.triple, platform));
        let others = [
            ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl"),
            ("aarch64-unknown-linux-gnu", "aarch64-unknown-linux-musl"),
            ("x86_64-pc-windows-msvc", "x86_64-pc-windows-gnu"),
        ];
        let others = others.map(|(target, triple)| (target, platform::find(triple).unwrap()));
        for (target, platform) in own.chain(others) {
            let section = format!("[package.metadata.binstall.overrides.{target}]");
            let field = |key| {
                let field =
                    value(&manifest, &section, key).or_else(|_| value(&manifest, "[package.metadata.binstall]", key));
                [
                    ("repo", release.repository.as_str()),
                    ("version", &release.version),
                    ("target", target),
                    ("bin", "alongside"),
                    ("binary-ext", if platform.is_windows() { ".exe" } else { "" }),
                ]
                .iter()
                .fold(field.unwrap(), |text, (name, value)| {
                    text.replace(&format!("{{ {name} }}"), value)
                })
            };
            assert_eq!(field("pkg-url"), release.url(platform), "{target}");
            let program = format!("{}/{}", release.name(platform), platform.program);
            assert_eq!(field("bin-dir"), program, "{target}");
            let format = if platform.is_windows() { "zip" } else { "tgz" };
            assert_eq!(field("pkg-fmt"), format, "{target}");
        }
    }
}

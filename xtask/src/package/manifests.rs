//! What depends on all packages: npm's root package, the manifests of other package managers, and the list of hashes.

use std::fs;
use std::path::{Path, PathBuf};

use super::platform::{PLATFORMS, Platform};
use super::release::{Release, json, ruby};
use super::{formats, output, python, write as write_file};

const SUMS: &str = "SHA256SUMS";

/// A file with its hash and size.
struct Sum {
    sha256: String,
    bytes: u64,
    name: String,
}

/// Writes them for the packages in a directory.
pub(super) fn write(release: &Release, out: &Path) -> Result<(), String> {
    let there: Vec<&Platform> = PLATFORMS
        .iter()
        .filter(|platform| release.archive(out, platform).is_file())
        .collect();
    if there.is_empty() {
        return Err(format!(
            "there are no packages of version {} in {}",
            release.version,
            out.display()
        ));
    }
    formats::npm_root(release, &there, out)?;
    write_for_managers(release, &there, out)?;
    list(out)
}

/// The formula and the manifests that refer to archives.
fn write_for_managers(release: &Release, there: &[&Platform], out: &Path) -> Result<(), String> {
    let hash = |platform: &Platform| -> Result<String, String> {
        let sums = sums(&[release.archive(out, platform)])?;
        sums.into_iter()
            .next()
            .map(|sum| sum.sha256)
            .ok_or_else(|| "cannot hash an archive".to_owned())
    };
    let mut archives = Vec::new();
    for platform in there.iter().filter(|platform| !platform.is_windows()) {
        archives.push((*platform, hash(platform)?));
    }
    let licenses = release
        .license
        .split(" OR ")
        .map(|license| format!("\"{}\"", ruby(license)));
    let licenses = licenses.collect::<Vec<_>>().join(", ");
    let formula = release.fill(
        "homebrew/alongside.rb",
        &[("ARCHIVES", &blocks(release, &archives)), ("LICENSES", &licenses)],
    )?;
    write_file(&out.join("homebrew/alongside.rb"), formula)?;
    if let Some(platform) = there.iter().find(|platform| platform.is_windows()) {
        windows(release, platform, &hash(platform)?, out)?;
    } else {
        eprintln!("xtask: no manifests for scoop and winget: there is no archive for Windows");
    }
    Ok(())
}

fn windows(release: &Release, platform: &Platform, sha256: &str, out: &Path) -> Result<(), String> {
    let (url, directory) = (json(&release.url(platform)), release.name(platform));
    let licenses = json(&release.license.replace(" OR ", "|"));
    let facts = |sha256| {
        [
            ("URL", url.as_str()),
            ("SHA256", sha256),
            ("DIRECTORY", &directory),
            ("TARGET", platform.triple),
            ("LICENSES", &licenses),
        ]
    };
    let manifest = release.fill("scoop/alongside.json", &facts(sha256))?;
    write_file(&out.join("scoop/alongside.json"), manifest)?;
    // winget's own tools write it this way.
    let sha256 = sha256.to_uppercase();
    for name in ["", ".installer", ".locale.en-US"] {
        let name = format!("winget/Alongside.Alongside{name}.yaml");
        write_file(&out.join(&name), release.fill(&name, &facts(&sha256))?)?;
    }
    Ok(())
}

/// The formula's part for each system and architecture.
fn blocks(release: &Release, archives: &[(&Platform, String)]) -> String {
    let mut text = String::new();
    for (system, is_mac) in [("on_macos", true), ("on_linux", false)] {
        let of_system: Vec<_> = archives
            .iter()
            .filter(|(platform, _)| platform.is_mac() == is_mac)
            .collect();
        if of_system.is_empty() {
            continue;
        }
        text.push_str(&format!("  {system} do\n"));
        for (platform, sha256) in of_system {
            let architecture = if platform.is_arm() { "on_arm" } else { "on_intel" };
            let url = ruby(&release.url(platform));
            text.push_str(&format!(
                "    {architecture} do\n      url \"{url}\"\n      sha256 \"{sha256}\"\n    end\n"
            ));
        }
        text.push_str("  end\n");
    }
    text
}

/// Writes the hashes of all files that are published, and prints their sizes.
fn list(out: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", out.display());
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(out).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() && !path.ends_with(SUMS) {
            paths.push(path);
        }
    }
    paths.sort();
    let mut text = String::new();
    for sum in sums(&paths)? {
        eprintln!("{:>11}  {}", sum.bytes, sum.name);
        text.push_str(&format!("{}  {}\n", sum.sha256, sum.name));
    }
    write_file(&out.join(SUMS), text)
}

fn sums(paths: &[PathBuf]) -> Result<Vec<Sum>, String> {
    let mut command = python(&["pack.py", "sums"]);
    command.args(paths);
    let printed = String::from_utf8_lossy(&output(command)?).into_owned();
    let parse = |line: &str| {
        let mut fields = line.split('\t');
        Some(Sum {
            sha256: fields.next()?.to_owned(),
            bytes: fields.next()?.parse().ok()?,
            name: fields.next()?.to_owned(),
        })
    };
    let sums: Option<Vec<Sum>> = printed.lines().map(parse).collect();
    sums.ok_or_else(|| format!("cannot read the hashes: {printed}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::process::Command;

    use super::super::stage;
    use super::formats::Share;
    use super::*;
    use crate::{cache, target_directory};

    /// The text between two others.
    fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
        let (_, rest) = text
            .split_once(before)
            .unwrap_or_else(|| panic!("no {before} in {text}"));
        rest.split_once(after).unwrap().0
    }

    fn contains(bytes: &[u8], text: &str) -> bool {
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    }

    /// What no format may take for something else than text.
    const HOSTILE: &str = r#"a: "b" \ #{c}"#;

    /// Prints every field and its value, each on a line of its own.
    const SCOOP: &str = r#"
import json, sys
def show(path, value):
    if isinstance(value, dict):
        for name in value:
            show([*path, name], value[name])
    else:
        print(".".join(path), value, sep="\n")
show([], json.load(open(sys.argv[1])))
"#;

    /// The same for the part of YAML in the manifests: a string in quotes is one of JSON's, and any other has only harmless characters.
    const WINGET: &str = r#"
import json, re, sys
for line in open(sys.argv[1]):
    field = re.fullmatch(r'(?:- |  )?(\w+): (?:(".*")|([\w./\\-]+))\n', line)
    if field:
        name, quoted, plain = field.groups()
        print(name, json.loads(quoted) if quoted else plain, sep="\n")
    elif not re.fullmatch(r'# yaml-language-server: \S+\n|\w+:\n', line):
        sys.exit(f"cannot read {line!r}")
"#;

    fn parse(script: &str, manifest: &Path) -> BTreeMap<String, String> {
        let mut python = Command::new("python3");
        python.args(["-c", script]).arg(manifest);
        let printed = String::from_utf8(output(python).unwrap()).unwrap();
        let mut lines = printed.lines().map(str::to_owned);
        std::iter::from_fn(|| Some((lines.next()?, lines.next()?))).collect()
    }

    /// Each with an archive as it is published, but with a text in place of the program.
    #[test]
    fn manifests_match_the_archives() {
        let mut release = Release::read().unwrap();
        // Of its own, so that nothing real is overwritten.
        release.version = "99.1.2".to_owned();
        release.description = HOSTILE.to_owned();
        let out = target_directory().unwrap().join("manifests-test");
        cache::remove(&out).unwrap();
        let share = stage("share-manifests-test").unwrap();
        write_file(&share.join("README.md"), "read me").unwrap();
        let share = Share::in_directory(share);
        let program = out.join("program");
        for platform in &PLATFORMS {
            // So that no two have the same hash.
            write_file(&program, platform.triple).unwrap();
            formats::archive(&release, platform, &program, &share, &out).unwrap();
        }
        write_for_managers(&release, &PLATFORMS.each_ref(), &out).unwrap();

        let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
        let hash = |platform: &Platform| sums(&[release.archive(&out, platform)]).unwrap().remove(0).sha256;
        let formula = read("homebrew/alongside.rb");
        assert!(
            formula.contains(r#"  desc "a: \"b\" \\ \#{c}""#) && formula.contains(r#"any_of: ["MIT", "Apache-2.0"]"#),
            "{formula}"
        );
        for platform in PLATFORMS.iter().filter(|platform| !platform.is_windows()) {
            let system = if platform.is_mac() { "on_macos" } else { "on_linux" };
            let of_system = between(&formula, &format!("  {system} do\n"), "\n  end\n");
            let architecture = if platform.is_arm() { "on_arm" } else { "on_intel" };
            let block = between(of_system, &format!("    {architecture} do\n"), "    end");
            assert_eq!(between(block, "url \"", "\""), release.url(platform));
            assert_eq!(between(block, "sha256 \"", "\""), hash(platform));
        }
        assert_eq!(formula.matches("sha256").count(), 4);

        let windows = PLATFORMS.iter().find(|platform| platform.is_windows()).unwrap();
        let archive = fs::read(release.archive(&out, windows)).unwrap();
        let scoop = parse(SCOOP, &out.join("scoop/alongside.json"));
        let value = |name: &str| scoop[name].as_str();
        assert_eq!(value("version"), release.version);
        assert_eq!(value("description"), HOSTILE);
        assert_eq!(value("license"), "MIT|Apache-2.0");
        assert_eq!(value("architecture.64bit.url"), release.url(windows));
        assert_eq!(value("architecture.64bit.hash"), hash(windows));
        // A ZIP file has the names as they are.
        let directory = value("architecture.64bit.extract_dir");
        assert!(
            contains(&archive, &format!("{directory}/{}", value("bin"))),
            "{scoop:?}"
        );
        let updated =
            |name: &str| scoop[&format!("autoupdate.architecture.64bit.{name}")].replace("$version", &release.version);
        assert_eq!(updated("url"), release.url(windows));
        assert_eq!(updated("extract_dir"), directory);

        let winget = |name: &str| parse(WINGET, &out.join(format!("winget/Alongside.Alongside{name}.yaml")));
        let installer = winget(".installer");
        assert_eq!(installer["InstallerUrl"], release.url(windows));
        assert_eq!(installer["InstallerSha256"], hash(windows).to_uppercase());
        let program = installer["RelativeFilePath"].replace('\\', "/");
        assert!(contains(&archive, &program), "{installer:?}");
        assert_eq!(winget(".locale.en-US")["ShortDescription"], HOSTILE);
        for name in ["", ".installer", ".locale.en-US"] {
            let manifest = winget(name);
            let fields = ["PackageVersion", "ManifestVersion"].map(|field| manifest[field].as_str());
            assert_eq!(fields, ["99.1.2", "1.12.0"], "{name}");
        }
        cache::remove(&out).unwrap();
    }
}

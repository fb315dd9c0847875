//! The package formats: an archive, an npm package, a wheel, a Debian package, and VS Code extensions.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::permissions::settle;
use super::platform::Platform;
use super::release::{Release, json};
use super::{copy, install_page_packages, output, python, stage, write};
use crate::{cargo, npm, root, run, toolchain};

/// What is the same on all platforms: completions, manual pages and licenses.
pub(super) struct Share {
    directory: PathBuf,
}

/// The shells, and what each calls the script of a program.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "alongside.bash"),
    ("zsh", "_alongside"),
    ("fish", "alongside.fish"),
    ("powershell", "_alongside.ps1"),
    ("elvish", "alongside.elv"),
];

const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

const THIRD_PARTY: &str = "THIRD-PARTY.txt";

impl Share {
    /// Generates it with a program that runs here.
    pub(super) fn generate(release: &Release, program: &Path) -> Result<Self, String> {
        let ask = |arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::null());
            output(command)
        };
        let version = String::from_utf8_lossy(&ask(&["--version"])?).trim().to_owned();
        if version != format!("alongside {}", release.version) {
            return Err(format!(
                "{} is {version}, not {}; build it again",
                program.display(),
                release.version
            ));
        }
        let directory = stage("share")?;
        for (shell, file) in COMPLETIONS {
            write(&directory.join("completions").join(file), ask(&["completions", shell])?)?;
        }
        ask(&["man", "--out", &directory.join("man/man1").to_string_lossy()])?;
        for name in DOCUMENTS {
            copy(&root().join(name), &directory.join(name))?;
        }
        write(&directory.join(THIRD_PARTY), third_party()?)?;
        Ok(Self { directory })
    }

    /// Of anything, for a test.
    #[cfg(test)]
    pub(super) fn in_directory(directory: PathBuf) -> Self {
        Self { directory }
    }

    fn licenses(&self) -> impl Iterator<Item = PathBuf> {
        ["LICENSE-APACHE", "LICENSE-MIT", THIRD_PARTY]
            .into_iter()
            .map(|name| self.directory.join(name))
    }
}

/// The licenses of everything that is compiled into the program.
fn third_party() -> Result<Vec<u8>, String> {
    install_page_packages()?;
    let metadata = output(cargo(&["metadata", "--format-version", "1", "--locked"]))?;
    licenses(&metadata, &root().join("web"))
}

fn licenses(metadata: &[u8], web: &Path) -> Result<Vec<u8>, String> {
    let mut command = python(&["licenses.py"]);
    command.arg(web).arg(toolchain::sysroot()?);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start {command:?}: {error}"))?;
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(metadata));
    let output = child.wait_with_output();
    match (written, output) {
        (Some(Ok(())), Ok(output)) if output.status.success() => Ok(output.stdout),
        _ => Err("cannot collect the licenses of dependencies".to_owned()),
    }
}

/// Writes every package for a platform.
pub(super) fn write_all(
    release: &Release,
    platform: &Platform,
    program: &Path,
    share: &Share,
    out: &Path,
) -> Result<(), String> {
    fs::create_dir_all(out).map_err(|error| format!("cannot create {}: {error}", out.display()))?;
    archive(release, platform, program, share, out)?;
    npm_platform(release, platform, program, share, out)?;
    wheel(release, platform, program, share, out)?;
    if let Some(architecture) = platform.debian {
        deb(release, architecture, program, share, out)?;
    }
    extension(share, &out.join("alongside.vsix"), None)?;
    for name in platform.vscode {
        extension(share, &out.join(extension_name(name)), Some((program, name)))?;
    }
    Ok(())
}

pub(super) fn archive(
    release: &Release,
    platform: &Platform,
    program: &Path,
    share: &Share,
    out: &Path,
) -> Result<(), String> {
    let directory = stage(&release.name(platform))?;
    copy_all(&share.directory, &directory)?;
    copy(program, &directory.join(platform.program))?;
    settle(&directory)?;
    let mut command = python(&["pack.py", "archive"]);
    command.arg(release.archive(out, platform)).arg(&directory);
    run(command)
}

fn npm_platform(
    release: &Release,
    platform: &Platform,
    program: &Path,
    share: &Share,
    out: &Path,
) -> Result<(), String> {
    let names = &platform.npm;
    let directory = stage(&format!("npm-{}", names.name))?;
    let name = format!("@alongside-ide/{}", names.name);
    let quoted = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        names.join(", ")
    };
    let manifest = format!(
        "{{\n{},\n  \"os\": [{}],\n  \"cpu\": [{}],\n  \"preferUnplugged\": true\n}}\n",
        common_manifest(release, &name, &format!("The alongside program for {}", names.name)),
        quoted(&[names.os]),
        quoted(names.cpu),
    );
    write(&directory.join("package.json"), manifest)?;
    let readme = release.fill("npm/platform-README.md", &[("NAME", &name)])?;
    write(&directory.join("README.md"), readme)?;
    for path in share.licenses() {
        copy(&path, &directory.join(path.file_name().unwrap_or_default()))?;
    }
    copy(program, &directory.join("bin").join(platform.program))?;
    npm_pack(&directory, out)
}

/// The package to install: it starts the program in the package of a platform. Returns whether there is any.
pub(super) fn npm_root(release: &Release, platforms: &[&Platform], out: &Path) -> Result<(), String> {
    let directory = stage("npm")?;
    let version = &release.version;
    let packages = platforms
        .iter()
        .map(|platform| format!("    \"@alongside-ide/{}\": \"{version}\"", platform.npm.name));
    let manifest = format!(
        "{{\n{},\n  \"bin\": {{\n    \"alongside\": \"bin/alongside.js\"\n  }},\n  \"engines\": {{\n    \"node\": \">=18\"\n  }},\n  \
         \"optionalDependencies\": {{\n{}\n  }}\n}}\n",
        common_manifest(release, "alongside-ide", &release.description),
        packages.collect::<Vec<_>>().join(",\n"),
    );
    write(&directory.join("package.json"), manifest)?;
    write(&directory.join("README.md"), release.fill("npm/README.md", &[])?)?;
    copy(
        &root().join("packaging/npm/alongside.js"),
        &directory.join("bin/alongside.js"),
    )?;
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&root().join(name), &directory.join(name))?;
    }
    npm_pack(&directory, out)
}

fn common_manifest(release: &Release, name: &str, description: &str) -> String {
    let version = &release.version;
    let [license, repository] = [&release.license, &release.repository].map(|text| json(text));
    let [description, author] = [description, release.author()].map(json);
    format!(
        "  \"name\": \"{name}\",\n  \"version\": \"{version}\",\n  \"description\": \"{description}\",\n  \
         \"license\": \"{license}\",\n  \"author\": \"{author}\",\n  \"homepage\": \"{repository}\",\n  \
         \"repository\": \"{repository}\""
    )
}

fn npm_pack(directory: &Path, out: &Path) -> Result<(), String> {
    settle(directory)?;
    let mut command = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    command
        .args(["pack", "--silent", "--pack-destination"])
        .arg(out)
        .current_dir(directory)
        .stdin(Stdio::null());
    output(command).map(|_| ())
}

fn wheel(release: &Release, platform: &Platform, program: &Path, share: &Share, out: &Path) -> Result<(), String> {
    let version = &release.version;
    let directory = stage(&format!("wheel-{}", platform.npm.name))?;
    let metadata = directory.join(format!("alongside_ide-{version}.dist-info"));
    write(&metadata.join("METADATA"), release.fill("wheel/METADATA", &[])?)?;
    let tags = platform.wheel.split('.').map(|tag| format!("Tag: py3-none-{tag}\n"));
    let tags: String = tags.collect();
    let description = format!("Wheel-Version: 1.0\nGenerator: alongside ({version})\nRoot-Is-Purelib: false\n{tags}");
    write(&metadata.join("WHEEL"), description)?;
    for path in share.licenses() {
        copy(
            &path,
            &metadata.join("licenses").join(path.file_name().unwrap_or_default()),
        )?;
    }
    let scripts = directory.join(format!("alongside_ide-{version}.data/scripts"));
    copy(program, &scripts.join(platform.program))?;
    settle(&directory)?;
    let mut command = python(&["pack.py", "wheel"]);
    command.arg(out.join(release.wheel(platform))).arg(&directory);
    run(command)
}

fn deb(release: &Release, architecture: &str, program: &Path, share: &Share, out: &Path) -> Result<(), String> {
    let directory = stage(&format!("deb-{architecture}"))?;
    let usr = directory.join("usr");
    copy(program, &usr.join("bin/alongside"))?;
    let completions = share.directory.join("completions");
    for (from, to) in [
        ("alongside.bash", "bash-completion/completions/alongside"),
        ("_alongside", "zsh/vendor-completions/_alongside"),
        ("alongside.fish", "fish/vendor_completions.d/alongside.fish"),
    ] {
        copy(&completions.join(from), &usr.join("share").join(to))?;
    }
    let pages = usr.join("share/man/man1");
    copy_all(&share.directory.join("man/man1"), &pages)?;
    let documents = usr.join("share/doc/alongside");
    copy(&root().join("CHANGELOG.md"), &documents.join("changelog"))?;
    write(&documents.join("copyright"), copyright(release, share)?)?;
    let mut compress = python(&["pack.py", "gzip"]);
    compress.arg(documents.join("changelog")).args(files(&pages)?);
    run(compress)?;
    let kilobytes = size(&usr)?.div_ceil(1024).to_string();
    let more = [("ARCHITECTURE", architecture), ("INSTALLED_SIZE", &kilobytes)];
    write(&directory.join("DEBIAN/control"), release.fill("deb/control", &more)?)?;
    // dpkg-deb keeps them, and refuses a control directory that only its owner can read.
    settle(&directory)?;
    let mut command = Command::new("dpkg-deb");
    command
        .args(["--root-owner-group", "-Zxz", "-z9", "--build"])
        .arg(&directory)
        .arg(out.join(release.deb(architecture)))
        // In place of the current time.
        .env("SOURCE_DATE_EPOCH", "0")
        .stdout(Stdio::null());
    run(command)
}

/// All licenses in one file, where Debian looks for them.
fn copyright(release: &Release, share: &Share) -> Result<String, String> {
    let mut text = format!("{} by {}, {}\n", release.repository, release.author(), release.license);
    for path in share.licenses() {
        let license = fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        text.push_str(&format!("\n{license}"));
    }
    Ok(text)
}

pub(super) fn extension_name(platform: &str) -> String {
    format!("alongside-{platform}.vsix")
}

/// The VS Code extension, with the program for one platform inside or, for all others, without.
fn extension(share: &Share, package: &Path, program: Option<(&Path, &str)>) -> Result<(), String> {
    let mut command = Command::new(npm::node());
    command.arg(root().join("editors/vscode/package.mjs"));
    command.arg("--out").arg(package);
    // Also without the program: its chat has the page's packages inside. It has the other license of our own already.
    for name in ["LICENSE-APACHE", THIRD_PARTY] {
        command.arg("--license").arg(share.directory.join(name));
    }
    if let Some((program, platform)) = program {
        command.arg("--program").arg(program).args(["--target", platform]);
    }
    run(command)
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", directory.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        found.push(entry.map_err(failed)?.path());
    }
    Ok(found)
}

fn copy_all(from: &Path, to: &Path) -> Result<(), String> {
    for path in files(from)? {
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_all(&path, &target)?;
        } else {
            copy(&path, &target)?;
        }
    }
    Ok(())
}

fn size(directory: &Path) -> Result<u64, String> {
    let mut sum = 0;
    for path in files(directory)? {
        sum += if path.is_dir() {
            size(&path)?
        } else {
            fs::metadata(&path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?
                .len()
        };
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::super::platform::PLATFORMS;
    use super::*;

    /// Prints the names of a package's files whose type `[Content_Types].xml` does not have. The gallery does not serve those.
    const UNTYPED: &str = r#"
import os, sys, zipfile
from xml.etree import ElementTree
with zipfile.ZipFile(sys.argv[1]) as package:
    types = list(ElementTree.fromstring(package.read("[Content_Types].xml")))
    names = [name for name in package.namelist() if name != "[Content_Types].xml"]
extensions = {entry.get("Extension") for entry in types}
parts = {entry.get("PartName") for entry in types}
print(len(names), *(name for name in names if os.path.splitext(name)[1] not in extensions and "/" + name not in parts))
"#;

    /// Not only packages: also what is in them, and the libraries that every program has.
    #[test]
    fn licenses_of_syntaxes_and_standard_libraries_are_listed() {
        let web = stage("licenses-test").unwrap();
        write(&web.join("package-lock.json"), r#"{"packages": {}}"#).unwrap();
        // Only what a build for this machine has fetched.
        let mut rustc = Command::new("rustc");
        rustc.args(["--print", "host-tuple"]);
        let host = String::from_utf8(output(rustc).unwrap()).unwrap();
        let mut metadata = cargo(&["metadata", "--format-version", "1", "--locked", "--filter-platform"]);
        metadata.arg(host.trim());
        let listed = String::from_utf8(licenses(&output(metadata).unwrap(), &web).unwrap()).unwrap();
        for part in [
            "syntaxes/02_Extra/Kotlin/LICENSE in two-face",
            "Rust's standard library, by the Rust Project Developers: MIT OR Apache-2.0",
            "musl, the C library in the program for Linux: MIT",
            "Rich Felker",
        ] {
            assert!(listed.contains(part), "{part}");
        }
    }

    #[test]
    fn every_file_in_an_extension_has_a_type() {
        let directory = stage("types-test").unwrap();
        for name in ["LICENSE-APACHE", THIRD_PARTY, "program"] {
            write(&directory.join(name), "").unwrap();
        }
        let (share, program) = (Share::in_directory(directory.clone()), directory.join("program"));
        let package = directory.join("alongside.vsix");
        let names = PLATFORMS.iter().flat_map(|platform| platform.vscode);
        for name in names.map(Some).chain([None]) {
            extension(&share, &package, name.map(|name| (program.as_path(), *name))).unwrap();
            let mut python = Command::new("python3");
            python.args(["-c", UNTYPED]).arg(&package);
            let printed = String::from_utf8(output(python).unwrap()).unwrap();
            let count = if name.is_some() { "12" } else { "11" };
            assert_eq!(printed.trim(), count, "{name:?}");
        }
    }
}

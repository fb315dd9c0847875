//! Real editors for the plugin tests, where the system's own are too old.
//!
//! Each gets a launcher in the target directory's `editors` folder. If the system's editor is new enough, the launcher
//! runs that. Otherwise the editor comes from a Debian trixie root file system, created from the same mirror as the
//! system's packages, and runs with that root's libraries; nothing is installed into the system.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{cache, cargo, machine, run};

/// An editor, and how to run it from a root file system.
struct Editor {
    /// Name of the launcher created for the tests.
    launcher: &'static str,
    /// The system's own command.
    program: &'static str,
    /// The oldest supported version.
    least: (u32, u32),
    /// The Debian package, and its program.
    package: &'static str,
    binary: &'static str,
    /// Variables for the editor's data directories; the values are shell patterns under the root.
    files: &'static [(&'static str, &'static str)],
    /// Whether it re-executes itself through `/proc/self/exe`, which must then not be the root's loader.
    respawns: bool,
    /// Arguments that come first; one starting with a slash is a shell pattern under the root.
    arguments: &'static [&'static str],
}

#[rustfmt::skip]
const EDITORS: &[Editor] = &[
    Editor { launcher: "nvim", program: "nvim", least: (0, 10), package: "neovim", binary: "/usr/bin/nvim", files: &[("VIMRUNTIME", "/usr/share/nvim/runtime")], respawns: true, arguments: &[] },
    Editor { launcher: "emacs-30", program: "emacs", least: (30, 0), package: "emacs-nox", binary: "/usr/bin/emacs-nox", files: EMACS_FILES, respawns: false, arguments: &["--dump-file", "/usr/libexec/emacs/*/*/emacs-*.pdmp"] },
    Editor { launcher: "hx", program: "hx", least: (25, 1), package: "hx", binary: "/usr/lib/hx/hx", files: &[("HELIX_RUNTIME", "/usr/lib/hx/runtime")], respawns: false, arguments: &[] },
];

/// Kakoune's language client, which no distribution packages.
const KAK_LSP: &str = "22.0.0";

/// Emacs looks for its files in the installation prefix, which is in the system's root and not in this one.
const EMACS_FILES: &[(&str, &str)] = &[
    ("EMACSDATA", "/usr/share/emacs/*/etc"),
    ("EMACSDOC", "/usr/share/emacs/*/etc"),
    ("EMACSLOADPATH", "/usr/share/emacs/*/lisp"),
    ("EMACSPATH", "/usr/libexec/emacs/*/*-linux-gnu"),
];

/// Where the launchers are.
pub(crate) fn directory() -> Result<PathBuf, String> {
    Ok(cache::directory()?.join("editors"))
}

/// Creates a launcher for each editor. A part that is not complete is made again.
pub(crate) fn prepare() -> Result<(), String> {
    let _lock = cache::lock("editors")?;
    let directory = directory()?;
    fs::create_dir_all(&directory).map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    for editor in EDITORS {
        editor.prepare(&directory)?;
    }
    kak_lsp(&directory)
}

/// Builds Kakoune's language client, unoptimized to save time.
fn kak_lsp(directory: &Path) -> Result<(), String> {
    let program = directory.join("kak-lsp");
    let answer = Command::new(&program).arg("--version").output();
    if answer.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(KAK_LSP)) {
        return Ok(());
    }
    let root = directory.join("kakoune-lsp");
    let mut install = cargo(&[
        "install",
        "kak-lsp",
        "--locked",
        "--debug",
        "--force",
        "--version",
        KAK_LSP,
    ]);
    // Separate from our own build, which has different settings.
    install
        .arg("--root")
        .arg(&root)
        .env("CARGO_TARGET_DIR", root.join("build"))
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    run(install)?;
    // The build directory is large and no longer needed.
    let _ = fs::remove_dir_all(root.join("build"));
    fs::rename(root.join("bin/kak-lsp"), &program)
        .map_err(|error| format!("cannot put kak-lsp into {}: {error}", directory.display()))
}

impl Editor {
    fn prepare(&self, directory: &Path) -> Result<(), String> {
        let launcher = directory.join(self.launcher);
        let line = if self.is_new_enough(Path::new(self.program)) {
            format!("exec {} \"$@\"", self.program)
        } else {
            self.lines_for_root(&trixie(directory)?)?
        };
        let script = format!("#!/bin/sh\n{line}\n");
        if fs::read_to_string(&launcher).is_ok_and(|there| there == script) && self.is_new_enough(&launcher) {
            return Ok(());
        }
        fs::write(&launcher, script)
            .and_then(|()| make_executable(&launcher))
            .map_err(|error| format!("cannot write {}: {error}", launcher.display()))?;
        if self.is_new_enough(&launcher) {
            Ok(())
        } else {
            Err(format!("{} does not run; {}", launcher.display(), self.requirement()))
        }
    }

    fn requirement(&self) -> String {
        let (major, minor) = self.least;
        format!("install {} {major}.{minor} or newer first", self.program)
    }

    fn is_new_enough(&self, program: &Path) -> bool {
        let Ok(output) = Command::new(program).arg("--version").output() else {
            return false;
        };
        version(&String::from_utf8_lossy(&output.stdout)) >= Some(self.least)
    }

    /// The script lines that run the editor from a root with that root's libraries, without a chroot.
    fn lines_for_root(&self, root: &Path) -> Result<String, String> {
        let (loader, libraries) = match std::env::consts::ARCH {
            "x86_64" => ("/lib64/ld-linux-x86-64.so.2", "/usr/lib/x86_64-linux-gnu"),
            "aarch64" => ("/lib/ld-linux-aarch64.so.1", "/usr/lib/aarch64-linux-gnu"),
            other => return Err(format!("{}: no root is known for {other}", self.requirement())),
        };
        let mut lines = format!("root='{}'\n", root.display());
        for (name, files) in self.files {
            // Assignments do not expand patterns.
            lines += &format!("export {name}=\"$(echo \"$root\"{files})\"\n");
        }
        lines += &if self.respawns {
            format!("exec '{}'", self.with_own_loader(root, loader, libraries)?.display())
        } else {
            let program = self.binary;
            format!("exec \"$root\"{loader} --library-path \"$root\"{libraries} \"$root\"{program}")
        };
        for argument in self.arguments {
            let below = if argument.starts_with('/') { "\"$root\"" } else { "" };
            lines += &format!(" {below}{argument}");
        }
        Ok(lines + " \"$@\"")
    }

    /// A copy of the program with its own loader and library paths built in.
    fn with_own_loader(&self, root: &Path, loader: &str, libraries: &str) -> Result<PathBuf, String> {
        let inside = |path: &str| root.join(path.trim_start_matches('/'));
        let program = inside(self.binary);
        let copy = program.with_file_name(format!("{}-outside", self.launcher));
        if self.is_new_enough(&copy) {
            return Ok(copy);
        }
        if machine::may_install() {
            machine::install(&["patchelf"])?;
        }
        fs::copy(&program, &copy).map_err(|error| format!("cannot write {}: {error}", copy.display()))?;
        let mut command = Command::new("patchelf");
        command.arg("--set-interpreter").arg(inside(loader));
        command.arg("--force-rpath").arg("--set-rpath").arg(inside(libraries));
        command.arg(&copy);
        run(command)?;
        Ok(copy)
    }
}

/// Major and minor number of the first version in some text.
fn version(text: &str) -> Option<(u32, u32)> {
    text.split_whitespace().find_map(|word| {
        let mut numbers = word.strip_prefix('v').unwrap_or(word).split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    })
}

/// A trixie root with all editors installed.
fn trixie(directory: &Path) -> Result<PathBuf, String> {
    let root = directory.join("trixie");
    let has = |editor: &Editor| root.join(editor.binary.trim_start_matches('/')).is_file();
    if EDITORS.iter().all(has) {
        return Ok(root);
    }
    if !machine::may_install() {
        let wishes: Vec<String> = EDITORS.iter().map(Editor::requirement).collect();
        return Err(wishes.join("; "));
    }
    machine::install(&["debootstrap"])?;
    // Moved when it is whole. What is there was left by an interrupted attempt, or made for fewer editors.
    let unfinished = directory.join("trixie.unfinished");
    for old in [&root, &unfinished] {
        let _ = fs::remove_dir_all(old);
    }
    let packages: Vec<&str> = EDITORS.iter().map(|editor| editor.package).collect();
    let mut command = Command::new("debootstrap");
    command
        .arg("--variant=minbase")
        .arg(format!("--include={}", packages.join(",")))
        .arg("trixie")
        .arg(&unfinished)
        .arg(machine::mirror()?);
    run(command)?;
    fs::rename(&unfinished, &root).map_err(|error| format!("cannot create {}: {error}", root.display()))?;
    Ok(root)
}

#[cfg(unix)]
fn make_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// These editors run on Linux only.
#[cfg(not(unix))]
fn make_executable(path: &Path) -> io::Result<()> {
    let path = path.display();
    Err(io::Error::other(format!("{path} is a script for Unix")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_parsed_for_every_editor() {
        for (text, found) in [
            ("NVIM v0.10.4\nBuild type: RelWithDebInfo", Some((0, 10))),
            ("GNU Emacs 30.1\nCopyright (C) 2025", Some((30, 1))),
            ("helix 25.01.1 (e7ac2fcd)", Some((25, 1))),
            ("no such program", None),
        ] {
            assert_eq!(version(text), found, "{text}");
        }
    }
}

//! The real editors that the plugins are tested in, where the machine's own are too old.
//!
//! Each gets a command in the `editors` directory beside the build. Where the machine's own is new enough, that is what the
//! command runs. Otherwise the editor comes out of a Debian trixie root, made from the same mirror that the machine's
//! packages come from, and runs with that root's own libraries; nothing is installed into the machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{cargo, machine, run, target_directory};

/// An editor, and how it is run out of a root.
struct Editor {
    /// The command that is made for the tests.
    launcher: &'static str,
    /// The machine's own command.
    program: &'static str,
    /// The oldest version that will do.
    least: (u32, u32),
    /// The Debian package, and the program in it.
    package: &'static str,
    binary: &'static str,
    /// Variables that say where its files are; a pattern of the shell below the root.
    files: &'static [(&'static str, &'static str)],
    /// Whether it starts itself once more, by what the system says that it runs; that must not be the loader of the root.
    respawns: bool,
    /// Arguments before all others; one that begins with a slash is a pattern of the shell below the root.
    arguments: &'static [&'static str],
}

#[rustfmt::skip]
const EDITORS: &[Editor] = &[
    Editor { launcher: "nvim", program: "nvim", least: (0, 10), package: "neovim", binary: "/usr/bin/nvim", files: &[("VIMRUNTIME", "/usr/share/nvim/runtime")], respawns: true, arguments: &[] },
    Editor { launcher: "emacs-30", program: "emacs", least: (30, 0), package: "emacs-nox", binary: "/usr/bin/emacs-nox", files: EMACS_FILES, respawns: false, arguments: &["--dump-file", "/usr/libexec/emacs/*/*/emacs-*.pdmp"] },
    Editor { launcher: "hx", program: "hx", least: (25, 1), package: "hx", binary: "/usr/lib/hx/hx", files: &[("HELIX_RUNTIME", "/usr/lib/hx/runtime")], respawns: false, arguments: &[] },
];

/// The language client of Kakoune, which no package has.
const KAK_LSP: &str = "22.0.0";

/// Emacs looks for its files where it was installed, which is the machine's own root and not this one.
const EMACS_FILES: &[(&str, &str)] = &[
    ("EMACSDATA", "/usr/share/emacs/*/etc"),
    ("EMACSDOC", "/usr/share/emacs/*/etc"),
    ("EMACSLOADPATH", "/usr/share/emacs/*/lisp"),
    ("EMACSPATH", "/usr/libexec/emacs/*/*-linux-gnu"),
];

/// Puts a command for each editor into the `editors` directory beside the build.
pub(crate) fn prepare() -> Result<(), String> {
    let directory = target_directory()?.join("editors");
    fs::create_dir_all(&directory).map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
    for editor in EDITORS {
        editor.prepare(&directory)?;
    }
    kak_lsp(&directory)
}

/// Builds Kakoune's language client, without what only makes it faster.
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
    // Apart from our own build, whose settings are others.
    install
        .arg("--root")
        .arg(&root)
        .env("CARGO_TARGET_DIR", root.join("build"))
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    run(install)?;
    // What was built on the way is large and of no use any more.
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
            .and_then(|()| fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)))
            .map_err(|error| format!("cannot write {}: {error}", launcher.display()))?;
        if self.is_new_enough(&launcher) {
            Ok(())
        } else {
            Err(format!("{} does not run; {}", launcher.display(), self.wish()))
        }
    }

    fn wish(&self) -> String {
        let (major, minor) = self.least;
        format!("install {} {major}.{minor} or newer first", self.program)
    }

    fn is_new_enough(&self, program: &Path) -> bool {
        let Ok(output) = Command::new(program).arg("--version").output() else {
            return false;
        };
        version(&String::from_utf8_lossy(&output.stdout)) >= Some(self.least)
    }

    /// The lines that run the editor out of a root, with that root's libraries and without becoming its prisoner.
    fn lines_for_root(&self, root: &Path) -> Result<String, String> {
        let (loader, libraries) = match std::env::consts::ARCH {
            "x86_64" => ("/lib64/ld-linux-x86-64.so.2", "/usr/lib/x86_64-linux-gnu"),
            "aarch64" => ("/lib/ld-linux-aarch64.so.1", "/usr/lib/aarch64-linux-gnu"),
            other => return Err(format!("{}: no root is known for {other}", self.wish())),
        };
        let mut lines = format!("root='{}'\n", root.display());
        for (name, files) in self.files {
            // Patterns are not resolved in an assignment.
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

    /// A copy of the program that knows by itself where its loader and libraries are.
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

/// The first two numbers of the first version in some words.
fn version(words: &str) -> Option<(u32, u32)> {
    words.split_whitespace().find_map(|word| {
        let mut numbers = word.strip_prefix('v').unwrap_or(word).split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    })
}

/// A trixie root with all of the editors in it.
fn trixie(directory: &Path) -> Result<PathBuf, String> {
    let root = directory.join("trixie");
    let has = |editor: &Editor| root.join(editor.binary.trim_start_matches('/')).is_file();
    if EDITORS.iter().all(has) {
        return Ok(root);
    }
    if !machine::may_install() {
        let wishes: Vec<String> = EDITORS.iter().map(Editor::wish).collect();
        return Err(wishes.join("; "));
    }
    machine::install(&["debootstrap"])?;
    // What a former attempt may have left, or one for fewer editors.
    let _ = fs::remove_dir_all(&root);
    let packages: Vec<&str> = EDITORS.iter().map(|editor| editor.package).collect();
    let mut command = Command::new("debootstrap");
    command
        .arg("--variant=minbase")
        .arg(format!("--include={}", packages.join(",")))
        .arg("trixie")
        .arg(&root)
        .arg(mirror()?);
    run(command)?;
    Ok(root)
}

/// Where the machine's own packages come from.
fn mirror() -> Result<String, String> {
    let targets = ["Created-By: Packages", "Origin: Debian", "Label: Debian"];
    let output = Command::new("apt-get")
        .args(["indextargets", "--format", "$(REPO_URI)"])
        .args(targets)
        .output()
        .map_err(|error| format!("cannot ask apt-get for its mirror: {error}"))?;
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = list.lines().next().map(str::to_owned);
    first.ok_or_else(|| "apt has no mirror of Debian to take newer editors from".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_the_words_of_every_editor() {
        for (words, found) in [
            ("NVIM v0.10.4\nBuild type: RelWithDebInfo", Some((0, 10))),
            ("GNU Emacs 30.1\nCopyright (C) 2025", Some((30, 1))),
            ("helix 25.01.1 (e7ac2fcd)", Some((25, 1))),
            ("no such program", None),
        ] {
            assert_eq!(version(words), found, "{words}");
        }
    }
}

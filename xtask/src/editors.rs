//! The real editors that the plugins are tested in.
//!
//! Neovim has to be 0.10 or newer. Where the machine's own is not, it comes out of a Debian trixie root beside the build,
//! made from the same mirror that the machine's packages come from, and runs with that root's own libraries; nothing is
//! installed into the machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{machine, run, target_directory};

/// Puts a command `nvim` into the `editors` directory beside the build.
pub(crate) fn prepare() -> Result<(), String> {
    let directory = target_directory()?.join("editors");
    let launcher = directory.join("nvim");
    fs::create_dir_all(&directory).map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
    let line = if is_new_enough(Path::new("nvim")) {
        "exec nvim \"$@\"".to_owned()
    } else {
        from_root(&trixie(&directory)?)?
    };
    let script = format!("#!/bin/sh\n{line}\n");
    if fs::read_to_string(&launcher).is_ok_and(|there| there == script) && is_new_enough(&launcher) {
        return Ok(());
    }
    fs::write(&launcher, script)
        .and_then(|()| fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)))
        .map_err(|error| format!("cannot write {}: {error}", launcher.display()))?;
    if is_new_enough(&launcher) {
        Ok(())
    } else {
        Err(format!("{} does not run Neovim 0.10 or newer", launcher.display()))
    }
}

/// Whether this is Neovim 0.10 or newer.
fn is_new_enough(program: &Path) -> bool {
    let Ok(output) = Command::new(program).arg("--version").output() else {
        return false;
    };
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = words.split_whitespace().nth(1).and_then(|word| word.strip_prefix('v'));
    let mut numbers = version
        .into_iter()
        .flat_map(|version| version.split('.'))
        .map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(0), Some(10))
}

/// A trixie root with Neovim in it.
fn trixie(directory: &Path) -> Result<PathBuf, String> {
    let root = directory.join("trixie");
    if root.join("usr/bin/nvim").is_file() {
        return Ok(root);
    }
    if !machine::may_install() {
        return Err("install Neovim 0.10 or newer first".to_owned());
    }
    machine::install(&["debootstrap"])?;
    // What a former attempt may have left.
    let _ = fs::remove_dir_all(&root);
    let mut command = Command::new("debootstrap");
    command
        .args(["--variant=minbase", "--include=neovim", "trixie"])
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
    first.ok_or_else(|| "apt has no mirror of Debian; install Neovim 0.10 or newer first".to_owned())
}

/// The line that runs Neovim out of a root, with that root's libraries and without becoming its prisoner.
///
/// A copy is told where its loader and libraries are, and is not started through the loader: a Neovim with a screen starts
/// itself once more, by what the system says that it runs, and that would be the loader.
fn from_root(root: &Path) -> Result<String, String> {
    let (loader, libraries) = match std::env::consts::ARCH {
        "x86_64" => ("lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu"),
        "aarch64" => ("lib/ld-linux-aarch64.so.1", "usr/lib/aarch64-linux-gnu"),
        other => {
            return Err(format!(
                "install Neovim 0.10 or newer first: no root is known for {other}"
            ));
        }
    };
    let copy = root.join("usr/bin/nvim-outside");
    if !is_new_enough(&copy) {
        if machine::may_install() {
            machine::install(&["patchelf"])?;
        }
        fs::copy(root.join("usr/bin/nvim"), &copy)
            .map_err(|error| format!("cannot write {}: {error}", copy.display()))?;
        let mut command = Command::new("patchelf");
        command.arg("--set-interpreter").arg(root.join(loader));
        command
            .arg("--force-rpath")
            .arg("--set-rpath")
            .arg(root.join(libraries));
        command.arg(&copy);
        run(command)?;
    }
    Ok(format!(
        "export VIMRUNTIME='{}'\nexec '{}' \"$@\"",
        root.join("usr/share/nvim/runtime").display(),
        copy.display(),
    ))
}

//! Wine for the Windows program's tests: a Debian root with it, made once per machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::machine::Need;
use crate::{cache, machine, npm, root, run};

/// Older ones lack functions that Rust's standard library calls.
const SUITE: &str = "trixie";

/// What the root is made from. Wine's own directory is part of it.
const RECIPE: &str = "trixie, wine, wine64, wineboot";

const DEBOOTSTRAP: [Need; 1] = [Need {
    program: "which",
    check_arguments: "debootstrap",
    package: "debootstrap",
}];

/// Prepares the root, and Node for Windows in `e2e/platforms`.
pub(crate) fn prepare() -> Result<PathBuf, String> {
    npm::install_in(&root().join("e2e"))?;
    npm::install_in(&root().join("e2e/platforms"))?;
    if !machine::is_root() {
        return Err("wine runs in a chroot, which needs root; run this task as root".to_owned());
    }
    machine::require(&DEBOOTSTRAP)?;
    cache::fill("wine", RECIPE.as_bytes(), |directory| {
        let mut command = Command::new("debootstrap");
        command
            .args(["--variant=minbase", "--include=wine,wine64", SUITE])
            .arg(directory)
            .arg(machine::mirror()?)
            .stdin(Stdio::null());
        run(command)?;
        run(in_root(directory, &["apt-get", "clean"]))?;
        // Wine's drive C. Its server stays for a moment, so it is asked to end.
        run(in_root(directory, &["wineboot", "--init"]))?;
        run(in_root(directory, &["wineserver", "--wait"]))
    })
}

/// A command in the root, whose mounts end with it.
fn in_root(directory: &Path, arguments: &[&str]) -> Command {
    let script = "root=$1; shift
        mount -t proc proc \"$root/proc\" && mount --rbind /dev \"$root/dev\" || exit 125
        exec chroot \"$root\" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin XDG_RUNTIME_DIR=/tmp WINEDEBUG=-all \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(directory);
    command.args(arguments).stdin(Stdio::null());
    command
}

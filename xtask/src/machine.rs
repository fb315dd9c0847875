//! System programs that the tests need: Node with npm, tmux, Chromium, Vim, Emacs, Kakoune, Kate and Qt Creator, a screen for the last
//! two, and valgrind.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::run;

/// A program, the arguments that check that it works, and its Debian package.
pub(crate) struct Need {
    pub(crate) program: &'static str,
    pub(crate) check_arguments: &'static str,
    pub(crate) package: &'static str,
}

const NEEDS: [Need; 16] = [
    Need {
        program: "node",
        check_arguments: "--version",
        package: "nodejs",
    },
    Need {
        program: "npm",
        check_arguments: "--version",
        package: "npm",
    },
    Need {
        program: "tmux",
        check_arguments: "-V",
        package: "tmux",
    },
    // Both agents use it to find their editor in the process tree.
    Need {
        program: "ps",
        check_arguments: "--version",
        package: "procps",
    },
    // Debian's, not one downloaded by a test library.
    Need {
        program: "chromium",
        check_arguments: "--version",
        package: "chromium",
    },
    Need {
        program: "vim",
        check_arguments: "--version",
        package: "vim",
    },
    Need {
        program: "emacs",
        check_arguments: "--version",
        package: "emacs-nox",
    },
    Need {
        program: "emacs",
        check_arguments: "--batch --load package-lint",
        package: "elpa-package-lint",
    },
    Need {
        program: "kak",
        check_arguments: "-version",
        package: "kakoune",
    },
    // The next ones do not start without a screen.
    Need {
        program: "which",
        check_arguments: "kate",
        package: "kate",
    },
    Need {
        program: "which",
        check_arguments: "qtcreator",
        package: "qtcreator",
    },
    Need {
        program: "which",
        check_arguments: "Xvfb",
        package: "xvfb",
    },
    Need {
        program: "which",
        check_arguments: "openbox",
        package: "openbox",
    },
    Need {
        program: "which",
        check_arguments: "xdotool",
        package: "xdotool",
    },
    Need {
        program: "which",
        check_arguments: "dbus-run-session",
        package: "dbus",
    },
    VALGRIND,
];

/// For counting instructions.
pub(crate) const VALGRIND: Need = Need {
    program: "valgrind",
    check_arguments: "--version",
    package: "valgrind",
};

/// Installs missing programs if we are allowed to; otherwise reports what to install.
pub(crate) fn prepare() -> Result<(), String> {
    require(&NEEDS)
}

/// The same for the programs that only some tasks need.
pub(crate) fn require(needs: &[Need]) -> Result<(), String> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.join(" ");
    if !works("apt-get", "--version") {
        return Err(format!(
            "install these first, using your system's package manager: {packages}"
        ));
    }
    if !is_root() {
        return Err(format!(
            "install these first: sudo apt-get update && sudo apt-get install {packages}"
        ));
    }
    install(&missing)?;
    let missing = self::missing(needs);
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("still missing after installation: {}", missing.join(" ")))
    }
}

pub(crate) fn may_install() -> bool {
    is_root() && works("apt-get", "--version")
}

pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    eprintln!("xtask: installing {}", packages.join(" "));
    run(apt_get(&["update"]))?;
    let mut install = apt_get(&["install", "--yes", "--no-install-recommends"]);
    install.args(packages);
    run(install)
}

/// The mirror of the system's own Debian packages.
pub(crate) fn mirror() -> Result<String, String> {
    const ADVICE: &str = "run this on Debian, where `apt-get update` has run";
    let targets = ["Created-By: Packages", "Origin: Debian", "Label: Debian"];
    let output = Command::new("apt-get")
        .args(["indextargets", "--format", "$(REPO_URI)"])
        .args(targets)
        .output()
        .map_err(|error| format!("cannot ask apt-get for a mirror of Debian: {error}; {ADVICE}"))?;
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = list.lines().next().map(str::to_owned);
    first.ok_or_else(|| format!("apt has no mirror of Debian to take packages from; {ADVICE}"))
}

/// Major and minor version of a Node.
pub(crate) fn node_version(node: &Path) -> Option<(u32, u32)> {
    let output = Command::new(node).arg("--version").output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    let mut numbers = version.trim().strip_prefix('v')?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn missing(needs: &[Need]) -> Vec<&'static str> {
    let missing = needs.iter().filter(|need| !works(need.program, need.check_arguments));
    missing.map(|need| need.package).collect()
}

fn works(program: &str, check_arguments: &str) -> bool {
    let mut command = Command::new(program);
    command
        .args(check_arguments.split(' '))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

pub(crate) fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command
        // Another checkout may be installing too.
        .args(["-o", "DPkg::Lock::Timeout=600"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null());
    command
}

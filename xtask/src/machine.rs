//! The programs that the tests need from the machine: Node with npm, tmux, Chromium, Vim, Emacs and Kakoune.

use std::process::{Command, Stdio};

use crate::run;

/// A program, how to see that it works, and the Debian package that has it.
struct Need {
    program: &'static str,
    question: &'static str,
    package: &'static str,
}

const NEEDS: [Need; 9] = [
    Need {
        program: "node",
        question: "--version",
        package: "nodejs",
    },
    Need {
        program: "npm",
        question: "--version",
        package: "npm",
    },
    Need {
        program: "tmux",
        question: "-V",
        package: "tmux",
    },
    // Both command lines look for their editor among the processes with it.
    Need {
        program: "ps",
        question: "--version",
        package: "procps",
    },
    // Debian's own, and not one that a test library would download.
    Need {
        program: "chromium",
        question: "--version",
        package: "chromium",
    },
    Need {
        program: "vim",
        question: "--version",
        package: "vim",
    },
    Need {
        program: "emacs",
        question: "--version",
        package: "emacs-nox",
    },
    Need {
        program: "emacs",
        question: "--batch --load package-lint",
        package: "elpa-package-lint",
    },
    Need {
        program: "kak",
        question: "-version",
        package: "kakoune",
    },
];

/// Makes sure that everything is there. Installs what is missing when we may; otherwise says what to install.
pub(crate) fn prepare() -> Result<(), String> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.join(" ");
    if !answers("apt-get", "--version") {
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
    let missing = self::missing();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("still missing after installation: {}", missing.join(" ")))
    }
}

/// Whether packages can be installed here.
pub(crate) fn may_install() -> bool {
    is_root() && answers("apt-get", "--version")
}

/// Installs packages.
pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    eprintln!("xtask: installing {}", packages.join(" "));
    run(apt_get(&["update"]))?;
    let mut install = apt_get(&["install", "--yes", "--no-install-recommends"]);
    install.args(packages);
    run(install)
}

/// The version of Node on the path, its first number.
pub(crate) fn node_version() -> Option<u32> {
    let output = Command::new("node").arg("--version").output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

fn missing() -> Vec<&'static str> {
    let missing = NEEDS.iter().filter(|need| !answers(need.program, need.question));
    missing.map(|need| need.package).collect()
}

fn answers(program: &str, question: &str) -> bool {
    let mut command = Command::new(program);
    command
        .args(question.split(' '))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null());
    command
}

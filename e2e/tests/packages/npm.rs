//! The npm packages, from a registry that has only them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use alongside_testing::Sandbox;

use crate::registry::{Registry, manifest, tarballs};
use crate::{files, run, sandbox, use_it};

fn npm(sandbox: &Sandbox, registry: &Registry) -> Command {
    let mut command = sandbox.command("npm");
    command
        .args(["--global", "--no-audit", "--no-fund", "--no-update-notifier"])
        .arg(format!("--prefix={}", sandbox.path("prefix").display()))
        .arg(format!("--registry={}", registry.address()));
    command
}

/// The wrapper and the program, below the prefix.
fn installed(sandbox: &Sandbox) -> (PathBuf, PathBuf) {
    let prefix = sandbox.path("prefix");
    let files = files(&prefix.join("lib"));
    let find = |ending: &str| {
        let found: Vec<&PathBuf> = files.iter().filter(|path| path.ends_with(ending)).collect();
        assert_eq!(found.len(), 1, "{ending}: {files:?}");
        prefix.join("lib").join(found[0])
    };
    let programs = files
        .iter()
        .filter(|path| path.parent().is_some_and(|parent| parent.ends_with("bin")));
    assert_eq!(programs.count(), 2, "{files:?}");
    (
        find("alongside-ide/bin/alongside.js"),
        find("@alongside-ide/linux-x64/bin/alongside"),
    )
}

#[test]
fn npm_installs_the_package_of_this_platform_only() {
    let sandbox = sandbox();
    let registry = Registry::start();
    run(npm(&sandbox, &registry).args(["install", "alongside-ide"]));
    let (_, program) = installed(&sandbox);
    let tarballs = registry.downloaded();
    assert_eq!(tarballs.len(), 2, "only the two packages were downloaded: {tarballs:?}");

    // Both as npm's users start it, and as the plugins do.
    let command = sandbox.path("prefix/bin/alongside");
    use_it(&sandbox, &command, &program);
    let failed = sandbox
        .command(&command)
        .arg("no-such-command")
        .output()
        .expect("start it");
    assert_eq!(failed.status.code(), Some(2), "the exit code is passed on");

    run(npm(&sandbox, &registry).args(["uninstall", "alongside-ide"]));
    let left = files(&sandbox.path("prefix"));
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn npm_packages_have_no_scripts() {
    let tarballs = tarballs();
    assert!(tarballs.len() > 1, "{tarballs:?}");
    for tarball in tarballs {
        let manifest = manifest(&tarball);
        assert!(manifest.get("scripts").is_none(), "{}: {manifest}", tarball.display());
    }
}

/// As after `--omit=optional`.
#[test]
fn npm_package_without_the_program_says_what_to_do() {
    let sandbox = sandbox();
    let registry = Registry::start();
    run(npm(&sandbox, &registry).args(["install", "alongside-ide"]));
    let (wrapper, program) = installed(&sandbox);
    fs::remove_file(program).expect("remove the program");
    let output = sandbox
        .command("node")
        .arg(wrapper)
        .arg("--version")
        .output()
        .expect("start it");
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    let wanted = "cannot find @alongside-ide/linux-x64; install alongside-ide again";
    assert!(error.contains(wanted), "{error}");
}

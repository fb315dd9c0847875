//! The Debian package, with a package database of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use alongside_testing::Sandbox;

use crate::{files, has_completions_and_pages, package, run, sandbox, use_it};

fn dpkg(sandbox: &Sandbox, root: &Path) -> Command {
    let mut command = sandbox.command("dpkg");
    // Its own programs are not below that root, and the package has no scripts that would run there.
    command
        .args(["--force-not-root", "--force-bad-path"])
        .arg(format!("--root={}", root.display()));
    command
}

/// A maintainer script would be one more file there.
#[test]
fn debian_package_has_no_scripts() {
    let sandbox = sandbox();
    let control = sandbox.path("control");
    run(sandbox
        .command("dpkg-deb")
        .arg("--control")
        .arg(package("alongside_VERSION_amd64.deb"))
        .arg(&control));
    assert_eq!(files(&control), [Path::new("control")]);
}

#[test]
fn debian_package_installs_and_purges() {
    let sandbox = sandbox();
    let root = sandbox.path("root");
    let database = root.join("var/lib/dpkg");
    for directory in ["info", "updates", "triggers"] {
        fs::create_dir_all(database.join(directory)).expect("make a database");
    }
    for file in ["status", "available"] {
        fs::write(database.join(file), "").expect("make a database");
    }
    run(dpkg(&sandbox, &root)
        .arg("--install")
        .arg(package("alongside_VERSION_amd64.deb")));
    let listed = run(dpkg(&sandbox, &root).args(["--listfiles", "alongside"]));
    assert!(
        listed.contains("/usr/share/zsh/vendor-completions/_alongside"),
        "{listed}"
    );
    has_completions_and_pages(
        &root.join("usr/share/bash-completion/completions/alongside"),
        &root.join("usr/share/man/man1/alongside.1.gz"),
    );
    let program = root.join("usr/bin/alongside");
    use_it(&sandbox, &program, &program);
    run(dpkg(&sandbox, &root).args(["--purge", "alongside"]));
    let left = files(&root.join("usr"));
    assert!(left.is_empty(), "{left:?}");
    let known: Vec<_> = files(&database.join("info"));
    assert!(
        !known.iter().any(|path| path.to_string_lossy().starts_with("alongside")),
        "{known:?}"
    );
}

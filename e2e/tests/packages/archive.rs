//! The archive: unpacked anywhere, and removed with its directory.

use std::fs;

use crate::{files, has_completions_and_pages, package, packages, run, sandbox, use_it};

#[test]
fn unpacked_archive_works_where_it_is() {
    let sandbox = sandbox();
    let archive = package("alongside-VERSION-x86_64-unknown-linux-musl.tar.gz");
    let name = archive.file_name().expect("it has a name").to_string_lossy();
    let name = name.trim_end_matches(".tar.gz");
    let mut tar = sandbox.command("tar");
    run(tar.arg("-xzf").arg(&archive).current_dir(sandbox.path("home")));
    let directory = sandbox.path("home").join(name);
    let unpacked = files(&directory);
    for file in [
        "README.md",
        "CHANGELOG.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "THIRD-PARTY.txt",
    ] {
        assert!(unpacked.iter().any(|path| path.ends_with(file)), "{file}: {unpacked:?}");
    }
    for file in ["_alongside", "alongside.fish", "_alongside.ps1", "alongside.elv"] {
        assert!(directory.join("completions").join(file).is_file(), "{file}");
    }
    has_completions_and_pages(
        &directory.join("completions/alongside.bash"),
        &directory.join("man/man1/alongside-diff-accept.1"),
    );
    let program = directory.join("alongside");
    use_it(&sandbox, &program, &program);
    assert_eq!(files(&directory), unpacked, "it writes nothing next to itself");
}

#[test]
fn hashes_and_formula_are_those_of_the_archive() {
    let sandbox = sandbox();
    run(sandbox
        .command("sha256sum")
        .args(["--check", "--strict", "SHA256SUMS"])
        .current_dir(packages()));
    let archive = package("alongside-VERSION-x86_64-unknown-linux-musl.tar.gz");
    let name = archive.file_name().expect("it has a name").to_string_lossy();
    let sums = fs::read_to_string(packages().join("SHA256SUMS")).expect("read the hashes");
    let sum = sums
        .lines()
        .find(|line| line.ends_with(name.as_ref()))
        .expect("the archive is listed");
    let hash = sum.split(' ').next().expect("it has a hash");
    let formula = fs::read_to_string(packages().join("homebrew/alongside.rb")).expect("read the formula");
    assert!(
        formula.contains(&format!("/{name}\"\n      sha256 \"{hash}\"\n")),
        "{formula}"
    );
}

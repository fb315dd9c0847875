//! The archive: unpacked anywhere, and removed with its directory.

use crate::{files, has_completions_and_pages, package, run, sandbox, use_it};

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

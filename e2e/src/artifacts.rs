//! Artifacts of failed tests, in `e2e/artifacts/`.

use std::fs;
use std::path::PathBuf;
use std::thread;

/// The artifact directory of the running test, created if missing.
pub(crate) fn directory() -> PathBuf {
    let test = thread::current().name().unwrap_or("unnamed").replace("::", "-");
    let directory = crate::programs::e2e_directory().join("artifacts").join(test);
    fs::create_dir_all(&directory).expect("create the directory for artifacts");
    directory
}

/// Saves one text and prints its path.
#[allow(clippy::print_stderr)]
pub(crate) fn keep(name: &str, text: &str) {
    let path = directory().join(name);
    fs::write(&path, text).expect("write an artifact");
    eprintln!("saved {}", path.display());
}

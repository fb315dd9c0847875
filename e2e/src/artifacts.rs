//! What is kept of a test that failed, under `e2e/artifacts/`.

use std::fs;
use std::path::PathBuf;
use std::thread;

/// Where the artifacts of the running test go. The directory exists afterwards.
pub(crate) fn directory() -> PathBuf {
    let test = thread::current().name().unwrap_or("unnamed").replace("::", "-");
    let directory = crate::programs::e2e_directory().join("artifacts").join(test);
    fs::create_dir_all(&directory).expect("create the directory for artifacts");
    directory
}

/// Keeps one text, and says so.
#[allow(clippy::print_stderr)]
pub(crate) fn keep(name: &str, text: &str) {
    let path = directory().join(name);
    fs::write(&path, text).expect("write an artifact");
    eprintln!("kept {}", path.display());
}

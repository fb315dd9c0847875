//! The cache for large programs, outside the target directory: it survives `cargo clean` and all checkouts share it.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Written last: what the directory was made from.
const STAMP: &str = "made-from";

/// The cache: in the user's own cache directory.
pub(crate) fn directory() -> Result<PathBuf, String> {
    let of_user = env::var_os("XDG_CACHE_HOME")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    let cache = of_user.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")));
    let cache = cache.ok_or("cannot choose a cache directory: HOME is not set")?;
    Ok(cache.join("alongside-tests"))
}

/// Fails where the programs in the cache do not run.
pub(crate) fn check_platform(what: &str) -> Result<(), String> {
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        Ok(())
    } else {
        Err(format!("{what} pinned for Linux on x86-64 only; run these tests there"))
    }
}

/// Waits until no other checkout is filling a directory of the cache. The lock ends with the returned file.
pub(crate) fn lock(name: &str) -> Result<File, String> {
    let cache = directory()?;
    fs::create_dir_all(&cache).map_err(|error| format!("cannot create {}: {error}", cache.display()))?;
    let path = cache.join(format!("{name}.lock"));
    let file = File::create(&path).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
    file.lock()
        .map_err(|error| format!("cannot lock {}: {error}", path.display()))?;
    Ok(file)
}

/// A directory of the cache, whole or not at all: it is assembled beside its place and moved there, so that an interrupted
/// download is never used. It is assembled again when `recipe` changes.
pub(crate) fn fill(
    name: &str,
    recipe: &[u8],
    assemble: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let place = directory()?.join(name);
    let _lock = lock(name)?;
    if fs::read(place.join(STAMP)).is_ok_and(|there| there == recipe) {
        eprintln!("xtask: {} is there already", place.display());
        return Ok(place);
    }
    // Not another extension: the name may end with a version.
    let unfinished = directory()?.join(format!("{name}.unfinished"));
    // Left by an interrupted attempt.
    remove(&unfinished)?;
    let failed = |error: io::Error| format!("cannot fill {}: {error}", place.display());
    fs::create_dir_all(&unfinished).map_err(failed)?;
    assemble(&unfinished)?;
    fs::write(unfinished.join(STAMP), recipe).map_err(failed)?;
    remove(&place)?;
    fs::rename(&unfinished, &place).map_err(failed)?;
    Ok(place)
}

pub(crate) fn remove(directory: &Path) -> Result<(), String> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Removes a directory that has grown beyond this size. The caller has its lock.
pub(crate) fn limit(directory: &Path, max_bytes: u64) -> Result<(), String> {
    let size = size(directory).map_err(|error| format!("cannot measure {}: {error}", directory.display()))?;
    if size <= max_bytes {
        return Ok(());
    }
    eprintln!(
        "xtask: {} has {} MB of old builds; it is filled again",
        directory.display(),
        size >> 20
    );
    remove(directory)
}

/// Of everything in a directory; of none, 0.
fn size(directory: &Path) -> io::Result<u64> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut total = 0;
    for entry in entries {
        let entry = entry?;
        let metadata = entry.metadata()?;
        total += if metadata.is_dir() {
            size(&entry.path())?
        } else {
            metadata.len()
        };
    }
    Ok(total)
}

/// Copies the files that name npm packages: what is wanted, at which versions, and npm's settings.
pub(crate) fn copy_package_files(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|error| format!("cannot create {}: {error}", to.display()))?;
    for name in ["package.json", "package-lock.json", ".npmrc"] {
        let source = from.join(name);
        fs::copy(&source, to.join(name)).map_err(|error| format!("cannot copy {}: {error}", source.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn directory_beyond_its_limit_is_removed() {
        let scratch = crate::target_directory().unwrap().join("cache-limit");
        let inner = scratch.join("one/two");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("file"), [0; 1000]).unwrap();
        limit(&scratch, 1000).unwrap();
        assert!(scratch.exists());
        limit(&scratch, 999).unwrap();
        assert!(!scratch.exists());
        limit(&scratch, 0).unwrap();
    }
}

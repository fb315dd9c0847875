//! The cache for large programs, outside the target directory: it survives `cargo clean` and all checkouts share it.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

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

/// Copies the files that name npm packages: what is wanted, at which versions, and npm's settings.
pub(crate) fn copy_package_files(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|error| format!("cannot create {}: {error}", to.display()))?;
    for name in ["package.json", "package-lock.json", ".npmrc"] {
        let source = from.join(name);
        fs::copy(&source, to.join(name)).map_err(|error| format!("cannot copy {}: {error}", source.display()))?;
    }
    Ok(())
}

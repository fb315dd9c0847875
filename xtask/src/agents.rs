//! The native programs of the agents, fetched once per machine.
//!
//! Together they are larger than everything else that the tests need, so they are in a cache outside the target
//! directory, which survives `cargo clean` and is shared by all checkouts.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::{npm, root, run};

/// Installs the packages of `e2e/agents` into the cache.
pub(crate) fn prepare() -> Result<(), String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("the agents' programs are pinned for Linux on x86-64 only; run these tests there".to_owned());
    }
    let cache = directory()?;
    fs::create_dir_all(&cache).map_err(|error| format!("cannot create {}: {error}", cache.display()))?;
    for name in ["package.json", "package-lock.json", ".npmrc"] {
        let source = root().join("e2e/agents").join(name);
        fs::copy(&source, cache.join(name)).map_err(|error| format!("cannot copy {}: {error}", source.display()))?;
    }
    npm::install_in(&cache)?;
    unpack_copilot()
}

/// Copilot CLI unpacks itself into its home's cache at its first start. The tests' homes link to this one.
fn unpack_copilot() -> Result<(), String> {
    let cache = directory()?;
    let mut command = Command::new(cache.join("node_modules/@github/copilot-linux-x64/copilot"));
    command
        .arg("--version")
        .env_clear()
        .env("HOME", cache.join("home"))
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("COPILOT_AUTO_UPDATE", "false")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    run(command)
}

/// Where the agents' programs are: in the user's cache directory.
pub(crate) fn directory() -> Result<PathBuf, String> {
    let of_user = env::var_os("XDG_CACHE_HOME")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    let cache = of_user.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")));
    let cache = cache.ok_or("cannot choose a cache directory: HOME is not set")?;
    Ok(cache.join("alongside-tests/agents"))
}

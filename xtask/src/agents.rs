//! The native programs of the agents, fetched once per machine.
//!
//! Together they are larger than everything else that the tests need.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::{cache, npm, root, run};

/// Installs the packages of `e2e/agents` into the cache.
pub(crate) fn prepare() -> Result<(), String> {
    cache::check_platform("the agents' programs are")?;
    let _lock = cache::lock("agents")?;
    let directory = directory()?;
    cache::copy_package_files(&root().join("e2e/agents"), &directory)?;
    npm::install_in(&directory)?;
    unpack_copilot()
}

/// Copilot CLI unpacks itself into its home's cache at its first start. The tests' homes link to this one.
fn unpack_copilot() -> Result<(), String> {
    let directory = directory()?;
    let mut command = Command::new(directory.join("node_modules/@github/copilot-linux-x64/copilot"));
    command
        .arg("--version")
        .env_clear()
        .env("HOME", directory.join("home"))
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("COPILOT_AUTO_UPDATE", "false")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    run(command)
}

/// Where the agents' programs are.
pub(crate) fn directory() -> Result<PathBuf, String> {
    Ok(cache::directory()?.join("agents"))
}

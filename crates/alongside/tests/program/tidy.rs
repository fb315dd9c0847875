//! Rules about the source itself.

use std::collections::{BTreeMap, BTreeSet};
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

/// The layers, lowest first. A crate depends only on crates of lower layers.
const LAYERS: &[(&str, &[&str])] = &[
    ("platform", &["alongside-platform"]),
    ("core", &["alongside-core"]),
    (
        "shared",
        &[
            "alongside-protocol",
            "alongside-wire",
            "alongside-loopback",
            "alongside-journal",
        ],
    ),
    (
        "adapters",
        &[
            "alongside-mcp",
            "alongside-front",
            "alongside-lsp",
            "alongside-agent",
            "alongside-discovery",
            "alongside-install",
            "alongside-page",
            "alongside-terminal",
        ],
    ),
    ("companion", &["alongside-companion"]),
    ("binary", &["alongside"]),
];

/// What tests share. No program depends on it.
const TESTING: &str = "alongside-testing";

/// Dependencies within a layer that are allowed all the same.
const EXCEPTIONS: &[(&str, &str)] = &[
    // The process table and the environment that both detect editors with live in discovery.
    ("alongside-install", "alongside-discovery"),
];

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|(_, crates)| crates.contains(&name))
}

/// Why a crate must not depend on another crate of ours, if so.
fn forbidden(name: &str, section: &str, dependency: &str) -> Option<String> {
    if dependency == TESTING {
        return (section != "dev-dependencies" && name != TESTING)
            .then(|| format!("{name} may depend on {TESTING} only as a dev-dependency"));
    }
    // Tests may need anything, and nothing else depends on what they need.
    if name == TESTING || EXCEPTIONS.contains(&(name, dependency)) {
        return None;
    }
    match (layer(name), layer(dependency)) {
        (Some(upper), Some(lower)) if lower < upper => None,
        (Some(_), Some(_)) => Some(format!(
            "{name} must not depend on {dependency}: it is not in a lower layer"
        )),
        _ => Some(format!("{name} or {dependency} is not in the table of layers")),
    }
}

#[test]
fn dependencies_point_to_lower_layers() {
    let crates = crates();
    for (name, manifest) in &crates {
        assert!(layer(name).is_some() || name == TESTING, "{name} is in no layer");
        for (section, dependency) in dependencies(manifest) {
            if crates.contains_key(&dependency)
                && let Some(reason) = forbidden(name, &section, &dependency)
            {
                panic!("{reason}");
            }
        }
    }
}

#[test]
fn layers_forbid_what_they_should() {
    for (name, section, dependency, allowed) in [
        ("alongside-wire", "dependencies", "alongside-core", true),
        ("alongside-core", "dependencies", "alongside-wire", false),
        ("alongside-wire", "dependencies", "alongside-loopback", false),
        ("alongside-mcp", "dependencies", "alongside-wire", true),
        ("alongside-mcp", "dependencies", "alongside-front", false),
        ("alongside-mcp", "dev-dependencies", "alongside-front", false),
        ("alongside-page", "dependencies", "alongside-companion", false),
        ("alongside", "dependencies", "alongside-core", true),
        ("alongside-mcp", "dev-dependencies", "alongside-testing", true),
        ("alongside-mcp", "dependencies", "alongside-testing", false),
        ("alongside-testing", "dependencies", "alongside-mcp", true),
        ("alongside-mcp", "dependencies", "alongside-unknown", false),
    ] {
        let reason = forbidden(name, section, dependency);
        assert_eq!(reason.is_none(), allowed, "{name} -> {dependency}: {reason:?}");
    }
}

/// Every dependency with the section it is in, those for one platform included.
fn dependencies(manifest: &toml::Table) -> Vec<(String, String)> {
    let sections = ["dependencies", "dev-dependencies", "build-dependencies"];
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let tables = targets
        .into_iter()
        .flatten()
        .filter_map(|(_, target)| target.as_table());
    let in_table = |table: &toml::Table| {
        let names = sections.iter().flat_map(|section| {
            let names = table.get(*section).and_then(toml::Value::as_table);
            names
                .into_iter()
                .flat_map(toml::Table::keys)
                .map(|name| ((*section).to_owned(), name.clone()))
        });
        names.collect::<Vec<_>>()
    };
    tables.chain([manifest]).flat_map(in_table).collect()
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

/// The table in ARCHITECTURE.md names a test for every bound.
#[test]
fn every_test_in_the_table_of_bounds_exists() {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, section) = document.split_once("\n## Bounds\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut tests = BTreeSet::new();
    for_each_source(&root().join("crates"), &mut |_, source| {
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        for (index, line) in lines.iter().enumerate() {
            let is_test = |line: &&str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            // Attributes such as `cfg` may come in between.
            let attributes = lines[..index].iter().rev().take_while(|line| line.starts_with("#["));
            let name = line.trim_start_matches("async ").strip_prefix("fn ");
            if let Some((name, _)) = name.and_then(|rest| rest.split_once('('))
                && attributes.into_iter().any(is_test)
            {
                tests.insert(name.to_owned());
            }
        }
    });
    let rows = section
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| **"));
    let mut count = 0;
    for row in rows.skip(1) {
        let column = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let names: Vec<&str> = column.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "this bound has no test: {row}");
        for name in names {
            assert!(tests.contains(name), "there is no test `{name}`: {row}");
            count += 1;
        }
    }
    assert!(count > 50, "the table was not found");
}

/// PROTOCOL.md numbers the differences between agents, and the comment of a test has the number.
#[test]
fn every_numbered_difference_is_named_by_a_test() {
    let document = fs::read_to_string(root().join("docs/PROTOCOL.md")).unwrap();
    let (_, section) = document.split_once("\n# The agents' side\n").unwrap();
    let mut comments = Vec::new();
    for_each_source(&root().join("crates"), &mut |_, source| {
        let lines = source.lines().map(str::trim);
        comments.extend(lines.filter(|line| line.starts_with("//")).map(str::to_lowercase));
    });
    let names = |comment: &String, number: &str| {
        let ends = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_digit());
        comment
            .match_indices(number)
            .any(|(at, _)| ends(&comment[at + number.len()..]))
    };
    let numbers = section
        .lines()
        .filter_map(|row| row.strip_prefix("| ")?.split(' ').next());
    let numbers = numbers.filter(|number| number.ends_with(|last: char| last.is_ascii_digit()));
    let mut count = 0;
    for number in numbers {
        // Those of Gemini CLI and Qwen Code are plain numbers.
        let name = match number.parse::<u32>() {
            Ok(_) => format!("difference {number}"),
            Err(_) => format!(" {}", number.to_lowercase()),
        };
        let is_named = comments.iter().any(|comment| names(comment, &name));
        assert!(is_named, "no test names difference {number} of docs/PROTOCOL.md");
        count += 1;
    }
    assert!(count > 50, "the tables were not found");
}

#[test]
fn only_the_allocator_is_called_without_checks() {
    let mark = concat!("unsafe", "_code");
    for_each_source(&root(), &mut |path, text| {
        let is_allocator = path.ends_with("alongside-companion/src/memory.rs");
        assert!(is_allocator || !text.contains(mark), "{}", path.display());
    });
}

/// Clippy has the same rule, but sees only the code of the system that it runs on.
#[test]
fn real_paths_are_asked_for_in_one_place() {
    let mark = concat!("canonical", "ize");
    let mut found = BTreeSet::new();
    // The tests, the benchmark and the tasks too.
    for_each_source(&root(), &mut |path, text| {
        if text.contains(mark) {
            found.insert(path.to_owned());
        }
    });
    let allowed = root().join("crates/alongside-platform/src/path.rs");
    assert_eq!(found, BTreeSet::from([allowed]));
}

#[test]
fn no_test_is_ignored() {
    let mark = concat!("#[", "ignore");
    for_each_source(&root(), &mut |path, text| {
        assert!(!text.contains(mark), "{}", path.display());
    });
}

/// On Windows, `C:\\a/b` works, but messages would show it.
#[test]
fn paths_are_joined_part_by_part() {
    for name in crates().keys().filter(|name| *name != TESTING) {
        for_each_source(&root().join("crates").join(name).join("src"), &mut |path, text| {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let is_tests = name.ends_with("tests")
                || name == "fixture"
                || path.components().any(|part| part.as_os_str() == "tests");
            if is_tests {
                return;
            }
            let code = text.split("\nmod tests {").next().unwrap();
            for joined in code.split(".join(").skip(1) {
                let literal = joined
                    .trim_start()
                    .strip_prefix('"')
                    .and_then(|rest| rest.split('"').next());
                let is_joined = literal.is_some_and(|literal| literal.contains('/'));
                assert!(!is_joined, "{} joins {literal:?} at once", path.display());
            }
        });
    }
}

/// Git for Windows checks out CRLF unless it is told not to, and plugins, the page and golden files are embedded or compared byte for byte.
#[test]
fn every_file_has_the_same_bytes_on_every_system() {
    let attributes = fs::read_to_string(root().join(".gitattributes")).unwrap();
    let mut rules = attributes.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(rules.next(), Some("* text=auto eol=lf"));
    let as_they_are: Vec<&str> = rules.map(|rule| rule.split(' ').next().unwrap()).collect();
    let mut checked = 0;
    for_each_file(&root(), &mut |path| {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
        let is_exempt = as_they_are.iter().any(|pattern| match pattern.split_once("**") {
            Some((directory, _)) => name.starts_with(directory),
            None => name.ends_with(pattern.trim_start_matches('*')),
        });
        let bytes = fs::read(path).unwrap();
        let is_text = !bytes.contains(&0) && !bytes.contains(&b'\r');
        assert!(is_text || is_exempt, "{name} needs a line in .gitattributes");
        checked += 1;
    });
    assert!(checked > 500, "only {checked} files were found");
}

/// Everything that opens a connection, and to what. SECURITY.md promises that there is nothing else.
const CONNECTING: &[(&str, &str)] = &[
    (
        "alongside-agent/src/daemon/transport.rs",
        "a daemon that the user has set up",
    ),
    (
        "alongside-companion/src/demo/context.rs",
        "the companion's own socket, as Codex does",
    ),
    (
        "alongside-discovery/src/lookup/locks/copilot.rs",
        "a companion's socket on this machine",
    ),
    ("alongside-discovery/src/sweep.rs", "a companion's port on this machine"),
    ("alongside-front/src/client.rs", "a companion on this machine"),
    (
        "alongside-mcp/src/client/endpoint.rs",
        "the companion that an agent would find",
    ),
    (
        "alongside-mcp/src/client/socket.rs",
        "the companion that an agent would find",
    ),
    (
        "alongside-mcp/src/client/unix.rs",
        "the companion that an agent would find",
    ),
    (
        "alongside-mcp/src/codex/socket.rs",
        "another editor's socket for Codex on this machine",
    ),
];

#[test]
fn nothing_phones_home() {
    let marks = [
        "TcpStream::connect",
        "TcpSocket",
        "UdpSocket",
        "UnixStream::connect",
        "UnixDatagram",
        "lookup_host",
        "ToSocketAddrs",
    ];
    let mut connecting = BTreeSet::new();
    for name in crates().keys().filter(|name| *name != TESTING) {
        for_each_source(&root().join("crates").join(name).join("src"), &mut |path, text| {
            // Tests may connect to what they start.
            let is_tests = path
                .file_stem()
                .is_some_and(|name| name.to_string_lossy().ends_with("tests"));
            let code = without_tests(text);
            if !is_tests && marks.iter().any(|mark| code.contains(mark)) {
                connecting.insert(path.to_owned());
            }
        });
    }
    let listed = CONNECTING.iter().map(|(path, _)| root().join("crates").join(path));
    assert_eq!(connecting, listed.collect());
    // Programs that do, and what checks for updates.
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    for name in [
        "reqwest",
        "ureq",
        "curl",
        "isahc",
        "attohttpc",
        "minreq",
        "self_update",
        "update-informer",
        "sentry",
    ] {
        assert!(!lock.contains(&format!("name = \"{name}\"")), "{name} is a dependency");
    }
    for package in ["npm/alongside.js", "pack.py", "licenses.py"] {
        let text = fs::read_to_string(root().join("packaging").join(package)).unwrap();
        for mark in ["http", "fetch(", "urllib", "socket", "node:net"] {
            assert!(!text.contains(mark), "{package} has {mark}");
        }
    }
}

/// A file's text without its modules of tests. Other things that only tests have stay: what follows them may be code.
fn without_tests(text: &str) -> String {
    let mut end = None;
    let mut code = String::new();
    for line in text.lines() {
        match &end {
            Some(closing) if line == closing => end = None,
            Some(_) => {}
            None => end = line.strip_suffix("mod tests {").map(|indent| format!("{indent}}}")),
        }
        if end.is_none() {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

#[test]
fn code_around_tests_is_searched() {
    let tests = "#[cfg(test)]\nmod tests {\n    fn c() {\n    }\n}\n";
    let nested = "mod b {\n    mod tests {\n        fn c() {\n        }\n    }\n    fn d() {}\n}\n";
    for text in [
        format!("#[cfg(test)]\nuse a;\nfn b() {{}}\n{tests}fn d() {{}}\n"),
        nested.to_owned(),
    ] {
        let code = without_tests(&text);
        let is_found =
            ["b", "c", "d"].map(|name| code.contains(&format!("fn {name}")) || code.contains(&format!("mod {name}")));
        assert_eq!(is_found, [true, false, true], "{code}");
    }
}

fn for_each_source(directory: &Path, look: &mut dyn FnMut(&Path, &str)) {
    for_each_file(directory, &mut |path| {
        if path.extension().is_some_and(|extension| extension == "rs") {
            look(path, &fs::read_to_string(path).unwrap());
        }
    });
}

/// Every file but those that git ignores.
fn for_each_file(directory: &Path, look: &mut dyn FnMut(&Path)) {
    let ignored = fs::read_to_string(root().join(".gitignore")).unwrap();
    let is_ignored = |path: &Path| {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
        ignored.lines().map(|line| line.trim_end_matches('/')).any(|line| {
            let is_here = line.strip_prefix('/').is_some_and(|line| line == name);
            is_here
                || path.file_name().is_some_and(|name| name == line)
                || line.strip_prefix('*').is_some_and(|end| name.ends_with(end))
        })
    };
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if is_ignored(&path) || path.ends_with(".git") {
            continue;
        }
        if path.is_dir() {
            for_each_file(&path, look);
        } else {
            look(&path);
        }
    }
}

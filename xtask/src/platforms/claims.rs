//! The tables of platforms in README.md and docs/TESTING.md claim what is proven here, and nothing else.

use std::collections::BTreeSet;
use std::fs;

use super::{CHECKS, LINKS, MAC_ARM, MAC_INTEL};
use crate::plan::Plan;

const ARM: &str = "Linux ARM64 (qemu)";
const STATIC: &str = "static Linux";
const WINDOWS: &str = "Windows (wine)";

const RUN_ARM: &str = "run on ARM, in qemu";
const RUN_STATIC: &str = "static program in an empty root";
const RUN_WINDOWS: &str = "Windows program in wine";

/// The first table with a column for macOS, without the line below the head.
fn table(document: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(crate::root().join(document)).unwrap();
    let lines = text
        .lines()
        .skip_while(|line| !(line.starts_with("| |") && line.contains("macOS")))
        .take_while(|line| line.starts_with('|'))
        .filter(|line| !line.starts_with("|---"));
    lines
        .map(|line| {
            let cells = line.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect()
}

/// A cell of docs/TESTING.md, as README.md shows it.
fn short(cell: &str) -> &str {
    match cell {
        "" => "–",
        "not run" => "not run",
        _ => "✓",
    }
}

/// README.md has fewer rows than docs/TESTING.md and shorter words, but claims nothing else.
#[test]
fn platform_table_of_readme_is_the_one_of_the_tests() {
    let (readme, testing) = (table("README.md"), table("docs/TESTING.md"));
    let rows = [
        ("compiles, with its tests, and links", "compiles, with its tests"),
        ("compiles, with its tests, and links", "links"),
        ("starts, is announced, stops", "starts, announces itself"),
        (
            "Gemini CLI's and Qwen Code's own code",
            "Gemini CLI's and Qwen Code's own code",
        ),
        (
            "npm, pip, .deb and archive install",
            "packages: npm, pip, .deb and archive install",
        ),
        ("all agents, editors, the page", "editors, the page, the chat"),
    ];
    let find = |table: &[Vec<String>], start: &str| -> Vec<String> {
        let row = table.iter().find(|row| row[0].starts_with(start));
        row.unwrap_or_else(|| panic!("no row begins with `{start}`")).clone()
    };
    for (in_readme, in_testing) in rows {
        let (claimed, tested) = (find(&readme, in_readme), find(&testing, in_testing));
        let tested: Vec<&str> = tested[1..].iter().map(|cell| short(cell)).collect();
        assert_eq!(claimed[1..], tested, "{in_readme}");
    }
    let compared: BTreeSet<&str> = rows.iter().map(|(row, _)| *row).collect();
    assert_eq!(readme.len(), 1 + compared.len(), "a row is not compared");
}

/// Row and column of docs/TESTING.md, the step that proves it, and the tests that the step runs, with their files.
type Proof = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// macOS has a test of its own.
const PROOFS: [Proof; 15] = [
    ("compiles, with its tests", ARM, "check for Linux on ARM", &[]),
    ("compiles, with its tests", STATIC, "check for static Linux", &[]),
    ("compiles, with its tests", WINDOWS, "check for Windows", &[]),
    ("links", ARM, RUN_ARM, &[]),
    ("links", STATIC, RUN_STATIC, &[]),
    ("links", WINDOWS, RUN_WINDOWS, &[]),
    ("starts, announces itself", ARM, RUN_ARM, &[]),
    ("starts, announces itself", STATIC, RUN_STATIC, &[]),
    (
        "starts, announces itself",
        WINDOWS,
        RUN_WINDOWS,
        &[("windows/main", "ctrl_c_removes_the_discovery_files")],
    ),
    (
        "Gemini CLI's and Qwen Code's own code",
        WINDOWS,
        RUN_WINDOWS,
        &[("windows/main", "agents_own_code_connects_and_gets_the_decision")],
    ),
    (
        "`stop`; a killed companion's files are swept",
        WINDOWS,
        RUN_WINDOWS,
        &[
            ("windows/main", "stop_ends_the_companion"),
            ("windows/main", "leftovers_of_a_killed_companion_are_swept"),
            ("windows/main", "companion_ends_with_its_editor"),
        ],
    ),
    (
        "`run` with an agent that npm installed",
        WINDOWS,
        RUN_WINDOWS,
        &[
            (
                "windows/main",
                "command_script_of_npm_is_run_with_the_companions_variables",
            ),
            ("windows/main", "language_server_reads_windows_uris"),
            ("windows/main", "one_file_in_several_spellings_is_open_once"),
        ],
    ),
    (
        "an agent in the chat ends with all its processes",
        WINDOWS,
        RUN_WINDOWS,
        &[
            (
                "windows/processes",
                "agent_ends_with_all_its_processes_when_the_companion_stops",
            ),
            (
                "windows/processes",
                "agent_ends_with_all_its_processes_when_the_companion_is_killed",
            ),
            (
                "windows/processes",
                "editors_command_ends_with_all_its_processes_when_install_is_interrupted",
            ),
        ],
    ),
    (
        "`doctor` refuses what the agents' own code refuses",
        WINDOWS,
        RUN_WINDOWS,
        &[
            ("windows/paths", "doctor_refuses_what_the_agents_own_code_refuses"),
            ("windows/npm", "npm_command_passes_output_and_exit_code_on"),
            ("windows/npm", "npm_command_leaves_ctrl_c_to_the_program"),
        ],
    ),
    (
        "packages: npm, pip, .deb and archive install",
        STATIC,
        "installation of the packages",
        &[
            ("packages/npm", "npm_installs_the_package_of_this_platform_only"),
            ("packages/wheel", "wheel_installs_and_uninstalls"),
            ("packages/deb", "debian_package_installs_and_purges"),
            ("packages/archive", "unpacked_archive_works_where_it_is"),
        ],
    ),
];

/// Each claim about a system other than this one names what proves it, and that is there.
#[test]
fn platform_table_claims_what_steps_and_tests_prove() {
    let mut plan = Plan::default();
    super::all(&mut plan);
    crate::packages(&mut plan, crate::Choice::All);
    let steps = plan.names();
    for (row, column, step, tests) in PROOFS {
        assert!(steps.contains(&step), "{row}, {column}: there is no step `{step}`");
        for (file, test) in tests {
            let text = fs::read_to_string(crate::root().join(format!("e2e/tests/{file}.rs"))).unwrap();
            let one = text.contains(&format!("#[test]\nfn {test}()"));
            let for_both = text.contains(&format!("for_both_agents!({test});"));
            assert!(one || for_both, "{row}, {column}: {file}.rs has no test `{test}`");
        }
    }
    let table = table("docs/TESTING.md");
    for row in &table[1..] {
        for column in [ARM, STATIC, WINDOWS] {
            let cell = table[0].iter().position(|head| head == column).unwrap();
            // Rules that are the same code on every system.
            let claims = !row[cell].is_empty() && row[cell] != "unit tests, on Linux";
            let mut proofs = PROOFS.iter();
            let is_proven = proofs.any(|(start, of, ..)| row[0].starts_with(start) && *of == column);
            assert_eq!(claims, is_proven, "{}, {column}", row[0]);
        }
    }
}

/// Nothing here runs a program for macOS, so the tables claim no more than what is compiled and linked.
#[test]
fn platform_tables_claim_for_macos_what_is_built() {
    for target in [&MAC_ARM, &MAC_INTEL] {
        for targets in [&CHECKS[..], &LINKS[..]] {
            assert!(
                targets.iter().any(|(_, there)| there.triple == target.triple),
                "{}",
                target.triple
            );
        }
    }
    for document in ["README.md", "docs/TESTING.md"] {
        let table = table(document);
        let head = table[0].last().unwrap();
        assert_eq!(
            head, "macOS, ARM and Intel (compiled and linked, not run)",
            "{document}"
        );
        for row in &table[1..] {
            let cell = row.last().unwrap();
            let is_built = row[0].starts_with("compiles") || row[0] == "links";
            // Rules that are the same code on every system.
            let is_rule = cell == "unit tests, on Linux";
            assert!(is_built || is_rule || cell == "not run", "{document}: {row:?}");
        }
    }
}

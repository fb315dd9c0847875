//! The release workflow: GitHub would only tell what is wrong with it when a tag is pushed.

use std::process::Command;

use crate::{npm, root, run};

const WORKFLOW: &str = ".github/workflows/release.yml";

/// Checks it against GitHub's schema. Nothing is asked on the network.
pub(super) fn check() -> Result<(), String> {
    let validator = root().join("e2e/workflow");
    npm::install_in(&validator)?;
    let mut command = Command::new(npm::node());
    command
        .arg(validator.join("node_modules/@action-validator/cli/cli.mjs"))
        .arg(WORKFLOW)
        .current_dir(root());
    run(command)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::platform::PLATFORMS;
    use super::super::release::Release;
    use super::*;
    use crate::USAGE;

    /// GitHub's own actions, each with the first major version that runs on Node 24: runners no longer have Node 20.
    const ACTIONS: [(&str, u32); 4] = [
        ("actions/checkout", 5),
        ("actions/setup-node", 5),
        ("actions/upload-artifact", 6),
        ("actions/download-artifact", 7),
    ];

    /// Runners that GitHub supports at the time of writing.
    const RUNNERS: [&str; 5] = [
        "ubuntu-24.04",
        "ubuntu-24.04-arm",
        "macos-15",
        "macos-15-intel",
        "windows-2022",
    ];

    /// The words after `cargo xtask`, as far as they are on the same line.
    fn tasks(text: &str) -> impl Iterator<Item = Vec<&str>> {
        let ends = |next: char| !next.is_ascii_alphanumeric() && !"-_ ".contains(next);
        text.split("cargo xtask ").skip(1).map(move |rest| {
            let rest = rest.split(ends).next().unwrap_or_default();
            // The end of a comment in Markdown is no option.
            rest.split(' ')
                .filter(|word| !word.is_empty() && *word != "--")
                .collect()
        })
    }

    #[test]
    fn commands_in_workflow_and_documents_exist() {
        let lines = USAGE
            .lines()
            .filter_map(|line| line.strip_prefix("  "))
            .map(str::trim_start);
        let known: Vec<&str> = lines.filter_map(|line| line.split(' ').next()).collect();
        let options: Vec<&str> = USAGE
            .split([' ', '\n', '['])
            .filter(|word| word.starts_with("--"))
            .collect();
        let mut count = 0;
        for name in [
            WORKFLOW,
            ".ci/run",
            "README.md",
            "CONTRIBUTING.md",
            "docs/RELEASING.md",
            "docs/TESTING.md",
        ] {
            let text = fs::read_to_string(root().join(name)).unwrap();
            for task in tasks(&text) {
                let Some((first, rest)) = task.split_first() else {
                    continue;
                };
                assert!(known.contains(first), "{name}: there is no task `{first}`");
                for option in rest.iter().filter(|word| word.starts_with("--")) {
                    assert!(options.contains(option), "{name}: `{first}` has no `{option}`");
                }
                count += 1;
            }
        }
        assert!(count > 20, "only {count} commands were found");
    }

    /// The values of a key of the workflow.
    fn values<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
        let lines = text.lines().map(|line| line.trim_start().trim_start_matches("- "));
        lines.filter_map(move |line| line.strip_prefix(key)?.strip_prefix(": "))
    }

    #[test]
    fn actions_and_runners_are_supported() {
        let text = fs::read_to_string(root().join(WORKFLOW)).unwrap();
        let mut runners: Vec<&str> = values(&text, "runs-on").collect();
        assert_eq!(runners.len(), text.matches("steps:").count(), "one for each job");
        runners.retain(|runner| *runner != "${{ matrix.runner }}");
        runners.extend(
            text.split("{ runner: ")
                .skip(1)
                .filter_map(|rest| rest.split(',').next()),
        );
        assert_eq!(runners.len(), 7, "{runners:?}");
        for runner in runners {
            assert!(
                RUNNERS.contains(&runner),
                "{runner} is not in the list of supported runners"
            );
        }
        let actions: Vec<&str> = values(&text, "uses").collect();
        assert!(actions.len() > 10, "{actions:?}");
        for action in actions {
            let (name, version) = action.split_once("@v").unwrap();
            let known = ACTIONS.iter().find(|(known, _)| *known == name);
            let (_, first) = known.unwrap_or_else(|| panic!("{name} is not in the list of actions"));
            assert!(
                version.parse::<u32>().unwrap() >= *first,
                "{action} runs on Node 20; use v{first}"
            );
        }
    }

    /// The lines of a job.
    fn job<'a>(text: &'a str, name: &str) -> &'a str {
        let (_, rest) = text.split_once(&format!("\n  {name}:\n")).unwrap();
        let end = rest.match_indices("\n  ").find(|(at, _)| {
            let next = rest[at + 3..].chars().next();
            next.is_some_and(|next| next.is_ascii_alphabetic() || next == '#')
        });
        end.map_or(rest, |(at, _)| &rest[..at])
    }

    /// Nothing else runs the program there before it is published.
    #[test]
    fn companion_is_started_and_stopped_on_every_system_and_processor() {
        let text = fs::read_to_string(root().join(WORKFLOW)).unwrap();
        let others = job(&text, "other-processors");
        for target in ["x86_64-apple-darwin", "aarch64-unknown-linux-musl"] {
            assert!(others.contains(&format!("target: {target} }}")), "{target}");
        }
        for needs in ["linux-and-windows", "macos", "windows", "other-processors"] {
            assert!(
                values(job(&text, "release"), "needs").any(|needed| needed.contains(needs)),
                "{needs}"
            );
        }
        for name in ["macos", "windows", "other-processors"] {
            let job = job(&text, name);
            let commands = ["alongside serve --json > ", "alongside stop\n", "wait \"$companion\""];
            let places: Vec<usize> = commands.iter().map(|command| job.find(command).unwrap()).collect();
            assert!(places.is_sorted(), "{job}");
            assert!(
                job.contains("timeout-minutes"),
                "a companion that does not start must not hang the release"
            );
        }
    }

    /// The suite has never run on a Mac: a failure there must not keep back a release.
    #[test]
    fn tests_on_a_mac_do_not_block_the_release() {
        let text = fs::read_to_string(root().join(WORKFLOW)).unwrap();
        let tests = job(&text, "macos-tests");
        assert_eq!(text.matches("cargo test").count(), 1);
        assert!(tests.contains("cargo test --locked"), "{tests}");
        assert!(
            tests.contains("TMPDIR: /tmp"),
            "in a Mac's own temporary directory, paths of sockets are too long"
        );
        let needs: Vec<&str> = values(&text, "needs").collect();
        assert!(!needs.is_empty() && needs.iter().all(|needs| !needs.contains("macos-tests")));
    }

    /// A later job unpacks all artifacts into one directory at the same time: no two may have the same file.
    #[test]
    fn mac_uploads_what_no_other_job_makes_and_nothing_else() {
        let text = fs::read_to_string(root().join(WORKFLOW)).unwrap();
        let mac = job(&text, "macos");
        let patterns: Vec<&str> = mac
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("target/packages/*"))
            .map(|rest| rest.strip_suffix('*').unwrap())
            .collect();
        assert!(!mac.contains("path: target/packages,"), "this is everything");
        let is_uploaded = |file: &str| patterns.iter().any(|pattern| file.contains(pattern));
        let release = Release::read().unwrap();
        for platform in &PLATFORMS {
            for file in release.files(platform) {
                assert_eq!(is_uploaded(&file), platform.is_mac(), "{file}");
            }
        }
        let root_package = release.npm_root();
        for shared in [
            "alongside.vsix",
            "SHA256SUMS",
            "homebrew",
            "scoop",
            "winget",
            &root_package,
        ] {
            assert!(!is_uploaded(shared), "{shared}");
        }
    }

    /// The workflow's own command, with a changelog of two versions.
    #[cfg(unix)]
    #[test]
    fn notes_of_a_release_are_those_of_its_version() {
        use super::super::{output, stage, write};

        let text = fs::read_to_string(root().join(WORKFLOW)).unwrap();
        let release = job(&text, "release");
        let command = release.lines().find(|line| line.contains("CHANGELOG.md")).unwrap();
        let (command, file) = command.split_once(" > ").unwrap();
        assert!(release.contains(&format!("--notes-file {file}")), "{release}");
        let directory = stage("notes-test").unwrap();
        let changelog = "# Changelog\n\n## 1.2.0, 2026-02-03\n\n- new\n\n## 1.1.0, 2026-01-02\n\n- old\n";
        write(&directory.join("CHANGELOG.md"), changelog).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(directory);
        assert_eq!(String::from_utf8(output(shell).unwrap()).unwrap().trim(), "- new");
    }

    /// npm takes `owner/name.tgz` for a repository on GitHub, and only some other spellings for a file.
    #[test]
    fn npm_installs_packages_from_files() {
        let text = fs::read_to_string(root().join(WORKFLOW)).unwrap();
        let commands = text.lines().filter(|line| line.contains("npm install"));
        let words = commands.flat_map(str::split_whitespace);
        let mut count = 0;
        for package in words.filter(|word| word.contains(".tgz")) {
            let is_file = ["./", "../", "/", "~/"].iter().any(|start| package.starts_with(start));
            assert!(is_file, "npm may take {package} for a repository; write ./{package}");
            count += 1;
        }
        assert_eq!(count, 4, "a Mac and Windows install two packages each");
    }

    /// What the workflow installs and builds is what is published.
    #[test]
    fn targets_in_workflow_are_those_of_the_packages() {
        let text = fs::read_to_string(root().join(WORKFLOW)).unwrap();
        let mac = job(&text, "macos");
        for platform in PLATFORMS.iter().filter(|platform| platform.is_mac()) {
            assert_eq!(mac.matches(platform.triple).count(), 2, "{}", platform.triple);
        }
    }
}

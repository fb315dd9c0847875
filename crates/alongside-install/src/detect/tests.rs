//! Complete terminal environments, as found in practice.

use super::rules::{VARIABLES, ValueRule};
use super::*;
use alongside_discovery::Platform;
use alongside_discovery::process::ProcessTable;

fn terminal(variables: &[(&str, &str)]) -> Environment {
    let environment = Environment {
        pid: 100,
        platform: Platform::Unix,
        ..Environment::new("/home/ada", "/project")
    };
    variables.iter().fold(environment, |environment, (name, value)| {
        environment.with(*name, *value)
    })
}

/// The last command is our own process; each one is the parent of the next.
fn line(commands: &[&str]) -> ProcessTable {
    let first = 101 - u32::try_from(commands.len()).unwrap();
    let rows = (first..).zip(commands);
    rows.fold(ProcessTable::default().with(1, 0, "init"), |table, (pid, command)| {
        table.with(pid, if pid == first { 1 } else { pid - 1 }, command)
    })
}

fn found(variables: &[(&str, &str)], commands: &[&str]) -> Option<DetectedIde> {
    let detection = detect(&terminal(variables), &line(commands));
    detection.found.map(|finding| finding.ide)
}

#[test]
fn each_variable_alone_is_enough() {
    for rule in VARIABLES {
        let value = match rule.wanted {
            ValueRule::Any => "something".to_owned(),
            ValueRule::Is(value) => value.to_owned(),
            ValueRule::Has(part) => format!("/opt/{part}/x"),
        };
        let detection = detect(&terminal(&[(rule.name, &value)]), &ProcessTable::default());
        let finding = detection.found.unwrap();
        assert_eq!(finding.ide, rule.ide, "{}={value}", rule.name);
        assert_eq!(
            finding.evidence,
            [Evidence::Variable {
                name: rule.name.to_owned(),
                value
            }]
        );
        assert_eq!(
            found(&[(rule.name, "")], &[]),
            None,
            "{} set to an empty value is not evidence",
            rule.name
        );
    }
}

#[test]
fn common_terminals_are_detected() {
    use DetectedIde as Ide;
    type Row<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], Option<Ide>);
    let vscode = ("TERM_PROGRAM", "vscode");
    let jediterm = ("TERMINAL_EMULATOR", "JetBrains-JediTerm");
    let runtime = ("VIMRUNTIME", "/usr/share/nvim/runtime");
    let rows: &[Row<'_>] = &[
        (&[], &["/usr/bin/xterm", "bash", "alongside"], None),
        (&[("TERM_PROGRAM", "tmux")], &["tmux", "-zsh", "alongside"], None),
        (&[("TERM_PROGRAM", "Apple_Terminal")], &["-zsh", "alongside"], None),
        (
            &[("NVIM", "/run/nvim.0"), runtime],
            &["nvim --embed", "bash", "alongside"],
            Some(Ide::Neovim),
        ),
        (&[], &["hx src/main.rs", "sh", "alongside"], Some(Ide::Helix)),
        (&[("HELIX_RUNTIME", "/usr/lib/helix")], &["bash", "alongside"], None),
        (&[], &["kak main.c", "sh", "alongside"], Some(Ide::Kakoune)),
        (
            &[("INSIDE_EMACS", "30.1,vterm")],
            &["emacs-gtk", "bash", "alongside"],
            Some(Ide::Emacs),
        ),
        (
            &[vscode],
            &["/usr/share/code/code", "bash", "alongside"],
            Some(Ide::VsCode),
        ),
        (
            &[vscode],
            &["/usr/share/codium/codium", "bash", "alongside"],
            Some(Ide::VsCodium),
        ),
        (
            &[vscode],
            &["/opt/windsurf/windsurf", "zsh", "alongside"],
            Some(Ide::Windsurf),
        ),
        (
            &[vscode, ("CURSOR_TRACE_ID", "1")],
            &["bash", "alongside"],
            Some(Ide::Cursor),
        ),
        (
            &[vscode, ("CODESPACES", "true")],
            &["/home/ada/.vscode-server/node", "bash", "alongside"],
            Some(Ide::Codespaces),
        ),
        (&[vscode], &["alongside"], Some(Ide::VsCode)),
        (
            &[jediterm],
            &["/opt/rustrover/bin/rustrover", "bash", "alongside"],
            Some(Ide::RustRover),
        ),
        (
            &[jediterm],
            &[
                "/opt/jbr/bin/java -Didea.paths.selector=PyCharm2026.1 Main",
                "bash",
                "alongside",
            ],
            Some(Ide::PyCharm),
        ),
        (&[jediterm], &["bash", "alongside"], Some(Ide::JetBrains)),
        // An editor inside another's terminal: the nearer one wins.
        (
            &[vscode, ("NVIM", "/run/nvim.0")],
            &["code", "bash", "nvim", "bash", "alongside"],
            Some(Ide::Neovim),
        ),
        (
            &[vscode, ("NVIM", "/run/nvim.0")],
            &["nvim", "bash", "code", "bash", "alongside"],
            Some(Ide::VsCode),
        ),
        (
            &[("NVIM", "/s"), runtime, ("VIM_TERMINAL", "901")],
            &["nvim", "bash", "vim", "bash", "alongside"],
            Some(Ide::Vim),
        ),
        (&[("NVIM", "/s"), vscode], &["alongside"], Some(Ide::Neovim)),
    ];
    for (variables, commands, expected) in rows {
        assert_eq!(found(variables, commands), *expected, "{variables:?} {commands:?}");
    }
}

#[test]
fn evidence_is_collected_and_outer_editor_is_listed() {
    let variables = [("TERM_PROGRAM", "vscode"), ("NVIM", "/run/nvim.0")];
    let detection = detect(
        &terminal(&variables),
        &line(&["/usr/bin/code", "bash", "nvim", "bash", "alongside"]),
    );
    let finding = detection.found.unwrap();
    assert_eq!(finding.evidence.len(), 2, "{finding:?}");
    assert_eq!(detection.others[0].ide, DetectedIde::VsCode);
    assert_eq!(detection.others[0].evidence.len(), 2);
}

#[test]
fn variable_names_on_windows_ignore_case() {
    let environment = Environment {
        platform: Platform::Windows,
        ..terminal(&[("Term_Program", "vscode")])
    };
    let processes = ProcessTable::default()
        .with(100, 50, "alongside.exe")
        .with(50, 40, "powershell.exe")
        .with(
            40,
            0,
            "\"C:\\Users\\ada\\AppData\\Local\\Programs\\cursor\\Cursor.exe\" --type=utility",
        );
    let detection = detect(&environment, &processes);
    assert_eq!(detection.found.unwrap().ide, DetectedIde::Cursor);
}

#[test]
fn process_cycle_terminates() {
    let processes = ProcessTable::default().with(100, 99, "a").with(99, 100, "vim");
    assert_eq!(detect(&terminal(&[]), &processes).found.unwrap().ide, DetectedIde::Vim);
}

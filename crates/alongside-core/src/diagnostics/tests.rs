//! Which diagnostics are kept, visible and changed.

use super::*;

const NEOVIM: FrontEndId = FrontEndId(1);
const EMACS: FrontEndId = FrontEndId(2);

fn found(severity: Severity, message: &str) -> Diagnostic {
    Diagnostic {
        start: Cursor { line: 1, character: 1 },
        end: Cursor { line: 1, character: 5 },
        severity,
        message: message.to_owned(),
        source: None,
        code: None,
    }
}

fn error(message: &str) -> Diagnostic {
    found(Severity::Error, message)
}

fn file(path: &str, diagnostics: Vec<Diagnostic>) -> FileDiagnostics {
    let path = path.to_owned();
    FileDiagnostics { path, diagnostics }
}

/// Reports a file that is on disk under the same name.
fn report(all: &mut Diagnostics, front_end: FrontEndId, path: &str, diagnostics: Vec<Diagnostic>) {
    all.report(front_end, file(path, diagnostics), Some(path.into()))
        .unwrap();
}

fn visible(all: &Diagnostics) -> Vec<FileDiagnostics> {
    all.visible(&Privacy::default(), &["/w".into()], None)
}

#[test]
fn report_replaces_the_previous_one_and_an_empty_one_clears() {
    let mut all = Diagnostics::default();
    report(&mut all, NEOVIM, "/w/a", vec![error("one"), error("two")]);
    report(&mut all, NEOVIM, "/w/b", vec![error("other")]);
    report(&mut all, NEOVIM, "/w/a", vec![error("three")]);
    assert_eq!(
        visible(&all),
        [file("/w/a", vec![error("three")]), file("/w/b", vec![error("other")])]
    );
    report(&mut all, NEOVIM, "/w/a", vec![]);
    assert_eq!(visible(&all), [file("/w/b", vec![error("other")])]);
}

#[test]
fn front_ends_are_merged_and_leave_alone() {
    let mut all = Diagnostics::default();
    report(&mut all, NEOVIM, "/w/a", vec![error("both"), error("one")]);
    report(&mut all, EMACS, "/w/a", vec![error("both"), error("two")]);
    assert_eq!(
        visible(&all),
        [file("/w/a", vec![error("both"), error("one"), error("two")])]
    );
    all.remove(NEOVIM);
    assert_eq!(visible(&all), [file("/w/a", vec![error("both"), error("two")])]);
}

#[test]
fn file_has_one_entry_in_all_its_spellings() {
    let windows = [
        r"C:\w\a.txt",
        r"c:\w\a.txt",
        "c:/w/a.txt",
        r"C:\W\A.TXT",
        r"\\?\C:\w\a.txt",
    ];
    let macos = ["/w/a.txt", "/w/A.txt", "/W/a.txt"];
    for (platform, folder, paths) in [
        (Platform::Windows, r"C:\w", &windows[..]),
        (Platform::MacOs, "/w", &macos),
    ] {
        let mut all = Diagnostics {
            platform,
            ..Diagnostics::default()
        };
        let workspace = [PathBuf::from(folder)];
        let privacy = Privacy::default();
        for path in paths {
            let reported = file(path, vec![error(path)]);
            all.report(NEOVIM, reported, Some(paths[0].into())).unwrap();
            let expected = [file(paths[0], vec![error(path)])];
            assert_eq!(all.visible(&privacy, &workspace, None), expected, "{path}");
            assert_eq!(all.take_changes(&privacy, &workspace), expected, "{path}");
        }
        let real = Some(paths[0].into());
        all.report(EMACS, file(paths[1], vec![error("Emacs")]), real).unwrap();
        for path in paths {
            let wanted = all.visible(&privacy, &workspace, Some(Path::new(path)));
            assert_eq!(wanted.len(), 1, "{path}: {wanted:?}");
            assert_eq!(wanted[0].diagnostics.len(), 2, "{path}: {wanted:?}");
        }
        all.remove(EMACS);
        all.report(NEOVIM, file(paths[2], vec![]), None).unwrap();
        let cleared = [file(paths[0], vec![])];
        assert_eq!(all.take_changes(&privacy, &workspace), cleared);
    }
}

#[test]
fn windows_path_in_the_first_report_has_the_spelling_of_agents() {
    let mut all = Diagnostics {
        platform: Platform::Windows,
        ..Diagnostics::default()
    };
    let reported = file("c:/w/a", vec![error("one")]);
    all.report(NEOVIM, reported, Some(r"C:\w\a".into())).unwrap();
    let changes = all.take_changes(&Privacy::default(), &[r"C:\w".into()]);
    assert_eq!(changes, [file(r"C:\w\a", vec![error("one")])]);
    let relative = all.report(NEOVIM, file(r"w\a", vec![]), None);
    assert_eq!(relative, Err(ContextError::NotAbsolute(r"w\a".to_owned())));
}

#[test]
fn hidden_missing_and_foreign_files_are_not_visible() {
    let mut all = Diagnostics::default();
    report(&mut all, NEOVIM, "/w/.env", vec![error("secret")]);
    report(&mut all, NEOVIM, "/elsewhere/a", vec![error("foreign")]);
    for (path, real) in [
        ("/w/link", Some("/w/.env")),
        ("/w/out", Some("/elsewhere/a")),
        ("/w/missing", None),
    ] {
        let file = file(path, vec![error("hidden")]);
        all.report(NEOVIM, file, real.map(PathBuf::from)).unwrap();
    }
    assert_eq!(visible(&all), []);
    assert_eq!(
        all.visible(&Privacy::default(), &["/w".into()], Some(Path::new("/w/.env"))),
        []
    );
}

#[test]
fn one_file_is_found_by_both_of_its_paths() {
    let mut all = Diagnostics::default();
    report(&mut all, NEOVIM, "/w/b", vec![error("other")]);
    let linked = file("/link/a", vec![error("one")]);
    all.report(NEOVIM, linked.clone(), Some("/w/a".into())).unwrap();
    for wanted in ["/link/a", "/w/a"] {
        let found = all.visible(&Privacy::default(), &["/w".into()], Some(Path::new(wanted)));
        assert_eq!(found, std::slice::from_ref(&linked), "{wanted}");
    }
}

#[test]
fn diagnostics_of_a_file_are_limited_to_the_most_severe() {
    let mut all = Diagnostics::default();
    let mut reported = vec![found(Severity::Hint, "hint"), found(Severity::Warning, "first")];
    reported.extend((2..MAX_PER_FILE).map(|_| error("error")));
    reported.extend([found(Severity::Warning, "second"), found(Severity::Warning, "third")]);
    report(&mut all, NEOVIM, "/w/a", reported.clone());
    // The hint and the last warning are left out.
    let expected = all.reports[0].diagnostics.clone();
    assert_eq!(expected.len(), MAX_PER_FILE);
    assert_eq!(expected, reported[1..=MAX_PER_FILE]);
}

#[test]
fn long_texts_of_diagnostics_are_cut() {
    let mut all = Diagnostics::default();
    let long = Diagnostic {
        source: Some("ü".repeat(MAX_NAME_BYTES)),
        code: Some("x".repeat(MAX_NAME_BYTES + 1)),
        ..error(&format!("x{}", "ü".repeat(MAX_MESSAGE_BYTES)))
    };
    report(&mut all, NEOVIM, "/w/a", vec![long]);
    let cut = &visible(&all)[0].diagnostics[0];
    assert_eq!(cut.message.len(), MAX_MESSAGE_BYTES - 1);
    assert_eq!(cut.source.as_ref().unwrap().len(), MAX_NAME_BYTES);
    assert_eq!(cut.code.as_ref().unwrap().len(), MAX_NAME_BYTES);
}

#[test]
fn files_with_diagnostics_are_limited() {
    let mut all = Diagnostics::default();
    for number in 0..=MAX_FILES {
        report(&mut all, NEOVIM, &format!("/w/{number}"), vec![error("one")]);
    }
    assert_eq!(all.reports.len(), MAX_FILES);
    assert_eq!(&*all.reports[0].path, "/w/1");

    let long = vec![error(&"x".repeat(MAX_MESSAGE_BYTES)); MAX_PER_FILE];
    for number in 0..20 {
        report(&mut all, EMACS, &format!("/w/long{number}"), long.clone());
    }
    assert!(all.reports.iter().map(|report| report.bytes).sum::<usize>() <= MAX_BYTES);
    assert_eq!(&*all.reports.last().unwrap().path, "/w/long19");
}

#[test]
fn invalid_paths_and_positions_are_refused() {
    let mut all = Diagnostics::default();
    let relative = all.report(NEOVIM, file("a", vec![]), None);
    assert_eq!(relative, Err(ContextError::NotAbsolute("a".to_owned())));
    let mut misplaced = error("one");
    misplaced.end.character = 0;
    let misplaced = all.report(NEOVIM, file("/w/a", vec![misplaced]), None);
    assert_eq!(misplaced, Err(ContextError::BadPosition { line: 1, character: 0 }));
}

fn changes(all: &mut Diagnostics) -> Vec<FileDiagnostics> {
    all.take_changes(&Privacy::default(), &["/w".into()])
}

#[test]
fn changed_files_are_taken_once() {
    let mut all = Diagnostics::default();
    report(&mut all, NEOVIM, "/w/b", vec![error("other")]);
    report(&mut all, NEOVIM, "/w/a", vec![error("one")]);
    report(&mut all, NEOVIM, "/w/a", vec![error("two")]);
    assert_eq!(
        changes(&mut all),
        [file("/w/a", vec![error("two")]), file("/w/b", vec![error("other")])]
    );
    assert_eq!(changes(&mut all), []);
    report(&mut all, NEOVIM, "/w/a", vec![error("two")]);
    assert!(!all.has_changes(), "the same report");
    report(&mut all, NEOVIM, "/w/a", vec![]);
    report(&mut all, NEOVIM, "/w/c", vec![error("gone")]);
    report(&mut all, NEOVIM, "/w/c", vec![]);
    assert_eq!(changes(&mut all), [file("/w/a", vec![])]);
}

#[test]
fn change_of_one_front_end_carries_those_of_the_others() {
    let mut all = Diagnostics::default();
    report(&mut all, NEOVIM, "/w/a", vec![error("one")]);
    report(&mut all, EMACS, "/w/a", vec![error("two")]);
    changes(&mut all);
    all.remove(NEOVIM);
    assert_eq!(changes(&mut all), [file("/w/a", vec![error("two")])]);
    all.remove(EMACS);
    assert_eq!(changes(&mut all), [file("/w/a", vec![])]);
}

#[test]
fn hidden_file_is_never_named_in_a_change() {
    let mut all = Diagnostics::default();
    report(&mut all, NEOVIM, "/w/.env", vec![error("secret")]);
    report(&mut all, NEOVIM, "/elsewhere/a", vec![error("foreign")]);
    assert!(all.has_changes());
    assert_eq!(changes(&mut all), []);
    report(&mut all, NEOVIM, "/w/.env", vec![]);
    assert_eq!(changes(&mut all), []);
}

#[test]
fn forgotten_files_are_cleared() {
    let mut all = Diagnostics::default();
    report(&mut all, NEOVIM, "/w/first", vec![error("one")]);
    changes(&mut all);
    for number in 0..MAX_FILES {
        report(&mut all, NEOVIM, &format!("/w/{number}"), vec![error("one")]);
    }
    assert_eq!(changes(&mut all).last(), Some(&file("/w/first", vec![])));
    assert_eq!(all.published.len(), MAX_FILES);
}

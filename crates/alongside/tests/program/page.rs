//! The page's login links: how `--open` hands them to the browser.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::sandbox::{Sandbox, wait_for};

/// A sandbox with a browser that records its arguments, one per line, and the file it writes them to.
fn with_browser() -> (Sandbox, PathBuf) {
    let mut sandbox = Sandbox::new();
    let (browser, record) = (sandbox.path("browser"), sandbox.path("arguments"));
    let new = sandbox.path("arguments.new");
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > '{new}'\nmv '{new}' '{record}'\n",
        new = new.display(),
        record = record.display()
    );
    fs::write(&browser, script).unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    sandbox.set("BROWSER", browser.to_str().unwrap());
    (sandbox, record)
}

/// What the browser was started with.
fn arguments(record: &Path) -> String {
    let found = wait_for("the browser", || fs::read_to_string(record).ok());
    fs::remove_file(record).unwrap();
    found
}

#[cfg(target_os = "linux")]
#[test]
fn program_that_opens_the_page_does_not_stay_a_zombie() {
    let (mut sandbox, record) = with_browser();
    let browser = sandbox.path("browser-with-pid");
    fs::write(
        &browser,
        "#!/bin/sh\necho $$ > \"$RECORD.new\"\nmv \"$RECORD.new\" \"$RECORD\"\n",
    )
    .unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    sandbox.set("BROWSER", browser.to_str().unwrap());
    sandbox.set("RECORD", record.to_str().unwrap());
    let _serving = sandbox.serve_with(&["--open"]);
    let process = Path::new("/proc").join(arguments(&record).trim());
    wait_for("the end of the process", || (!process.exists()).then_some(()));
}

fn has_secret(text: &str) -> bool {
    text.split(|character: char| !character.is_ascii_hexdigit())
        .any(|run| run.len() >= 32)
}

#[test]
fn login_link_is_not_in_the_browsers_arguments() {
    let (sandbox, record) = with_browser();
    let _serving = sandbox.serve_with(&["--open"]);
    let mut links = Vec::new();
    for command in [&["serve"][..], &["page", "--open"], &["chat", "--open"]] {
        if command != ["serve"] {
            sandbox.words(command);
        }
        let arguments = arguments(&record);
        assert!(!has_secret(&arguments), "{command:?}: {arguments}");
        let file = PathBuf::from(arguments.trim());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(&file), mode(file.parent().unwrap())),
            (0o600, 0o700),
            "{command:?}"
        );
        let redirect = fs::read_to_string(&file).unwrap();
        assert!(
            has_secret(&redirect) && redirect.contains("url=http://127.0.0.1:"),
            "{redirect}"
        );
        assert_eq!(redirect.contains("view=chat"), command[0] == "chat", "{redirect}");
        links.push(file);
    }
    sandbox.words(&["stop"]);
    wait_for("the files to be removed", || {
        links.iter().all(|file| !file.exists()).then_some(())
    });
}

#[test]
fn printed_link_is_not_the_one_of_the_file() {
    let (sandbox, record) = with_browser();
    let _serving = sandbox.serve();
    let printed = sandbox.words(&["page", "--open"]);
    let file = arguments(&record);
    let redirect = fs::read_to_string(file.trim()).unwrap();
    assert!(
        !redirect.contains(printed.trim()),
        "the printed link must still work after the browser used the file"
    );
}

//! The package itself: compiler, documentation and package checks, its own tests, and ways to install it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use alongside_e2e::{Sandbox, alongside, plugin};

use serde_json::json;

use super::driver::{Emacs, NO_COMPILER, Version, for_both_versions, quoted};
use crate::agent::{Agent, announced};

for_both_versions!(
    compiler_and_checkdoc_are_silent,
    own_tests_pass,
    plugin_fulfills_every_rule,
    package_install_file_installs_the_directory,
);

/// Runs Emacs in batch mode in a copy of the plugin.
fn batch(sandbox: &Sandbox, version: Version, arguments: &[&str]) -> Output {
    let copy = sandbox.path("plugin");
    if !copy.exists() {
        fs::create_dir(&copy).expect("make a directory");
        for directory in [plugin("emacs"), plugin("emacs").join("test")] {
            for entry in fs::read_dir(directory).expect("list the plugin").flatten() {
                if entry.path().extension().is_some_and(|extension| extension == "el") {
                    fs::copy(entry.path(), copy.join(entry.file_name())).expect("copy");
                }
            }
        }
    }
    Command::new(version.program())
        .env_clear()
        .envs(sandbox.environment())
        .current_dir(copy)
        .args(["-Q", "--batch", "-L", ".", "--eval", NO_COMPILER])
        .args(arguments)
        .output()
        .expect("run Emacs")
}

#[allow(clippy::unused_async)]
async fn compiler_and_checkdoc_are_silent(version: Version) {
    let sandbox = Sandbox::new();
    let compile = "(progn (setq byte-compile-error-on-warn t) \
                   (dolist (file (directory-files \".\" nil \"\\\\.el\\\\'\")) \
                     (unless (byte-compile-file file) (kill-emacs 1))))";
    let output = batch(&sandbox, version, &["--eval", compile]);
    assert!(output.status.success(), "{output:?}");
    let check = "(dolist (file (directory-files \".\" nil \"\\\\`alongside.*\\\\.el\\\\'\")) (checkdoc-file file))";
    let output = batch(&sandbox, version, &["--eval", check]);
    let output_text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && output_text.trim().is_empty(),
        "{output_text}"
    );
}

#[allow(clippy::unused_async)]
async fn own_tests_pass(version: Version) {
    let sandbox = Sandbox::new();
    let load = "(dolist (file (directory-files \".\" nil \"-tests\\\\.el\\\\'\")) (load (expand-file-name file)))";
    let output = batch(
        &sandbox,
        version,
        &["--eval", load, "-f", "ert-run-tests-batch-and-exit"],
    );
    let output_text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && output_text.contains("0 unexpected"),
        "{output_text}"
    );
}

#[test]
fn package_lint_is_silent() {
    let sandbox = Sandbox::new();
    let output = Command::new(Version::Machine.program())
        .env_clear()
        .envs(sandbox.environment())
        .current_dir(plugin("emacs"))
        .args(["--batch", "--no-init-file", "-l", "package-lint"])
        .args(["--eval", "(setq package-lint-main-file \"alongside.el\")"])
        .args(["-f", "package-lint-batch-and-exit"])
        .args(source_files())
        .output()
        .expect("run Emacs");
    let messages = String::from_utf8_lossy(&output.stderr);
    let findings: Vec<&str> = messages
        .lines()
        .filter(|line| line.contains(": warning: ") || line.contains(": error: "))
        // Debian 12 has Emacs 28, and a package-lint that does not know it yet.
        .filter(|line| !line.contains("uninstallable in all released Emacs versions"))
        .collect();
    assert!(messages.contains("Entering directory"), "{output:?}");
    assert_eq!(findings, Vec::<&str>::new());
}

fn source_files() -> Vec<String> {
    let files = fs::read_dir(plugin("emacs")).expect("list the plugin").flatten();
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    let sources: Vec<String> = names
        .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "el"))
        .collect();
    assert!(sources.len() > 5, "{sources:?}");
    sources
}

/// Installs the package in batch mode, then starts Emacs with nothing but `(alongside-mode 1)` in the init file.
async fn installs_and_reports(sandbox: &Sandbox, version: Version, install: &str) {
    let output = Command::new(version.program())
        .env_clear()
        .envs(sandbox.environment())
        .args(["-Q", "--batch", "--eval", NO_COMPILER, "--eval", install])
        .output()
        .expect("run Emacs");
    assert!(output.status.success(), "{output:?}");
    fs::write(sandbox.path("home/.emacs.d/init.el"), "(alongside-mode 1)\n").expect("write an init file");
    let path = sandbox.write("a.txt", "text\n");
    let emacs = Emacs::start_with(sandbox, version, "a.txt");
    emacs.wait_for("alongside-bridge-welcome");
    emacs.wait_for("(string-search \"/elpa/alongside\" (symbol-file 'alongside-mode))");
    let mut agent = Agent::connect(&announced(sandbox, emacs.pid())).await;
    agent.sees(|file| file["path"] == json!(path)).await;
}

async fn package_install_file_installs_the_directory(version: Version) {
    let sandbox = Sandbox::new();
    let install = format!(
        "(progn (require 'package) (package-initialize) (package-install-file {}))",
        quoted(&plugin("emacs"))
    );
    installs_and_reports(&sandbox, version, &install).await;
}

/// package-vc links the checkout and compiles in it, so it gets a repository of its own.
#[tokio::test]
async fn package_vc_installs_from_a_checkout() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.path("checkout/editors/emacs");
    fs::create_dir_all(&checkout).expect("create the checkout");
    for file in source_files() {
        fs::copy(plugin("emacs").join(&file), checkout.join(&file)).expect("copy");
    }
    let git = Command::new("git")
        .args(["init", "--quiet"])
        .arg(sandbox.path("checkout"))
        .status();
    assert!(git.is_ok_and(|status| status.success()));
    let install = format!(
        "(progn (require 'package-vc) (package-initialize) (package-vc-install-from-checkout {} \"alongside\"))",
        quoted(&checkout)
    );
    installs_and_reports(&sandbox, Version::Newest, &install).await;
}

/// The plugin starts a relay to the fake companion of `bridge --check` instead of its own companion.
#[allow(clippy::unused_async)]
async fn plugin_fulfills_every_rule(version: Version) {
    let sandbox = Sandbox::new();
    let script = |name: &str, text: String| {
        let path = sandbox.path(name);
        fs::write(&path, text).expect("write a script");
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("make it run");
        path
    };
    let relay = script(
        "relay",
        "#!/bin/sh\nexec 5<&0\ncat <&5 >&4 &\ncat <&3\nkill $!\nexit 0\n".to_owned(),
    );
    let checked = script(
        "checked",
        format!(
            "#!/bin/sh\nexec 3<&0 4>&1\nexec '{}' -Q --batch -L '{}' --eval '(setq alongside-command {})' -l '{}' </dev/null 1>&2\n",
            version.program().display(),
            plugin("emacs").display(),
            quoted(&relay),
            plugin("emacs").join("test/check.el").display()
        ),
    );
    let output = Command::new(alongside())
        .env_clear()
        .envs(sandbox.environment())
        .current_dir(sandbox.workspace())
        .args(["bridge", "--check", "--"])
        .arg(checked)
        .output()
        .expect("run the check");
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output_text}{output:?}");
    // No checker runs in this script; what one reports is in `diagnostics-tests.el`.
    let mut rules = output_text.lines().filter(|line| !line.contains("context/diagnostics"));
    assert!(rules.all(|line| line.starts_with("ok ")), "{output_text}");
}

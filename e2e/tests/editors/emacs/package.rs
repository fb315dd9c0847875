//! The package itself: compiler, documentation and package checks, its own tests, and ways to install it.

use std::fs;
use std::process::{Command, Output};

use alongside_e2e::{Sandbox, alongside, plugin};

use super::driver::{NO_COMPILER, Version, for_both_versions, quoted};

for_both_versions!(
    compiler_and_checkdoc_are_silent,
    own_tests_pass,
    plugin_fulfills_every_rule,
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
    assert!(output_text.lines().all(|line| line.starts_with("ok ")), "{output_text}");
}

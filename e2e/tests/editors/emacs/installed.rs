//! `alongside install emacs`, with a real Emacs.

use std::fs;
use std::process::Command;

use alongside_e2e::{Capability, Sandbox, alongside};
use serde_json::json;

use super::driver::{Emacs, Version, for_both_versions};
use crate::agent::{Agent, announced};

for_both_versions!(installed_plugin_is_turned_on_by_the_init_file);

async fn installed_plugin_is_turned_on_by_the_init_file(version: Version) {
    let sandbox = Sandbox::new();
    let init = sandbox.path("home/.emacs.d/init.el");
    fs::create_dir_all(init.parent().expect("it is in a directory")).expect("make it");
    fs::write(&init, "(setq my-own-line t)\n").expect("write an init file");
    let run = |arguments: &[&str]| {
        let output = Command::new(alongside())
            .env_clear()
            .envs(sandbox.environment())
            .args(arguments)
            .output()
            .expect("run alongside");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    // Not on the PATH: the plugin starts the program that installed it.
    fs::remove_file(sandbox.path("bin/alongside")).expect("remove the program from the PATH");
    run(&["install", "emacs"]);
    let path = sandbox.write("a.txt", "text\n");
    let emacs = Emacs::start_with(&sandbox, version, "a.txt");
    emacs.wait_for("(and my-own-line alongside-bridge-welcome)");
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    agent.sees(|file| file["path"] == json!(path)).await;
    agent.propose(&path, "other\n").await;
    emacs.wait_for("(= 1 (length (alongside-review-pending)))");
    emacs.run("alongside-review");
    emacs.wait_for("alongside-review--view");
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-c"])).await;
    assert_eq!(decision["params"]["content"], "other\n");
    drop(emacs);
    run(&["uninstall", "emacs"]);
    assert_eq!(fs::read_to_string(&init).expect("read"), "(setq my-own-line t)\n");
    assert!(!sandbox.path("home/.emacs.d/alongside/alongside.el").exists());
    version.proves(Capability::Install);
}

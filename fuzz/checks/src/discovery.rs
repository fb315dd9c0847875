//! Discovery files that another program left behind.

use std::fs;
use std::path::Path;

use alongside_discovery::lookup;
use alongside_discovery::process::SystemProcesses;
use alongside_discovery::{Environment, sweep};

/// Both agents' lookups come to a result, and a file that is not ours is not removed.
pub fn discovery_files(bytes: &[u8]) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let environment = environment(root);
    let pid = std::process::id();
    let files = [
        root.join(format!("tmp/gemini/ide/gemini-ide-server-{pid}-4711.json")),
        root.join(format!("tmp/qwen/ide/qwen-code-ide-server-{pid}-4711.json")),
        root.join("home/.qwen/ide/4711.lock"),
    ];
    for file in &files {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }
    let processes = SystemProcesses::default();
    for found in [
        lookup::gemini(&environment, &processes, root),
        lookup::qwen(&environment, &processes, root),
    ] {
        if let Some(failure) = found.failure() {
            assert!(!failure.hint().is_empty());
        }
        assert!(
            found.targets().count() > 0 || found.failure().is_some(),
            "no target, and no reason"
        );
    }
    sweep(&environment, |_| false);
    assert!(
        files.iter().all(|file| file.exists()),
        "a file of another program was removed"
    );
}

fn environment(root: &Path) -> Environment {
    let home = root.join("home");
    let mut environment = Environment::current();
    environment.variables = [("TMPDIR", root.join("tmp")), ("HOME", home.clone())]
        .map(|(name, path)| (name.to_owned(), path.to_string_lossy().into_owned()))
        .into();
    environment.home = Some(home);
    root.clone_into(&mut environment.working_directory);
    environment.in_container = false;
    environment
}

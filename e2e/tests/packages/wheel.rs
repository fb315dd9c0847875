//! The wheel, in a virtual environment.

use crate::{files, packages, run, sandbox, use_it};

#[test]
fn wheel_installs_and_uninstalls() {
    let sandbox = sandbox();
    let place = sandbox.path("environment");
    run(sandbox.command("python3").args(["-m", "venv"]).arg(&place));
    let before = files(&place);
    // pip chooses among the wheels, as it does on PyPI.
    let pip = |arguments: &[&str]| {
        let mut pip = sandbox.command(place.join("bin/python"));
        // So that the environment changes by nothing else.
        pip.args(["-B", "-m", "pip", "--disable-pip-version-check"])
            .args(arguments)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        pip
    };
    run(pip(&["install", "--no-index", "--find-links"])
        .arg(packages())
        .arg("alongside-ide"));
    let shown = run(&mut pip(&["show", "--files", "alongside-ide"]));
    for part in ["Summary: Puts any terminal", "licenses/THIRD-PARTY.txt"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let program = place.join("bin/alongside");
    use_it(&sandbox, &program, &program);
    run(&mut pip(&["uninstall", "--yes", "alongside-ide"]));
    assert_eq!(files(&place), before);
}

//! npm's command, with Node for Windows.

use std::fs::{self, File};
use std::process::{Child, Command};

use alongside_e2e::wine::{NODE, finished, interrupt};
use alongside_e2e::{TIMEOUT, Wine, eventually};

const WRAPPER: &str = r"C:\npm\node_modules\alongside-ide\bin\alongside.js";
const PROGRAM: &str = "npm/node_modules/alongside-ide/node_modules/@alongside-ide/win32-x64/bin/alongside.exe";

/// The packages where `npm install --global` puts them.
fn install(wine: &Wine) {
    let root = wine.drive("npm/node_modules/alongside-ide");
    let program = wine.drive(PROGRAM);
    for directory in [
        root.join("bin"),
        program.parent().expect("it is in a directory").to_owned(),
    ] {
        fs::create_dir_all(directory).expect("create a directory");
    }
    let wrapper = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/npm/alongside.js");
    fs::copy(wrapper, root.join("bin/alongside.js")).expect("copy the wrapper");
    fs::copy(wine.drive("alongside.exe"), program).expect("copy the program");
    let manifest = r#"{"name": "alongside-ide", "optionalDependencies": {"@alongside-ide/win32-x64": "0"}}"#;
    fs::write(root.join("package.json"), manifest).expect("write a manifest");
}

/// Its output in files, because Node fails on a pipe.
fn start(wine: &Wine, mut command: Command, arguments: &[&str]) -> Child {
    let output = |name: &str| File::create(wine.drive(name)).expect("create a file");
    command.arg(WRAPPER).args(arguments);
    command.stdout(output("stdout")).stderr(output("stderr"));
    command.spawn().expect("start Node")
}

/// The exit code, stdout and stderr.
fn run(wine: &Wine, arguments: &[&str]) -> (Option<i32>, String, String) {
    // It passes the exit code on, as for `Wine::alongside`.
    let mut command = wine.command("cmd");
    command.args(["/d", "/c", NODE]);
    let status = finished(start(wine, command, arguments)).status;
    let read = |name: &str| fs::read_to_string(wine.drive(name)).expect("read what it printed");
    (status.code(), read("stdout"), read("stderr"))
}

#[test]
fn npm_command_passes_output_and_exit_code_on() {
    let wine = Wine::new();
    install(&wine);
    let (code, stdout, stderr) = run(&wine, &["--version"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stdout.trim(), format!("alongside {}", env!("CARGO_PKG_VERSION")));
    let (code, _, stderr) = run(&wine, &["no-such-command"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("no-such-command"), "{stderr}");
    fs::remove_file(wine.drive(PROGRAM)).expect("remove the program");
    let (code, _, stderr) = run(&wine, &["--version"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("cannot find @alongside-ide/win32-x64"), "{stderr}");
}

/// A console sends Ctrl-C to both processes. Passed on, it would kill the program at once, and leave its files.
#[test]
fn npm_command_leaves_ctrl_c_to_the_program() {
    let wine = Wine::new();
    install(&wine);
    let node = start(&wine, wine.command(NODE), &["serve", "--json"]);
    let id = node.id();
    is_left_to_the_program(&wine, node, || interrupt(id));
}

/// As Node reports a closed console window, which wine has none of.
#[test]
fn npm_command_leaves_a_closed_console_to_the_program() {
    let wine = Wine::new();
    install(&wine);
    let script = r"const { existsSync } = require('node:fs');
        const look = setInterval(() => {
            if (!existsSync('C:\\closed')) return;
            clearInterval(look);
            process.emit('SIGHUP', 'SIGHUP', 1);
        }, 50);";
    fs::write(wine.drive("close.js"), script).expect("write a script");
    let closed = wine.drive("closed");
    let _ = fs::remove_file(&closed);
    let mut command = wine.command(NODE);
    command.args(["--require", r"C:\close.js"]);
    let node = start(&wine, command, &["serve", "--json"]);
    is_left_to_the_program(&wine, node, || fs::write(&closed, "").expect("write a file"));
    fs::remove_file(&closed).expect("remove a file");
}

/// Waits for the program, has Node receive a signal, and then the program itself.
fn is_left_to_the_program(wine: &Wine, mut node: Child, signal: impl FnOnce()) {
    let program = eventually(TIMEOUT, || {
        let announced = wine.discovery_files().len() == 5;
        wine.running(r"win32-x64\bin\alongside.exe serve")
            .pop()
            .filter(|_| announced)
    });
    let program = program.expect("the program is announced");
    signal();
    // Node takes this long to notice a signal, or less.
    let killed = eventually(std::time::Duration::from_secs(1), || {
        wine.running(r"win32-x64\bin\alongside.exe serve")
            .is_empty()
            .then_some(())
    });
    assert!(killed.is_none() && node.try_wait().expect("it is our child").is_none());
    interrupt(program);
    let ended = eventually(TIMEOUT, || node.try_wait().expect("it is our child"));
    let _ = node.kill();
    assert_eq!(ended.expect("it exits with the program").code(), Some(0));
    assert!(wine.discovery_files().is_empty());
}

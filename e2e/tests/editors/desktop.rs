//! A screen that is not shown, for editors with windows: types keys, and sees which windows there are.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use alongside_e2e::{Sandbox, TIMEOUT, alongside, eventually};
use serde_json::Value;

use crate::agent::discovery_files;

/// How long a key may take to have its effect before it is pressed again.
const KEY_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct Desktop<'a> {
    sandbox: &'a Sandbox,
    display: String,
    /// The leaders of process groups, the screen first.
    programs: Vec<Child>,
}

impl<'a> Desktop<'a> {
    pub(crate) fn start(sandbox: &'a Sandbox) -> Self {
        let mut screen = sandbox.command("Xvfb");
        screen.args(["-displayfd", "1", "-screen", "0", "1300x850x24", "-nolisten", "tcp"]);
        screen.stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut screen = screen.spawn().expect("start Xvfb");
        let mut number = String::new();
        let output = screen.stdout.take().expect("it has an output");
        BufReader::new(output)
            .read_line(&mut number)
            .expect("read the number of the display");
        let mut desktop = Self {
            sandbox,
            display: format!(":{}", number.trim()),
            programs: vec![screen],
        };
        // Gives windows the focus.
        let mut manager = desktop.command("openbox");
        desktop.run(&mut manager);
        desktop
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.sandbox.command(program);
        command.env("DISPLAY", &self.display);
        command
    }

    fn run(&mut self, command: &mut Command) {
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        self.programs.push(command.spawn().expect("start a program"));
    }

    /// Starts an editor, waits for its companion and its window, and returns its PID.
    pub(crate) fn open(&mut self, editor: &str, arguments: &[&str], title: &str) -> u32 {
        let mut command = self.command("dbus-run-session");
        command.args(["--", editor]).args(arguments);
        self.run(&mut command);
        let announced = eventually(TIMEOUT * 2, || {
            let file = std::fs::read(discovery_files(self.sandbox).pop()?).ok()?;
            let file: Value = serde_json::from_slice(&file).ok()?;
            u32::try_from(file["companionEditor"].as_u64()?).ok()
        });
        let pid = announced.expect("the companion announced itself");
        let focused = eventually(TIMEOUT, || {
            let name = self.xdotool(&["getactivewindow", "getwindowname"]);
            name.contains(title).then_some(())
        });
        assert!(focused.is_some(), "the editor's window never had the focus");
        pid
    }

    fn xdotool(&self, arguments: &[&str]) -> String {
        let output = self.command("xdotool").args(arguments).output().expect("run xdotool");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn press(&self, keys: &[&str]) {
        self.xdotool(&[&["key", "--clearmodifiers", "--delay", "60"], keys].concat());
    }

    /// The number of windows that are on the screen.
    fn windows(&self) -> usize {
        self.xdotool(&["search", "--onlyvisible", "--name", ""]).lines().count()
    }

    /// Opens a menu, and presses keys in it, until that has an effect.
    pub(crate) fn choose(&self, menu: &str, keys: &[&str], mut is_done: impl FnMut() -> bool) {
        for _ in 0..6 {
            let before = self.windows();
            self.press(&[menu]);
            let opened = eventually(KEY_TIMEOUT, || (self.windows() > before).then_some(()));
            if opened.is_some() {
                self.press(keys);
                if eventually(KEY_TIMEOUT, || is_done().then_some(())).is_some() {
                    return;
                }
            }
            self.press(&["Escape"]);
        }
        panic!("{menu}, {keys:?} has no effect");
    }

    /// The pending changes.
    pub(crate) fn reviews(&self) -> Vec<Value> {
        let mut list = self.sandbox.command(alongside());
        let output = list.args(["diff", "list", "--json"]).output().expect("list changes");
        let reviews: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        reviews.as_array().cloned().unwrap_or_default()
    }

    /// Whether a hunk of the only change is rejected.
    pub(crate) fn is_edited(&self) -> bool {
        self.reviews().first().is_some_and(|review| review["edited"] == true)
    }
}

impl Drop for Desktop<'_> {
    fn drop(&mut self) {
        for program in self.programs.iter_mut().rev() {
            // Their children too.
            let group = format!("-{}", program.id());
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            let _ = program.wait();
        }
    }
}

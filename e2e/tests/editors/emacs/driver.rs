//! An Emacs in a terminal: keys are typed as a person types them, and what it has is asked over its server's socket.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use alongside_e2e::{Capability, PATIENCE, Sandbox, Terminal, editor, eventually, plugin};

/// An Emacs that runs out of a root of its own cannot start another one to compile something for it.
pub(crate) const NO_COMPILER: &str = "(setq native-comp-jit-compilation nil native-comp-enable-subr-trampolines nil)";

/// The versions that the plugin is tested with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Version {
    /// The machine's own, which is 28.2 on Debian 12.
    Machine,
    /// 30 or newer.
    Newest,
}

impl Version {
    pub(crate) fn program(self) -> PathBuf {
        match self {
            Self::Machine => PathBuf::from("emacs"),
            Self::Newest => editor("emacs-30"),
        }
    }

    /// Notes what a test has proven.
    pub(crate) fn proves(self, capability: Capability) {
        alongside_e2e::proves("Emacs", &alongside_e2e::version(&self.program()), capability);
    }
}

/// Writes a test for each version out of one asynchronous function that takes a [`Version`].
macro_rules! for_both_versions {
    ($($name:ident),+ $(,)?) => {
        $(mod $name {
            #[tokio::test]
            async fn machine() {
                super::$name($crate::emacs::driver::Version::Machine).await;
            }
            #[tokio::test]
            async fn newest() {
                super::$name($crate::emacs::driver::Version::Newest).await;
            }
        })+
    };
}
pub(crate) use for_both_versions;

pub(crate) struct Emacs<'a> {
    sandbox: &'a Sandbox,
    pub(crate) terminal: Terminal,
    socket: PathBuf,
    pid: u32,
}

impl<'a> Emacs<'a> {
    /// Starts Emacs in the workspace, with nothing but the plugin, and waits until the plugin has its companion.
    pub(crate) fn start(sandbox: &'a Sandbox, version: Version) -> Self {
        let lines = format!(
            "(add-to-list 'load-path {})\n(require 'alongside)\n(alongside-mode 1)\n\
             (global-set-key (kbd \"C-c a\") 'alongside-command-map)\n",
            quoted(&plugin("emacs"))
        );
        let settings = sandbox.path("settings.el");
        fs::write(&settings, lines).expect("write settings");
        let arguments = format!("-Q -l '{}'", settings.display());
        let emacs = Self::start_with(sandbox, version, &arguments);
        emacs.wait_for("alongside-bridge-welcome");
        // Then terminals are prepared too.
        emacs.wait_for("alongside-bridge-variables");
        emacs
    }

    /// Starts Emacs with arguments of the test's own, and waits until it can be asked.
    pub(crate) fn start_with(sandbox: &'a Sandbox, version: Version, arguments: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("emacs-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let terminal = Terminal::open(sandbox, &name, &sandbox.workspace(), &[]);
        let directory = sandbox.path("sockets");
        fs::create_dir_all(&directory).expect("make a directory for sockets");
        let server = sandbox.path(&format!("{name}.el"));
        let lines = format!(
            "{NO_COMPILER}\n(setq inhibit-startup-screen t create-lockfiles nil)\n\
             (setq server-socket-dir {} server-name \"{name}\")\n(require 'server)\n(server-start)\n",
            quoted(&directory)
        );
        fs::write(&server, lines).expect("write the lines for the server");
        fs::set_permissions(&directory, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("close it");
        terminal.type_line(&format!(
            "'{}' -nw -l '{}' {arguments}",
            version.program().display(),
            server.display()
        ));
        let mut emacs = Self {
            sandbox,
            terminal,
            socket: directory.join(&name),
            pid: 0,
        };
        let pid = eventually(PATIENCE, || emacs.try_eval("(emacs-pid)").ok()?.parse().ok());
        emacs.pid = pid.unwrap_or_else(|| emacs.terminal.fail("Emacs did not start"));
        emacs
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// What an expression gives in the buffer in front, as Lisp prints it.
    pub(crate) fn eval(&self, expression: &str) -> String {
        self.try_eval(expression)
            .unwrap_or_else(|error| self.terminal.fail(&format!("{expression}: {error}")))
    }

    /// Waits until an expression gives anything but nil.
    pub(crate) fn wait_for(&self, expression: &str) {
        let question = format!("(if {expression} 'yes 'no)");
        let mut last = Ok(String::new());
        let reached = eventually(PATIENCE, || {
            last = self.try_eval(&question);
            (last.as_deref() == Ok("yes")).then_some(())
        });
        if reached.is_none() {
            let said = self.try_eval("(with-current-buffer \"*Messages*\" (buffer-string))");
            self.terminal
                .fail(&format!("{expression} never became true: {last:?}; {said:?}"));
        }
    }

    /// Waits until the companion has heard everything that it was told.
    pub(crate) fn wait_until_heard(&self) {
        self.eval("(progn (alongside-bridge-ask \"status\") nil)");
    }

    /// Opens a file, as `C-x C-f` does.
    pub(crate) fn open(&self, path: &Path) {
        self.eval(&format!("(progn (find-file {}) nil)", quoted(path)));
    }

    /// Presses keys by their tmux names, one after the other.
    pub(crate) fn press(&self, keys: &[&str]) {
        for key in keys {
            self.terminal.press(key);
        }
    }

    /// Runs a command by its name, as a person does.
    pub(crate) fn run(&self, command: &str) {
        self.press(&["M-x"]);
        self.terminal.type_text(command);
        self.press(&["Enter"]);
    }

    /// Waits for the one change that there is, and shows it with the key for that.
    pub(crate) fn show_review(&self) {
        self.wait_for("(= 1 (length (alongside-review-waiting)))");
        assert_eq!(
            self.eval("(length alongside-review--shown)"),
            "0",
            "nothing opens by itself"
        );
        self.press(&["C-c", "a", "r"]);
        self.wait_for("(and alongside-review--view (alongside-view-control (cdar alongside-review--shown)))");
    }

    /// Waits until no change is shown, one window is left, and no buffer of the view.
    pub(crate) fn wait_for_no_view(&self) {
        self.wait_for("(and (null alongside-review--shown) (= 1 (count-windows)))");
        self.wait_for(
            "(not (seq-some (lambda (buffer) \
               (string-match-p \"\\\\*\\\\(Ediff Control\\\\|ediff-\\\\|file\\\\|proposal\\\\)\" (buffer-name buffer))) (buffer-list)))",
        );
    }

    /// Goes to the proposal that is shown.
    pub(crate) fn go_to_proposal(&self) {
        self.eval(
            "(progn (select-window (get-buffer-window (alongside-view-buffer (cdar alongside-review--shown)))) nil)",
        );
    }

    /// Kills a process without warning.
    pub(crate) fn kill(pid: &str) {
        let killed = Command::new("kill").args(["-KILL", pid]).status();
        assert!(killed.is_ok_and(|status| status.success()));
    }

    fn try_eval(&self, expression: &str) -> Result<String, String> {
        let expression = format!("(with-current-buffer (window-buffer (selected-window)) {expression})");
        let output = Command::new("emacsclient")
            .env_clear()
            .envs(self.sandbox.environment())
            .arg(format!("--socket-name={}", self.socket.display()))
            .args(["--eval", &expression])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }
}

/// A path as a string of Lisp.
pub(crate) fn quoted(path: &Path) -> String {
    format!(
        "\"{}\"",
        path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"")
    )
}

//! An Emacs in a terminal: keys are typed into it, and expressions are evaluated over its server's socket.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use alongside_e2e::{Capability, Sandbox, TIMEOUT, Terminal, editor, eventually, plugin};

/// An Emacs that runs from its own root directory cannot start another one to compile in the background.
pub(crate) const NO_COMPILER: &str = "(setq native-comp-jit-compilation nil native-comp-enable-subr-trampolines nil)";

/// The versions that the plugin is tested with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Version {
    /// The one on the PATH: 28.2 on Debian 12.
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

    /// Records what a test proved.
    pub(crate) fn proves(self, capability: Capability) {
        alongside_e2e::proves("Emacs", &alongside_e2e::version(&self.program()), capability);
    }
}

/// Expands an async function that takes a [`Version`] into a test for each version.
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
    /// Starts Emacs in the workspace with only the plugin, and waits until the companion is ready. Nothing opens by itself.
    pub(crate) fn start(sandbox: &'a Sandbox, version: Version) -> Self {
        Self::start_opening(sandbox, version, "notify")
    }

    /// The same with this value of `alongside-open`.
    pub(crate) fn start_opening(sandbox: &'a Sandbox, version: Version, open: &str) -> Self {
        let lines = format!(
            "(add-to-list 'load-path {})\n(require 'alongside)\n(alongside-mode 1)\n\
             (global-set-key (kbd \"C-c a\") 'alongside-command-map)\n(setq alongside-open '{open})\n",
            quoted(&plugin("emacs"))
        );
        let settings = sandbox.path("settings.el");
        fs::write(&settings, lines).expect("write settings");
        let arguments = format!("-Q -l '{}'", settings.display());
        let emacs = Self::start_with(sandbox, version, &arguments);
        emacs.wait_for("alongside-bridge-welcome");
        emacs.wait_for("alongside-bridge-variables");
        emacs
    }

    /// Starts Emacs with these arguments, and waits for its server.
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
        let pid = eventually(TIMEOUT, || emacs.try_eval("(emacs-pid)").ok()?.parse().ok());
        emacs.pid = pid.unwrap_or_else(|| emacs.terminal.fail("Emacs did not start"));
        emacs
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Evaluates an expression in the selected window's buffer; returns the result as Lisp prints it.
    pub(crate) fn eval(&self, expression: &str) -> String {
        self.try_eval(expression)
            .unwrap_or_else(|error| self.terminal.fail(&format!("{expression}: {error}")))
    }

    /// Waits until an expression is non-nil.
    pub(crate) fn wait_for(&self, expression: &str) {
        let question = format!("(if {expression} 'yes 'no)");
        let mut last = Ok(String::new());
        let reached = eventually(TIMEOUT, || {
            last = self.try_eval(&question);
            (last.as_deref() == Ok("yes")).then_some(())
        });
        if reached.is_none() {
            let messages = self.try_eval("(with-current-buffer \"*Messages*\" (buffer-string))");
            self.terminal
                .fail(&format!("{expression} never became true: {last:?}; {messages:?}"));
        }
    }

    /// Waits until the companion has handled everything that was sent.
    pub(crate) fn wait_until_handled(&self) {
        self.eval("(progn (alongside-bridge-ask \"status\") nil)");
    }

    /// Opens a file, as `C-x C-f` does.
    pub(crate) fn open(&self, path: &Path) {
        self.eval(&format!("(progn (find-file {}) nil)", quoted(path)));
    }

    /// Presses keys by their tmux names.
    pub(crate) fn press(&self, keys: &[&str]) {
        for key in keys {
            self.terminal.press(key);
        }
    }

    /// Runs a command with `M-x`.
    pub(crate) fn run(&self, command: &str) {
        self.press(&["M-x"]);
        self.terminal.type_text(command);
        self.press(&["Enter"]);
    }

    /// Waits for the only pending change, and opens it with its key.
    pub(crate) fn show_review(&self) {
        self.wait_for("(= 1 (length (alongside-review-pending)))");
        assert_eq!(
            self.eval("(length alongside-review--shown)"),
            "0",
            "nothing opens automatically"
        );
        self.press(&["C-c", "a", "r"]);
        self.wait_for("(and alongside-review--view (alongside-view-control (cdar alongside-review--shown)))");
    }

    /// Waits until no change is open, and its windows and buffers are gone.
    pub(crate) fn wait_for_no_view(&self) {
        self.wait_for("(and (null alongside-review--shown) (= 1 (count-windows)))");
        self.wait_for(
            "(not (seq-some (lambda (buffer) \
               (string-match-p \"\\\\*\\\\(Ediff Control\\\\|ediff-\\\\|file\\\\|draft\\\\)\" (buffer-name buffer))) (buffer-list)))",
        );
    }

    /// Selects the window with the draft.
    pub(crate) fn go_to_draft(&self) {
        self.eval(
            "(progn (select-window (get-buffer-window (alongside-view-buffer (cdar alongside-review--shown)))) nil)",
        );
    }

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

/// A path as a Lisp string.
pub(crate) fn quoted(path: &Path) -> String {
    format!(
        "\"{}\"",
        path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"")
    )
}

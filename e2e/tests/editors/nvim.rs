//! A headless Neovim, driven over its socket.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use alongside_e2e::{Capability, Sandbox, TIMEOUT, editor, eventually, plugin, version};

pub(crate) struct Neovim<'a> {
    sandbox: &'a Sandbox,
    child: Child,
    socket: PathBuf,
}

impl<'a> Neovim<'a> {
    /// Starts Neovim in the workspace with only the plugin, and waits until the companion is ready. Nothing opens by itself.
    pub(crate) fn start(sandbox: &'a Sandbox) -> Self {
        Self::start_with(sandbox, "let g:alongside = {'open': 'notify'}")
    }

    /// The same with these settings.
    pub(crate) fn start_with(sandbox: &'a Sandbox, settings: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let socket = sandbox.path(&format!("{}.nvim", NUMBER.fetch_add(1, Ordering::Relaxed)));
        let path = format!("set runtimepath^={}", plugin("neovim").display());
        let mut command = command(sandbox);
        command
            .args(["--headless", "--clean", "--cmd", &path, "--cmd", settings, "--listen"])
            .arg(&socket)
            .args(["-c", "AlongsideStart"]);
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("start Neovim");
        let neovim = Self { sandbox, child, socket };
        neovim.wait_for("luaeval('require(\"alongside.bridge\").welcome ~= nil')");
        neovim
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Evaluates an expression to a string.
    pub(crate) fn eval(&self, expression: &str) -> String {
        self.try_eval(expression)
            .unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// Runs an Ex command.
    pub(crate) fn run(&self, line: &str) -> String {
        self.eval(&format!("execute('{}')", line.replace('\'', "''")))
    }

    /// Types keys.
    pub(crate) fn press(&self, keys: &str) {
        let output = self.remote("--remote-send", keys);
        assert!(output.is_ok(), "{keys}: {output:?}");
    }

    /// Waits until an expression is true.
    pub(crate) fn wait_for(&self, expression: &str) {
        let question = format!("{expression} ? 'yes' : 'no'");
        let mut last = Ok(String::new());
        let reached = eventually(TIMEOUT, || {
            last = self.try_eval(&question);
            let is_wrong = last.as_ref().is_err_and(|error| error.contains("E15"));
            assert!(!is_wrong, "{last:?}");
            (last.as_deref() == Ok("yes")).then_some(())
        });
        assert!(
            reached.is_some(),
            "{expression} never became true: {last:?}; {:?}",
            self.try_eval("execute('messages')")
        );
    }

    /// Opens the only pending change.
    pub(crate) fn show_review(&self) {
        self.wait_for("len(v:lua.require'alongside.reviews'.pending()) == 1");
        assert_eq!(self.eval("tabpagenr('$')"), "1", "nothing opens automatically");
        self.run("AlongsideReview");
        self.wait_for("&buftype == 'acwrite' && &diff");
    }

    /// Quits as a user does.
    pub(crate) fn quit(self) {
        self.quit_by("<Cmd>qall!<CR>");
    }

    /// Types keys that make it exit.
    pub(crate) fn quit_by(mut self, keys: &str) {
        // It may exit before it responds.
        let _ = self.remote("--remote-send", keys);
        let status = eventually(TIMEOUT, || self.child.try_wait().expect("wait for Neovim"));
        assert!(status.is_some(), "Neovim did not exit");
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("kill Neovim");
        self.child.wait().expect("wait for Neovim");
    }

    fn try_eval(&self, expression: &str) -> Result<String, String> {
        self.remote("--remote-expr", expression)
    }

    fn remote(&self, how: &str, what: &str) -> Result<String, String> {
        let mut command = command(self.sandbox);
        command
            .args(["--headless", "--clean", "--server"])
            .arg(&self.socket)
            .args([how, what]);
        let output = command.output().map_err(|error| error.to_string())?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() && errors.is_empty() {
            Ok(String::from_utf8_lossy(&output.stdout)
                .trim_end_matches('\n')
                .to_owned())
        } else {
            Err(errors)
        }
    }
}

impl Drop for Neovim<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Records what a test with Neovim proved.
pub(crate) fn proves(capability: Capability) {
    alongside_e2e::proves("Neovim", &version(&editor("nvim")), capability);
}

fn command(sandbox: &Sandbox) -> Command {
    let mut command = Command::new(editor("nvim"));
    command
        .env_clear()
        .envs(sandbox.environment())
        .current_dir(sandbox.workspace())
        .stdin(Stdio::null());
    command
}

//! A Vim in a terminal: keys are typed into it, and it writes the values of expressions to a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use alongside_e2e::{Sandbox, TIMEOUT, Terminal, eventually, plugin};

pub(crate) struct Vim {
    pub(crate) terminal: Terminal,
    answer: PathBuf,
    questions: AtomicU32,
}

impl Vim {
    /// Opens a file in a Vim with only the plugin, and waits until the companion is ready. Nothing opens by itself.
    pub(crate) fn start(sandbox: &Sandbox, file: &Path) -> Self {
        Self::start_with(sandbox, file, "let g:alongside_open = 'notify'")
    }

    /// The same with these settings.
    pub(crate) fn start_with(sandbox: &Sandbox, file: &Path, settings: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let terminal = Terminal::open(sandbox, &format!("vim-{number}"), &sandbox.workspace(), &[]);
        let vimrc = sandbox.path(&format!("{number}.vimrc"));
        let lines = format!(
            "set nocompatible encoding=utf-8 ttimeoutlen=5 runtimepath^={}\n{settings}\n",
            plugin("vim").display()
        );
        fs::write(&vimrc, lines).expect("write Vim's settings");
        terminal.type_line(&format!("vim -u '{}' -i NONE -n '{}'", vimrc.display(), file.display()));
        let answer = sandbox.path(&format!("{number}.answer"));
        let vim = Self {
            terminal,
            answer,
            questions: AtomicU32::new(0),
        };
        // Set once the companion is announced and the plugin is subscribed to its notifications.
        vim.wait_for("$QWEN_CODE_IDE_SERVER_PORT !=# ''");
        vim
    }

    pub(crate) fn pid(&self) -> u32 {
        self.eval("getpid()").parse().expect("a process id")
    }

    pub(crate) fn run(&self, line: &str) {
        self.terminal.press("Escape");
        self.terminal.type_line(&format!(":{line}"));
    }

    /// The value of an expression, in Normal mode.
    pub(crate) fn eval(&self, expression: &str) -> String {
        let question = self.questions.fetch_add(1, Ordering::Relaxed);
        let value = eventually(TIMEOUT, || self.try_eval(question, expression));
        value.unwrap_or_else(|| self.terminal.fail(&format!("{expression} has no value")))
    }

    /// Waits until an expression is true.
    pub(crate) fn wait_for(&self, expression: &str) {
        let question = self.questions.fetch_add(1, Ordering::Relaxed);
        let is_true = || (self.try_eval(question, expression)? == "1").then_some(());
        if eventually(TIMEOUT, is_true).is_none() {
            self.terminal.fail(&format!("{expression} never became true"));
        }
    }

    /// The number tells its answer from one to an earlier question, which Vim may still be writing.
    fn try_eval(&self, question: u32, expression: &str) -> Option<String> {
        self.run(&format!(
            "silent call writefile(['{question} ' .. ({expression})], '{}')",
            self.answer.display()
        ));
        let answer = fs::read_to_string(&self.answer).ok()?;
        let (number, value) = answer.strip_suffix('\n')?.split_once(' ')?;
        (number == question.to_string()).then(|| value.to_owned())
    }

    pub(crate) fn show_review(&self) {
        self.terminal.wait_for_text("to review: <F8>", TIMEOUT);
        self.run("AlongsideReview");
        self.wait_for("&buftype ==# 'acwrite' && &diff");
    }
}

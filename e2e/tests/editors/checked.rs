//! `alongside bridge --check` on our own plugins.
//!
//! The program under check is a script that starts the editor with two more: one that replaces `alongside bridge` and relays
//! between the plugin and the check, and one that does what a user would.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use alongside_e2e::{Sandbox, alongside, editor, plugin};
use serde_json::Value;

/// What a user does in Neovim.
const NEOVIM: &str = r"
vim.g.alongside = { command = vim.env.STAND_IN }
local reviews, bridge = require('alongside.reviews'), require('alongside.bridge')
local decided
vim.api.nvim_create_autocmd('User', {
  pattern = 'AlongsideChanged',
  callback = vim.schedule_wrap(function()
    local review = reviews.pending()[1]
    if not bridge.is_running() then
      vim.cmd('qall!')
    elseif review and decided ~= review.id then
      decided = review.id
      reviews.open(review.id)
      reviews.open(review.id)
      vim.wait(5000, function()
        return vim.bo.buftype == 'acwrite' and require('alongside.context').is_reported()
      end, 10)
      vim.cmd(review.path:find('accept.txt', 1, true) and 'AlongsideAccept' or 'AlongsideReject')
    end
  end),
})
vim.cmd.edit(vim.fn.fnameescape(vim.env.ALONGSIDE_CHECK .. '/open.txt'))
vim.api.nvim_buf_set_lines(0, 0, 0, true, { 'not saved yet' })
vim.cmd('AlongsideStart')
vim.diagnostic.set(vim.api.nvim_create_namespace('check'), 0, { { lnum = 0, col = 0, message = 'wrong' } })
";

/// What a user does in Vim: looks for pending changes now and then.
const VIM: &str = r"vim9script
g:alongside_command = $STAND_IN
def Act(timer: number)
  if filereadable($STAND_IN .. '.over')
    qall!
  elseif &buftype ==# 'acwrite'
    execute bufname() =~# 'accept.txt' ? 'AlongsideAccept' : 'AlongsideReject'
  else
    silent AlongsideReview
  endif
enddef
autocmd VimEnter * {
    execute 'edit ' .. fnameescape($ALONGSIDE_CHECK .. '/open.txt')
    append(0, 'not saved yet')
    timer_start(100, Act, {repeat: -1})
  }
";

/// What the plugin starts as `alongside bridge`. It exits when the check closes the connection, as the companion would.
const STAND_IN: &str = r#"#!/bin/sh
exec 3<&0
cat <&3 >"$STAND_IN.from" 2>/dev/null 3<&- &
exec 3<&-
cat "$STAND_IN.to"
: >"$STAND_IN.over"
kill $!
"#;

/// The program under check; it exits when the editor does.
const PROGRAM: &str = r#"
mkfifo "$STAND_IN.to" "$STAND_IN.from" || exit 1
cat "$STAND_IN.from" &
editor_in_background
cat >"$STAND_IN.to"
wait_for_editor
wait
"#;

/// Checks a plugin, and returns the rules that it does not fulfill.
fn missing(sandbox: &Sandbox, variables: &[(&str, &str)], start: &str, wait: &str) -> Vec<String> {
    let stand_in = sandbox.path("stand-in");
    fs::write(&stand_in, STAND_IN).expect("write the stand-in");
    fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)).expect("make it a program");
    let program = PROGRAM
        .replace("editor_in_background", start)
        .replace("wait_for_editor", wait);
    let output = Command::new(alongside())
        .args(["bridge", "--check", "--json", "--", "sh", "-c", &program])
        .env_clear()
        .envs(sandbox.environment())
        .env("STAND_IN", &stand_in)
        .env("TERM", "xterm-256color")
        .envs(variables.iter().copied())
        .current_dir(sandbox.workspace())
        .stdin(Stdio::null())
        .output()
        .expect("start the check");
    let report: Vec<Value> = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    assert!(report.len() > 10, "{report:?}");
    let missing = report.iter().filter(|finding| finding["fulfilled"] != true);
    missing.map(ToString::to_string).collect()
}

fn write(sandbox: &Sandbox, name: &str, text: &str) -> String {
    let path = sandbox.path(name);
    fs::write(&path, text).expect("write a script");
    text_of(&path)
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[test]
fn neovim_plugin_fulfills_every_rule() {
    let sandbox = Sandbox::new();
    let user = write(&sandbox, "user.lua", NEOVIM);
    let (neovim, plugin) = (text_of(&editor("nvim")), text_of(&plugin("neovim")));
    let variables = [("NEOVIM", neovim.as_str()), ("PLUGIN", &plugin), ("USER_SCRIPT", &user)];
    let start = r#"
"$NEOVIM" --headless --clean --cmd "set runtimepath^=$PLUGIN" -S "$USER_SCRIPT" </dev/null >/dev/null 2>&1 &
editor=$!"#;
    assert_eq!(
        missing(&sandbox, &variables, start, "wait $editor"),
        Vec::<String>::new()
    );
}

#[test]
fn vim_plugin_fulfills_every_rule() {
    let sandbox = Sandbox::new();
    let user = write(&sandbox, "user.vim", VIM);
    let (plugin, socket) = (text_of(&plugin("vim")), text_of(&sandbox.path("check.tmux")));
    let variables = [("PLUGIN", plugin.as_str()), ("USER_SCRIPT", &user), ("SOCKET", &socket)];
    // Vim needs a terminal.
    let start = r#"
tmux -S "$SOCKET" -f /dev/null new-session -d -x 120 -y 40 \
  'vim -N -u "$USER_SCRIPT" -i NONE -n --cmd "set encoding=utf-8 runtimepath^=$PLUGIN"; tmux -S "$SOCKET" wait-for -S over'"#;
    let wait = r#"tmux -S "$SOCKET" wait-for over"#;
    let missing = missing(&sandbox, &variables, start, wait);
    // Vim has already exited, unless something is wrong.
    let _ = Command::new("tmux")
        .args(["-S", &socket, "kill-server"])
        .stderr(Stdio::null())
        .status();
    // Vim itself has no diagnostics.
    let others: Vec<&String> = missing
        .iter()
        .filter(|rule| !rule.contains("context/diagnostics"))
        .collect();
    assert_eq!(others, Vec::<&String>::new());
}

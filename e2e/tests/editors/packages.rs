//! The plugins as Vim and Neovim users install them: from their directory, with the editor's packages or a plugin manager.

use std::fs;
use std::os::unix::fs::symlink;

use alongside_e2e::{Sandbox, Terminal, plugin};
use serde_json::json;

use crate::agent::{Agent, announced};
use crate::installed::{Editor, NEOVIM, VIM, path};

/// Where an editor looks for packages, and its settings file.
fn places(editor: &Editor) -> (&'static str, &'static str) {
    match editor.id {
        "neovim" => (
            "home/.local/share/nvim/site/pack/alongside",
            "home/.config/nvim/init.vim",
        ),
        _ => ("home/.vim/pack/alongside", "home/.vim/vimrc"),
    }
}

/// Starts the editor with a file, and waits until an agent sees that file.
async fn opens_and_reports(editor: &Editor, sandbox: &Sandbox) {
    let file = sandbox.write("a.txt", "text\n");
    let terminal = Terminal::open(sandbox, editor.id, &sandbox.workspace(), &[path(sandbox)]);
    let pid = editor.open(sandbox, &terminal, &format!("{} a.txt", editor.command));
    let mut agent = Agent::connect(&announced(sandbox, pid)).await;
    agent.sees(|open| open["path"] == json!(file)).await;
}

/// Makes the plugin's own directory a package, as a clone or a symlink by hand does.
fn add_package(editor: &Editor, sandbox: &Sandbox, kind: &str, settings: &str) {
    let (packages, settings_file) = places(editor);
    let directory = sandbox.path(packages).join(kind);
    fs::create_dir_all(&directory).expect("create the package directory");
    symlink(plugin(editor.id), directory.join("alongside")).expect("link the plugin");
    let settings_file = sandbox.path(settings_file);
    fs::create_dir_all(settings_file.parent().expect("a file has a parent")).expect("create the settings directory");
    fs::write(settings_file, settings).expect("write settings");
}

#[tokio::test]
async fn native_package_starts_with_the_editor() {
    for editor in [NEOVIM, VIM] {
        let sandbox = Sandbox::new();
        add_package(&editor, &sandbox, "start", "");
        opens_and_reports(&editor, &sandbox).await;
    }
}

/// Plugin managers that load lazily do so after startup, when `VimEnter` and `UIEnter` are over.
#[tokio::test]
async fn package_loaded_after_startup_starts() {
    for (editor, event) in [(NEOVIM, "UIEnter"), (VIM, "VimEnter")] {
        let sandbox = Sandbox::new();
        let settings = format!("autocmd {event} * ++once call timer_start(100, {{-> execute('packadd alongside')}})\n");
        add_package(&editor, &sandbox, "opt", &settings);
        opens_and_reports(&editor, &sandbox).await;
    }
}

/// vim-plug and lazy.nvim put the directory on the `runtimepath` while the settings are read.
#[tokio::test]
async fn plugin_on_the_runtimepath_starts() {
    for editor in [NEOVIM, VIM] {
        let sandbox = Sandbox::new();
        let settings_file = sandbox.path(places(&editor).1);
        fs::create_dir_all(settings_file.parent().expect("a file has a parent"))
            .expect("create the settings directory");
        let settings = format!("set runtimepath^={}\n", plugin(editor.id).display());
        fs::write(settings_file, settings).expect("write settings");
        opens_and_reports(&editor, &sandbox).await;
    }
}

//! The user's editor, opened on the draft.

use std::io::Write;
use std::path::Path;

use tokio::process::Command;

/// Editors that go to a line with `+N`.
const TAKES_LINE: &[&str] = &[
    "vi",
    "vim",
    "nvim",
    "view",
    "nano",
    "emacs",
    "emacsclient",
    "kak",
    "micro",
    "joe",
];

/// Opens a private copy of a text in `$VISUAL` or `$EDITOR` and returns what was saved, or a sentence.
pub(super) async fn edit(path: &str, text: &str, line: usize) -> Result<String, String> {
    let command = command();
    let name = Path::new(path)
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let file = tempfile::Builder::new()
        .prefix("alongside-")
        // The editor knows the language by the name.
        .suffix(&format!("-{name}"))
        .tempfile()
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            Ok(file)
        })
        .map_err(|error| format!("cannot write a copy for your editor: {error}"))?;
    let file = file.into_temp_path();
    let status = editor(&command, line, &file).status().await;
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("`{command}` ended with {status}; nothing was edited")),
        Err(error) => return Err(format!("cannot start `{command}`: {error}; set VISUAL or EDITOR")),
    }
    let edited = std::fs::read(&file).map_err(|error| format!("cannot read what your editor saved: {error}"))?;
    match String::from_utf8(edited) {
        // Many editors add a newline at the end of every file.
        Ok(edited) if edited.strip_suffix('\n') == Some(text) => Ok(text.to_owned()),
        Ok(edited) => Ok(edited),
        Err(_) => {
            let kept = file
                .keep()
                .map_or_else(|_| String::new(), |path| path.display().to_string());
            Err(format!("what your editor saved is not valid UTF-8; it is in {kept}"))
        }
    }
}

fn command() -> String {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let default = if cfg!(windows) { "notepad" } else { "vi" };
    set("VISUAL")
        .or_else(|| set("EDITOR"))
        .unwrap_or_else(|| default.to_owned())
}

/// The variable may have arguments and quotes, so a shell reads it, as for git.
fn editor(command: &str, line: usize, file: &Path) -> Command {
    let program = command.split_whitespace().next().unwrap_or_default();
    let program = Path::new(program)
        .file_stem()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let place = TAKES_LINE.contains(&program.as_str()).then(|| format!("+{line}"));
    let mut editor = if cfg!(windows) {
        let mut editor = Command::new("cmd");
        editor.arg("/C").arg(command);
        editor
    } else {
        let mut editor = Command::new("sh");
        editor.arg("-c").arg(format!("{command} \"$@\"")).arg(command);
        editor
    };
    editor.args(place).arg(file);
    editor
}

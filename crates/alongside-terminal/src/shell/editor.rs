//! The user's editor, opened on the draft.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;

use alongside_platform::{Platform, is_installed, program};
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

/// Names of files have a limit, and the end of a name has the language.
const MAX_NAME_CHARS: usize = 64;

/// Opens a private copy of a text in `$VISUAL` or `$EDITOR` and returns what was saved, or a sentence.
pub(super) async fn edit(path: &str, text: &str, line: usize) -> Result<String, String> {
    let command = command();
    let name = Path::new(path)
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let file = tempfile::Builder::new()
        .prefix("alongside-")
        // The editor knows the language by the name.
        .suffix(&format!("-{}", safe_name(&name)))
        .tempfile()
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            Ok(file)
        })
        .map_err(|error| format!("cannot write a copy for your editor: {error}"))?;
    let file = file.into_temp_path();
    let status = editor(&command, line, &file)?.status().await;
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

/// What is left of a proposed file's name in that of the copy: the agent chose it, and `$VISUAL` may be a script that gives it to a shell.
fn safe_name(name: &str) -> String {
    let is_safe = |letter: &char| letter.is_ascii_alphanumeric() || "-_.".contains(*letter);
    let safe: String = name.chars().filter(is_safe).collect();
    // Windows leaves out dots at the end.
    let safe = safe.trim_end_matches('.');
    safe[safe.len().saturating_sub(MAX_NAME_CHARS)..].to_owned()
}

fn command() -> String {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let default = if cfg!(windows) { "notepad" } else { "vi" };
    set("VISUAL")
        .or_else(|| set("EDITOR"))
        .unwrap_or_else(|| default.to_owned())
}

fn editor(command: &str, line: usize, file: &Path) -> Result<Command, String> {
    let is_program = |name: &str| is_installed(Path::new(name));
    let mut parts = invocation(Platform::current(), command, &is_program, line, file).into_iter();
    let name = parts.next().unwrap_or_default();
    if name.is_empty() {
        return Err(format!("`{command}` names no program; set VISUAL or EDITOR"));
    }
    let mut editor = Command::new(program(&name));
    editor.args(parts);
    Ok(editor)
}

/// The program and its arguments.
fn invocation(
    platform: Platform,
    command: &str,
    is_program: &dyn Fn(&str) -> bool,
    line: usize,
    file: &Path,
) -> Vec<OsString> {
    let parts = parts(platform, command, is_program);
    let name = parts.first().map_or("", String::as_str);
    let place = TAKES_LINE.contains(&&*stem(platform, name)).then(|| format!("+{line}"));
    let place = place.map(OsString::from).into_iter();
    let start: Vec<String> = match platform {
        // The variable may have arguments, quotes and variables, so a shell reads it, as for git.
        Platform::Unix | Platform::MacOs => {
            vec!["sh".into(), "-c".into(), format!("{command} \"$@\""), command.into()]
        }
        // `cmd` would also read the name of the file.
        Platform::Windows => parts,
    };
    let start = start.into_iter().map(OsString::from);
    start.chain(place).chain([OsStr::new(file).to_owned()]).collect()
}

/// The words of a command. On Windows, double quotes keep spaces, and a backslash is part of a path.
fn parts(platform: Platform, command: &str, is_program: &dyn Fn(&str) -> bool) -> Vec<String> {
    let command = command.trim();
    if platform != Platform::Windows {
        return command.split_whitespace().map(str::to_owned).collect();
    }
    // Settings and PowerShell have no need for quotes: `C:\Program Files\…`.
    if command.contains(' ') && is_program(command) {
        return vec![command.to_owned()];
    }
    let (mut parts, mut part, mut is_quoted) = (Vec::new(), None::<String>, false);
    for letter in command.chars() {
        match letter {
            '"' => {
                is_quoted = !is_quoted;
                part.get_or_insert_default();
            }
            _ if letter.is_whitespace() && !is_quoted => parts.extend(part.take()),
            _ => part.get_or_insert_default().push(letter),
        }
    }
    parts.extend(part);
    parts
}

/// A program's name without its directory and its ending.
fn stem(platform: Platform, program: &str) -> String {
    if platform != Platform::Windows {
        let stem = Path::new(program).file_stem();
        return stem.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    }
    let name = program.rsplit(['\\', '/']).next().unwrap_or_default().to_lowercase();
    name.rsplit_once('.').map_or(name.clone(), |(stem, _)| stem.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(platform: Platform, command: &str) -> Vec<String> {
        let is_program = |name: &str| name == r"C:\Program Files\Vim\vim.exe";
        let parts = invocation(platform, command, &is_program, 7, Path::new("FILE"));
        parts.iter().map(|part| part.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn windows_editor_is_started_without_a_shell() {
        for (command, expected) in [
            ("notepad", &["notepad", "FILE"][..]),
            (" code  --wait ", &["code", "--wait", "FILE"]),
            (
                r#""C:\Program Files\Vim\vim.exe" -u "my rc""#,
                &[r"C:\Program Files\Vim\vim.exe", "-u", "my rc", "+7", "FILE"],
            ),
            (
                r"C:\Program Files\Vim\vim.exe",
                &[r"C:\Program Files\Vim\vim.exe", "+7", "FILE"],
            ),
            ("edit & calc | more", &["edit", "&", "calc", "|", "more", "FILE"]),
            (
                r#"C:\"My Tools"\e.exe "" %X%"#,
                &[r"C:\My Tools\e.exe", "", "%X%", "FILE"],
            ),
            (r"C:\Tools\NVIM.EXE", &[r"C:\Tools\NVIM.EXE", "+7", "FILE"]),
        ] {
            assert_eq!(start(Platform::Windows, command), expected, "{command}");
        }
    }

    #[test]
    fn shell_reads_the_variable_on_unix() {
        let expected = [
            "sh",
            "-c",
            "/usr/bin/vim -u 'my rc' \"$@\"",
            "/usr/bin/vim -u 'my rc'",
            "+7",
            "FILE",
        ];
        assert_eq!(start(Platform::Unix, "/usr/bin/vim -u 'my rc'"), expected);
    }

    #[test]
    fn copy_has_nothing_of_a_hostile_name_but_its_language() {
        for (name, safe) in [
            ("main.rs", "main.rs"),
            ("x&calc&.txt", "xcalc.txt"),
            (r#"a" && del /q *.%PATH%"#, "adelq.PATH"),
            ("a b;$(x)`y`'z.tar.gz", "abxyz.tar.gz"),
            ("ü\u{ff02}.md", ".md"),
            ("a^|<>\r\n.c.. ", "a.c"),
            ("NUL:", "NUL"),
            ("dots...", "dots"),
            ("", ""),
        ] {
            assert_eq!(safe_name(name), safe, "{name:?}");
        }
        let long = safe_name(&format!("{}.py", "x".repeat(300)));
        assert!(long.len() == MAX_NAME_CHARS && long.ends_with("x.py"), "{long}");
    }
}

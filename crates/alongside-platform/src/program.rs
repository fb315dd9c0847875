//! Where a program is that is named as in a shell.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::{Platform, path};

/// What Windows can start. A shell also knows the others in `PATHEXT`, such as `.JS` and `.VBS`, and passes those to another program.
const ENDINGS: &str = ".COM;.EXE;.BAT;.CMD";

/// What to pass to `Command::new` for a program as a user names it. On Windows, that finds only `qwen.exe` by itself, and npm
/// installs `qwen.cmd`.
pub fn program(name: &OsStr) -> OsString {
    let found = if Platform::current() == Platform::Windows {
        find(name)
    } else {
        None
    };
    found.map_or_else(|| name.to_owned(), PathBuf::into_os_string)
}

/// Whether a program is on the `PATH`, or where its path says.
pub fn is_installed(program: &Path) -> bool {
    find(program.as_os_str()).is_some()
}

fn find(name: &OsStr) -> Option<PathBuf> {
    let path = Path::new(name);
    let platform = Platform::current();
    let endings = match platform {
        Platform::Unix | Platform::MacOs => Vec::new(),
        Platform::Windows => endings(&env::var("PATHEXT").unwrap_or_default()),
    };
    if path.components().count() > 1 {
        return with_endings(path, &endings).find(|candidate| is_executable(candidate));
    }
    let directories = env::var_os("PATH").unwrap_or_default();
    let directories = env::split_paths(&directories).filter(|directory| directory.is_absolute());
    in_directories(directories, &endings, path, &is_executable)
}

/// Whether a file can be started, as far as its permissions tell. Windows has none for that.
pub fn is_executable(path: &Path) -> bool {
    #[cfg(unix)]
    return path.metadata().is_ok_and(|metadata| {
        use std::os::unix::fs::PermissionsExt as _;

        metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
    });
    #[cfg(not(unix))]
    return path.is_file();
}

/// A command in the directories of a PATH. An empty or relative entry means the working directory, where an attacker may
/// have put a program with that name, so it is skipped.
pub fn on_path(
    platform: Platform,
    directories: &str,
    path_endings: &str,
    name: &str,
    is_program: &dyn Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let endings = match platform {
        Platform::Unix | Platform::MacOs => Vec::new(),
        Platform::Windows => endings(path_endings),
    };
    let directories = directories
        .split(platform.path_delimiter())
        .filter(|entry| path::is_absolute(platform, entry));
    in_directories(directories.map(PathBuf::from), &endings, Path::new(name), is_program)
}

fn in_directories(
    mut directories: impl Iterator<Item = PathBuf>,
    endings: &[String],
    name: &Path,
    is_program: &dyn Fn(&Path) -> bool,
) -> Option<PathBuf> {
    directories
        .find_map(|directory| with_endings(&directory.join(name), endings).find(|candidate| is_program(candidate)))
}

/// The order is the user's.
fn endings(variable: &str) -> Vec<String> {
    let known: Vec<String> = ENDINGS.split(';').map(str::to_lowercase).collect();
    let mut wanted: Vec<String> = variable.split(';').map(|ending| ending.trim().to_lowercase()).collect();
    wanted.retain(|ending| known.contains(ending));
    if wanted.is_empty() { known } else { wanted }
}

/// The files that a name may mean. With endings, one without any is not a program: npm puts a shell script with the bare
/// name next to its `.cmd`.
fn with_endings<'a>(path: &Path, endings: &'a [String]) -> impl Iterator<Item = PathBuf> + use<'a> {
    let text = path.to_string_lossy().to_lowercase();
    let is_complete = endings.is_empty() || endings.iter().any(|ending| text.ends_with(ending));
    let path = path.as_os_str().to_owned();
    let whole = is_complete.then(|| PathBuf::from(path.clone()));
    whole.into_iter().chain(endings.iter().map(move |ending| {
        let mut name = path.clone();
        name.push(ending);
        PathBuf::from(name)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(platform: Platform, name: &str, there: &[&str]) -> Option<String> {
        let directories = match platform {
            Platform::Windows => r".;relative;;C:\npm;D:\tools",
            Platform::Unix | Platform::MacOs => ".:relative::/npm:/tools",
        };
        let spelled = |path: &Path| path.to_string_lossy().replace('/', "\\");
        let exists = |candidate: &Path| there.iter().any(|path| path.replace('/', "\\") == spelled(candidate));
        on_path(platform, directories, "", name, &exists).map(|path| path.to_string_lossy().replace('/', "\\"))
    }

    #[test]
    fn command_script_is_found_and_shell_script_is_not() {
        let npm = [r"C:\npm\qwen", r"C:\npm\qwen.cmd", r"D:\tools\qwen.exe"];
        assert_eq!(
            found(Platform::Windows, "qwen", &npm).as_deref(),
            Some(r"C:\npm\qwen.cmd")
        );
        assert_eq!(
            found(Platform::Windows, "qwen.cmd", &npm).as_deref(),
            Some(r"C:\npm\qwen.cmd")
        );
        assert_eq!(
            found(Platform::Windows, "qwen.exe", &npm).as_deref(),
            Some(r"D:\tools\qwen.exe")
        );
        assert_eq!(found(Platform::Windows, "gemini", &npm), None);
    }

    #[test]
    fn script_that_only_a_shell_can_start_is_no_program() {
        assert_eq!(
            endings(".COM;.EXE;.BAT;.CMD;.VBS;.JS;.WSF;.PY"),
            [".com", ".exe", ".bat", ".cmd"]
        );
        assert_eq!(endings(".cmd; .EXE;"), [".cmd", ".exe"]);
        for nothing_to_start in ["", ".JS;.VBS", ";"] {
            assert_eq!(endings(nothing_to_start).len(), 4);
        }
    }

    #[cfg(unix)]
    #[test]
    fn file_without_permission_to_run_is_no_program() {
        use std::fs;
        use std::os::unix::fs::PermissionsExt as _;

        let scratch = tempfile::tempdir().unwrap();
        let [text, program] = ["text", "program"].map(|name| scratch.path().join(name));
        fs::write(&text, "").unwrap();
        fs::write(&program, "").unwrap();
        fs::set_permissions(&text, fs::Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(is_installed(&program) && !is_installed(&text) && !is_installed(scratch.path()));
        let path = scratch.path().to_str().unwrap();
        let find = |name| on_path(Platform::Unix, path, "", name, &is_executable);
        assert_eq!((find("program"), find("text")), (Some(program), None));
    }

    #[test]
    fn working_directory_is_never_searched() {
        assert_eq!(
            found(
                Platform::Windows,
                "qwen",
                &[r".\qwen.exe", r"relative\qwen.exe", "qwen.exe"]
            ),
            None
        );
        assert_eq!(
            found(Platform::Unix, "qwen", &["./qwen", "relative/qwen", "qwen"]),
            None
        );
        assert_eq!(
            found(Platform::Unix, "qwen", &["/tools/qwen"]).as_deref(),
            Some(r"\tools\qwen")
        );
    }

    #[cfg(unix)]
    #[test]
    fn unix_finds_programs_by_itself() {
        assert_eq!(program(OsStr::new("qwen")), "qwen");
        assert!(is_installed(Path::new("sh")) && is_installed(Path::new("/bin/sh")));
        assert!(!is_installed(Path::new("no-such-program")) && !is_installed(Path::new("/bin/no-such-program")));
    }
}

//! The path of this program that plugins and hooks get.

use std::path::{Path, PathBuf};

use alongside_discovery::lookup::program_in_command;
use alongside_discovery::{Environment, Platform};

use super::InstallContext;
use super::places::SystemPaths;

/// The name on the PATH.
const NAME: &str = "alongside";

/// The path to put into plugins, for a program that runs from `own`.
///
/// If `alongside` on the PATH is the program itself or a symlink to it, this is the path there: it stays right when an update moves the
/// program to another versioned directory. A wrapper on the PATH, such as npm's, which starts Node first, is not used.
pub fn stable_program(environment: &Environment, own: PathBuf) -> PathBuf {
    let machine = SystemPaths {
        environment,
        exists: &|path| path.exists(),
        is_program: &alongside_platform::is_executable,
    };
    let found = machine.on_path(NAME);
    found
        .filter(|found| same_file::is_same_file(found, &own).unwrap_or_default())
        .unwrap_or(own)
}

/// What to know if the program is run without having been installed, such as with `npx`: what it installs starts it by its path.
pub fn temporary_remark(program: &Path) -> Option<String> {
    let text = program.to_string_lossy();
    let parts: Vec<&str> = text.split(['/', '\\']).collect();
    let is_temporary = |part: &&str| {
        // npx; uvx; pnpm dlx and yarn dlx; bunx.
        *part == "_npx"
            || part
                .strip_prefix("archive-v")
                .is_some_and(|number| number.parse::<u32>().is_ok())
            || *part == "dlx"
            || part.starts_with("dlx-")
            || part.starts_with("bunx-")
    };
    // `pipx run` and its cache.
    let is_pipx = |pair: &[&str]| pair == [".cache", "pipx"] || pair == ["pipx", ".cache"];
    (parts.iter().any(is_temporary) || parts.windows(2).any(is_pipx)).then(|| {
        format!(
            "{text} is a temporary copy that will be removed; install the program, as with `npm install --global alongside-ide` or \
             `uv tool install alongside-ide`, and run `alongside install` again"
        )
    })
}

/// How an editor's configuration starts this program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Invocation {
    pub(super) command: String,
    pub(super) arguments: Vec<String>,
}

impl Invocation {
    /// As the documentation shows it.
    #[cfg(test)]
    pub(super) fn by_name(argument: &str) -> Self {
        Self {
            command: NAME.to_owned(),
            arguments: vec![argument.to_owned()],
        }
    }

    /// By its path and, if it is no longer there, by name. Not by name alone, even if the PATH leads to it now: that may be the PATH of
    /// an activated virtual environment or of one directory, and the editor is started with another one.
    pub(super) fn new(context: &InstallContext<'_>, argument: &str) -> Self {
        let program = &context.program;
        let by_path = Self {
            command: program.to_string_lossy().into_owned(),
            arguments: vec![argument.to_owned()],
        };
        match context.environment.platform {
            // Nothing to choose with that every Windows has.
            Platform::Windows => by_path,
            Platform::Unix | Platform::MacOs => Self {
                command: "sh".to_owned(),
                // In the user's file, so more arguments can be added at the end.
                arguments: vec![
                    "-c".to_owned(),
                    become_program(program, "\"$@\""),
                    NAME.to_owned(),
                    argument.to_owned(),
                ],
            },
        }
    }

    /// The program that it starts. By name, as in a block that was edited, that is the one on the PATH.
    pub(super) fn program(&self, context: &InstallContext<'_>) -> Option<PathBuf> {
        match self.command.as_str() {
            NAME => super::machine(context).on_path(NAME),
            "sh" => program_in_command(self.arguments.get(1)?),
            path => Some(PathBuf::from(path)),
        }
    }
}

/// A shell command that becomes this program or, if it was moved, the one on the PATH. `"$@"` stands for the shell's own arguments.
pub(super) fn become_program(program: &Path, arguments: &str) -> String {
    let program = quoted(program);
    format!("if [ -x {program} ]; then exec {program} {arguments}; else exec {NAME} {arguments}; fi")
}

/// A shell command that runs this program or, if it was moved, the one on the PATH. Without either, it succeeds.
///
/// It has no variables, because Gemini CLI and Qwen Code replace those in their settings.
pub(super) fn run_if_found(program: &Path, arguments: &str) -> String {
    let program = quoted(program);
    format!(
        "if [ -x {program} ]; then {program} {arguments}; elif command -v {NAME} >/dev/null; then {NAME} {arguments}; fi"
    )
}

/// For a POSIX shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    use super::*;

    struct Scene {
        scratch: tempfile::TempDir,
        environment: Environment,
    }

    impl Scene {
        fn new() -> Self {
            let scratch = tempfile::tempdir().unwrap();
            for name in ["bin", "1.0"] {
                fs::create_dir(scratch.path().join(name)).unwrap();
            }
            let bin = scratch.path().join("bin");
            let environment = Environment::new(scratch.path(), scratch.path()).with("PATH", bin.to_str().unwrap());
            Self { scratch, environment }
        }

        fn program(&self, path: &str) -> PathBuf {
            let path = self.scratch.path().join(path);
            fs::write(&path, "#!/bin/sh\necho \"$0\" \"$@\"\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        }
    }

    #[test]
    fn symlink_on_the_path_is_preferred_to_its_versioned_target() {
        let scene = Scene::new();
        let (own, link) = (
            scene.program("1.0/alongside"),
            scene.scratch.path().join("bin/alongside"),
        );
        assert_eq!(stable_program(&scene.environment, own.clone()), own);
        symlink(&own, &link).unwrap();
        assert_eq!(stable_program(&scene.environment, own), link);
    }

    #[test]
    fn wrapper_on_the_path_is_not_the_program() {
        let scene = Scene::new();
        let own = scene.program("1.0/alongside");
        scene.program("bin/alongside");
        assert_eq!(stable_program(&scene.environment, own.clone()), own);
    }

    #[test]
    fn program_of_npx_and_uvx_is_temporary() {
        for (path, temporary) in [
            (
                "/home/ada/.npm/_npx/ab12/node_modules/@alongside-ide/linux-x64/bin/alongside",
                true,
            ),
            (
                "C:\\Users\\ada\\AppData\\Local\\npm-cache\\_npx\\ab12\\alongside.exe",
                true,
            ),
            ("/home/ada/.cache/uv/archive-v0/x/bin/alongside", true),
            (
                "C:\\Users\\ada\\AppData\\Local\\uv\\cache\\archive-v0\\x\\Scripts\\alongside.exe",
                true,
            ),
            ("/home/ada/.cache/pnpm/dlx/ab12/node_modules/alongside", true),
            ("/home/ada/.local/pipx/.cache/ab12/bin/alongside", true),
            ("/home/ada/.local/share/uv/tools/alongside-ide/bin/alongside", false),
            ("/home/ada/.local/share/pipx/venvs/alongside-ide/bin/alongside", false),
            (
                "/usr/lib/node_modules/alongside-ide/node_modules/@alongside-ide/linux-x64/bin/alongside",
                false,
            ),
            ("/home/ada/archive-versions/alongside", false),
        ] {
            assert_eq!(temporary_remark(Path::new(path)).is_some(), temporary, "{path}");
        }
    }

    #[test]
    fn moved_program_is_found_by_name() {
        let scene = Scene::new();
        let run = |script: &str| {
            let mut command = Command::new("/bin/sh");
            command
                .args(["-c", script, "alongside", "lsp"])
                .env("PATH", scene.scratch.path().join("bin"));
            let output = command.output().unwrap();
            (output.status.code(), String::from_utf8(output.stdout).unwrap())
        };
        let own = scene.program("1.0/it's alongside");
        let (lsp, hook) = (become_program(&own, "\"$@\""), run_if_found(&own, "hook"));
        assert_eq!(run(&lsp), (Some(0), format!("{} lsp\n", own.display())));
        assert_eq!(run(&hook), (Some(0), format!("{} hook\n", own.display())));
        fs::remove_file(&own).unwrap();
        assert_eq!(run(&lsp).0, Some(127), "an editor reports a missing server");
        assert_eq!(run(&hook), (Some(0), String::new()), "a hook left behind does nothing");
        let new = scene.program("bin/alongside");
        assert_eq!(run(&lsp), (Some(0), format!("{} lsp\n", new.display())));
        assert_eq!(run(&hook), (Some(0), format!("{} hook\n", new.display())));
    }
}

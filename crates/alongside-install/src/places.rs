//! Locations of editors and their directories, on each platform.
//!
//! Each rule is the editor's own, as documented in its manual. File existence is checked through [`SystemPaths`], so
//! that every platform's rules can be tested on one machine.

use std::path::{Path, PathBuf};

use super::executables::EXECUTABLES;
use crate::detect::DetectedIde;
use alongside_core::HookAgent;
use alongside_discovery::{Environment, Platform};

/// A machine to search for editors.
#[derive(Clone, Copy)]
pub(super) struct SystemPaths<'a> {
    pub(super) environment: &'a Environment,
    pub(super) exists: &'a dyn Fn(&Path) -> bool,
    pub(super) is_program: &'a dyn Fn(&Path) -> bool,
}

impl SystemPaths<'_> {
    /// An editor's command, on the PATH or in its usual location.
    pub(super) fn executable(&self, ide: DetectedIde) -> Option<PathBuf> {
        let rule = EXECUTABLES.iter().find(|rule| rule.ide == ide)?;
        if let Some(found) = rule.names.iter().find_map(|name| self.on_path(name)) {
            return Some(found);
        }
        let places = match self.environment.platform {
            Platform::Unix => rule.unix,
            Platform::MacOs => rule.macos,
            Platform::Windows => rule.windows,
        };
        let mut places = places.iter().filter_map(|place| self.expand(place));
        places.find(|place| (self.is_program)(place))
    }

    /// A command on the PATH.
    pub(super) fn on_path(&self, name: &str) -> Option<PathBuf> {
        let variable = |name| self.environment.variable(name).unwrap_or_default();
        alongside_platform::on_path(
            self.environment.platform,
            variable("PATH"),
            variable("PATHEXT"),
            name,
            self.is_program,
        )
    }

    /// Neovim's `stdpath("data")`.
    pub(super) fn neovim_data(&self) -> Option<PathBuf> {
        let name = self.environment.variable("NVIM_APPNAME").unwrap_or("nvim");
        Some(match self.environment.platform {
            Platform::Windows => {
                let base = self
                    .directory("XDG_DATA_HOME")
                    .or_else(|| self.directory("LOCALAPPDATA"));
                base.or_else(|| self.home("AppData/Local"))?
                    .join(format!("{name}-data"))
            }
            Platform::Unix | Platform::MacOs => {
                let base = self.directory("XDG_DATA_HOME").or_else(|| self.home(".local/share"));
                base?.join(name)
            }
        })
    }

    /// The first directory of Vim's `runtimepath`.
    pub(super) fn vim_directory(&self) -> Option<PathBuf> {
        if self.environment.platform == Platform::Windows {
            return self.home("vimfiles");
        }
        let usual = self.home(".vim")?;
        let has_usual = [usual.clone(), self.home(".vimrc")?]
            .iter()
            .any(|path| (self.exists)(path));
        // Vim 9.1.0327 and newer, and only if nothing exists in the usual location.
        let modern = self.configuration()?.join("vim");
        let is_modern = !has_usual && (self.exists)(&modern.join("vimrc"));
        Some(if is_modern { modern } else { usual })
    }

    /// Emacs's `user-emacs-directory` and init file.
    pub(super) fn emacs(&self) -> Option<(PathBuf, PathBuf)> {
        let home = match self.environment.platform {
            // On Windows, Emacs's home is the roaming application data unless HOME is set.
            Platform::Windows => self.directory("HOME").or_else(|| self.directory("APPDATA"))?,
            Platform::Unix | Platform::MacOs => self.environment.home.clone()?,
        };
        let directory = home.join(".emacs.d");
        let in_home = [".emacs.el", ".emacs"].map(|name| home.join(name));
        if let Some(init) = in_home.into_iter().find(|path| (self.exists)(path)) {
            return Some((directory, init));
        }
        let modern = self.configuration().map(|configuration| configuration.join("emacs"));
        let is_unix = self.environment.platform != Platform::Windows;
        let modern = modern.filter(|modern| is_unix && !(self.exists)(&directory) && (self.exists)(modern));
        let directory = modern.unwrap_or(directory);
        let init = directory.join("init.el");
        Some((directory, init))
    }

    /// Helix's `languages.toml`.
    pub(super) fn helix_languages(&self) -> Option<PathBuf> {
        let directory = match self.environment.platform {
            Platform::Windows => self.directory("APPDATA").or_else(|| self.home("AppData/Roaming"))?,
            Platform::Unix | Platform::MacOs => self.configuration()?,
        };
        Some(inside(&directory, "helix/languages.toml"))
    }

    /// Kakoune's `kakrc`.
    pub(super) fn kakrc(&self) -> Option<PathBuf> {
        let directory = self.directory("KAKOUNE_CONFIG_DIR");
        let directory = directory.or_else(|| self.configuration().map(|configuration| configuration.join("kak")));
        Some(directory?.join("kakrc"))
    }

    /// The settings of Kate's LSP client.
    pub(super) fn kate_settings(&self) -> Option<PathBuf> {
        Some(inside(&self.configuration()?, "kate/lspclient/settings.json"))
    }

    /// Kate's own settings.
    pub(super) fn katerc(&self) -> Option<PathBuf> {
        Some(self.configuration()?.join("katerc"))
    }

    /// The file that an agent's hook is in.
    pub(super) fn hook_file(&self, agent: HookAgent) -> Option<PathBuf> {
        let own = |variable, usual| self.directory(variable).or_else(|| self.home(usual));
        Some(match agent {
            HookAgent::Claude => own("CLAUDE_CONFIG_DIR", ".claude")?.join("settings.json"),
            HookAgent::Codex => own("CODEX_HOME", ".codex")?.join("hooks.json"),
            HookAgent::Copilot => own("COPILOT_HOME", ".copilot")?.join("settings.json"),
            HookAgent::Gemini => inside(&own("GEMINI_CLI_HOME", "")?, ".gemini/settings.json"),
            HookAgent::Opencode => inside(&self.configuration()?, "opencode/plugin/alongside.js"),
            HookAgent::Qwen => self.environment.qwen_home().join("settings.json"),
        })
    }

    fn configuration(&self) -> Option<PathBuf> {
        self.directory("XDG_CONFIG_HOME").or_else(|| self.home(".config"))
    }

    fn home(&self, below: &str) -> Option<PathBuf> {
        self.environment.home.as_deref().map(|home| inside(home, below))
    }

    /// A directory from a variable. The XDG specification says to ignore relative ones.
    fn directory(&self, name: &str) -> Option<PathBuf> {
        let value = self.environment.variable(name)?;
        is_absolute(self.environment.platform, value).then(|| PathBuf::from(value))
    }

    fn expand(&self, place: &str) -> Option<PathBuf> {
        if let Some(below) = place.strip_prefix("~/") {
            return self.home(below);
        }
        match place.strip_prefix('%').and_then(|place| place.split_once("%/")) {
            Some((variable, below)) => Some(self.directory(variable)?.join(below)),
            None => Some(PathBuf::from(place)),
        }
    }
}

/// A path below a directory, with the separators of this system: it is shown to users.
pub(super) fn inside(directory: &Path, below: &str) -> PathBuf {
    below
        .split('/')
        .fold(directory.to_owned(), |path, part| path.join(part))
}

fn is_absolute(platform: Platform, path: &str) -> bool {
    match platform {
        Platform::Unix | Platform::MacOs => path.starts_with('/'),
        // Paths on a real machine, and in tests on other platforms.
        Platform::Windows => path.as_bytes().get(1) == Some(&b':') || path.starts_with("\\\\") || path.starts_with('/'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(platform: Platform, variables: &[(&str, &str)]) -> Environment {
        let home = match platform {
            Platform::Unix => "/home/ada",
            Platform::MacOs => "/Users/ada",
            Platform::Windows => "C:\\Users\\ada",
        };
        let environment = Environment {
            platform,
            ..Environment::new(home, "/")
        };
        variables.iter().fold(environment, |environment, (name, value)| {
            environment.with(*name, *value)
        })
    }

    /// A path with one kind of separator, since Windows paths are tested on other platforms.
    fn plain(path: Option<PathBuf>) -> String {
        path.unwrap_or_default().to_string_lossy().replace('\\', "/")
    }

    fn on<T>(
        platform: Platform,
        variables: &[(&str, &str)],
        files: &[&str],
        ask: impl FnOnce(SystemPaths<'_>) -> T,
    ) -> T {
        let environment = environment(platform, variables);
        let exists = |path: &Path| files.contains(&path.to_string_lossy().replace('\\', "/").as_str());
        ask(SystemPaths {
            environment: &environment,
            exists: &exists,
            is_program: &exists,
        })
    }

    #[test]
    fn editor_directories_on_every_platform() {
        use Platform::{MacOs, Unix, Windows};
        type Ask = fn(SystemPaths<'_>) -> Option<PathBuf>;
        type Row<'a> = (Ask, Platform, &'a [(&'a str, &'a str)], &'a [&'a str], &'a str);
        let neovim: Ask = |machine| machine.neovim_data();
        let vim: Ask = |machine| machine.vim_directory();
        let emacs: Ask = |machine| machine.emacs().map(|(_, init)| init);
        let emacs_directory: Ask = |machine| machine.emacs().map(|(directory, _)| directory);
        let helix: Ask = |machine| machine.helix_languages();
        let kakoune: Ask = |machine| machine.kakrc();
        let xdg = [("XDG_DATA_HOME", "/x/data"), ("XDG_CONFIG_HOME", "/x/config")];
        let windows = [("LOCALAPPDATA", "C:\\L"), ("APPDATA", "C:\\R")];
        let rows: &[Row<'_>] = &[
            (neovim, Unix, &[], &[], "/home/ada/.local/share/nvim"),
            (neovim, Unix, &xdg, &[], "/x/data/nvim"),
            (
                neovim,
                Unix,
                &[("XDG_DATA_HOME", "relative")],
                &[],
                "/home/ada/.local/share/nvim",
            ),
            (
                neovim,
                Unix,
                &[("NVIM_APPNAME", "lazyvim")],
                &[],
                "/home/ada/.local/share/lazyvim",
            ),
            (neovim, MacOs, &[], &[], "/Users/ada/.local/share/nvim"),
            (neovim, Windows, &windows, &[], "C:/L/nvim-data"),
            (neovim, Windows, &[], &[], "C:/Users/ada/AppData/Local/nvim-data"),
            (vim, Unix, &[], &[], "/home/ada/.vim"),
            (
                vim,
                Unix,
                &[],
                &["/home/ada/.config/vim/vimrc"],
                "/home/ada/.config/vim",
            ),
            (
                vim,
                Unix,
                &[],
                &["/home/ada/.config/vim/vimrc", "/home/ada/.vimrc"],
                "/home/ada/.vim",
            ),
            (vim, MacOs, &[], &[], "/Users/ada/.vim"),
            (vim, Windows, &windows, &[], "C:/Users/ada/vimfiles"),
            (emacs, Unix, &[], &[], "/home/ada/.emacs.d/init.el"),
            (emacs, Unix, &[], &["/home/ada/.emacs"], "/home/ada/.emacs"),
            (emacs_directory, Unix, &[], &["/home/ada/.emacs"], "/home/ada/.emacs.d"),
            (
                emacs,
                Unix,
                &[],
                &["/home/ada/.config/emacs"],
                "/home/ada/.config/emacs/init.el",
            ),
            (
                emacs,
                Unix,
                &[],
                &["/home/ada/.config/emacs", "/home/ada/.emacs.d"],
                "/home/ada/.emacs.d/init.el",
            ),
            (emacs, Unix, &xdg, &["/x/config/emacs"], "/x/config/emacs/init.el"),
            (emacs, MacOs, &[], &[], "/Users/ada/.emacs.d/init.el"),
            (emacs, Windows, &windows, &[], "C:/R/.emacs.d/init.el"),
            (
                emacs,
                Windows,
                &[("HOME", "D:\\h"), ("APPDATA", "C:\\R")],
                &[],
                "D:/h/.emacs.d/init.el",
            ),
            (helix, Unix, &[], &[], "/home/ada/.config/helix/languages.toml"),
            (helix, MacOs, &xdg, &[], "/x/config/helix/languages.toml"),
            (helix, Windows, &windows, &[], "C:/R/helix/languages.toml"),
            (kakoune, Unix, &[], &[], "/home/ada/.config/kak/kakrc"),
            (kakoune, MacOs, &[("KAKOUNE_CONFIG_DIR", "/k")], &[], "/k/kakrc"),
        ];
        for (ask, platform, variables, files, expected) in rows {
            assert_eq!(
                plain(on(*platform, variables, files, ask)),
                *expected,
                "{platform:?} {variables:?} {files:?}"
            );
        }
    }

    #[test]
    fn every_usual_location_is_searched() {
        let variables = [("PROGRAMFILES", "C:\\P"), ("LOCALAPPDATA", "C:\\L")];
        for rule in EXECUTABLES {
            let places = [
                (Platform::Unix, rule.unix),
                (Platform::MacOs, rule.macos),
                (Platform::Windows, rule.windows),
            ];
            for (platform, places) in places {
                for place in places {
                    let home = if platform == Platform::Unix {
                        "/home/ada"
                    } else {
                        "/Users/ada"
                    };
                    let real = place
                        .replace('~', home)
                        .replace("%PROGRAMFILES%", "C:/P")
                        .replace("%LOCALAPPDATA%", "C:/L");
                    let found = on(platform, &variables, &[&real], |machine| machine.executable(rule.ide));
                    assert_eq!(plain(found), real);
                }
            }
            let file = format!("/bin/{}", rule.names[0]);
            let found = on(Platform::Unix, &[("PATH", "relative::/bin")], &[&file], |machine| {
                machine.executable(rule.ide)
            });
            assert_eq!(plain(found), file);
            assert_eq!(
                on(Platform::Unix, &variables, &[], |machine| machine.executable(rule.ide)),
                None
            );
        }
    }

    #[test]
    fn windows_uses_pathext_and_semicolons() {
        let variables = [("Path", "C:\\a;C:\\b"), ("PATHEXT", ".EXE;.CMD")];
        let found = on(
            Platform::Windows,
            &variables,
            &["C:\\b/code.cmd".replace('\\', "/").as_str()],
            |machine| machine.executable(DetectedIde::VsCode),
        );
        assert_eq!(plain(found), "C:/b/code.cmd");
    }

    #[test]
    fn program_in_working_directory_is_ignored() {
        let files = ["code", "./code", "bin/code"];
        for path in ["", ".", ":", "bin"] {
            assert_eq!(
                on(Platform::Unix, &[("PATH", path)], &files, |machine| machine
                    .on_path("code")),
                None
            );
        }
    }
}

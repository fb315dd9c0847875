//! Names of the editors' commands, and where they are if not on the PATH.

use crate::detect::DetectedIde;

pub(super) struct Executable {
    pub(super) ide: DetectedIde,
    /// Its names on the PATH, the usual one first.
    pub(super) names: &'static [&'static str],
    /// Other locations on Linux, macOS and Windows. `~` is the home; `%NAME%` a variable.
    pub(super) unix: &'static [&'static str],
    pub(super) macos: &'static [&'static str],
    pub(super) windows: &'static [&'static str],
}

const fn executable(
    ide: DetectedIde,
    names: &'static [&'static str],
    unix: &'static [&'static str],
    macos: &'static [&'static str],
    windows: &'static [&'static str],
) -> Executable {
    Executable {
        ide,
        names,
        unix,
        macos,
        windows,
    }
}

pub(super) const EXECUTABLES: &[Executable] = &[
    executable(
        DetectedIde::Neovim,
        &["nvim"],
        &["/snap/bin/nvim", "~/.local/bin/nvim"],
        &["/opt/homebrew/bin/nvim", "/usr/local/bin/nvim"],
        &["%PROGRAMFILES%/Neovim/bin/nvim.exe"],
    ),
    executable(
        DetectedIde::Vim,
        &["vim", "gvim"],
        &[],
        &[
            "/Applications/MacVim.app/Contents/bin/vim",
            "/opt/homebrew/bin/vim",
            "/usr/bin/vim",
        ],
        &["%PROGRAMFILES%/Vim/vim91/vim.exe", "%PROGRAMFILES%/Vim/vim90/vim.exe"],
    ),
    executable(
        DetectedIde::Emacs,
        &["emacs"],
        &["/snap/bin/emacs"],
        &[
            "/Applications/Emacs.app/Contents/MacOS/Emacs",
            "/opt/homebrew/bin/emacs",
        ],
        &["%PROGRAMFILES%/Emacs/emacs-30.1/bin/emacs.exe"],
    ),
    executable(
        DetectedIde::Helix,
        &["hx", "helix"],
        &["~/.cargo/bin/hx"],
        &["/opt/homebrew/bin/hx"],
        &[],
    ),
    executable(
        DetectedIde::Kate,
        &["kate"],
        &[],
        &["/Applications/kate.app/Contents/MacOS/kate"],
        &["%PROGRAMFILES%/Kate/bin/kate.exe"],
    ),
    executable(DetectedIde::Kakoune, &["kak"], &[], &["/opt/homebrew/bin/kak"], &[]),
    executable(
        DetectedIde::VsCode,
        &["code"],
        &[
            "/usr/share/code/bin/code",
            "/snap/bin/code",
            "~/.local/share/code/bin/code",
        ],
        &[
            "/Applications/Visual Studio Code.app/Contents/Resources/app/bin/code",
            "~/Applications/Visual Studio Code.app/Contents/Resources/app/bin/code",
        ],
        &[
            "%PROGRAMFILES%/Microsoft VS Code/bin/code.cmd",
            "%LOCALAPPDATA%/Programs/Microsoft VS Code/bin/code.cmd",
        ],
    ),
    executable(
        DetectedIde::VsCodeInsiders,
        &["code-insiders"],
        &["/usr/share/code-insiders/bin/code-insiders", "/snap/bin/code-insiders"],
        &["/Applications/Visual Studio Code - Insiders.app/Contents/Resources/app/bin/code-insiders"],
        &["%LOCALAPPDATA%/Programs/Microsoft VS Code Insiders/bin/code-insiders.cmd"],
    ),
    executable(
        DetectedIde::VsCodium,
        &["codium", "vscodium"],
        &["/usr/share/codium/bin/codium", "/snap/bin/codium"],
        &["/Applications/VSCodium.app/Contents/Resources/app/bin/codium"],
        &[
            "%PROGRAMFILES%/VSCodium/bin/codium.cmd",
            "%LOCALAPPDATA%/Programs/VSCodium/bin/codium.cmd",
        ],
    ),
    executable(
        DetectedIde::CodeServer,
        &["code-server"],
        &["~/.local/bin/code-server"],
        &[],
        &[],
    ),
    executable(
        DetectedIde::Cursor,
        &["cursor"],
        &["/usr/share/cursor/bin/cursor"],
        &["/Applications/Cursor.app/Contents/Resources/app/bin/cursor"],
        &["%LOCALAPPDATA%/Programs/cursor/resources/app/bin/cursor.cmd"],
    ),
    executable(
        DetectedIde::Windsurf,
        &["windsurf"],
        &["/usr/share/windsurf/bin/windsurf"],
        &["/Applications/Windsurf.app/Contents/Resources/app/bin/windsurf"],
        &["%LOCALAPPDATA%/Programs/Windsurf/bin/windsurf.cmd"],
    ),
    executable(
        DetectedIde::Trae,
        &["trae"],
        &["/usr/share/trae/bin/trae"],
        &["/Applications/Trae.app/Contents/Resources/app/bin/trae"],
        &["%LOCALAPPDATA%/Programs/Trae/bin/trae.cmd"],
    ),
    executable(
        DetectedIde::Kiro,
        &["kiro"],
        &["/usr/share/kiro/bin/kiro"],
        &["/Applications/Kiro.app/Contents/Resources/app/bin/code"],
        &["%LOCALAPPDATA%/Programs/Kiro/bin/kiro.cmd"],
    ),
    executable(
        DetectedIde::Positron,
        &["positron"],
        &["/usr/share/positron/bin/positron"],
        &["/Applications/Positron.app/Contents/Resources/app/bin/positron"],
        &[
            "%PROGRAMFILES%/Positron/bin/positron.cmd",
            "%LOCALAPPDATA%/Programs/Positron/bin/positron.cmd",
        ],
    ),
    executable(
        DetectedIde::Antigravity,
        &["agy", "antigravity"],
        &["/usr/share/antigravity/bin/antigravity"],
        &["/Applications/Antigravity.app/Contents/Resources/app/bin/antigravity"],
        &["%LOCALAPPDATA%/Programs/Antigravity/bin/antigravity.cmd"],
    ),
    executable(DetectedIde::Codespaces, &["code"], &[], &[], &[]),
    executable(DetectedIde::FirebaseStudio, &["code"], &[], &[], &[]),
];

/// The command that starts an editor, for messages.
pub(super) fn usual_name(ide: DetectedIde) -> &'static str {
    let rule = EXECUTABLES.iter().find(|rule| rule.ide == ide);
    rule.and_then(|rule| rule.names.first()).copied().unwrap_or(ide.id())
}

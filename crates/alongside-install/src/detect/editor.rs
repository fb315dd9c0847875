//! Every editor that can be detected, with its names.

use serde::{Serialize, Serializer};

/// Editors built on the same base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// VS Code forks: same extensions, same terminal setup.
    VsCode,
    /// Built on the IntelliJ platform.
    JetBrains,
    /// Not part of a family.
    None,
}

/// Declares the enum, its list and its names from one table, so that they cannot get out of sync.
macro_rules! editors {
    ($($variant:ident, $family:ident, $id:literal, $display_name:literal, [$($alias:literal),*];)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DetectedIde {
            $(#[doc = concat!("`", $display_name, "`.")] $variant,)*
        }

        impl DetectedIde {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// A short, stable name; the agents' own where they have one.
            pub const fn id(self) -> &'static str {
                match self { $(Self::$variant => $id,)* }
            }

            pub const fn display_name(self) -> &'static str {
                match self { $(Self::$variant => $display_name,)* }
            }

            pub const fn family(self) -> Family {
                match self { $(Self::$variant => Family::$family,)* }
            }

            /// Other names users may type.
            const fn aliases(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &[$($alias),*],)* }
            }
        }
    };
}

editors! {
    Neovim, None, "neovim", "Neovim", ["nvim"];
    Vim, None, "vim", "Vim", ["gvim", "macvim"];
    Emacs, None, "emacs", "Emacs", [];
    Helix, None, "helix", "Helix", ["hx"];
    Kakoune, None, "kakoune", "Kakoune", ["kak"];
    Kate, None, "kate", "Kate", [];
    QtCreator, None, "qtcreator", "Qt Creator", ["qt-creator"];
    SublimeText, None, "sublimetext", "Sublime Text", ["sublime", "subl"];
    Zed, None, "zed", "Zed", ["zeditor"];
    Xcode, None, "xcode", "Xcode", [];
    VsCode, VsCode, "vscode", "VS Code", ["code"];
    VsCodeInsiders, VsCode, "vscodeinsiders", "VS Code Insiders", ["code-insiders"];
    VsCodium, VsCode, "vscodium", "VSCodium", ["codium"];
    CodeServer, VsCode, "codeserver", "code-server", ["code-server"];
    Cursor, VsCode, "cursor", "Cursor", [];
    Windsurf, VsCode, "windsurf", "Windsurf", [];
    Trae, VsCode, "trae", "Trae", [];
    Kiro, VsCode, "kiro", "Kiro", [];
    Positron, VsCode, "positron", "Positron", [];
    Antigravity, VsCode, "antigravity", "Antigravity", ["agy"];
    Codespaces, VsCode, "codespaces", "GitHub Codespaces", [];
    CloudShell, VsCode, "cloudshell", "Cloud Shell", [];
    FirebaseStudio, VsCode, "firebasestudio", "Firebase Studio", [];
    Replit, None, "replit", "Replit", [];
    Devin, None, "devin", "Devin", [];
    IntelliJIdea, JetBrains, "intellijidea", "IntelliJ IDEA", ["idea", "intellij"];
    PyCharm, JetBrains, "pycharm", "PyCharm", [];
    WebStorm, JetBrains, "webstorm", "WebStorm", [];
    GoLand, JetBrains, "goland", "GoLand", [];
    CLion, JetBrains, "clion", "CLion", [];
    RustRover, JetBrains, "rustrover", "RustRover", [];
    PhpStorm, JetBrains, "phpstorm", "PhpStorm", [];
    RubyMine, JetBrains, "rubymine", "RubyMine", [];
    Rider, JetBrains, "rider", "Rider", [];
    DataGrip, JetBrains, "datagrip", "DataGrip", [];
    AndroidStudio, JetBrains, "androidstudio", "Android Studio", ["studio"];
    JetBrains, JetBrains, "jetbrains", "JetBrains IDE", [];
}

impl DetectedIde {
    /// Parses an editor name typed by the user: the ID, the display name, or the editor's command.
    pub fn from_name(typed: &str) -> Option<Self> {
        let typed = typed.trim().to_lowercase();
        Self::ALL.iter().copied().find(|ide| {
            ide.id() == typed || ide.display_name().to_lowercase() == typed || ide.aliases().contains(&typed.as_str())
        })
    }

    /// Whether this stands for a whole family rather than one member.
    pub const fn is_generic(self) -> bool {
        matches!(self, Self::VsCode | Self::JetBrains)
    }
}

impl Serialize for DetectedIde {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let names: Vec<&str> = DetectedIde::ALL
            .iter()
            .flat_map(|ide| [&[ide.id()], ide.aliases()].concat())
            .collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for ide in DetectedIde::ALL {
            assert_eq!(DetectedIde::from_name(ide.id()), Some(*ide));
            assert_eq!(DetectedIde::from_name(ide.display_name()), Some(*ide));
        }
        assert_eq!(DetectedIde::from_name(" NVIM "), Some(DetectedIde::Neovim));
        assert_eq!(DetectedIde::from_name("ed"), None);
    }

    #[test]
    fn ids_are_plain_lowercase() {
        for ide in DetectedIde::ALL {
            assert!(ide.id().bytes().all(|byte| byte.is_ascii_lowercase()), "{}", ide.id());
        }
    }
}

//! The two tables: variables set in an editor's terminal, and editor processes.

#[allow(
    clippy::enum_glob_use,
    reason = "the tables are about nothing else, and name all of them"
)]
use super::DetectedIde::{self, *};

/// A condition on a variable's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueRule {
    /// Any non-empty value.
    Any,
    /// This value, ignoring case.
    Is(&'static str),
    /// A value containing this, ignoring case.
    Has(&'static str),
}

impl ValueRule {
    pub(super) fn fits(self, value: &str) -> bool {
        match self {
            Self::Any => !value.is_empty(),
            Self::Is(wanted) => value.eq_ignore_ascii_case(wanted),
            Self::Has(part) => value.to_lowercase().contains(part),
        }
    }
}

/// A variable that identifies an editor.
#[derive(Clone, Copy, Debug)]
pub(super) struct VariableRule {
    pub(super) name: &'static str,
    pub(super) wanted: ValueRule,
    pub(super) ide: DetectedIde,
}

const fn variable(name: &'static str, wanted: ValueRule, ide: DetectedIde) -> VariableRule {
    VariableRule { name, wanted, ide }
}

/// Path of the Node binary that VS Code's Git extension uses to ask for passwords: it is inside the editor's
/// installation, and terminal multiplexers pass it on.
const ASKPASS: &str = "VSCODE_GIT_ASKPASS_NODE";
/// Set by macOS for every program started from an application.
const BUNDLE: &str = "__CFBundleIdentifier";
const PROGRAM: &str = "TERM_PROGRAM";

/// Editors that run in a terminal come first: they usually run inside the others, rarely the other way around. Among VS
/// Code forks the specific variable comes before the common one.
///
/// `HELIX_RUNTIME` and `NVIM_LISTEN_ADDRESS` are missing on purpose: users set them permanently in their shell profile,
/// so they are not evidence for this terminal.
pub(super) const VARIABLES: &[VariableRule] = &[
    variable("NVIM", ValueRule::Any, Neovim),
    variable("VIMRUNTIME", ValueRule::Has("nvim"), Neovim),
    variable("VIM_TERMINAL", ValueRule::Any, Vim),
    variable("VIMRUNTIME", ValueRule::Any, Vim),
    variable("INSIDE_EMACS", ValueRule::Any, Emacs),
    variable("kak_session", ValueRule::Any, Kakoune),
    variable("ANTIGRAVITY_CLI_ALIAS", ValueRule::Any, Antigravity),
    variable("__COG_BASHRC_SOURCED", ValueRule::Any, Devin),
    variable("REPLIT_USER", ValueRule::Any, Replit),
    variable("CURSOR_TRACE_ID", ValueRule::Any, Cursor),
    variable("CODESPACES", ValueRule::Any, Codespaces),
    variable("EDITOR_IN_CLOUD_SHELL", ValueRule::Any, CloudShell),
    variable("CLOUD_SHELL", ValueRule::Any, CloudShell),
    variable("TERM_PRODUCT", ValueRule::Is("trae"), Trae),
    variable("MONOSPACE_ENV", ValueRule::Any, FirebaseStudio),
    variable("POSITRON", ValueRule::Is("1"), Positron),
    variable("WINDSURF", ValueRule::Any, Windsurf),
    variable(PROGRAM, ValueRule::Is("kiro"), Kiro),
    variable(PROGRAM, ValueRule::Is("sublime"), SublimeText),
    variable(PROGRAM, ValueRule::Is("terminus-sublime"), SublimeText),
    variable("ZED_SESSION_ID", ValueRule::Any, Zed),
    variable("ZED_TERM", ValueRule::Any, Zed),
    variable(PROGRAM, ValueRule::Is("zed"), Zed),
    variable("XCODE_VERSION_ACTUAL", ValueRule::Any, Xcode),
    variable(ASKPASS, ValueRule::Has("cursor"), Cursor),
    variable(ASKPASS, ValueRule::Has("windsurf"), Windsurf),
    variable(ASKPASS, ValueRule::Has("antigravity"), Antigravity),
    variable(ASKPASS, ValueRule::Has("positron"), Positron),
    variable(ASKPASS, ValueRule::Has("kiro"), Kiro),
    variable(ASKPASS, ValueRule::Has("trae"), Trae),
    variable(ASKPASS, ValueRule::Has("codium"), VsCodium),
    variable(ASKPASS, ValueRule::Has("insiders"), VsCodeInsiders),
    variable(ASKPASS, ValueRule::Has("code-server"), CodeServer),
    variable(BUNDLE, ValueRule::Is("com.todesktop.230313mzl4w4u92"), Cursor),
    variable(BUNDLE, ValueRule::Is("com.exafunction.windsurf"), Windsurf),
    variable(BUNDLE, ValueRule::Is("com.google.antigravity"), Antigravity),
    variable(BUNDLE, ValueRule::Is("com.vscodium"), VsCodium),
    variable(BUNDLE, ValueRule::Is("com.microsoft.vscodeinsiders"), VsCodeInsiders),
    variable(BUNDLE, ValueRule::Is("com.jetbrains.intellij"), IntelliJIdea),
    variable(BUNDLE, ValueRule::Is("com.jetbrains.intellij.ce"), IntelliJIdea),
    variable(BUNDLE, ValueRule::Is("com.jetbrains.pycharm"), PyCharm),
    variable(BUNDLE, ValueRule::Is("com.jetbrains.pycharm.ce"), PyCharm),
    variable(BUNDLE, ValueRule::Is("com.jetbrains.webstorm"), WebStorm),
    variable(BUNDLE, ValueRule::Is("com.jetbrains.goland"), GoLand),
    variable(BUNDLE, ValueRule::Is("com.jetbrains.clion"), CLion),
    variable(BUNDLE, ValueRule::Is("com.jetbrains.rustrover"), RustRover),
    variable(BUNDLE, ValueRule::Is("com.jetbrains.phpstorm"), PhpStorm),
    variable(BUNDLE, ValueRule::Is("com.jetbrains.rubymine"), RubyMine),
    variable(BUNDLE, ValueRule::Is("com.jetbrains.rider"), Rider),
    variable(BUNDLE, ValueRule::Is("com.jetbrains.datagrip"), DataGrip),
    variable(BUNDLE, ValueRule::Is("com.google.android.studio"), AndroidStudio),
    variable("TERMINAL_EMULATOR", ValueRule::Has("jetbrains"), JetBrains),
    variable(PROGRAM, ValueRule::Is("vscode"), VsCode),
    variable("VSCODE_IPC_HOOK_CLI", ValueRule::Any, VsCode),
    variable("VSCODE_INJECTION", ValueRule::Any, VsCode),
    variable(ASKPASS, ValueRule::Any, VsCode),
];

/// What identifies a process as an editor. Everything is compared in lowercase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessMatch {
    /// The program's file name, without `.exe`, `.sh` and the like.
    Name(&'static str),
    /// A prefix of the program's file name: distributions append versions and variants.
    Prefix(&'static str),
    /// The macOS application bundle that contains the program, without `.app`.
    Bundle(&'static str),
    /// A substring of the program's path.
    Path(&'static str),
    /// An argument of a Java program, as in JetBrains editors started by their old shell scripts.
    JavaArgument(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessRule {
    pub(super) ide: DetectedIde,
    pub(super) marks: &'static [ProcessMatch],
}

const fn process(ide: DetectedIde, marks: &'static [ProcessMatch]) -> ProcessRule {
    ProcessRule { ide, marks }
}

use ProcessMatch::{Bundle, JavaArgument, Name, Path, Prefix};

/// The nearest matching ancestor wins; for one ancestor, the first matching rule.
pub(super) const PROCESSES: &[ProcessRule] = &[
    process(
        Neovim,
        &[Name("nvim"), Name("nvim-qt"), Name("neovide"), Bundle("neovide")],
    ),
    process(
        Vim,
        &[
            Name("vim"),
            Name("gvim"),
            Name("macvim"),
            Name("mvim"),
            Prefix("vim."),
            Bundle("macvim"),
        ],
    ),
    process(
        Emacs,
        &[Name("emacs"), Prefix("emacs-"), Name("runemacs"), Bundle("emacs")],
    ),
    process(Helix, &[Name("hx"), Name("helix")]),
    process(Kakoune, &[Name("kak")]),
    process(Kate, &[Name("kate"), Bundle("kate")]),
    process(QtCreator, &[Name("qtcreator"), Bundle("qt creator")]),
    process(
        SublimeText,
        &[Name("sublime_text"), Name("subl"), Bundle("sublime text")],
    ),
    process(
        Zed,
        &[
            Name("zed"),
            Name("zed-editor"),
            Name("zeditor"),
            Bundle("zed"),
            Bundle("zed preview"),
        ],
    ),
    process(Xcode, &[Bundle("xcode")]),
    process(
        VsCodeInsiders,
        &[
            Name("code-insiders"),
            Name("code - insiders"),
            Bundle("visual studio code - insiders"),
            Path("/.vscode-server-insiders/"),
        ],
    ),
    process(
        VsCodium,
        &[
            Name("codium"),
            Name("vscodium"),
            Bundle("vscodium"),
            Path("/.vscodium-server/"),
        ],
    ),
    process(CodeServer, &[Name("code-server"), Path("/code-server/")]),
    process(Cursor, &[Name("cursor"), Bundle("cursor"), Path("/.cursor-server/")]),
    process(
        Windsurf,
        &[Name("windsurf"), Bundle("windsurf"), Path("/.windsurf-server/")],
    ),
    process(Trae, &[Name("trae"), Bundle("trae"), Path("/.trae-server/")]),
    process(Kiro, &[Name("kiro"), Bundle("kiro")]),
    process(
        Positron,
        &[Name("positron"), Bundle("positron"), Path("/.positron-server/")],
    ),
    process(
        Antigravity,
        &[
            Name("antigravity"),
            Bundle("antigravity"),
            Path("/.antigravity-server/"),
        ],
    ),
    process(
        VsCode,
        &[
            Name("code"),
            Name("code-oss"),
            Bundle("visual studio code"),
            Path("/.vscode-server/"),
        ],
    ),
    process(
        IntelliJIdea,
        &[
            Name("idea"),
            Name("idea64"),
            Bundle("intellij idea"),
            Bundle("intellij idea ce"),
            JavaArgument("idea.paths.selector=intellijidea"),
            JavaArgument("idea.paths.selector=ideaic"),
        ],
    ),
    process(
        PyCharm,
        &[
            Name("pycharm"),
            Name("pycharm64"),
            Bundle("pycharm"),
            Bundle("pycharm ce"),
            JavaArgument("idea.paths.selector=pycharm"),
        ],
    ),
    process(
        WebStorm,
        &[
            Name("webstorm"),
            Name("webstorm64"),
            Bundle("webstorm"),
            JavaArgument("idea.paths.selector=webstorm"),
        ],
    ),
    process(
        GoLand,
        &[
            Name("goland"),
            Name("goland64"),
            Bundle("goland"),
            JavaArgument("idea.paths.selector=goland"),
        ],
    ),
    process(
        CLion,
        &[
            Name("clion"),
            Name("clion64"),
            Bundle("clion"),
            JavaArgument("idea.paths.selector=clion"),
        ],
    ),
    process(
        RustRover,
        &[
            Name("rustrover"),
            Name("rustrover64"),
            Bundle("rustrover"),
            JavaArgument("idea.paths.selector=rustrover"),
        ],
    ),
    process(
        PhpStorm,
        &[
            Name("phpstorm"),
            Name("phpstorm64"),
            Bundle("phpstorm"),
            JavaArgument("idea.paths.selector=phpstorm"),
        ],
    ),
    process(
        RubyMine,
        &[
            Name("rubymine"),
            Name("rubymine64"),
            Bundle("rubymine"),
            JavaArgument("idea.paths.selector=rubymine"),
        ],
    ),
    process(
        Rider,
        &[
            Name("rider"),
            Name("rider64"),
            Bundle("rider"),
            JavaArgument("idea.paths.selector=rider"),
        ],
    ),
    process(
        DataGrip,
        &[
            Name("datagrip"),
            Name("datagrip64"),
            Bundle("datagrip"),
            JavaArgument("idea.paths.selector=datagrip"),
        ],
    ),
    process(
        AndroidStudio,
        &[
            Name("studio"),
            Name("studio64"),
            Name("android-studio"),
            Bundle("android studio"),
            JavaArgument("idea.paths.selector=androidstudio"),
        ],
    ),
    process(
        JetBrains,
        &[
            JavaArgument("idea.paths.selector="),
            JavaArgument("com.intellij.idea.main"),
        ],
    ),
];

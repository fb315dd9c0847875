//! Which editor an agent detects.
//!
//! A file with both names in `ideInfo` decides it, whatever the editor. Without one, only a few terminals are
//! recognized by their variables; in any other the agent considers itself unsupported until it is restarted.

use alongside_core::dialect::McpAgent;
use serde::Serialize;

use crate::Environment;
use crate::document::Document;
use crate::process::IdeProcess;

/// The editor as an agent sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    pub name: String,
    pub display_name: String,
    pub source: IdentitySource,
}

/// How an agent detected the editor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum IdentitySource {
    /// From the chosen discovery file.
    File,
    /// From the terminal's variables.
    Terminal,
}

/// Environment variables that identify an editor's terminal.
struct TerminalRule {
    /// Any one of these is enough.
    variables: &'static [&'static str],
    /// The required value; `None` accepts any non-empty value.
    value: Option<&'static str>,
    name: &'static str,
    display_name: &'static str,
    /// Whether Qwen Code has this rule too.
    in_qwen: bool,
}

const fn sign(
    variables: &'static [&'static str],
    value: Option<&'static str>,
    name: &'static str,
    display_name: &'static str,
    in_qwen: bool,
) -> TerminalRule {
    TerminalRule {
        variables,
        value,
        name,
        display_name,
        in_qwen,
    }
}

/// In the agents' own order.
const TERMINAL_RULES: [TerminalRule; 13] = [
    sign(&["ANTIGRAVITY_CLI_ALIAS"], None, "antigravity", "Antigravity", false),
    sign(&["__COG_BASHRC_SOURCED"], None, "devin", "Devin", true),
    sign(&["REPLIT_USER"], None, "replit", "Replit", true),
    sign(&["CURSOR_TRACE_ID"], None, "cursor", "Cursor", true),
    sign(&["CODESPACES"], None, "codespaces", "GitHub Codespaces", true),
    sign(
        &["EDITOR_IN_CLOUD_SHELL", "CLOUD_SHELL"],
        None,
        "cloudshell",
        "Cloud Shell",
        true,
    ),
    sign(&["TERM_PRODUCT"], Some("Trae"), "trae", "Trae", true),
    sign(&["MONOSPACE_ENV"], None, "firebasestudio", "Firebase Studio", true),
    sign(&["POSITRON"], Some("1"), "positron", "Positron", false),
    sign(&["TERM_PROGRAM"], Some("sublime"), "sublimetext", "Sublime Text", false),
    sign(&["ZED_SESSION_ID"], None, "zed", "Zed", false),
    sign(&["TERM_PROGRAM"], Some("Zed"), "zed", "Zed", false),
    sign(&["XCODE_VERSION_ACTUAL"], None, "xcode", "XCode", false),
];

/// JetBrains editors by a substring of their command line, in Gemini CLI's order.
const JETBRAINS: [(&str, &str, &str); 9] = [
    ("idea", "intellijidea", "IntelliJ IDEA"),
    ("webstorm", "webstorm", "WebStorm"),
    ("pycharm", "pycharm", "PyCharm"),
    ("goland", "goland", "GoLand"),
    ("studio", "androidstudio", "Android Studio"),
    ("clion", "clion", "CLion"),
    ("rustrover", "rustrover", "RustRover"),
    ("datagrip", "datagrip", "DataGrip"),
    ("phpstorm", "phpstorm", "PhpStorm"),
];

/// The editor that an agent detects.
pub(super) fn detect(
    agent: McpAgent,
    environment: &Environment,
    process: &IdeProcess,
    document: Option<&Document>,
) -> Option<Identity> {
    if let Some((name, display_name)) = document.and_then(Document::ide_info) {
        let source = IdentitySource::File;
        return Some(Identity {
            name,
            display_name,
            source,
        });
    }
    let is_accepted = match agent {
        McpAgent::Gemini => gemini_accepts(environment),
        McpAgent::Qwen => environment.variable("TERM_PROGRAM") == Some("vscode"),
    };
    is_accepted.then(|| {
        let (name, display_name) = from_variables(agent, environment, process);
        Identity {
            name: name.to_owned(),
            display_name: display_name.to_owned(),
            source: IdentitySource::Terminal,
        }
    })
}

fn gemini_accepts(environment: &Environment) -> bool {
    let program = environment.variable("TERM_PROGRAM");
    matches!(program, Some("vscode" | "sublime" | "Zed"))
        || environment.variable("ZED_SESSION_ID").is_some()
        || environment.variable("XCODE_VERSION_ACTUAL").is_some()
        || is_jetbrains(environment)
}

fn from_variables(agent: McpAgent, environment: &Environment, process: &IdeProcess) -> (&'static str, &'static str) {
    let shows = |sign: &&TerminalRule| {
        let mut values = sign.variables.iter().filter_map(|name| environment.variable(name));
        values.any(|value| sign.value.is_none_or(|wanted| wanted == value))
    };
    let is_gemini = agent == McpAgent::Gemini;
    if let Some(sign) = TERMINAL_RULES
        .iter()
        .filter(|sign| is_gemini || sign.in_qwen)
        .find(shows)
    {
        return (sign.name, sign.display_name);
    }
    let command = process.command.to_lowercase();
    if is_gemini && is_jetbrains(environment) {
        let product = JETBRAINS.iter().find(|(part, ..)| command.contains(part));
        return product.map_or(("jetbrains", "JetBrains IDE"), |(_, name, display_name)| {
            (name, display_name)
        });
    }
    // An invisible command line means VS Code to Gemini CLI, and not VS Code to Qwen Code.
    if command.contains("code") || (is_gemini && command.is_empty()) {
        ("vscode", "VS Code")
    } else {
        ("vscodefork", "IDE")
    }
}

fn is_jetbrains(environment: &Environment) -> bool {
    let emulator = environment.variable("TERMINAL_EMULATOR");
    emulator.is_some_and(|emulator| emulator.to_lowercase().contains("jetbrains"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(agent: McpAgent, variables: &[(&str, &str)], command: &str) -> Option<String> {
        let environment = Environment::new("/home/ada", "/");
        let environment = variables.iter().fold(environment, |environment, (name, value)| {
            environment.with(*name, *value)
        });
        let process = IdeProcess {
            pid: 1,
            command: command.to_owned(),
        };
        detect(agent, &environment, &process, None).map(|identity| identity.display_name)
    }

    #[test]
    fn gemini_recognizes_six_kinds_of_terminals() {
        let gemini = |variables: &[(&str, &str)], command| named(McpAgent::Gemini, variables, command);
        assert_eq!(
            gemini(&[("TERM_PROGRAM", "vscode")], "/usr/bin/code").as_deref(),
            Some("VS Code")
        );
        assert_eq!(gemini(&[("TERM_PROGRAM", "vscode")], "").as_deref(), Some("VS Code"));
        assert_eq!(
            gemini(&[("TERM_PROGRAM", "vscode")], "windsurf").as_deref(),
            Some("IDE")
        );
        assert_eq!(
            gemini(&[("TERM_PROGRAM", "sublime")], "").as_deref(),
            Some("Sublime Text")
        );
        assert_eq!(gemini(&[("ZED_SESSION_ID", "1")], "").as_deref(), Some("Zed"));
        assert_eq!(gemini(&[("XCODE_VERSION_ACTUAL", "1")], "").as_deref(), Some("XCode"));
        let jetbrains = [("TERMINAL_EMULATOR", "JetBrains-JediTerm")];
        assert_eq!(gemini(&jetbrains, "/opt/clion/bin/clion").as_deref(), Some("CLion"));
        assert_eq!(gemini(&jetbrains, "").as_deref(), Some("JetBrains IDE"));
        for program in ["tmux", "Apple_Terminal", ""] {
            assert_eq!(
                gemini(&[("TERM_PROGRAM", program), ("CURSOR_TRACE_ID", "1")], "code"),
                None
            );
        }
    }

    #[test]
    fn qwen_recognizes_one_kind_of_terminal() {
        let qwen = |variables: &[(&str, &str)], command| named(McpAgent::Qwen, variables, command);
        let vscode = ("TERM_PROGRAM", "vscode");
        assert_eq!(qwen(&[vscode], "code").as_deref(), Some("VS Code"));
        assert_eq!(qwen(&[vscode], "").as_deref(), Some("IDE"));
        assert_eq!(qwen(&[vscode, ("CURSOR_TRACE_ID", "1")], "").as_deref(), Some("Cursor"));
        assert_eq!(qwen(&[vscode, ("POSITRON", "1")], "code").as_deref(), Some("VS Code"));
        assert_eq!(qwen(&[("ZED_SESSION_ID", "1")], ""), None);
    }
}

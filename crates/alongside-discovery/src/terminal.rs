//! The announcement as environment variables, for the editor's terminals and for `alongside run`.
//!
//! They select one of several companions, and work where no file can be written.

use std::path::Path;

use alongside_core::dialect::DIALECTS;

use crate::{Announcement, Environment};

/// Any one of these variables makes Gemini CLI connect to this machine although it runs in a container.
pub(crate) const DIALS_HERE_IN_A_CONTAINER: [&str; 3] = [
    "SSH_CONNECTION",
    "REMOTE_CONTAINERS",
    "VSCODE_REMOTE_CONTAINERS_SESSION",
];

/// Changes of an agent's environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunEnvironment {
    pub set: Vec<(String, String)>,
    pub remove: Vec<&'static str>,
}

/// The environment for one agent that `alongside run` starts: that of a terminal, and what only this agent needs. `program` is its
/// name or path.
pub fn run_environment(announcement: &Announcement, environment: &Environment, program: &Path) -> RunEnvironment {
    let mut set = terminal_environment(announcement, environment);
    let name = program.file_stem().and_then(|name| name.to_str());
    let Some(dialect) = DIALECTS.iter().find(|dialect| Some(dialect.command) == name) else {
        return RunEnvironment {
            set,
            remove: Vec::new(),
        };
    };
    let port = dialect.run.port.map(|name| (name, announcement.port.to_string()));
    let fixed = dialect.run.set.iter().map(|(name, value)| (*name, (*value).to_owned()));
    set.extend(
        port.into_iter()
            .chain(fixed)
            .map(|(name, value)| (name.to_owned(), value)),
    );
    RunEnvironment {
        set,
        remove: dialect.run.remove.to_vec(),
    }
}

/// The workspace variable also lets Gemini CLI read all workspace folders. That is intended: the user has them open.
pub fn terminal_environment(announcement: &Announcement, environment: &Environment) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    for agent in DIALECTS.iter().filter_map(|dialect| dialect.search) {
        let names = agent.variables();
        // Skipped folders were reported when the files were written.
        let (workspace, _) = announcement.workspace_path(agent, environment.platform);
        let mut set = |name: &str, value: String| variables.push((name.to_owned(), value));
        set(names.port, announcement.port.to_string());
        set(names.workspace, workspace);
        if let Some(name) = names.token {
            set(name, announcement.token.reveal().to_owned());
        }
        if let Some(name) = names.pid {
            set(name, announcement.pid.to_string());
        }
    }
    if dials_the_containers_host(environment) {
        variables.push(("REMOTE_CONTAINERS".to_owned(), "1".to_owned()));
    }
    variables
}

/// Whether Gemini CLI would look for the companion on the container's host.
pub fn dials_the_containers_host(environment: &Environment) -> bool {
    let is_told_otherwise = DIALS_HERE_IN_A_CONTAINER
        .iter()
        .any(|name| environment.variable(name).is_some());
    environment.in_container && !is_told_otherwise
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Platform;
    use crate::announcement::tests::announcement;

    fn variables(environment: &Environment) -> Vec<(String, String)> {
        terminal_environment(&announcement(&[Path::new("/a"), Path::new("/b")]), environment)
    }

    /// Difference 4: Qwen Code checks the port variable first, not only as a tie-breaker; it is always exported.
    /// Difference 6: Gemini CLI still reads the workspace variable, though the specification no longer has it.
    /// Difference 7: Gemini CLI reads the token and the PID from variables that no specification mentions.
    #[test]
    fn all_variables_read_by_agents_are_set() {
        let token = alongside_core::Secret::from_bytes([7; 32]);
        let expected = [
            ("GEMINI_CLI_IDE_SERVER_PORT", "4321"),
            ("GEMINI_CLI_IDE_WORKSPACE_PATH", "/a:/b"),
            ("GEMINI_CLI_IDE_AUTH_TOKEN", token.reveal()),
            ("GEMINI_CLI_IDE_PID", &std::process::id().to_string()),
            ("QWEN_CODE_IDE_SERVER_PORT", "4321"),
            ("QWEN_CODE_IDE_WORKSPACE_PATH", "/a:/b"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(variables(&Environment::new("/home/ada", "/")), expected);
    }

    /// Both agents split the variable as they split `workspacePath` in a file.
    #[test]
    fn variables_have_all_names_of_a_folder_on_windows_only() {
        let mut announcement = announcement(&[Path::new("/server/share/proj")]);
        announcement.aliases = vec!["/z/proj".into()];
        for (platform, folders) in [
            (Platform::Windows, "/server/share/proj;/z/proj"),
            (Platform::Unix, "/server/share/proj"),
        ] {
            let environment = Environment {
                platform,
                ..Environment::new("/home/ada", "/")
            };
            let variables = terminal_environment(&announcement, &environment);
            for name in ["GEMINI_CLI_IDE_WORKSPACE_PATH", "QWEN_CODE_IDE_WORKSPACE_PATH"] {
                let variable = (name.to_owned(), folders.to_owned());
                assert!(variables.contains(&variable), "{variables:?}");
            }
        }
    }

    #[test]
    fn gemini_in_container_connects_to_this_machine() {
        let container = Environment {
            in_container: true,
            ..Environment::new("/home/ada", "/")
        };
        let is_set = |environment: &Environment| {
            let variable = ("REMOTE_CONTAINERS".to_owned(), "1".to_owned());
            variables(environment).contains(&variable)
        };
        assert!(is_set(&container));
        assert!(is_set(&container.clone().with("SSH_CONNECTION", "")));
        for name in DIALS_HERE_IN_A_CONTAINER {
            assert!(!is_set(&container.clone().with(name, "x")), "{name}");
        }
    }

    /// C4: with the port in its environment, opencode connects without the token; Claude Code needs it.
    #[test]
    fn port_of_claude_is_set_for_claude_only() {
        let environment = Environment::new("/home/ada", "/");
        let announcement = announcement(&[Path::new("/a")]);
        let port = ("CLAUDE_CODE_SSE_PORT".to_owned(), "4321".to_owned());
        let run = |program: &str| run_environment(&announcement, &environment, Path::new(program));
        for program in ["claude", "/usr/bin/claude", "claude.exe"] {
            let changes = run(program);
            assert!(changes.set.contains(&port), "{program}");
            assert!(changes.remove.is_empty());
        }
        let opencode = run("opencode");
        assert!(!opencode.set.contains(&port));
        assert_eq!(opencode.remove, ["CLAUDE_CODE_SSE_PORT", "OPENCODE_EDITOR_SSE_PORT"]);
        assert_eq!(run("bash").set, terminal_environment(&announcement, &environment));
        assert!(!run("bash").set.contains(&port), "opencode may be started there");
    }
}

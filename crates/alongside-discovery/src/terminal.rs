//! The announcement as environment variables, for the editor's terminals and for `alongside run`.
//!
//! They select one of several companions, and work where no file can be written.

use alongside_core::dialect::DIALECTS;

use crate::announcement::workspace_path;
use crate::{Announcement, Environment};

/// Any one of these variables makes Gemini CLI connect to this machine although it runs in a container.
pub(crate) const DIALS_HERE_IN_A_CONTAINER: [&str; 3] = [
    "SSH_CONNECTION",
    "REMOTE_CONTAINERS",
    "VSCODE_REMOTE_CONTAINERS_SESSION",
];

/// The workspace variable also lets Gemini CLI read all workspace folders. That is intended: the user has them open.
pub fn terminal_environment(announcement: &Announcement, environment: &Environment) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    for dialect in &DIALECTS {
        let names = &dialect.environment;
        // Skipped folders were reported when the files were written.
        let (workspace, _) = workspace_path(&announcement.workspace, dialect.kind, environment.platform);
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
    use std::path::Path;

    use super::*;
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
}

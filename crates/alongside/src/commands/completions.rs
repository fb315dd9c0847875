//! `alongside completions`: a shell's completion script, generated from the command line's definition.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;
use serde_json::json;

use crate::command_line::{CommandLine, Common};

pub(crate) fn run(common: &Common, shell: Shell) -> ExitCode {
    let script = script(shell);
    let value = json!({ "shell": shell.to_string(), "script": script });
    // The script has only our own text.
    common.output().answer_in_colors(&value, || script);
    ExitCode::SUCCESS
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "alongside", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn script_of_every_shell_has_every_command() {
        for shell in Shell::value_variants() {
            let script = script(*shell);
            for command in CommandLine::command().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
        }
    }
}

//! The MCP server with the editor's tools, in the settings of an agent that shows its model no other tools of a companion.

use std::path::Path;

use alongside_core::HookAgent;
use alongside_discovery::lookup::program_in_command;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp};

use super::definition::object;
use super::settings::parse;
use crate::program::become_program;

/// What an installation does about the editor's tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tools {
    Register,
    /// Only update them if they are registered.
    Keep,
}

const SERVERS: &str = "mcpServers";
const NAME: &str = "alongside";
/// In every text with our server.
pub(super) const COMMAND: &str = "mcp-stdio";
const ARGUMENTS: &str = "mcp-stdio --tools";
/// Finds the program on the PATH if it was moved. Agents have hooks, and with them the tools, only where there is a POSIX shell.
const SHELL: &str = "sh";

/// Whether the agent needs our server, and has settings for it.
pub(super) fn are_supported(agent: HookAgent) -> bool {
    matches!(agent, HookAgent::Gemini | HookAgent::Qwen)
}

/// Why the tools are not registered with the other agents.
pub(super) fn refusal(agent: HookAgent) -> Option<String> {
    let (name, id) = (agent.display_name(), agent.id());
    match agent {
        HookAgent::Gemini | HookAgent::Qwen => None,
        HookAgent::Claude | HookAgent::Copilot => Some(format!(
            "{name} has the editor's tools when it is connected; run `alongside install {id}` without `--tools`"
        )),
        HookAgent::Codex | HookAgent::Opencode => Some(format!(
            "cannot register the editor's tools with {name}; add `alongside mcp-stdio --tools` to its MCP servers yourself, and run `alongside install {id}` without `--tools`"
        )),
    }
}

pub(super) fn are_registered(text: &str) -> bool {
    parse(text).is_ok_and(|(_, settings)| matches!(Entry::of(&settings), Entry::Own { .. }))
}

/// Whether this changed the settings, or why it cannot.
pub(super) fn register(settings: &CstObject, agent: HookAgent, program: &Path, tools: Tools) -> Result<bool, String> {
    // Without variables, which the agents would replace.
    let script = become_program(program, ARGUMENTS);
    match (Entry::of(settings), tools) {
        (Entry::Own { server, .. }, _) if script_of(&server).as_deref() == Some(&script) => Ok(false),
        (Entry::Own { server, .. }, _) => {
            for (name, value) in start(&script) {
                if let Some(property) = server.get(name) {
                    property.set_value(value);
                }
            }
            Ok(true)
        }
        (Entry::Absent | Entry::Foreign(_), Tools::Keep) => Ok(false),
        (Entry::Foreign(reason), Tools::Register) => Err(reason.to_owned()),
        (Entry::Absent, Tools::Register) => {
            let server = server(agent, &script);
            settings.object_value_or_set(SERVERS).append(NAME, server);
            Ok(true)
        }
    }
}

fn start(script: &str) -> [(&'static str, CstInputValue); 2] {
    let arguments = CstInputValue::Array(vec!["-c".into(), script.into()]);
    [("command", SHELL.into()), ("args", arguments)]
}

fn server(agent: HookAgent, script: &str) -> CstInputValue {
    let [command, arguments] = start(script);
    match agent {
        // Without this, its model would have to search for the tools first.
        HookAgent::Qwen => object([command, arguments, ("alwaysLoadTools", true.into())]),
        _ => object([command, arguments]),
    }
}

/// Whether this changed the settings.
pub(super) fn remove(settings: &CstObject) -> bool {
    let Entry::Own { property, .. } = Entry::of(settings) else {
        return false;
    };
    property.remove();
    let servers = settings.get(SERVERS);
    let is_empty = |servers: &CstObject| servers.properties().is_empty();
    if let Some(servers) = servers.filter(|servers| servers.object_value().as_ref().is_some_and(is_empty)) {
        servers.remove();
    }
    true
}

/// The entry with our name.
enum Entry {
    Absent,
    /// The user may have added to the server's settings.
    Own {
        property: CstObjectProp,
        server: CstObject,
    },
    /// With the reason why it is left alone.
    Foreign(&'static str),
}

impl Entry {
    fn of(settings: &CstObject) -> Self {
        let Some(servers) = settings.get(SERVERS) else {
            return Self::Absent;
        };
        let Some(servers) = servers.object_value() else {
            return Self::Foreign("its `mcpServers` is not an object");
        };
        let Some(property) = servers.get(NAME) else {
            return Self::Absent;
        };
        match property.object_value() {
            Some(server) if is_own(&server) => Self::Own { property, server },
            _ => Self::Foreign(
                "its `mcpServers` has another server named `alongside`; rename or remove that one and try again",
            ),
        }
    }
}

/// Another command was typed by the user.
fn is_own(server: &CstObject) -> bool {
    script_of(server).is_some_and(|script| {
        program_in_command(&script).is_some_and(|program| script == become_program(&program, ARGUMENTS))
    })
}

/// What the shell runs, if a shell is the server.
fn script_of(server: &CstObject) -> Option<String> {
    let arguments: Vec<Option<String>> = server.array_value("args")?.elements().iter().map(text).collect();
    match arguments.as_slice() {
        [Some(option), Some(script)] if option == "-c" => {
            string(server, "command").filter(|command| command == SHELL)?;
            Some(script.clone())
        }
        _ => None,
    }
}

fn string(object: &CstObject, name: &str) -> Option<String> {
    text(&object.get(name)?.value()?)
}

fn text(node: &CstNode) -> Option<String> {
    node.as_string_lit()?.decoded_value().ok()
}

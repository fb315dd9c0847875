//! What is installed for each agent, as data.
//!
//! Timeouts are as long as they can be, because an agent whose hook times out writes. Gemini CLI and Qwen Code count in milliseconds, and
//! treat more than fits into 31 bits as no time at all.

use std::path::Path;

use alongside_core::HookAgent;
use jsonc_parser::cst::CstInputValue;

use crate::program::run_if_found;

const DAY_SECONDS: u32 = 86_400;
const DAY_MILLISECONDS: u32 = DAY_SECONDS * 1000;
const PROMPT_SECONDS: u32 = 5;

/// An entry of a settings file.
pub(super) struct Hook {
    pub(super) event: &'static str,
    pub(super) entry: CstInputValue,
}

pub(super) fn hooks(agent: HookAgent, program: &Path) -> Vec<Hook> {
    let (review, prompt) = (review_command(agent, program), prompt_command(agent, program));
    match agent {
        HookAgent::Claude => vec![
            Hook {
                event: "PreToolUse",
                entry: group(
                    Some("Edit|Write|MultiEdit|NotebookEdit"),
                    timed(None, &review, DAY_SECONDS, Some(WAITING)),
                ),
            },
            Hook {
                event: "UserPromptSubmit",
                entry: group(None, timed(None, &prompt, PROMPT_SECONDS, None)),
            },
        ],
        HookAgent::Codex => vec![
            Hook {
                event: "PreToolUse",
                entry: group(Some("apply_patch"), timed(None, &review, DAY_SECONDS, Some(WAITING))),
            },
            Hook {
                event: "UserPromptSubmit",
                entry: group(None, timed(None, &prompt, PROMPT_SECONDS, None)),
            },
        ],
        HookAgent::Gemini => vec![
            Hook {
                event: "BeforeTool",
                entry: group(
                    Some("write_file|replace"),
                    timed(Some("alongside"), &review, DAY_MILLISECONDS, None),
                ),
            },
            Hook {
                event: "BeforeAgent",
                entry: group(
                    None,
                    timed(Some("alongside-context"), &prompt, PROMPT_SECONDS * 1000, None),
                ),
            },
        ],
        HookAgent::Qwen => {
            let tools = Some("write_file|edit|notebook_edit");
            let reviewed = || {
                group(
                    tools,
                    timed(Some("alongside"), &review, DAY_MILLISECONDS, Some(WAITING)),
                )
            };
            vec![
                Hook {
                    event: "PermissionRequest",
                    entry: reviewed(),
                },
                Hook {
                    event: "PreToolUse",
                    entry: reviewed(),
                },
                Hook {
                    event: "UserPromptSubmit",
                    entry: group(
                        None,
                        timed(Some("alongside-context"), &prompt, PROMPT_SECONDS * 1000, None),
                    ),
                },
            ]
        }
        HookAgent::Copilot => vec![Hook {
            event: "preToolUse",
            entry: object([
                ("type", "command".into()),
                ("matcher", "edit|create".into()),
                ("bash", review.into()),
                ("timeoutSec", DAY_SECONDS.into()),
            ]),
        }],
        // A plugin.
        HookAgent::Opencode => Vec::new(),
    }
}

const WAITING: &str = "waiting for your review";

pub(super) fn object<const COUNT: usize>(properties: [(&str, CstInputValue); COUNT]) -> CstInputValue {
    let properties = properties.into_iter().map(|(name, value)| (name.to_owned(), value));
    CstInputValue::Object(properties.collect())
}

fn group(matcher: Option<&str>, hook: CstInputValue) -> CstInputValue {
    let hooks = CstInputValue::Array(vec![hook]);
    match matcher {
        Some(matcher) => object([("matcher", matcher.into()), ("hooks", hooks)]),
        None => object([("hooks", hooks)]),
    }
}

fn timed(name: Option<&str>, command: &str, timeout: u32, status: Option<&str>) -> CstInputValue {
    let name = name.map(|name| ("name".to_owned(), name.into()));
    let status = status.map(|status| ("statusMessage".to_owned(), status.into()));
    let properties = [
        ("type".to_owned(), "command".into()),
        ("command".to_owned(), command.into()),
        ("timeout".to_owned(), timeout.into()),
    ];
    CstInputValue::Object(name.into_iter().chain(properties).chain(status).collect())
}

/// What makes an entry ours.
pub(super) fn marker(agent: HookAgent) -> String {
    format!("' hook {}", agent.id())
}

/// If this program is gone, also from the PATH, the agent works as without a hook. If it fails or is killed, the change is denied: only exit code 2 with a text does
/// that in every agent.
pub(super) fn review_command(agent: HookAgent, program: &Path) -> String {
    let hook = prompt_command(agent, program);
    format!("{hook} || {{ echo 'alongside: the review failed, nothing was written' >&2; exit 2; }}")
}

fn prompt_command(agent: HookAgent, program: &Path) -> String {
    run_if_found(program, &format!("hook {}", agent.id()))
}

/// What the user must know or do.
pub(super) fn remarks(agent: HookAgent) -> &'static [&'static str] {
    match agent {
        HookAgent::Claude => &[
            "Running Claude Code sessions use the hook at once. To connect one to the companion as well, type `/ide` in it; alongside never changes ~/.claude.json.",
        ],
        HookAgent::Codex => &[
            "When Codex starts, it shows \"Hooks need review\": choose to trust the hook, or it is not run.",
            "Run Codex with `--sandbox workspace-write`; in its read-only mode it asks once more after your review.",
        ],
        HookAgent::Copilot => &["Restart Copilot CLI to use the hook."],
        HookAgent::Gemini => &[
            "Restart Gemini CLI to use the hook. In its default mode it also asks in the terminal; with `--approval-mode auto_edit`, your review is the only question.",
        ],
        HookAgent::Opencode => &[
            "Restart opencode to use the plugin. Its first start with a plugin can take a minute, because it downloads its plugin library.",
        ],
        HookAgent::Qwen => &["Restart Qwen Code to use the hook."],
    }
}

const PLUGIN: &str = include_str!("opencode.js");

/// The plugin for opencode.
pub(super) fn plugin(program: &Path) -> String {
    let program = serde_json::Value::from(program.to_string_lossy()).to_string();
    PLUGIN.replace("\"@PROGRAM@\"", &program)
}

/// Whether a file is that plugin, of any version.
pub(super) fn is_plugin(text: &str) -> bool {
    let first = PLUGIN.lines().next().unwrap_or_default();
    text.lines().next() == Some(first)
}

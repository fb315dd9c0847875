//! What is known about the agents that speak ACP: one row for each.
//!
//! ACP leaves open who writes a file and when an agent asks. These are the measured facts that the protocol does not announce.

use std::path::Path;

use alongside_protocol::chat::{Modes, OptionKind, PermissionOption};
use serde_json::{Value, json};

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct KnownAgent {
    /// What users type.
    pub id: &'static str,
    pub name: &'static str,
    /// Its command lines, the preferred one first.
    pub commands: &'static [&'static [&'static str]],
    pub writes: Writes,
    /// What makes it ask before it edits, where it would not by default.
    asks: Option<JsonVariable>,
    /// The mode for a chat in which every change is reviewed.
    review_mode: Option<ModeSwitch>,
    /// Its options by id, in case it does not tell their kinds.
    allow_once: &'static str,
    reject_once: &'static str,
}

/// Who writes the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// The agent asks us to, so an edited text can be written in place of its own.
    ThroughClient,
    /// The agent, once it is allowed to. All we can do is allow or refuse.
    Itself,
}

/// An environment variable with a JSON object, of which one member is set.
#[derive(Debug, PartialEq, Eq)]
struct JsonVariable {
    name: &'static str,
    member: &'static str,
    value: &'static str,
}

/// Mode ids, without case, hyphens and underscores, because versions differ in them.
#[derive(Debug, PartialEq, Eq)]
struct ModeSwitch {
    from: &'static str,
    to: &'static str,
}

/// In display order.
pub const KNOWN_AGENTS: &[KnownAgent] = &[
    KnownAgent {
        id: "qwen",
        name: "Qwen Code",
        commands: &[&["qwen", "--acp"]],
        writes: Writes::ThroughClient,
        asks: None,
        // Its writes are reviewed, so it need not ask for permission to edit as well.
        review_mode: Some(ModeSwitch {
            from: "default",
            to: "autoedit",
        }),
        allow_once: "proceed_once",
        reject_once: "cancel",
    },
    KnownAgent {
        id: "gemini",
        name: "Gemini CLI",
        // Older versions call the flag `--experimental-acp`.
        commands: &[&["gemini", "--acp"]],
        writes: Writes::ThroughClient,
        asks: None,
        review_mode: Some(ModeSwitch {
            from: "default",
            to: "autoedit",
        }),
        allow_once: "proceed_once",
        reject_once: "cancel",
    },
    KnownAgent {
        id: "claude",
        name: "Claude Code",
        // The second one is its former name.
        commands: &[&["claude-agent-acp"], &["claude-code-acp"]],
        writes: Writes::Itself,
        asks: None,
        review_mode: None,
        allow_once: "allow",
        reject_once: "reject",
    },
    KnownAgent {
        id: "codex",
        name: "Codex",
        commands: &[&["codex-acp"]],
        writes: Writes::Itself,
        asks: None,
        // In `auto` it does not ask before it changes files of the workspace.
        review_mode: Some(ModeSwitch {
            from: "auto",
            to: "readonly",
        }),
        allow_once: "approved",
        reject_once: "abort",
    },
    KnownAgent {
        id: "copilot",
        name: "GitHub Copilot CLI",
        commands: &[&["copilot", "--acp"]],
        writes: Writes::Itself,
        asks: None,
        review_mode: None,
        allow_once: "allow_once",
        reject_once: "reject_once",
    },
    KnownAgent {
        id: "hermes",
        name: "Hermes",
        commands: &[&["hermes-acp"]],
        writes: Writes::Itself,
        asks: None,
        review_mode: None,
        allow_once: "allow_once",
        reject_once: "deny",
    },
    KnownAgent {
        id: "opencode",
        name: "opencode",
        commands: &[&["opencode", "acp"]],
        // It also sends `fs/write_text_file`, but ignores the result and writes its own text.
        writes: Writes::Itself,
        asks: Some(JsonVariable {
            name: "OPENCODE_PERMISSION",
            member: "edit",
            value: "ask",
        }),
        review_mode: None,
        allow_once: "once",
        reject_once: "reject",
    },
];

impl KnownAgent {
    /// The agent with this id, or the one that this program is.
    pub fn find(id: &str, program: &Path) -> Option<&'static Self> {
        let stem = program.file_stem().unwrap_or_default();
        let runs = |agent: &&Self| agent.commands.iter().any(|command| stem == command[0]);
        let mut agents = KNOWN_AGENTS.iter();
        agents
            .find(|agent| agent.id == id)
            .or_else(|| KNOWN_AGENTS.iter().find(runs))
    }

    /// The variable that makes it ask, added to what the user has set there.
    pub(super) fn environment(&self, inherited: impl Fn(&str) -> Option<String>) -> Option<(String, String)> {
        let JsonVariable { name, member, value } = self.asks.as_ref()?;
        let set = inherited(name).and_then(|text| serde_json::from_str(&text).ok());
        let mut object = set.filter(Value::is_object).unwrap_or_else(|| json!({}));
        object[*member] = json!(value);
        Some(((*name).to_owned(), object.to_string()))
    }

    /// The mode to switch to when every change is reviewed. A mode that the user selected stays.
    pub fn review_mode(&self, modes: &Modes) -> Option<String> {
        let plain = |id: &str| id.to_lowercase().replace(['-', '_'], "");
        let switch = self.review_mode.as_ref()?;
        if plain(modes.current.as_deref()?) != switch.from {
            return None;
        }
        let mut available = modes.available.iter();
        available
            .find(|mode| plain(&mode.id) == switch.to)
            .map(|mode| mode.id.clone())
    }
}

/// The options to allow and to refuse just this request; never one that allows more.
pub(super) fn once_options<'a>(
    known: Option<&KnownAgent>,
    options: &'a [PermissionOption],
) -> Option<(&'a PermissionOption, &'a PermissionOption)> {
    let find = |kind: &OptionKind, id: Option<&str>| {
        let by_kind = options.iter().find(|option| option.kind == *kind);
        by_kind.or_else(|| {
            let has_id = |option: &&PermissionOption| Some(option.option_id.as_str()) == id;
            let mut unnamed = options
                .iter()
                .filter(|option| matches!(option.kind, OptionKind::Other(_)));
            unnamed.find(has_id)
        })
    };
    Some((
        find(&OptionKind::AllowOnce, known.map(|known| known.allow_once))?,
        find(&OptionKind::RejectOnce, known.map(|known| known.reject_once))?,
    ))
}

#[cfg(test)]
mod tests {
    use alongside_protocol::chat::ModeInfo;

    use super::*;

    fn known(id: &str) -> &'static KnownAgent {
        KnownAgent::find(id, Path::new("")).unwrap()
    }

    #[test]
    fn agent_is_found_by_id_or_program() {
        let find = |id: &str, program: &str| KnownAgent::find(id, Path::new(program)).map(|agent| agent.id);
        assert_eq!(find("codex", "node"), Some("codex"));
        assert_eq!(find("mine", "/opt/bin/codex-acp"), Some("codex"));
        assert_eq!(find("mine", "claude-code-acp.cmd"), Some("claude"));
        assert_eq!(find("mine", "my-agent"), None);
    }

    #[test]
    fn variable_keeps_what_the_user_has_set() {
        let environment = |set: Option<&str>| {
            let set = set.map(str::to_owned);
            known("opencode").environment(move |_| set.clone())
        };
        let variable = |value: &str| Some(("OPENCODE_PERMISSION".to_owned(), value.to_owned()));
        assert_eq!(environment(None), variable(r#"{"edit":"ask"}"#));
        assert_eq!(environment(Some("nonsense")), variable(r#"{"edit":"ask"}"#));
        let merged = environment(Some(r#"{"bash":"deny","edit":"allow"}"#)).unwrap().1;
        let merged: Value = serde_json::from_str(&merged).unwrap();
        assert_eq!(merged, json!({"bash": "deny", "edit": "ask"}));
        assert_eq!(known("qwen").environment(|_| None), None);
    }

    #[test]
    fn default_mode_switches_to_the_one_for_reviews() {
        let switched = |id: &str, current: &str, available: &[&str]| {
            let mode = |id: &&str| ModeInfo {
                id: (*id).to_owned(),
                name: (*id).to_owned(),
                description: None,
            };
            known(id).review_mode(&Modes {
                current: Some(current.to_owned()),
                available: available.iter().map(mode).collect(),
            })
        };
        let qwen = ["plan", "default", "auto-edit", "yolo"];
        assert_eq!(switched("qwen", "default", &qwen).as_deref(), Some("auto-edit"));
        assert_eq!(
            switched("gemini", "default", &["default", "autoEdit"]).as_deref(),
            Some("autoEdit")
        );
        assert_eq!(switched("qwen", "plan", &qwen), None, "the user selected it");
        assert_eq!(switched("qwen", "default", &["default"]), None);
        let codex = ["read-only", "auto", "full-access"];
        assert_eq!(switched("codex", "auto", &codex).as_deref(), Some("read-only"));
        assert_eq!(switched("codex", "full-access", &codex), None);
        let claude = ["default", "acceptEdits", "plan", "auto-edit"];
        assert_eq!(switched("claude", "default", &claude), None, "it writes files itself");
    }

    #[test]
    fn option_for_this_request_only_is_used() {
        let option = |id: &str, kind: &str| PermissionOption {
            option_id: id.to_owned(),
            name: id.to_owned(),
            kind: OptionKind::from(kind),
        };
        let ids = |known: Option<&KnownAgent>, options: &[PermissionOption]| {
            let (allow, reject) = once_options(known, options)?;
            Some((allow.option_id.clone(), reject.option_id.clone()))
        };
        let pair = |allow: &str, reject: &str| Some((allow.to_owned(), reject.to_owned()));
        let claude = [
            option("allow_always", "allow_always"),
            option("allow", "allow_once"),
            option("reject", "reject_once"),
        ];
        assert_eq!(ids(None, &claude), pair("allow", "reject"));
        let codex = [
            option("approved", ""),
            option("approved-for-session", ""),
            option("abort", ""),
        ];
        assert_eq!(ids(Some(known("codex")), &codex), pair("approved", "abort"));
        assert_eq!(ids(None, &codex), None);
        assert_eq!(
            ids(Some(known("claude")), &claude[..1]),
            None,
            "always is more than once"
        );
    }
}

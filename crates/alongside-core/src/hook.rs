//! The agents whose hooks start `alongside hook`.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HookAgent {
    Claude,
    Codex,
    Copilot,
    Gemini,
    Opencode,
    Qwen,
}

impl HookAgent {
    pub const ALL: [Self; 6] = [
        Self::Claude,
        Self::Codex,
        Self::Copilot,
        Self::Gemini,
        Self::Opencode,
        Self::Qwen,
    ];

    /// The word for it on the command line, and the command that starts it.
    pub fn id(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Copilot => "copilot",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Qwen => "qwen",
        }
    }

    pub fn display_name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Copilot => "Copilot CLI",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "opencode",
            Self::Qwen => "Qwen Code",
        }
    }

    /// Whether a connected agent with this name is of this kind.
    pub fn is_called(self, name: &str) -> bool {
        name == self.display_name()
    }

    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.id() == id)
    }
}

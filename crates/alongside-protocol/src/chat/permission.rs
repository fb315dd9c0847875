//! Permission requests, questions among them, and the user's decisions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ToolCall;

/// The answers to questions, by [`Question::answer_key`].
pub type Answers = BTreeMap<String, String>;

/// Something that an agent may not do, or cannot know, without the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest {
    pub request_id: String,
    pub prompt_id: Option<String>,
    pub tool_call: ToolCall,
    /// The only valid decisions.
    pub options: Vec<PermissionOption>,
    /// Empty for a plain permission request.
    pub questions: Vec<Question>,
}

impl PermissionRequest {
    pub fn is_question(&self) -> bool {
        !self.questions.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionOption {
    pub option_id: String,
    /// The label of the option.
    pub name: String,
    pub kind: OptionKind,
}

/// What an option means. Agents may send kinds that ACP does not define.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum OptionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    Other(String),
}

impl OptionKind {
    /// ACP's name for it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::AllowOnce => "allow_once",
            Self::AllowAlways => "allow_always",
            Self::RejectOnce => "reject_once",
            Self::RejectAlways => "reject_always",
            Self::Other(other) => other,
        }
    }
}

impl From<&str> for OptionKind {
    fn from(name: &str) -> Self {
        match name {
            "allow_once" => Self::AllowOnce,
            "allow_always" => Self::AllowAlways,
            "reject_once" => Self::RejectOnce,
            "reject_always" => Self::RejectAlways,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl From<String> for OptionKind {
    fn from(name: String) -> Self {
        Self::from(name.as_str())
    }
}

impl From<OptionKind> for String {
    fn from(kind: OptionKind) -> Self {
        kind.as_str().to_owned()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// The key of its answer in [`Answers`].
    pub answer_key: String,
    pub question: String,
    /// A short heading.
    pub header: String,
    /// Suggested answers; the user may write a different one.
    pub choices: Vec<QuestionChoice>,
    /// Whether several choices may be selected.
    pub multiple: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionChoice {
    pub label: String,
    pub description: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "decision", rename_all_fields = "camelCase")]
pub enum PermissionDecision {
    Select {
        option_id: String,
        /// Only for a question.
        #[serde(default)]
        answers: Answers,
    },
    Cancel,
}

impl PermissionDecision {
    pub fn select(option_id: impl Into<String>) -> Self {
        Self::Select {
            option_id: option_id.into(),
            answers: Answers::new(),
        }
    }

    /// A failure and no preference both cancel: a "yes" is never guessed.
    pub fn from_preference<E>(preferred: Result<Option<&str>, E>) -> Self {
        preferred.ok().flatten().map_or(Self::Cancel, Self::select)
    }
}

//! Requests for permission, questions among them, and what may be answered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use super::{ToolCall, ToolCallPatch, ToolCards, list_of, owned_text, text_of};

/// The answers to questions, by [`Question::answer_key`].
pub type Answers = BTreeMap<String, String>;

/// Something that an agent may not do, or cannot know, without a person.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest {
    /// The identity of the request, for the answer.
    pub request_id: String,
    /// The turn that it belongs to.
    pub prompt_id: Option<String>,
    /// What the agent wants to do.
    pub tool_call: ToolCall,
    /// What may be answered. Nothing else may.
    pub options: Vec<PermissionOption>,
    /// What the agent asks, if it asks; otherwise it is a plain request.
    pub questions: Vec<Question>,
}

/// One possible answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionOption {
    /// What goes back to the agent.
    pub option_id: String,
    /// What a person reads.
    pub name: String,
    /// What it means.
    pub kind: OptionKind,
}

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// Yes, this time.
    AllowOnce,
    /// Yes, from now on.
    AllowAlways,
    /// No, this time.
    RejectOnce,
    /// No, from now on.
    RejectAlways,
    /// Something that this program does not know.
    Other(String),
}

/// One question of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// The key of its answer.
    pub answer_key: String,
    /// The question.
    pub question: String,
    /// A word for a heading.
    pub header: String,
    /// What may be chosen; a person may also write something else.
    pub choices: Vec<QuestionChoice>,
    /// Whether several may be chosen.
    pub multiple: bool,
}

/// Something that may be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QuestionChoice {
    /// What is chosen.
    pub label: String,
    /// What that means.
    pub description: String,
}

/// What a person decided.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", tag = "decision", rename_all_fields = "camelCase")]
pub enum PermissionDecision {
    /// One of the offered options.
    Select {
        /// Its [`PermissionOption::option_id`].
        option_id: String,
        /// The answers, if it was a question.
        #[serde(default)]
        answers: Answers,
    },
    /// None of them.
    Cancel,
}

/// What is said to the agent, after a decision has been checked against the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vote {
    /// An offered option that is not a plain "no".
    Selected {
        /// Its id.
        option_id: String,
        /// The answers, if it was a question.
        answers: Answers,
    },
    /// An offered option that says "no, this time". The daemon takes it as cancelled.
    Rejected {
        /// Its id.
        option_id: String,
    },
    /// Nothing was chosen, or something that was never offered.
    Cancelled,
}

impl PermissionDecision {
    /// One of the offered options.
    pub fn select(option_id: impl Into<String>) -> Self {
        Self::Select {
            option_id: option_id.into(),
            answers: Answers::new(),
        }
    }

    /// The decision of something that may fail or have no preference: both mean "no". Nobody guesses a "yes".
    pub fn from_preference<E>(preferred: Result<Option<&str>, E>) -> Self {
        preferred.ok().flatten().map_or(Self::Cancel, Self::select)
    }
}

impl PermissionRequest {
    /// Reads a request with its `toolCall` and `options`, as the daemon and ACP agents send it.
    ///
    /// `None` if something is missing that it takes to answer.
    pub fn read(request_id: &str, prompt_id: Option<&str>, data: &Value) -> Option<Self> {
        let raw_call = data.get("toolCall").filter(|call| call.is_object())?;
        let options = data.get("options")?.as_array()?;
        // A call without an id can be asked about all the same; it just has no card.
        let patch = ToolCallPatch::read(raw_call).or_else(|| {
            let mut named = raw_call.clone();
            named["toolCallId"] = json!(request_id);
            ToolCallPatch::read(&named)
        })?;
        Some(Self {
            request_id: request_id.to_owned(),
            prompt_id: prompt_id.map(str::to_owned),
            tool_call: ToolCards::default().apply(patch),
            options: options.iter().filter_map(PermissionOption::read).collect(),
            questions: questions_of(raw_call),
        })
    }

    /// Reads an entry of `pendingInteractions` of the daemon's `/status`.
    pub fn read_interaction(data: &Value) -> Option<Self> {
        let request_id = text_of(data, "requestId")?.to_owned();
        let action = data.get("action").unwrap_or(&Value::Null);
        let questions = list_of(data, "questions");
        let call = json!({
            "toolCallId": text_of(action, "toolCallId").or_else(|| text_of(data, "toolCallId")).unwrap_or(&request_id),
            "title": text_of(action, "title").or_else(|| text_of(data, "title")),
            "kind": text_of(action, "type"),
            "content": action.get("content"),
            "locations": action.get("locations"),
            "rawInput": action.get("input"),
        });
        Some(Self {
            tool_call: ToolCards::default().apply(ToolCallPatch::read(&call)?),
            prompt_id: text_of(data, "promptId").map(str::to_owned),
            options: list_of(data, "options")
                .iter()
                .filter_map(PermissionOption::read)
                .collect(),
            questions: questions
                .iter()
                .enumerate()
                .map(|(index, question)| Question::read(index, question))
                .collect(),
            request_id,
        })
    }

    /// Whether the agent asks something instead of wanting to do something.
    pub fn is_question(&self) -> bool {
        !self.questions.is_empty()
    }

    /// Checks a decision against what was offered.
    pub fn vote(&self, decision: &PermissionDecision) -> Vote {
        let PermissionDecision::Select { option_id, answers } = decision else {
            return Vote::Cancelled;
        };
        let Some(option) = self.options.iter().find(|option| option.option_id == *option_id) else {
            if !option_id.is_empty() {
                tracing::warn!(request = self.request_id, "treating an unknown option as cancelled");
            }
            return Vote::Cancelled;
        };
        if option.is_plain_no() {
            return Vote::Rejected {
                option_id: option_id.clone(),
            };
        }
        Vote::Selected {
            option_id: option_id.clone(),
            answers: if self.is_question() {
                answers.clone()
            } else {
                Answers::new()
            },
        }
    }
}

impl Vote {
    /// The body of a vote for the daemon.
    pub fn to_daemon(&self) -> Value {
        match self {
            Self::Selected { option_id, answers } => {
                let mut body = json!({"outcome": {"outcome": "selected", "optionId": option_id}});
                if !answers.is_empty() {
                    body["answers"] = json!(answers);
                }
                body
            }
            // The id of the option that says "no" is `cancel`, and choosing it does the same; but only this one passes
            // whatever the daemon's policy about who may decide.
            Self::Rejected { .. } | Self::Cancelled => json!({"outcome": {"outcome": "cancelled"}}),
        }
    }

    /// The answer for an ACP agent, for which "cancelled" means that the whole turn was.
    pub fn to_acp(&self) -> Value {
        match self {
            Self::Selected { .. } => self.to_daemon(),
            Self::Rejected { option_id } => json!({"outcome": {"outcome": "selected", "optionId": option_id}}),
            Self::Cancelled => json!({"outcome": {"outcome": "cancelled"}}),
        }
    }
}

impl PermissionOption {
    fn read(value: &Value) -> Option<Self> {
        let option_id = text_of(value, "optionId").filter(|id| !id.is_empty())?.to_owned();
        let name = text_of(value, "name").or_else(|| text_of(value, "label"));
        Some(Self {
            name: name.unwrap_or(&option_id).to_owned(),
            kind: OptionKind::read(text_of(value, "kind").unwrap_or_default()),
            option_id,
        })
    }

    fn is_plain_no(&self) -> bool {
        match self.kind {
            OptionKind::RejectOnce => true,
            // "Never" is more than "no": it has to arrive as it is.
            OptionKind::RejectAlways => false,
            _ => {
                let id = self.option_id.as_str();
                matches!(id, "cancel" | "reject") || id.starts_with("reject_")
            }
        }
    }
}

impl OptionKind {
    fn read(text: &str) -> Self {
        match text {
            "allow_once" => Self::AllowOnce,
            "allow_always" => Self::AllowAlways,
            "reject_once" => Self::RejectOnce,
            "reject_always" => Self::RejectAlways,
            other => Self::Other(other.to_owned()),
        }
    }

    /// The protocol's word for it.
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

impl Serialize for OptionKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Question {
    fn read(index: usize, value: &Value) -> Self {
        let choice = |value: &Value| QuestionChoice {
            label: value.as_str().map_or_else(|| owned_text(value, "label"), str::to_owned),
            description: owned_text(value, "description"),
        };
        Self {
            answer_key: text_of(value, "answerKey").map_or_else(|| index.to_string(), str::to_owned),
            question: owned_text(value, "question"),
            header: owned_text(value, "header"),
            choices: list_of(value, "options").iter().map(choice).collect(),
            multiple: value.get("multiSelect").and_then(Value::as_bool).unwrap_or_default(),
        }
    }
}

/// The questions of a call that asks. Its kind is no help: the daemon says `think`.
fn questions_of(call: &Value) -> Vec<Question> {
    let meta = call.get("_meta").unwrap_or(&Value::Null);
    let asks = text_of(meta, "qwenInteractionKind") == Some("user_question")
        || text_of(meta, "toolName") == Some("ask_user_question")
        || text_of(call, "kind") == Some("ask_user_question");
    if !asks {
        return Vec::new();
    }
    let input = call.get("rawInput").unwrap_or(&Value::Null);
    let mut questions = list_of(input, "questions");
    if questions.is_empty() {
        questions = list_of(meta, "qwenQuestions");
    }
    questions
        .iter()
        .enumerate()
        .map(|(index, question)| Question::read(index, question))
        .collect()
}

#[cfg(test)]
#[path = "permission_tests.rs"]
mod tests;

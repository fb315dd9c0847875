//! Reads permission requests, questions among them, and checks decisions against them.

use serde_json::{Value, json};

use super::{
    Answers, OptionKind, PermissionDecision, PermissionOption, PermissionRequest, Question, QuestionChoice,
    ToolCallPatch, ToolCards, list_of, owned_text, text_of,
};

/// The response to a permission request, after the decision was checked against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vote {
    /// An offered option that is not a plain "no".
    Selected {
        option_id: String,
        /// For questions.
        answers: Answers,
    },
    /// An offered option that means "no, this time". The daemon treats it as cancelled.
    Rejected { option_id: String },
    /// No option, or an unknown one.
    Cancelled,
}

/// Reads a request with its `toolCall` and `options`, as the daemon and ACP agents send it.
///
/// `None` if it cannot be responded to.
pub fn read_permission_request(request_id: &str, prompt_id: Option<&str>, data: &Value) -> Option<PermissionRequest> {
    let raw_call = data.get("toolCall").filter(|call| call.is_object())?;
    let options = data.get("options")?.as_array()?;
    // A request without a call id is valid; it just has no card.
    let patch = ToolCallPatch::read(raw_call).or_else(|| {
        let mut named = raw_call.clone();
        named["toolCallId"] = json!(request_id);
        ToolCallPatch::read(&named)
    })?;
    Some(PermissionRequest {
        request_id: request_id.to_owned(),
        prompt_id: prompt_id.map(str::to_owned),
        tool_call: ToolCards::default().apply(patch),
        options: options.iter().filter_map(read_option).collect(),
        questions: questions_of(raw_call),
    })
}

/// Reads an entry of `pendingInteractions` of the daemon's `/status`.
pub fn read_pending_interaction(data: &Value) -> Option<PermissionRequest> {
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
    Some(PermissionRequest {
        tool_call: ToolCards::default().apply(ToolCallPatch::read(&call)?),
        prompt_id: text_of(data, "promptId").map(str::to_owned),
        options: list_of(data, "options").iter().filter_map(read_option).collect(),
        questions: questions
            .iter()
            .enumerate()
            .map(|(index, question)| read_question(index, question))
            .collect(),
        request_id,
    })
}

impl Vote {
    /// Checks a decision against what was offered.
    pub fn new(request: &PermissionRequest, decision: &PermissionDecision) -> Self {
        let PermissionDecision::Select { option_id, answers } = decision else {
            return Self::Cancelled;
        };
        let Some(option) = request.options.iter().find(|option| option.option_id == *option_id) else {
            if !option_id.is_empty() {
                tracing::warn!(request = request.request_id, "treating an unknown option as cancelled");
            }
            return Self::Cancelled;
        };
        if is_plain_no(option) {
            return Self::Rejected {
                option_id: option_id.clone(),
            };
        }
        Self::Selected {
            option_id: option_id.clone(),
            answers: if request.is_question() {
                answers.clone()
            } else {
                Answers::new()
            },
        }
    }

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

    /// The response to an ACP agent, for which "cancelled" means that the whole turn was.
    pub fn to_acp(&self) -> Value {
        match self {
            Self::Selected { .. } => self.to_daemon(),
            Self::Rejected { option_id } => json!({"outcome": {"outcome": "selected", "optionId": option_id}}),
            Self::Cancelled => json!({"outcome": {"outcome": "cancelled"}}),
        }
    }
}

fn read_option(value: &Value) -> Option<PermissionOption> {
    let option_id = text_of(value, "optionId").filter(|id| !id.is_empty())?.to_owned();
    let name = text_of(value, "name").or_else(|| text_of(value, "label"));
    Some(PermissionOption {
        name: name.unwrap_or(&option_id).to_owned(),
        kind: OptionKind::from(text_of(value, "kind").unwrap_or_default()),
        option_id,
    })
}

fn is_plain_no(option: &PermissionOption) -> bool {
    match option.kind {
        OptionKind::RejectOnce => true,
        // "Never" is more than "no": it must be sent as it is.
        OptionKind::RejectAlways => false,
        _ => {
            let id = option.option_id.as_str();
            matches!(id, "cancel" | "reject") || id.starts_with("reject_")
        }
    }
}

fn read_question(index: usize, value: &Value) -> Question {
    let choice = |value: &Value| QuestionChoice {
        label: value.as_str().map_or_else(|| owned_text(value, "label"), str::to_owned),
        description: owned_text(value, "description"),
    };
    Question {
        answer_key: text_of(value, "answerKey").map_or_else(|| index.to_string(), str::to_owned),
        question: owned_text(value, "question"),
        header: owned_text(value, "header"),
        choices: list_of(value, "options").iter().map(choice).collect(),
        multiple: value.get("multiSelect").and_then(Value::as_bool).unwrap_or_default(),
    }
}

/// The questions of a tool call, if it asks any. Its kind does not help: the daemon sends `think`.
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
        .map(|(index, question)| read_question(index, question))
        .collect()
}

#[cfg(test)]
#[path = "permission_tests.rs"]
mod tests;

//! Where the messages of one answer end: each is a paragraph of its own.
//!
//! ACP sends an answer in chunks. Some agents name the message that a chunk belongs to; for others, a tool call that ended in between
//! is the sign that the model was asked again.

use alongside_protocol::chat::ToolStatus;

use crate::conversation::SessionUpdate;

#[derive(Debug, Default)]
pub(super) struct Paragraphs {
    has_text: bool,
    /// A tool call has ended after the text.
    is_interrupted: bool,
    message_id: Option<String>,
}

impl Paragraphs {
    /// Takes the next update of a turn, and returns what separates it from the previous text.
    pub(super) fn separator(&mut self, update: &SessionUpdate) -> Option<&'static str> {
        match update {
            SessionUpdate::UserMessage(_) => *self = Self::default(),
            SessionUpdate::ToolCall(patch) => {
                let has_ended = matches!(patch.status, Some(ToolStatus::Completed | ToolStatus::Failed));
                self.is_interrupted |= has_ended && self.has_text;
            }
            SessionUpdate::AgentMessage {
                content, message_id, ..
            } => {
                let text = content.as_text().filter(|text| !text.is_empty())?;
                let is_other = message_id.is_some() && self.message_id.is_some() && self.message_id != *message_id;
                let begins = self.has_text && (self.is_interrupted || is_other);
                self.message_id = message_id.clone().or_else(|| self.message_id.take());
                (self.has_text, self.is_interrupted) = (true, false);
                return (begins && !text.starts_with('\n')).then_some("\n\n");
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn answer(updates: &[Value]) -> String {
        let mut paragraphs = Paragraphs::default();
        let mut answer = String::new();
        for update in updates {
            let update = SessionUpdate::read(update);
            answer.push_str(paragraphs.separator(&update).unwrap_or_default());
            if let SessionUpdate::AgentMessage { content, .. } = &update {
                answer.push_str(content.as_text().unwrap_or_default());
            }
        }
        answer
    }

    fn chunk(text: &str, message: Option<&str>) -> Value {
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, "messageId": message})
    }

    fn call(status: &str) -> Value {
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": status})
    }

    #[test]
    fn messages_with_different_ids_are_paragraphs() {
        let updates = [chunk("a", Some("1")), chunk("b", Some("1")), chunk("c", Some("2"))];
        assert_eq!(answer(&updates), "ab\n\nc");
    }

    #[test]
    fn ended_tool_call_separates_messages() {
        let updates = [
            call("completed"),
            chunk("a", None),
            call("in_progress"),
            chunk("b", None),
        ];
        assert_eq!(answer(&updates), "ab");
        let updates = [chunk("a", None), call("completed"), chunk("b", None), chunk("c", None)];
        assert_eq!(answer(&updates), "a\n\nbc");
        assert_eq!(answer(&[chunk("a", None), call("failed"), chunk("\nb", None)]), "a\nb");
    }
}

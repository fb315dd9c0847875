//! The text of an answer: several messages are several paragraphs.

use std::collections::BTreeSet;

use alongside_protocol::chat::AgentEvent;

/// Assembles the chunks of one turn. The result depends only on the events, so that it is the same for the compacted log.
#[derive(Default)]
pub(super) struct Paragraphs {
    /// Everything so far.
    pub(super) text: String,
    /// A tool call came after the text.
    is_interrupted: bool,
    calls: BTreeSet<String>,
}

impl Paragraphs {
    /// Adds an event of the turn, and returns what it adds to the text.
    pub(super) fn add(&mut self, event: &AgentEvent) -> &str {
        let start = self.text.len();
        match event {
            AgentEvent::AssistantChunk { content, .. } => {
                let mut chunk = content.as_text().unwrap_or_default();
                if self.text.is_empty() || self.is_interrupted {
                    chunk = chunk.trim_start_matches('\n');
                }
                if self.is_interrupted && !chunk.is_empty() {
                    let missing = ["\n\n", "\n", ""][self.trailing_newlines().min(2)];
                    self.text.push_str(missing);
                    self.is_interrupted = false;
                }
                self.text.push_str(chunk);
            }
            // Later states of a call interrupt nothing.
            AgentEvent::ToolCall { call, .. } => {
                let is_new = self.calls.insert(call.id.clone());
                self.is_interrupted |= is_new && !self.text.is_empty();
            }
            _ => {}
        }
        &self.text[start..]
    }

    fn trailing_newlines(&self) -> usize {
        self.text.len() - self.text.trim_end_matches('\n').len()
    }
}

#[cfg(test)]
mod tests {
    use alongside_protocol::chat::ToolCall;

    use super::*;

    fn text(events: &[AgentEvent]) -> String {
        let mut paragraphs = Paragraphs::default();
        let added: String = events.iter().map(|event| paragraphs.add(event).to_owned()).collect();
        assert_eq!(added, paragraphs.text);
        added
    }

    fn chunk(text: &str) -> AgentEvent {
        AgentEvent::AssistantChunk {
            prompt_id: None,
            content: text.into(),
        }
    }

    fn call(id: &str) -> AgentEvent {
        let call = ToolCall {
            id: id.to_owned(),
            ..ToolCall::default()
        };
        AgentEvent::ToolCall {
            prompt_id: None,
            call: Box::new(call),
        }
    }

    #[test]
    fn messages_around_a_tool_call_are_paragraphs() {
        assert_eq!(text(&[chunk("a"), chunk("b"), call("1"), chunk("c")]), "ab\n\nc");
        assert_eq!(text(&[chunk("a\n"), call("1"), call("2"), chunk("\nb")]), "a\n\nb");
        assert_eq!(text(&[call("1"), chunk("a"), call("1"), chunk("b")]), "ab");
        assert_eq!(text(&[chunk("a"), call("1")]), "a");
    }

    #[test]
    fn answer_does_not_start_with_newlines() {
        assert_eq!(text(&[chunk("\n"), chunk("\n\na"), chunk("\n\nb")]), "a\n\nb");
    }
}

//! Where the turns of a conversation start.

use super::{AgentEvent, TurnEnd};

/// The indices of the events that start a turn: the prompts and user messages that do not continue the previous one. Front ends that
/// apply [`AgentEvent::Rewound`] must count in the same way.
pub fn turn_starts<'a>(events: impl IntoIterator<Item = &'a AgentEvent>) -> Vec<usize> {
    let mut starts = Vec::new();
    // The id of the last message.
    let mut last: Option<&str> = None;
    // Whether the last thing shown is a message without an id. It can only be continued by what follows immediately.
    let mut is_unnamed = false;
    for (index, event) in events.into_iter().enumerate() {
        match event {
            AgentEvent::PromptAccepted { prompt_id, .. } => {
                starts.push(index);
                (last, is_unnamed) = (Some(prompt_id.as_str()), false);
            }
            AgentEvent::UserMessage { prompt_id, .. } => {
                let prompt_id = prompt_id.as_deref();
                let continues = if prompt_id.is_some() {
                    prompt_id == last
                } else {
                    is_unnamed
                };
                if !continues {
                    starts.push(index);
                }
                (last, is_unnamed) = (prompt_id, prompt_id.is_none());
            }
            AgentEvent::MidTurnMessage { .. }
            | AgentEvent::AssistantChunk { .. }
            | AgentEvent::ThinkingChunk { .. }
            | AgentEvent::ToolCall { .. }
            | AgentEvent::Notice { .. }
            | AgentEvent::ModelChangeFailed { .. }
            | AgentEvent::TurnEnded {
                end: TurnEnd::Failed { .. },
                ..
            } => is_unnamed = false,
            _ => {}
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ContentBlock;

    fn message(id: Option<&str>) -> AgentEvent {
        AgentEvent::UserMessage {
            prompt_id: id.map(str::to_owned),
            content: "a".into(),
        }
    }

    fn answer() -> AgentEvent {
        AgentEvent::AssistantChunk {
            prompt_id: None,
            content: "b".into(),
        }
    }

    #[test]
    fn message_of_several_parts_starts_one_turn() {
        let accepted = AgentEvent::PromptAccepted {
            prompt_id: "p".to_owned(),
            text: "a".to_owned(),
        };
        let started = AgentEvent::TurnStarted {
            prompt_id: "p".to_owned(),
        };
        let named = [accepted, started, message(Some("p")), answer(), message(Some("q"))];
        assert_eq!(turn_starts(&named), [0, 4]);
        let unnamed = [message(None), message(None), answer(), message(None)];
        assert_eq!(turn_starts(&unnamed), [0, 3]);
    }

    #[test]
    fn mid_turn_message_starts_no_turn() {
        let during = AgentEvent::MidTurnMessage {
            prompt_id: None,
            message_id: None,
            blocks: vec![ContentBlock::text("by the way")],
            own: true,
        };
        assert_eq!(turn_starts(&[message(Some("p")), during, answer()]), [0]);
    }
}

//! The turns of an agent that runs: what is said, what waits, what needs a person.

use alongside_wire::rpc::RequestId;
use serde_json::{Value, json};

use super::error::AcpError;
use super::running::Running;
use super::talk::{MAX_QUEUED_PROMPTS, Talk};
use crate::conversation::{ContentBlock, PermissionDecision, TurnEnd, Vote, read_permission_request, text_of};
use alongside_protocol::chat::{AgentEvent, NoticeLevel};

impl Running {
    /// Says something, now or when its turn comes.
    pub(super) fn prompt(&self, blocks: Vec<ContentBlock>) -> Result<String, AcpError> {
        let mut talk = self.talk.lock();
        let busy = talk.running.is_some();
        if busy && talk.queue.len() >= MAX_QUEUED_PROMPTS {
            return Err(AcpError::QueueFull(MAX_QUEUED_PROMPTS));
        }
        let prompt_id = talk.next_id("prompt");
        let text = ContentBlock::text_of_all(&blocks);
        talk.tell([AgentEvent::PromptAccepted {
            prompt_id: prompt_id.clone(),
            text: text.clone(),
        }]);
        if busy {
            talk.queue.push_back((prompt_id.clone(), blocks));
            talk.tell([AgentEvent::PromptQueued {
                prompt_id: prompt_id.clone(),
                text,
            }]);
        } else {
            self.start_turn(&mut talk, prompt_id.clone(), &blocks);
        }
        Ok(prompt_id)
    }

    fn start_turn(&self, talk: &mut Talk, prompt_id: String, blocks: &[ContentBlock]) {
        let blocks: Vec<Value> = blocks.iter().map(ContentBlock::to_json).collect();
        let params = json!({"sessionId": talk.session_id, "prompt": blocks});
        // A prompt that cannot be sent fails when the end of the connection is noticed, like one that was sent.
        let id = self.sender.send_request("session/prompt", &params).unwrap_or_default();
        talk.running = Some((id, prompt_id.clone()));
        talk.tell([AgentEvent::TurnStarted { prompt_id }]);
    }

    /// Takes a prompt out of the queue.
    pub(super) fn remove_queued(&self, prompt_id: &str) -> bool {
        let mut talk = self.talk.lock();
        let before = talk.queue.len();
        talk.queue.retain(|(queued, _)| queued != prompt_id);
        let removed = talk.queue.len() < before;
        if removed {
            let prompt_id = prompt_id.to_owned();
            talk.tell([AgentEvent::PromptUnqueued { prompt_id, removed }]);
        }
        removed
    }

    /// Cancels the turn that is going on, once.
    pub(super) fn cancel(&self) {
        let mut talk = self.talk.lock();
        let Some((_, prompt_id)) = talk.running.clone() else {
            return;
        };
        if std::mem::replace(&mut talk.cancelling, true) {
            return;
        }
        self.notify("session/cancel", &json!({"sessionId": talk.session_id}));
        talk.tell([AgentEvent::CancelRequested {
            prompt_id: Some(prompt_id),
        }]);
        // The protocol wants every open request answered so; agents wait for it.
        let open: Vec<String> = talk.asked.keys().cloned().collect();
        for request_id in open {
            if let Some(id) = talk.close(&request_id, None, true) {
                self.respond(&id, Ok(Vote::Cancelled.to_acp()));
            }
        }
        self.cancelled.send_modify(|turns| *turns += 1);
    }

    /// Answers an approval; `None` if there is no such.
    pub(super) fn answer_permission(&self, request_id: &str, decision: &PermissionDecision) -> Option<bool> {
        let mut talk = self.talk.lock();
        let vote = Vote::new(talk.translator.open.get(request_id)?, decision);
        let option_id = match &vote {
            Vote::Selected { option_id, .. } | Vote::Rejected { option_id } => Some(option_id.clone()),
            Vote::Cancelled => None,
        };
        let id = talk.close(request_id, option_id, true)?;
        self.respond(&id, Ok(vote.to_acp()));
        Some(true)
    }

    /// The agent says how the turn ended; the next one begins.
    pub(super) fn turn_answered(&self, talk: &mut Talk, result: Result<Value, AcpError>) {
        let end = match result {
            Ok(answer) => TurnEnd::Completed {
                stop_reason: text_of(&answer, "stopReason").unwrap_or("end_turn").to_owned(),
            },
            // Some agents take a cancelled turn for a failed one.
            Err(_) if talk.cancelling => TurnEnd::Completed {
                stop_reason: "cancelled".to_owned(),
            },
            Err(AcpError::Rpc { code, message }) => TurnEnd::Failed {
                message,
                code: Some(code.to_string()),
            },
            Err(error) => TurnEnd::Failed {
                message: error.to_string(),
                code: None,
            },
        };
        talk.end_turn(end);
        if let Some((prompt_id, blocks)) = talk.queue.pop_front() {
            talk.tell([AgentEvent::PromptUnqueued {
                prompt_id: prompt_id.clone(),
                removed: false,
            }]);
            self.start_turn(talk, prompt_id, &blocks);
        }
    }

    /// The agent needs a person.
    pub(super) fn permission_asked(&self, id: RequestId, params: &Value) {
        let mut talk = self.talk.lock();
        let request_id = talk.next_id("approval");
        let prompt_id = talk.running.as_ref().map(|(_, prompt_id)| prompt_id.clone());
        let request = read_permission_request(&request_id, prompt_id.as_deref(), params);
        let (Some(request), false) = (request, talk.cancelling) else {
            self.respond(&id, Ok(Vote::Cancelled.to_acp()));
            if !talk.cancelling {
                let message = "The agent sent a permission request that cannot be displayed; it was denied.".to_owned();
                talk.tell([AgentEvent::Notice {
                    level: NoticeLevel::Unsupported,
                    message,
                }]);
            }
            return;
        };
        talk.asked.insert(request_id, id);
        let events = talk.translator.open_request(request);
        talk.tell(events);
    }
}

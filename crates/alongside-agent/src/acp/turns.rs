//! The turns of a local agent: prompts, the queue, permission requests.

use std::sync::Arc;

use alongside_protocol::chat::{AgentEvent, NoticeLevel, PermissionRequest, is_image};
use alongside_wire::rpc::RequestId;
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::connection::AcpConnection;
use super::error::AcpError;
use super::session_state::{MAX_OPEN_REQUESTS, MAX_QUEUED_PROMPTS, SessionState, Turn};
use crate::attachments::read_files;
use crate::conversation::{ContentBlock, PermissionDecision, TurnEnd, Vote, read_permission_request, text_of};
use crate::error::AgentError;

impl AcpConnection {
    /// Sends a prompt, or queues it while a turn is running. Returns its id. `shown` is the prompt as the user wrote it.
    pub(super) fn send_prompt(&self, shown: &[ContentBlock], blocks: Vec<ContentBlock>) -> Result<String, AgentError> {
        self.check_files(&blocks)?;
        let mut state = self.state.lock();
        let busy = state.turn.is_some();
        if busy && state.queue.len() >= MAX_QUEUED_PROMPTS {
            return Err(AcpError::QueueFull(MAX_QUEUED_PROMPTS).into());
        }
        let prompt_id = state.next_id("prompt");
        let text = ContentBlock::text_of_all(shown);
        state.send([AgentEvent::PromptAccepted {
            prompt_id: prompt_id.clone(),
            text: text.clone(),
        }]);
        if busy {
            state.queue.push_back((prompt_id.clone(), blocks));
            state.send([AgentEvent::PromptQueued {
                prompt_id: prompt_id.clone(),
                text,
            }]);
        } else {
            self.start_turn(&mut state, &prompt_id, &blocks);
        }
        Ok(prompt_id)
    }

    /// Refuses a file that the agent cannot get.
    fn check_files(&self, blocks: &[ContentBlock]) -> Result<(), AgentError> {
        let abilities = self.abilities();
        for file in read_files(blocks)?.into_iter().flatten() {
            let refusal = if is_image(file.mime_type) {
                (!abilities.images).then_some("this agent does not accept images")
            } else if !abilities.files {
                Some("this agent does not accept files; mention its path in the message instead")
            } else {
                let is_text = std::str::from_utf8(&file.content).is_ok();
                (!is_text).then_some("this agent accepts only images and text files")
            };
            if let Some(why) = refusal {
                return Err(AgentError::Attachment(file.name.to_owned(), why));
            }
        }
        Ok(())
    }

    fn start_turn(&self, state: &mut SessionState, prompt_id: &str, blocks: &[ContentBlock]) {
        let attachments: Vec<ContentBlock> = blocks.iter().filter_map(ContentBlock::attachment).collect();
        let note = state.take_notes().map(|note| json!({"type": "text", "text": note}));
        let blocks: Vec<Value> = note.into_iter().chain(blocks.iter().map(to_acp)).collect();
        let params = json!({"sessionId": state.session_id, "prompt": blocks});
        // A prompt that cannot be sent fails when the connection ends, like one that was sent.
        let id = self.sender.send_request("session/prompt", &params).unwrap_or_default();
        state.turn = Some(Turn {
            request: id,
            prompt_id: prompt_id.to_owned(),
            cancelling: false,
        });
        state.send([AgentEvent::TurnStarted {
            prompt_id: prompt_id.to_owned(),
        }]);
        state.send(attachments.into_iter().map(|content| AgentEvent::UserMessage {
            prompt_id: Some(prompt_id.to_owned()),
            content,
        }));
    }

    /// `false` if the prompt is not queued.
    pub(super) fn remove_from_queue(&self, prompt_id: &str) -> bool {
        let mut state = self.state.lock();
        let before = state.queue.len();
        state.queue.retain(|(queued, _)| queued != prompt_id);
        let removed = state.queue.len() < before;
        if removed {
            let prompt_id = prompt_id.to_owned();
            state.send([AgentEvent::PromptUnqueued { prompt_id, removed }]);
        }
        removed
    }

    /// Cancels the running turn, once.
    pub(super) fn cancel_turn(&self) {
        let mut state = self.state.lock();
        let Some(turn) = state.turn.as_mut().filter(|turn| !turn.cancelling) else {
            return;
        };
        turn.cancelling = true;
        let prompt_id = turn.prompt_id.clone();
        self.notify("session/cancel", &json!({"sessionId": state.session_id}));
        state.send([AgentEvent::CancelRequested {
            prompt_id: Some(prompt_id),
        }]);
        // ACP requires this response to every open request; agents wait for it.
        let open: Vec<String> = state.requests.keys().cloned().collect();
        for request_id in open {
            if let Some(id) = state.close(&request_id, None, true) {
                self.reply(&id, Ok(Vote::Cancelled.to_acp()));
            }
        }
        self.cancelled.send_modify(|turns| *turns += 1);
    }

    /// Responds to a permission request; `None` if it is not open.
    pub(super) fn respond_to_permission(&self, request_id: &str, decision: &PermissionDecision) -> Option<()> {
        let mut state = self.state.lock();
        let vote = Vote::new(state.translator.open.get(request_id)?, decision);
        let option_id = match &vote {
            Vote::Selected { option_id, .. } | Vote::Rejected { option_id } => Some(option_id.clone()),
            Vote::Cancelled => None,
        };
        let id = state.close(request_id, option_id, true)?;
        self.reply(&id, Ok(vote.to_acp()));
        Some(())
    }

    /// Handles the response to `session/prompt`: ends the turn and starts the next one in the queue.
    pub(super) fn finish_turn(&self, state: &mut SessionState, result: Result<Value, AcpError>) {
        let end = match result {
            Ok(response) => TurnEnd::stopped(text_of(&response, "stopReason").unwrap_or("end_turn")),
            // Some agents report a cancelled turn as a failed one.
            Err(_) if state.is_cancelling() => TurnEnd::stopped("cancelled"),
            Err(AcpError::Rpc { code, message }) => TurnEnd::Failed {
                message,
                code: Some(code.to_string()),
            },
            Err(error) => TurnEnd::Failed {
                message: error.to_string(),
                code: None,
            },
        };
        state.end_turn(end);
        if let Some((prompt_id, blocks)) = state.queue.pop_front() {
            state.send([AgentEvent::PromptUnqueued {
                prompt_id: prompt_id.clone(),
                removed: false,
            }]);
            self.start_turn(state, &prompt_id, &blocks);
        }
    }

    /// Handles `session/request_permission`.
    pub(super) fn request_permission(self: &Arc<Self>, id: RequestId, params: &Value) {
        let shown = {
            let mut state = self.state.lock();
            let request_id = state.next_id("approval");
            let prompt_id = state.prompt_id();
            let request = read_permission_request(&request_id, prompt_id.as_deref(), params);
            request.filter(|_| !state.is_cancelling()).map(|mut request| {
                let events = state.translator.show_request(&mut request);
                state.send(events);
                request
            })
        };
        match shown {
            Some(request) if self.review_request(&id, &request) => {}
            Some(request) => self.open_request(id, request),
            None => {
                let refusal = "The agent sent a permission request that cannot be displayed; it was denied.";
                self.deny_request(&id, refusal);
            }
        }
    }

    /// Asks the user.
    pub(super) fn open_request(&self, id: RequestId, request: PermissionRequest) {
        let mut state = self.state.lock();
        if state.is_cancelling() || state.requests.len() >= MAX_OPEN_REQUESTS {
            drop(state);
            let refusal = "The agent sent too many permission requests at once; the last one was denied.";
            return self.deny_request(&id, refusal);
        }
        state.requests.insert(request.request_id.clone(), id);
        let events = state.translator.open_request(request);
        state.send(events);
    }

    /// Cancels a request. While the turn is being cancelled, that needs no explanation.
    fn deny_request(&self, id: &RequestId, reason: &str) {
        self.reply(id, Ok(Vote::Cancelled.to_acp()));
        let mut state = self.state.lock();
        let reason = (!state.is_cancelling()).then(|| reason.to_owned());
        state.send(reason.map(|message| AgentEvent::Notice {
            level: NoticeLevel::Unsupported,
            message,
        }));
    }
}

/// A part of a prompt in ACP's JSON, which has files only as images and embedded resources.
fn to_acp(block: &ContentBlock) -> Value {
    let ContentBlock::File { name, mime_type, data } = block else {
        return block.to_json();
    };
    if is_image(mime_type) {
        return json!({"type": "image", "data": data, "mimeType": mime_type});
    }
    let content = BASE64.decode(data.as_bytes()).unwrap_or_default();
    let text = String::from_utf8_lossy(&content);
    let uri = format!("attachment:///{name}");
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": text}})
}

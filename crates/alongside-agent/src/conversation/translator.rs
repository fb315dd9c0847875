//! What a conversation has shown so far, so that the next update can be turned into events.
//!
//! Updates of a session and permission requests have the same JSON from the daemon and from ACP agents. The daemon's own events are
//! handled in `daemon/translate.rs`.

use std::collections::HashMap;

use alongside_protocol::chat::{AgentEvent, NoticeLevel};
use serde_json::Value;

use super::{ContentBlock, PermissionRequest, SessionUpdate, ToolCall, ToolCallPatch, ToolCards, TurnEnd};

/// The number of our prompts that are remembered.
const MAX_ACCEPTED: usize = 64;

/// Where an event comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From a loaded session: nothing in it needs a response.
    History,
    Stream,
}

/// The state that the next event is interpreted with.
#[derive(Debug, Default)]
pub struct Translator {
    pub(crate) cards: ToolCards,
    pub(crate) open: HashMap<String, PermissionRequest>,
    /// Requests in the replay, which may be resolved later in it.
    pub(crate) missed: Vec<PermissionRequest>,
    /// Requests shown as open that the daemon no longer lists: the replay should say why.
    pub(crate) unlisted: Vec<String>,
    /// Missed events are being replayed.
    pub(crate) replaying: bool,
    /// The running turn.
    pub(crate) running: Option<String>,
    /// The turn that we asked to cancel, so that a second click does not cancel the next one.
    pub(crate) cancelling: Option<String>,
    /// The most recently ended turn.
    pub(crate) ended: Option<String>,
    /// The current mode, if known.
    pub(crate) mode: Option<String>,
    /// Our prompts that [`AgentEvent::PromptAccepted`] was sent for, and whether they have ended.
    pub(crate) accepted: Vec<(String, bool)>,
    /// The ids and texts of our prompts that the daemon echoed before it responded.
    pub(crate) echoed: Vec<(String, String)>,
    /// The prompts that [`AgentEvent::PromptQueued`] was sent for.
    pub(crate) queued: Vec<String>,
    /// The prompts that were removed from the queue, until the daemon reports their end.
    pub(crate) removed: Vec<String>,
    pub(crate) events: Vec<AgentEvent>,
}

impl Translator {
    /// Forgets the conversation, before its history or another session.
    pub fn forget(&mut self) {
        self.cards.clear();
        self.open.clear();
        self.missed.clear();
        self.unlisted.clear();
        self.queued.clear();
        self.running = None;
        self.cancelling = None;
    }

    /// Translates an ACP agent's update. Unlike the daemon, it does not echo our prompts.
    pub(crate) fn translate_update(
        &mut self,
        update: SessionUpdate,
        prompt_id: Option<String>,
        source: Source,
    ) -> Vec<AgentEvent> {
        self.update(update, prompt_id, false, source);
        std::mem::take(&mut self.events)
    }

    /// Shows the tool call of a request, and completes it by what is known of the call.
    pub(crate) fn show_request(&mut self, request: &mut PermissionRequest) -> Vec<AgentEvent> {
        self.show_call(request);
        std::mem::take(&mut self.events)
    }

    /// Opens a request whose tool call is shown.
    pub(crate) fn open_request(&mut self, request: PermissionRequest) -> Vec<AgentEvent> {
        self.open(request);
        std::mem::take(&mut self.events)
    }

    /// Returns no event if the request is not open.
    pub(crate) fn close_request(&mut self, request_id: &str, option_id: Option<String>, own: bool) -> Vec<AgentEvent> {
        self.close(request_id, option_id, own);
        std::mem::take(&mut self.events)
    }

    pub(crate) fn update(&mut self, update: SessionUpdate, prompt_id: Option<String>, is_own: bool, source: Source) {
        match update {
            SessionUpdate::UserMessage(content) => {
                // The text of our prompt is shown already; what is attached to it is not.
                let echoed = prompt_id.as_deref().filter(|_| source == Source::Stream && is_own);
                if let (Some(prompt_id), Some(text)) = (echoed, content.as_text()) {
                    self.accept_once(prompt_id, text);
                } else {
                    if let Some(prompt_id) = echoed {
                        self.accept_once(prompt_id, "");
                    }
                    self.events.push(AgentEvent::UserMessage {
                        prompt_id: prompt_id.clone(),
                        content,
                    });
                }
                if let Some(prompt_id) = prompt_id.filter(|_| source == Source::Stream) {
                    self.start(&prompt_id);
                }
            }
            SessionUpdate::AgentMessage { content, usage, .. } => {
                // The last chunk is often empty and only carries the usage.
                if content.as_text() != Some("") {
                    self.events.push(AgentEvent::AssistantChunk { prompt_id, content });
                }
                self.events.extend(usage.map(AgentEvent::TokenUsage));
            }
            SessionUpdate::AgentThought(content) => {
                if content.as_text() != Some("") {
                    self.events.push(AgentEvent::ThinkingChunk { prompt_id, content });
                }
            }
            SessionUpdate::ToolCall(patch) => self.card(patch, prompt_id),
            SessionUpdate::Plan(entries) => self.events.push(AgentEvent::Plan { entries }),
            SessionUpdate::ContextUsage { used, size } => self.events.push(AgentEvent::ContextUsage { used, size }),
            SessionUpdate::Commands { commands, skills } => {
                self.events.push(AgentEvent::Commands { commands, skills });
            }
            SessionUpdate::Mode(mode_id) => self.mode_changed(mode_id),
            SessionUpdate::Title(title) => self.events.push(AgentEvent::Title { title }),
            // The daemon has separate events for models and modes; an ACP connection handles this itself.
            SessionUpdate::ConfigOptions(_) => {}
            SessionUpdate::Unknown { name, data } => self.unknown_update(&name, &data),
        }
    }

    fn unknown_update(&mut self, name: &str, data: &Value) {
        let known = matches!(
            name,
            "user_message_chunk"
                | "agent_message_chunk"
                | "agent_thought_chunk"
                | "tool_call"
                | "tool_call_update"
                | "plan"
        );
        if known {
            self.notice(
                NoticeLevel::Unsupported,
                &format!("Part of the conversation cannot be shown here ({name})."),
            );
        } else {
            tracing::debug!(
                name,
                fields = data.as_object().map_or(0, serde_json::Map::len),
                "unknown update"
            );
        }
    }

    pub(crate) fn notice(&mut self, level: NoticeLevel, message: &str) {
        let message = message.to_owned();
        self.events.push(AgentEvent::Notice { level, message });
    }

    pub(crate) fn mode_changed(&mut self, mode_id: String) {
        self.mode = Some(mode_id.clone());
        self.events.push(AgentEvent::ModeChanged { mode_id });
    }

    /// Notes a prompt of ours; `true` the first time.
    pub(crate) fn accept(&mut self, prompt_id: &str) -> bool {
        let is_new = self.accepted.iter().all(|(known, _)| known != prompt_id);
        if is_new {
            if self.accepted.len() == MAX_ACCEPTED {
                self.accepted.remove(0);
            }
            self.accepted.push((prompt_id.to_owned(), false));
        }
        is_new
    }

    /// The id of the echoed prompt with this content. An echo starts with the first block; an entry of the queue has the whole text.
    pub(crate) fn take_echo(&mut self, blocks: &[ContentBlock]) -> Option<String> {
        let first = blocks.first().and_then(ContentBlock::as_text).unwrap_or_default();
        let whole = ContentBlock::text_of_all(blocks);
        let index = self
            .echoed
            .iter()
            .position(|(_, text)| text == first || *text == whole)?;
        Some(self.echoed.swap_remove(index).0)
    }

    pub(crate) fn accept_once(&mut self, prompt_id: &str, text: &str) {
        if self.accept(prompt_id) {
            self.echoed.push((prompt_id.to_owned(), text.to_owned()));
            self.events.push(AgentEvent::PromptAccepted {
                prompt_id: prompt_id.to_owned(),
                text: text.to_owned(),
            });
        }
    }

    pub(crate) fn queue(&mut self, prompt_id: String, text: String) {
        if !self.queued.contains(&prompt_id) {
            self.queued.push(prompt_id.clone());
            self.events.push(AgentEvent::PromptQueued { prompt_id, text });
        }
    }

    pub(crate) fn unqueue(&mut self, prompt_id: &str, removed: bool) {
        if remove_entry(&mut self.queued, prompt_id) {
            let prompt_id = prompt_id.to_owned();
            self.events.push(AgentEvent::PromptUnqueued { prompt_id, removed });
        }
    }

    pub(crate) fn start(&mut self, prompt_id: &str) {
        if self.running.as_deref() != Some(prompt_id) {
            self.running = Some(prompt_id.to_owned());
            self.events.push(AgentEvent::TurnStarted {
                prompt_id: prompt_id.to_owned(),
            });
        }
    }

    pub(crate) fn end_turn(&mut self, prompt_id: Option<String>, end: TurnEnd) {
        if prompt_id.is_none() || self.running == prompt_id {
            self.running = None;
        }
        if prompt_id.is_none() || self.cancelling == prompt_id {
            self.cancelling = None;
        }
        if let Some(prompt_id) = &prompt_id {
            self.settle_accepted(prompt_id);
        }
        self.ended.clone_from(&prompt_id);
        self.events.push(AgentEvent::TurnEnded { prompt_id, end });
    }

    /// Nothing more will be reported about this prompt of ours.
    pub(crate) fn settle_accepted(&mut self, prompt_id: &str) {
        for (_, ended) in self.accepted.iter_mut().filter(|(own, _)| own == prompt_id) {
            *ended = true;
        }
    }

    fn card(&mut self, patch: ToolCallPatch, prompt_id: Option<String>) {
        let call = Box::new(self.cards.apply(patch));
        self.events.push(AgentEvent::ToolCall { prompt_id, call });
    }

    /// Shows the tool call of a permission request. Its arguments and diff are only in the request, so this is needed even if the
    /// request was resolved long ago.
    pub(crate) fn show_call(&mut self, request: &mut PermissionRequest) {
        let call = &request.tool_call;
        if call.id != request.request_id {
            request.tool_call = self.cards.apply(patch_of(call));
            self.events.push(AgentEvent::ToolCall {
                prompt_id: request.prompt_id.clone(),
                call: Box::new(request.tool_call.clone()),
            });
        }
    }

    pub(crate) fn show_and_open(&mut self, mut request: PermissionRequest) {
        if !self.open.contains_key(&request.request_id) {
            self.show_call(&mut request);
            self.open(request);
        }
    }

    pub(crate) fn open(&mut self, request: PermissionRequest) {
        if self.open.contains_key(&request.request_id) {
            return;
        }
        self.open.insert(request.request_id.clone(), request.clone());
        self.events.push(AgentEvent::ApprovalOpened {
            request: Box::new(request),
        });
    }

    pub(crate) fn close(&mut self, request_id: &str, option_id: Option<String>, own: bool) {
        self.missed.retain(|request| request.request_id != request_id);
        if self.open.remove(request_id).is_some() || remove_entry(&mut self.unlisted, request_id) {
            self.events.push(closed(request_id, option_id, own));
        }
    }
}

pub(crate) fn closed(request_id: &str, option_id: Option<String>, own: bool) -> AgentEvent {
    AgentEvent::ApprovalClosed {
        request_id: request_id.to_owned(),
        option_id,
        own,
    }
}

/// What a permission request says about its tool call.
pub(crate) fn patch_of(call: &ToolCall) -> ToolCallPatch {
    ToolCallPatch {
        id: call.id.clone(),
        title: Some(call.title.clone()),
        kind: Some(call.kind.clone()),
        status: Some(call.status.clone()),
        tool_name: call.tool_name.clone(),
        input: Some(call.input.clone()).filter(|input| !input.is_null()),
        output: None,
        locations: call.locations.clone(),
        content: call.content.clone(),
    }
}

/// Removes an entry; `false` if there is none.
pub(crate) fn remove_entry(list: &mut Vec<String>, entry: &str) -> bool {
    let index = list.iter().position(|own| own == entry);
    index.map(|index| list.remove(index)).is_some()
}

//! From the events of a daemon to those of an agent.
//!
//! | the daemon says | people see |
//! |---|---|
//! | `session_update` with a piece of the answer, or of thought | the piece |
//! | `session_update` with a call of a tool, `permission_request` with the same call | one card with all that is known |
//! | `permission_request` | an approval or questions, unless it was answered while it was missed |
//! | `permission_resolved`, `permission_already_resolved` | the approval closes, whoever answered |
//! | `model_switched`, `approval_mode_changed`, `session_snapshot` | the model or the mode in use |
//! | `turn_complete`, `turn_error` | the end of the turn, and nothing else is |
//! | `pending_prompt_*` | the queue |
//! | `session_died`, `session_closed` | the end, with a way back: see the pump |
//! | what changes the conversation in a way that cannot be shown | a notice that says so |
//! | anything else | nothing; a line in the debug log |

mod memory;

use std::collections::HashMap;

use serde_json::Value;

use crate::conversation::{
    ContentBlock, PermissionRequest, SessionUpdate, ToolCall, ToolCallPatch, ToolCards, TurnEnd, list_of,
};
use crate::daemon::{DaemonEvent, EventKind};
use alongside_protocol::chat::{AgentEvent, NoticeLevel};

/// Where an event comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From a loaded session: it happened, and nobody needs to act on it.
    History,
    /// From the stream.
    Stream,
}

/// What has to be known to understand the next event.
#[derive(Debug, Default)]
pub struct Translator {
    cards: ToolCards,
    /// The approvals that wait for an answer.
    pub(crate) open: HashMap<String, PermissionRequest>,
    /// Approvals that were missed, and may have been answered further on in what was missed.
    missed: Vec<PermissionRequest>,
    /// Approvals that are shown as open and that the daemon does not list any more: what was missed should tell why.
    unlisted: Vec<String>,
    /// What was missed is still being told.
    replaying: bool,
    /// The turn that is going on.
    pub(super) running: Option<String>,
    /// The turn that was asked to be cancelled, so that a second click does not hit the next one.
    pub(super) cancelling: Option<String>,
    /// The turn that has ended last.
    ended: Option<String>,
    /// The mode in force, as far as it is known.
    pub(super) mode: Option<String>,
    /// The prompts of ours that [`AgentEvent::PromptAccepted`] was sent for, and whether they have ended.
    accepted: Vec<(String, bool)>,
    /// The prompts that [`AgentEvent::PromptQueued`] was sent for.
    queued: Vec<String>,
    events: Vec<AgentEvent>,
}

impl Translator {
    /// A stream begins: first comes what was missed.
    pub fn stream_begins(&mut self) {
        self.replaying = true;
    }

    /// Forgets the conversation.
    pub fn forget(&mut self) {
        self.cards.clear();
        self.open.clear();
        self.missed.clear();
        self.unlisted.clear();
        self.queued.clear();
        self.running = None;
        self.cancelling = None;
    }

    /// What an event means to whoever shows the conversation. `own` is who we are in the session, or have been.
    pub fn translate(&mut self, event: DaemonEvent, source: Source, own: &[String]) -> Vec<AgentEvent> {
        let is_us = |client: Option<&str>| client.is_some_and(|client| own.iter().any(|own| own == client));
        let is_own = is_us(event.originator.as_deref());
        let prompt_id = event.prompt_id;
        match event.kind {
            EventKind::SessionUpdate(update) => self.update(update, prompt_id, is_own, source),
            EventKind::TurnComplete { stop_reason } => self.end_turn(prompt_id, TurnEnd::Completed { stop_reason }),
            EventKind::TurnError { message, code } => {
                let code = code.map(|code| code.to_string());
                self.end_turn(prompt_id, TurnEnd::Failed { message, code });
            }
            EventKind::PermissionRequest(mut request) => {
                self.show_call(&mut request);
                match source {
                    Source::History => {}
                    Source::Stream if self.replaying => {
                        // Its event says more than the list of what is open.
                        self.missed.retain(|known| known.request_id != request.request_id);
                        self.missed.push(*request);
                    }
                    Source::Stream => self.open(*request),
                }
            }
            // What follows is about what people may do now. In a history there is nothing to do.
            _ if source == Source::History => {}
            EventKind::PromptCancelled { .. } => self.cancel_requested(prompt_id),
            EventKind::PendingPromptAdded { prompt_id, text } => {
                if is_own {
                    self.accept_once(&prompt_id, &text);
                }
                self.queue(prompt_id, text);
            }
            EventKind::PendingPromptStarted { prompt_id, .. } => {
                self.unqueue(&prompt_id, false);
                self.start(&prompt_id);
            }
            EventKind::PendingPromptCompleted { prompt_id, state } => {
                // One that began has left the queue when it began.
                if state == "removed" {
                    self.unqueue(&prompt_id, true);
                }
            }
            EventKind::PermissionResolved {
                request_id,
                option_id,
                voter,
            } => {
                let is_own = is_us(voter.as_deref());
                self.close(&request_id, option_id, is_own);
            }
            EventKind::PermissionAlreadyResolved { request_id, option_id } => self.close(&request_id, option_id, false),
            EventKind::PermissionPartialVote {
                request_id,
                received,
                needed,
            } => {
                self.events.push(AgentEvent::ApprovalProgress {
                    request_id,
                    received,
                    needed,
                });
            }
            EventKind::PermissionForbidden { client_id, .. } => {
                if is_us(client_id.as_deref()) {
                    self.notice(
                        NoticeLevel::Warning,
                        "The daemon lets only another client decide this request.",
                    );
                }
            }
            EventKind::ReplayComplete { .. } => {
                self.replaying = false;
                for request in std::mem::take(&mut self.missed) {
                    self.open(request);
                }
                for request_id in std::mem::take(&mut self.unlisted) {
                    self.events.push(closed(&request_id, None, false));
                }
            }
            other => self.state(other),
        }
        std::mem::take(&mut self.events)
    }

    /// What an update of an ACP agent means. Such an agent does not repeat our own words.
    pub(crate) fn translate_update(
        &mut self,
        update: SessionUpdate,
        prompt_id: Option<String>,
        source: Source,
    ) -> Vec<AgentEvent> {
        self.update(update, prompt_id, false, source);
        std::mem::take(&mut self.events)
    }

    /// Opens an approval.
    pub(crate) fn open_request(&mut self, request: PermissionRequest) -> Vec<AgentEvent> {
        self.show_and_open(request);
        std::mem::take(&mut self.events)
    }

    /// Closes an approval; none if it is closed.
    pub(crate) fn close_request(&mut self, request_id: &str, option_id: Option<String>, own: bool) -> Vec<AgentEvent> {
        self.close(request_id, option_id, own);
        std::mem::take(&mut self.events)
    }

    /// The conversation went on.
    fn update(&mut self, update: SessionUpdate, prompt_id: Option<String>, is_own: bool, source: Source) {
        match update {
            SessionUpdate::UserMessage(content) => {
                if source == Source::Stream && is_own {
                    // Our own words come back to us; they are shown already.
                    if let Some(prompt_id) = &prompt_id {
                        self.accept_once(prompt_id, content.as_text().unwrap_or_default());
                    }
                } else {
                    self.events.push(AgentEvent::UserMessage {
                        prompt_id: prompt_id.clone(),
                        content,
                    });
                }
                if let Some(prompt_id) = prompt_id.filter(|_| source == Source::Stream) {
                    self.start(&prompt_id);
                }
            }
            SessionUpdate::AgentMessage { content, usage } => {
                // The last piece is often empty and carries the cost.
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
            // The daemon tells about models and modes with events of their own.
            SessionUpdate::ConfigOptions(_) => {}
            SessionUpdate::Unknown { name, data } => self.unknown_update(&name, &data),
        }
    }

    /// The session is in another state, or something happened that has no event here.
    fn state(&mut self, kind: EventKind) {
        match kind {
            EventKind::ModelSwitched { model_id } => self.events.push(AgentEvent::ModelChanged { model_id }),
            EventKind::ModelSwitchFailed { model_id, error } => {
                self.events.push(AgentEvent::ModelChangeFailed {
                    model_id,
                    message: error,
                });
            }
            EventKind::ApprovalModeChanged { mode } => self.mode_changed(mode),
            EventKind::SessionSnapshot {
                model_id,
                mode,
                recording_degraded,
            } => {
                self.events
                    .extend(model_id.map(|model_id| AgentEvent::ModelChanged { model_id }));
                if let Some(mode) = mode {
                    self.mode_changed(mode);
                }
                if recording_degraded {
                    self.recording_degraded();
                }
            }
            EventKind::SessionMetadataUpdated {
                display_name: Some(title),
            } => {
                self.events.push(AgentEvent::Title { title });
            }
            EventKind::FollowupSuggestion { suggestion } => {
                self.events.push(AgentEvent::Suggestion { text: suggestion });
            }
            EventKind::RecordingDegraded => self.recording_degraded(),
            EventKind::Unknown { name, data } => self.unknown(&name, &data),
            other => tracing::debug!(event = ?other, "ignoring an event that has no display"),
        }
    }

    fn unknown(&mut self, name: &str, data: &Value) {
        let unsupported = match name {
            "permission_request" => {
                "The agent sent a request that cannot be displayed here. Answer it in another client."
            }
            "session_rewound" => {
                "The conversation was rewound to an earlier point. Reopen the session to see its current state."
            }
            "session_branched" => "The conversation continues in another session, which is not shown here.",
            "user_shell_command" => {
                "Another client is running a command in this session; its output is not shown here."
            }
            "auth_device_flow_started" => "The daemon requires you to log in. Do that on the machine where it runs.",
            "mid_turn_message_injected" => {
                for message in list_of(data, "messages") {
                    let text = message.as_str().or_else(|| message.get("text")?.as_str());
                    let content = ContentBlock::text(text.unwrap_or_default());
                    self.events.push(AgentEvent::UserMessage {
                        prompt_id: self.running.clone(),
                        content,
                    });
                }
                return;
            }
            _ => {
                tracing::debug!(name, "unknown event");
                return;
            }
        };
        self.notice(NoticeLevel::Unsupported, unsupported);
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

    fn recording_degraded(&mut self) {
        self.notice(
            NoticeLevel::Warning,
            "The daemon can no longer save this session; it will not be available later.",
        );
    }

    fn notice(&mut self, level: NoticeLevel, message: &str) {
        let message = message.to_owned();
        self.events.push(AgentEvent::Notice { level, message });
    }

    /// Somebody asked to cancel a turn, unless there is none: the daemon says the same when nothing goes on, and after a turn that took too
    /// long has ended.
    fn cancel_requested(&mut self, prompt_id: Option<String>) {
        let goes_on = match &self.running {
            Some(running) => prompt_id.as_ref().is_none_or(|prompt_id| prompt_id == running),
            // A turn that we have not seen begin.
            None => prompt_id.is_some() && prompt_id != self.ended,
        };
        if goes_on {
            self.events.push(AgentEvent::CancelRequested { prompt_id });
        }
    }

    fn mode_changed(&mut self, mode_id: String) {
        self.mode = Some(mode_id.clone());
        self.events.push(AgentEvent::ModeChanged { mode_id });
    }

    fn accept_once(&mut self, prompt_id: &str, text: &str) {
        if self.accept(prompt_id) {
            self.events.push(AgentEvent::PromptAccepted {
                prompt_id: prompt_id.to_owned(),
                text: text.to_owned(),
            });
        }
    }

    fn queue(&mut self, prompt_id: String, text: String) {
        if !self.queued.contains(&prompt_id) {
            self.queued.push(prompt_id.clone());
            self.events.push(AgentEvent::PromptQueued { prompt_id, text });
        }
    }

    fn unqueue(&mut self, prompt_id: &str, removed: bool) {
        if take_out(&mut self.queued, prompt_id) {
            let prompt_id = prompt_id.to_owned();
            self.events.push(AgentEvent::PromptUnqueued { prompt_id, removed });
        }
    }

    fn start(&mut self, prompt_id: &str) {
        if self.running.as_deref() != Some(prompt_id) {
            self.running = Some(prompt_id.to_owned());
            self.events.push(AgentEvent::TurnStarted {
                prompt_id: prompt_id.to_owned(),
            });
        }
    }

    fn end_turn(&mut self, prompt_id: Option<String>, end: TurnEnd) {
        if prompt_id.is_none() || self.running == prompt_id {
            self.running = None;
        }
        if prompt_id.is_none() || self.cancelling == prompt_id {
            self.cancelling = None;
        }
        for (_, ended) in self
            .accepted
            .iter_mut()
            .filter(|(own, _)| Some(own) == prompt_id.as_ref())
        {
            *ended = true;
        }
        self.ended.clone_from(&prompt_id);
        self.events.push(AgentEvent::TurnEnded { prompt_id, end });
    }

    fn card(&mut self, patch: ToolCallPatch, prompt_id: Option<String>) {
        let call = Box::new(self.cards.apply(patch));
        self.events.push(AgentEvent::ToolCall { prompt_id, call });
    }

    /// With an approval the arguments and the difference are told here, and only here: whether anybody still has to answer or not.
    fn show_call(&mut self, request: &mut PermissionRequest) {
        let call = &request.tool_call;
        if call.id != request.request_id {
            request.tool_call = self.cards.apply(patch_of(call));
            self.events.push(AgentEvent::ToolCall {
                prompt_id: request.prompt_id.clone(),
                call: Box::new(request.tool_call.clone()),
            });
        }
    }

    fn show_and_open(&mut self, mut request: PermissionRequest) {
        if !self.open.contains_key(&request.request_id) {
            self.show_call(&mut request);
            self.open(request);
        }
    }

    fn open(&mut self, request: PermissionRequest) {
        if self.open.contains_key(&request.request_id) {
            return;
        }
        self.open.insert(request.request_id.clone(), request.clone());
        self.events.push(AgentEvent::ApprovalOpened {
            request: Box::new(request),
        });
    }

    fn close(&mut self, request_id: &str, option_id: Option<String>, own: bool) {
        self.missed.retain(|request| request.request_id != request_id);
        if self.open.remove(request_id).is_some() || take_out(&mut self.unlisted, request_id) {
            self.events.push(closed(request_id, option_id, own));
        }
    }
}

fn closed(request_id: &str, option_id: Option<String>, own: bool) -> AgentEvent {
    AgentEvent::ApprovalClosed {
        request_id: request_id.to_owned(),
        option_id,
        own,
    }
}

/// What a request for an approval says about a call.
fn patch_of(call: &ToolCall) -> ToolCallPatch {
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

/// Takes an entry out; `false` if it is not there.
fn take_out(list: &mut Vec<String>, entry: &str) -> bool {
    let index = list.iter().position(|own| own == entry);
    index.map(|index| list.remove(index)).is_some()
}

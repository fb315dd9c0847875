//! From the daemon's events to [`AgentEvent`]s.
//!
//! | daemon event | shown |
//! |---|---|
//! | `session_update` with a chunk of the answer or of thinking | the chunk |
//! | `session_update` with a tool call, `permission_request` with the same call | one card with everything known |
//! | `permission_request` | a permission request or questions, unless the replay also resolves it |
//! | `permission_resolved`, `permission_already_resolved` | the request closes, whichever client resolved it |
//! | `model_switched`, `approval_mode_changed`, `session_snapshot` | the current model or mode |
//! | `turn_complete`, `turn_error` | the end of the turn; nothing else ends one |
//! | `pending_prompt_*` | the queue |
//! | `mid_turn_message_injected` | the message, where the agent received it; it leaves the queue |
//! | `session_rewound` | the conversation up to that turn |
//! | `session_died`, `session_closed` | the end, with a session to reopen: see `event_task.rs` |
//! | changes to the conversation that cannot be shown | a notice |
//! | anything else | nothing; logged at debug level |

use alongside_protocol::chat::{AgentEvent, NoticeLevel};

use super::event::{DaemonEvent, EventKind, MidTurnMessage};
use crate::conversation::translator::{closed, remove_entry};
use crate::conversation::{Source, Translator, TurnEnd};

/// The number of removed prompts that are remembered.
const MAX_REMOVED: usize = 16;

/// Where a rewind cannot be applied to what is shown.
const NOT_REWOUND: &str =
    "The conversation was rewound to an earlier point. Reopen the session to see its current state.";

impl Translator {
    /// A stream starts with a replay of the missed events.
    pub fn stream_begins(&mut self) {
        self.replaying = true;
    }

    /// Translates an event. `own` lists our current and previous client ids in the session.
    pub fn translate(&mut self, event: DaemonEvent, source: Source, own: &[String]) -> Vec<AgentEvent> {
        let is_us = |client: Option<&str>| client.is_some_and(|client| own.iter().any(|own| own == client));
        let is_own = is_us(event.originator.as_deref());
        let prompt_id = event.prompt_id;
        match event.kind {
            EventKind::SessionUpdate(update) => self.update(update, prompt_id, is_own, source),
            // Before the end that the daemon reports for its turn, which never started.
            EventKind::PendingPromptCompleted { prompt_id, state } if state == "removed" => {
                if self.removed.len() == MAX_REMOVED {
                    self.removed.remove(0);
                }
                self.removed.push(prompt_id.clone());
                self.unqueue(&prompt_id, true);
            }
            EventKind::TurnComplete { .. } if self.take_removed(prompt_id.as_deref()) => {}
            EventKind::TurnComplete { stop_reason } => self.end_turn(prompt_id, TurnEnd::stopped(stop_reason)),
            EventKind::TurnError { message, code } => {
                let code = code.map(|code| code.to_string());
                self.end_turn(prompt_id, TurnEnd::Failed { message, code });
            }
            EventKind::PermissionRequest(mut request) => {
                self.show_call(&mut request);
                match source {
                    Source::History => {}
                    Source::Stream if self.replaying => {
                        // The event has more detail than the daemon's list of open requests.
                        self.missed.retain(|known| known.request_id != request.request_id);
                        self.missed.push(*request);
                    }
                    Source::Stream => self.open(*request),
                }
            }
            EventKind::MidTurnMessageInjected { messages } => {
                for message in messages {
                    self.mid_turn_message(prompt_id.clone(), message, source);
                }
            }
            EventKind::SessionRewound { target_turn_index } => {
                self.events.push(AgentEvent::Rewound {
                    turn: target_turn_index,
                });
            }
            // The rest is about what the user can do now. A history needs none of it.
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
            // A prompt that started left the queue then.
            EventKind::PendingPromptCompleted { .. } => {}
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
            EventKind::Unknown { name, .. } => self.unknown(&name),
            other => tracing::debug!(event = ?other, "ignoring an event that has no display"),
        }
    }

    fn unknown(&mut self, name: &str) {
        let unsupported = match name {
            "permission_request" => {
                "The agent sent a request that cannot be displayed here. Answer it in another client."
            }
            "session_rewound" => NOT_REWOUND,
            "session_branched" => "The conversation continues in another session, which is not shown here.",
            "user_shell_command" => {
                "Another client is running a command in this session; its output is not shown here."
            }
            "auth_device_flow_started" => "The daemon requires you to log in. Do that on the machine where it runs.",
            _ => {
                tracing::debug!(name, "unknown event");
                return;
            }
        };
        self.notice(NoticeLevel::Unsupported, unsupported);
    }

    /// Whether the turn is that of a prompt that was removed from the queue.
    fn take_removed(&mut self, prompt_id: Option<&str>) -> bool {
        let is_removed = prompt_id.is_some_and(|prompt_id| remove_entry(&mut self.removed, prompt_id));
        if let Some(prompt_id) = prompt_id.filter(|_| is_removed) {
            self.settle_accepted(prompt_id);
        }
        is_removed
    }

    fn mid_turn_message(&mut self, prompt_id: Option<String>, message: MidTurnMessage, source: Source) {
        let MidTurnMessage { id, blocks } = message;
        let known = |accepted: &(String, bool)| Some(&accepted.0) == id.as_ref();
        // A history does not record who sent it.
        let own = source == Source::History || self.accepted.iter().any(known);
        if let Some(id) = &id {
            self.settle_accepted(id);
            remove_entry(&mut self.queued, id);
        }
        self.events.push(AgentEvent::MidTurnMessage {
            prompt_id: prompt_id.or_else(|| self.running.clone()),
            message_id: id,
            blocks,
            own,
        });
    }

    fn recording_degraded(&mut self) {
        self.notice(
            NoticeLevel::Warning,
            "The daemon can no longer save this session; it will not be available later.",
        );
    }

    /// Reports a cancel request, unless no turn is running: the daemon also sends this when idle, and after a turn that timed out.
    fn cancel_requested(&mut self, prompt_id: Option<String>) {
        let is_running = match &self.running {
            Some(running) => prompt_id.as_ref().is_none_or(|prompt_id| prompt_id == running),
            // A turn that started before we connected.
            None => prompt_id.is_some() && prompt_id != self.ended,
        };
        if is_running {
            self.events.push(AgentEvent::CancelRequested { prompt_id });
        }
    }
}

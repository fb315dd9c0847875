//! What was delivered, so that nothing is delivered twice: within a connection, and after a restart of ours.

use alongside_protocol::chat::AgentEvent;

use super::event::{DaemonEvent, EventKind};
use super::responses::PendingPrompt;
use crate::conversation::translator::{patch_of, remove_entry};
use crate::conversation::{PermissionRequest, SessionUpdate, ToolCallPatch, Translator};
use crate::position::Delivered;

impl Translator {
    /// What was delivered and later events will repeat.
    pub(super) fn delivered(&self) -> Delivered {
        let accepted = self.accepted.iter().filter(|(_, ended)| !ended);
        let mut open: Vec<String> = self.open.keys().chain(&self.unlisted).cloned().collect();
        open.sort_unstable();
        Delivered {
            accepted: accepted.map(|(prompt_id, _)| prompt_id.clone()).collect(),
            queued: self.queued.clone(),
            running: self.running.clone(),
            ended: self.ended.clone(),
            open,
        }
    }

    /// Continues after event `last`. `history` goes beyond that event: it only serves to restore the tool calls. `open` lists the
    /// open permission requests.
    pub(super) fn resume(
        &mut self,
        delivered: Delivered,
        open: Vec<PermissionRequest>,
        history: Vec<DaemonEvent>,
        last: u64,
    ) {
        self.accepted = delivered
            .accepted
            .into_iter()
            .map(|prompt_id| (prompt_id, false))
            .collect();
        self.queued = delivered.queued;
        self.running = delivered.running;
        self.ended = delivered.ended;
        self.unlisted = delivered.open;
        for request in open {
            if remove_entry(&mut self.unlisted, &request.request_id) {
                self.open.insert(request.request_id.clone(), request);
            } else {
                self.missed.push(request);
            }
        }
        for event in history {
            let patch = match event.kind {
                EventKind::SessionUpdate(SessionUpdate::ToolCall(patch)) => patch,
                EventKind::PermissionRequest(request) => {
                    let patch = patch_of(&request.tool_call);
                    // The event has more detail than the daemon's list of open requests.
                    let listed = self.missed.iter_mut().chain(self.open.values_mut());
                    if let Some(listed) = listed.into_iter().find(|known| known.request_id == request.request_id) {
                        *listed = *request;
                    }
                    patch
                }
                _ => continue,
            };
            if event.id.is_some_and(|id| id <= last) {
                self.cards.apply(patch);
            } else if !self.cards.knows(&patch.id) {
                // Compacted from several events, some of them delivered: how the call ended was not.
                self.cards.apply(ToolCallPatch {
                    status: None,
                    output: None,
                    content: Vec::new(),
                    ..patch
                });
            }
        }
    }

    /// Replaces the open permission requests by the daemon's list.
    pub(super) fn set_open(&mut self, requests: Vec<PermissionRequest>) -> Vec<AgentEvent> {
        let gone: Vec<String> = self.open.keys().cloned().collect();
        for request_id in gone {
            if requests.iter().all(|request| request.request_id != request_id) {
                self.close(&request_id, None, false);
            }
        }
        for request in requests {
            self.show_and_open(request);
        }
        std::mem::take(&mut self.events)
    }

    /// Adds the running and the queued prompts of the daemon's list.
    pub(super) fn set_prompts(&mut self, prompts: Vec<PendingPrompt>) -> Vec<AgentEvent> {
        for prompt in prompts {
            if prompt.state == "running" {
                self.start(&prompt.prompt_id);
            } else {
                self.queue(prompt.prompt_id, prompt.text);
            }
        }
        std::mem::take(&mut self.events)
    }
}

//! What was told, so that nothing is told twice: within a connection, and by whoever goes on after a restart.

use super::{Translator, patch_of, take_out};
use crate::conversation::{PermissionRequest, SessionUpdate, ToolCallPatch};
use crate::daemon::{DaemonEvent, EventKind, PendingPrompt};
use crate::position::Told;
use alongside_protocol::chat::AgentEvent;

/// How many prompts of ours are remembered.
const MOST_ACCEPTED: usize = 64;

impl Translator {
    /// Takes note of a prompt of ours; `true` the first time.
    pub fn accept(&mut self, prompt_id: &str) -> bool {
        let is_new = self.accepted.iter().all(|(known, _)| known != prompt_id);
        if is_new {
            if self.accepted.len() == MOST_ACCEPTED {
                self.accepted.remove(0);
            }
            self.accepted.push((prompt_id.to_owned(), false));
        }
        is_new
    }

    /// What was told and will be said again.
    pub(in crate::ide) fn told(&self) -> Told {
        let accepted = self.accepted.iter().filter(|(_, ended)| !ended);
        let mut open: Vec<String> = self.open.keys().chain(&self.unlisted).cloned().collect();
        open.sort_unstable();
        Told {
            accepted: accepted.map(|(prompt_id, _)| prompt_id.clone()).collect(),
            queued: self.queued.clone(),
            running: self.running.clone(),
            ended: self.ended.clone(),
            open,
        }
    }

    /// Goes on where somebody has told this much, up to the event `last`, given what the daemon knows by now: a history that goes on
    /// beyond that event, and the approvals that are open. Nothing comes of this but what is known of the calls of tools.
    pub(in crate::ide) fn resume(
        &mut self,
        told: Told,
        open: Vec<PermissionRequest>,
        history: Vec<DaemonEvent>,
        last: u64,
    ) {
        self.accepted = told.accepted.into_iter().map(|prompt_id| (prompt_id, false)).collect();
        self.queued = told.queued;
        self.running = told.running;
        self.ended = told.ended;
        self.unlisted = told.open;
        for request in open {
            if take_out(&mut self.unlisted, &request.request_id) {
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
                    // Its event says more than the list of what is open.
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
                // Several events put together, some of which were told: how the call ended was not one of them.
                self.cards.apply(ToolCallPatch {
                    status: None,
                    output: None,
                    content: Vec::new(),
                    ..patch
                });
            }
        }
    }

    /// Takes the approvals that wait for an answer, as the daemon lists them, in place of those that are known.
    pub fn set_open(&mut self, requests: Vec<PermissionRequest>) -> Vec<AgentEvent> {
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

    /// Takes the prompts that run or wait, as the daemon lists them.
    pub fn set_prompts(&mut self, prompts: Vec<PendingPrompt>) -> Vec<AgentEvent> {
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

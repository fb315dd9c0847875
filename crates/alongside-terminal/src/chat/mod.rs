//! The chat: the conversation as it is shown, and what the user is writing.

mod endings;
mod follower;
mod items;
mod lines;
mod markdown;
mod transcript;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use alongside_core::draft::Hunk;
use alongside_protocol::chat::{Answers, PermissionRequest};
use alongside_protocol::{ChatAgent, ChatChanged, ChatPhase, ChatWrites, Texts};
use ratatui_textarea::TextArea;

pub(crate) use endings::session_end;
pub(crate) use follower::{Applied, Follower};
pub(crate) use lines::Laid;
pub(crate) use transcript::Transcript;

use crate::review::ARM_DELAY;
use crate::theme::Theme;

/// Diffs of tool calls that are remembered.
const MAX_DIFFS: usize = 64;

pub(crate) struct Chat {
    pub(crate) follower: Follower,
    pub(crate) agents: Vec<ChatAgent>,
    pub(crate) changed: ChatChanged,
    pub(crate) composer: TextArea<'static>,
    /// Whether keys go to the message box.
    pub(crate) is_writing: bool,
    /// Rows scrolled up from the end.
    pub(crate) up: usize,
    /// When each open permission request appeared.
    pub(crate) asked_at: BTreeMap<String, Duration>,
    /// Answers to the questions of a request, until all are answered.
    pub(crate) answers: BTreeMap<String, Answers>,
    /// What tool calls would change, compared by the companion.
    pub(crate) diffs: Vec<(Texts, Option<Arc<[Hunk]>>)>,
    pub(crate) laid: Laid,
    /// Messages that were sent and not acknowledged, by their ids.
    pub(crate) unsent: BTreeMap<String, String>,
    pub(crate) sent: u64,
    /// Whether tool calls are shown with their output.
    pub(crate) is_detailed: bool,
}

impl Chat {
    pub(crate) fn new() -> Self {
        Self {
            follower: Follower::default(),
            agents: Vec::new(),
            changed: ChatChanged {
                agent: None,
                phase: ChatPhase::Idle,
                writes: ChatWrites::Review,
            },
            composer: TextArea::default(),
            is_writing: true,
            up: 0,
            asked_at: BTreeMap::new(),
            answers: BTreeMap::new(),
            diffs: Vec::new(),
            laid: Laid::default(),
            unsent: BTreeMap::new(),
            sent: 0,
            is_detailed: false,
        }
    }

    pub(crate) fn shown(&self) -> &Transcript {
        &self.follower.shown
    }

    pub(crate) fn typed(&self) -> String {
        self.composer.lines().join("\n")
    }

    /// The oldest open permission request.
    pub(crate) fn asked(&self) -> Option<&PermissionRequest> {
        self.shown().open_approvals().next().map(|approval| &approval.request)
    }

    pub(crate) fn is_armed(&self, request: &str, now: Duration) -> bool {
        self.asked_at.get(request).is_some_and(|at| now >= *at + ARM_DELAY)
    }

    /// Records when requests appeared, and forgets closed ones.
    pub(crate) fn note_requests(&mut self, now: Duration) {
        let open: Vec<String> = self
            .shown()
            .open_approvals()
            .map(|open| open.request.request_id.clone())
            .collect();
        self.asked_at.retain(|request, _| open.contains(request));
        self.answers.retain(|request, _| open.contains(request));
        for request in open {
            self.asked_at.entry(request).or_insert(now);
        }
    }

    pub(crate) fn next_tick(&self, now: Duration) -> Option<Duration> {
        self.asked_at
            .values()
            .map(|at| *at + ARM_DELAY)
            .filter(|at| *at > now)
            .min()
    }

    /// Diffs that are shown and have not been asked for.
    pub(crate) fn missing_diffs(&mut self) -> Vec<Texts> {
        let wanted = self.shown().diffs();
        let mut missing = Vec::new();
        for texts in wanted {
            if self.diffs.iter().any(|(known, _)| *known == texts) {
                continue;
            }
            if self.diffs.len() >= MAX_DIFFS {
                self.diffs.remove(0);
            }
            self.diffs.push((texts.clone(), None));
            missing.push(texts);
        }
        missing
    }

    pub(crate) fn compared(&mut self, texts: &Texts, hunks: Vec<Hunk>) {
        if let Some((_, known)) = self.diffs.iter_mut().find(|(known, _)| known == texts) {
            *known = Some(hunks.into());
            self.laid.forget();
        }
    }

    /// Lays the conversation out for a width.
    pub(crate) fn lay_out(&mut self, width: u16, theme: Theme) {
        let mut laid = std::mem::take(&mut self.laid);
        laid.update(self, width, theme);
        self.laid = laid;
    }

    /// Whether a message can be sent.
    pub(crate) fn is_reachable(&self) -> bool {
        matches!(self.changed.phase, ChatPhase::Connected | ChatPhase::Interrupted)
    }
}

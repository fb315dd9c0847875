//! What the chat shows of a conversation, folded from the companion's events by the page's rules (`web/src/chat/transcript.ts`). The tests
//! of both read the same recordings.

use std::sync::Arc;

use alongside_protocol::Texts;
use alongside_protocol::chat::{
    AgentEvent, ConnectedSession, ContentBlock, ModelInfo, Models, Modes, NoticeLevel, PermissionRequest, PlanEntry,
    TokenUsage, ToolCall, ToolContent, ToolStatus, TurnEnd,
};

use super::endings::{turn_failed, turn_stopped};
use super::items::{Approval, Closed, Item, Level, QueuedPrompt, STOPPED, Turn};

#[derive(Clone, Debug, Default)]
pub(crate) struct Transcript {
    pub(crate) session: Option<ConnectedSession>,
    /// Shared, so that what is laid out is recognized.
    pub(crate) items: Vec<Arc<Item>>,
    pub(crate) queue: Vec<QueuedPrompt>,
    /// The running turn.
    pub(crate) turn: Option<Turn>,
    pub(crate) plan: Vec<PlanEntry>,
    pub(crate) models: Models,
    pub(crate) modes: Modes,
    pub(crate) context: Option<(u64, u64)>,
    pub(crate) tokens: Option<TokenUsage>,
    pub(crate) title: String,
    pub(crate) suggestion: String,
    pub(crate) interrupted: Option<String>,
    /// Why the session ended.
    pub(crate) over: Option<String>,
    /// Requests that were open before the history that is being replayed.
    asked: Vec<Approval>,
    is_replaying: bool,
}

impl Transcript {
    /// Open permission requests, oldest first.
    pub(crate) fn open_approvals(&self) -> impl Iterator<Item = &Approval> {
        self.items.iter().filter_map(|item| item.open_approval())
    }

    /// What open and finished tool calls would change.
    pub(crate) fn diffs(&self) -> Vec<Texts> {
        let recent = self.items.iter().rev().take(200);
        let calls = recent.filter_map(|item| match &**item {
            Item::Tool { call, .. } => Some(call),
            _ => None,
        });
        let contents = calls.flat_map(|call| &call.content);
        let diffs = contents.filter_map(|content| match content {
            ToolContent::Diff { old_text, new_text, .. } => Some(texts(old_text.as_deref(), new_text)),
            _ => None,
        });
        diffs.take(32).collect()
    }

    /// The name of the model in use.
    pub(crate) fn model(&self) -> Option<&str> {
        let current = self.models.current.as_deref()?;
        let known = self
            .models
            .available
            .iter()
            .find(|model: &&ModelInfo| model.id == current);
        Some(known.map_or(current, |model| model.name.as_str()))
    }

    pub(crate) fn fold(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Connected(session) => {
                self.session = Some(session.clone());
                self.interrupted = None;
                self.over = None;
            }
            AgentEvent::HistoryStart { .. } => {
                self.asked = self.open_approvals().cloned().collect();
                self.items.clear();
                self.queue.clear();
                self.turn = None;
                self.plan.clear();
                self.suggestion.clear();
                self.is_replaying = true;
            }
            AgentEvent::HistoryEnd => self.replayed(),
            AgentEvent::PromptAccepted { prompt_id, text } => {
                self.suggestion.clear();
                self.push(own_message(prompt_id, text));
            }
            AgentEvent::UserMessage { prompt_id, content } => {
                self.suggestion.clear();
                self.user_piece(prompt_id.as_deref(), content);
            }
            AgentEvent::MidTurnMessage {
                message_id,
                blocks,
                own,
                ..
            } => self.mid_turn(message_id.as_deref(), blocks, *own),
            AgentEvent::Rewound { turn } => self.rewound(*turn),
            AgentEvent::TurnStarted { prompt_id } => {
                self.unqueue(prompt_id, false);
                self.turn = Some(Turn {
                    prompt: Some(prompt_id.clone()),
                    is_cancelling: false,
                });
            }
            AgentEvent::AssistantChunk { prompt_id, content } => self.piece(false, prompt_id.as_ref(), content),
            AgentEvent::ThinkingChunk { prompt_id, content } => self.piece(true, prompt_id.as_ref(), content),
            AgentEvent::ToolCall { call, .. } => self.card(call),
            AgentEvent::Plan { entries } => self.plan.clone_from(entries),
            AgentEvent::ApprovalOpened { request } => self.opened(request),
            AgentEvent::ApprovalProgress {
                request_id,
                received,
                needed,
            } => self.approval(request_id, |approval| approval.votes = Some((*received, *needed))),
            AgentEvent::ApprovalClosed {
                request_id,
                option_id,
                own,
            } => self.approval(request_id, |approval| {
                approval.closed.get_or_insert_with(|| Closed::Decided {
                    option: option_id.clone(),
                    own: *own,
                });
            }),
            AgentEvent::CancelRequested { .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.is_cancelling = true;
                }
            }
            AgentEvent::TurnEnded { prompt_id, end } => self.ended(prompt_id.as_deref(), end),
            AgentEvent::PromptQueued { prompt_id, text } => self.queued(prompt_id, text),
            AgentEvent::PromptUnqueued { prompt_id, removed } => self.unqueue(prompt_id, *removed),
            AgentEvent::Models(models) => self.models = models.clone(),
            AgentEvent::Modes(modes) => self.modes = modes.clone(),
            AgentEvent::ModelChanged { model_id } => self.models.current = Some(model_id.clone()),
            AgentEvent::ModelChangeFailed { model_id, message } => {
                self.notice(
                    Level::Warning,
                    format!("Could not switch to model {model_id}: {message}"),
                );
            }
            AgentEvent::ModeChanged { mode_id } => self.modes.current = Some(mode_id.clone()),
            // Not offered while typing.
            AgentEvent::Commands { .. } => {}
            AgentEvent::ContextUsage { used, size } => self.context = Some((*used, *size)),
            AgentEvent::TokenUsage(tokens) => self.tokens = Some(*tokens),
            AgentEvent::Title { title } => self.title.clone_from(title),
            AgentEvent::Suggestion { text } => self.suggestion.clone_from(text),
            AgentEvent::Notice { level, message } => {
                let level = match level {
                    NoticeLevel::Information => Level::Information,
                    NoticeLevel::Warning => Level::Warning,
                    NoticeLevel::Unsupported => Level::Unsupported,
                };
                self.notice(level, message.clone());
            }
            AgentEvent::Interrupted { reason, .. } => self.interrupted = Some(reason.clone()),
            AgentEvent::Reconnected => self.interrupted = None,
            AgentEvent::Disconnected { reason, .. } => {
                self.stop_unfinished();
                self.queue.clear();
                self.turn = None;
                self.suggestion.clear();
                self.interrupted = None;
                self.over = Some(reason.clone());
            }
        }
    }

    fn push(&mut self, item: Item) {
        self.items.push(Arc::new(item));
    }

    fn notice(&mut self, level: Level, message: String) {
        self.push(Item::Notice { level, message });
    }

    /// Appends to the last item if it is of the same kind and turn, or starts another.
    fn piece(&mut self, is_thinking: bool, id: Option<&String>, content: &ContentBlock) {
        let Some(piece) = content.as_text() else {
            self.push(Item::Block(content.clone()));
            return;
        };
        if piece.is_empty() {
            return;
        }
        if let Some(last) = self.items.last_mut() {
            let continues = match &**last {
                Item::Answer { prompt, .. } => !is_thinking && prompt.as_ref() == id,
                Item::Thinking { prompt, .. } => is_thinking && prompt.as_ref() == id,
                _ => false,
            };
            if continues {
                if let Item::Answer { text, .. } | Item::Thinking { text, .. } = Arc::make_mut(last) {
                    text.push_str(piece);
                }
                return;
            }
        }
        let (prompt, text) = (id.cloned(), piece.to_owned());
        self.push(if is_thinking {
            Item::Thinking { prompt, text }
        } else {
            Item::Answer { prompt, text }
        });
    }

    /// A part of a message: with an id it continues the last message, without one only what is right before it.
    fn user_piece(&mut self, id: Option<&str>, content: &ContentBlock) {
        let piece = content.as_text();
        let index = self.items.iter().rposition(|item| item.starts_turn());
        let last = self.items.len().saturating_sub(1);
        if let Some(index) = index
            && let Item::User { prompt, .. } = &*self.items[index]
            && prompt.as_deref() == id
            && (id.is_some() || index == last)
        {
            if let Item::User { text, others, .. } = Arc::make_mut(&mut self.items[index]) {
                match piece {
                    Some(piece) => text.push_str(piece),
                    None => others.push(content.clone()),
                }
            }
            return;
        }
        self.push(Item::User {
            prompt: id.map(str::to_owned),
            text: piece.unwrap_or_default().to_owned(),
            others: if piece.is_none() {
                vec![content.clone()]
            } else {
                Vec::new()
            },
            // History does not record who sent a message. A live message that is not ours was sent from elsewhere.
            own: self.is_replaying,
            mid_turn: false,
        });
    }

    /// The agent received a message during a turn: it is shown here, and no longer in the queue or where it was accepted.
    fn mid_turn(&mut self, id: Option<&str>, blocks: &[ContentBlock], own: bool) {
        self.queue.retain(|queued| Some(queued.id.as_str()) != id);
        self.remove_message(id);
        let text = blocks.iter().filter_map(ContentBlock::as_text).collect();
        self.push(Item::User {
            prompt: id.map(str::to_owned),
            text,
            others: blocks
                .iter()
                .filter(|block| block.as_text().is_none())
                .cloned()
                .collect(),
            own,
            mid_turn: true,
        });
    }

    /// Removes a message. An answer that it interrupted is one again.
    fn remove_message(&mut self, id: Option<&str>) {
        let Some(index) = self.items.iter().position(|item| item.is_message(id)) else {
            return;
        };
        self.items.remove(index);
        let Some(before) = index.checked_sub(1) else { return };
        let joined = match (
            self.items.get(before).map(|item| &**item),
            self.items.get(index).map(|item| &**item),
        ) {
            (Some(Item::Answer { prompt, .. }), Some(Item::Answer { prompt: same, text }))
            | (Some(Item::Thinking { prompt, .. }), Some(Item::Thinking { prompt: same, text }))
                if prompt == same =>
            {
                text.clone()
            }
            _ => return,
        };
        if let Item::Answer { text, .. } | Item::Thinking { text, .. } = Arc::make_mut(&mut self.items[before]) {
            text.push_str(&joined);
        }
        self.items.remove(index);
    }

    fn rewound(&mut self, turn: usize) {
        let starts = self.items.iter().enumerate().filter(|(_, item)| item.starts_turn());
        let Some(first) = starts.map(|(index, _)| index).nth(turn) else {
            return;
        };
        self.items.truncate(first);
        self.stop_unfinished();
        self.turn = None;
        self.plan.clear();
        self.suggestion.clear();
    }

    /// The last tool call that matches, where most events belong.
    fn find_card(&self, matches: impl Fn(&ToolCall, Option<&Approval>) -> bool) -> Option<usize> {
        self.items.iter().rposition(|item| match &**item {
            Item::Tool { call, approval } => matches(call, approval.as_ref()),
            _ => false,
        })
    }

    fn card(&mut self, newer: &ToolCall) {
        let Some(index) = self.find_card(|call, _| call.id == newer.id) else {
            self.push(Item::Tool {
                call: newer.clone(),
                approval: None,
            });
            return;
        };
        if let Item::Tool { call, .. } = Arc::make_mut(&mut self.items[index]) {
            *call = completed(newer, call);
        }
    }

    /// An approval belongs to the tool call that it is about.
    fn opened(&mut self, request: &PermissionRequest) {
        let fresh = Approval {
            request: request.clone(),
            votes: None,
            closed: None,
        };
        let Some(index) = self.find_card(|call, _| call.id == request.tool_call.id) else {
            self.push(Item::Tool {
                call: request.tool_call.clone(),
                approval: Some(fresh),
            });
            return;
        };
        let Item::Tool { call, approval } = Arc::make_mut(&mut self.items[index]) else {
            return;
        };
        if approval
            .as_ref()
            .is_some_and(|known| known.request.request_id == request.request_id)
        {
            return;
        }
        let (status, output) = (call.status.clone(), call.output.clone());
        *call = ToolCall {
            status,
            output,
            ..completed(&request.tool_call, call)
        };
        *approval = Some(fresh);
    }

    fn approval(&mut self, request: &str, change: impl FnOnce(&mut Approval)) {
        let is_it = |approval: Option<&Approval>| approval.is_some_and(|known| known.request.request_id == request);
        if let Some(index) = self.find_card(|_, approval| is_it(approval))
            && let Item::Tool {
                approval: Some(approval),
                ..
            } = Arc::make_mut(&mut self.items[index])
        {
            change(approval);
        }
    }

    /// Queued prompts are shown in the queue, not in the conversation.
    fn queued(&mut self, id: &str, text: &str) {
        if self.queue.iter().any(|known| known.id == id) {
            return;
        }
        let own = self
            .items
            .iter()
            .any(|item| item.is_message(Some(id)) && matches!(&**item, Item::User { own: true, .. }));
        self.remove_message(Some(id));
        self.queue.push(QueuedPrompt {
            id: id.to_owned(),
            text: text.to_owned(),
            own,
        });
    }

    fn unqueue(&mut self, id: &str, removed: bool) {
        let Some(index) = self.queue.iter().position(|known| known.id == id) else {
            return;
        };
        let waited = self.queue.remove(index);
        // A prompt from elsewhere arrives as a message when its turn starts.
        if !removed && waited.own {
            self.push(own_message(id, &waited.text));
        }
    }

    fn ended(&mut self, id: Option<&str>, end: &TurnEnd) {
        let running = self.turn.as_ref().and_then(|turn| turn.prompt.as_deref());
        if self.turn.is_none() || id.is_none() || running.is_none() || running == id {
            self.turn = None;
            self.stop_unfinished();
        }
        match end {
            TurnEnd::Failed { message, .. } => self.notice(Level::Problem, turn_failed(message)),
            TurnEnd::Completed { stop_reason } | TurnEnd::Cancelled { stop_reason } => {
                if stop_reason != "end_turn" && !stop_reason.is_empty() {
                    self.notice(Level::Information, turn_stopped(stop_reason).to_owned());
                }
            }
        }
    }

    /// No turn is running: what is unfinished stays so, and open requests can no longer be answered.
    fn stop_unfinished(&mut self) {
        for item in &mut self.items {
            let Item::Tool { call, .. } = &**item else { continue };
            let is_unfinished = matches!(call.status, ToolStatus::Pending | ToolStatus::InProgress);
            if !is_unfinished && item.open_approval().is_none() {
                continue;
            }
            if let Item::Tool { call, approval } = Arc::make_mut(item) {
                if is_unfinished {
                    call.status = ToolStatus::Other(STOPPED.to_owned());
                }
                if let Some(approval) = approval {
                    approval.closed.get_or_insert(Closed::Expired);
                }
            }
        }
    }

    /// A history replaces the conversation: requests that were open before it, and are not in it, expired.
    fn replayed(&mut self) {
        for lost in std::mem::take(&mut self.asked) {
            let Some(index) = self.find_card(|call, _| call.id == lost.request.tool_call.id) else {
                continue;
            };
            if let Item::Tool { approval, .. } = Arc::make_mut(&mut self.items[index])
                && approval.is_none()
            {
                *approval = Some(Approval {
                    closed: Some(Closed::Expired),
                    ..lost
                });
            }
        }
        if self.turn.is_none() {
            self.stop_unfinished();
        }
        self.is_replaying = false;
    }
}

pub(crate) fn texts(old: Option<&str>, new: &str) -> Texts {
    Texts {
        base: old.unwrap_or_default().into(),
        proposal: new.into(),
    }
}

fn own_message(id: &str, text: &str) -> Item {
    Item::User {
        prompt: Some(id.to_owned()),
        text: text.to_owned(),
        others: Vec::new(),
        own: true,
        mid_turn: false,
    }
}

/// The newer state of a call, with fields that only the older one had.
fn completed(newer: &ToolCall, older: &ToolCall) -> ToolCall {
    let or = |newer: &str, older: &str| {
        if newer.is_empty() {
            older.to_owned()
        } else {
            newer.to_owned()
        }
    };
    ToolCall {
        title: or(&newer.title, &older.title),
        kind: or(&newer.kind, &older.kind),
        tool_name: newer.tool_name.clone().or_else(|| older.tool_name.clone()),
        input: if newer.input.is_null() {
            older.input.clone()
        } else {
            newer.input.clone()
        },
        locations: if newer.locations.is_empty() {
            older.locations.clone()
        } else {
            newer.locations.clone()
        },
        content: if newer.content.is_empty() {
            older.content.clone()
        } else {
            newer.content.clone()
        },
        ..newer.clone()
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    /// The recordings that the tests of the page and of the companion read.
    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../alongside-companion/tests/logs");

    #[derive(Deserialize)]
    struct Recording {
        about: String,
        events: Vec<AgentEvent>,
        log: Vec<AgentEvent>,
        shown: Value,
    }

    fn summary(events: &[AgentEvent]) -> Value {
        let mut shown = Transcript::default();
        for event in events {
            shown.fold(event);
        }
        let said = |item: &Arc<Item>| match &**item {
            Item::User { text, .. } => format!("user {text}"),
            Item::Answer { text, .. } => format!("answer {text}"),
            Item::Thinking { .. } => "thinking".to_owned(),
            Item::Block(_) => "block".to_owned(),
            Item::Tool { call, .. } => format!("tool {}", call.id),
            Item::Notice { .. } => "notice".to_owned(),
        };
        json!({
            "said": shown.items.iter().map(said).collect::<Vec<_>>(),
            "running": shown.turn.is_some(),
            "approvals": shown.open_approvals().map(|open| open.request.request_id.clone()).collect::<Vec<_>>(),
            "queue": shown.queue.iter().map(|queued| queued.id.clone()).collect::<Vec<_>>(),
            "over": shown.over.is_some(),
            "interrupted": shown.interrupted.is_some(),
        })
    }

    #[test]
    fn recorded_logs_are_shown_as_on_the_page() {
        let mut count = 0;
        for entry in std::fs::read_dir(FOLDER).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            let recording: Recording = serde_json::from_str(&text).unwrap();
            assert_eq!(summary(&recording.events), recording.shown, "{}", recording.about);
            assert_eq!(summary(&recording.log), recording.shown, "{}", recording.about);
            count += 1;
        }
        assert!(count > 0);
    }
}

//! The conversation as late front ends see it, as short as it can be without a visible difference.
//!
//! A front end that connects later gets the log and shows it as if it had been there all the time. So the log keeps the events
//! themselves and drops those that no longer have an effect:
//!
//! | event | what is kept |
//! |---|---|
//! | consecutive chunks of an answer or a thought | one chunk with all of the text |
//! | a tool call | the latest, in the place of the first |
//! | models, modes, commands, usage, title, plan, suggestion | the latest |
//! | a permission request | nothing once it is closed: its tool call has the result |
//! | a queued prompt | in the queue until it starts, then in its place in the conversation; nothing once it is removed |
//! | a message during a turn | where the agent received it, no longer where it was accepted |
//! | a rewind | nothing, and nothing of the removed turns |
//! | a request to cancel a turn | nothing once the turn has ended |
//! | an interruption | nothing once the connection is back |
//! | the start of a history | what the history does not replace: the session, its models, modes, commands, usage and title |
//! | anything else | all of it |
//!
//! The log is bounded: when it is full, the oldest turns are dropped and a notice says so.

use std::mem::discriminant;
use std::sync::Arc;

use alongside_core::SessionId;
use alongside_protocol::chat::{
    AgentEvent, ConnectedSession, ContentBlock, EARLIER_MESSAGES_DROPPED, NoticeLevel, TurnEnd, turn_starts,
};
use serde::Serialize;

/// As JSON.
const MAX_BYTES: usize = 8 * 1024 * 1024;
const MAX_ENTRIES: usize = 20_000;
/// A longer chunk of text is not extended.
const MAX_CHUNK_BYTES: usize = 64 * 1024;

/// How much of a queued prompt a notice repeats.
const MAX_QUOTED_CHARS: usize = 2000;

/// The log of one conversation.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    entries: Vec<Entry>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    event: Arc<AgentEvent>,
    bytes: usize,
}

impl Log {
    /// The kept events, in order.
    pub(super) fn events(&self) -> impl DoubleEndedIterator<Item = &Arc<AgentEvent>> {
        self.entries.iter().map(|entry| &entry.event)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The session, unless its connection has ended.
    pub(super) fn connected(&self) -> Option<&ConnectedSession> {
        self.events().rev().find_map(|event| match &**event {
            AgentEvent::Connected(session) => Some(Some(session)),
            AgentEvent::Disconnected { .. } => Some(None),
            _ => None,
        })?
    }

    /// The id of the session that the log belongs to.
    pub(super) fn session(&self) -> Option<&SessionId> {
        self.events().find_map(|event| match &**event {
            AgentEvent::Connected(session) => Some(&session.session_id),
            _ => None,
        })
    }

    pub(super) fn has_conversation(&self) -> bool {
        self.events().any(|event| Scope::of(event) == Scope::Conversation)
    }

    /// The conversation itself, without anything pending.
    pub(super) fn conversation(&self) -> Vec<AgentEvent> {
        let said = self.events().filter(|event| Scope::of(event) == Scope::Conversation);
        said.map(|event| AgentEvent::clone(event)).collect()
    }

    pub(super) fn push(&mut self, event: Arc<AgentEvent>) {
        match &*event {
            AgentEvent::AssistantChunk { .. } | AgentEvent::ThinkingChunk { .. } => {
                if !self.extend_chunk(&event) {
                    self.append(event);
                }
            }
            AgentEvent::ToolCall { .. } => self.put_tool_call(event),
            AgentEvent::Connected(_) => {
                self.remove(|event| {
                    matches!(
                        event,
                        AgentEvent::Connected(_) | AgentEvent::Interrupted { .. } | AgentEvent::Disconnected { .. }
                    )
                });
                self.append(event);
            }
            AgentEvent::Disconnected { .. } => {
                self.remove(|event| matches!(event, AgentEvent::Interrupted { .. } | AgentEvent::Disconnected { .. }));
                self.append(event);
            }
            AgentEvent::Reconnected => self.remove(|event| matches!(event, AgentEvent::Interrupted { .. })),
            AgentEvent::HistoryStart { .. } => {
                self.remove(|event| Scope::of(event) != Scope::Session);
                self.append(event);
            }
            AgentEvent::Models(_) => {
                self.remove(|event| matches!(event, AgentEvent::Models(_) | AgentEvent::ModelChanged { .. }));
                self.append(event);
            }
            AgentEvent::Modes(_) => {
                self.remove(|event| matches!(event, AgentEvent::Modes(_) | AgentEvent::ModeChanged { .. }));
                self.append(event);
            }
            AgentEvent::Interrupted { .. }
            | AgentEvent::ModelChanged { .. }
            | AgentEvent::ModeChanged { .. }
            | AgentEvent::Commands { .. }
            | AgentEvent::ContextUsage { .. }
            | AgentEvent::TokenUsage(_)
            | AgentEvent::Title { .. }
            | AgentEvent::Plan { .. }
            | AgentEvent::Suggestion { .. } => {
                let own = discriminant(&*event);
                self.remove(|event| discriminant(event) == own);
                self.append(event);
            }
            AgentEvent::ApprovalProgress { request_id: id, .. } => {
                self.remove(
                    |event| matches!(event, AgentEvent::ApprovalProgress { request_id, .. } if request_id == id),
                );
                self.append(event);
            }
            AgentEvent::ApprovalClosed { request_id: id, .. } => self.remove(|event| match event {
                AgentEvent::ApprovalOpened { request } => request.request_id == *id,
                AgentEvent::ApprovalProgress { request_id, .. } => request_id == id,
                _ => false,
            }),
            AgentEvent::PromptUnqueued { prompt_id, removed } => self.unqueue(prompt_id, *removed),
            AgentEvent::TurnStarted { prompt_id } => {
                self.unqueue(prompt_id, false);
                self.append(event);
            }
            AgentEvent::MidTurnMessage { message_id, .. } => {
                if let Some(id) = message_id {
                    self.remove(|event| is_queued(event, id) || is_accepted(event, id));
                }
                self.append(event);
            }
            AgentEvent::Rewound { turn } => self.rewind(*turn),
            AgentEvent::TurnEnded { prompt_id: ended, .. } => {
                self.remove(|event| match event {
                    AgentEvent::CancelRequested { prompt_id } => {
                        ended.is_none() || prompt_id.is_none() || prompt_id == ended
                    }
                    _ => false,
                });
                self.append(event);
            }
            AgentEvent::HistoryEnd
            | AgentEvent::PromptAccepted { .. }
            | AgentEvent::UserMessage { .. }
            | AgentEvent::ApprovalOpened { .. }
            | AgentEvent::CancelRequested { .. }
            | AgentEvent::PromptQueued { .. }
            | AgentEvent::ModelChangeFailed { .. }
            | AgentEvent::Notice { .. } => self.append(event),
        }
        if self.bytes > MAX_BYTES || self.entries.len() > MAX_ENTRIES {
            self.shorten(MAX_BYTES / 4 * 3, MAX_ENTRIES / 4 * 3);
        }
    }

    /// Where turns start, as indices of events.
    fn turn_starts(&self) -> Vec<usize> {
        turn_starts(self.events().map(|event| &**event))
    }

    pub(super) fn turns(&self) -> usize {
        self.turn_starts().len()
    }

    /// Whether the log has the conversation from its first message on.
    pub(super) fn is_complete(&self) -> bool {
        let is_gap = |event: &Arc<AgentEvent>| matches!(&**event, AgentEvent::Notice { message, .. } if message == EARLIER_MESSAGES_DROPPED);
        !self.events().any(is_gap)
    }

    /// A prompt leaves the queue: it is shown where its turn starts, or was removed.
    fn unqueue(&mut self, id: &str, removed: bool) {
        if !self.events().any(|event| is_queued(event, id)) {
            return;
        }
        let accepted = self.events().rev().find(|event| is_accepted(event, id)).cloned();
        self.remove(|event| is_queued(event, id) || is_accepted(event, id));
        if let Some(accepted) = accepted.filter(|_| !removed) {
            self.append(accepted);
        }
    }

    /// Drops the turns from this one on, with everything pending.
    fn rewind(&mut self, turn: usize) {
        let Some(&start) = self.turn_starts().get(turn) else {
            return;
        };
        self.retain_indexed(|index, event| match event {
            AgentEvent::HistoryStart { .. } | AgentEvent::HistoryEnd | AgentEvent::PromptQueued { .. } => true,
            // Of the last turn, wherever the log has it.
            AgentEvent::Plan { .. } => false,
            event => match Scope::of(event) {
                Scope::Session => true,
                Scope::Conversation => index < start,
                // The agent is idle.
                Scope::Transient => false,
            },
        });
    }

    /// The events that close everything pending, because the connection ended without them.
    pub(super) fn settle(&self, reason: &str) -> Vec<AgentEvent> {
        let mut settled = Vec::new();
        for event in self.events() {
            match &**event {
                AgentEvent::ApprovalOpened { request } => settled.push(AgentEvent::ApprovalClosed {
                    request_id: request.request_id.clone(),
                    option_id: None,
                    own: false,
                }),
                AgentEvent::PromptQueued { prompt_id, text } => {
                    settled.push(AgentEvent::PromptUnqueued {
                        prompt_id: prompt_id.clone(),
                        removed: true,
                    });
                    // What the user wrote must not vanish.
                    let quoted: String = text.chars().take(MAX_QUOTED_CHARS).collect();
                    settled.push(AgentEvent::Notice {
                        level: NoticeLevel::Warning,
                        message: format!("This message was queued and not sent: \u{201c}{quoted}\u{201d}"),
                    });
                }
                _ => {}
            }
        }
        let unfinished = self.running().into_iter().chain(self.waiting());
        settled.extend(unfinished.map(|id| AgentEvent::TurnEnded {
            prompt_id: Some(id.to_owned()),
            end: TurnEnd::Failed {
                message: reason.to_owned(),
                code: None,
            },
        }));
        settled
    }

    /// Whether a turn has started and not ended.
    pub(super) fn is_running(&self) -> bool {
        !self.running().is_empty()
    }

    /// The turns that have started and not ended.
    fn running(&self) -> Vec<&str> {
        let mut running = Vec::new();
        for event in self.events() {
            match &**event {
                AgentEvent::TurnStarted { prompt_id } => running.push(prompt_id.as_str()),
                AgentEvent::TurnEnded { prompt_id: None, .. } => running.clear(),
                AgentEvent::TurnEnded {
                    prompt_id: Some(ended), ..
                } => running.retain(|id| id != ended),
                _ => {}
            }
        }
        running
    }

    /// The accepted prompts whose turn has not started, without those in the queue: a kill may come between the two events.
    fn waiting(&self) -> Vec<&str> {
        let mut waiting = Vec::new();
        for event in self.events() {
            match &**event {
                AgentEvent::PromptAccepted { prompt_id, .. } => waiting.push(prompt_id.as_str()),
                AgentEvent::PromptQueued { prompt_id, .. }
                | AgentEvent::TurnStarted { prompt_id }
                | AgentEvent::TurnEnded {
                    prompt_id: Some(prompt_id),
                    ..
                } => waiting.retain(|id| id != prompt_id),
                // The prompts in a history have been answered.
                AgentEvent::TurnEnded { prompt_id: None, .. } | AgentEvent::HistoryEnd => waiting.clear(),
                _ => {}
            }
        }
        waiting
    }

    fn append(&mut self, event: Arc<AgentEvent>) {
        let bytes = json_len(&*event);
        self.bytes += bytes;
        self.entries.push(Entry { event, bytes });
    }

    fn remove(&mut self, is_obsolete: impl Fn(&AgentEvent) -> bool) {
        self.retain_indexed(|_, event| !is_obsolete(event));
    }

    fn retain_indexed(&mut self, keep: impl Fn(usize, &AgentEvent) -> bool) {
        let (mut index, mut removed) = (0, 0);
        self.entries.retain(|entry| {
            let kept = keep(index, &entry.event);
            index += 1;
            if !kept {
                removed += entry.bytes;
            }
            kept
        });
        self.bytes -= removed;
    }

    /// Appends text to the chunk that it continues, if there is one. Events about the session may be in between.
    fn extend_chunk(&mut self, event: &AgentEvent) -> bool {
        let in_conversation = |entry: &&mut Entry| Scope::of(&entry.event) != Scope::Session;
        let (Some(last), Some(more)) = (self.entries.iter_mut().rev().find(in_conversation), chunk_text(event)) else {
            return false;
        };
        let continues = discriminant(&*last.event) == discriminant(event)
            && last.event.prompt_id() == event.prompt_id()
            && chunk_text(&last.event).is_some()
            && last.bytes < MAX_CHUNK_BYTES;
        if !continues {
            return false;
        }
        if let AgentEvent::AssistantChunk { content, .. } | AgentEvent::ThinkingChunk { content, .. } =
            Arc::make_mut(&mut last.event)
            && let ContentBlock::Text(text) = content
        {
            text.push_str(more);
        }
        // Without the quotes.
        let bytes = json_len(more).saturating_sub(2);
        last.bytes += bytes;
        self.bytes += bytes;
        true
    }

    fn put_tool_call(&mut self, event: Arc<AgentEvent>) {
        let id = |event: &AgentEvent| match event {
            AgentEvent::ToolCall { call, .. } => Some(call.id.clone()),
            _ => None,
        };
        let own = id(&event);
        // From the end: a call that changes is a recent one.
        let Some(entry) = self.entries.iter_mut().rev().find(|entry| id(&entry.event) == own) else {
            return self.append(event);
        };
        let bytes = json_len(&*event);
        self.bytes = self.bytes - entry.bytes + bytes;
        *entry = Entry { event, bytes };
    }

    /// Drops the oldest events, whole turns where possible, and says so.
    fn shorten(&mut self, bytes: usize, entries: usize) {
        let running: Vec<String> = self.running().into_iter().map(str::to_owned).collect();
        let needed = |event: &AgentEvent| {
            Scope::of(event) == Scope::Session
                || match event {
                    AgentEvent::ApprovalOpened { .. }
                    | AgentEvent::PromptQueued { .. }
                    | AgentEvent::HistoryStart { .. }
                    | AgentEvent::HistoryEnd => true,
                    AgentEvent::TurnStarted { prompt_id } => running.contains(prompt_id),
                    _ => false,
                }
        };
        let (mut left_bytes, mut left_entries) = (self.bytes, self.entries.len());
        let mut end = 0;
        for entry in &self.entries {
            if left_bytes <= bytes && left_entries <= entries {
                break;
            }
            if !needed(&entry.event) {
                left_bytes -= entry.bytes;
                left_entries -= 1;
            }
            end += 1;
        }
        let starts_turn = |entry: &Entry| {
            matches!(
                *entry.event,
                AgentEvent::PromptAccepted { .. } | AgentEvent::UserMessage { .. }
            )
        };
        let turn = self.entries[end..].iter().position(starts_turn).unwrap_or_default();
        let end = end + turn;
        self.retain_indexed(|index, event| index >= end || needed(event));
        // After the event that makes front ends clear what they show.
        let history = self
            .entries
            .iter()
            .rposition(|entry| matches!(*entry.event, AgentEvent::HistoryStart { .. }));
        let index = history.map_or(0, |history| history + 1);
        let event = Arc::new(AgentEvent::Notice {
            level: NoticeLevel::Information,
            message: EARLIER_MESSAGES_DROPPED.to_owned(),
        });
        let bytes = json_len(&*event);
        self.bytes += bytes;
        self.entries.insert(index, Entry { event, bytes });
    }
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The session. A history does not replace it.
    Session,
    /// What was said and done.
    Conversation,
    /// Something that is pending, or the frame of a history.
    Transient,
}

impl Scope {
    pub(super) fn of(event: &AgentEvent) -> Self {
        match event {
            AgentEvent::Connected(_)
            | AgentEvent::Interrupted { .. }
            | AgentEvent::Disconnected { .. }
            | AgentEvent::Models(_)
            | AgentEvent::ModelChanged { .. }
            | AgentEvent::Modes(_)
            | AgentEvent::ModeChanged { .. }
            | AgentEvent::Commands { .. }
            | AgentEvent::ContextUsage { .. }
            | AgentEvent::TokenUsage(_)
            | AgentEvent::Title { .. } => Self::Session,
            AgentEvent::HistoryStart { .. }
            | AgentEvent::HistoryEnd
            | AgentEvent::ApprovalOpened { .. }
            | AgentEvent::ApprovalProgress { .. }
            | AgentEvent::PromptQueued { .. }
            | AgentEvent::CancelRequested { .. }
            | AgentEvent::Suggestion { .. } => Self::Transient,
            AgentEvent::PromptAccepted { .. }
            | AgentEvent::UserMessage { .. }
            | AgentEvent::MidTurnMessage { .. }
            | AgentEvent::Rewound { .. }
            | AgentEvent::TurnStarted { .. }
            | AgentEvent::AssistantChunk { .. }
            | AgentEvent::ThinkingChunk { .. }
            | AgentEvent::ToolCall { .. }
            | AgentEvent::Plan { .. }
            | AgentEvent::ApprovalClosed { .. }
            | AgentEvent::TurnEnded { .. }
            | AgentEvent::PromptUnqueued { .. }
            | AgentEvent::ModelChangeFailed { .. }
            | AgentEvent::Notice { .. }
            | AgentEvent::Reconnected => Self::Conversation,
        }
    }
}

fn is_queued(event: &AgentEvent, id: &str) -> bool {
    matches!(event, AgentEvent::PromptQueued { prompt_id, .. } if prompt_id == id)
}

fn is_accepted(event: &AgentEvent, id: &str) -> bool {
    matches!(event, AgentEvent::PromptAccepted { prompt_id, .. } if prompt_id == id)
}

fn chunk_text(event: &AgentEvent) -> Option<&str> {
    match event {
        AgentEvent::AssistantChunk { content, .. } | AgentEvent::ThinkingChunk { content, .. } => content.as_text(),
        _ => None,
    }
}

fn json_len<T: Serialize + ?Sized>(value: &T) -> usize {
    /// Counts bytes without keeping them.
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).map_or(0, |()| count.0)
}

/// Whether an event is too large to be broadcast.
pub(super) fn is_larger_than(event: &AgentEvent, limit: usize) -> bool {
    json_len(event) > limit
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;

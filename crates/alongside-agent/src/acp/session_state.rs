//! The state of a local agent's session: the turn, the queue, the open permission requests.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

use alongside_core::SessionId;
use alongside_protocol::chat::{AgentEvent, DisconnectKind, NoticeLevel, ToolContent, ToolStatus};
use alongside_wire::rpc::RequestId;
use serde_json::Value;

use super::paragraphs::Paragraphs;
use crate::conversation::{ContentBlock, SessionUpdate, Source, Translator, TurnEnd, read_models, read_modes};
use crate::events::{EventSender, json_len};

/// The daemon has the same limit.
pub(super) const MAX_QUEUED_PROMPTS: usize = 5;

/// The refused writes that are remembered.
const MAX_REFUSED_WRITES: usize = 16;

/// The accepted writes that are remembered.
const MAX_ALLOWED_WRITES: usize = 64;

/// The notes for the agent that are kept.
const MAX_NOTES: usize = 16;

/// Permission requests beyond this are cancelled.
pub(super) const MAX_OPEN_REQUESTS: usize = 64;

/// The limit of a history that is being loaded, as JSON. Beyond it, the oldest events are dropped, and a notice says so.
const MAX_HISTORY_BYTES: usize = 64 * 1024 * 1024;

/// The same for everything before the first prompt, including a history. What comes later is dropped.
const MAX_STARTING_BYTES: usize = 2 * MAX_HISTORY_BYTES;

/// Everything is sent while this is locked, so that events are in order.
pub(super) struct SessionState {
    events: EventSender,
    phase: Phase,
    pub(super) session_id: Option<SessionId>,
    pub(super) translator: Translator,
    /// A session is being opened: its events are held until the agent has responded.
    opening: Option<Opening>,
    pub(super) turn: Option<Turn>,
    pub(super) queue: VecDeque<(String, Vec<ContentBlock>)>,
    /// The open permission requests: the agent's id by ours.
    pub(super) requests: HashMap<String, RequestId>,
    /// The options of the session, for agents that have no other way of switching models.
    pub(super) config_options: Value,
    /// The refused writes of the turn, each with the reason.
    refused: Vec<(String, String)>,
    /// The writes of the turn that the user accepted with a permission request.
    allowed: Vec<AllowedWrite>,
    /// What the agent should know, for the next prompt.
    notes: Vec<String>,
    /// Of the turn's answer.
    pub(super) paragraphs: Paragraphs,
    last_id: u64,
    /// Distinguishes our ids from those of a previous process, whose conversation may be shown together with this one.
    id_prefix: String,
}

enum Phase {
    /// The connection is not current yet: its events are held.
    Starting(Starting),
    Started,
    Over,
}

/// The running turn.
pub(super) struct Turn {
    /// The id of the `session/prompt` request.
    pub(super) request: u64,
    pub(super) prompt_id: String,
    /// We asked the agent to cancel it.
    pub(super) cancelling: bool,
}

/// A write that needs no further review.
pub(super) struct AllowedWrite {
    pub(super) path: PathBuf,
    pub(super) proposed: String,
    /// What to write in its place.
    pub(super) accepted: String,
}

/// What is held until the connection starts: a history, and what the agent sends after it.
#[derive(Default)]
struct Starting {
    held: Vec<AgentEvent>,
    bytes: usize,
    /// Events were dropped.
    truncated: bool,
}

impl Starting {
    /// Holds an event unless there are too many: an agent has nothing to say before the first prompt.
    fn hold(&mut self, event: AgentEvent, limit: usize) {
        self.bytes += json_len(&event);
        if self.bytes > limit {
            self.truncated = true;
        } else {
            self.held.push(event);
        }
    }
}

struct Opening {
    source: Source,
    /// A new session has the id that the agent first uses for it.
    session_id: Option<SessionId>,
    held: VecDeque<(AgentEvent, usize)>,
    held_bytes: usize,
    /// Events were dropped.
    truncated: bool,
}

impl Opening {
    /// Holds an event, and as many of the previous ones as the limit allows.
    fn hold(&mut self, event: AgentEvent, limit: usize) {
        let bytes = json_len(&event);
        self.held.push_back((event, bytes));
        self.held_bytes += bytes;
        while self.held_bytes > limit {
            let Some((_, bytes)) = self.held.pop_front() else {
                return;
            };
            self.held_bytes -= bytes;
            self.truncated = true;
        }
    }
}

impl SessionState {
    pub(super) fn new(events: EventSender) -> Self {
        Self {
            events,
            phase: Phase::Starting(Starting::default()),
            session_id: None,
            translator: Translator::default(),
            opening: None,
            turn: None,
            queue: VecDeque::new(),
            requests: HashMap::new(),
            config_options: Value::Null,
            refused: Vec::new(),
            allowed: Vec::new(),
            notes: Vec::new(),
            paragraphs: Paragraphs::default(),
            last_id: 0,
            id_prefix: random_prefix(),
        }
    }

    /// An id that was never used before.
    pub(super) fn next_id(&mut self, what: &str) -> String {
        self.last_id += 1;
        format!("{what}-{}-{}", self.id_prefix, self.last_id)
    }

    pub(super) fn prompt_id(&self) -> Option<String> {
        self.turn.as_ref().map(|turn| turn.prompt_id.clone())
    }

    pub(super) fn is_cancelling(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.cancelling)
    }

    pub(super) fn send(&mut self, events: impl IntoIterator<Item = AgentEvent>) {
        for event in events {
            match (&mut self.phase, &mut self.opening) {
                (Phase::Over, _) => {}
                (_, Some(opening)) => opening.hold(event, MAX_HISTORY_BYTES),
                (Phase::Starting(starting), None) => starting.hold(event, MAX_STARTING_BYTES),
                (Phase::Started, None) => self.events.send(event, None),
            }
        }
    }

    /// Sends what was held. `false` if the agent has exited since.
    pub(super) fn start(&mut self) -> bool {
        if let Phase::Starting(starting) = &mut self.phase {
            let Starting { held, truncated, .. } = std::mem::take(starting);
            self.phase = Phase::Started;
            self.send(held);
            self.send(truncated.then(|| AgentEvent::Notice {
                level: NoticeLevel::Warning,
                message: "The agent sent too much before the first message; some of it was dropped.".to_owned(),
            }));
        }
        !self.is_over()
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// Sends the last event, if others were sent before it.
    pub(super) fn disconnect(&mut self, kind: DisconnectKind, reason: &str, reopen: Option<SessionId>) {
        self.opening = None;
        self.send([AgentEvent::Disconnected {
            kind,
            reason: reason.to_owned(),
            reopen,
        }]);
        self.phase = Phase::Over;
    }

    /// Holds events until [`SessionState::end_opening`].
    pub(super) fn begin_opening(&mut self, source: Source, session_id: Option<SessionId>) {
        self.opening = Some(Opening {
            source,
            session_id,
            held: VecDeque::new(),
            held_bytes: 0,
            truncated: false,
        });
        self.translator.forget();
        self.paragraphs = Paragraphs::default();
    }

    /// Drops what is held if it was about another session than the one that was opened.
    pub(super) fn discard_opening_of_another(&mut self, session: &SessionId) {
        if let Some(opening) = &mut self.opening
            && opening.session_id.as_ref().is_some_and(|id| id != session)
        {
            opening.held.clear();
            opening.held_bytes = 0;
        }
    }

    /// Sends what was held. Without `connected` the session could not be opened: what was held is dropped, and the previous session
    /// continues.
    pub(super) fn end_opening(&mut self, connected: Option<AgentEvent>) {
        let (Some(opening), Some(connected)) = (self.opening.take(), connected) else {
            return;
        };
        let held = opening.held.into_iter().map(|(event, _)| event);
        let truncated = opening.truncated.then(|| AgentEvent::Notice {
            level: NoticeLevel::Information,
            message: "Earlier messages in this conversation are no longer available.".to_owned(),
        });
        self.send([connected]);
        if opening.source == Source::History {
            let reason = "loaded".to_owned();
            self.send([AgentEvent::HistoryStart { reason }]);
            self.send(truncated);
            self.send(held);
            self.send([AgentEvent::HistoryEnd]);
        } else {
            self.send(held);
        }
    }

    /// Whether a message is about the open session, or the one that is being opened. The agent names a new session, once.
    pub(super) fn is_open(&mut self, params: &Value) -> bool {
        let Some(session) = params.get("sessionId").and_then(Value::as_str) else {
            return false;
        };
        let is_current = self.session_id.as_ref().is_some_and(|id| id.as_str() == session);
        match &mut self.opening {
            Some(Opening {
                session_id: Some(id), ..
            }) => id.as_str() == session,
            Some(opening) if !is_current => {
                opening.session_id = Some(SessionId::new(session));
                true
            }
            Some(_) => false,
            None => is_current,
        }
    }

    /// Handles a `session/update`.
    pub(super) fn update(&mut self, params: &Value) {
        if !self.is_open(params) {
            tracing::debug!("ignoring an update for another session");
            return;
        }
        let source = self.opening.as_ref().map_or(Source::Stream, |opening| opening.source);
        let update = mode_in_text(SessionUpdate::read(params));
        if let SessionUpdate::ConfigOptions(options) = &update {
            let state = serde_json::json!({"configOptions": options});
            self.set_options(&state);
            return;
        }
        let prompt_id = self.prompt_id();
        let separator = self.paragraphs.separator(&update);
        self.send(separator.map(|separator| AgentEvent::AssistantChunk {
            prompt_id: prompt_id.clone(),
            content: separator.into(),
        }));
        let mut events = self.translator.translate_update(update, prompt_id, source);
        for event in &mut events {
            self.explain_refusal(event);
        }
        self.send(events);
    }

    /// A write of this turn was refused.
    pub(super) fn write_refused(&mut self, path: &str, reason: &str) {
        if self.refused.len() == MAX_REFUSED_WRITES {
            self.refused.remove(0);
        }
        self.refused.push((path.to_owned(), reason.to_owned()));
    }

    pub(super) fn allow_write(&mut self, write: AllowedWrite) {
        if self.allowed.len() == MAX_ALLOWED_WRITES {
            self.allowed.remove(0);
        }
        self.allowed.push(write);
    }

    /// The accepted text of a write, once.
    pub(super) fn take_allowed(&mut self, path: &Path, proposed: &str) -> Option<String> {
        let is_meant = |write: &AllowedWrite| write.path == path && write.proposed == proposed;
        let index = self.allowed.iter().position(is_meant)?;
        Some(self.allowed.swap_remove(index).accepted)
    }

    /// ACP has no place for a reason in the response to a permission request, so the agent gets it with the next prompt.
    pub(super) fn add_note(&mut self, note: String) {
        if self.notes.len() == MAX_NOTES {
            self.notes.remove(0);
        }
        self.notes.push(note);
    }

    /// The notes for the agent, as one text.
    pub(super) fn take_notes(&mut self) -> Option<String> {
        let notes = std::mem::take(&mut self.notes);
        (!notes.is_empty()).then(|| format!("Note from the user's editor: {}", notes.join(" ")))
    }

    /// Says why a tool call failed whose write was refused. Agents report it in their own words; Gemini CLI has none.
    fn explain_refusal(&self, event: &mut AgentEvent) {
        let AgentEvent::ToolCall { call, .. } = event else {
            return;
        };
        let is_about = |(path, _): &&(String, String)| {
            let mut locations = call.locations.iter();
            locations.any(|location| Path::new(path).ends_with(&location.path))
        };
        if call.status == ToolStatus::Failed
            && let Some((_, reason)) = self.refused.iter().rev().find(is_about)
        {
            let content = ContentBlock::text(reason.as_str());
            call.content = vec![ToolContent::Content { content }];
            call.output = Value::Null;
        }
    }

    /// Takes the models, modes and options from the response to opening a session, or from an update.
    pub(super) fn set_options(&mut self, state: &Value) {
        if let Some(options) = state.get("configOptions") {
            self.config_options = options.clone();
        }
        let models = read_models(state).map(AgentEvent::Models);
        self.send(models.into_iter().chain(read_modes(state).map(AgentEvent::Modes)));
    }

    /// Ends the running turn, if any.
    pub(super) fn end_turn(&mut self, end: TurnEnd) {
        self.refused.clear();
        self.allowed.clear();
        self.paragraphs = Paragraphs::default();
        if let Some(turn) = self.turn.take() {
            let prompt_id = Some(turn.prompt_id);
            self.send([AgentEvent::TurnEnded { prompt_id, end }]);
        }
    }

    /// Closes a permission request. Returns the agent's id of it, to respond to; `None` if it is not open.
    pub(super) fn close(&mut self, request_id: &str, option_id: Option<String>, own: bool) -> Option<RequestId> {
        let id = self.requests.remove(request_id)?;
        let events = self.translator.close_request(request_id, option_id, own);
        self.send(events);
        Some(id)
    }

    /// The agent has exited: ends the turn, empties the queue and closes the requests. The reader of `Disconnected` knows what was
    /// queued.
    pub(super) fn abandon(&mut self, message: &str) {
        let open: Vec<String> = self.requests.keys().cloned().collect();
        for request_id in open {
            self.close(&request_id, None, false);
        }
        self.end_turn(TurnEnd::Failed {
            message: message.to_owned(),
            code: None,
        });
        self.queue.clear();
    }
}

fn random_prefix() -> String {
    let mut bytes = [0; 4];
    if getrandom::fill(&mut bytes).is_err() {
        bytes = std::process::id().to_le_bytes();
    }
    format!("{:08x}", u32::from_le_bytes(bytes))
}

/// Gemini CLI reports a change of mode as a chunk of its answer.
fn mode_in_text(update: SessionUpdate) -> SessionUpdate {
    let SessionUpdate::AgentMessage { content, .. } = &update else {
        return update;
    };
    let mode = content.as_text().and_then(|text| text.strip_prefix("[MODE_UPDATE] "));
    match mode.filter(|mode| !mode.trim().contains(char::is_whitespace)) {
        Some(mode) => SessionUpdate::Mode(mode.trim().to_owned()),
        None => update,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::event_channel;

    #[test]
    fn mode_update_in_answer_text_is_recognized() {
        let message = |text: &str| SessionUpdate::AgentMessage {
            content: text.into(),
            message_id: None,
            usage: None,
        };
        assert_eq!(
            mode_in_text(message("[MODE_UPDATE] autoEdit")),
            SessionUpdate::Mode("autoEdit".to_owned())
        );
        for text in ["[MODE_UPDATE] is what it says", "autoEdit"] {
            assert_eq!(mode_in_text(message(text)), message(text));
        }
    }

    #[test]
    fn accepted_writes_and_notes_are_bounded() {
        let mut state = SessionState::new(event_channel().0);
        for number in 0..1000 {
            state.allow_write(AllowedWrite {
                path: PathBuf::from("a"),
                proposed: number.to_string(),
                accepted: "accepted".to_owned(),
            });
            state.add_note(format!("note {number}."));
        }
        assert_eq!(
            (state.allowed.len(), state.notes.len()),
            (MAX_ALLOWED_WRITES, MAX_NOTES)
        );
        assert_eq!(state.take_allowed(Path::new("b"), "999"), None);
        assert_eq!(state.take_allowed(Path::new("a"), "0"), None, "dropped");
        assert_eq!(state.take_allowed(Path::new("a"), "999").as_deref(), Some("accepted"));
        assert_eq!(state.take_allowed(Path::new("a"), "999"), None, "once");
        assert!(state.take_notes().unwrap().ends_with("note 998. note 999."));
        assert_eq!(state.take_notes(), None);
    }

    #[test]
    fn new_session_has_one_id() {
        let mut state = SessionState::new(event_channel().0);
        let is_open = |state: &mut SessionState, id: &str| state.is_open(&serde_json::json!({"sessionId": id}));
        assert!(!is_open(&mut state, "a"), "no session is open");
        assert!(!state.is_open(&Value::Null));
        state.session_id = Some(SessionId::new("before"));
        state.begin_opening(Source::Stream, None);
        assert!(!is_open(&mut state, "before"));
        assert!(is_open(&mut state, "a"), "the agent names it");
        assert!(is_open(&mut state, "a"));
        for number in 0..1000 {
            assert!(!is_open(&mut state, &format!("claimed-{number}")));
        }
    }

    #[test]
    fn agent_that_sends_too_much_before_the_start_loses_the_rest() {
        let (events, mut receiver) = event_channel();
        let mut state = SessionState::new(events);
        let Phase::Starting(starting) = &mut state.phase else {
            unreachable!("it has just been created")
        };
        for number in 0..1000 {
            let text = format!("{number:04}{}", "x".repeat(100));
            starting.hold(AgentEvent::Suggestion { text }, 500);
        }
        assert!(starting.held.len() < 5);
        assert!(state.start());
        let first = receiver.try_recv().unwrap();
        assert!(matches!(&first, AgentEvent::Suggestion { text } if text.starts_with("0000")));
        let mut last = first;
        while let Some(event) = receiver.try_recv() {
            last = event;
        }
        assert!(matches!(last, AgentEvent::Notice { .. }), "{last:?}");
    }

    #[test]
    fn oversized_history_drops_its_oldest_events() {
        let (events, mut receiver) = event_channel();
        let mut state = SessionState::new(events);
        state.start();
        state.begin_opening(Source::History, Some(SessionId::new("s")));
        let opening = state.opening.as_mut().unwrap();
        for number in 0..10 {
            let text = format!("{number}{}", "x".repeat(100));
            opening.hold(AgentEvent::Suggestion { text }, 500);
        }
        assert!(opening.held_bytes <= 500 && opening.held.len() < 5);
        state.end_opening(Some(AgentEvent::Reconnected));
        let mut sent = Vec::new();
        while let Some(event) = receiver.try_recv() {
            sent.push(event);
        }
        assert_eq!(sent[0], AgentEvent::Reconnected);
        assert!(matches!(sent[1], AgentEvent::HistoryStart { .. }));
        assert!(matches!(sent[2], AgentEvent::Notice { .. }));
        assert!(matches!(&sent[sent.len() - 2], AgentEvent::Suggestion { text } if text.starts_with('9')));
        assert_eq!(sent[sent.len() - 1], AgentEvent::HistoryEnd);
    }
}

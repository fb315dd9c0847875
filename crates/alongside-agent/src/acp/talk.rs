//! What is being said in a session of an ACP agent: the turn, the queue, the approvals.

use std::collections::{HashMap, VecDeque};

use alongside_wire::rpc::RequestId;
use serde_json::Value;

use crate::conversation::{ContentBlock, SessionUpdate, TurnEnd, read_models, read_modes};
use crate::ide::{Source, Translator};
use crate::position::EventSender;
use alongside_protocol::chat::AgentEvent;

/// How many prompts may wait. The daemon has the same limit.
pub(super) const MAX_QUEUED_PROMPTS: usize = 5;

/// The state of a session, and where to tell about it. Everything is told while it is locked, so that it is told in order.
pub(super) struct Talk {
    events: EventSender,
    pub(super) session_id: Option<String>,
    pub(super) translator: Translator,
    /// What is said while a session is being opened: it is told once the session is there.
    opening: Option<Opening>,
    /// The turn that is going on: the id of its request, and of its prompt.
    pub(super) running: Option<(u64, String)>,
    pub(super) cancelling: bool,
    pub(super) queue: VecDeque<(String, Vec<ContentBlock>)>,
    /// The approvals that wait: by our id, the id that the agent gave.
    pub(super) asked: HashMap<String, RequestId>,
    /// The choices that a session has, for agents that have no other way of switching models.
    pub(super) config_options: Value,
    numbers: u64,
    /// The end was told.
    over: bool,
    /// Tells our ids from those of an earlier child: whoever shows a conversation may go on with it after a restart.
    life: String,
}

struct Opening {
    source: Source,
    /// The session, where it is known before it is open.
    session_id: Option<String>,
    held: Vec<AgentEvent>,
}

impl Talk {
    pub(super) fn new(events: EventSender) -> Self {
        Self {
            events,
            session_id: None,
            translator: Translator::default(),
            opening: None,
            running: None,
            cancelling: false,
            queue: VecDeque::new(),
            asked: HashMap::new(),
            config_options: Value::Null,
            numbers: 0,
            over: false,
            life: new_life(),
        }
    }

    /// An id that was not used before.
    pub(super) fn next_id(&mut self, what: &str) -> String {
        self.numbers += 1;
        format!("{what}-{}-{}", self.life, self.numbers)
    }

    pub(super) fn tell(&mut self, events: impl IntoIterator<Item = AgentEvent>) {
        if self.over {
            return;
        }
        match &mut self.opening {
            Some(opening) => opening.held.extend(events),
            None => events.into_iter().for_each(|event| self.events.send(event, None)),
        }
    }

    /// Tells the end. Nothing comes after it.
    pub(super) fn finish(&mut self, disconnected: AgentEvent) {
        self.opening = None;
        self.tell([disconnected]);
        self.over = true;
    }

    /// A session is being opened: hold what is said.
    pub(super) fn begin_opening(&mut self, source: Source, session_id: Option<&str>) {
        self.opening = Some(Opening {
            source,
            session_id: session_id.map(str::to_owned),
            held: Vec::new(),
        });
        self.translator.forget();
    }

    /// The session is there, or could not be opened: then what was held is dropped, and the one before goes on.
    pub(super) fn end_opening(&mut self, connected: Option<AgentEvent>) {
        let Some(Opening { source, held, .. }) = self.opening.take() else {
            return;
        };
        let Some(connected) = connected else { return };
        self.tell([connected]);
        if source == Source::History {
            let reason = "loaded".to_owned();
            self.tell([AgentEvent::HistoryStart { reason }]);
            self.tell(held);
            self.tell([AgentEvent::HistoryEnd]);
        } else {
            self.tell(held);
        }
    }

    /// The agent tells about the session.
    pub(super) fn update(&mut self, params: &Value) {
        let session = params.get("sessionId").and_then(Value::as_str);
        let is_ours = match &self.opening {
            Some(Opening {
                session_id: Some(id), ..
            }) => session == Some(id),
            // A new session has an id that is not known yet.
            Some(_) => session != self.session_id.as_deref(),
            None => session == self.session_id.as_deref(),
        };
        if !is_ours {
            tracing::debug!("ignoring an update for another session");
            return;
        }
        let source = self.opening.as_ref().map_or(Source::Stream, |opening| opening.source);
        let update = mode_in_words(SessionUpdate::read(params));
        if let SessionUpdate::ConfigOptions(options) = &update {
            let state = serde_json::json!({"configOptions": options});
            self.take_state(&state);
            return;
        }
        let prompt_id = self.running.as_ref().map(|(_, prompt_id)| prompt_id.clone());
        let events = self.translator.translate_update(update, prompt_id, source);
        self.tell(events);
    }

    /// Takes the models and modes of a session.
    pub(super) fn take_state(&mut self, state: &Value) {
        if let Some(options) = state.get("configOptions") {
            self.config_options = options.clone();
        }
        let models = read_models(state).map(AgentEvent::Models);
        self.tell(models.into_iter().chain(read_modes(state).map(AgentEvent::Modes)));
    }

    /// Ends the turn that is going on, and says whether one was.
    pub(super) fn end_turn(&mut self, end: TurnEnd) {
        if let Some((_, prompt_id)) = self.running.take() {
            self.cancelling = false;
            let prompt_id = Some(prompt_id);
            self.tell([AgentEvent::TurnEnded { prompt_id, end }]);
        }
    }

    /// Closes an approval, and gives the id under which the agent waits for it.
    pub(super) fn close(&mut self, request_id: &str, option_id: Option<String>, own: bool) -> Option<RequestId> {
        let id = self.asked.remove(request_id)?;
        let events = self.translator.close_request(request_id, option_id, own);
        self.tell(events);
        Some(id)
    }

    /// The agent is gone: nothing goes on and nobody waits.
    pub(super) fn end(&mut self, message: &str) {
        let open: Vec<String> = self.asked.keys().cloned().collect();
        for request_id in open {
            self.close(&request_id, None, false);
        }
        self.end_turn(TurnEnd::Failed {
            message: message.to_owned(),
            code: None,
        });
        for (prompt_id, _) in std::mem::take(&mut self.queue) {
            self.tell([AgentEvent::PromptUnqueued {
                prompt_id,
                removed: true,
            }]);
        }
    }
}

/// A name that no child before had.
fn new_life() -> String {
    let mut bytes = [0; 4];
    if getrandom::fill(&mut bytes).is_err() {
        bytes = std::process::id().to_le_bytes();
    }
    format!("{:08x}", u32::from_le_bytes(bytes))
}

/// Gemini CLI tells a change of its mode as if it were a part of its answer.
fn mode_in_words(update: SessionUpdate) -> SessionUpdate {
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

    #[test]
    fn a_mode_that_is_told_in_the_words_of_the_answer_is_no_part_of_it() {
        let said = |text: &str| SessionUpdate::AgentMessage {
            content: text.into(),
            usage: None,
        };
        assert_eq!(
            mode_in_words(said("[MODE_UPDATE] autoEdit")),
            SessionUpdate::Mode("autoEdit".to_owned())
        );
        for text in ["[MODE_UPDATE] is what it says", "autoEdit"] {
            assert_eq!(mode_in_words(said(text)), said(text));
        }
    }
}

//! The chat: its events, its keys and what is sent.

use alongside_protocol::chat::{
    AgentCommand, AgentReply, Answers, ContentBlock, OptionKind, PermissionDecision, PermissionRequest, Question,
};
use alongside_protocol::{
    ChatCommand, ChatConnect, ChatEvent, ChatPhase, ChatState, Empty, Request, RequestError, Response, requests,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_textarea::TextArea;

use crate::chat::Applied;
use crate::message::Action;
use crate::model::{Model, Overlay, View};

use super::send;

/// The chat is that of the first companion.
const COMPANION: usize = 0;

impl Model {
    /// Shows the chat, or the reviews again.
    pub(super) fn toggle_chat(&mut self) -> Vec<Action> {
        if self.view == View::Chat {
            self.view = if self.open.is_some() { View::Review } else { View::List };
            // Keys for the chat must not decide.
            if let Some(open) = self.open.as_mut() {
                open.shown_at = self.now;
            }
            return Vec::new();
        }
        self.view = View::Chat;
        self.fetch_chat()
    }

    pub(super) fn fetch_chat(&mut self) -> Vec<Action> {
        self.chat.follower.start_fetch();
        vec![send::<requests::ChatState>(COMPANION, Empty {})]
    }

    pub(super) fn chat_state(&mut self, state: ChatState) -> Vec<Action> {
        let is_whole = self.chat.follower.apply_state(&state);
        self.chat.agents = state.agents;
        self.chat.changed = state.changed;
        self.chat.laid = crate::chat::Laid::default();
        self.chat.note_requests(self.now);
        if is_whole { Vec::new() } else { self.fetch_chat() }
    }

    pub(super) fn chat_event(&mut self, event: ChatEvent) -> Vec<Action> {
        let before = self.chat.asked().map(|request| request.request_id.clone());
        let applied = self.chat.follower.apply(event);
        self.chat.note_requests(self.now);
        let after = self.chat.asked().map(|request| request.request_id.clone());
        let mut actions = Vec::new();
        if after.is_some() && after != before {
            actions.push(Action::Alert("an agent asks for permission".to_owned()));
        }
        // Without the view, what was missed is fetched when it is shown.
        if applied == Applied::Gap && self.view == View::Chat {
            actions.extend(self.fetch_chat());
        }
        actions
    }

    pub(super) fn chat_reply(&mut self, request: &Request, response: Response) -> Vec<Action> {
        match (request, response) {
            (Request::Diff(texts), Response::Diff(hunks)) => self.chat.compared(texts, hunks.hunks),
            (Request::ChatCommand(ChatCommand { command }), Response::ChatCommand(reply)) => {
                if let AgentCommand::Prompt { id: Some(id), .. } = command {
                    self.chat.unsent.remove(id);
                }
                if reply == AgentReply::TooLate {
                    self.inform("That was decided or started already.");
                }
            }
            _ => {}
        }
        Vec::new()
    }

    /// A request about the chat failed.
    pub(super) fn chat_refused(&mut self, request: &Request, error: &RequestError) {
        match request {
            Request::ChatState(_) => self.chat.follower.fetch_failed(),
            Request::ChatCommand(ChatCommand {
                command: AgentCommand::Prompt { id: Some(id), .. },
            }) => {
                // Back into the message box, unless something else is there by now.
                if let Some(text) = self.chat.unsent.remove(id)
                    && self.chat.typed().trim().is_empty()
                {
                    self.chat.composer = TextArea::new(text.split('\n').map(str::to_owned).collect());
                    self.chat.composer.move_cursor(ratatui_textarea::CursorMove::Bottom);
                    self.chat.composer.move_cursor(ratatui_textarea::CursorMove::End);
                }
            }
            _ => {}
        }
        self.complain(error.message.clone());
    }

    pub(super) fn chat_key(&mut self, key: KeyEvent) -> Vec<Action> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let page = usize::from(self.screen().body.height.saturating_sub(4)).max(1);
        match key.code {
            KeyCode::Char(digit @ '1'..='9') if alt => return self.choose_option(digit),
            KeyCode::Char('x') if control => return self.chat_command(AgentCommand::Cancel),
            KeyCode::Char('e') if control => {
                self.chat.is_detailed = !self.chat.is_detailed;
                return Vec::new();
            }
            KeyCode::Char('o') if control => return self.choose_agent(),
            KeyCode::PageUp => self.scroll_chat(page.cast_signed()),
            KeyCode::PageDown => self.scroll_chat(-page.cast_signed()),
            _ if !self.chat.is_writing => return self.chat_log_key(key.code),
            KeyCode::Esc => self.chat.is_writing = false,
            KeyCode::Enter if alt => self.chat.composer.insert_newline(),
            KeyCode::Char('j') if control => self.chat.composer.insert_newline(),
            KeyCode::Enter => return self.send_message(),
            KeyCode::Tab if self.chat.typed().is_empty() && !self.chat.shown().suggestion.is_empty() => {
                let suggestion = self.chat.shown().suggestion.clone();
                self.chat.composer.insert_str(suggestion);
            }
            _ => {
                self.chat.composer.input(key);
            }
        }
        Vec::new()
    }

    /// Keys while the conversation has the focus.
    fn chat_log_key(&mut self, code: KeyCode) -> Vec<Action> {
        match code {
            KeyCode::Char(digit @ '1'..='9') => return self.choose_option(digit),
            KeyCode::Char('j') | KeyCode::Down => self.scroll_chat(-1),
            KeyCode::Char('k') | KeyCode::Up => self.scroll_chat(1),
            KeyCode::Char('G') | KeyCode::End => self.chat.up = 0,
            KeyCode::Char('g') | KeyCode::Home => self.scroll_chat(isize::MAX),
            KeyCode::Char('i') | KeyCode::Enter => self.chat.is_writing = true,
            KeyCode::Char('x') => return self.chat_command(AgentCommand::Cancel),
            KeyCode::Char('d') => {
                if let Some(queued) = self.chat.shown().queue.last() {
                    let prompt_id = queued.id.clone();
                    return self.chat_command(AgentCommand::RemoveQueued { prompt_id });
                }
            }
            KeyCode::Char('c') | KeyCode::Esc => return self.toggle_chat(),
            _ => return self.common_key(code),
        }
        Vec::new()
    }

    pub(super) fn scroll_chat(&mut self, up: isize) {
        let height = usize::from(self.screen().body.height);
        let last = self.chat.laid.count().saturating_sub(height / 2);
        self.chat.up = self.chat.up.saturating_add_signed(up).min(last);
    }

    pub(super) fn chat_command(&mut self, command: AgentCommand) -> Vec<Action> {
        self.ask(COMPANION, Request::ChatCommand(ChatCommand { command }))
    }

    fn send_message(&mut self) -> Vec<Action> {
        let text = self.chat.typed().trim().to_owned();
        if text.is_empty() {
            return Vec::new();
        }
        if !self.chat.is_reachable() {
            // The message stays until an agent is there.
            return self.choose_agent();
        }
        if !self.is_connected(COMPANION) {
            self.complain("The companion is not connected; your message stays here until it is.");
            return Vec::new();
        }
        // A question is answered by the next message.
        if let Some(request) = self.chat.asked().filter(|request| request.is_question()).cloned() {
            if !self.chat.is_armed(&request.request_id, self.now) {
                return Vec::new();
            }
            self.chat.composer = TextArea::default();
            return self.answer_question(&request, text);
        }
        self.chat.sent += 1;
        let id = format!("{}-{}", self.options.id, self.chat.sent);
        self.chat.unsent.insert(id.clone(), text.clone());
        self.chat.composer = TextArea::default();
        self.chat.up = 0;
        self.chat_command(AgentCommand::Prompt {
            blocks: vec![ContentBlock::Text(text)],
            id: Some(id),
        })
    }

    /// Answers the oldest open request with one of its options, or one of its questions with a choice.
    fn choose_option(&mut self, digit: char) -> Vec<Action> {
        let index = digit.to_digit(10).map_or(0, |digit| digit as usize).saturating_sub(1);
        let Some(request) = self.chat.asked().cloned() else {
            return Vec::new();
        };
        if !self.chat.is_armed(&request.request_id, self.now) {
            return Vec::new();
        }
        if request.is_question() {
            let choice = self
                .open_question(&request)
                .and_then(|question| question.choices.get(index));
            let Some(choice) = choice.map(|choice| choice.label.clone()) else {
                return Vec::new();
            };
            return self.answer_question(&request, choice);
        }
        let Some(option) = request.options.get(index) else {
            return Vec::new();
        };
        self.chat_command(AgentCommand::Answer {
            request_id: request.request_id.clone(),
            decision: PermissionDecision::select(&option.option_id),
        })
    }

    /// The next question of a request that has no answer yet.
    fn open_question<'a>(&self, request: &'a PermissionRequest) -> Option<&'a Question> {
        let answers = self.chat.answers.get(&request.request_id);
        let is_open = |question: &&Question| answers.is_none_or(|answers| !answers.contains_key(&question.answer_key));
        request.questions.iter().find(is_open)
    }

    /// Each question gets a choice, or what is typed; then all are sent.
    fn answer_question(&mut self, request: &PermissionRequest, answer: String) -> Vec<Action> {
        let Some(question) = self.open_question(request) else {
            return Vec::new();
        };
        let answers: &mut Answers = self.chat.answers.entry(request.request_id.clone()).or_default();
        answers.insert(question.answer_key.clone(), answer);
        if answers.len() < request.questions.len() {
            let next = request
                .questions
                .iter()
                .find(|question| !answers.contains_key(&question.answer_key));
            let next = next.map(|question| question.question.clone()).unwrap_or_default();
            self.inform(next);
            return Vec::new();
        }
        let answers = answers.clone();
        let allows = |kind: &OptionKind| matches!(kind, OptionKind::AllowOnce);
        let option = request
            .options
            .iter()
            .find(|option| allows(&option.kind))
            .or(request.options.first());
        let Some(option) = option else { return Vec::new() };
        self.chat_command(AgentCommand::Answer {
            request_id: request.request_id.clone(),
            decision: PermissionDecision::Select {
                option_id: option.option_id.clone(),
                answers,
            },
        })
    }

    fn choose_agent(&mut self) -> Vec<Action> {
        self.overlay = Some(Overlay::Agents { selected: 0 });
        Vec::new()
    }

    pub(super) fn agents_key(&mut self, selected: usize, code: KeyCode) -> Vec<Action> {
        let last = self.chat.agents.len().saturating_sub(1);
        let selected = match code {
            KeyCode::Esc | KeyCode::Char('q') => return Vec::new(),
            KeyCode::Char('j') | KeyCode::Down => (selected + 1).min(last),
            KeyCode::Char('k') | KeyCode::Up => selected.saturating_sub(1),
            KeyCode::Enter => {
                let Some(agent) = self.chat.agents.get(selected) else {
                    return Vec::new();
                };
                if let Some(problem) = agent.problem.clone() {
                    self.complain(problem);
                    return Vec::new();
                }
                let connect = ChatConnect {
                    agent: agent.id.clone(),
                    if_idle: false,
                };
                self.chat.changed.phase = ChatPhase::Connecting;
                return self.ask(COMPANION, Request::ChatConnect(connect));
            }
            _ => selected,
        };
        self.overlay = Some(Overlay::Agents { selected });
        Vec::new()
    }
}

//! What each message changes, and what it causes. Nothing here does I/O: it only asks for it.

mod chat;
mod companion;
mod decide;
mod keys;
mod mouse;
mod search;

use std::time::Duration;

use alongside_protocol::{Method, Request, requests};

pub(crate) use companion::count;
pub(crate) use search::contains;

use crate::message::{Action, CompanionIndex, Message, ReviewKey};
use crate::model::{Connection, Model, Overlay, View};

/// A request to a companion.
pub(crate) fn send<M: Method>(companion: CompanionIndex, params: M::Params) -> Action {
    Action::Send(companion, Box::new(M::request(params)))
}

impl Model {
    /// Applies a message that arrived at a time, counted from the start.
    pub fn update(&mut self, message: Message, now: Duration) -> Vec<Action> {
        self.now = now;
        self.fade();
        let mut actions = match message {
            Message::Key(key) => self.key(key),
            Message::Mouse(mouse) => self.mouse(mouse),
            Message::Paste(text) => self.paste(&text),
            Message::Resize { width, height } => {
                self.size = (width, height);
                let height = self.height();
                if let Some(open) = self.open.as_mut() {
                    open.scroll_to_cursor(height);
                }
                Vec::new()
            }
            Message::Tick => Vec::new(),
            Message::Link(companion, event) => self.link(companion, event),
            Message::Companions(running) => {
                self.running = running;
                self.overlay = Some(Overlay::Companions { selected: 0 });
                Vec::new()
            }
            Message::EditorClosed { key, original, text } => self.editor_closed(key, original, text),
            Message::Highlighted(result) => {
                let (job, marks) = *result;
                if let Some(open) = self.open.as_mut() {
                    open.highlighted(&job, marks);
                }
                Vec::new()
            }
            Message::Failed(sentence) => {
                self.complain(sentence);
                Vec::new()
            }
            Message::Stop => vec![Action::Quit],
        };
        actions.extend(self.wanted());
        self.scroll_editor();
        actions
    }

    fn scroll_editor(&mut self) {
        let body = self.screen().body;
        if let Some(Overlay::Edit(edit)) = self.overlay.as_mut() {
            edit.scroll(usize::from(body.height), usize::from(body.width.saturating_sub(7)));
        }
    }

    /// Fetches a review to show it.
    pub(crate) fn open_review(&mut self, key: ReviewKey) -> Vec<Action> {
        self.opening = Some(key);
        if let Some(index) = self.listed().iter().position(|(known, _)| *known == key) {
            self.selected = index;
        }
        vec![send::<requests::ReviewGet>(
            key.companion,
            alongside_protocol::ReviewRef { review: key.review },
        )]
    }

    pub(crate) fn back_to_list(&mut self) {
        if self.view == View::Review {
            self.view = View::List;
        }
        self.open = None;
        self.opening = None;
    }

    /// Goes to another pending review.
    pub(crate) fn step_review(&mut self, forward: bool) -> Vec<Action> {
        let listed: Vec<ReviewKey> = self.listed().into_iter().map(|(key, _)| key).collect();
        let current = self.open.as_ref().map(|open| open.key);
        let position = current.and_then(|current| listed.iter().position(|key| *key == current));
        let next = match (position, forward) {
            (Some(position), true) => listed.get(position + 1),
            (Some(position), false) => position.checked_sub(1).and_then(|position| listed.get(position)),
            (None, _) => listed.first(),
        };
        match next.copied() {
            Some(key) => self.open_review(key),
            None => Vec::new(),
        }
    }

    pub(crate) fn is_connected(&self, companion: CompanionIndex) -> bool {
        let companion = self.companions.get(companion);
        companion.is_some_and(|companion| companion.connection == Connection::Connected)
    }

    /// A request for the user; refused while there is nobody to send it to.
    pub(crate) fn ask(&mut self, companion: CompanionIndex, request: Request) -> Vec<Action> {
        if self.is_connected(companion) {
            vec![Action::Send(companion, Box::new(request))]
        } else {
            self.complain("The companion is not connected; try again once it is.");
            Vec::new()
        }
    }
}

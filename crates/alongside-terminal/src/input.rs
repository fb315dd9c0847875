//! One line of text that the user types.

use crossterm::event::KeyEvent;
use ratatui_textarea::TextArea;

use crate::message::ReviewKey;

pub(crate) struct Input {
    pub(crate) purpose: Purpose,
    pub(crate) area: TextArea<'static>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Search,
    /// Why a change is rejected.
    Reason(ReviewKey),
    /// About a line of the draft, from 1.
    Comment(ReviewKey, usize),
}

impl Purpose {
    pub(crate) fn label(self) -> String {
        match self {
            Self::Search => "Search".to_owned(),
            Self::Reason(_) => "Reject because".to_owned(),
            Self::Comment(_, line) => format!("Comment on line {line}"),
        }
    }
}

impl Input {
    pub(crate) fn new(purpose: Purpose, text: &str) -> Self {
        let mut area = TextArea::new(vec![text.to_owned()]);
        area.move_cursor(ratatui_textarea::CursorMove::End);
        Self { purpose, area }
    }

    pub(crate) fn text(&self) -> &str {
        self.area.lines().first().map_or("", String::as_str)
    }

    pub(crate) fn key(&mut self, key: KeyEvent) {
        self.area.input(key);
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.area.insert_str(text.replace(['\r', '\n'], " "));
    }
}

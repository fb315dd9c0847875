//! The mouse: the wheel scrolls, a click selects.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use crate::message::Action;
use crate::model::{Model, Overlay, View};

const WHEEL_ROWS: isize = 3;

impl Model {
    pub(super) fn mouse(&mut self, mouse: MouseEvent) -> Vec<Action> {
        let by = match mouse.kind {
            MouseEventKind::ScrollDown => WHEEL_ROWS,
            MouseEventKind::ScrollUp => -WHEEL_ROWS,
            MouseEventKind::Down(MouseButton::Left) => return self.click(mouse.row),
            _ => return Vec::new(),
        };
        let height = self.height();
        match self.overlay.as_mut() {
            Some(Overlay::Help { top } | Overlay::Context { top }) => *top = top.saturating_add_signed(by),
            Some(_) => {}
            None if self.view == View::Chat => self.scroll_chat(-by),
            None => match (self.view, self.open.as_mut()) {
                (View::Review, Some(open)) => open.scroll_by(by, height),
                _ => self.select_by(by.signum()),
            },
        }
        Vec::new()
    }

    fn click(&mut self, row: u16) -> Vec<Action> {
        if self.overlay.is_some() {
            return Vec::new();
        }
        let body = self.screen().body;
        let Some(row) = row.checked_sub(body.y).filter(|row| *row < body.height) else {
            return Vec::new();
        };
        let row = usize::from(row);
        match self.view {
            View::List => {
                // Two rows for each review.
                let listed = self.listed().len();
                if row / 2 < listed {
                    let again = self.selected == row / 2;
                    self.selected = row / 2;
                    if again {
                        return self.open_selected();
                    }
                }
            }
            View::Chat => {}
            View::Review => {
                let height = self.height();
                if let Some(open) = self.open.as_mut() {
                    let row = open.top + row.saturating_sub(open.notes.len());
                    open.move_to(row, height);
                    open.unfold();
                }
            }
        }
        Vec::new()
    }
}

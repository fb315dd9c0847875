//! What keys do.

use alongside_protocol::HunkAction;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::input::{Input, Purpose};
use crate::message::{Action, ReviewKey};
use crate::model::{Companion, Confirmed, Model, Overlay, View};
use crate::rows::Layout;

use alongside_protocol::{Empty, requests};

use super::send;

/// Columns that an arrow scrolls.
const COLUMN_STEP: isize = 8;

impl Model {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Action> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        let is_held = key.kind == KeyEventKind::Repeat;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('z') if control => return self.suspend(),
            KeyCode::Char('l') if control => return vec![Action::Redraw],
            KeyCode::Char('c') if control && !matches!(self.overlay, Some(Overlay::Edit(_))) => {
                return vec![Action::Quit];
            }
            _ => {}
        }
        match self.overlay.take() {
            Some(overlay) => self.overlay_key(overlay, key),
            None if key.code == KeyCode::F(2) || (key.code == KeyCode::Char('c') && alt) => self.toggle_chat(),
            None if self.view == View::Chat => self.chat_key(key),
            None if control || alt => Vec::new(),
            None => match self.view {
                View::List => self.list_key(key.code),
                View::Review => self.review_key(key.code, is_held),
                View::Chat => Vec::new(),
            },
        }
    }

    fn suspend(&mut self) -> Vec<Action> {
        if self.options.owns_companion {
            self.inform(
                "Suspending would stop the companion for its agents; run `alongside review` in another terminal.",
            );
            return Vec::new();
        }
        vec![Action::Suspend]
    }

    pub(super) fn paste(&mut self, text: &str) -> Vec<Action> {
        match self.overlay.as_mut() {
            Some(Overlay::Input(input)) => input.paste(text),
            Some(Overlay::Edit(edit)) => edit.paste(text),
            None if self.view == View::Chat => {
                self.chat
                    .composer
                    .insert_str(text.replace("\r\n", "\n").replace('\r', "\n"));
            }
            // Pasted text must not decide anything.
            _ => {}
        }
        Vec::new()
    }

    /// Keys that work in every view.
    pub(super) fn common_key(&mut self, code: KeyCode) -> Vec<Action> {
        match code {
            KeyCode::Char('?') | KeyCode::F(1) => self.overlay = Some(Overlay::Help { top: 0 }),
            KeyCode::Char('v') => {
                self.overlay = Some(Overlay::Context { top: 0 });
                let connected = (0..self.companions.len()).filter(|index| self.is_connected(*index));
                return connected
                    .map(|index| send::<requests::ContextShow>(index, Empty {}))
                    .collect();
            }
            KeyCode::Char('c') => return self.toggle_chat(),
            KeyCode::Char('w') => return vec![Action::ListCompanions],
            KeyCode::Char('+') => self.confirm_all(true),
            KeyCode::Char('-') => self.confirm_all(false),
            KeyCode::Char('q') if self.options.owns_companion => {
                self.overlay = Some(Overlay::Confirm {
                    question: "Stop the companion? Pending changes are rejected.".to_owned(),
                    action: Confirmed::Quit,
                });
            }
            KeyCode::Char('q') => return vec![Action::Quit],
            _ => {}
        }
        Vec::new()
    }

    pub(super) fn select_by(&mut self, by: isize) {
        let last = self.listed().len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }

    pub(super) fn open_selected(&mut self) -> Vec<Action> {
        let key: Option<ReviewKey> = self.listed().get(self.selected).map(|(key, _)| *key);
        key.map_or_else(Vec::new, |key| self.open_review(key))
    }

    fn list_key(&mut self, code: KeyCode) -> Vec<Action> {
        let page = isize::try_from(self.height() / 2).unwrap_or(1);
        match code {
            KeyCode::Char('j' | 'n') | KeyCode::Down => self.select_by(1),
            KeyCode::Char('k' | 'p') | KeyCode::Up => self.select_by(-1),
            KeyCode::PageDown => self.select_by(page),
            KeyCode::PageUp => self.select_by(-page),
            KeyCode::Home | KeyCode::Char('g') => self.selected = 0,
            KeyCode::End | KeyCode::Char('G') => self.select_by(isize::MAX),
            KeyCode::Enter | KeyCode::Char('l' | ' ') | KeyCode::Right => return self.open_selected(),
            _ => return self.common_key(code),
        }
        Vec::new()
    }

    fn review_key(&mut self, code: KeyCode, is_held: bool) -> Vec<Action> {
        let height = self.height();
        // A decision needs a key press of its own.
        if !is_held {
            match code {
                KeyCode::Char('a') => return self.decide_hunk(HunkAction::Accept),
                KeyCode::Char('r') => return self.decide_hunk(HunkAction::Reject),
                KeyCode::Char('=') => return self.decide_hunk(HunkAction::Keep),
                KeyCode::Char('u') => return self.undo(),
                KeyCode::Char('A') => return self.accept(false, false),
                KeyCode::Char('R') => return self.reject(""),
                _ => {}
            }
        }
        if self.move_key(code, height) {
            return Vec::new();
        }
        match code {
            KeyCode::Char(']' | 'J') | KeyCode::Tab => return self.step_review(true),
            KeyCode::Char('[' | 'K') | KeyCode::BackTab => return self.step_review(false),
            KeyCode::Char('W') => self.ask_reason(),
            KeyCode::Char('m') => self.ask_comment(),
            KeyCode::Char('i') => self.edit_in_place(),
            KeyCode::Char('e') => return self.open_editor(),
            KeyCode::Char('/') => {
                let last = self
                    .open
                    .as_ref()
                    .and_then(|open| open.search.clone())
                    .unwrap_or_default();
                self.overlay = Some(Overlay::Input(Box::new(Input::new(Purpose::Search, &last))));
            }
            KeyCode::Char('.') => self.step_match(true),
            KeyCode::Char(',') => self.step_match(false),
            KeyCode::Char('s') => {
                self.layout = Some(match self.layout() {
                    Layout::Split => Layout::Unified,
                    Layout::Unified => Layout::Split,
                });
            }
            KeyCode::Esc => {
                let cleared = self.open.as_mut().and_then(|open| open.search.take());
                if cleared.is_none() {
                    self.back_to_list();
                }
            }
            KeyCode::Char('l') => self.back_to_list(),
            _ => return self.common_key(code),
        }
        Vec::new()
    }

    /// Moves in the open review. `false` if the key means something else.
    fn move_key(&mut self, code: KeyCode, height: usize) -> bool {
        let Some(open) = self.open.as_mut() else { return false };
        let page = isize::try_from(height.saturating_sub(2).max(1)).unwrap_or(1);
        match code {
            KeyCode::Char('j') | KeyCode::Down => open.move_by(1, height),
            KeyCode::Char('k') | KeyCode::Up => open.move_by(-1, height),
            KeyCode::PageDown | KeyCode::Char(' ') => open.move_by(page, height),
            KeyCode::PageUp | KeyCode::Char('b') => open.move_by(-page, height),
            KeyCode::Home | KeyCode::Char('g') => open.move_to(0, height),
            KeyCode::End | KeyCode::Char('G') => open.move_to(usize::MAX, height),
            KeyCode::Left => open.scroll_columns(-COLUMN_STEP),
            KeyCode::Right => open.scroll_columns(COLUMN_STEP),
            KeyCode::Char('0') => open.left = 0,
            KeyCode::Char('n') | KeyCode::F(7) => open.step(true, height),
            KeyCode::Char('p') => open.step(false, height),
            KeyCode::Enter | KeyCode::Char('o') => {
                open.unfold();
            }
            KeyCode::Char('O') => {
                open.toggle_all_folds();
                open.scroll_to_cursor(height);
            }
            _ => return false,
        }
        true
    }

    fn overlay_key(&mut self, overlay: Overlay, key: KeyEvent) -> Vec<Action> {
        match overlay {
            Overlay::Help { top } => {
                self.overlay = panel_key(top, key.code).map(|top| Overlay::Help { top });
                Vec::new()
            }
            Overlay::Context { top } => {
                self.overlay = panel_key(top, key.code).map(|top| Overlay::Context { top });
                Vec::new()
            }
            Overlay::Companions { selected } => self.companions_key(selected, key.code),
            Overlay::Agents { selected } => self.agents_key(selected, key.code),
            Overlay::Confirm { question, action } => match key.code {
                KeyCode::Char('y' | 'Y') => self.confirmed(&action),
                KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => Vec::new(),
                _ => {
                    self.overlay = Some(Overlay::Confirm { question, action });
                    Vec::new()
                }
            },
            Overlay::Input(input) => self.input_key(input, key),
            Overlay::Edit(edit) => {
                self.overlay = Some(Overlay::Edit(edit));
                self.edit_key(key)
            }
        }
    }

    fn companions_key(&mut self, selected: usize, code: KeyCode) -> Vec<Action> {
        let last = self.running.len().saturating_sub(1);
        let selected = match code {
            KeyCode::Esc | KeyCode::Char('q' | 'w') => return Vec::new(),
            KeyCode::Char('j') | KeyCode::Down => (selected + 1).min(last),
            KeyCode::Char('k') | KeyCode::Up => selected.saturating_sub(1),
            KeyCode::Enter => {
                let Some(chosen) = self.running.get(selected).cloned() else {
                    return Vec::new();
                };
                self.companions.push(Companion::new(chosen.workspace.clone()));
                return vec![Action::Attach(chosen)];
            }
            _ => selected,
        };
        self.overlay = Some(Overlay::Companions { selected });
        Vec::new()
    }

    fn input_key(&mut self, mut input: Box<Input>, key: KeyEvent) -> Vec<Action> {
        match key.code {
            KeyCode::Esc => Vec::new(),
            KeyCode::Enter => {
                let text = input.text().to_owned();
                match input.purpose {
                    Purpose::Search => self.search(&text),
                    Purpose::Reason(key) if self.open.as_ref().is_some_and(|open| open.key == key) => {
                        return self.reject(&text);
                    }
                    Purpose::Reason(_) => {}
                    Purpose::Comment(key, line) => self.comment(key, line, &text),
                }
                Vec::new()
            }
            _ => {
                input.key(key);
                self.overlay = Some(Overlay::Input(input));
                Vec::new()
            }
        }
    }

    fn edit_key(&mut self, key: KeyEvent) -> Vec<Action> {
        let Some(Overlay::Edit(edit)) = self.overlay.as_mut() else {
            return Vec::new();
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_closed = self.open.as_ref().is_none_or(|open| {
            let companion = self.companions.get(open.key.companion);
            open.key != edit.key || companion.is_none_or(|known| !known.reviews.contains_key(&open.key.review))
        });
        match key.code {
            KeyCode::Esc if is_closed => {
                self.overlay = None;
                self.back_to_list();
                Vec::new()
            }
            KeyCode::Esc => self.save(),
            KeyCode::Char('s') if control => self.save(),
            KeyCode::Char('c') if control && (edit.discards || !edit.is_changed()) => {
                self.overlay = None;
                Vec::new()
            }
            KeyCode::Char('c') if control => {
                edit.discards = true;
                self.complain("Press Ctrl-C again to discard what you typed.");
                Vec::new()
            }
            _ if edit.is_saving => Vec::new(),
            _ => {
                edit.key(key);
                Vec::new()
            }
        }
    }
}

/// Scrolls a panel. `None` closes it.
fn panel_key(top: usize, code: KeyCode) -> Option<usize> {
    match code {
        KeyCode::Char('j') | KeyCode::Down => Some(top + 1),
        KeyCode::Char('k') | KeyCode::Up => Some(top.saturating_sub(1)),
        KeyCode::PageDown | KeyCode::Char(' ') => Some(top + 10),
        KeyCode::PageUp => Some(top.saturating_sub(10)),
        _ => None,
    }
}

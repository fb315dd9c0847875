//! What no other companion does, so that there is nothing to compare it with: only ours is measured, and how it grows is judged.

mod chat;
mod commands;
mod daemon_events;
mod decide_all;
mod keystroke;
mod large;
mod open_files;
mod page;
mod restart;

use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Box<dyn Scenario>> {
    vec![
        Box::new(keystroke::Keystroke),
        Box::new(commands::Commands),
        Box::new(large::Large),
        Box::new(decide_all::DecideAll),
        Box::new(page::Page),
        Box::new(restart::Restart),
        Box::new(open_files::OpenFiles),
        Box::new(daemon_events::DaemonEvents),
        Box::new(chat::Chat),
    ]
}

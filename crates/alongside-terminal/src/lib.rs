//! The terminal reviewer: a front end for reviews and the chat in a terminal.
//!
//! [`Model`] is everything that is known and shown, without I/O: [`Model::update`] applies a [`Message`] and returns the [`Action`]s that
//! it causes, [`Model::draw`] draws. [`run`] is the shell around it: the terminal, its events, the user's editor. Connections to companions
//! come from the caller, as [`Links`].
//!
//! *Invariant:* the reviewer decides nothing. Hunks and drafts are the companion's; what the user does is a request.
//!
//! *Invariant:* no text from elsewhere reaches the terminal but through the `cells` module.

mod cells;
mod chat;
mod edit;
mod highlight;
mod input;
mod lines;
mod message;
mod model;
mod review;
mod rows;
mod shell;
#[cfg(test)]
mod tests;
mod theme;
mod update;
mod view;
mod words;

pub use highlight::{Job, Marks};
pub use message::{Action, CompanionIndex, LinkEvent, Message, ReviewKey, RunningCompanion};
pub use model::{Model, Options};
pub use shell::{Alert, Links, ShellOptions, run};
pub use theme::{Background, ColorDepth, Syntax, Theme};

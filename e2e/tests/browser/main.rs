//! The page in a real browser, with a real companion and agents.
//!
//! User actions are in the scenarios in `e2e/browser/`; the assertions are here.
#![allow(missing_docs, clippy::expect_used, clippy::panic)]

mod accessibility;
mod arrivals;
mod browser;
mod chat;
mod chat_extras;
mod chat_local;
mod chat_speed;
mod decisions;
mod first_run;
mod hostile;
mod native_agent;
mod recovery;
mod sdk_agent;
mod security;
mod speed;
mod two_pages;

//! The review page in a real browser, with the companion and the agents that propose the changes.
//!
//! What a person does is in the scenarios of `e2e/browser/`; what must come of it is here.
#![allow(missing_docs, clippy::expect_used, clippy::panic)]

mod accessibility;
mod arrivals;
mod browser;
mod chat;
mod decisions;
mod hostile;
mod pretend_agent;
mod recovery;
mod security;
mod speed;
mod two_pages;

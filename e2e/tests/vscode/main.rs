//! The extension in VS Code (code-server, with its windows in a real browser) and the real companion.
//!
//! What a user can do in a window is in `e2e/vscode/window.mjs`; the assertions are here.
#![allow(missing_docs, clippy::expect_used, clippy::panic)]

mod browser;
mod case;
mod chat;
mod conflicts;
mod context;
mod hunks;
mod installed;
mod life;
mod list;
mod reasons;
mod reviews;
mod speed;
mod story;

//! The plugin in a real Emacs, of both versions.

mod context;
mod driver;
mod installed;
mod life;
mod opening;
mod package;
mod reviews;
mod with_cli;

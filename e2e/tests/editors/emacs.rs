//! The plugin in a real Emacs, of both versions.

mod context;
mod driver;
mod installed;
mod life;
mod package;
mod reviews;
mod with_cli;

//! The plugins in the real editors, each with the real companion; a module for each editor.
#![allow(missing_docs, clippy::expect_used, clippy::panic)]

mod checked;
mod desktop;
mod emacs;
mod helix;
mod installed;
mod kakoune;
mod kate;
mod neovim;
mod neovim_opening;
mod neovim_with_cli;
mod nvim;
mod packages;
mod qtcreator;
mod versions;
mod vim;
mod vim_driver;
mod vim_opening;

use alongside_e2e::mcp_agent as agent;

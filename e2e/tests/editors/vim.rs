//! The plugin in a real Vim 9, in a terminal.

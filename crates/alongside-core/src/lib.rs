//! The pure core of `alongside`.
//!
//! It holds everything the companion knows (what is open in the editor, which agents are connected, which changes wait
//! for a person) and every rule about it. It does no I/O, knows no clock, no async runtime and no wire format: inputs are
//! method calls, outputs are values, and so it is tested by calling and looking.

pub mod dialect;
mod token;

pub use token::Token;

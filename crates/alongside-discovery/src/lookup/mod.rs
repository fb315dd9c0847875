//! The agents' side.

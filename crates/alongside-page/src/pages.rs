//! Messages that tell the user what to do.

pub(crate) const NOT_FOUND: &str = "Not found.\n";
pub(crate) const WRONG_METHOD: &str = "Only GET and HEAD are allowed.\n";
pub(crate) const NO_UPGRADE: &str = "This endpoint requires a WebSocket (version 13).\n";
pub(crate) const NO_RANDOMNESS: &str = "Cannot get random bytes from the system; try again.\n";

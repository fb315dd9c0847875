//! The core has no clock; the caller passes the time in.

use std::time::Duration;

/// One reading of both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since the Unix epoch, for what people and agents see.
    pub unix_milliseconds: u64,
    /// Time since some fixed moment on a clock that never jumps, for deadlines.
    pub monotonic: Duration,
}

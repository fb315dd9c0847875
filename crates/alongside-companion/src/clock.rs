//! The clocks that the core is told of.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alongside_core::Now;
use tokio::time::Instant;

/// Both clocks, the one that never jumps counted from its start.
pub(super) struct Clock {
    start: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { start: Instant::now() }
    }

    pub(super) fn now(&self) -> Now {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now {
            unix_milliseconds: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
            monotonic: self.start.elapsed(),
        }
    }

    /// The moment of a deadline that the core named.
    pub(super) fn moment(&self, deadline: Duration) -> Instant {
        self.start + deadline
    }
}

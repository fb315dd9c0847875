//! The clocks. The core has none: it receives their readings.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alongside_core::Now;
use alongside_core::draft::DIFF_TIMEOUT;
use tokio::time::Instant;

/// The wall clock, and a monotonic one that counts from its start.
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

    /// The time of one of the core's deadlines.
    pub(super) fn moment(&self, deadline: Duration) -> Instant {
        self.start + deadline
    }
}

/// The deadline of a diff that begins now.
pub(super) fn diff_deadline() -> std::time::Instant {
    std::time::Instant::now() + DIFF_TIMEOUT
}

//! Waiting for other processes.
//!
//! A terminal screen or another program's file has no event to subscribe to, so these functions poll. A wait ends as
//! soon as possible; its limit is long because a busy machine is not a bug.

use std::thread;
use std::time::{Duration, Instant};

/// Limit for something that normally takes a second or two, on a busy machine.
pub const TIMEOUT: Duration = Duration::from_mins(2);

const INTERVAL: Duration = Duration::from_millis(100);

/// Polls until there is a value. `None` after `limit`.
pub fn eventually<T>(limit: Duration, mut question: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        if let Some(answer) = question() {
            return Some(answer);
        }
        if start.elapsed() >= limit {
            return None;
        }
        thread::sleep(INTERVAL);
    }
}

/// Whether something stays false for a whole `span`: the only way to check that nothing happens.
pub fn never_during(span: Duration, mut happens: impl FnMut() -> bool) -> bool {
    eventually(span, || happens().then_some(())).is_none()
}

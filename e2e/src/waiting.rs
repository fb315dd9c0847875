//! Waiting for what happens in another process.
//!
//! There is no event to subscribe to on a terminal's screen or on a file of somebody else's, so these look again and
//! again. A wait ends as soon as it can; its limit is long because a busy machine is not a bug.

use std::thread;
use std::time::{Duration, Instant};

/// How long a thing that normally takes a second or two may take on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_mins(1);

const INTERVAL: Duration = Duration::from_millis(100);

/// Asks until there is an answer. `None` after `limit`.
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

/// Whether a thing stays false for a whole `span`: the only way to see that nothing happens.
pub fn never_during(span: Duration, mut happens: impl FnMut() -> bool) -> bool {
    eventually(span, || happens().then_some(())).is_none()
}

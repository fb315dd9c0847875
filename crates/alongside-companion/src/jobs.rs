//! Jobs of which at most one per key runs at a time.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// The running jobs, and whether each is to be repeated. Repeating instead of queueing bounds the number of threads that
/// one hung file can block.
pub(super) struct Jobs<K>(Mutex<BTreeMap<K, bool>>);

impl<K> Default for Jobs<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord + Clone> Jobs<K> {
    /// Whether to start a job. If one is running, it is repeated instead.
    pub(super) fn start(&self, key: &K) -> bool {
        let mut jobs = self.0.lock();
        if let Some(repeat) = jobs.get_mut(key) {
            *repeat = true;
            return false;
        }
        jobs.insert(key.clone(), false);
        true
    }

    /// Whether a job that has just run is to run again. If not, it has ended.
    pub(super) fn repeats(&self, key: &K) -> bool {
        let mut jobs = self.0.lock();
        let repeats = jobs.get_mut(key).is_some_and(std::mem::take);
        if !repeats {
            jobs.remove(key);
        }
        repeats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_requested_while_running_is_repeated_once() {
        let jobs = Jobs::default();
        assert!(jobs.start(&"a"));
        assert!(!jobs.start(&"a") && !jobs.start(&"a"));
        assert!(jobs.start(&"b"));
        assert!(jobs.repeats(&"a"));
        assert!(!jobs.repeats(&"a"));
        assert!(jobs.start(&"a"), "it has ended");
    }
}

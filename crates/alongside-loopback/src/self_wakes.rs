//! Polls a future again at once when it wakes itself.
//!
//! hyper's connections do that for every body: one half tells the other that it wants more. The runtime would queue the task as one
//! that yields, and wake another worker to share the work, who finds nothing to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

/// How often it is polled again before others have their turn.
const MAX_REPEATS: usize = 8;

/// Not being polled: a wake is passed on.
const IDLE: u8 = 0;
const POLLED: u8 = 1;
/// It was woken while it was polled.
const WOKEN: u8 = 2;

pub(crate) struct SelfWakes {
    shared: Arc<Shared>,
    waker: Waker,
}

#[derive(Default)]
struct Shared {
    state: AtomicU8,
    task: Mutex<Option<Waker>>,
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let woken = self
            .state
            .compare_exchange(POLLED, WOKEN, Ordering::SeqCst, Ordering::SeqCst);
        if woken == Err(IDLE) {
            let task = self.task.lock().clone();
            if let Some(task) = task {
                task.wake();
            }
        }
    }
}

impl SelfWakes {
    pub(crate) fn new() -> Self {
        let shared = Arc::<Shared>::default();
        let waker = Waker::from(Arc::clone(&shared));
        Self { shared, waker }
    }

    pub(crate) fn poll<T>(&self, task: &Context<'_>, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        self.set_task(task.waker());
        let state = &self.shared.state;
        for _ in 0..=MAX_REPEATS {
            state.store(POLLED, Ordering::SeqCst);
            if let Poll::Ready(value) = poll(&mut Context::from_waker(&self.waker)) {
                state.store(IDLE, Ordering::SeqCst);
                return Poll::Ready(value);
            }
            let slept = state.compare_exchange(POLLED, IDLE, Ordering::SeqCst, Ordering::SeqCst);
            if slept.is_ok() {
                return Poll::Pending;
            }
        }
        state.store(IDLE, Ordering::SeqCst);
        task.waker().wake_by_ref();
        Poll::Pending
    }

    fn set_task(&self, waker: &Waker) {
        let mut task = self.shared.task.lock();
        if !task.as_ref().is_some_and(|task| task.will_wake(waker)) {
            *task = Some(waker.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Counter {
        fn wakes(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls once; `polled` is called for each time that the future is, with how often it was before.
    fn poll(counter: &Arc<Counter>, wakes: &SelfWakes, mut polled: impl FnMut(usize, &Waker) -> Poll<()>) -> Poll<()> {
        let mut times = 0;
        wakes.poll(&Context::from_waker(&counter.clone().into()), |task| {
            times += 1;
            polled(times - 1, task.waker())
        })
    }

    #[test]
    fn future_that_wakes_itself_is_polled_again_without_waking_its_task() {
        let (counter, wakes) = (Arc::<Counter>::default(), SelfWakes::new());
        let mut polls = 0;
        let result = poll(&counter, &wakes, |times, waker| {
            polls = times + 1;
            if times < 2 {
                waker.wake_by_ref();
            }
            Poll::Pending
        });
        assert_eq!((result, polls, counter.wakes()), (Poll::Pending, 3, 0));
    }

    #[test]
    fn future_that_is_woken_later_wakes_its_latest_task() {
        let (first, second, wakes) = (Arc::<Counter>::default(), Arc::<Counter>::default(), SelfWakes::new());
        let mut kept = None;
        for counter in [&first, &second] {
            let result = poll(counter, &wakes, |_, waker| {
                kept = Some(waker.clone());
                Poll::Pending
            });
            assert_eq!(result, Poll::Pending);
        }
        kept.unwrap().wake();
        assert_eq!((first.wakes(), second.wakes()), (0, 1));
    }

    #[test]
    fn future_that_always_wakes_itself_lets_others_have_their_turn() {
        let (counter, wakes) = (Arc::<Counter>::default(), SelfWakes::new());
        let result = poll(&counter, &wakes, |_, waker| {
            waker.wake_by_ref();
            Poll::Pending
        });
        assert_eq!((result, counter.wakes()), (Poll::Pending, 1));
        assert_eq!(poll(&counter, &wakes, |_, _| Poll::Ready(())), Poll::Ready(()));
    }
}

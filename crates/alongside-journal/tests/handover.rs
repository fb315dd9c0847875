//! The queue between "decided" and "written".

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;

use alongside_journal::{Handover, Ticket};

#[test]
fn lone_caller_leads_and_its_item_is_written() {
    let handover = Handover::new();
    let ticket = handover.push(1);
    assert!(!ticket.is_written());
    assert!(!handover.is_idle());
    let mut batches = Vec::new();
    assert!(handover.lead(|batch| {
        batches.push(batch);
        Ok(())
    }));
    assert_eq!(batches, [[1]]);
    assert!(ticket.is_written());
    assert_eq!(ticket.wait(), Ok(()));
    assert!(handover.is_idle());
}

#[test]
fn empty_queue_is_not_written() {
    let handover = Handover::<u8>::new();
    assert!(handover.lead(|_| panic!("nothing was queued")));
    assert!(handover.is_idle());
}

#[test]
fn items_pushed_during_a_write_are_the_next_batch() {
    let handover = Handover::new();
    handover.push(1);
    let mut batches = Vec::new();
    handover.lead(|batch| {
        if batch == [1] {
            handover.push(2);
            handover.push(3);
            assert!(!handover.lead(|_| Ok(())), "there is a leader already");
        }
        batches.push(batch);
        Ok(())
    });
    assert_eq!(batches, [vec![1], vec![2, 3]]);
}

#[test]
fn many_threads_keep_the_order_of_the_callers_lock_and_each_item_is_written_once() {
    const THREADS: usize = 8;
    const ITEMS: usize = 2_000;
    let handover = Handover::new();
    let decided = Mutex::new(0);
    let written = Mutex::new(Vec::new());
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                start.wait();
                for _ in 0..ITEMS {
                    let (number, ticket) = {
                        let mut decided = decided.lock().unwrap();
                        *decided += 1;
                        (*decided, handover.push(*decided))
                    };
                    handover.lead(|batch| {
                        written.lock().unwrap().extend(batch);
                        Ok(())
                    });
                    ticket.wait().unwrap();
                    assert_eq!(written.lock().unwrap()[number - 1], number);
                }
            });
        }
    });
    let written = written.into_inner().unwrap();
    assert!(written.into_iter().eq(1..=THREADS * ITEMS));
    assert!(handover.is_idle());
}

#[test]
fn failed_batch_fails_what_was_queued_behind_it_and_the_next_one_is_tried() {
    let handover = Handover::new();
    let first = handover.push(1);
    let mut behind = None;
    let mut dropped = Vec::new();
    handover.lead(|_| {
        behind = Some(handover.push(2));
        dropped = handover.take_queued();
        Err("disk full".into())
    });
    assert_eq!(dropped, [2]);
    assert_eq!(first.wait(), Err("disk full".into()));
    assert_eq!(behind.unwrap().wait(), Err("disk full".into()));
    assert!(handover.is_idle());

    let later = handover.push(3);
    handover.lead(|_| Ok(()));
    assert!(later.is_written());
    assert!(!first.is_written());
}

#[test]
fn failed_batch_alone_does_not_fail_the_next() {
    let handover = Handover::new();
    let first = handover.push(1);
    let mut second = None;
    handover.lead(|batch| {
        if batch == [1] {
            second = Some(handover.push(2));
            return Err("disk full".into());
        }
        Ok(())
    });
    assert!(first.wait().is_err());
    assert!(second.unwrap().is_written());
}

#[test]
fn panic_fails_everything_queued_and_releases_the_leadership() {
    let handover = Handover::new();
    let first = handover.push(1);
    let mut behind = None;
    let result = catch_unwind(AssertUnwindSafe(|| {
        handover.lead(|_| {
            behind = Some(handover.push(2));
            panic!("broken");
        })
    }));
    assert!(result.is_err());
    assert!(first.wait().is_err());
    assert!(behind.unwrap().wait().is_err());
    assert!(handover.is_idle());
    let later = handover.push(3);
    assert!(handover.lead(|batch| {
        assert_eq!(batch, [3]);
        Ok(())
    }));
    assert!(later.is_written());
}

#[test]
fn dropped_handover_fails_what_was_never_written() {
    let handover = Handover::new();
    let ticket = handover.push(1);
    drop(handover);
    assert!(ticket.wait().is_err());
}

#[test]
fn waiting_thread_is_woken_by_the_leader() {
    let handover = Arc::new(Handover::new());
    let ticket = handover.push(1);
    let (waiting, is_waiting) = mpsc::channel();
    let waiter = thread::spawn(move || {
        waiting.send(()).unwrap();
        ticket.wait()
    });
    is_waiting.recv().unwrap();
    handover.lead(|_| Ok(()));
    assert_eq!(waiter.join().unwrap(), Ok(()));
}

#[tokio::test]
async fn waiting_tasks_are_woken_by_the_leader() {
    let handover = Handover::new();
    let ticket = handover.push(1);
    let wait = |ticket: Ticket| tokio::spawn(async move { ticket.written().await });
    let waiters = [wait(ticket.clone()), wait(ticket.clone())];
    tokio::task::yield_now().await;
    handover.lead(|_| Ok(()));
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap(), Ok(()));
    }
    assert_eq!(ticket.written().await, Ok(()), "a late ticket does not wait");
}

#[test]
fn one_caller_is_asked_to_lead_until_one_begins() {
    let handover = Handover::new();
    handover.push(1);
    assert!(handover.needs_leader());
    handover.push(2);
    assert!(!handover.needs_leader(), "another caller was asked");
    let mut written = Vec::new();
    handover.lead(|items| {
        written.extend(items);
        if written.len() == 2 {
            handover.push(3);
            assert!(!handover.needs_leader(), "this one writes until nothing is queued");
        }
        Ok(())
    });
    assert_eq!(written, [1, 2, 3]);
    handover.push(4);
    assert!(handover.needs_leader());
}

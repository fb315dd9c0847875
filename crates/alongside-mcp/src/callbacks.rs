//! Reports session events to the [`Companion`], in order and without a lock.
//!
//! Events occur under the registry's lock, in whichever task notices them. Calling a [`Companion`] there could deadlock
//! with its own lock. So each event is queued while the lock is held, which fixes the order, and one task delivers the
//! queue.
//!
//! The queue is bounded: a request waits ([`Callbacks::ready`]) while the companion is too far behind. Only what cannot
//! wait is queued beyond the limit: a lost connection or an expired session, at most two events for each session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alongside_core::dialect::ClientInfo;
use alongside_core::{DeliveryId, SessionEnd, SessionKey};
use tokio::sync::{mpsc, watch};

use crate::companion::Companion;

pub(crate) enum SessionEvent {
    Started {
        session: SessionKey,
        client: Option<ClientInfo>,
    },
    StreamOpened(SessionKey),
    StreamClosed(SessionKey),
    Ended {
        session: SessionKey,
        end: SessionEnd,
    },
    Settled {
        session: SessionKey,
        deliveries: Vec<DeliveryId>,
    },
}

#[derive(Clone)]
pub(crate) struct Callbacks {
    sender: mpsc::UnboundedSender<SessionEvent>,
    queued: Arc<AtomicU64>,
    delivered: watch::Receiver<u64>,
    limit: u64,
}

pub(crate) struct CallbackQueue {
    receiver: mpsc::UnboundedReceiver<SessionEvent>,
    delivered: watch::Sender<u64>,
}

pub(crate) fn channel(limit: usize) -> (Callbacks, CallbackQueue) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let (delivered_sender, delivered) = watch::channel(0);
    let callbacks = Callbacks {
        sender,
        queued: Arc::default(),
        delivered,
        limit: limit.max(1) as u64,
    };
    let queue = CallbackQueue {
        receiver,
        delivered: delivered_sender,
    };
    (callbacks, queue)
}

impl Callbacks {
    /// Never waits: the caller holds the registry's lock.
    pub(crate) fn report(&self, event: SessionEvent) {
        self.queued.fetch_add(1, Ordering::Relaxed);
        // Fails only after a shutdown.
        let _ = self.sender.send(event);
    }

    /// Reports that decisions have arrived, or are no longer kept.
    pub(crate) fn settled(&self, session: &SessionKey, deliveries: Vec<DeliveryId>) {
        if !deliveries.is_empty() {
            let session = session.clone();
            self.report(SessionEvent::Settled { session, deliveries });
        }
    }

    /// Waits until there is room for the events of another request.
    pub(crate) async fn ready(&self) {
        let limit = self.limit;
        self.wait(|queued, delivered| queued.saturating_sub(delivered) < limit)
            .await;
    }

    /// Waits until everything queued so far was delivered. Leaves nothing behind if the caller stops waiting.
    pub(crate) async fn caught_up(&self) {
        let target = self.queued.load(Ordering::Relaxed);
        self.wait(|_, delivered| delivered >= target).await;
    }

    async fn wait(&self, mut done: impl FnMut(u64, u64) -> bool) {
        let mut delivered = self.delivered.clone();
        // An error means that the delivering task has ended, so there is nothing to wait for.
        let _ = delivered
            .wait_for(|delivered| done(self.queued.load(Ordering::Relaxed), *delivered))
            .await;
    }
}

impl CallbackQueue {
    pub(crate) async fn deliver<C: Companion>(mut self, companion: Arc<C>) {
        while let Some(event) = self.receiver.recv().await {
            match event {
                SessionEvent::Started { session, client } => {
                    companion.session_started(&session, client.as_ref()).await;
                }
                SessionEvent::StreamOpened(session) => companion.stream_opened(&session),
                SessionEvent::StreamClosed(session) => companion.stream_closed(&session),
                SessionEvent::Ended { session, end } => companion.session_ended(&session, &end),
                SessionEvent::Settled { session, deliveries } => companion.settled(&session, &deliveries),
            }
            self.delivered.send_modify(|delivered| *delivered += 1);
        }
    }
}

//! Tells the binary what happened, in order, without a lock.
//!
//! Things happen under the registry's lock, in whatever task notices them; telling a [`Companion`] there could deadlock
//! with its own lock. So each event is queued while the lock is held, which fixes the order, and one task delivers the queue.

use std::sync::Arc;

use alongside_core::dialect::ClientInfo;
use tokio::sync::{mpsc, oneshot};

use crate::companion::Companion;
use alongside_core::{Decision, SessionId};

/// Something that a [`Companion`] wants to know.
pub(crate) enum Happening {
    Started {
        session: SessionId,
        client: Option<ClientInfo>,
    },
    StreamOpened(SessionId),
    StreamClosed(SessionId),
    Ended {
        session: SessionId,
        undelivered: Vec<Decision>,
    },
    /// Nothing happened: somebody wants to know when all before was told.
    Settle(oneshot::Sender<()>),
}

/// The queue's sending side. It has no limit, but each request adds only a few entries.
#[derive(Clone)]
pub(crate) struct Callbacks(mpsc::UnboundedSender<Happening>);

/// Makes a queue.
pub(crate) fn channel() -> (Callbacks, mpsc::UnboundedReceiver<Happening>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Callbacks(sender), receiver)
}

impl Callbacks {
    /// Queues an event.
    pub(crate) fn tell(&self, happening: Happening) {
        // After a shutdown nobody listens any more, and nobody needs to.
        let _ = self.0.send(happening);
    }

    /// Waits until everything queued so far was told.
    pub(crate) async fn settled(&self) {
        let (sender, receiver) = oneshot::channel();
        self.tell(Happening::Settle(sender));
        // An error means that the delivering task is gone, so there is nothing to wait for.
        let _ = receiver.await;
    }
}

/// Delivers the queue for as long as there is one.
pub(crate) async fn deliver<C: Companion>(companion: Arc<C>, mut queue: mpsc::UnboundedReceiver<Happening>) {
    while let Some(happening) = queue.recv().await {
        match happening {
            Happening::Started { session, client } => companion.session_started(&session, client.as_ref()),
            Happening::StreamOpened(session) => companion.stream_opened(&session),
            Happening::StreamClosed(session) => companion.stream_closed(&session),
            Happening::Ended { session, undelivered } => companion.session_ended(&session, undelivered),
            Happening::Settle(sender) => {
                // The one who asked may have gone.
                let _ = sender.send(());
            }
        }
    }
}

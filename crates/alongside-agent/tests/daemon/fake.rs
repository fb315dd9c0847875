//! The fake daemon with this crate's clients.

use std::ops::Deref;
use std::time::Duration;

use alongside_agent::daemon::{DaemonAddress, DaemonClient, DaemonSessionClient, EventStream, NewSession, StreamItem};
pub(crate) use alongside_testing::daemon::{CLIENT, Reply, SESSION, WORKSPACE, chunk, frame};
use tokio_rustls::TlsAcceptor;

/// See [`alongside_testing::FakeDaemon`].
pub(crate) struct FakeDaemon(alongside_testing::FakeDaemon);

impl FakeDaemon {
    pub(crate) async fn start() -> Self {
        Self(alongside_testing::FakeDaemon::start().await)
    }

    pub(crate) async fn start_with(tls: TlsAcceptor) -> Self {
        Self(alongside_testing::FakeDaemon::start_with(Some(tls)).await)
    }

    pub(crate) fn client(&self) -> DaemonClient {
        DaemonClient::new(DaemonAddress::parse(&self.url()).unwrap(), None).unwrap()
    }

    pub(crate) async fn session(&self) -> DaemonSessionClient {
        DaemonSessionClient::create_or_attach(&self.client(), &NewSession::default())
            .await
            .unwrap()
    }
}

impl Deref for FakeDaemon {
    type Target = alongside_testing::FakeDaemon;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Reads from a stream until an event satisfies the test; fails after ten seconds.
pub(crate) async fn read_until(
    stream: &mut EventStream,
    mut enough: impl FnMut(&StreamItem) -> bool,
) -> Vec<StreamItem> {
    let mut items = Vec::new();
    let read = async {
        while let Some(item) = stream.next().await {
            let item = item.unwrap();
            let done = enough(&item);
            items.push(item);
            if done {
                return;
            }
        }
    };
    let finished = tokio::time::timeout(Duration::from_secs(10), read).await;
    assert!(finished.is_ok(), "only {items:#?}");
    items
}

/// The IDs of the events among the items.
pub(crate) fn ids(items: &[StreamItem]) -> Vec<u64> {
    let id = |item: &StreamItem| match item {
        StreamItem::Event(event) => event.id,
        _ => None,
    };
    items.iter().filter_map(id).collect()
}

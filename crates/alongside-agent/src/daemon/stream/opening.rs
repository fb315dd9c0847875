//! Connecting to the event stream, and reopening a session after a restart of the daemon.

use std::collections::BTreeMap;

use alongside_wire::sse::SseReader;
use hyper::header::{ACCEPT, HeaderName};

use super::{EventStream, Live, MAX_EVENT_BYTES, Phase, StreamItem, turn_end};
use crate::daemon::client::of_session;
use crate::daemon::error::DaemonError;
use crate::daemon::session::Cursor;
use crate::daemon::transport::{Call, encoded};

const EPOCH: HeaderName = HeaderName::from_static("x-qwen-event-epoch");
const STREAM_ID: HeaderName = HeaderName::from_static("x-qwen-sse-stream-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

impl EventStream {
    pub(super) async fn connect(&mut self) -> Result<(), DaemonError> {
        let identity = self.session.client_id();
        let mut path = of_session(
            self.session.session_id(),
            "events?snapshot=1&maxQueued=2048&connectReason=",
        );
        path.push_str(self.why_connect);
        if let Some(stream) = &self.previous_stream {
            path.push_str("&previousStreamId=");
            path.push_str(&encoded(stream));
        }
        let mut call = Call::get(path)
            .client(identity.as_deref())
            .header(ACCEPT, "text/event-stream");
        if let Some(id) = self.position.last_event_id {
            call = call.header(LAST_EVENT_ID, id.to_string());
            if let Some(epoch) = &self.position.epoch {
                call = call.header(EPOCH, epoch);
            }
        }
        let opened = self.session.client().transport.stream(call).await;
        let response = match opened {
            Ok(opened) => opened,
            Err(error) if error.is_session_gone() => return self.reopen(error).await,
            Err(error) if error.has_code("invalid_client_id") => {
                let renewed = self.session.renew_identity(identity.as_deref()).await;
                return renewed.or_else(|error| self.failed(error));
            }
            Err(error) => return self.failed(error),
        };
        let header = |name: HeaderName| {
            let value = response.headers().get(name)?.to_str().ok()?;
            Some(value.to_owned())
        };
        let epoch = header(EPOCH);
        self.previous_stream = header(STREAM_ID);
        let both = self.position.epoch.as_ref().zip(epoch.as_ref());
        let live = Live {
            strange_epoch: both.is_some_and(|(ours, theirs)| ours != theirs),
            replaying: self.position.last_event_id.is_some(),
            chunks: response.into_chunks(),
            reader: SseReader::new(MAX_EVENT_BYTES),
            epoch,
            held: BTreeMap::new(),
        };
        if !live.strange_epoch && live.epoch.is_some() {
            self.position.epoch.clone_from(&live.epoch);
        }
        self.phase = Phase::Open(Box::new(live));
        // A reader that has handled everything so far gets the epoch with this.
        self.ready
            .push_back((StreamItem::Connected, Some(self.position.clone())));
        if self.run.is_none() {
            // Distinguishes a restart from a closed session; optional.
            self.run = self.session.client().run_id().await.ok().flatten();
        }
        Ok(())
    }

    /// The session is not live. After a restart of the daemon, reopen it with its history. Otherwise it was closed or crashed, and the
    /// user decides whether to reopen it.
    async fn reopen(&mut self, gone: DaemonError) -> Result<(), DaemonError> {
        let run = match self.session.client().run_id().await {
            Ok(run) => run,
            Err(error) if error.is_transient() => return self.failed(error),
            Err(_) => None,
        };
        // Do not reopen a session that this stream never saw live.
        if self.why_connect == "initial" || (run.is_some() && run == self.run) {
            return Err(gone);
        }
        self.phase = Phase::Resync(None, "session_reopened".to_owned());
        Ok(())
    }

    /// Loads the session to replace the missed events.
    pub(super) async fn resync(&mut self) -> Result<(), DaemonError> {
        let identity = self.session.client_id();
        let workspace = Some(self.session.workspace()).filter(|workspace| !workspace.is_empty());
        let client = self.session.client();
        let loaded = client
            .load(self.session.session_id(), workspace, identity.as_deref())
            .await;
        let mut handle = match loaded {
            Ok(handle) => handle,
            // The connection is not read in the meantime; dropping it is better than being evicted.
            Err(error) => return self.failed(error),
        };
        self.session.take_identity(&handle);
        let history = handle.take_history();
        self.session.remember_turn_ends(handle.turn_ends());
        self.session.remember_turn_ends(history.iter().filter_map(turn_end));
        self.position = Cursor {
            last_event_id: Some(handle.last_event_id.unwrap_or_default()),
            epoch: handle.event_epoch.take(),
        };
        let Phase::Resync(live, reason) = std::mem::replace(&mut self.phase, Phase::Connect) else {
            return Ok(());
        };
        self.why_connect = "state_resync";
        if live.is_none() {
            // The session is live in another process of the daemon now.
            self.run = None;
        }
        let item = StreamItem::Rebuilt { reason, history };
        self.ready.push_back((item, Some(self.position.clone())));
        // The open connection has the same epoch: duplicates will be dropped.
        if let Some(mut live) = live.filter(|live| live.epoch.is_some() && live.epoch == self.position.epoch) {
            live.strange_epoch = false;
            live.held.clear();
            self.phase = Phase::Open(live);
        }
        Ok(())
    }
}

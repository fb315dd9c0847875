//! An event of a stream, and its id.

use std::fmt;
use std::sync::Arc;

use alongside_core::Decision;
use bytes::{BufMut, Bytes, BytesMut};

use super::diagnostics::ChangedDiagnostics;
use crate::companion;

/// An event to write. Encoded outside of the lock, because it may be long.
pub(crate) struct Event {
    pub(super) id: EventId,
    pub(super) payload: Payload,
}

/// Written as `<epoch>-<delivery>-<outbox>-<number>`.
pub(super) struct EventId {
    /// Names the journal.
    pub(super) epoch: Arc<str>,
    /// All decisions of the session up to this one came before the event.
    pub(super) delivery: u64,
    /// Names the outbox.
    pub(super) outbox: Arc<str>,
    pub(super) number: u64,
}

pub(super) enum Payload {
    /// A context or a mention, serialized.
    Message(Bytes),
    Diagnostics(ChangedDiagnostics),
    Decision(Decision),
}

impl EventId {
    pub(super) fn parse(id: &str) -> Option<Self> {
        let mut parts = id.split('-');
        let id = Self {
            epoch: parts.next()?.into(),
            delivery: parts.next()?.parse().ok()?,
            outbox: parts.next()?.into(),
            number: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(id)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            epoch,
            delivery,
            outbox,
            number,
        } = self;
        write!(formatter, "{epoch}-{delivery}-{outbox}-{number}")
    }
}

impl Event {
    #[cfg(test)]
    pub(crate) fn context(&self) -> Option<&Bytes> {
        match &self.payload {
            Payload::Message(message) => Some(message),
            Payload::Diagnostics(_) | Payload::Decision(_) => None,
        }
    }

    /// The JSON-RPC message.
    pub(crate) fn data(&self) -> Result<Bytes, serde_json::Error> {
        match &self.payload {
            Payload::Message(message) => Ok(message.clone()),
            Payload::Diagnostics(changed) => Ok(changed.message()),
            Payload::Decision(decision) => companion::to_json(decision).map(Bytes::from),
        }
    }

    /// The event as a server-sent event. The data is one line and never empty: Gemini CLI disconnects on empty data.
    pub(crate) fn encode(&self) -> Result<Bytes, serde_json::Error> {
        let data = self.data()?;
        let head = format!("id: {}\ndata: ", self.id);
        let mut bytes = BytesMut::with_capacity(head.len() + data.len() + 2);
        bytes.put_slice(head.as_bytes());
        bytes.put_slice(&data);
        bytes.put_slice(b"\n\n");
        Ok(bytes.freeze())
    }
}

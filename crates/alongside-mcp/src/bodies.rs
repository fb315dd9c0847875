//! The bodies of requests: the size of each is limited, and the memory of all together.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::config::{Limits, Timing};

/// Bodies up to this size do not count: everything but a proposal gets through while large bodies wait.
const SHORT_BODY_BYTES: usize = 64 * 1024;

/// Reads bodies; shared by all connections.
pub(crate) struct Bodies {
    limit: usize,
    /// How long a body may stall, and wait for others.
    pause: Duration,
    /// A permit per byte.
    memory: Arc<Semaphore>,
    all: usize,
}

/// A body, with its share of the memory for all bodies.
pub(crate) struct ReadBody {
    bytes: Vec<u8>,
    _share: Option<OwnedSemaphorePermit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("The body is longer than {0} bytes.")]
    TooLong(usize),
    #[error("Too many large requests at once; try again.")]
    TooMany,
    #[error("The body did not arrive in time.")]
    Stalled,
    #[error("The request body was cut off.")]
    CutOff,
}

impl ReadBody {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Bodies {
    pub(crate) fn new(limits: &Limits, timing: &Timing) -> Self {
        // One body always fits, and tokio counts no further.
        let all = limits.all_bodies_bytes.clamp(limits.body_bytes, Semaphore::MAX_PERMITS);
        Self {
            limit: limits.body_bytes,
            pause: timing.body_pause,
            memory: Arc::new(Semaphore::new(all)),
            all,
        }
    }

    /// Reads a body. If its announced length is too large, nothing is read.
    pub(crate) async fn read(&self, mut body: Incoming) -> Result<ReadBody, BodyError> {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let announced = size(body.size_hint().lower());
        if announced > self.limit {
            return Err(BodyError::TooLong(self.limit));
        }
        // A body of unknown length may be as long as allowed.
        let longest = body.size_hint().upper().map_or(self.limit, size).min(self.limit);
        let share = self.reserve(longest).await?;
        // The share is for this much, and what does not arrive is not touched.
        let mut bytes = Vec::with_capacity(announced);
        loop {
            let frame = timeout(self.pause, body.frame()).await;
            match frame.map_err(|_| BodyError::Stalled)? {
                None => return Ok(ReadBody { bytes, _share: share }),
                Some(Err(_)) => return Err(BodyError::CutOff),
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    if bytes.len() + data.len() > self.limit {
                        return Err(BodyError::TooLong(self.limit));
                    }
                    bytes.extend_from_slice(&data);
                }
            }
        }
    }

    async fn reserve(&self, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, BodyError> {
        if bytes <= SHORT_BODY_BYTES {
            return Ok(None);
        }
        let permits = u32::try_from(bytes.min(self.all)).unwrap_or(u32::MAX);
        let share = Arc::clone(&self.memory).acquire_many_owned(permits);
        match timeout(self.pause, share).await {
            Ok(Ok(share)) => Ok(Some(share)),
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(BodyError::TooMany),
        }
    }
}

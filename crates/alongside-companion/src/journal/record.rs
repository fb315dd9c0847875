//! What is in the journal: [`Change`](alongside_core::Change)s with their texts, and where the companion listens.

use std::sync::Arc;

use alongside_core::dialect::ClientInfo;
use alongside_core::{DeliveryId, Recipient, ReviewChange, ReviewId, ReviewOutcome, ReviewOutline, Secret, SessionKey};
use alongside_journal::StoredText;
use serde::{Deserialize, Serialize};

/// What one input of the core led to. Written whole or not at all.
#[derive(Serialize, Deserialize)]
pub(super) struct Frame {
    /// When, in milliseconds since 1970.
    pub(super) at: u64,
    pub(super) records: Vec<Record>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Record {
    Review {
        outline: ReviewOutline,
        /// `None` if they are the same as in the review's previous record.
        texts: Option<StoredTexts>,
    },
    /// A decision about a hunk, or an edit. The size of a review does not matter to it.
    Edited(ReviewChange),
    Ended {
        review: ReviewId,
        outcome: ReviewOutcome,
        delivery: Option<StoredDelivery>,
    },
    Readdressed {
        delivery: DeliveryId,
        to: Recipient,
    },
    Settled {
        deliveries: Vec<DeliveryId>,
    },
    Session {
        session: SessionKey,
        client: ClientInfo,
    },
    SessionEnded {
        session: SessionKey,
    },
    Numbers {
        review: u64,
        delivery: u64,
    },
    Delivery(StoredDelivery),
    Listening(Endpoint),
    /// A clean stop.
    Stopped,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct StoredTexts {
    pub(super) base: StoredText,
    pub(super) proposal: StoredText,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredDelivery {
    pub(super) id: DeliveryId,
    pub(super) review: ReviewId,
    pub(super) to: Recipient,
    pub(super) path: Arc<str>,
    /// The accepted text; `None` for a rejection.
    pub(super) content: Option<StoredText>,
}

/// Where the companion listens, so that its successor can listen there again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Endpoint {
    pub(crate) role: Role,
    pub(crate) port: u16,
    /// The agents' token, or the secret of the page's logins.
    pub(crate) secret: Secret,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Role {
    Agents,
    Page,
}

//! The pure core of `alongside`.
//!
//! It holds everything the companion knows (what is open in the editor, which agents are connected, which changes are
//! pending) and every rule about it. It does no I/O and has no clock, no async runtime and no wire format: inputs are
//! method calls on [`Core`], outputs are [`Effect`]s. Nothing slow happens in a call: files are resolved by the caller, and
//! diffs are computed on a snapshot of a [`Review`] and applied by version.
//!
//! ```
//! use alongside_core::{Base, Core, Effect, EmptyDraft, Now, Proposal, SessionKey, Decision};
//!
//! let mut core = Core::new(Vec::new());
//! let session = SessionKey::from("one");
//! core.session_started(Now::default(), &session, None);
//! let proposal = Proposal::new("/project/a.txt", Base::Missing, "hello\n", None);
//! let review = core.open_review(Now::default(), &session, proposal)?;
//! core.accept(review, Some("hello, world\n".into()), EmptyDraft::Refuse)?;
//!
//! let sent = core.take_effects().into_iter().find_map(|effect| match effect {
//!     Effect::SendDecision { decision: Decision::Accepted { content, .. }, .. } => Some(content),
//!     _ => None,
//! });
//! assert_eq!(sent.as_deref(), Some("hello, world\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod context;
mod core;
pub mod diagnostics;
pub mod dialect;
pub mod difference;
pub mod draft;
mod hook;
pub mod printable;
pub mod privacy;
mod review;
mod secret;
mod session;
mod text_change;
mod time;

pub use crate::core::{
    Change, Core, DecideError, Delivery, DeliveryId, Effect, EmptyDraft, Ledger, ProposalError, Recipient, SessionEnd,
};
pub use crate::hook::HookAgent;
pub use crate::review::{
    Base, BaseKind, Decision, DraftUpdate, Proposal, Review, ReviewChange, ReviewId, ReviewOutcome, ReviewOutline,
};
pub use crate::secret::Secret;
pub use crate::session::{Agent, AgentIdentity, SessionId, SessionKey};
pub use crate::text_change::{InvalidEdit, TextChange};
pub use crate::time::Now;

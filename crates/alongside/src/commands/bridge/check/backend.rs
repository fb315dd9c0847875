//! The companion that a plugin under check is connected to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use alongside_core::{Core, Effect, EmptyDraft, Now, Proposal, ReviewId, ReviewOutcome, SessionKey};
use alongside_protocol::{
    Backend, Empty, ErrorKind, FrontEnd, Notification, Reject, Request, RequestError, Response, ReviewClosed,
    ReviewDecided, ReviewRef, ReviewSummary, ReviewTexts, SharedNotification, VERSION, Variables, Version, Welcome,
};
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};

use super::plugin::RefusedRequests;
use super::{BASE, PROPOSAL};

/// A companion with nothing around it but the plugin under check.
pub(super) struct CheckBackend {
    core: Mutex<Core>,
    news: broadcast::Sender<SharedNotification>,
    /// The chat, in which nothing happens.
    chat: broadcast::Sender<SharedNotification>,
    folder: PathBuf,
    refusals: RefusedRequests,
    /// The plugin hears notifications from now on.
    pub(super) watched: Notify,
    /// The draft of the first accepted review.
    accepted_draft: Mutex<Option<String>>,
}

impl CheckBackend {
    pub(super) fn new(folder: &Path, refusals: RefusedRequests) -> Self {
        Self {
            core: Mutex::new(Core::new(vec![folder.to_owned()])),
            news: broadcast::channel(64).0,
            chat: broadcast::channel(1).0,
            folder: folder.to_owned(),
            refusals,
            watched: Notify::new(),
            accepted_draft: Mutex::default(),
        }
    }

    pub(super) fn accepted_draft(&self) -> Option<String> {
        self.accepted_draft.lock().clone()
    }

    /// Lets an agent propose a change.
    pub(super) fn propose(&self, path: &str) -> ReviewId {
        let proposal = Proposal::new(path, alongside_core::Base::Text(BASE.into()), PROPOSAL, None);
        self.with_core(|core| core.open_review(Now::default(), &SessionKey::from("check"), proposal))
            // Only a hundredth one is refused.
            .unwrap_or(ReviewId(0))
    }

    fn with_core<R>(&self, input: impl FnOnce(&mut Core) -> R) -> R {
        let mut core = self.core.lock();
        let result = input(&mut core);
        for effect in core.take_effects() {
            let notification = match effect {
                Effect::ReviewOpened(id) => core
                    .review(id)
                    .ok()
                    .map(|review| Notification::ReviewOpened(ReviewSummary::from(review))),
                Effect::ReviewClosed { id, path, outcome } => Some(Notification::ReviewClosed(ReviewClosed {
                    review: id,
                    path,
                    outcome,
                })),
                _ => None,
            };
            if let Some(notification) = notification {
                // No receiver if the plugin does not subscribe.
                let _ = self.news.send(notification.into());
            }
        }
        result
    }
}

impl Backend for CheckBackend {
    async fn handle(&self, _: &FrontEnd, request: Request) -> Result<Response, RequestError> {
        self.respond(request)
            .map_err(|message| RequestError::new(ErrorKind::Failed, message))
            .inspect_err(|error| self.refusals.lock().push(error.message.clone()))
    }

    fn disconnected(&self, _: &FrontEnd) {}

    fn subscribe(&self) -> broadcast::Receiver<SharedNotification> {
        let news = self.news.subscribe();
        self.watched.notify_one();
        news
    }

    fn subscribe_chat(&self) -> broadcast::Receiver<SharedNotification> {
        self.chat.subscribe()
    }
}

impl CheckBackend {
    fn respond(&self, request: Request) -> Result<Response, String> {
        let now = Now::default();
        Ok(match request {
            Request::Hello(_) => Response::Hello(Welcome {
                protocol: VERSION,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
                workspace: vec![self.folder.clone()],
            }),
            Request::ContextOpen(file) => {
                self.attempt(|core| core.open_file(now, &file.path))?;
                Response::ContextOpen(Empty {})
            }
            Request::ContextFocus(focus) => {
                self.attempt(|core| {
                    core.focus_file(now, &focus.path, focus.cursor, focus.selected_text)?;
                    focus
                        .selection_start
                        .map_or(Ok(()), |start| core.set_selection_start(start))
                })?;
                Response::ContextFocus(Empty {})
            }
            Request::ContextClose(file) => {
                self.attempt(|core| core.close_file(now, &file.path))?;
                Response::ContextClose(Empty {})
            }
            Request::ReviewList(_) => {
                Response::ReviewList(self.with_core(|core| core.reviews().map(ReviewSummary::from).collect()))
            }
            Request::ReviewGet(ReviewRef { review }) => {
                Response::ReviewGet(self.attempt(|core| core.review(review).map(ReviewTexts::from))?)
            }
            Request::ReviewEdit(edit) => Response::ReviewEdit(self.attempt(|core| {
                let update = core.review(edit.review)?.edit(edit.content.clone(), None);
                core.update_draft(update)?;
                core.review(edit.review).map(ReviewSummary::from)
            })?),
            Request::ReviewChange(change) => {
                let version = self.attempt(|core| {
                    let review = core.review(change.review)?;
                    let update = review.change(change.version, &change.changes, None)?;
                    core.update_draft(update)
                })?;
                Response::ReviewChange(Version { version })
            }
            Request::ReviewHunk(params) => {
                let version = self.attempt(|core| {
                    let review = core.review(params.review)?;
                    let update = review.decide_hunk(params.hunk, params.decision.into())?;
                    core.update_draft(update)
                })?;
                Response::ReviewHunk(Version { version })
            }
            Request::ReviewAccept(accept) => {
                let (review, outcome) = (accept.review, ReviewOutcome::Accepted);
                let draft = self.attempt(|core| core.review(review).map(|review| ReviewTexts::from(review).draft))?;
                self.accepted_draft.lock().get_or_insert_with(|| draft.to_string());
                self.attempt(|core| core.accept(review, accept.content, EmptyDraft::Refuse))?;
                Response::ReviewAccept(ReviewDecided { review, outcome })
            }
            Request::ReviewReject(Reject { review, reason }) => {
                self.attempt(|core| core.reject(review, reason))?;
                let outcome = ReviewOutcome::Rejected;
                Response::ReviewReject(ReviewDecided { review, outcome })
            }
            Request::TerminalEnvironment(_) => Response::TerminalEnvironment(Variables {
                variables: BTreeMap::new(),
            }),
            // The check does not depend on what these respond.
            _ => Response::Stop(Empty {}),
        })
    }

    fn attempt<T, E: std::fmt::Display>(&self, input: impl FnOnce(&mut Core) -> Result<T, E>) -> Result<T, String> {
        self.with_core(input).map_err(|error| error.to_string())
    }
}

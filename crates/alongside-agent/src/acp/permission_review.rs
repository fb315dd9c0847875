//! Permission requests for changes: the user decides about them in reviews, as about every other change.
//!
//! Most agents ask for permission and then write the file themselves, so all that can be sent back is "yes" or "no". A change that the
//! user accepted as it is gets a "yes". For anything else the agent gets a "no": what the user accepted is written here, and the agent
//! learns of it with the next prompt.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use alongside_core::SessionId;
use alongside_protocol::chat::{AgentEvent, NoticeLevel, PermissionDecision, PermissionRequest};
use alongside_wire::rpc::RequestId;
use futures_util::future::{BoxFuture, join_all};
use tokio::sync::OwnedSemaphorePermit;

use super::change::{FileChange, RequestedChanges};
use super::connection::AcpConnection;
use super::file_io::FileIo;
use super::files::{self, ProposedWrite, ReviewGate, WriteDecision};
use super::known::{Writes, once_options};
use super::session_state::AllowedWrite;
use crate::conversation::Vote;

/// What happens to a permission request for changes of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangeRequests {
    /// The user is asked, as for every other permission.
    #[default]
    Ask,
    /// The changes are reviewed, and the decision is the response.
    Review,
    /// They are allowed.
    Allow,
}

/// How the reviews of a request ended.
enum Reviewed {
    /// The diffs do not fit the files, so there is nothing to review.
    NotReviewable,
    Decided(Vec<(FileChange, WriteDecision)>),
    Cancelled,
}

impl AcpConnection {
    /// Handles a request for changes of files, unless it is none, or the user is to be asked.
    pub(super) fn review_request(self: &Arc<Self>, id: &RequestId, request: &PermissionRequest) -> bool {
        let changes = RequestedChanges::of(&request.tool_call, &self.options.workspace);
        let (Some(changes), Some((allow, _)), false) = (
            changes,
            once_options(self.options.known, &request.options),
            request.is_question(),
        ) else {
            return false;
        };
        match self.options.gate.change_requests() {
            ChangeRequests::Ask => false,
            ChangeRequests::Allow => {
                let vote = Vote::new(request, &PermissionDecision::select(&allow.option_id));
                self.reply(id, Ok(vote.to_acp()));
                true
            }
            ChangeRequests::Review => {
                let Some(permit) = self.file_permit() else {
                    return false;
                };
                let review = Review {
                    connection: Arc::downgrade(self),
                    io: Arc::clone(&self.file_io),
                    gate: Arc::clone(&self.options.gate),
                    workspace: self.options.workspace.clone(),
                    session_id: self.state.lock().session_id.clone(),
                    changes,
                };
                let cancelled = self.cancelled.subscribe();
                tokio::spawn(review.run(id.clone(), request.clone(), cancelled, permit));
                true
            }
        }
    }

    /// Responds as decided, and writes what the agent may not write itself.
    async fn finish_review(self: Arc<Self>, id: RequestId, request: PermissionRequest, reviewed: Reviewed) {
        let decisions = match reviewed {
            Reviewed::Cancelled => return self.reply(&id, Ok(Vote::Cancelled.to_acp())),
            Reviewed::NotReviewable => {
                self.open_request(id, request);
                return;
            }
            Reviewed::Decided(decisions) => decisions,
        };
        let Some((allow, reject)) = once_options(self.options.known, &request.options) else {
            return;
        };
        let is_unchanged = |(change, decision): &(FileChange, WriteDecision)| match decision {
            WriteDecision::Write(text) => *text == change.text,
            WriteDecision::Refuse { .. } => false,
        };
        let writes_through_us = self.options.known.map(|known| known.writes) == Some(Writes::ThroughClient);
        let is_accepted = |(change, decision): &(FileChange, WriteDecision)| {
            matches!(decision, WriteDecision::Write(_)) && !change.removes
        };
        if decisions.iter().all(is_unchanged) || (writes_through_us && decisions.iter().all(is_accepted)) {
            let mut state = self.state.lock();
            for (change, decision) in decisions {
                if let WriteDecision::Write(accepted) = decision {
                    state.allow_write(AllowedWrite {
                        path: change.path,
                        proposed: change.text,
                        accepted,
                    });
                }
            }
            let vote = Vote::new(&request, &PermissionDecision::select(&allow.option_id));
            return self.reply(&id, Ok(vote.to_acp()));
        }
        for (change, decision) in decisions {
            self.carry_out(change, decision).await;
        }
        // Last, so that the agent finds the files as the user wants them.
        let vote = Vote::new(&request, &PermissionDecision::select(&reject.option_id));
        self.reply(&id, Ok(vote.to_acp()));
    }

    /// Writes what the user accepted, and notes for the agent what happened.
    async fn carry_out(&self, change: FileChange, decision: WriteDecision) {
        let path = change.path.display().to_string();
        let text = match decision {
            WriteDecision::Refuse { reason } => {
                let mut state = self.state.lock();
                state.write_refused(&path, &reason);
                state.add_note(format!("Your change to {path} was not made: {reason}."));
                return;
            }
            WriteDecision::Write(text) => text,
        };
        let is_edited = text != change.text;
        let removes = change.removes && !is_edited;
        let written = write(&self.file_io, &self.options.workspace, change.path, removes, text).await;
        let (level, message, note) = match (written, is_edited) {
            (Ok(()), true) => (
                NoticeLevel::Information,
                format!("Your edited version of {path} was written. The agent is notified with your next message."),
                format!(
                    "The user edited your change to {path}, and the edited version was written. Read the file before you change it again."
                ),
            ),
            (Ok(()), false) => (
                NoticeLevel::Information,
                format!(
                    "The change to {path} was made as you accepted it. The agent is notified with your next message."
                ),
                format!(
                    "Your change to {path} was accepted and has been made, although the request was denied as a whole."
                ),
            ),
            (Err(error), _) => (
                NoticeLevel::Warning,
                format!("Could not write {path}: {error}. Your version was not saved."),
                format!("The user accepted a version of your change to {path}, but it could not be written: {error}."),
            ),
        };
        let mut state = self.state.lock();
        state.write_refused(&path, &message);
        state.add_note(note);
        state.send([AgentEvent::Notice { level, message }]);
    }
}

/// What the reviews of a request need.
struct Review {
    connection: Weak<AcpConnection>,
    io: Arc<FileIo>,
    gate: Arc<dyn ReviewGate>,
    workspace: PathBuf,
    session_id: Option<SessionId>,
    changes: RequestedChanges,
}

impl Review {
    async fn run(
        self,
        id: RequestId,
        request: PermissionRequest,
        mut cancelled: tokio::sync::watch::Receiver<u64>,
        _permit: OwnedSemaphorePermit,
    ) {
        let reviewed = tokio::select! {
            reviewed = self.decide() => reviewed,
            // The turn was cancelled, or the agent has exited: the reviews end with it.
            _ = cancelled.changed() => Reviewed::Cancelled,
        };
        if let Some(connection) = self.connection.upgrade() {
            connection.finish_review(id, request, reviewed).await;
        }
    }

    async fn decide(&self) -> Reviewed {
        let mut texts = HashMap::new();
        for path in self.changes.paths() {
            let Ok(text) = files::text_of_file(&self.io, &self.workspace, path.clone()).await else {
                return Reviewed::NotReviewable;
            };
            texts.insert(path, text);
        }
        let Some(changes) = self.changes.apply(&texts) else {
            return Reviewed::NotReviewable;
        };
        let reviews = changes.iter().map(|change| {
            self.gate.review(ProposedWrite {
                session_id: self.session_id.clone().unwrap_or_else(|| SessionId::new("")),
                path: change.path.clone(),
                base: texts.get(&change.path).cloned().flatten(),
                text: change.text.clone(),
            })
        });
        let decisions = join_all(reviews).await;
        Reviewed::Decided(changes.into_iter().zip(decisions).collect())
    }
}

async fn write(io: &FileIo, workspace: &Path, path: PathBuf, removes: bool, text: String) -> Result<(), String> {
    let file = files::find(io, workspace, path).await;
    let done = match file {
        Ok(file) if removes => files::remove(io, file).await,
        Ok(file) => files::put(io, file, text).await,
        Err(error) => Err(error),
    };
    done.map_err(|error| error.into_rpc().message.into_owned())
}

/// Passes a write that the user has just accepted, and leaves every other one to the gate.
pub(super) struct AcceptedWrites {
    pub(super) gate: Arc<dyn ReviewGate>,
    pub(super) connection: Weak<AcpConnection>,
}

impl ReviewGate for AcceptedWrites {
    fn unsaved_text(&self, path: &Path) -> Option<String> {
        self.gate.unsaved_text(path)
    }

    fn hidden(&self, path: &Path, real: &Path) -> Option<String> {
        self.gate.hidden(path, real)
    }

    fn review(&self, write: ProposedWrite) -> BoxFuture<'static, WriteDecision> {
        let connection = self.connection.upgrade();
        let accepted = connection.and_then(|connection| connection.state.lock().take_allowed(&write.path, &write.text));
        match accepted {
            Some(text) => Box::pin(std::future::ready(WriteDecision::Write(text))),
            None => self.gate.review(write),
        }
    }
}

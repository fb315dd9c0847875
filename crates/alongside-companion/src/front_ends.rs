//! Handles the requests of front ends.

use std::path::{Path, PathBuf};

use alongside_core::context::ContextError;
use alongside_core::{Core, DecideError, EmptyDraft, Now, ReviewId, ReviewOutcome};
use alongside_platform::Platform;
use alongside_platform::path::is_in;
use alongside_protocol::{
    Backend, BulkDecision, Empty, ErrorKind, FileTarget, FrontEnd, Hello, Notification, PageFile, PageLink, Reject,
    Request, RequestError, Response, ReviewDecided, ReviewSummary, ReviewTexts, SessionRef, SharedNotification,
    ShownContext, Status, Undecided, VERSION, Version, Welcome,
};
use serde_json::Value;
use tokio::sync::broadcast;

use super::commit::CommitError;
use super::{Companion, chat, summaries};
use crate::doctor;

impl Backend for Companion {
    #[expect(clippy::too_many_lines, reason = "one arm per request")]
    async fn handle(&self, front_end: &FrontEnd, request: Request) -> Result<Response, RequestError> {
        Ok(match request {
            Request::Hello(hello) => Response::Hello(self.welcome(front_end, &hello)),
            Request::ContextOpen(file) => {
                Response::ContextOpen(self.report(|core, now| core.open_file(now, &file.path))?)
            }
            Request::WindowFocus(empty) => {
                self.used();
                Response::WindowFocus(empty)
            }
            Request::ContextFocus(focus) => {
                self.used();
                let report = |core: &mut Core, now| {
                    core.focus_file(now, &focus.path, focus.cursor, focus.selected_text)?;
                    focus
                        .selection_start
                        .map_or(Ok(()), |start| core.set_selection_start(start))
                };
                Response::ContextFocus(self.report(report)?)
            }
            Request::ContextClose(file) => {
                Response::ContextClose(self.report(|core, now| core.close_file(now, &file.path))?)
            }
            Request::ContextShow(_) => {
                self.look_up_all_files().await;
                let snapshot = self.with_core(|core, _| core.show_context());
                Response::ContextShow(ShownContext {
                    context: snapshot.context,
                    hidden: snapshot.hidden.into_iter().map(Into::into).collect(),
                })
            }
            Request::AgentMention(target) => Response::AgentMention(self.mention(target).await?),
            Request::ReviewList(_) => Response::ReviewList(self.reviews().iter().map(ReviewSummary::from).collect()),
            Request::ReviewGet(params) => {
                let review = self.review(params.review).map_err(|error| request_error(&error))?;
                Response::ReviewGet(ReviewTexts::from(&review))
            }
            Request::ReviewEdit(edit) => {
                let edited = self.edit_draft(front_end.origin(), edit.review, edit.content).await;
                let review = edited.and_then(|_| Ok(self.review(edit.review)?));
                let review = review.map_err(commit_error)?;
                Response::ReviewEdit(ReviewSummary::from(&review))
            }
            Request::ReviewChange(change) => {
                let changed = self
                    .change_draft(front_end.origin(), change.review, change.version, change.changes)
                    .await;
                let version = changed.map_err(commit_error)?;
                Response::ReviewChange(Version { version })
            }
            Request::ReviewHunk(params) => {
                let decided = self
                    .decide_hunk(front_end.origin(), params.review, params.hunk, params.decision.into())
                    .await;
                let version = decided.map_err(commit_error)?;
                Response::ReviewHunk(Version { version })
            }
            Request::ReviewAccept(accept) => {
                let (review, outcome) = (accept.review, ReviewOutcome::Accepted);
                let empty = if accept.even_if_empty {
                    EmptyDraft::Allow
                } else {
                    EmptyDraft::Refuse
                };
                self.prepare_text(review).await;
                self.decide_armed(front_end, review, |core| core.accept(review, accept.content, empty))
                    .await?;
                Response::ReviewAccept(ReviewDecided { review, outcome })
            }
            Request::ReviewReject(Reject { review, reason }) => {
                let reason = reason.filter(|reason| !reason.trim().is_empty());
                self.decide_armed(front_end, review, |core| core.reject(review, reason))
                    .await?;
                let outcome = ReviewOutcome::Rejected;
                Response::ReviewReject(ReviewDecided { review, outcome })
            }
            Request::ReviewAcceptAll(params) => {
                self.prepare_texts().await;
                Response::ReviewAcceptAll(
                    self.decide_all(front_end, &params, |core, id| core.accept(id, None, EmptyDraft::Refuse))
                        .await,
                )
            }
            Request::ReviewRejectAll(params) => Response::ReviewRejectAll(
                self.decide_all(front_end, &params, |core, id| core.reject(id, None))
                    .await,
            ),
            Request::HookReview(review) => Response::HookReview(self.hook_review(review).await?),
            Request::HookPrompt(session) => {
                self.hooks.abandon(&session);
                Response::HookPrompt(Empty {})
            }
            Request::ContextBuffer(buffer) => {
                self.set_buffer(buffer.path, buffer.text).await;
                Response::ContextBuffer(Empty {})
            }
            Request::ContextDiagnostics(file) => {
                self.set_diagnostics(front_end, file).await?;
                Response::ContextDiagnostics(Empty {})
            }
            Request::DiagnosticsList(query) => {
                Response::DiagnosticsList(self.core.lock().diagnostics(query.path.as_deref()))
            }
            Request::FileOpen(target) => {
                self.show_file(target).await?;
                Response::FileOpen(Empty {})
            }
            Request::WorkspaceSet(params) => {
                let folders = self.check_folders(params.folders.clone()).await?;
                *self.logical_folders.lock() = params.folders;
                self.with_core(|core, _| core.set_workspace(folders));
                Response::WorkspaceSet(Empty {})
            }
            Request::WorkspaceEnter(params) => {
                self.enter(params.path).await?;
                Response::WorkspaceEnter(Empty {})
            }
            Request::Status(_) => Response::Status(self.status()),
            Request::Doctor(_) => Response::Doctor(self.examine().await?),
            Request::PageLink(target) => {
                let url = self.page_link(target).map_err(|error| no_page(&error))?;
                Response::PageLink(PageLink { url })
            }
            Request::PageFile(target) => {
                let path = self.page_file(target).await.map_err(|error| no_page(&error))?;
                Response::PageFile(PageFile { path })
            }
            Request::DemoStart(_) => Response::DemoStart(self.start_demo().await?),
            // They contain the agents' token, which only the editor may have: the bridge handles this request.
            Request::TerminalEnvironment(_) => {
                return Err(RequestError::new(
                    ErrorKind::BridgeOnly,
                    "these variables are available only to the editor that started this companion",
                ));
            }
            Request::ChatState(_) => Response::ChatState(self.chat_state().await?),
            Request::ChatConnect(params) => {
                self.open_chat(&params.agent, None, params.if_idle).await?;
                Response::ChatConnect(Empty {})
            }
            Request::ChatDisconnect(empty) => {
                self.chat.disconnect().await;
                Response::ChatDisconnect(empty)
            }
            Request::ChatCommand(params) => Response::ChatCommand(self.chat_command(params.command).await?),
            Request::ChatWrites(params) => {
                self.chat.set_writes(params.writes).await?;
                Response::ChatWrites(Empty {})
            }
            Request::Leaving(_) => {
                return Err(RequestError::new(
                    ErrorKind::BridgeOnly,
                    "only the editor that started this companion can announce that it is leaving",
                ));
            }
            Request::HandOver(empty) => {
                if !self.departure.hand_over() {
                    let message = "the editor of this companion is not leaving";
                    return Err(RequestError::new(ErrorKind::Failed, message));
                }
                Response::HandOver(empty)
            }
            Request::Diff(texts) => Response::Diff(chat::diff(texts).await?),
            Request::Stop(empty) => {
                self.wake.stop.notify_one();
                Response::Stop(empty)
            }
        })
    }

    fn disconnected(&self, front_end: &FrontEnd) {
        self.openers.lock().remove(&front_end.id());
        self.with_core(|core, now| core.front_end_left(now, front_end.id()));
    }

    fn subscribe(&self) -> broadcast::Receiver<SharedNotification> {
        self.subscribe()
    }

    fn subscribe_chat(&self) -> broadcast::Receiver<SharedNotification> {
        self.chat.subscribe()
    }
}

impl Companion {
    pub(crate) fn status(&self) -> Status {
        let announced = self.announce_report();
        self.with_core(|core, _| Status {
            pid: std::process::id(),
            port: announced.port,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            display_name: self.identity.display_name.clone(),
            workspace: core.workspace().to_vec(),
            files: announced.files,
            problems: self.problems(),
            agents: summaries(core),
            reviews: core.reviews().map(ReviewSummary::from).collect(),
        })
    }

    /// Has the editor show a file. Only files in the workspace: an agent could show anything.
    async fn show_file(&self, target: FileTarget) -> Result<(), RequestError> {
        let refuse = |reason: &str| {
            let message = format!("cannot show `{}`: {reason}", target.path);
            Err(RequestError::new(ErrorKind::NotShown, message))
        };
        let real = self.resolve(&target.path).await;
        let Some(real) = real.filter(|_| Path::new(&target.path).is_absolute()) else {
            return refuse("it is not an absolute path to an existing file");
        };
        if !self
            .workspace()
            .iter()
            .any(|folder| is_in(Platform::current(), folder, &real))
        {
            return refuse("it is not in the workspace");
        }
        if self.openers.lock().is_empty() {
            return refuse("no editor is connected that shows files");
        }
        self.broadcast(Notification::FileShow(target));
        Ok(())
    }

    /// The file that a path leads to. In a thread, because it may be on a hung file system.
    pub(super) async fn resolve(&self, path: &str) -> Option<PathBuf> {
        let (host, path) = (self.host.clone(), PathBuf::from(path));
        let real = tokio::task::spawn_blocking(move || (host.resolve)(&path)).await;
        real.ok().flatten()
    }

    pub(super) fn report(
        &self,
        input: impl FnOnce(&mut Core, Now) -> Result<(), ContextError>,
    ) -> Result<Empty, RequestError> {
        self.with_core(input).map(|()| Empty {}).map_err(|error| {
            let kind = match error {
                ContextError::NotAbsolute(_) => ErrorKind::NotAbsolute,
                ContextError::BadPosition { .. } => ErrorKind::BadPosition,
                ContextError::NotOpen(_) => ErrorKind::NotOpen,
            };
            RequestError::new(kind, error.to_string())
        })
    }

    fn welcome(&self, front_end: &FrontEnd, hello: &Hello) -> Welcome {
        let mut openers = self.openers.lock();
        // Only what is watched arrives.
        if hello.opens_files && hello.watch {
            openers.insert(front_end.id());
        } else {
            openers.remove(&front_end.id());
        }
        drop(openers);
        if hello.trusted.is_some() {
            self.with_core(|core, now| core.set_trusted(now, hello.trusted));
        }
        Welcome {
            protocol: VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            workspace: self.workspace(),
        }
    }

    async fn examine(&self) -> Result<Value, RequestError> {
        let workspace = self.workspace();
        let directory = workspace.first().cloned().unwrap_or_default();
        let examined = doctor::examine(&directory).await;
        examined
            .map(|found| found.to_json())
            .map_err(|error| RequestError::new(ErrorKind::Failed, format!("{error:#}")))
    }

    /// The folders with symlinks resolved, as agents compare them. A hung file system must not block an async worker.
    pub(super) async fn check_folders(&self, folders: Vec<PathBuf>) -> Result<Vec<PathBuf>, RequestError> {
        let host = self.host.clone();
        let check = move |folder: PathBuf| {
            let real = folder.is_absolute().then(|| (host.resolve_folder)(&folder)).flatten();
            real.ok_or_else(|| {
                let message = format!(
                    "`{}` is not an absolute path to an existing directory",
                    folder.display()
                );
                RequestError::new(ErrorKind::NotADirectory, message)
            })
        };
        let checked = tokio::task::spawn_blocking(move || folders.into_iter().map(check).collect()).await;
        checked.unwrap_or_else(|error| Err(RequestError::new(ErrorKind::Failed, error.to_string())))
    }

    /// Decides a review, unless the decision comes from a key that was pressed just as the review appeared.
    async fn decide_armed(
        &self,
        front_end: &FrontEnd,
        id: ReviewId,
        input: impl FnOnce(&mut Core) -> Result<(), DecideError> + Send,
    ) -> Result<(), RequestError> {
        let interactive = front_end.hello.interactive;
        let decided = self.commit(|core, now| {
            if interactive {
                core.check_armed(now, id)?;
            }
            input(core)
        });
        let decided = decided.await.map_err(|error| commit_error(error.into()))?;
        decided.map_err(|error| request_error(&error))
    }

    /// Decides every review of one agent that can be decided.
    async fn decide_all(
        &self,
        front_end: &FrontEnd,
        params: &SessionRef,
        input: impl Fn(&mut Core, ReviewId) -> Result<(), DecideError> + Sync,
    ) -> BulkDecision {
        let mut all = BulkDecision {
            decided: Vec::new(),
            refused: Vec::new(),
        };
        for id in self.with_core(|core, _| core.reviews_of(&params.session)) {
            match self.decide_armed(front_end, id, |core| input(core, id)).await {
                Ok(()) => all.decided.push(id),
                Err(error) => all.refused.push(Undecided {
                    review: id,
                    message: error.message,
                }),
            }
        }
        all
    }
}

fn commit_error(error: CommitError) -> RequestError {
    match error {
        CommitError::Refused(refused) => request_error(&refused),
        CommitError::NotSaved(not_saved) => RequestError::new(ErrorKind::NotSaved, not_saved.to_string()),
    }
}

fn request_error(error: &DecideError) -> RequestError {
    let kind = match error {
        DecideError::Unknown(_) => ErrorKind::UnknownReview,
        DecideError::Closed { .. } => ErrorKind::Closed,
        DecideError::TooSoon(_) => ErrorKind::TooSoon,
        DecideError::Stale { .. } => ErrorKind::Stale,
        DecideError::Conflicts { .. } => ErrorKind::Conflicts,
        DecideError::Hunk(_) => ErrorKind::UnknownHunk,
        DecideError::InvalidEdit(_) => ErrorKind::Misplaced,
        DecideError::EmptyMeansUnedited { .. } => ErrorKind::EmptyMeansUnedited,
        DecideError::TakesNoEdits { .. } => ErrorKind::Failed,
    };
    RequestError::new(kind, error.to_string())
}

fn no_page(error: &anyhow::Error) -> RequestError {
    RequestError::new(ErrorKind::NoPage, format!("{error:#}"))
}

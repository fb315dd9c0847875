//! What people do, through whatever front end.

use std::path::PathBuf;

use alongside_core::context::ContextError;
use alongside_core::{Core, DecideError, EmptyDraft, Now, ReviewId, ReviewOutcome};
use alongside_protocol::{
    Decided, Edit, Hello, NotDecided, Notification, OfAgent, PageLink, Request, ReviewSummary, ReviewTexts,
    ShownContext, Status, VERSION, Version, Welcome,
};
use alongside_protocol::{Desk, FrontEnd, Refusal};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::{Companion, chat, summaries};
use crate::doctor;

impl Desk for Companion {
    async fn call(&self, front_end: &FrontEnd, request: Request) -> Result<Value, Refusal> {
        match request {
            Request::Hello(hello) => self.welcome(&hello),
            Request::ContextOpen(file) => self.report(|core, now| core.open_file(now, &file.path)),
            Request::WindowFocus(_) => {
                self.used();
                Ok(json!({}))
            }
            Request::ContextFocus(focus) => {
                self.used();
                self.report(|core, now| core.focus_file(now, &focus.path, focus.cursor, focus.selected_text))
            }
            Request::ContextClose(file) => self.report(|core, now| core.close_file(now, &file.path)),
            Request::ContextShow(_) => {
                self.look_up_all_files().await;
                let snapshot = self.with_core(|core, _| core.show_context());
                value(&ShownContext {
                    context: snapshot.context,
                    hidden: snapshot.hidden.into_iter().map(Into::into).collect(),
                })
            }
            Request::ReviewList(_) => value(&self.reviews().iter().map(ReviewSummary::of).collect::<Vec<_>>()),
            Request::ReviewGet(asked) => {
                let review = self.review(asked.review).map_err(|error| refusal(&error))?;
                value(&ReviewTexts::of(&review))
            }
            Request::ReviewEdit(edit) => self.edit(edit).await,
            Request::ReviewChange(change) => {
                let changed = self.change_draft(change.review, change.version, change.changes).await;
                let version = changed.map_err(|error| refusal(&error))?;
                value(&Version { version })
            }
            Request::ReviewHunk(asked) => {
                let decided = self.decide_hunk(asked.review, asked.hunk, asked.decision.into()).await;
                let version = decided.map_err(|error| refusal(&error))?;
                value(&Version { version })
            }
            Request::ReviewAccept(accept) => {
                let empty_draft = if accept.even_if_empty {
                    EmptyDraft::Allow
                } else {
                    EmptyDraft::Refuse
                };
                self.prepare_text(accept.review).await;
                self.decide_armed(front_end, accept.review, |core| {
                    core.accept(accept.review, accept.content, empty_draft)
                })?;
                Ok(json!({ "review": accept.review, "outcome": ReviewOutcome::Accepted }))
            }
            Request::ReviewReject(asked) => {
                self.decide_armed(front_end, asked.review, |core| core.reject(asked.review))?;
                Ok(json!({ "review": asked.review, "outcome": ReviewOutcome::Rejected }))
            }
            Request::ReviewAcceptAll(asked) => {
                self.prepare_texts().await;
                value(&self.decide_all(front_end, &asked, |core, id| core.accept(id, None, EmptyDraft::Refuse)))
            }
            Request::ReviewRejectAll(asked) => value(&self.decide_all(front_end, &asked, Core::reject)),
            Request::ContextBuffer(buffer) => {
                self.set_buffer(buffer.path, buffer.text).await;
                Ok(json!({}))
            }
            Request::WorkspaceSet(asked) => {
                let folders = check_folders(asked.folders)?;
                self.with_core(|core, _| core.set_workspace(folders));
                Ok(json!({}))
            }
            Request::Status(_) => value(&self.status()),
            Request::Doctor(_) => self.examine().await,
            Request::PageLink(_) => {
                let url = self
                    .page_link()
                    .map_err(|error| Refusal::new("noPage", format!("{error:#}")))?;
                value(&PageLink { url })
            }
            // They hold the agents' token, which is the editor's business and no page's: the bridge answers it.
            Request::TerminalEnvironment(_) => Err(Refusal::new(
                "onlyOverABridge",
                "these variables are available only to the editor that started this companion",
            )),
            Request::ChatState(_) => self.chat_state(),
            Request::ChatConnect(asked) => self.connect_chat(&asked).await,
            Request::ChatDisconnect(_) => {
                self.chat.disconnect().await;
                Ok(json!({}))
            }
            Request::ChatCommand(asked) => self.chat_command(asked.command).await,
            Request::ChatWrites(asked) => {
                self.chat.set_writes(asked.writes)?;
                Ok(json!({}))
            }
            Request::Difference(texts) => chat::difference(texts).await,
            Request::Stop(_) => {
                self.wake.stop.notify_one();
                Ok(json!({}))
            }
        }
    }

    fn watch(&self) -> broadcast::Receiver<Notification> {
        self.news()
    }

    fn watch_chat(&self) -> broadcast::Receiver<Notification> {
        self.chat.news()
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
            problems: announced.problems,
            agents: summaries(core),
            reviews: core.reviews().map(ReviewSummary::of).collect(),
        })
    }

    fn report(&self, input: impl FnOnce(&mut Core, Now) -> Result<(), ContextError>) -> Result<Value, Refusal> {
        self.with_core(input).map(|()| json!({})).map_err(|error| {
            let kind = match error {
                ContextError::NotAbsolute(_) => "notAbsolute",
                ContextError::BadPosition { .. } => "badPosition",
                ContextError::NotOpen(_) => "notOpen",
            };
            Refusal::new(kind, error.to_string())
        })
    }

    fn welcome(&self, hello: &Hello) -> Result<Value, Refusal> {
        if hello.trusted.is_some() {
            self.with_core(|core, now| core.set_trusted(now, hello.trusted));
        }
        value(&Welcome {
            protocol: VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            workspace: self.workspace(),
        })
    }

    async fn edit(&self, edit: Edit) -> Result<Value, Refusal> {
        let edited = self.edit_draft(edit.review, edit.content).await;
        let review = edited.and_then(|_| self.review(edit.review));
        value(&ReviewSummary::of(&review.map_err(|error| refusal(&error))?))
    }

    async fn examine(&self) -> Result<Value, Refusal> {
        let workspace = self.workspace();
        let directory = workspace.first().cloned().unwrap_or_default();
        let examined = doctor::examine(&directory).await;
        examined
            .map(|found| found.to_json())
            .map_err(|error| Refusal::new("failed", format!("{error:#}")))
    }

    /// Decides a review, unless the decision comes from a key that was pressed as it appeared.
    fn decide_armed(
        &self,
        front_end: &FrontEnd,
        id: ReviewId,
        input: impl FnOnce(&mut Core) -> Result<(), DecideError>,
    ) -> Result<(), Refusal> {
        let interactive = front_end.hello.interactive;
        let decided = self.with_core(|core, now| {
            if interactive {
                core.check_armed(now, id)?;
            }
            input(core)
        });
        decided.map_err(|error| refusal(&error))
    }

    /// Decides all reviews of one agent that can be decided.
    fn decide_all(
        &self,
        front_end: &FrontEnd,
        asked: &OfAgent,
        input: impl Fn(&mut Core, ReviewId) -> Result<(), DecideError>,
    ) -> Decided {
        let session = &asked.session;
        let mut all = Decided {
            decided: Vec::new(),
            refused: Vec::new(),
        };
        for id in self.with_core(|core, _| core.reviews_of(session)) {
            match self.decide_armed(front_end, id, |core| input(core, id)) {
                Ok(()) => all.decided.push(id),
                Err(refusal) => all.refused.push(NotDecided {
                    review: id,
                    message: refusal.message,
                }),
            }
        }
        all
    }
}

fn refusal(error: &DecideError) -> Refusal {
    let kind = match error {
        DecideError::Unknown(_) => "unknownReview",
        DecideError::Closed { .. } => "alreadyOver",
        DecideError::TooSoon(_) => "notArmed",
        DecideError::Stale { .. } => "stale",
        DecideError::Conflicts { .. } => "conflicts",
        DecideError::Hunk(_) => "unknownHunk",
        DecideError::InvalidEdit(_) => "misplaced",
        DecideError::EmptyMeansUnedited { .. } => "emptyMeansUnedited",
    };
    Refusal::new(kind, error.to_string())
}

fn value(answer: &impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(answer).map_err(|error| Refusal::new("internal", error.to_string()))
}

/// The folders with links followed, as agents compare them.
fn check_folders(folders: Vec<PathBuf>) -> Result<Vec<PathBuf>, Refusal> {
    folders
        .into_iter()
        .map(|folder| {
            let real = folder
                .canonicalize()
                .ok()
                .filter(|real| folder.is_absolute() && real.is_dir());
            real.ok_or_else(|| {
                let message = format!(
                    "`{}` is not an absolute path to an existing directory",
                    folder.display()
                );
                Refusal::new("notADirectory", message)
            })
        })
        .collect()
}

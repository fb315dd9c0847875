//! Code actions, code lenses, and the commands behind both.

use std::sync::Arc;
use std::time::Instant;

use alongside_core::ReviewId;
use alongside_core::difference::unified;
use alongside_core::draft::DIFF_TIMEOUT;
use alongside_core::draft::{HunkId, HunkState};
use alongside_core::printable::printable_line;
use alongside_protocol::{
    Accept, Backend, DecideHunkParams, ErrorKind, HunkAction, MentionTarget, PageTarget, RequestError, ReviewTexts,
    requests,
};
use alongside_wire::rpc::{INVALID_PARAMS, METHOD_NOT_FOUND, RpcError};
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::front_end::{LspFrontEnd, PendingRequest};
use crate::reviews::{self, ACCEPT, REJECT, ReviewLines, SHOW, Side, display_name};
use crate::types::{
    CodeAction, CodeActionOptions, CodeActionOrCommand, CodeActionParams, CodeLens, CodeLensOptions, Command,
    ExecuteCommandOptions, ExecuteCommandParams, InitializeResult, MessageActionItem, MessageType, Range, SaveOptions,
    ServerCapabilities, ServerInfo, ShowDocumentParams, TextDocumentSyncKind, TextDocumentSyncOptions,
    WorkspaceFoldersServerCapabilities, WorkspaceServerCapabilities,
};
use crate::uri;

/// The kind of every action. A client that requests other kinds only, for example on save, gets none.
pub(crate) const KIND: &str = "quickfix";

/// Reviews of other files that are offered in a file.
const MAX_OTHER_REVIEWS: usize = 5;

const ACCEPT_COMMAND: &str = "alongside.accept";
const REJECT_COMMAND: &str = "alongside.reject";
const SHOW_COMMAND: &str = "alongside.show";
const EDIT_COMMAND: &str = "alongside.edit";
const HUNKS_COMMAND: &str = "alongside.hunks";
const SEND_COMMAND: &str = "alongside.send";
const PAGE_COMMAND: &str = "alongside.page";

pub(crate) const COMMANDS: [&str; 7] = [
    ACCEPT_COMMAND,
    REJECT_COMMAND,
    SHOW_COMMAND,
    EDIT_COMMAND,
    HUNKS_COMMAND,
    SEND_COMMAND,
    PAGE_COMMAND,
];

/// What a command is about. It applies to one revision only: the one that was shown.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct ReviewTarget {
    review: ReviewId,
    revision: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hunks: Vec<HunkId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<HunkAction>,
}

/// The argument of [`SEND_COMMAND`].
#[derive(Debug, Deserialize, Serialize)]
struct Selection {
    uri: String,
    range: Range,
}

impl<B: Backend> LspFrontEnd<B> {
    /// The actions for a range. The request also tells where the cursor is.
    pub(crate) async fn code_actions(&mut self, params: CodeActionParams) -> Vec<CodeActionOrCommand> {
        let is_wanted = |kinds: &Vec<String>| kinds.iter().any(|kind| kind.is_empty() || kind == KIND);
        if !params.context.only.as_ref().is_none_or(is_wanted) {
            return Vec::new();
        }
        let address = &params.text_document.uri;
        let selected = self
            .documents
            .get(address)
            .and_then(|document| self.selected(document, params.range));
        if let Some(range) = selected {
            self.user_is_at(address, range).await;
        }
        let mut actions = Vec::new();
        let own = self.shown_in(address);
        for (id, side) in &own {
            if let Some(review) = self.reviews.get(id) {
                if let Some(side) = side {
                    self.offer_hunks(&mut actions, review, *side, params.range);
                }
                self.offer(&mut actions, review, "");
            }
        }
        // On an automatic request a client shows a light bulb if there are any actions, so only this file's count.
        if !params.context.is_automatic() {
            let others = self.reviews.values().filter(|review| {
                let id = review.summary.id;
                !own.iter().any(|(own, _)| *own == id)
            });
            for review in others.take(MAX_OTHER_REVIEWS) {
                self.offer(
                    &mut actions,
                    review,
                    &format!(" to {}", display_name(&review.summary.path)),
                );
            }
            if self.has_selection(address, params.range) {
                let selection = Selection {
                    uri: address.clone(),
                    range: params.range,
                };
                actions.push(self.action("Send selection to agents".to_owned(), SEND_COMMAND, &selection));
            }
            if !self.reviews.is_empty() {
                actions.push(self.action("Review changes in the browser".to_owned(), PAGE_COMMAND, &()));
            }
        }
        actions
    }

    /// The same actions as lenses above their lines.
    pub(crate) fn code_lenses(&self, address: &str) -> Vec<CodeLens> {
        let mut lenses = Vec::new();
        for (id, side) in self.shown_in(address) {
            let Some(review) = self.reviews.get(&id) else { continue };
            let mut lens = |range: Range, title: &str, name: &'static str, target: &ReviewTarget| {
                let command = command(title.to_owned(), name, target);
                lenses.push(CodeLens { range, command });
            };
            let lines = ReviewLines::new(review);
            let target = ReviewTarget::new(review);
            for (title, command) in [(ACCEPT, ACCEPT_COMMAND), (REJECT, REJECT_COMMAND), (SHOW, SHOW_COMMAND)] {
                lens(Range::default(), title, command, &target);
            }
            let hunks = side
                .into_iter()
                .flat_map(|side| review.hunks.iter().map(move |hunk| (hunk, side)));
            for (hunk, side) in hunks {
                let range = lines.range(hunk, side, self.client.encoding);
                for (title, decision) in choices(hunk.state) {
                    let target = ReviewTarget {
                        hunks: vec![hunk.id],
                        decision: Some(decision),
                        ..ReviewTarget::new(review)
                    };
                    lens(range, title, HUNKS_COMMAND, &target);
                }
            }
        }
        lenses
    }

    /// The reviews shown in a file, each with the side whose lines the file contains, if any.
    fn shown_in(&self, address: &str) -> Vec<(ReviewId, Option<Side>)> {
        let document = self.documents.get(address);
        if let Some(review) = document.and_then(|document| self.scratch.review_of(&document.real)) {
            let is_draft = self
                .draft_files
                .get(&review)
                .is_some_and(|file| file.address == address);
            return vec![(review, is_draft.then_some(Side::Draft))];
        }
        let reviews = self.reviews.iter();
        reviews
            .filter(|(_, review)| self.address_of(review) == address)
            .map(|(id, _)| (*id, Some(Side::Base)))
            .collect()
    }

    /// Adds actions for the hunks that a range touches.
    fn offer_hunks(&self, actions: &mut Vec<CodeActionOrCommand>, review: &ReviewTexts, side: Side, range: Range) {
        let lines = ReviewLines::new(review);
        let touched = review.hunks.iter().filter(|hunk| {
            let place = lines.range(hunk, side, self.client.encoding);
            place.start.line <= range.end.line && range.start.line <= place.end.line
        });
        let touched: Vec<_> = touched.collect();
        for decision in [HunkAction::Accept, HunkAction::Reject, HunkAction::Keep] {
            let is_possible = |state| choices(state).any(|(_, possible)| possible == decision);
            let hunks: Vec<HunkId> = touched
                .iter()
                .filter(|hunk| is_possible(hunk.state))
                .map(|hunk| hunk.id)
                .collect();
            if hunks.is_empty() {
                continue;
            }
            let word = match decision {
                HunkAction::Accept => "Accept",
                HunkAction::Reject => "Reject",
                HunkAction::Keep => "Keep",
            };
            let title = match hunks.len() {
                1 => format!("{word} hunk"),
                count => format!("{word} {count} hunks"),
            };
            let target = ReviewTarget {
                hunks,
                decision: Some(decision),
                ..ReviewTarget::new(review)
            };
            actions.push(self.action(title, HUNKS_COMMAND, &target));
        }
    }

    /// Adds actions for a whole change.
    fn offer(&self, actions: &mut Vec<CodeActionOrCommand>, review: &ReviewTexts, to: &str) {
        let target = ReviewTarget::new(review);
        let (size, agent) = (
            review.summary.size,
            printable_line(&review.summary.agent_identity().to_string()),
        );
        let size = format!("+{} −{}, {agent}", size.added, size.removed);
        let titles = [
            (format!("{ACCEPT}{to} ({size})"), ACCEPT_COMMAND),
            (format!("{REJECT}{to} ({size})"), REJECT_COMMAND),
            (format!("{SHOW}{to}"), SHOW_COMMAND),
            (format!("Edit change{to}"), EDIT_COMMAND),
        ];
        for (title, command) in titles {
            actions.push(self.action(title, command, &target));
        }
    }

    fn action(&self, title: String, name: &'static str, argument: &impl Serialize) -> CodeActionOrCommand {
        let command = command(title.clone(), name, argument);
        if self.client.abilities.code_action_literals {
            CodeActionOrCommand::CodeAction(CodeAction {
                title,
                kind: KIND,
                command,
            })
        } else {
            CodeActionOrCommand::Command(command)
        }
    }

    /// Errors are shown as messages, because clients do not show failed commands.
    pub(crate) async fn execute_command(&mut self, params: ExecuteCommandParams) -> Result<(), RpcError> {
        let argument = params.arguments.into_iter().next().unwrap_or_default();
        let wrong = |error: serde_json::Error| RpcError::new(INVALID_PARAMS, format!("invalid argument: {error}"));
        let outcome = match params.command.as_str() {
            SEND_COMMAND => {
                let selection: Selection = serde_json::from_value(argument).map_err(wrong)?;
                self.send(&selection).await;
                Ok(())
            }
            PAGE_COMMAND => self.open_page().await,
            SHOW_COMMAND if argument.is_null() => {
                self.show_next();
                Ok(())
            }
            command if COMMANDS.contains(&command) => {
                let target: ReviewTarget = serde_json::from_value(argument).map_err(wrong)?;
                self.decide(command, target).await
            }
            other => return Err(RpcError::new(METHOD_NOT_FOUND, format!("unknown command `{other}`"))),
        };
        if let Err(error) = outcome {
            self.show_message(MessageType::Error, &capitalized(&error.message));
        }
        Ok(())
    }

    pub(crate) async fn answer_question(&mut self, review: ReviewId, revision: u32, answer: &MessageActionItem) {
        let command = match answer.title.as_str() {
            reviews::SHOW => SHOW_COMMAND,
            reviews::ACCEPT => ACCEPT_COMMAND,
            reviews::REJECT => REJECT_COMMAND,
            _ => return,
        };
        let target = ReviewTarget {
            review,
            revision,
            hunks: Vec::new(),
            decision: None,
        };
        if let Err(error) = self.decide(command, target).await {
            self.show_message(MessageType::Error, &capitalized(&error.message));
        }
    }

    async fn decide(&mut self, command: &str, target: ReviewTarget) -> Result<(), RequestError> {
        let review = target.review;
        // A draft file may have been saved without a notification so far.
        self.sync_draft_file(review).await;
        let known = self.reviews.get(&review).map(|review| review.summary.revision);
        if known.is_some_and(|known| known != target.revision) {
            let message = "the agent has since revised this change; review it again";
            return Err(RequestError::new(ErrorKind::Stale, message));
        }
        match command {
            ACCEPT_COMMAND => {
                let accept = Accept {
                    review,
                    content: None,
                    even_if_empty: false,
                };
                self.call::<requests::ReviewAccept>(accept).await.map(drop)
            }
            REJECT_COMMAND => self.call::<requests::ReviewReject>(review.into()).await.map(drop),
            SHOW_COMMAND => self.show_diff(review, true),
            EDIT_COMMAND => self.open_draft_file(review),
            _ => {
                let decision = target.decision.unwrap_or(HunkAction::Keep);
                for hunk in target.hunks {
                    let decision = DecideHunkParams { review, hunk, decision };
                    self.call::<requests::ReviewHunk>(decision).await?;
                }
                Ok(())
            }
        }
    }

    /// Shows the oldest pending change, or the one after the last shown one: what a key of the user's runs.
    fn show_next(&mut self) {
        let last = self.shown.filter(|shown| self.reviews.contains_key(shown));
        let after = |id: &&ReviewId| last.is_some_and(|last| **id > last);
        let next = self.reviews.keys().find(after).or_else(|| self.reviews.keys().next());
        let Some(next) = next.copied() else {
            self.show_message(MessageType::Info, "No pending changes.");
            return;
        };
        self.open_diff(next, true);
    }

    /// Shows the diff of a review, or why that is impossible.
    pub(crate) fn open_diff(&mut self, review: ReviewId, take_focus: bool) {
        self.shown = Some(review);
        if let Err(error) = self.show_diff(review, take_focus) {
            self.show_message(MessageType::Error, &capitalized(&error.message));
        }
    }

    /// Writes the diff of a review as a file and has the editor open it.
    fn show_diff(&mut self, id: ReviewId, take_focus: bool) -> Result<(), RequestError> {
        let review = self.known(id)?;
        let name = printable_line(&review.summary.path);
        let old_name = if review.summary.new_file { "/dev/null" } else { &name };
        let base = review.base.as_deref().unwrap_or_default();
        let mut diff = String::new();
        for note in &review.notes {
            diff.push_str(&format!("# {note}\n"));
        }
        diff.push_str(&unified(
            base,
            &review.draft,
            old_name,
            &name,
            Some(Instant::now() + DIFF_TIMEOUT),
        ));
        let path = Arc::clone(&review.summary.path);
        let written = self.scratch.write(id, &path, ".diff", &diff);
        let file = written.map_err(|error| not_written(&error))?;
        self.show_file(
            &file.to_string_lossy(),
            Range::default(),
            take_focus,
            "to view the change",
        );
        Ok(())
    }

    /// Has the editor open a file, or shows a message that says which file to open.
    pub(crate) fn show_file(&mut self, path: &str, selection: Range, take_focus: bool, why: &str) {
        let params = ShowDocumentParams {
            uri: uri::of_path(path),
            take_focus: Some(take_focus),
            selection: Some(selection),
            ..ShowDocumentParams::default()
        };
        let otherwise = format!("Open {path} {why}.");
        self.request(
            "window/showDocument",
            &params,
            PendingRequest::ShowDocument { otherwise },
        );
    }

    async fn open_page(&mut self) -> Result<(), RequestError> {
        // Not the link itself, which is a credential: the editor may start a browser with what it is sent.
        let file = self.call::<requests::PageFile>(PageTarget::default()).await?;
        let params = ShowDocumentParams {
            uri: uri::of_path(&file.path.to_string_lossy()),
            external: Some(true),
            ..ShowDocumentParams::default()
        };
        let otherwise = "Run `alongside page --open` to review in the browser.".to_owned();
        self.request(
            "window/showDocument",
            &params,
            PendingRequest::ShowDocument { otherwise },
        );
        Ok(())
    }

    async fn send(&mut self, selection: &Selection) {
        self.user_is_at(&selection.uri, selection.range).await;
        let Some(document) = self.documents.get(&selection.uri) else {
            return;
        };
        let range = self.selected(document, selection.range).unwrap_or(selection.range);
        let lines = document.between(range, self.client.encoding).lines().count();
        let plural = if lines == 1 { "" } else { "s" };
        let mut message = format!(
            "Agents will see {lines} line{plural} of {} with your next message.",
            display_name(&document.path)
        );
        // Most agents have no prompt that can be written to.
        if let Ok(sent) = self
            .call::<requests::AgentMention>(MentionTarget { session: None })
            .await
        {
            let agent = printable_line(&sent.agent.to_string());
            message.push_str(&format!(" They are in the prompt of {agent}."));
        }
        self.show_message(MessageType::Info, &message);
    }

    fn has_selection(&self, address: &str, range: Range) -> bool {
        let document = self.documents.get(address);
        document.is_some_and(|document| {
            let selected = self.selected(document, range);
            let selected = selected.map_or("", |range| document.between(range, self.client.encoding));
            !self.scratch.holds(&document.real) && selected.chars().nth(1).is_some()
        })
    }

    pub(crate) fn known(&self, review: ReviewId) -> Result<&ReviewTexts, RequestError> {
        let gone = || RequestError::new(ErrorKind::Closed, "this change is already closed");
        self.reviews.get(&review).ok_or_else(gone)
    }
}

impl ReviewTarget {
    fn new(review: &ReviewTexts) -> Self {
        Self {
            review: review.summary.id,
            revision: review.summary.revision,
            hunks: Vec::new(),
            decision: None,
        }
    }
}

/// The actions that a hunk's state allows.
fn choices(state: HunkState) -> impl Iterator<Item = (&'static str, HunkAction)> {
    let (accept, reject, keep) = match state {
        HunkState::Accepted => (false, true, false),
        HunkState::Rejected => (true, false, false),
        HunkState::Edited => (true, true, false),
        HunkState::Conflict => (true, true, true),
    };
    [
        (accept, "Accept hunk", HunkAction::Accept),
        (reject, "Reject hunk", HunkAction::Reject),
        (keep, "Keep hunk", HunkAction::Keep),
    ]
    .into_iter()
    .filter(|(is_possible, ..)| *is_possible)
    .map(|(_, title, choice)| (title, choice))
}

pub(crate) fn not_written(error: &std::io::Error) -> RequestError {
    RequestError::new(ErrorKind::Failed, format!("cannot write its file: {error}"))
}

pub(crate) fn capitalized(sentence: &str) -> String {
    let mut characters = sentence.chars();
    let first: String = characters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", characters.as_str().trim_end_matches('.'))
}

fn command(title: String, command: &'static str, argument: &impl Serialize) -> Command {
    Command {
        title,
        command,
        arguments: [serde_json::to_value(argument).unwrap_or_default()],
    }
}

/// What the server offers in `initialize`.
impl InitializeResult {
    pub(crate) fn new(client: &Client, version: String) -> Self {
        Self {
            capabilities: capabilities(client),
            server_info: ServerInfo {
                name: "alongside",
                version,
            },
        }
    }
}

fn capabilities(client: &Client) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: client.encoding.name(),
        text_document_sync: TextDocumentSyncOptions {
            open_close: true,
            change: TextDocumentSyncKind::Incremental,
            save: SaveOptions { include_text: true },
        },
        // These two never have a result; their requests tell where the cursor is.
        hover_provider: true,
        document_highlight_provider: true,
        code_action_provider: CodeActionOptions {
            code_action_kinds: &[KIND],
        },
        code_lens_provider: CodeLensOptions {
            resolve_provider: false,
        },
        execute_command_provider: ExecuteCommandOptions { commands: &COMMANDS },
        // Otherwise some clients start another server for every folder.
        workspace: WorkspaceServerCapabilities {
            workspace_folders: WorkspaceFoldersServerCapabilities {
                supported: true,
                change_notifications: true,
            },
        },
    }
}

//! The session with one editor: what it sends, and what follows from it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use alongside_core::ReviewId;
use alongside_core::context::Cursor;
use alongside_protocol::{
    Backend, Buffer, FilePath, Focus, Folders, FrontEnd, Hello, Method, RequestError, ReviewTexts, VERSION, requests,
};
use alongside_wire::rpc::{self, INVALID_REQUEST, METHOD_NOT_FOUND, Response, RpcError};
use alongside_wire::sender::RpcSender;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::client::{Client, SelectionRange};
use crate::connection::log_unsent;
use crate::documents::{Document, Documents};
use crate::drafts::DraftFile;
use crate::scratch::Scratch;
use crate::types::{
    Diagnostic, DidChangeParams, DidChangeWorkspaceFoldersParams, DidOpenParams, DidSaveParams, InitializeResult,
    MessageType, Range, ShowDocumentResult, ShowMessageParams, TextDocumentItem, TextDocumentParams,
    TextDocumentPositionParams, WorkspaceFolder, WorkspaceFoldersChangeEvent,
};
use crate::workspace::workspace_of;
use crate::{REQUEST_FAILED, documents, text, uri};

/// Requests to the editor without a response so far. Some clients never respond; beyond this the oldest is forgotten.
const MAX_PENDING_REQUESTS: usize = 256;

pub(crate) struct LspFrontEnd<B> {
    backend: Arc<B>,
    front_end: FrontEnd,
    pub(crate) client: Client,
    pub(crate) scratch: Scratch,
    sender: RpcSender,
    pub(crate) documents: Documents,
    pub(crate) reviews: BTreeMap<ReviewId, ReviewTexts>,
    /// The revision of each review that the user was told of.
    pub(crate) announced: BTreeMap<ReviewId, u32>,
    pub(crate) draft_files: BTreeMap<ReviewId, DraftFile>,
    /// The review whose diff was opened for the user.
    pub(crate) shown: Option<ReviewId>,
    /// Files of closed reviews that the user was warned about.
    pub(crate) warned: BTreeSet<String>,
    /// The diagnostics shown, by URI.
    pub(crate) published: BTreeMap<String, Vec<Diagnostic>>,
    pub(crate) is_initialized: bool,
    /// The last known selection, with the URI of its document.
    selection: Option<(String, Range)>,
    folders: Vec<PathBuf>,
    pending: BTreeMap<u64, PendingRequest>,
}

/// What a response of the editor is about.
#[derive(Clone, Debug)]
pub(crate) enum PendingRequest {
    /// `window/showDocument`, and the message to show if it fails.
    ShowDocument { otherwise: String },
    /// The question about a review; the answer applies to this revision only.
    Decide { review: ReviewId, revision: u32 },
    /// An edit to a draft's buffer.
    ApplyEdit { review: ReviewId },
    /// Nothing depends on the response.
    Ignored,
}

impl<B: Backend> LspFrontEnd<B> {
    pub(crate) fn new(backend: Arc<B>, client: Client, scratch: Scratch, sender: RpcSender) -> Self {
        let hello = Hello {
            protocol: VERSION,
            name: client.name.clone(),
            watch: true,
            interactive: true,
            trusted: None,
            chat: false,
            opens_files: true,
        };
        Self {
            backend,
            front_end: FrontEnd::new(hello),
            folders: client.folders.clone(),
            client,
            scratch,
            sender,
            documents: Documents::default(),
            reviews: BTreeMap::new(),
            announced: BTreeMap::new(),
            draft_files: BTreeMap::new(),
            shown: None,
            warned: BTreeSet::new(),
            published: BTreeMap::new(),
            is_initialized: false,
            selection: None,
            pending: BTreeMap::new(),
        }
    }

    /// Sends `hello` to the companion and returns the result of `initialize`.
    pub(crate) async fn initialize(&mut self) -> Result<InitializeResult, RpcError> {
        let hello = self.front_end.hello.clone();
        let welcome = self.call::<requests::Hello>(hello).await;
        let welcome = welcome.map_err(|error| RpcError::new(REQUEST_FAILED, error.message))?;
        Ok(InitializeResult::new(&self.client, welcome.version))
    }

    /// Handles a request and returns the text of the response.
    pub(crate) async fn handle_request(&mut self, request: &rpc::Request<'_>) -> String {
        let response = self.respond(request).await;
        response.unwrap_or_else(|error| request.error(&error))
    }

    async fn respond(&mut self, request: &rpc::Request<'_>) -> Result<String, RpcError> {
        match &*request.method {
            "textDocument/hover" => {
                let params: TextDocumentPositionParams = request.params()?;
                if self.client.profile.hovers_at_the_cursor {
                    let range = Range::empty(params.position);
                    self.user_is_at(&params.text_document.uri, range).await;
                }
                Ok(request.response(&()))
            }
            "textDocument/documentHighlight" => {
                let params: TextDocumentPositionParams = request.params()?;
                let range = Range::empty(params.position);
                self.user_is_at(&params.text_document.uri, range).await;
                Ok(request.response(&()))
            }
            "textDocument/codeAction" => Ok(request.response(&self.code_actions(request.params()?).await)),
            "textDocument/codeLens" => {
                let params: TextDocumentParams = request.params()?;
                Ok(request.response(&self.code_lenses(&params.text_document.uri)))
            }
            "workspace/executeCommand" => {
                self.execute_command(request.params()?).await?;
                Ok(request.response(&()))
            }
            "initialize" => Err(RpcError::new(INVALID_REQUEST, "the server is already initialized")),
            method => Err(RpcError::new(METHOD_NOT_FOUND, format!("unknown method `{method}`"))),
        }
    }

    pub(crate) async fn handle_notification(&mut self, notification: &rpc::Notification<'_>) {
        if let Err(error) = self.apply(notification).await {
            tracing::warn!(
                method = &*notification.method,
                "ignoring an invalid message from the editor: {}",
                error.message
            );
        }
    }

    async fn apply(&mut self, notification: &rpc::Notification<'_>) -> Result<(), RpcError> {
        match &*notification.method {
            "initialized" => {
                self.is_initialized = true;
                self.fetch_reviews().await;
            }
            "textDocument/didOpen" => {
                let params: DidOpenParams = notification.params()?;
                self.did_open(params.text_document).await;
            }
            "textDocument/didChange" => self.did_change(notification.params()?).await,
            "textDocument/didSave" => self.did_save(notification.params()?).await,
            "textDocument/didClose" => {
                let params: TextDocumentParams = notification.params()?;
                self.did_close(&params.text_document.uri).await;
            }
            "workspace/didChangeWorkspaceFolders" => {
                let params: DidChangeWorkspaceFoldersParams = notification.params()?;
                self.set_folders(&params.event).await;
            }
            // The rest is for real language servers.
            _ => {}
        }
        Ok(())
    }

    async fn did_open(&mut self, opened: TextDocumentItem) {
        let version = opened.version.unwrap_or_default();
        let Some(document) = self.documents.open(&opened.uri, version, opened.text) else {
            return;
        };
        if self.scratch.holds(&document.real) {
            self.draft_file_edited(&opened.uri).await;
            return;
        }
        let path = document.path.clone();
        // A file is usually opened to be looked at; if not, the client soon reports another position.
        let focus = Focus {
            path,
            cursor: None,
            selected_text: None,
            selection_start: None,
        };
        self.report::<requests::ContextFocus>(focus).await;
        self.report_buffer(&opened.uri).await;
        self.publish();
    }

    async fn did_change(&mut self, changed: DidChangeParams) {
        let address = changed.text_document.uri;
        let encoding = self.client.encoding;
        let Some(document) = self.documents.get_mut(&address) else {
            return;
        };
        let edits = changed.content_changes;
        let end = match changed.text_document.version {
            Some(version) if self.client.profile.changes_overtake => {
                let Some(end) = document.change_in_order(version, edits, encoding, Instant::now()) else {
                    return;
                };
                end
            }
            version => document.change(version.unwrap_or(document.version), edits, encoding),
        };
        if self.scratch.holds(&document.real) {
            self.draft_file_edited(&address).await;
            return;
        }
        let cursor = text::position(&document.text, end.min(document.text.len()), encoding);
        self.user_is_at(&address, Range::empty(cursor)).await;
        self.report_buffer(&address).await;
    }

    async fn did_save(&mut self, saved: DidSaveParams) {
        let address = saved.text_document.uri;
        let Some(document) = self.documents.get_mut(&address) else {
            return;
        };
        document.saved(saved.text);
        if self.scratch.holds(&document.real) {
            self.draft_file_edited(&address).await;
        } else {
            self.report_buffer(&address).await;
        }
    }

    async fn did_close(&mut self, address: &str) {
        let Some(document) = self.documents.close(address) else {
            return;
        };
        if self.scratch.holds(&document.real) {
            self.draft_file_closed(address);
            return;
        }
        let path = document.path;
        let buffer = Buffer {
            path: path.clone(),
            text: None,
        };
        self.report::<requests::ContextBuffer>(buffer).await;
        self.report::<requests::ContextClose>(FilePath { path }).await;
        self.publish();
    }

    /// Reports the cursor, and the selection if the range is one.
    pub(crate) async fn user_is_at(&mut self, address: &str, range: Range) {
        let encoding = self.client.encoding;
        let Some(document) = self.documents.get(address) else {
            return;
        };
        if self.scratch.holds(&document.real) {
            return;
        }
        let selected = document.between(range, encoding);
        // The cursor of Helix and Kakoune is a selection of one character.
        let is_selection = selected != "\r\n" && selected.chars().nth(1).is_some();
        let is_inside = |selection: &Range| selection.start <= range.start && range.end <= selection.end;
        let kept = self.selection.take().filter(|(of, _)| of == address && !is_selection);
        let kept = kept.filter(|(_, selection)| range.start == range.end && is_inside(selection));
        self.selection = if is_selection {
            Some((address.to_owned(), range))
        } else {
            kept
        };
        let selected = self.selection.as_ref();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let cursor = |place| {
            let (line, character) = document.cursor(place, encoding);
            Cursor {
                line: number(line),
                character: number(character),
            }
        };
        let focus = Focus {
            path: document.path.clone(),
            cursor: Some(cursor(if is_selection { range.end } else { range.start })),
            selected_text: selected.map(|(_, selection)| document.between(*selection, encoding).to_owned()),
            selection_start: selected.map(|(_, selection)| cursor(selection.start)),
        };
        self.report::<requests::ContextFocus>(focus).await;
    }

    /// The selection or the cursor, by the range of a request for code actions. `None` if the request does not say.
    pub(crate) fn selected(&self, document: &Document, range: Range) -> Option<Range> {
        let mut selected = range;
        match self.client.profile.selection {
            SelectionRange::Exact => {}
            SelectionRange::ToTheLast if range.start == range.end => {}
            SelectionRange::ToTheLast => {
                selected.end = text::position_after(&document.text, range.end, self.client.encoding);
            }
            SelectionRange::OrLine => {
                let (start, end) = (range.start, range.end);
                let is_line = start.character == 0 && end.character == 0 && end.line == start.line + 1;
                if is_line {
                    selected.end = start;
                }
            }
            SelectionRange::Unrelated => return None,
        }
        Some(selected)
    }

    async fn report_buffer(&mut self, address: &str) {
        if let Some(document) = self.documents.get(address) {
            let buffer = Buffer {
                path: document.path.clone(),
                text: document.unsaved(),
            };
            self.report::<requests::ContextBuffer>(buffer).await;
        }
    }

    async fn set_folders(&mut self, event: &WorkspaceFoldersChangeEvent) {
        if !self.client.follows_folders {
            return;
        }
        let path = |folder: &WorkspaceFolder| workspace_of(PathBuf::from(uri::to_path(&folder.uri)?));
        let removed: Vec<PathBuf> = event.removed.iter().filter_map(path).collect();
        self.folders.retain(|folder| !removed.contains(folder));
        for folder in event.added.iter().filter_map(path) {
            if !self.folders.contains(&folder) && !self.is_ours(&folder) {
                self.folders.push(folder);
            }
        }
        if !self.folders.is_empty() {
            let folders = self.folders.clone();
            self.report::<requests::WorkspaceSet>(Folders { folders }).await;
        }
    }

    /// Whether drafts are written to this folder: some clients treat the folder of every file as a project.
    fn is_ours(&self, folder: &Path) -> bool {
        self.scratch.holds(&documents::real(folder))
    }

    /// Sends a report to the companion. A refused one does not concern the editor.
    async fn report<M: Method>(&self, params: M::Params) {
        if let Err(error) = self.call::<M>(params).await {
            tracing::debug!(kind = error.kind.as_str(), "{}", error.message);
        }
    }

    pub(crate) async fn call<M: Method>(&self, params: M::Params) -> Result<M::Response, RequestError> {
        self.backend.call::<M>(&self.front_end, params).await
    }

    /// Sends a request to the editor.
    pub(crate) fn request(&mut self, method: &str, params: &impl Serialize, about: PendingRequest) {
        let Some(id) = log_unsent(self.sender.send_request(method, params)) else {
            return;
        };
        if self.pending.len() >= MAX_PENDING_REQUESTS {
            self.pending.pop_first();
        }
        self.pending.insert(id, about);
    }

    pub(crate) fn notify(&self, method: &str, params: &impl Serialize) {
        log_unsent(self.sender.notify(method, params));
    }

    pub(crate) async fn handle_response(&mut self, response: Response<'_>) {
        let about = response.number().and_then(|id| self.pending.remove(&id));
        let result = response.result.ok().map(RawValue::get);
        match about {
            None | Some(PendingRequest::Ignored) => {}
            Some(PendingRequest::ShowDocument { otherwise }) => {
                let shown = result.and_then(|result| serde_json::from_str::<ShowDocumentResult>(result).ok());
                if !shown.is_some_and(|shown| shown.success) {
                    self.show_message(MessageType::Info, &otherwise);
                }
            }
            // Many clients cannot ask questions; some respond much later, or never.
            Some(PendingRequest::Decide { review, revision }) => {
                let answer = result.and_then(|result| serde_json::from_str(result).ok());
                if let Some(answer) = answer {
                    self.answer_question(review, revision, &answer).await;
                }
            }
            Some(PendingRequest::ApplyEdit { review }) => {
                let applied = result.and_then(|result| serde_json::from_str(result).ok());
                self.edit_applied(review, applied);
            }
        }
    }

    pub(crate) fn show_message(&self, kind: MessageType, message: &str) {
        let params = ShowMessageParams {
            kind,
            message,
            actions: Vec::new(),
        };
        self.notify("window/showMessage", &params);
    }
}

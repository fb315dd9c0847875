//! One conversation: what the editor tells, and what becomes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alongside_core::ReviewId;
use alongside_core::context::Cursor;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::client::{Client, project_of};
use super::documents::{Document, Documents};
use super::drafts::Sheet;
use super::scratch::Scratch;
use super::text::{self, ContentChange, Position, Range};
use super::wire::{Failure, Outgoing};
use super::{capabilities, uri};
use alongside_protocol::{Backend, FrontEnd, Method, RequestError, requests};
use alongside_protocol::{Buffer, FilePath, Focus, Folders, Hello, ReviewTexts, VERSION};

/// A conversation with an editor.
pub(super) struct Face<D> {
    desk: Arc<D>,
    front_end: FrontEnd,
    pub(super) client: Client,
    pub(super) scratch: Scratch,
    pub(super) outgoing: Outgoing,
    pub(super) documents: Documents,
    /// The reviews that wait.
    pub(super) reviews: BTreeMap<ReviewId, ReviewTexts>,
    /// The drafts that are files.
    pub(super) sheets: BTreeMap<ReviewId, Sheet>,
    /// Files in the scratch directory of which a person was told that they are about nothing any more.
    pub(super) warned: BTreeSet<String>,
    /// The hints that are shown, by the address of their file.
    pub(super) published: BTreeMap<String, Value>,
    pub(super) is_initialized: bool,
    /// The last known selection.
    selection: Option<(String, Range)>,
    folders: Vec<PathBuf>,
    /// What the editor was asked and has not answered.
    pending: BTreeMap<u64, Asked>,
    last_id: u64,
}

/// What an answer of the editor is about.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    /// To show a file; what to say if it cannot.
    Show { otherwise: String },
    /// What to do with a review; it counts for this revision only.
    Decide { review: ReviewId, revision: u32 },
    /// To change the file of a draft.
    Rewrite { review: ReviewId },
    /// Something whose outcome does not matter.
    Nothing,
}

/// How a message looks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tone {
    Error = 1,
    Information = 3,
}

#[derive(Deserialize)]
struct Named {
    uri: String,
    #[serde(default)]
    version: Option<i64>,
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfDocument {
    text_document: Named,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Changed {
    text_document: Named,
    content_changes: Vec<ContentChange>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Saved {
    text_document: Named,
    #[serde(default)]
    text: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AtPosition {
    text_document: Named,
    position: Position,
}

#[derive(Deserialize)]
struct FoldersChanged {
    event: FoldersEvent,
}

#[derive(Deserialize)]
struct FoldersEvent {
    #[serde(default)]
    added: Vec<Named>,
    #[serde(default)]
    removed: Vec<Named>,
}

impl<D: Backend> Face<D> {
    pub(super) fn new(desk: Arc<D>, client: Client, scratch: Scratch, outgoing: Outgoing) -> Self {
        let hello = Hello {
            protocol: VERSION,
            name: client.name.clone(),
            watch: true,
            interactive: true,
            trusted: None,
            chat: false,
        };
        Self {
            desk,
            front_end: FrontEnd { hello },
            folders: client.folders.clone(),
            client,
            scratch,
            outgoing,
            documents: Documents::default(),
            reviews: BTreeMap::new(),
            sheets: BTreeMap::new(),
            warned: BTreeSet::new(),
            published: BTreeMap::new(),
            is_initialized: false,
            selection: None,
            pending: BTreeMap::new(),
            last_id: 0,
        }
    }

    /// Says hello to the companion; gives the answer to `initialize`.
    pub(super) async fn begin(&mut self) -> Result<Value, Failure> {
        let hello = self.front_end.hello.clone();
        let welcome = self
            .call::<requests::Hello>(hello)
            .await
            .map_err(|refusal| Failure::new(-32803, refusal.message))?;
        Ok(json!({
            "capabilities": capabilities(&self.client),
            "serverInfo": { "name": "alongside", "version": welcome.version },
        }))
    }

    /// Answers a request.
    pub(super) async fn asked(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        match method {
            "textDocument/hover" => {
                let asked: AtPosition = read(method, params)?;
                if self.client.habits.hovers_at_the_cursor {
                    self.look_at(&asked.text_document.uri, at(asked.position)).await;
                }
                Ok(Value::Null)
            }
            "textDocument/documentHighlight" => {
                let asked: AtPosition = read(method, params)?;
                self.look_at(&asked.text_document.uri, at(asked.position)).await;
                Ok(Value::Null)
            }
            "textDocument/codeAction" => self.code_actions(read(method, params)?).await,
            "textDocument/codeLens" => {
                let asked: OfDocument = read(method, params)?;
                Ok(self.lenses(&asked.text_document.uri))
            }
            "workspace/executeCommand" => {
                self.execute(read(method, params)?).await?;
                Ok(Value::Null)
            }
            "initialize" => Err(Failure::new(-32600, "the server is already initialized")),
            _ => Err(Failure::new(-32601, format!("unknown method `{method}`"))),
        }
    }

    /// Takes note of what the editor tells.
    pub(super) async fn told(&mut self, method: &str, params: Value) {
        if let Err(failure) = self.take_note(method, params).await {
            tracing::warn!(
                method,
                "ignoring an invalid message from the editor: {}",
                failure.message
            );
        }
    }

    async fn take_note(&mut self, method: &str, params: Value) -> Result<(), Failure> {
        match method {
            "initialized" => {
                self.is_initialized = true;
                self.ask_for_reviews().await;
            }
            "textDocument/didOpen" => self.opened(read::<OfDocument>(method, params)?.text_document).await,
            "textDocument/didChange" => self.changed(read(method, params)?).await,
            "textDocument/didSave" => self.saved(read(method, params)?).await,
            "textDocument/didClose" => {
                let closed: OfDocument = read(method, params)?;
                self.closed(&closed.text_document.uri).await;
            }
            "workspace/didChangeWorkspaceFolders" => {
                let changed: FoldersChanged = read(method, params)?;
                self.set_folders(&changed.event).await;
            }
            // Everything else is for servers that know more.
            _ => {}
        }
        Ok(())
    }

    async fn opened(&mut self, opened: Named) {
        let version = opened.version.unwrap_or_default();
        let Some(document) = self.documents.open(&opened.uri, version, opened.text) else {
            return;
        };
        if self.scratch.holds(&document.real) {
            self.typed(&opened.uri).await;
            return;
        }
        let path = document.path.clone();
        // Nearly always somebody has opened it to look at it; a client that knows better says so soon.
        self.focus(path, None, None).await;
        self.report_buffer(&opened.uri).await;
        self.publish();
    }

    async fn changed(&mut self, changed: Changed) {
        let address = changed.text_document.uri;
        let encoding = self.client.encoding;
        let Some(document) = self.documents.get_mut(&address) else {
            return;
        };
        let version = changed.text_document.version.unwrap_or(document.version);
        let behind = document.change(version, changed.content_changes, encoding);
        if self.scratch.holds(&document.real) {
            self.typed(&address).await;
            return;
        }
        let cursor = text::position(&document.text, behind.min(document.text.len()), encoding);
        self.look_at(&address, at(cursor)).await;
        self.report_buffer(&address).await;
    }

    async fn saved(&mut self, saved: Saved) {
        let address = saved.text_document.uri;
        let Some(document) = self.documents.get_mut(&address) else {
            return;
        };
        document.saved(saved.text);
        if self.scratch.holds(&document.real) {
            self.typed(&address).await;
        } else {
            self.report_buffer(&address).await;
        }
    }

    async fn closed(&mut self, address: &str) {
        let Some(document) = self.documents.close(address) else {
            return;
        };
        if self.scratch.holds(&document.real) {
            self.closed_sheet(address);
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

    /// A person looks at a place, and has what is in it selected.
    pub(super) async fn look_at(&mut self, address: &str, range: Range) {
        let encoding = self.client.encoding;
        let Some(document) = self.documents.get(address) else {
            return;
        };
        if self.scratch.holds(&document.real) {
            return;
        }
        let range = self.selected(document, range);
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
        let selected = selected.map(|(_, selection)| document.between(*selection, encoding).to_owned());
        let place = if is_selection { range.end } else { range.start };
        let (line, character) = document.cursor(place, encoding);
        let path = document.path.clone();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let cursor = Cursor {
            line: number(line),
            character: number(character),
        };
        self.focus(path, Some(cursor), selected).await;
    }

    /// What a range of the editor means.
    pub(super) fn selected(&self, document: &Document, range: Range) -> Range {
        let mut selected = range;
        if self.client.habits.selects_to_the_last && range.start != range.end {
            selected.end = text::behind(&document.text, range.end, self.client.encoding);
        }
        selected
    }

    async fn focus(&mut self, path: String, cursor: Option<Cursor>, selected_text: Option<String>) {
        let focus = Focus {
            path,
            cursor,
            selected_text,
        };
        self.report::<requests::ContextFocus>(focus).await;
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

    async fn set_folders(&mut self, event: &FoldersEvent) {
        if !self.client.follows_folders {
            return;
        }
        let path = |named: &Named| Some(project_of(PathBuf::from(uri::to_path(&named.uri)?)));
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

    /// Whether a folder is one in which drafts are written: some clients take the folder of every file for a project.
    fn is_ours(&self, folder: &Path) -> bool {
        self.scratch.holds(&super::documents::real(folder))
    }

    /// Reports something that cannot matter to the editor if it is refused.
    async fn report<M: Method>(&self, params: M::Params) {
        if let Err(error) = self.call::<M>(params).await {
            tracing::debug!(kind = error.kind.as_str(), "{}", error.message);
        }
    }

    /// Asks the companion.
    pub(super) async fn call<M: Method>(&self, params: M::Params) -> Result<M::Response, RequestError> {
        self.desk.call::<M>(&self.front_end, params).await
    }

    /// Asks the editor.
    pub(super) fn ask(&mut self, method: &str, params: &Value, about: Asked) {
        self.last_id += 1;
        self.pending.insert(self.last_id, about);
        let message = json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        self.outgoing.send(message);
    }

    /// The editor has answered.
    pub(super) async fn answered(&mut self, id: &Value, result: Result<Value, String>) {
        let about = id.as_u64().and_then(|id| self.pending.remove(&id));
        match about {
            None | Some(Asked::Nothing) => {}
            Some(Asked::Show { otherwise }) => {
                let is_shown = result.is_ok_and(|result| result["success"] == true);
                if !is_shown {
                    self.say(Tone::Information, &otherwise);
                }
            }
            Some(Asked::Decide { review, revision }) => {
                // Many clients cannot ask; some answer much later, or never.
                if let Ok(chosen) = result {
                    self.answered_question(review, revision, &chosen).await;
                }
            }
            Some(Asked::Rewrite { review }) => self.rewritten(review, &result),
        }
    }

    /// Says something to the person.
    pub(super) fn say(&self, tone: Tone, message: &str) {
        let params = json!({ "type": tone as u8, "message": message });
        self.outgoing.notify("window/showMessage", &params);
    }
}

fn at(position: Position) -> Range {
    Range {
        start: position,
        end: position,
    }
}

fn read<T: DeserializeOwned>(method: &str, params: Value) -> Result<T, Failure> {
    serde_json::from_value(params)
        .map_err(|error| Failure::new(-32602, format!("invalid parameters for `{method}`: {error}")))
}

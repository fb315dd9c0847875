//! The part of the language server protocol that is used here, under the specification's names.
//!
//! Not the `lsp-types` crate: it parses URIs on their way in and out, but real clients send some that are not valid (spaces,
//! brackets), and a client's own spelling must be returned byte for byte.

use std::collections::BTreeMap;

use alongside_core::ReviewId;
use alongside_core::draft::HunkId;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// 0-based; what `character` counts is negotiated, see [`Encoding`](crate::text::Encoding).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) character: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Range {
    pub(crate) start: Position,
    pub(crate) end: Position,
}

impl Range {
    pub(crate) fn empty(position: Position) -> Self {
        Self {
            start: position,
            end: position,
        }
    }
}

// From the client.

#[derive(Deserialize)]
pub(crate) struct TextDocumentIdentifier {
    pub(crate) uri: String,
}

#[derive(Deserialize)]
pub(crate) struct TextDocumentItem {
    pub(crate) uri: String,
    #[serde(default)]
    pub(crate) version: Option<i64>,
    #[serde(default)]
    pub(crate) text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DidOpenParams {
    pub(crate) text_document: TextDocumentItem,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DidChangeParams {
    pub(crate) text_document: TextDocumentItem,
    pub(crate) content_changes: Vec<TextDocumentContentChangeEvent>,
}

/// Without a range the text replaces the whole document.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct TextDocumentContentChangeEvent {
    pub(crate) range: Option<Range>,
    pub(crate) text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DidSaveParams {
    pub(crate) text_document: TextDocumentIdentifier,
    #[serde(default)]
    pub(crate) text: Option<String>,
}

/// `textDocument/didClose` and `textDocument/codeLens`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TextDocumentParams {
    pub(crate) text_document: TextDocumentIdentifier,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TextDocumentPositionParams {
    pub(crate) text_document: TextDocumentIdentifier,
    pub(crate) position: Position,
}

#[derive(Deserialize)]
pub(crate) struct DidChangeWorkspaceFoldersParams {
    pub(crate) event: WorkspaceFoldersChangeEvent,
}

#[derive(Deserialize)]
pub(crate) struct WorkspaceFoldersChangeEvent {
    #[serde(default)]
    pub(crate) added: Vec<WorkspaceFolder>,
    #[serde(default)]
    pub(crate) removed: Vec<WorkspaceFolder>,
}

#[derive(Deserialize)]
pub(crate) struct WorkspaceFolder {
    pub(crate) uri: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CodeActionParams {
    pub(crate) text_document: TextDocumentIdentifier,
    pub(crate) range: Range,
    #[serde(default)]
    pub(crate) context: CodeActionContext,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CodeActionContext {
    #[serde(default)]
    pub(crate) only: Option<Vec<String>>,
    #[serde(default)]
    trigger_kind: Option<u8>,
}

impl CodeActionContext {
    /// Whether the client asks without the user having done so, to see whether there are any actions.
    pub(crate) fn is_automatic(&self) -> bool {
        self.trigger_kind == Some(2)
    }
}

#[derive(Deserialize)]
pub(crate) struct ExecuteCommandParams {
    pub(crate) command: String,
    #[serde(default)]
    pub(crate) arguments: Vec<Value>,
}

#[derive(Deserialize)]
pub(crate) struct ShowDocumentResult {
    #[serde(default)]
    pub(crate) success: bool,
}

#[derive(Deserialize)]
pub(crate) struct ApplyWorkspaceEditResult {
    #[serde(default)]
    pub(crate) applied: bool,
}

/// Sent with a question, and returned as the answer.
#[derive(Serialize, Deserialize)]
pub(crate) struct MessageActionItem {
    pub(crate) title: String,
}

// To the client.

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeResult {
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) server_info: ServerInfo,
}

#[derive(Serialize)]
pub(crate) struct ServerInfo {
    pub(crate) name: &'static str,
    pub(crate) version: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerCapabilities {
    pub(crate) position_encoding: &'static str,
    pub(crate) text_document_sync: TextDocumentSyncOptions,
    pub(crate) hover_provider: bool,
    pub(crate) document_highlight_provider: bool,
    pub(crate) code_action_provider: CodeActionOptions,
    pub(crate) code_lens_provider: CodeLensOptions,
    pub(crate) execute_command_provider: ExecuteCommandOptions,
    pub(crate) workspace: WorkspaceServerCapabilities,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TextDocumentSyncOptions {
    pub(crate) open_close: bool,
    pub(crate) change: TextDocumentSyncKind,
    pub(crate) save: SaveOptions,
}

#[derive(Clone, Copy)]
pub(crate) enum TextDocumentSyncKind {
    Incremental = 2,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SaveOptions {
    pub(crate) include_text: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CodeActionOptions {
    pub(crate) code_action_kinds: &'static [&'static str],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CodeLensOptions {
    pub(crate) resolve_provider: bool,
}

#[derive(Serialize)]
pub(crate) struct ExecuteCommandOptions {
    pub(crate) commands: &'static [&'static str],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkspaceServerCapabilities {
    pub(crate) workspace_folders: WorkspaceFoldersServerCapabilities,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkspaceFoldersServerCapabilities {
    pub(crate) supported: bool,
    pub(crate) change_notifications: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Diagnostic {
    pub(crate) range: Range,
    pub(crate) severity: DiagnosticSeverity,
    pub(crate) source: &'static str,
    pub(crate) message: String,
    pub(crate) data: DiagnosticData,
}

/// Which hunk a diagnostic is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DiagnosticData {
    pub(crate) review: ReviewId,
    pub(crate) hunk: HunkId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiagnosticSeverity {
    Hint = 4,
}

#[derive(Serialize)]
pub(crate) struct PublishDiagnosticsParams<'a> {
    pub(crate) uri: &'a str,
    pub(crate) diagnostics: &'a [Diagnostic],
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the protocol's name")]
pub(crate) struct Command {
    pub(crate) title: String,
    pub(crate) command: &'static str,
    pub(crate) arguments: [Value; 1],
}

#[derive(Serialize)]
pub(crate) struct CodeAction {
    pub(crate) title: String,
    pub(crate) kind: &'static str,
    pub(crate) command: Command,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum CodeActionOrCommand {
    CodeAction(CodeAction),
    Command(Command),
}

#[derive(Serialize)]
pub(crate) struct CodeLens {
    pub(crate) range: Range,
    pub(crate) command: Command,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum MessageType {
    Error = 1,
    Info = 3,
}

/// A message; with `actions`, a question.
#[derive(Serialize)]
pub(crate) struct ShowMessageParams<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: MessageType,
    pub(crate) message: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) actions: Vec<MessageActionItem>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShowDocumentParams {
    pub(crate) uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) external: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) take_focus: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) selection: Option<Range>,
}

#[derive(Serialize)]
pub(crate) struct ApplyWorkspaceEditParams {
    pub(crate) label: &'static str,
    pub(crate) edit: WorkspaceEdit,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum WorkspaceEdit {
    /// For clients that check the version of a document before they change it.
    DocumentChanges([TextDocumentEdit; 1]),
    Changes(BTreeMap<String, [TextEdit; 1]>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TextDocumentEdit {
    pub(crate) text_document: VersionedTextDocumentIdentifier,
    pub(crate) edits: [TextEdit; 1],
}

#[derive(Serialize)]
pub(crate) struct VersionedTextDocumentIdentifier {
    pub(crate) uri: String,
    pub(crate) version: i64,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TextEdit {
    pub(crate) range: Range,
    pub(crate) new_text: String,
}

macro_rules! serialize_as_number {
    ($($name:ident),+) => {
        $(impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u8(*self as u8)
            }
        })+
    };
}

serialize_as_number!(TextDocumentSyncKind, DiagnosticSeverity, MessageType);

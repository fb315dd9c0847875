//! The tools that agents call. A [`ToolSet`] has the names, arguments and responses of one dialect; what they do is the same for all.

mod arguments;
mod claude;
mod copilot;
mod notifying;
mod one_pass;

use std::borrow::Cow;
use std::sync::Arc;

use alongside_core::SessionKey;
use alongside_core::context::Cursor;
use alongside_core::diagnostics::{Diagnostic, FileDiagnostics, Severity};
use alongside_core::dialect::ToolSet;
use alongside_wire::rpc::{self, Request, RpcError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::companion::{Companion, DiffOutcome};
use crate::endpoint::Endpoint;
use crate::file_url::path_of;
use crate::outbox::ChangedFile;
use crate::protocol::shortened;
use arguments::Arguments;

/// The result of `tools/list`: always all tools, on one page. Without both of theirs, Gemini CLI and Qwen Code review in the terminal
/// only.
pub(crate) fn list(tools: ToolSet) -> Value {
    match tools {
        ToolSet::Notifying => notifying::list(),
        ToolSet::Claude => claude::list(),
        ToolSet::Copilot => copilot::list(),
    }
}

/// A `tools/call`.
pub(crate) struct ToolCall<'a> {
    id: &'a RawValue,
    name: Cow<'a, str>,
    /// The error is for the model.
    arguments: Result<Arguments<'a>, String>,
}

impl<'a> ToolCall<'a> {
    /// Reads a whole message in one pass. `None` if it is anything else or invalid; the step-by-step parser reports why.
    pub(crate) fn parse(message: &'a str) -> Option<Self> {
        let whole = one_pass::parse(message)?;
        Some(Self {
            arguments: Ok(Arguments::of_texts(&whole.name, whole.arguments)),
            id: whole.id,
            name: whole.name,
        })
    }

    pub(crate) fn of(request: &Request<'a>) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        struct Parameters<'a> {
            #[serde(borrow)]
            name: Cow<'a, str>,
            #[serde(borrow)]
            arguments: Option<&'a RawValue>,
        }

        let Parameters { name, arguments } = request.params()?;
        Ok(Self {
            id: request.id,
            arguments: Arguments::parse(&name, arguments),
            name,
        })
    }
}

pub(crate) async fn call<C: Companion>(endpoint: &Endpoint<C>, session: &SessionKey, call: ToolCall<'_>) -> String {
    let ToolCall { id, name, arguments } = call;
    let call = Call {
        endpoint,
        session,
        tool: &name,
    };
    let result = match endpoint.registry.dialect(session).tools {
        ToolSet::Notifying => notifying::call(&call, arguments).await,
        ToolSet::Claude => Ok(claude::call(&call, arguments).await),
        ToolSet::Copilot => Ok(copilot::call(&call, arguments).await),
    };
    match result {
        Ok(result) => rpc::response_of_size(id, &result, result.size()),
        Err(error) => rpc::error_response(Some(id), &error),
    }
}

/// One call of a tool.
struct Call<'a, C> {
    endpoint: &'a Endpoint<C>,
    session: &'a SessionKey,
    tool: &'a str,
}

/// A proposal to review.
struct Proposal {
    file_path: String,
    new_content: Arc<str>,
    /// With a name, the agent can close the review while its call waits for the decision.
    tab_name: Option<String>,
}

impl Proposal {
    /// The proposal of a call that waits in a tab, and the tab's name.
    fn in_tab(arguments: &Arguments<'_>, path: &str) -> Result<(Self, String), String> {
        let tab_name = arguments.text("tab_name")?;
        let proposal = Self {
            file_path: arguments.path(path)?,
            new_content: arguments.shared_text("new_file_contents")?,
            tab_name: Some(tab_name.clone()),
        };
        Ok((proposal, tab_name))
    }
}

/// What `openDiff` responds with.
enum OpenDiff {
    Outcome(DiffOutcome),
    /// The agent closed the review while it was pending.
    Closed,
    /// Why the change cannot be reviewed.
    Refused(String),
}

impl<C: Companion> Call<'_, C> {
    /// Opens a review. Whether that waits for the decision depends on the session.
    async fn open_diff(&self, proposal: Proposal) -> OpenDiff {
        let registry = &self.endpoint.registry;
        // Before anything is awaited: the agent may close it with its next message.
        let tab = proposal.tab_name.map(|name| registry.open_tab(self.session, &name));
        let closed = async {
            match tab {
                None => std::future::pending().await,
                Some(None) => {}
                Some(Some(tab)) => tab.closed().await,
            }
        };
        let open = async {
            registry.caught_up().await;
            let file_path: Arc<str> = proposal.file_path.into();
            let _opening = registry.begin_open(self.session, &file_path);
            let opened = self
                .endpoint
                .companion
                .open_diff(self.session, file_path.clone(), proposal.new_content);
            opened.await
        };
        tokio::select! {
            opened = open => opened.map_or_else(OpenDiff::Refused, OpenDiff::Outcome),
            () = closed => OpenDiff::Closed,
            () = self.endpoint.closing.wait() => {
                OpenDiff::Refused("The companion is shutting down; decide in the terminal.".to_owned())
            }
        }
    }
}

/// The diagnostics of the file that `uri` names, or of all files.
fn diagnostics<C: Companion>(call: &Call<'_, C>, arguments: &Arguments<'_>) -> Result<Vec<FileDiagnostics>, String> {
    let uri = if arguments.has("uri") {
        Some(arguments.text("uri")?)
    } else {
        None
    };
    let path = match &uri {
        None => None,
        Some(uri) => Some(path_of(uri).ok_or_else(|| format!("`{}` is not the URI of a file.", shortened(uri)))?),
    };
    Ok(call.endpoint.companion.diagnostics(path.as_deref()))
}

/// A file of `diagnostics_changed`, which only Copilot CLI gets.
pub(crate) fn changed_diagnostics(file: &FileDiagnostics) -> ChangedFile {
    ChangedFile {
        path: file.path.as_str().into(),
        json: copilot::changed(file).to_string().into(),
    }
}

/// Diagnostics with a word for their severity, and positions from 0, as in most protocols.
fn described(diagnostics: &[Diagnostic], word: fn(Severity) -> &'static str) -> Value {
    let position = |place: Cursor| json!({"line": place.line - 1, "character": place.character - 1});
    let describe = |found: &Diagnostic| {
        let range = json!({"start": position(found.start), "end": position(found.end)});
        let mut value = json!({"message": found.message, "severity": word(found.severity), "range": range});
        if let Some(source) = &found.source {
            value["source"] = json!(source);
        }
        if let Some(code) = &found.code {
            value["code"] = json!(code);
        }
        value
    };
    diagnostics.iter().map(describe).collect()
}

/// A tool in the result of `tools/list`.
fn tool(name: &str, description: &str, properties: &Value, required: &[&str]) -> Value {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    json!({"name": name, "description": description, "inputSchema": schema})
}

/// A string among a tool's arguments.
fn string(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult {
    content: Vec<TextBlock>,
    #[serde(skip_serializing_if = "is_false")]
    is_error: bool,
}

#[derive(Serialize)]
struct TextBlock {
    r#type: &'static str,
    text: String,
}

/// About how many bytes a text has as a JSON string, with room for some escapes and an envelope.
fn json_size(text: &str) -> usize {
    text.len() + text.len() / 16 + 128
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_false(value: &bool) -> bool {
    !value
}

impl ToolResult {
    fn texts<const N: usize>(texts: [String; N]) -> Self {
        let block = |text| TextBlock { r#type: "text", text };
        Self {
            content: texts.map(block).into(),
            is_error: false,
        }
    }

    /// About how many bytes it has as JSON.
    fn size(&self) -> usize {
        self.content.iter().map(|block| json_size(&block.text)).sum()
    }

    fn empty() -> Self {
        Self::texts([])
    }

    fn text(text: impl Into<String>) -> Self {
        Self::texts([text.into()])
    }

    fn error(sentence: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(sentence)
        }
    }
}

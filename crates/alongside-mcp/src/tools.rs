//! The tools that agents call. A [`ToolSet`] has the names, arguments and responses of one dialect; what they do is the same for all.

mod claude;
mod copilot;
mod notifying;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use alongside_core::SessionKey;
use alongside_core::context::Cursor;
use alongside_core::diagnostics::{Diagnostic, FileDiagnostics, Severity};
use alongside_core::dialect::ToolSet;
use alongside_wire::rpc::{Request, RpcError};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::companion::{Companion, DiffOutcome};
use crate::endpoint::Endpoint;
use crate::file_url::path_of;
use crate::outbox::ChangedFile;
use crate::protocol::shortened;

/// The result of `tools/list`: always all tools, on one page. Without both of theirs, Gemini CLI and Qwen Code review in the terminal
/// only.
pub(crate) fn list(tools: ToolSet) -> Value {
    match tools {
        ToolSet::Notifying => notifying::list(),
        ToolSet::Claude => claude::list(),
        ToolSet::Copilot => copilot::list(),
    }
}

pub(crate) async fn call<C: Companion>(
    endpoint: &Endpoint<C>,
    session: &SessionKey,
    request: &Request<'_>,
) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    struct Parameters<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }

    let Parameters { name, arguments } = request.params()?;
    let arguments = Arguments::parse(&name, arguments);
    let call = Call {
        endpoint,
        session,
        tool: &name,
    };
    let result = match endpoint.registry.dialect(session).tools {
        ToolSet::Notifying => notifying::call(&call, arguments).await?,
        ToolSet::Claude => claude::call(&call, arguments).await,
        ToolSet::Copilot => copilot::call(&call, arguments).await,
    };
    Ok(request.response_of_size(&result, result.size()))
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
    let uri = if arguments.values.contains_key("uri") {
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

/// The unparsed arguments of a tool. Unknown ones, such as `suppressNotification`, have no effect.
struct Arguments<'a> {
    tool: String,
    values: HashMap<Cow<'a, str>, &'a RawValue>,
}

impl<'a> Arguments<'a> {
    fn parse(tool: &str, arguments: Option<&'a RawValue>) -> Result<Self, String> {
        let text = arguments.map_or("{}", RawValue::get);
        let object = text.starts_with('{').then(|| serde_json::from_str(text));
        match object {
            Some(Ok(values)) => Ok(Self {
                tool: tool.to_owned(),
                values,
            }),
            Some(Err(error)) => Err(format!("Invalid arguments for {tool}: {error}.")),
            None => Err(format!("The arguments of {tool} must be an object.")),
        }
    }

    fn text(&self, name: &str) -> Result<String, String> {
        self.get(name)
    }

    /// A text that may be large: it is copied once.
    fn shared_text(&self, name: &str) -> Result<Arc<str>, String> {
        self.get(name).map(|SharedText(text)| text)
    }

    fn get<T: Deserialize<'a>>(&self, name: &str) -> Result<T, String> {
        let tool = &self.tool;
        let value = self
            .values
            .get(name)
            .ok_or_else(|| format!("{tool} requires the string argument {name}."))?;
        serde_json::from_str(value.get())
            .map_err(|_| format!("The argument {name} of {tool} must be a string of valid Unicode."))
    }

    fn path(&self, name: &str) -> Result<String, String> {
        let path = self.text(name)?;
        if path.is_empty() {
            let tool = &self.tool;
            return Err(format!(
                "The argument {name} of {tool} is empty; it must be the path of a file."
            ));
        }
        Ok(path)
    }
}

struct SharedText(Arc<str>);

impl<'de> Deserialize<'de> for SharedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = SharedText;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<SharedText, E> {
                Ok(SharedText(text.into()))
            }
        }

        deserializer.deserialize_str(Text)
    }
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

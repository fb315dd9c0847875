//! The two tools of a companion: `openDiff` and `closeDiff`.

use std::borrow::Cow;
use std::sync::Arc;

use alongside_core::SessionKey;
use alongside_core::dialect::{ClientDialect, CloseDiffReply};
use alongside_wire::rpc::{INVALID_PARAMS, Request, RpcError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::companion::Companion;
use crate::endpoint::Endpoint;
use crate::protocol::shortened;

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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_false(value: &bool) -> bool {
    !value
}

impl ToolResult {
    fn empty() -> Self {
        Self {
            content: Vec::new(),
            is_error: false,
        }
    }

    fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![TextBlock {
                r#type: "text",
                text: text.into(),
            }],
            is_error: false,
        }
    }

    fn error(sentence: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(sentence)
        }
    }
}

/// The result of `tools/list`: always both tools, on one page. Without both, an agent reviews in the terminal only.
pub(crate) fn list() -> Value {
    let file_path = json!({"type": "string", "description": "The absolute path of the file; returned unchanged."});
    json!({"tools": [
        {
            "name": "openDiff",
            "description": "Shows the user a proposed new version of a file, which they may edit. Returns immediately; the decision arrives as ide/diffAccepted or ide/diffRejected.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "filePath": file_path.clone(),
                    "newContent": {"type": "string", "description": "The full proposed content of the file."},
                },
                "required": ["filePath", "newContent"],
                "additionalProperties": false,
            },
        },
        {
            "name": "closeDiff",
            "description": "Closes an open review of a file and returns its text, including the user's edits.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "filePath": file_path,
                    "suppressNotification": {
                        "type": "boolean",
                        "description": "Has no effect: closing a review never sends a notification.",
                    },
                },
                "required": ["filePath"],
                "additionalProperties": false,
            },
        },
    ]})
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
    let result = match &*name {
        "openDiff" => match arguments.and_then(|arguments| {
            Ok((
                arguments.text("filePath", arguments.file_path)?,
                arguments.text("newContent", arguments.new_content)?,
            ))
        }) {
            Ok((file_path, new_content)) => open_diff(endpoint, session, file_path, new_content).await,
            Err(sentence) => ToolResult::error(sentence),
        },
        "closeDiff" => match arguments.and_then(|arguments| arguments.text("filePath", arguments.file_path)) {
            Ok(file_path) => close_diff(endpoint, session, &file_path).await,
            Err(sentence) => ToolResult::error(sentence),
        },
        name => {
            let message = format!(
                "Unknown tool {}; the tools are openDiff and closeDiff.",
                shortened(name)
            );
            return Err(RpcError::new(INVALID_PARAMS, message));
        }
    };
    Ok(request.response(&result))
}

/// The unparsed arguments of either tool. Others, such as `suppressNotification`, have no effect.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arguments<'a> {
    #[serde(skip)]
    tool: String,
    #[serde(borrow)]
    file_path: Option<&'a RawValue>,
    #[serde(borrow)]
    new_content: Option<&'a RawValue>,
}

impl<'a> Arguments<'a> {
    fn parse(tool: &str, arguments: Option<&'a RawValue>) -> Result<Self, String> {
        let text = arguments.map_or("{}", RawValue::get);
        let object = text.starts_with('{').then(|| serde_json::from_str::<Self>(text));
        match object {
            Some(Ok(arguments)) => Ok(Self {
                tool: tool.to_owned(),
                ..arguments
            }),
            Some(Err(error)) => Err(format!("Invalid arguments for {tool}: {error}.")),
            None => Err(format!("The arguments of {tool} must be an object.")),
        }
    }

    fn text(&self, name: &str, value: Option<&RawValue>) -> Result<String, String> {
        let tool = &self.tool;
        let value = value.ok_or_else(|| format!("{tool} requires the string argument {name}."))?;
        let text: String = serde_json::from_str(value.get())
            .map_err(|_| format!("The argument {name} of {tool} must be a string of valid Unicode."))?;
        if name == "filePath" && text.is_empty() {
            return Err(format!(
                "The argument filePath of {tool} is empty; it must be the path of a file."
            ));
        }
        Ok(text)
    }
}

async fn open_diff<C: Companion>(
    endpoint: &Endpoint<C>,
    session: &SessionKey,
    file_path: String,
    new_content: String,
) -> ToolResult {
    let open = async {
        endpoint.registry.caught_up().await;
        let (file_path, new_content): (Arc<str>, Arc<str>) = (file_path.into(), new_content.into());
        let _opening = endpoint.registry.begin_open(session, &file_path);
        let opened = endpoint.companion.open_diff(session, file_path.clone(), new_content);
        opened.await
    };
    let opened = tokio::select! {
        opened = open => opened,
        () = endpoint.closing.wait() => Err("The companion is shutting down; decide in the terminal.".to_owned()),
    };
    opened.map_or_else(ToolResult::error, |()| ToolResult::empty())
}

async fn close_diff<C: Companion>(endpoint: &Endpoint<C>, session: &SessionKey, file_path: &str) -> ToolResult {
    endpoint.registry.caught_up().await;
    endpoint.registry.acknowledge(session, file_path);
    let final_text = match endpoint.companion.close_diff(session, file_path).await {
        Ok(final_text) => final_text,
        Err(sentence) => return ToolResult::error(sentence),
    };
    let client = endpoint.registry.client(session);
    match (ClientDialect::of(client.as_ref()).close_diff, final_text) {
        (CloseDiffReply::Json, Some(content)) => ToolResult::text(json!({ "content": content }).to_string()),
        (CloseDiffReply::Json, None) => ToolResult::text("{}"),
        (CloseDiffReply::PlainText, Some(content)) => ToolResult::text(&*content),
        (CloseDiffReply::PlainText, None) => ToolResult::error("There is no open review of this file."),
    }
}

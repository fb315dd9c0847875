//! The tools of Gemini CLI and Qwen Code: `openDiff` returns immediately, and the decision arrives as a notification.

use alongside_core::dialect::CloseDiffReply;
use alongside_wire::rpc::{INVALID_PARAMS, RpcError};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Arguments, Call, OpenDiff, Proposal, ToolResult, json_size};
use crate::companion::Companion;
use crate::protocol::shortened;

pub(super) fn list() -> Value {
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

pub(super) async fn call<C: Companion>(
    call: &Call<'_, C>,
    arguments: Result<Arguments<'_>, String>,
) -> Result<ToolResult, RpcError> {
    Ok(match call.tool {
        "openDiff" => match arguments.and_then(|arguments| proposal(&arguments)) {
            Ok(proposal) => match call.open_diff(proposal).await {
                OpenDiff::Outcome(_) | OpenDiff::Closed => ToolResult::empty(),
                OpenDiff::Refused(sentence) => ToolResult::error(sentence),
            },
            Err(sentence) => ToolResult::error(sentence),
        },
        "closeDiff" => match arguments.and_then(|arguments| arguments.path("filePath")) {
            Ok(file_path) => close_diff(call, &file_path).await,
            Err(sentence) => ToolResult::error(sentence),
        },
        name => {
            let message = format!(
                "Unknown tool {}; the tools are openDiff and closeDiff.",
                shortened(name)
            );
            return Err(RpcError::new(INVALID_PARAMS, message));
        }
    })
}

fn proposal(arguments: &Arguments<'_>) -> Result<Proposal, String> {
    Ok(Proposal {
        file_path: arguments.path("filePath")?,
        new_content: arguments.shared_text("newContent")?,
        tab_name: None,
    })
}

/// The text of a closed review as JSON.
fn closed(content: &str) -> String {
    #[derive(Serialize)]
    struct Closed<'a> {
        content: &'a str,
    }

    let mut text = Vec::with_capacity(json_size(content));
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(&mut text, &Closed { content });
    String::from_utf8(text).unwrap_or_default()
}

async fn close_diff<C: Companion>(call: &Call<'_, C>, file_path: &str) -> ToolResult {
    let Call { endpoint, session, .. } = call;
    endpoint.registry.caught_up().await;
    endpoint.registry.acknowledge(session, file_path);
    let final_text = match endpoint.companion.close_diff(session, file_path).await {
        Ok(final_text) => final_text,
        Err(sentence) => return ToolResult::error(sentence),
    };
    match (endpoint.registry.dialect(session).close_diff, final_text) {
        (CloseDiffReply::Json, Some(content)) => ToolResult::text(closed(&content)),
        (CloseDiffReply::Json, None) => ToolResult::text("{}"),
        (CloseDiffReply::PlainText, Some(content)) => ToolResult::text(&*content),
        (CloseDiffReply::PlainText, None) => ToolResult::error("There is no open review of this file."),
    }
}

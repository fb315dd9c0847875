//! The tools of Copilot CLI: `open_diff` returns with the decision, but not with a text.
//!
//! Copilot CLI asks in its terminal too, and the first answer counts. It writes its own text or nothing, so an edited draft cannot be
//! accepted ([`takes_edits`](alongside_core::dialect::ClientInfo::takes_edits)); its hook can write one. A response that lacks a field is
//! ignored.

use alongside_core::diagnostics::{FileDiagnostics, Severity};
use serde_json::{Value, json};

use super::{Arguments, Call, OpenDiff, Proposal, ToolResult, described, diagnostics, string, tool};
use crate::companion::{Companion, DiffOutcome};
use crate::file_url::file_url;
use crate::protocol::shortened;

pub(super) fn list() -> Value {
    json!({"tools": [
        tool(
            "open_diff",
            "Shows the user a proposed new version of a file. Returns with the decision.",
            &json!({
                "original_file_path": string("The absolute path of the file."),
                "new_file_contents": string("The full proposed content of the file."),
                "tab_name": string("Identifies the review."),
            }),
            &["original_file_path", "new_file_contents", "tab_name"],
        ),
        tool(
            "close_diff",
            "Closes an open review without a decision.",
            &json!({"tab_name": string("Identifies the review.")}),
            &["tab_name"],
        ),
        tool(
            "get_selection",
            "Returns the file that the user is looking at in the editor, and the selected text.",
            &json!({}),
            &[],
        ),
        tool(
            "get_diagnostics",
            "Returns errors and warnings from the editor, for one file or for all.",
            &json!({"uri": string("The file's URI. Without it, all files.")}),
            &[],
        ),
        tool(
            "update_session_name",
            "Names the conversation.",
            &json!({"name": string("The name.")}),
            &["name"],
        ),
    ]})
}

pub(super) async fn call<C: Companion>(call: &Call<'_, C>, arguments: Result<Arguments<'_>, String>) -> ToolResult {
    let registry = &call.endpoint.registry;
    let result = match (call.tool, arguments) {
        (_, Err(sentence)) => Err(sentence),
        ("open_diff", Ok(arguments)) => match Proposal::in_tab(&arguments, "original_file_path") {
            Ok((proposal, tab_name)) => open_diff_result(call.open_diff(proposal).await, &tab_name),
            Err(sentence) => Err(sentence),
        },
        ("close_diff", Ok(arguments)) => arguments.text("tab_name").map(|name| {
            let was_open = registry.close_tab(call.session, &name);
            let message = if was_open {
                "Closed."
            } else {
                "There is no such review."
            };
            json!({"success": true, "already_closed": !was_open, "tab_name": name, "message": message})
        }),
        ("get_selection", Ok(_)) => Ok(registry.selection(call.session).map_or(Value::Null, |mut selection| {
            selection["current"] = json!(true);
            selection
        })),
        ("get_diagnostics", Ok(arguments)) => {
            diagnostics(call, &arguments).map(|files| files.iter().map(found).collect::<Value>())
        }
        ("update_session_name", Ok(_)) => Ok(json!({"success": true})),
        (name, Ok(_)) => Err(format!("Unknown tool {}.", shortened(name))),
    };
    result.map_or_else(ToolResult::error, |value| ToolResult::text(value.to_string()))
}

/// After an error, the question in the terminal stays.
fn open_diff_result(opened: OpenDiff, tab_name: &str) -> Result<Value, String> {
    let (result, trigger, message) = match opened {
        OpenDiff::Outcome(DiffOutcome::Accepted { .. }) => {
            ("SAVED", "accepted_via_button", "The user accepted the change.")
        }
        OpenDiff::Outcome(DiffOutcome::Rejected) => {
            ("REJECTED", "rejected_via_button", "The user rejected the change.")
        }
        OpenDiff::Closed => ("REJECTED", "closed_via_tool", "The review was closed."),
        OpenDiff::Outcome(DiffOutcome::Opened) => return Err("The change cannot be decided here.".to_owned()),
        OpenDiff::Refused(sentence) => return Err(sentence),
    };
    Ok(json!({"success": true, "result": result, "trigger": trigger, "tab_name": tab_name, "message": message}))
}

fn found(file: &FileDiagnostics) -> Value {
    let mut found = changed(file);
    found["filePath"] = json!(file.path);
    found
}

/// A file of `diagnostics_changed`.
pub(super) fn changed(file: &FileDiagnostics) -> Value {
    json!({"uri": file_url(&file.path), "diagnostics": described(&file.diagnostics, severity_word)})
}

fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Information => "information",
        Severity::Hint => "hint",
    }
}

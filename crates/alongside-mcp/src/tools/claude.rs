//! The tools of Claude Code: `openDiff` returns with the decision.
//!
//! Claude Code asks in its terminal too. If it is answered there, it closes the tab and needs no answer to `openDiff` any more; it gets
//! one all the same, because it never forgets a call.

use alongside_core::diagnostics::{FileDiagnostics, Severity};
use serde_json::{Value, json};

use super::{Arguments, Call, OpenDiff, Proposal, ToolResult, described, diagnostics, string, tool};
use crate::companion::{Companion, DiffOutcome};
use crate::file_url::file_url;
use crate::protocol::shortened;

pub(super) fn list() -> Value {
    json!({"tools": [
        tool(
            "openDiff",
            "Shows the user a proposed new version of a file, which they may edit. Returns with the decision.",
            &json!({
                "old_file_path": string("The absolute path of the file."),
                "new_file_path": string("The absolute path of the file to write."),
                "new_file_contents": string("The full proposed content of the file."),
                "tab_name": string("Identifies the review."),
            }),
            &["old_file_path", "new_file_path", "new_file_contents", "tab_name"],
        ),
        tool(
            "close_tab",
            "Closes an open review without a decision.",
            &json!({"tab_name": string("Identifies the review.")}),
            &["tab_name"],
        ),
        tool(
            "closeAllDiffTabs",
            "Closes all open reviews of this connection without a decision.",
            &json!({}),
            &[],
        ),
        tool(
            "getDiagnostics",
            "Returns errors and warnings from the editor, for one file or for all.",
            &json!({"uri": string("The file's URI. Without it, all files.")}),
            &[],
        ),
    ]})
}

pub(super) async fn call<C: Companion>(call: &Call<'_, C>, arguments: Result<Arguments<'_>, String>) -> ToolResult {
    let registry = &call.endpoint.registry;
    let result = match (call.tool, arguments) {
        (_, Err(sentence)) => Err(sentence),
        ("openDiff", Ok(arguments)) => match Proposal::in_tab(&arguments, "new_file_path") {
            Ok((proposal, tab_name)) => Ok(open_diff_result(call.open_diff(proposal).await, tab_name)),
            Err(sentence) => Err(sentence),
        },
        // Sent twice after each decision.
        ("close_tab", Ok(arguments)) => arguments.text("tab_name").map(|name| {
            registry.close_tab(call.session, &name);
            ToolResult::text("TAB_CLOSED")
        }),
        ("closeAllDiffTabs", Ok(_)) => {
            let closed = registry.close_all_tabs(call.session);
            Ok(ToolResult::text(format!("CLOSED_{closed}_DIFF_TABS")))
        }
        ("getDiagnostics", Ok(arguments)) => diagnostics(call, &arguments)
            .map(|files| ToolResult::text(files.iter().map(found).collect::<Value>().to_string())),
        (name, Ok(_)) => Err(format!("Unknown tool {}.", shortened(name))),
    };
    result.unwrap_or_else(ToolResult::error)
}

fn found(file: &FileDiagnostics) -> Value {
    json!({"uri": file_url(&file.path), "diagnostics": described(&file.diagnostics, severity_word)})
}

fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "Error",
        Severity::Warning => "Warning",
        Severity::Information => "Info",
        Severity::Hint => "Hint",
    }
}

/// Never `TAB_CLOSED`, which would accept the proposal. After an error, the question in the terminal stays.
fn open_diff_result(opened: OpenDiff, tab_name: String) -> ToolResult {
    match opened {
        OpenDiff::Outcome(DiffOutcome::Accepted { content, is_new_file }) => {
            ToolResult::texts(["FILE_SAVED".to_owned(), contents_to_save(&content, is_new_file)])
        }
        OpenDiff::Outcome(DiffOutcome::Rejected) | OpenDiff::Closed => {
            ToolResult::texts(["DIFF_REJECTED".to_owned(), tab_name])
        }
        OpenDiff::Outcome(DiffOutcome::Opened) => ToolResult::error("The change cannot be decided here."),
        OpenDiff::Refused(sentence) => ToolResult::error(sentence),
    }
}

/// Claude Code 2.1.197 and 2.1.325 drop the final newline of a new file that is accepted here, and tell the model that nothing was
/// changed. One more newline is dropped in its place.
///
/// The same happens with `Write` to an existing file, but not with `Edit`, and `openDiff` does not say which of the two it is for. There
/// the companion reports it.
fn contents_to_save(content: &str, is_new_file: bool) -> String {
    let mut contents = content.to_owned();
    if is_new_file && contents.ends_with('\n') {
        contents.push('\n');
    }
    contents
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C7.
    #[test]
    fn new_file_keeps_its_final_newline() {
        assert_eq!(contents_to_save("x\ny\n", true), "x\ny\n\n");
        assert_eq!(contents_to_save("x\r\n", true), "x\r\n\n");
        assert_eq!(contents_to_save("x", true), "x");
        assert_eq!(contents_to_save("", true), "");
        assert_eq!(contents_to_save("x\n", false), "x\n");
    }
}

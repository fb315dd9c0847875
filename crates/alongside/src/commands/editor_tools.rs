//! The tools of `alongside mcp-stdio --tools`: what a model may ask about the editor.
//!
//! Every call connects to the most recently used companion, so the server may start before it, and outlive it.

use std::path::{Path, PathBuf};

use alongside_companion::companion_record;
use alongside_core::context::File;
use alongside_front::client::Client;
use alongside_mcp::tool_server::{ToolResult, Toolbox};
use alongside_protocol::{DiagnosticsQuery, Empty, FileTarget, requests};
use anyhow::{Context as _, Result, anyhow};
use serde_json::{Map, Value, json};

pub(crate) struct EditorTools {
    /// Where the agent runs.
    pub(crate) directory: PathBuf,
}

impl Toolbox for EditorTools {
    fn list(&self) -> Value {
        let path = json!({ "type": "string", "description": "A file, absolute or relative to the working directory." });
        let nothing = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        json!([
            {
                "name": "getDiagnostics",
                "description": "Returns the errors and warnings that the user's editor shows, of one file or of all, as JSON. Lines and characters are 1-based.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "path": path.clone(),
                    },
                    "additionalProperties": false,
                },
                "annotations": { "readOnlyHint": true },
            },
            {
                "name": "getOpenFiles",
                "description": "Returns the files that are open in the user's editor, most recently used first, as JSON.",
                "inputSchema": nothing.clone(),
                "annotations": { "readOnlyHint": true },
            },
            {
                "name": "getSelection",
                "description": "Returns the file that the user is looking at, with the cursor and the selected text, as JSON; an empty object if there is none. Lines and characters are 1-based.",
                "inputSchema": nothing,
                "annotations": { "readOnlyHint": true },
            },
            {
                "name": "openFile",
                "description": "Shows a file of the workspace in the user's editor, without taking the focus.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "path": path,
                        "line": { "type": "integer", "minimum": 1, "description": "The line to show, 1-based." },
                    },
                    "required": ["path"],
                    "additionalProperties": false,
                },
            },
        ])
    }

    async fn call(&mut self, name: &str, arguments: Value) -> Option<Result<ToolResult, String>> {
        let result = match name {
            "getDiagnostics" => self.diagnostics(arguments["path"].as_str()).await,
            "getOpenFiles" => self.open_files().await,
            "getSelection" => self.selection().await,
            "openFile" => self.open_file(&arguments).await,
            _ => return None,
        };
        Some(result.map_err(|error| format!("{error:#}")))
    }
}

impl EditorTools {
    async fn diagnostics(&self, path: Option<&str>) -> Result<ToolResult> {
        let query = DiagnosticsQuery {
            path: path.map(|path| self.absolute(path)),
        };
        let found = self.companion().await?.call::<requests::DiagnosticsList>(query).await?;
        Ok(files_result(json!(found)))
    }

    async fn open_files(&self) -> Result<ToolResult> {
        let files = self.files().await?.into_iter();
        let files: Vec<Value> = files
            .map(|file| json!({ "path": file.path, "active": file.is_active == Some(true) }))
            .collect();
        Ok(files_result(json!(files)))
    }

    async fn selection(&self) -> Result<ToolResult> {
        let files = self.files().await?;
        let active = files.into_iter().find(|file| file.is_active == Some(true));
        let selection = active.map(|file| {
            [
                ("path".to_owned(), json!(file.path)),
                ("cursor".to_owned(), json!(file.cursor)),
                ("selectedText".to_owned(), json!(file.selected_text)),
            ]
        });
        Ok(ToolResult::Object(selection.into_iter().flatten().collect()))
    }

    async fn open_file(&self, arguments: &Value) -> Result<ToolResult> {
        let path = arguments["path"].as_str().context("`path` must be a string")?;
        let path = self.absolute(path).into_os_string().into_string();
        let target = FileTarget {
            path: path.map_err(|_| anyhow!("the path is not valid UTF-8"))?,
            line: arguments["line"].as_u64().and_then(|line| u32::try_from(line).ok()),
        };
        self.companion().await?.call::<requests::FileOpen>(target).await?;
        Ok(ToolResult::Sentence("The editor shows the file.".to_owned()))
    }

    /// What agents see: hidden files are not among them.
    async fn files(&self) -> Result<Vec<File>> {
        let shown = self.companion().await?.call::<requests::ContextShow>(Empty {}).await?;
        Ok(shown.context.workspace_state.open_files)
    }

    async fn companion(&self) -> Result<Client> {
        let companion = companion_record::connect_nearest(&self.directory).await;
        companion.context("The editor cannot be asked now")
    }

    fn absolute(&self, path: &str) -> PathBuf {
        let path = self.directory.join(path);
        // The editor may know it by another name; if it does not exist, there is nothing to find.
        std::path::absolute(Path::new(&path)).unwrap_or(path)
    }
}

fn files_result(files: Value) -> ToolResult {
    ToolResult::Object(Map::from_iter([("files".to_owned(), files)]))
}

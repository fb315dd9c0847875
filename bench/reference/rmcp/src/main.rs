//! The reference on Node again, with the official Rust SDK. It keeps proposals and never shows them. Each line on stdin is a context
//! change, as JSON.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolResult, ContentBlock, CustomNotification, ServerCapabilities, ServerConfig, ServerNotification,
};
use rmcp::service::NotificationContext;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler, schemars, tool, tool_handler, tool_router};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;

const DEBOUNCE: Duration = Duration::from_millis(50);
const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;

#[derive(Clone, Default)]
struct Companion {
    /// Proposed texts by path, and whether the file is new.
    proposals: Arc<Mutex<HashMap<String, (String, bool)>>>,
    /// The sessions.
    peers: Arc<Mutex<Vec<Peer<RoleServer>>>>,
    context: Arc<Mutex<Value>>,
}

#[derive(Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OpenDiff {
    file_path: String,
    new_content: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CloseDiff {
    file_path: String,
    #[serde(default)]
    #[allow(dead_code, reason = "agents send it")]
    suppress_notification: Option<bool>,
}

#[tool_router]
impl Companion {
    #[tool(name = "openDiff", description = "Shows the user a proposed new version of a file.")]
    async fn open_diff(&self, Parameters(call): Parameters<OpenDiff>) -> Result<CallToolResult, ErrorData> {
        let is_new = tokio::fs::metadata(&call.file_path).await.is_err();
        self.proposals.lock().insert(call.file_path, (call.new_content, is_new));
        Ok(CallToolResult::success(Vec::new()))
    }

    #[tool(
        name = "closeDiff",
        description = "Closes an open review of a file and returns its text."
    )]
    async fn close_diff(&self, Parameters(call): Parameters<CloseDiff>) -> Result<CallToolResult, ErrorData> {
        let content = self.proposals.lock().remove(&call.file_path).map(|(text, _)| text);
        let text = json!({ "content": content }).to_string();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]))
    }
}

#[tool_handler]
impl ServerHandler for Companion {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let peer = context.peer;
        self.peers.lock().push(peer.clone());
        let notification = self.notification();
        let _ = peer.send_notification(notification).await;
    }
}

impl Companion {
    fn notification(&self) -> ServerNotification {
        let params = self.context.lock().clone();
        CustomNotification::new("ide/contextUpdate", Some(params)).into()
    }

    async fn read_changes(self) {
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let Ok(file) = serde_json::from_str::<Value>(&line) else {
                break;
            };
            *self.context.lock() = json!({"workspaceState": {"openFiles": [file], "isTrusted": true}});
            tokio::time::sleep(DEBOUNCE).await;
            let mut peers = self.peers.lock().clone();
            peers.retain(|peer| !peer.is_transport_closed());
            for peer in &peers {
                let _ = peer.send_notification(self.notification()).await;
            }
            self.peers.lock().retain(|peer| !peer.is_transport_closed());
        }
        // The benchmark stopped, or was killed: nothing else would stop this process.
        std::process::exit(0);
    }
}

async fn check(State(token): State<Arc<str>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    if headers.contains_key("origin") {
        return StatusCode::FORBIDDEN.into_response();
    }
    let authorization = headers.get("authorization").and_then(|value| value.to_str().ok());
    if authorization.and_then(|value| value.strip_prefix("Bearer ")) == Some(&token) {
        next.run(request).await
    } else {
        StatusCode::UNAUTHORIZED.into_response()
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let token: Arc<str> = uuid::Uuid::new_v4().to_string().into();
    let companion = Companion::default();
    *companion.context.lock() = json!({"workspaceState": {"openFiles": [], "isTrusted": true}});
    // Agents cannot read the events by which the SDK announces when to reconnect.
    let config = StreamableHttpServerConfig::default()
        .with_sse_retry(None)
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        .enforce_origin_validation();
    let mut sessions = LocalSessionManager::default();
    let mut session = SessionConfig::default();
    session.sse_retry = None;
    sessions.session_config = session;
    let of_session = companion.clone();
    let service = StreamableHttpService::new(move || Ok(of_session.clone()), Arc::new(sessions), config);
    let router = Router::new()
        .nest_service("/mcp", service)
        .layer(middleware::from_fn_with_state(token.clone(), check));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    announce(listener.local_addr()?.port(), &token)?;
    tokio::spawn(companion.read_changes());
    axum::serve(
        axum::serve::ListenerExt::tap_io(listener, |socket| drop(socket.set_nodelay(true))),
        router,
    )
    .await?;
    Ok(())
}

/// Writes the discovery file that agents look for.
fn announce(port: u16, token: &str) -> Result<()> {
    let directory = std::env::temp_dir().join("gemini/ide");
    let name = format!("gemini-ide-server-{}-{port}.json", std::process::id());
    let (temporary, path) = (directory.join(format!("{name}.new")), directory.join(&name));
    let workspace = std::env::current_dir()?;
    let document = json!({
        "port": port, "workspacePath": workspace, "authToken": token,
        "ideInfo": {"name": "reference", "displayName": "Reference"},
    });
    fs::create_dir_all(&directory)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(document.to_string().as_bytes())?;
    fs::rename(&temporary, &path).context("cannot write the discovery file")
}

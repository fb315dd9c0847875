//! `openDiff` through the agents' port: our own client and the server, in one thread. The kernel's work is not counted.

use std::path::Path;
use std::sync::Arc;

use alongside_core::diagnostics::FileDiagnostics;
use alongside_core::dialect::ClientInfo;
use alongside_core::{DeliveryId, Secret, SessionEnd, SessionKey};
use alongside_mcp::client::Client;
use alongside_mcp::{Companion, Config, DiffOutcome, Server};
use anyhow::Result;
use serde_json::json;

use super::texts;
use crate::counted;

pub(super) fn open_diff_1_kib() -> Result<()> {
    open_diff(1 << 10)
}

pub(super) fn open_diff_1_mib() -> Result<()> {
    open_diff(1 << 20)
}

/// A companion that opens nothing.
struct Quiet;

impl Companion for Quiet {
    async fn session_started(&self, _: &SessionKey, _: Option<&ClientInfo>) {}
    fn known_client(&self, _: &SessionKey) -> Option<ClientInfo> {
        None
    }
    fn stream_opened(&self, _: &SessionKey) {}
    fn stream_closed(&self, _: &SessionKey) {}
    fn settled(&self, _: &SessionKey, _: &[DeliveryId]) {}
    fn session_ended(&self, _: &SessionKey, _: &SessionEnd) {}
    async fn open_diff(&self, _: &SessionKey, _: Arc<str>, _: Arc<str>) -> Result<DiffOutcome, String> {
        Ok(DiffOutcome::Opened)
    }
    fn diagnostics(&self, _: Option<&Path>) -> Vec<FileDiagnostics> {
        Vec::new()
    }
    async fn close_diff(&self, _: &SessionKey, _: &str) -> Result<Option<Arc<str>>, String> {
        Ok(None)
    }
}

fn open_diff(bytes: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let arguments = json!({"filePath": "/workspace/a.rs", "newContent": texts(bytes).1});
    let params = json!({"name": "openDiff", "arguments": arguments});
    let token = Secret::from_bytes([7; 32]);
    let (server, client) = runtime.block_on(async {
        let server = Server::bind(Config::new(token.clone()), Arc::new(Quiet)).await?;
        let client = Client::new("127.0.0.1", server.port(), token.reveal())?;
        let info = ClientInfo {
            name: "instructions".to_owned(),
            version: "1".to_owned(),
        };
        client.initialize(&info).await?;
        // The first call on a connection.
        client.request("tools/call", params.clone()).await?;
        anyhow::Ok((server, client))
    })?;
    counted(|| runtime.block_on(client.request("tools/call", params)))?;
    runtime.block_on(async {
        client.end().await?;
        server.shutdown().await;
        anyhow::Ok(())
    })
}

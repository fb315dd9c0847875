//! An editor that reports diagnostics to the companion. They are there as long as it is connected.

use std::path::Path;

use alongside_core::Secret;
use alongside_e2e::Companion;
use alongside_front::client::Client;
use alongside_protocol::requests;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

pub(crate) struct Editor {
    runtime: Runtime,
    client: Client,
}

impl Editor {
    pub(crate) fn connect(companion: &Companion<'_>) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("start a runtime");
        let (port, token) = companion.front_end();
        let token = Secret::parse(&token).expect("the companion's record has a token");
        let connected = runtime.block_on(Client::connect(port, &token, "editor", false));
        let (client, _) = connected.expect("connect to the companion");
        Self { runtime, client }
    }

    /// Shows this error in the first line of a file.
    pub(crate) fn show_error(&mut self, path: &Path, message: &str) {
        let (start, end) = (json!({"line": 1, "character": 1}), json!({"line": 1, "character": 4}));
        let found = json!({
            "start": start, "end": end, "severity": "error", "message": message, "source": "rustc", "code": "E0425"
        });
        let file = serde_json::from_value(json!({"path": path, "diagnostics": [found]}));
        let reporting = self
            .client
            .call::<requests::ContextDiagnostics>(file.expect("these are diagnostics"));
        self.runtime.block_on(reporting).expect("report diagnostics");
    }
}

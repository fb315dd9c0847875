//! An agent for scenarios that do not depend on a real agent CLI.

use std::path::Path;

use alongside_e2e::{Companion, Sdk, SdkClient};
use serde_json::json;

/// The client name that Gemini CLI and Qwen Code send.
const CLI_NAME: &str = "streamable-http-client";

/// An MCP SDK client that proposes changes and receives the decisions.
pub(crate) struct SdkAgent(SdkClient);

impl SdkAgent {
    pub(crate) fn connect(companion: &Companion<'_>) -> Self {
        Self::connect_as(companion, CLI_NAME)
    }

    pub(crate) fn connect_as(companion: &Companion<'_>, name: &str) -> Self {
        let client = SdkClient::connect(Sdk::V1_30, companion.port, &companion.token(), name);
        let mut client = client.expect("connect");
        client.wait_for_notification("ide/contextUpdate", |_| true);
        Self(client)
    }

    /// Proposes a text for a file. When this returns, the change is pending.
    pub(crate) fn propose(&mut self, path: &Path, text: &str) {
        self.0.call("openDiff", &json!({"filePath": path, "newContent": text}));
    }

    /// Waits until the change to a file is accepted, and returns the text to write.
    pub(crate) fn accepted_text(&mut self, path: &Path) -> String {
        let wanted = json!(path);
        let accepted = self
            .0
            .wait_for_notification("ide/diffAccepted", |params| params["filePath"] == wanted);
        accepted["content"]
            .as_str()
            .expect("an accepted change has a content")
            .to_owned()
    }

    pub(crate) fn wait_for_rejection(&mut self, path: &Path) {
        let wanted = json!(path);
        self.0
            .wait_for_notification("ide/diffRejected", |params| params["filePath"] == wanted);
    }
}

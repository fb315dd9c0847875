//! An agent for the scenarios in which nothing depends on the command line itself.

use std::path::Path;

use alongside_e2e::{Companion, Sdk, SdkClient};
use serde_json::json;

/// What the command lines call themselves.
const COMMAND_LINE: &str = "streamable-http-client";

/// A client that proposes changes and hears what becomes of them.
pub(crate) struct PretendAgent(SdkClient);

impl PretendAgent {
    /// Connects as a command line does.
    pub(crate) fn connect(companion: &Companion<'_>) -> Self {
        Self::connect_as(companion, COMMAND_LINE)
    }

    /// Connects under a name of its own.
    pub(crate) fn connect_as(companion: &Companion<'_>, name: &str) -> Self {
        let client = SdkClient::connect(Sdk::V1_30, companion.port, &companion.token(), name);
        let mut client = client.expect("connect");
        client.wait_for_notification("ide/contextUpdate", |_| true);
        Self(client)
    }

    /// Proposes a text for a file. When this returns, the change waits for a person.
    pub(crate) fn propose(&mut self, path: &Path, text: &str) {
        self.0.call("openDiff", &json!({"filePath": path, "newContent": text}));
    }

    /// Waits until the change of a file was accepted, and gives the text to write.
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

    /// Waits until the change of a file was rejected.
    pub(crate) fn wait_for_rejection(&mut self, path: &Path) {
        let wanted = json!(path);
        self.0
            .wait_for_notification("ide/diffRejected", |params| params["filePath"] == wanted);
    }
}

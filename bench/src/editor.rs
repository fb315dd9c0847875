//! The editor's side: it reports context changes.

use alongside_front::client::{Client, Incoming};
use alongside_protocol::{FilePath, Focus, Method, Request, requests};
use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::run::Run;
use crate::subject::{Server, Subject};

/// An editor with one open file.
pub struct Editor {
    path: String,
    /// Ours is told over the front-end protocol, the others over stdin.
    client: Option<Client>,
}

impl Editor {
    pub fn connect(run: &Run, server: &Server) -> Result<Self> {
        let path = server.sandbox.write("focused.txt", "a file\nthat has the focus\n");
        let path = path.to_str().context("the path is not UTF-8")?.to_owned();
        let client = if server.subject == Subject::Ours {
            let front = server.front()?;
            let connecting = async {
                let (mut client, _) = Client::connect(front.front_port, &front.front_token, "bench", false).await?;
                let open: FilePath = serde_json::from_value(json!({"path": path}))?;
                client.call::<requests::ContextOpen>(open).await?;
                anyhow::Ok(client)
            };
            Some(run.runtime.block_on(connecting)?)
        } else {
            None
        };
        Ok(Self { path, client })
    }

    /// What a change is: the cursor in another place, and another selection.
    fn change(&self, text: &str) -> Value {
        json!({"path": self.path, "cursor": {"line": 2, "character": 3}, "selectedText": text})
    }

    /// Reports a change, without waiting for anything.
    pub async fn report(&mut self, server: &mut Server, text: &str) -> Result<()> {
        let change = self.change(text);
        let Some(client) = &mut self.client else {
            return server.send_line(&change.to_string());
        };
        let focus: Focus = serde_json::from_value(change)?;
        let request: Request = requests::ContextFocus::request(focus);
        client.post(&request).await?;
        Ok(())
    }

    /// Reads the response to what was reported.
    pub async fn confirm(&mut self) -> Result<()> {
        if let Some(client) = &mut self.client {
            while let Incoming::Notification(_) = client.incoming().await? {}
        }
        Ok(())
    }
}

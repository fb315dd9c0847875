//! How the simulated agents propose a change and receive the decision.

use alongside_core::dialect::ClientInfo;
use alongside_discovery::Announcement;
#[cfg(unix)]
use alongside_mcp::client::UnixClient;
use alongside_mcp::client::{Client, Events, SocketClient};
use alongside_platform::Platform;
#[cfg(unix)]
use anyhow::Context;
use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::DemoAgent;

pub(super) enum Wire {
    /// The decision arrives as a notification.
    Notified { client: Client, events: Box<Events> },
    /// The call on a socket returns with the decision, but not with a text.
    #[cfg(unix)]
    Unix { client: UnixClient, proposal: Value },
    /// The call returns with the decision.
    Waiting {
        socket: Option<Box<SocketClient>>,
        proposal: Option<Value>,
    },
}

impl Wire {
    pub(super) async fn connect(agent: DemoAgent, companion: &Announcement) -> Result<Self> {
        if let Some(reason) = refusal(Platform::current(), agent) {
            bail!("{reason}");
        }
        let (port, token) = (companion.port, &companion.token);
        let me = client_info(agent);
        #[cfg(unix)]
        if agent == DemoAgent::Copilot {
            let path = companion.socket.as_deref().context("the companion has no socket")?;
            let client = UnixClient::new(path, token, format!("demo-{}", std::process::id()));
            client.initialize(&me).await?;
            let proposal = Value::Null;
            return Ok(Self::Unix { client, proposal });
        }
        if agent == DemoAgent::Claude {
            let mut socket = SocketClient::connect(port, Some(token), Some("mcp")).await?;
            socket.initialize(&me).await?;
            let pid = json!({ "pid": std::process::id() });
            socket.notify("ide_connected", &pid).await?;
            return Ok(Self::Waiting {
                socket: Some(Box::new(socket)),
                proposal: None,
            });
        }
        let client = Client::connect("127.0.0.1", port, token.reveal()).await?;
        client.initialize(&me).await?;
        let events = Box::new(client.events(None).await?);
        Ok(Self::Notified { client, events })
    }

    pub(super) async fn propose(&mut self, path: &str, text: &str) -> Result<()> {
        match self {
            Self::Notified { client, .. } => {
                let arguments = json!({ "filePath": path, "newContent": text });
                let answer = client.request("tools/call", call("openDiff", &arguments)).await?;
                if answer["isError"] == json!(true) {
                    let reason = answer["content"][0]["text"].as_str().unwrap_or_default();
                    bail!("the companion refused the proposal: {reason}");
                }
            }
            #[cfg(unix)]
            Self::Unix { proposal, .. } => {
                let arguments = json!({
                    "original_file_path": path,
                    "new_file_contents": text,
                    "tab_name": "Demo",
                });
                *proposal = call("open_diff", &arguments);
            }
            Self::Waiting { proposal, .. } => {
                let arguments = json!({
                    "old_file_path": path,
                    "new_file_path": path,
                    "new_file_contents": text,
                    "tab_name": "Demo",
                });
                *proposal = Some(call("openDiff", &arguments));
            }
        }
        Ok(())
    }

    /// The accepted text, or `None` for a rejection.
    pub(super) async fn decided(&mut self, path: &str) -> Result<Option<String>> {
        match self {
            Self::Notified { events, .. } => loop {
                let Some(event) = events.next().await? else {
                    bail!("the companion stopped before you accepted or rejected the change")
                };
                if event["params"]["filePath"] != json!(path) {
                    continue;
                }
                match event["method"].as_str() {
                    Some("ide/diffAccepted") => {
                        return Ok(Some(event["params"]["content"].as_str().unwrap_or_default().to_owned()));
                    }
                    Some("ide/diffRejected") => return Ok(None),
                    _ => {}
                }
            },
            #[cfg(unix)]
            Self::Unix { client, proposal } => {
                let proposal = proposal.take();
                let answer = client.request("tools/call", proposal.clone()).await?;
                let text = answer["content"][0]["text"].as_str().unwrap_or_default();
                let decision: Value = serde_json::from_str(text).unwrap_or_default();
                match decision["result"].as_str() {
                    Some("SAVED") => Ok(proposal["arguments"]["new_file_contents"].as_str().map(str::to_owned)),
                    Some(_) => Ok(None),
                    None => bail!("the companion refused the proposal: {text}"),
                }
            }
            Self::Waiting { socket, proposal } => {
                let (Some(socket), Some(proposal)) = (socket, proposal.take()) else {
                    bail!("nothing was proposed");
                };
                let answer = socket.request("tools/call", proposal).await?;
                let texts = &answer["content"];
                match texts[0]["text"].as_str() {
                    Some("FILE_SAVED") => Ok(texts[1]["text"].as_str().map(str::to_owned)),
                    Some("DIFF_REJECTED") => Ok(None),
                    other => bail!("the companion refused the proposal: {}", other.unwrap_or_default()),
                }
            }
        }
    }

    pub(super) async fn withdraw(&mut self, path: &str) {
        if let Self::Notified { client, .. } = self {
            let call = call("closeDiff", &json!({ "filePath": path }));
            let _ = client.request("tools/call", call).await;
        }
        // A connection that ends takes its proposal along.
    }

    pub(super) async fn end(&mut self) {
        match self {
            Self::Notified { client, .. } => {
                let _ = client.end().await;
            }
            #[cfg(unix)]
            Self::Unix { .. } => {}
            Self::Waiting { socket, .. } => {
                if let Some(socket) = socket.take() {
                    socket.end().await;
                }
            }
        }
    }
}

/// Why an agent cannot be simulated. Played by another one's rules, it would prove nothing.
fn refusal(platform: Platform, agent: DemoAgent) -> Option<&'static str> {
    (platform == Platform::Windows && agent == DemoAgent::Copilot)
        .then_some("Copilot CLI's named pipe is not simulated on Windows yet; leave out `--agent copilot`")
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({ "name": tool, "arguments": arguments })
}

/// Named as the real agent names itself, so that it is shown and answered in the same way.
pub(super) fn client_info(agent: DemoAgent) -> ClientInfo {
    let (name, version) = match agent {
        DemoAgent::Simple => ("demo-agent", env!("CARGO_PKG_VERSION")),
        DemoAgent::Gemini => ("streamable-http-client", env!("CARGO_PKG_VERSION")),
        // Always this version.
        DemoAgent::Qwen => ("streamable-http-client", "1.0.0"),
        DemoAgent::Claude => ("claude-code", "demo"),
        DemoAgent::Copilot => ("copilot-cli", "demo"),
    };
    ClientInfo {
        name: name.to_owned(),
        version: version.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_on_a_named_pipe_is_not_simulated() {
        use DemoAgent::{Claude, Copilot, Gemini, Qwen, Simple};

        for platform in [Platform::Unix, Platform::MacOs, Platform::Windows] {
            for agent in [Simple, Gemini, Qwen, Claude, Copilot] {
                let is_pipe = platform == Platform::Windows && agent == Copilot;
                assert_eq!(refusal(platform, agent).is_some(), is_pipe, "{platform:?} {agent:?}");
            }
        }
    }
}

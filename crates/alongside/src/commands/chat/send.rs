//! Sends the prompt, once, although a response may be lost.
//!
//! Every attempt has the same id, and the companion sends a prompt with a known id only once. So repeating is safe.

use std::time::Duration;

use alongside_front::client::{Client, ClientError};
use alongside_protocol::chat::{AgentCommand, AgentReply};
use alongside_protocol::{ChatPhase, Empty, ErrorKind, Notification, requests};
use anyhow::{Context, Error, Result, bail};

use super::decisions::say;
use super::turn;
use crate::signals::ShutdownSignals;

const MAX_ATTEMPTS: usize = 3;

/// The companion may be restarting. Nothing reports when it has.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// Sends a prompt and returns its id in the conversation; `None` if a signal arrived while the agent was away. `reconnect` connects to
/// the companion and the agent again.
pub(super) async fn send(
    client: &mut Client,
    prompt: &str,
    reconnect: impl AsyncFn() -> Result<Client>,
    signals: &mut ShutdownSignals,
) -> Result<Option<String>> {
    let command = AgentCommand::Prompt {
        blocks: vec![prompt.into()],
        id: Some(random_id()?),
    };
    // Whether a response was lost.
    let mut lost = false;
    let mut failure = None;
    for _ in 0..MAX_ATTEMPTS {
        let error = match turn::command(client, command.clone()).await {
            Ok(AgentReply::Prompt { prompt_id }) => return Ok(Some(prompt_id)),
            Ok(_) => bail!("the agent did not accept the prompt"),
            Err(error) => error,
        };
        match &error {
            ClientError::Rejected(rejected) if rejected.kind == ErrorKind::AgentFailed => {
                let is_back = tokio::select! {
                    is_back = wait_for_agent(client) => is_back.unwrap_or_default(),
                    () = signals.received() => return Ok(None),
                };
                failure = Some(Error::from(error));
                if !is_back {
                    break;
                }
            }
            ClientError::Timeout(_) => {
                lost = true;
                failure = Some(error.into());
            }
            ClientError::Closed => {
                lost = true;
                tokio::time::sleep(RECONNECT_DELAY).await;
                // If this fails, so does the next attempt.
                if let Ok(connected) = reconnect().await {
                    *client = connected;
                }
                failure = Some(error.into());
            }
            _ => {
                failure = Some(error.into());
                break;
            }
        }
    }
    let failed = Err(failure.unwrap_or_else(|| Error::msg("the agent did not accept the prompt")));
    if lost {
        return failed.context(
            "the agent may have received the prompt; run `alongside chat --open` to look before you send it again",
        );
    }
    failed
}

/// Waits while the companion reconnects to the agent. `false` if it has given up.
async fn wait_for_agent(client: &mut Client) -> Result<bool, ClientError> {
    let mut waiting = false;
    loop {
        let state = client.call::<requests::ChatState>(Empty {}).await?;
        match state.changed.phase {
            ChatPhase::Connected => return Ok(true),
            ChatPhase::Interrupted | ChatPhase::Connecting => {}
            ChatPhase::Idle | ChatPhase::Ended => return Ok(false),
        }
        if !std::mem::replace(&mut waiting, true) {
            say("waiting for the agent to be reachable again");
        }
        while !matches!(
            client.notification().await?,
            Notification::ChatChanged(_) | Notification::Resync(_)
        ) {}
    }
}

fn random_id() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).context("cannot create an id for the prompt")?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

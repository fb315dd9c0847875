//! `alongside demo`: the whole loop with a simulated agent, for users without either CLI.

use std::process::ExitCode;

use alongside_core::dialect::ClientInfo;
use alongside_discovery::Announcement;
use alongside_mcp::client::Client;
use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::command_line::{Common, Serve};
use crate::commands::serve;
use crate::signals::ShutdownSignals;
use alongside_companion::RunningCompanion;
use alongside_companion::companion_record;
use alongside_companion::places::Places;

const BEFORE: &str = "# Shopping\n\n- bread\n- milk\n- apples\n";
const AFTER: &str = "# Shopping\n\n- rye bread\n- milk\n- apples\n- coffee, which you always forget\n";

pub(crate) async fn run(common: &Common) -> Result<ExitCode> {
    let signals = ShutdownSignals::register().context("cannot install signal handlers")?;
    let serving =
        companion_record::nearest(&Places::of_user()?, &common.directory()).map(|record| record.announcement());
    if let Some(announcement) = serving {
        return play(common, &announcement, signals).await;
    }
    let running = RunningCompanion::start(serve::options(common, Serve::default())).await?;
    common
        .output()
        .news("No companion is running for this directory, so the demo started its own.\n");
    let ended = play(common, running.announcement(), signals).await;
    running.stop().await;
    ended
}

/// Proposes a change to a scratch file, waits for the decision and applies it as an agent would.
async fn play(common: &Common, companion: &Announcement, mut signals: ShutdownSignals) -> Result<ExitCode> {
    let output = common.output();
    let scratch = tempfile::Builder::new()
        .prefix("alongside-demo-")
        .tempdir()
        .context("cannot create a scratch file")?;
    let file = scratch.path().join("shopping.md");
    std::fs::write(&file, BEFORE).with_context(|| format!("cannot write {}", file.display()))?;
    let path = file
        .to_str()
        .context("the temporary directory's path is not valid UTF-8")?;

    let client = Client::connect("127.0.0.1", companion.port, companion.token.reveal()).await?;
    let me = ClientInfo {
        name: "demo-agent".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    client.initialize(&me).await?;
    let mut events = client.events(None).await?;
    let call = json!({ "name": "openDiff", "arguments": { "filePath": path, "newContent": AFTER } });
    let answer = client.request("tools/call", call).await?;
    if answer["isError"] == json!(true) {
        bail!(
            "the companion refused the proposal: {}",
            answer["content"][0]["text"].as_str().unwrap_or_default()
        );
    }
    output.news(&format!(
        "A simulated agent proposed a change to {path}\nand is waiting for your decision. In another terminal, in this directory, run:\n\n  \
         alongside diff list\n  alongside diff show {path}\n  alongside diff accept {path}\n  alongside diff reject {path}\n",
    ));
    let decision = tokio::select! {
        decision = decided(&mut events, path) => decision?,
        () = signals.received() => {
            output.news("Demo stopped; the change was withdrawn.");
            let close = json!({ "name": "closeDiff", "arguments": { "filePath": path } });
            let _ = client.request("tools/call", close).await;
            let _ = client.end().await;
            return Ok(ExitCode::FAILURE);
        }
    };
    if let Some(content) = &decision {
        std::fs::write(&file, content).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let _ = client.end().await;
    let outcome = if decision.is_some() { "accepted" } else { "rejected" };
    let written = std::fs::read_to_string(&file)?;
    let value = json!({ "outcome": outcome, "content": written });
    output.answer(&value, || match &decision {
        Some(_) => format!("You accepted the change, and the agent wrote the file:\n\n{written}\nThat's the whole loop. Now try it with `gemini` or `qwen`.\n"),
        None => "You rejected the change, and the agent left the file alone. Now try it with `gemini` or `qwen`.\n".to_owned(),
    });
    Ok(ExitCode::SUCCESS)
}

/// The accepted text, or `None` for a rejection.
async fn decided(events: &mut alongside_mcp::client::Events, path: &str) -> Result<Option<String>> {
    loop {
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
    }
}

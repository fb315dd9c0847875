//! `alongside demo`: the whole loop with a simulated agent, for users without either CLI.

use std::process::ExitCode;

use alongside_discovery::Announcement;
use anyhow::{Context, Result};
use serde_json::json;

use crate::command_line::{Common, Serve};
use crate::commands::serve;
use crate::signals::ShutdownSignals;
use alongside_companion::RunningCompanion;
use alongside_companion::companion_record;
use alongside_companion::demo::{Demo, DemoEnd};
use alongside_companion::places::Places;

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

/// Proposes a change to a sample file, and waits for the decision.
async fn play(common: &Common, companion: &Announcement, mut signals: ShutdownSignals) -> Result<ExitCode> {
    let output = common.output();
    let mut demo = Demo::start(companion.port, &companion.token).await?;
    let path = demo.path();
    output.news(&format!(
        "A simulated agent proposed a change to {path}\nand is waiting for your decision. In another terminal, in this directory, run:\n\n  \
         alongside diff list\n  alongside diff show {path}\n  alongside diff accept {path}\n  alongside diff reject {path}\n",
    ));
    let end = tokio::select! {
        end = demo.finish() => Some(end?),
        () = signals.received() => None,
    };
    let Some(DemoEnd { is_accepted, content }) = end else {
        output.news("Demo stopped; the change was withdrawn.");
        demo.withdraw().await;
        return Ok(ExitCode::FAILURE);
    };
    let outcome = if is_accepted { "accepted" } else { "rejected" };
    let value = json!({ "outcome": outcome, "content": content });
    output.answer(&value, || {
        if is_accepted {
            format!("You accepted the change, and the agent wrote the file:\n\n{content}\nThat's the whole loop. Now try it with `gemini` or `qwen`.\n")
        } else {
            "You rejected the change, and the agent left the file alone. Now try it with `gemini` or `qwen`.\n".to_owned()
        }
    });
    Ok(ExitCode::SUCCESS)
}

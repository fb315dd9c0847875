//! `alongside demo`: the whole loop with a simulated agent, for users without one.

use std::process::ExitCode;

use alongside_core::HookAgent;
use alongside_discovery::lookup::Unreviewed;
use alongside_discovery::{Announcement, Environment};
use anyhow::{Context, Result};
use serde_json::json;

use crate::command_line::{AgentWord, Common, Demo as DemoCommand, Serve};
use crate::commands::serve;
use crate::printable::printable;
use crate::signals::ShutdownSignals;
use alongside_companion::RunningCompanion;
use alongside_companion::companion_record::{self, CompanionRecord};
use alongside_companion::demo::{self, ContextAgent, Demo, DemoAgent, DemoEnd};
use alongside_companion::places::Places;

pub(crate) async fn run(common: &Common, demo: DemoCommand) -> Result<ExitCode> {
    let signals = ShutdownSignals::register().context("cannot install signal handlers")?;
    if let Some(companion) = companion_record::nearest(&Places::of_user()?, &common.directory()) {
        return play(common, demo.agent, &companion, signals).await;
    }
    let running = RunningCompanion::start(serve::options(common, Serve::default())).await?;
    common
        .output()
        .news("No companion is running for this directory, so the demo started its own.\n");
    let ended = play(common, demo.agent, running.record(), signals).await;
    running.stop().await;
    ended
}

async fn play(
    common: &Common,
    agent: Option<AgentWord>,
    companion: &CompanionRecord,
    signals: ShutdownSignals,
) -> Result<ExitCode> {
    let agent = match agent {
        None => DemoAgent::Simple,
        Some(AgentWord::Gemini) => DemoAgent::Gemini,
        Some(AgentWord::Qwen) => DemoAgent::Qwen,
        Some(AgentWord::Claude) => DemoAgent::Claude,
        Some(AgentWord::Copilot) => DemoAgent::Copilot,
        Some(AgentWord::Opencode) => return show_context(common, ContextAgent::Opencode, companion).await,
        Some(AgentWord::Codex) => return show_context(common, ContextAgent::Codex, companion).await,
    };
    review(common, agent, &companion.announcement(), signals).await
}

/// Shows the context as an agent receives it that shows no changes to editors.
async fn show_context(common: &Common, agent: ContextAgent, companion: &CompanionRecord) -> Result<ExitCode> {
    let mut environment = Environment::current();
    environment.working_directory = common.directory();
    let context = demo::context_for(agent, companion, &environment).await?;
    let agent = match agent {
        ContextAgent::Opencode => HookAgent::Opencode,
        ContextAgent::Codex => HookAgent::Codex,
    };
    let name = agent.display_name();
    let hint = Unreviewed::NoHook.advice(agent, environment.platform).hint;
    let value = json!({ "context": context });
    common.output().answer(&value, || {
        let shown = printable(&format!("{context:#}"));
        format!("{name} receives this context:\n\n{shown}\n\nIt shows no changes to editors. {hint}\n")
    });
    Ok(ExitCode::SUCCESS)
}

/// Proposes a change to a sample file, and waits for the decision.
async fn review(
    common: &Common,
    agent: DemoAgent,
    companion: &Announcement,
    mut signals: ShutdownSignals,
) -> Result<ExitCode> {
    let output = common.output();
    let mut demo = Demo::start(agent, companion).await?;
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
            format!("You accepted the change, and the agent wrote the file:\n\n{content}\nThat's the whole loop. Now try it with an agent, such as `claude` or `gemini`.\n")
        } else {
            "You rejected the change, and the agent left the file alone. Now try it with an agent, such as `claude` or `gemini`.\n".to_owned()
        }
    });
    Ok(ExitCode::SUCCESS)
}

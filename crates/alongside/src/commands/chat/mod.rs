//! `alongside chat`: a link to the chat on the page; with `-p`, one question and its answer, in the terminal or for a script.

mod ask;
mod decisions;
mod send;
mod terminal;
mod turn;

use std::io::Read;
use std::process::ExitCode;

use alongside_front::client::Client;
use alongside_protocol::{ChatConnect, ChatPhase, Empty, Hello, Notification, PageTarget, PageView, requests};
use anyhow::{Context, Result, bail};

use crate::command_line::{Chat, Common, Serve};
use crate::commands::{page, serve};
use crate::signals::ShutdownSignals;
use alongside_companion::RunningCompanion;
use alongside_companion::companion_record;
use alongside_companion::places::Places;
use decisions::Decisions;
use terminal::Terminal;
use turn::Turn;

pub(crate) async fn run(common: &Common, chat: Chat) -> Result<ExitCode> {
    let Some(prompt) = chat.prompt.clone() else {
        let target = PageTarget { view: PageView::Chat };
        return page::link(common, target, chat.open).await;
    };
    let terminal = Terminal::open(prompt == "-");
    let prompt = if prompt == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("cannot read the prompt from stdin")?;
        text
    } else {
        prompt
    };
    let mut signals = ShutdownSignals::register().context("cannot install signal handlers")?;
    let places = Places::of_user()?;
    if let Some(record) = companion_record::nearest(&places, &common.directory()) {
        let client = record.connect_as(hello()).await?;
        let decisions = Decisions::new(chat.yes, false, terminal);
        return ask(common, &chat, client, prompt, decisions, &mut signals).await;
    }
    let own = RunningCompanion::start(serve::options(common, Serve::default())).await?;
    let client = own.record().connect_as(hello()).await?;
    let decisions = Decisions::new(chat.yes, true, terminal);
    let answered = ask(common, &chat, client, prompt, decisions, &mut signals).await;
    own.stop().await;
    answered
}

fn hello() -> Hello {
    Hello {
        watch: true,
        chat: true,
        ..Hello::new("alongside chat")
    }
}

/// Sends a prompt and prints the answer.
async fn ask(
    common: &Common,
    chat: &Chat,
    mut client: Client,
    prompt: String,
    decisions: Decisions,
    signals: &mut ShutdownSignals,
) -> Result<ExitCode> {
    let agent = tokio::select! {
        connected = connect(&mut client, chat.agent.as_deref()) => connected?,
        () = signals.received() => return Ok(ExitCode::from(turn::CANCELLED)),
    };
    let reconnect = async || {
        let record = companion_record::nearest(&Places::of_user()?, &common.directory());
        let mut client = record.context("the companion has stopped")?.connect_as(hello()).await?;
        connect(&mut client, Some(&agent)).await?;
        Ok(client)
    };
    let Some(prompt_id) = send::send(&mut client, &prompt, reconnect, signals).await? else {
        return Ok(ExitCode::from(turn::CANCELLED));
    };
    let turn = Turn::new(common.output(), agent, prompt_id, decisions);
    let followed = turn.follow(client, signals).await;
    followed
        .context("the agent received the prompt, but its answer was lost; run `alongside chat --open` to look for it")
}

/// Connects to the requested agent, or to the first usable one, unless it is connected already. Returns its id.
async fn connect(client: &mut Client, wanted: Option<&str>) -> Result<String> {
    let mut state = client.call::<requests::ChatState>(Empty {}).await?;
    // Another front end is connecting, or the companion is resuming after a crash.
    while state.changed.phase == ChatPhase::Connecting {
        while !matches!(
            client.notification().await?,
            Notification::ChatChanged(_) | Notification::Resync(_)
        ) {}
        state = client.call::<requests::ChatState>(Empty {}).await?;
    }
    let current = state
        .changed
        .agent
        .clone()
        .filter(|_| matches!(state.changed.phase, ChatPhase::Connected | ChatPhase::Interrupted));
    if let Some(current) = current
        && wanted.is_none_or(|wanted| wanted == current)
    {
        return Ok(current);
    }
    let usable = state.agents.iter().find(|agent| agent.problem.is_none());
    let Some(agent) = wanted
        .map(str::to_owned)
        .or_else(|| usable.map(|agent| agent.id.clone()))
    else {
        let problems = state.agents.iter().filter_map(|agent| agent.problem.clone());
        bail!("no agent is available. {}", problems.collect::<Vec<_>>().join(" "));
    };
    client
        .call::<requests::ChatConnect>(ChatConnect { agent: agent.clone() })
        .await?;
    Ok(agent)
}

//! `alongside chat`: a link to the chat on the page; with `-p`, one question and its answer, in the terminal or for a script.

mod ask;
mod decisions;
mod paragraphs;
mod send;
mod terminal;
mod turn;

use std::io::Read;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use alongside_front::client::{Client, ClientError};
use alongside_protocol::{
    ChatConnect, ChatPhase, Empty, ErrorKind, Hello, Notification, PageTarget, PageView, requests,
};
use anyhow::{Context, Result, bail};

use crate::command_line::{Chat, Common, Serve};
use crate::commands::{page, review, serve};
use crate::printable::printable_line;
use crate::signals::ShutdownSignals;
use alongside_companion::companion_record::{self, CompanionRecord};
use alongside_companion::places::Places;
use alongside_companion::{Options, RunningCompanion};
use decisions::{Decisions, say};
use terminal::Terminal;
use turn::Turn;

/// How long an agent may take to start before the user is told to wait.
const QUIET_START: Duration = Duration::from_secs(4);

pub(crate) async fn run(common: &Common, chat: Chat) -> Result<ExitCode> {
    let Some(prompt) = chat.prompt.clone() else {
        let wants_page = chat.page || chat.open || common.json;
        if !wants_page && review::is_interactive() {
            return review::show(common, &[], true).await;
        }
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
    if let Some(record) = companion_record::nearest_shared(&places, &common.directory()) {
        let mut client = record.connect_as(hello()).await?;
        let connected = tokio::select! {
            connected = connect(&mut client, chat.agent.as_deref()) => connected?,
            () = signals.received() => return Ok(ExitCode::from(turn::CANCELLED)),
        };
        match connected {
            Connected::Agent(agent) => {
                let find = || companion_record::nearest_shared(&places, &common.directory());
                let decisions = Decisions::new(chat.yes, false, terminal);
                return ask(common, find, client, agent, prompt, decisions, &mut signals).await;
            }
            Connected::Busy => {
                say("the chat is in use with another agent; this question gets a conversation of its own");
            }
        }
    }
    let options = Options {
        is_private: true,
        ..serve::options(common, Serve::default())
    };
    let own = RunningCompanion::start(options).await?;
    let answered = ask_own(common, &chat, &own, prompt, terminal, &mut signals).await;
    own.stop().await;
    answered
}

/// Asks through a companion that nothing else uses.
async fn ask_own(
    common: &Common,
    chat: &Chat,
    own: &RunningCompanion,
    prompt: String,
    terminal: Option<Terminal>,
    signals: &mut ShutdownSignals,
) -> Result<ExitCode> {
    let mut client = own.record().connect_as(hello()).await?;
    let connected = tokio::select! {
        connected = connect(&mut client, chat.agent.as_deref()) => connected?,
        () = signals.received() => return Ok(ExitCode::from(turn::CANCELLED)),
    };
    let Connected::Agent(agent) = connected else {
        bail!("the chat is in use with another agent");
    };
    let find = || Some(own.record().clone());
    let decisions = Decisions::new(chat.yes, true, terminal);
    ask(common, find, client, agent, prompt, decisions, signals).await
}

fn hello() -> Hello {
    Hello {
        watch: true,
        chat: true,
        ..Hello::new("alongside chat")
    }
}

/// Sends a prompt to the connected agent and prints the answer. `find` finds the companion again.
async fn ask(
    common: &Common,
    find: impl Fn() -> Option<CompanionRecord>,
    mut client: Client,
    agent: String,
    prompt: String,
    decisions: Decisions,
    signals: &mut ShutdownSignals,
) -> Result<ExitCode> {
    let reconnect = async || {
        let record = find().context("the companion has stopped")?;
        let mut client = record.connect_as(hello()).await?;
        match connect(&mut client, Some(&agent)).await? {
            Connected::Agent(_) => Ok(client),
            Connected::Busy => bail!("the chat is in use with another agent"),
        }
    };
    let Some(prompt_id) = send::send(&mut client, &prompt, reconnect, signals).await? else {
        return Ok(ExitCode::from(turn::CANCELLED));
    };
    let turn = Turn::new(common.output(), agent, prompt_id, decisions);
    let followed = turn.follow(client, signals).await;
    followed
        .context("the agent received the prompt, but its answer was lost; run `alongside chat --open` to look for it")
}

enum Connected {
    /// To the agent with this id.
    Agent(String),
    /// Another agent is answering, or about to, and must not be replaced.
    Busy,
}

/// Connects to the requested agent, or to the first usable one, unless it is connected already.
async fn connect(client: &mut Client, wanted: Option<&str>) -> Result<Connected> {
    loop {
        let state = client.call::<requests::ChatState>(Empty {}).await?;
        let is_wanted = |agent: &String| wanted.is_none_or(|wanted| wanted == agent);
        let is_current = state.changed.agent.as_ref().is_some_and(is_wanted);
        match (state.changed.phase, state.changed.agent) {
            // Another front end is connecting, or the companion is resuming after a crash.
            (ChatPhase::Connecting, _) if is_current => {
                while !matches!(
                    client.notification().await?,
                    Notification::ChatChanged(_) | Notification::Resync(_)
                ) {}
                continue;
            }
            (ChatPhase::Connecting, _) => return Ok(Connected::Busy),
            (ChatPhase::Connected | ChatPhase::Interrupted, Some(current)) if is_current => {
                return Ok(Connected::Agent(current));
            }
            _ => {}
        }
        let usable = state.agents.iter().find(|agent| agent.problem.is_none());
        let Some(agent) = wanted
            .map(str::to_owned)
            .or_else(|| usable.map(|agent| agent.id.clone()))
        else {
            let problems = state.agents.iter().filter_map(|agent| agent.problem.clone());
            bail!("no agent is available. {}", problems.collect::<Vec<_>>().join(" "));
        };
        let known = state.agents.iter().find(|known| known.id == agent);
        let name = known.map_or(agent.as_str(), |known| known.name.as_str());
        match start(client, &agent, name).await {
            Ok(()) => return Ok(Connected::Agent(agent)),
            // Look again: it may be the agent that is wanted here too.
            Err(ClientError::Rejected(error)) if error.kind == ErrorKind::Busy => {
                let state = client.call::<requests::ChatState>(Empty {}).await?;
                if state.changed.agent.as_ref() != Some(&agent) {
                    return Ok(Connected::Busy);
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Connects to an agent, unless the chat is in use. Says so if that takes a while.
async fn start(client: &mut Client, agent: &str, name: &str) -> Result<(), ClientError> {
    let connect = ChatConnect {
        agent: agent.to_owned(),
        if_idle: true,
    };
    let mut connecting = pin!(client.call::<requests::ChatConnect>(connect));
    if let Ok(connected) = tokio::time::timeout(QUIET_START, connecting.as_mut()).await {
        return connected.map(drop);
    }
    say(&format!(
        "waiting for {} to start; press Ctrl-C to cancel",
        printable_line(name)
    ));
    connecting.await.map(drop)
}

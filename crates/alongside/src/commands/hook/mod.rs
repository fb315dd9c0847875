//! `alongside hook`: the program that an agent's hook starts before the agent changes a file.
//!
//! The call is read from stdin, becomes reviews of the companion, and the decision is printed in the agent's form. What is pure
//! is in the modules: [`call`] reads, [`plan`] turns a call into texts and back, [`mod@answer`] writes. Nothing but the answer goes to
//! stdout: one stray line would make an agent ignore it, and write.
//!
//! Whatever goes wrong here, the change is not written without a review, unless the settings say so: exit code 2 with a sentence on stderr
//! makes every agent deny the call.

mod answer;
mod call;
mod context;
mod edit;
mod patch;
mod plan;
mod process;
#[cfg(test)]
mod tests;
mod tool;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use alongside_companion::companion_record;
use alongside_companion::places::Places;
use alongside_companion::real_path;
use alongside_companion::settings::{Settings, WithoutCompanion};
use alongside_core::{HookAgent, SessionKey};
use alongside_front::client::{Client, ClientError};
use alongside_protocol::{Empty, HookFile, HookFollower, HookReview, HookSession, requests};
use anyhow::{Context, Result, anyhow};
use tokio::io::AsyncReadExt;

use self::answer::{Answer, encode_context};
use self::call::{Call, Event};
use self::plan::{Files, Plan};
use crate::output::{to_stderr, to_stdout};
use crate::signals::ShutdownSignals;

/// Denies in every agent, with the text on stderr as the reason.
const DENIED: u8 = 2;
/// A prompt must not wait for its context.
const CONTEXT_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) async fn run(agent: HookAgent) -> ExitCode {
    match answer(agent).await {
        Ok(answer) if answer.is_empty() || to_stdout(&answer) => ExitCode::SUCCESS,
        Ok(_) => deny("stdout is closed"),
        Err(error) => deny(&format!("{error:#}")),
    }
}

fn deny(reason: &str) -> ExitCode {
    to_stderr(&format!("alongside: {reason}; nothing was written\n"));
    ExitCode::from(DENIED)
}

/// What to print.
async fn answer(agent: HookAgent) -> Result<String> {
    let mut signals = ShutdownSignals::register().context("cannot install signal handlers")?;
    let answered = async {
        let mut stdin = Vec::new();
        tokio::io::stdin()
            .read_to_end(&mut stdin)
            .await
            .context("cannot read stdin")?;
        let call = Call::parse(agent, &stdin).map_err(|error| anyhow!("cannot read the hook's input: {error}"))?;
        match call.event {
            Event::Other => Ok(String::new()),
            Event::Prompt => {
                // Without a companion there is no context.
                let context = tokio::time::timeout(CONTEXT_TIMEOUT, prompt(&call)).await;
                let context = context.ok().and_then(Result::ok).flatten();
                Ok(context.map(|text| encode_context(agent, &text)).unwrap_or_default())
            }
            Event::Tool | Event::Permission => Ok(review(&call).await?.encode(agent, call.event)),
        }
    };
    // The reviews close with the connection to the companion.
    tokio::select! {
        answer = answered => answer,
        () = signals.received() => Err(anyhow!("the review was cancelled")),
        () = process::agent_ended() => Err(anyhow!("the agent exited during the review")),
    }
}

async fn review(call: &Call) -> Result<Answer> {
    if call.is_mode("plan") {
        // Nothing is written in this mode.
        return Ok(Answer::Nothing);
    }
    let plan = match Plan::of(call, &Disk) {
        Ok(Plan::Nothing) => return Ok(Answer::Nothing),
        Ok(Plan::Opaque) => {
            let reason = "alongside cannot show a change to a notebook's cell; decide here.";
            return Ok(Answer::Ask(reason.to_owned()));
        }
        Ok(plan) => plan,
        Err(reason) => return Ok(Answer::Deny(format!("This change cannot be reviewed: {reason}."))),
    };
    let mut companion = match connect(call, &plan).await {
        Ok(companion) => companion,
        Err(error) => return Ok(without_companion(call.agent, &error)),
    };
    if call.agent == HookAgent::Claude && call.is_mode("default") && is_connected(&mut companion, call.agent).await? {
        // Claude Code proposes the change over its connection.
        return Ok(Answer::Nothing);
    }
    let files = plan.changes().into_iter().map(|change| HookFile {
        path: change.path.clone(),
        content: change.proposed.clone(),
    });
    let request = HookReview {
        agent: call.agent,
        session: call.session.clone(),
        files: files.collect(),
        followed_by: followed_by(call),
    };
    let reviewed = match companion.call::<requests::HookReview>(request).await {
        Ok(reviewed) => reviewed,
        Err(ClientError::Closed) => return Ok(Answer::Deny(CRASHED.to_owned())),
        Err(error) => return Err(error.into()),
    };
    let answer = plan.answer(call, &reviewed.files, &Disk);
    if let Answer::Write { path, text, .. } = &answer {
        write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(answer)
}

const CRASHED: &str =
    "The companion stopped before the user decided, so nothing was written. Ask the user to start `alongside` again.";

/// What the same agent sends for the same change after its hook.
fn followed_by(call: &Call) -> Vec<HookFollower> {
    match (call.agent, call.event) {
        (HookAgent::Gemini, _) => vec![HookFollower::Diff],
        (HookAgent::Qwen, Event::Permission) => vec![HookFollower::Hook, HookFollower::Diff],
        _ => Vec::new(),
    }
}

/// The companion of the agent's directory, else of the first file.
async fn connect(call: &Call, plan: &Plan) -> Result<Client> {
    let error = match companion_record::connect_nearest(&call.cwd).await {
        Ok(client) => return Ok(client),
        Err(error) => error,
    };
    let directory = plan
        .changes()
        .first()
        .and_then(|change| Path::new(&*change.path).parent().map(Path::to_owned));
    match directory {
        Some(directory) => companion_record::connect_nearest(&directory).await.map_err(|_| error),
        None => Err(error),
    }
}

fn without_companion(agent: HookAgent, error: &anyhow::Error) -> Answer {
    let settings = Places::of_user().and_then(|places| Ok(Settings::load(&places.settings(), &[])?));
    let chosen = settings.ok().and_then(|settings| settings.without_companion);
    // Copilot CLI asks in its terminal.
    let default = match agent {
        HookAgent::Copilot => WithoutCompanion::Ask,
        _ => WithoutCompanion::Deny,
    };
    match chosen.unwrap_or(default) {
        WithoutCompanion::Ask => Answer::Nothing,
        WithoutCompanion::Deny => Answer::Deny(format!(
            "The change was not written because it cannot be reviewed: {error:#}. Ask the user to run `alongside` in this directory, or `alongside uninstall {}` to remove the hook.",
            agent.id()
        )),
    }
}

/// Whether the agent has a connection of its own, besides its hooks.
async fn is_connected(companion: &mut Client, agent: HookAgent) -> Result<bool> {
    let status = companion.call::<requests::Status>(Empty {}).await?;
    Ok(status.agents.iter().any(|connected| {
        !matches!(connected.session, SessionKey::Hook(_) | SessionKey::Chat(_))
            && agent.is_called(&connected.identity.name)
    }))
}

/// The context for a prompt, unless the agent receives it in another way.
async fn prompt(call: &Call) -> Result<Option<String>> {
    let mut companion = companion_record::connect_nearest(&call.cwd).await?;
    if matches!(call.agent, HookAgent::Gemini | HookAgent::Qwen) {
        // They do not end a hook when the user cancels.
        let session = HookSession {
            agent: call.agent,
            session: call.session.clone(),
        };
        companion.call::<requests::HookPrompt>(session).await?;
    }
    if is_connected(&mut companion, call.agent).await? {
        return Ok(None);
    }
    let shown = companion.call::<requests::ContextShow>(Empty {}).await?;
    Ok(context::describe(&shown.context))
}

/// The files on this machine.
struct Disk;

impl Files for Disk {
    fn resolve(&self, path: &Path) -> Result<PathBuf, String> {
        real_path(path).ok_or_else(|| format!("`{}` is not the path of a file", path.display()))
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, String> {
        let failed = |error: io::Error| format!("`{}` cannot be read: {error}", path.display());
        match fs::metadata(path) {
            // Opening a pipe or a device has effects.
            Ok(metadata) if !metadata.is_file() => Err(format!("`{}` is not a regular file", path.display())),
            Ok(_) => fs::read(path).map(Some).map_err(failed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }
}

/// Writes a text that the user accepted, for an agent that cannot be made to. Atomic; the permissions stay.
fn write(path: &Path, text: &str) -> io::Result<()> {
    use io::Write;

    let directory = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".alongside-");
    // The default for new files; the umask is applied to it.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    if let Ok(metadata) = fs::metadata(path) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.as_file().sync_all()?;
    alongside_platform::persist(file, path)
}

//! `alongside run`: an agent in this terminal, connected to the right companion.

mod review;
mod split;

use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

use alongside_discovery::lookup::locks::Advice;
use alongside_discovery::{Announcement, Environment, RunEnvironment, run_environment};
use alongside_protocol::{FilePath, requests};
use anyhow::{Context, Result};
use tokio::process::Command;

use crate::command_line::{Common, Run, Serve};
use crate::commands::serve;
use crate::output::to_stderr;
#[cfg(windows)]
use crate::signals::{ConsoleEvent, ShutdownSignals};
use alongside_companion::RunningCompanion;
use alongside_companion::companion_record::{self, CompanionRecord};
use alongside_companion::places::Places;

pub(crate) async fn run(common: &Common, mut run: Run) -> Result<ExitCode> {
    let environment = Environment::current();
    show_changes(&mut run, &environment)?;
    if let Some(record) = companion_record::nearest(&Places::of_user()?, &common.directory()) {
        if let Err(error) = enter(&record, &environment).await {
            tracing::debug!(%error, "cannot announce this directory");
        }
        split::offer(&common.directory());
        return become_agent(&run, changes(&run, &record.announcement(), &environment)).await;
    }
    let mut signals = ForwardedSignals::register().context("cannot install signal handlers")?;
    let running = RunningCompanion::start(serve::options(common, Serve::default())).await?;
    let changes = changes(&run, running.announcement(), &environment);
    let pane = split::offer(&common.directory());
    let ended = accompany_agent(&run, changes, &mut signals).await;
    // It shows the companion that stops now.
    if let Some(pane) = pane {
        pane.close();
    }
    running.stop().await;
    Ok(pass_on(ended?))
}

/// Copilot CLI connects only if this very directory is announced. For others it makes no difference.
async fn enter(record: &CompanionRecord, environment: &Environment) -> Result<()> {
    let path = environment.working_directory.to_string_lossy().into_owned();
    let mut companion = record.connect(false).await?;
    companion.call::<requests::WorkspaceEnter>(FilePath { path }).await?;
    Ok(())
}

/// Has the agent show its changes, or says how to.
fn show_changes(run: &mut Run, environment: &Environment) -> Result<()> {
    let program = std::env::current_exe().context("cannot determine the path of this program")?;
    let review = review::prepare(&run.command, environment, &program);
    run.command.splice(1..1, review.arguments.into_iter().map(Into::into));
    if let Some(Advice { message, hint }) = review.note {
        to_stderr(&format!("note: {message}\n→ {hint}\n"));
    }
    Ok(())
}

fn changes(run: &Run, announcement: &Announcement, environment: &Environment) -> RunEnvironment {
    let program = run.command.first().map_or_else(|| Path::new(""), Path::new);
    run_environment(announcement, environment, program)
}

/// A companion is already running, so this process has nothing left to do: on Unix it becomes the agent, which then owns
/// signals, terminal and exit code.
#[cfg(unix)]
#[expect(clippy::unused_async, reason = "other systems wait for the agent here")]
async fn become_agent(run: &Run, changes: RunEnvironment) -> Result<ExitCode> {
    use std::os::unix::process::CommandExt;

    let error = command(run, changes).as_std_mut().exec();
    Err(error).with_context(|| cannot_start(run))
}

#[cfg(not(unix))]
async fn become_agent(run: &Run, changes: RunEnvironment) -> Result<ExitCode> {
    let code = accompany_agent(run, changes, &mut ForwardedSignals::register()?).await?;
    Ok(pass_on(code))
}

fn command(run: &Run, changes: RunEnvironment) -> Command {
    let mut parts = run.command.iter();
    // Clap requires at least one.
    let mut command = Command::new(
        parts
            .next()
            .map(|name| alongside_platform::program(name))
            .unwrap_or_default(),
    );
    command.args(parts).envs(changes.set);
    for name in changes.remove {
        command.env_remove(name);
    }
    command
}

fn cannot_start(run: &Run) -> String {
    let name = run
        .command
        .first()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    format!("cannot start `{name}`; is it installed and on your PATH?")
}

/// Runs the agent next to a companion in this process, and forwards signals and the exit code.
async fn accompany_agent(run: &Run, changes: RunEnvironment, signals: &mut ForwardedSignals) -> Result<i32> {
    let mut child = command(run, changes).spawn().with_context(|| cannot_start(run))?;
    let pid = child.id();
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            next = signals.forward_next(pid) => if next.is_break() {
                return Ok(1);
            }
        }
    };
    Ok(exit_code(status))
}

/// Exits with the agent's code when nothing is left to do. On Windows it has 32 bits, such as 0xC000013A after Ctrl-C, of which
/// `ExitCode` takes 8.
fn pass_on(code: i32) -> ExitCode {
    u8::try_from(code).map_or_else(|_| std::process::exit(code), ExitCode::from)
}

#[cfg(unix)]
fn exit_code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;

    // The shell convention.
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

#[cfg(not(unix))]
fn exit_code(status: std::process::ExitStatus) -> i32 {
    status.code().unwrap_or(1)
}

/// The signals for the agent. Registered before the companion is announced, so that none of them can kill this process and
/// leave the agent or the discovery files behind.
#[cfg(unix)]
struct ForwardedSignals {
    signals: Vec<(rustix::process::Signal, tokio::signal::unix::Signal)>,
    /// A terminal sends interrupts to all foreground processes, including the agent.
    by_terminal: bool,
}

#[cfg(unix)]
impl ForwardedSignals {
    fn register() -> std::io::Result<Self> {
        use std::io::IsTerminal;

        use rustix::process::Signal;
        use tokio::signal::unix::{SignalKind, signal};

        let all = [
            Signal::INT,
            Signal::QUIT,
            Signal::TERM,
            Signal::HUP,
            Signal::USR1,
            Signal::USR2,
        ];
        let registered = all
            .into_iter()
            .map(|kind| Ok((kind, signal(SignalKind::from_raw(kind.as_raw()))?)));
        Ok(Self {
            signals: registered.collect::<std::io::Result<_>>()?,
            by_terminal: std::io::stdin().is_terminal(),
        })
    }

    /// Breaks if there is no time left to wait for the agent, which a signal never says.
    async fn forward_next(&mut self, pid: Option<u32>) -> ControlFlow<()> {
        use rustix::process::{Pid, Signal, kill_process};

        let received = std::future::poll_fn(|context| {
            let ready = self
                .signals
                .iter_mut()
                .find_map(|(kind, signal)| signal.poll_recv(context).is_ready().then_some(*kind));
            ready.map_or(std::task::Poll::Pending, std::task::Poll::Ready)
        })
        .await;
        if self.by_terminal && matches!(received, Signal::INT | Signal::QUIT) {
            return ControlFlow::Continue(());
        }
        if let Some(pid) = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw) {
            // It may just have exited.
            let _ = kill_process(pid, received);
        }
        ControlFlow::Continue(())
    }
}

/// Windows sends these to the agent itself; they only must not kill this process before it has removed its files.
#[cfg(windows)]
struct ForwardedSignals(ShutdownSignals);

#[cfg(windows)]
impl ForwardedSignals {
    fn register() -> std::io::Result<Self> {
        ShutdownSignals::register().map(Self)
    }

    /// Breaks if the system is about to end both processes.
    async fn forward_next(&mut self, _: Option<u32>) -> ControlFlow<()> {
        match self.0.next().await {
            // Whether the agent exits is its own decision.
            ConsoleEvent::Interrupt => ControlFlow::Continue(()),
            ConsoleEvent::End => ControlFlow::Break(()),
        }
    }
}

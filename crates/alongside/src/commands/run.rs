//! `alongside run`: an agent in this terminal, connected to the right companion.

use std::process::ExitCode;

use alongside_discovery::{Environment, terminal_environment};
use anyhow::{Context, Result};
use tokio::process::Command;

use crate::command_line::{Common, Run, Serve};
use crate::commands::serve;
use alongside_companion::Running;
use alongside_companion::places::Places;
use alongside_companion::running;

pub(crate) async fn run(common: &Common, run: Run) -> Result<ExitCode> {
    let environment = Environment::current();
    let serving = running::nearest(&Places::of_user()?, &common.directory()).map(|record| record.announcement());
    if let Some(announcement) = serving {
        return become_agent(&run, terminal_environment(&announcement, &environment)).await;
    }
    let mut signals = PassedOn::register().context("cannot install signal handlers")?;
    let running = Running::start(serve::options(common, Serve::default())).await?;
    let variables = terminal_environment(running.announcement(), &environment);
    let ended = accompany_agent(&run, variables, &mut signals).await;
    running.end().await;
    ended
}

/// A companion runs already, so this process has nothing left to do: on Unix it becomes the agent, and signals, terminal
/// and exit code are the agent's own.
#[cfg(unix)]
#[expect(clippy::unused_async, reason = "other systems wait for the agent here")]
async fn become_agent(run: &Run, variables: Vec<(String, String)>) -> Result<ExitCode> {
    use std::os::unix::process::CommandExt;

    let error = command(run, variables).as_std_mut().exec();
    Err(error).with_context(|| cannot_start(run))
}

#[cfg(not(unix))]
async fn become_agent(run: &Run, variables: Vec<(String, String)>) -> Result<ExitCode> {
    accompany_agent(run, variables, &mut PassedOn::register()?).await
}

fn command(run: &Run, variables: Vec<(String, String)>) -> Command {
    let mut parts = run.command.iter();
    // Clap asks for at least one.
    let mut command = Command::new(parts.next().cloned().unwrap_or_default());
    command.args(parts).envs(variables);
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

/// Runs the agent beside a companion in this process, and passes signals and the exit code on.
async fn accompany_agent(run: &Run, variables: Vec<(String, String)>, signals: &mut PassedOn) -> Result<ExitCode> {
    let mut child = command(run, variables).spawn().with_context(|| cannot_start(run))?;
    let pid = child.id();
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            () = signals.pass_on_next(pid) => {}
        }
    };
    Ok(ExitCode::from(u8::try_from(exit_code(status)).unwrap_or(1)))
}

#[cfg(unix)]
fn exit_code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;

    // As a shell would say it.
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

#[cfg(not(unix))]
fn exit_code(status: std::process::ExitStatus) -> i32 {
    status.code().unwrap_or(1)
}

/// The signals that are the agent's. Registered before the companion is announced, so that none of them can end this
/// process and leave the agent or the discovery files alone.
#[cfg(unix)]
struct PassedOn {
    signals: Vec<(rustix::process::Signal, tokio::signal::unix::Signal)>,
    /// A terminal sends interrupts to everybody in the foreground, the agent included.
    by_terminal: bool,
}

#[cfg(unix)]
impl PassedOn {
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

    /// Waits for a signal and passes it on.
    async fn pass_on_next(&mut self, pid: Option<u32>) {
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
            return;
        }
        if let Some(pid) = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw) {
            // It may just have ended.
            let _ = kill_process(pid, received);
        }
    }
}

/// Windows sends Ctrl-C to the agent itself; here it must only not end this process.
#[cfg(not(unix))]
struct PassedOn;

#[cfg(not(unix))]
impl PassedOn {
    #[expect(clippy::unnecessary_wraps, reason = "other systems can fail here")]
    fn register() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn pass_on_next(&mut self, _: Option<u32>) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

//! `alongside run`: an agent in this terminal, connected to the right companion.

use std::process::ExitCode;

use alongside_discovery::{Environment, terminal_environment};
use anyhow::{Context, Result};
use tokio::process::Command;

use crate::command_line::{Common, Run, Serve};
use crate::commands::serve;
use crate::companion::Running;
use crate::places::Places;
use crate::running;

pub(crate) async fn run(common: &Common, run: Run) -> Result<ExitCode> {
    let environment = Environment::current();
    let serving = running::nearest(&Places::of_user()?, &common.directory()).and_then(|record| record.announcement());
    if let Some(announcement) = serving {
        return become_agent(&run, terminal_environment(&announcement, &environment)).await;
    }
    let running = Running::start(serve::options(common, Serve::default())).await?;
    let variables = terminal_environment(running.announcement(), &environment);
    let ended = accompany_agent(&run, variables).await;
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
    accompany_agent(run, variables).await
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
    format!("cannot start `{name}`; is it installed and on the PATH?")
}

/// Runs the agent beside a companion in this process, and passes signals and the exit code on.
#[cfg(unix)]
async fn accompany_agent(run: &Run, variables: Vec<(String, String)>) -> Result<ExitCode> {
    use std::io::IsTerminal;
    use std::os::unix::process::ExitStatusExt;

    use rustix::process::{Pid, Signal, kill_process};
    use tokio::signal::unix::{SignalKind, signal};

    // Registered before the agent starts, so that no signal can end this process and leave the agent alone.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut first = signal(SignalKind::user_defined1())?;
    let mut second = signal(SignalKind::user_defined2())?;
    let mut child = command(run, variables).spawn().with_context(|| cannot_start(run))?;
    let pid = child
        .id()
        .and_then(|pid| i32::try_from(pid).ok())
        .and_then(Pid::from_raw);
    // A terminal sends these two to everybody in the foreground, the agent included.
    let by_terminal = std::io::stdin().is_terminal();
    let status = loop {
        let passed_on = tokio::select! {
            status = child.wait() => break status?,
            _ = interrupt.recv() => Signal::INT,
            _ = quit.recv() => Signal::QUIT,
            _ = terminate.recv() => Signal::TERM,
            _ = hangup.recv() => Signal::HUP,
            _ = first.recv() => Signal::USR1,
            _ = second.recv() => Signal::USR2,
        };
        if by_terminal && matches!(passed_on, Signal::INT | Signal::QUIT) {
            continue;
        }
        if let Some(pid) = pid {
            // It may just have ended.
            let _ = kill_process(pid, passed_on);
        }
    };
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

#[cfg(not(unix))]
async fn accompany_agent(run: &Run, variables: Vec<(String, String)>) -> Result<ExitCode> {
    let mut child = command(run, variables).spawn().with_context(|| cannot_start(run))?;
    loop {
        tokio::select! {
            status = child.wait() => return Ok(ExitCode::from(u8::try_from(status?.code().unwrap_or(1)).unwrap_or(1))),
            // Windows sends Ctrl-C to the agent itself.
            _ = tokio::signal::ctrl_c() => {}
        }
    }
}

//! `alongside review`: the reviewer in this terminal.

mod links;

use std::future::Future;
use std::io::IsTerminal;
use std::process::ExitCode;

use alongside_companion::RunningCompanion;
use alongside_companion::companion_record;
use alongside_companion::places::Places;
use alongside_companion::settings::{Settings, TerminalAlert, TerminalBackground};
use alongside_terminal::{Alert, Background, Options, ShellOptions, Theme};
use anyhow::{Context, Result, bail};

use crate::command_line::{Common, Review};
use crate::signals::ShutdownSignals;
use links::Connections;

pub(crate) async fn run(common: &Common, review: Review) -> Result<ExitCode> {
    if common.json {
        bail!("`alongside review` has no --json; use `alongside diff` in scripts");
    }
    if !is_interactive() {
        bail!("`alongside review` needs a terminal; use `alongside diff` in scripts");
    }
    show(common, &review.also, false).await
}

/// Whether the user sits at a terminal that can show the reviewer.
pub(crate) fn is_interactive() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !is_dumb
}

/// Shows the reviewer of the nearest companion, and of those of other directories.
pub(crate) async fn show(common: &Common, also: &[std::path::PathBuf], chat: bool) -> Result<ExitCode> {
    let mut signals = ShutdownSignals::register().context("cannot install signal handlers")?;
    let places = Places::of_user()?;
    let directory = common.directory();
    let record = companion_record::nearest_or_error(&places, &directory)?;
    let find = {
        let places = places.clone();
        move || companion_record::nearest_shared(&places, &directory)
    };
    let settings = Settings::load(&places.settings(), &record.workspace)?;
    let mut connections = Connections::new(places.clone(), &record, Box::new(find));
    for directory in also {
        let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.clone());
        let other = companion_record::nearest_or_error(&places, &directory)?;
        if other.pid != record.pid {
            connections.attach_record(&other);
        }
    }
    let options = options(&settings, false, chat);
    alongside_terminal::run(connections, record.workspace.clone(), options, signals.received())
        .await
        .context("cannot use this terminal")?;
    Ok(ExitCode::SUCCESS)
}

/// Shows the reviewer of a companion in this process, until the user quits or `stop` completes.
pub(crate) async fn show_own(running: &RunningCompanion, stop: impl Future<Output = ()>) -> Result<()> {
    let places = Places::of_user()?;
    let record = running.record().clone();
    let settings = Settings::load(&places.settings(), &record.workspace)?;
    let workspace = record.workspace.clone();
    let own = record.clone();
    let connections = Connections::new(places, &record, Box::new(move || Some(own.clone())));
    let options = options(&settings, true, false);
    alongside_terminal::run(connections, workspace, options, stop)
        .await
        .context("cannot use this terminal")
}

/// Unlike that of any other front end, so that no message is taken for one of another.
fn id() -> String {
    let mut random = [0; 8];
    // Without random numbers the PID is all there is.
    let _ = getrandom::fill(&mut random);
    format!("{}-{:x}", std::process::id(), u64::from_ne_bytes(random))
}

fn options(settings: &Settings, owns_companion: bool, starts_with_chat: bool) -> ShellOptions {
    let mut theme = Theme::from_environment(|name| std::env::var(name).ok());
    match settings.terminal_background {
        TerminalBackground::Auto => {}
        TerminalBackground::Dark => theme.background = Background::Dark,
        TerminalBackground::Light => theme.background = Background::Light,
    }
    ShellOptions {
        model: Options {
            theme,
            owns_companion,
            starts_with_chat,
            id: id(),
        },
        mouse: settings.terminal_mouse,
        alert: match settings.terminal_alert {
            TerminalAlert::Bell => Alert::Bell,
            TerminalAlert::None => Alert::None,
            TerminalAlert::Osc9 => Alert::Osc9,
            TerminalAlert::Osc777 => Alert::Osc777,
        },
    }
}

//! `alongside lsp`: the companion of one editor, which speaks the language server protocol on standard input and output.
//!
//! It is `bridge` with another carrier. Who the editor is and which folders it has comes with its first message, so that
//! the companion starts then and not before.

use std::fs;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use alongside_discovery::process::{Alive, Processes, SystemProcesses};
use alongside_lsp::{Client, Ending, Greeting, Scratch, Wire};
use anyhow::{Context, Result};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::io::BufReader;
use tokio::sync::Notify;

use crate::command_line::{Common, Lsp};
use crate::signals::ShutdownSignals;
use alongside_companion::places::Places;
use alongside_companion::{Options, RunningCompanion};

/// How long a file must not have changed to count as written.
const QUIET: Duration = Duration::from_millis(80);

pub(crate) async fn run(common: &Common, lsp: Lsp) -> Result<ExitCode> {
    let mut signals = ShutdownSignals::register().context("cannot install signal handlers")?;
    if std::io::stdin().is_terminal() {
        common
            .output()
            .news("This is a language server and must be started by an editor; see `alongside lsp --help`.");
    }
    let mut wire = Wire::new(BufReader::new(tokio::io::stdin()), tokio::io::stdout());
    let greeting = tokio::select! {
        greeting = alongside_lsp::greet(&mut wire) => greeting,
        () = signals.received() => None,
    };
    let Some(mut greeting) = greeting else {
        return Ok(ExitCode::SUCCESS);
    };
    let (running, scratch) = match start(common, lsp, &mut greeting).await {
        Ok(started) => started,
        Err(error) => {
            alongside_lsp::refuse(wire, greeting, &format!("{error:#}")).await;
            return Err(error);
        }
    };
    let (changes, written) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let _watcher = watch(&scratch, &written);
    let settling = tokio::spawn(settle(written, changes.clone()));
    // A task of its own, so that the editor hears of the end too.
    let desk = running.companion().clone();
    let mut conversation = tokio::spawn(alongside_lsp::serve(desk, wire, greeting, scratch, changes));
    let ending = tokio::select! {
        () = signals.received() => None,
        () = running.stop_requested() => None,
        ended = &mut conversation => Some(ended.unwrap_or(Ending::Abrupt)),
    };
    settling.abort();
    running.stop().await;
    Ok(match ending {
        // Not before now: this may be the last thing that we do.
        Some(Ending::Goodbye(farewell)) => {
            farewell.say().await;
            ExitCode::SUCCESS
        }
        Some(Ending::Abrupt) => ExitCode::FAILURE,
        None => {
            conversation.abort();
            // The files of drafts go with it.
            let _ = conversation.await;
            ExitCode::SUCCESS
        }
    })
}

async fn start(common: &Common, lsp: Lsp, greeting: &mut Greeting) -> Result<(RunningCompanion, Scratch)> {
    let client = &mut greeting.client;
    if !common.workspace.is_empty() {
        client.folders.clone_from(&common.workspace);
        client.follows_folders = false;
    } else if client.folders.is_empty() {
        client
            .folders
            .push(std::env::current_dir().context("cannot determine the current directory")?);
    }
    let drafts = Places::of_user()?.drafts();
    sweep(&drafts);
    let scratch =
        Scratch::new(&drafts).with_context(|| format!("cannot create a directory in {}", drafts.display()))?;
    let options = Options {
        workspace: client.folders.clone(),
        name: Some(lsp.name.unwrap_or_else(|| client.name.clone())),
        display_name: Some(lsp.display_name.unwrap_or_else(|| client.display_name.clone())),
        pid: editor(client),
        ..Options::default()
    };
    Ok((RunningCompanion::start(options).await?, scratch))
}

/// The editor's process. One that is not here is in another container than we are; then whoever started us counts.
fn editor(client: &Client) -> Option<u32> {
    let said = client
        .pid
        .filter(|pid| SystemProcesses::default().is_alive(*pid) != Alive::No);
    #[cfg(unix)]
    let said = said.or_else(|| Some(std::os::unix::process::parent_id()));
    said
}

/// Removes what processes that were killed have left.
fn sweep(drafts: &std::path::Path) {
    for entry in fs::read_dir(drafts).into_iter().flatten().flatten() {
        let owner = entry.file_name().to_str().and_then(Scratch::owner);
        let is_gone = owner.is_some_and(|owner| SystemProcesses::default().is_alive(owner) == Alive::No);
        if is_gone {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Passes on that files were written once they are: many editors empty a file before they fill it.
async fn settle(written: Arc<Notify>, changes: Arc<Notify>) {
    loop {
        written.notified().await;
        while tokio::time::timeout(QUIET, written.notified()).await.is_ok() {}
        changes.notify_one();
    }
}

/// Tells when something was written in the directory of drafts. Without it, such a file counts once somebody decides.
fn watch(scratch: &Scratch, written: &Arc<Notify>) -> Option<RecommendedWatcher> {
    let written = written.clone();
    let is_change = |kind: notify::EventKind| !matches!(kind, notify::EventKind::Access(_));
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| is_change(event.kind)) {
            written.notify_one();
        }
    });
    let watching = watcher.and_then(|mut watcher| {
        watcher.watch(scratch.path(), RecursiveMode::Recursive)?;
        Ok(watcher)
    });
    watching
        .inspect_err(|error| tracing::warn!(%error, "cannot watch drafts; saved edits may be noticed late"))
        .ok()
}

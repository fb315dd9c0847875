//! `alongside lsp`: the companion of one editor, as a language server over stdio.
//!
//! It is `bridge` with another transport. The first message says which editor it is and which folders it has open, so the companion
//! starts only then.

use std::fs;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use alongside_discovery::process::{Alive, Processes, SystemProcesses};
use alongside_install::detect::name_of_process;
use alongside_lsp::{Client, Connection, Open, PendingInitialize, Scratch, Session, SessionEnd};
use anyhow::{Context, Result};
use notify::{Config, EventKindMask, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::io::BufReader;
use tokio::sync::Notify;

use crate::command_line::{Common, Lsp, OpenChange};
use crate::signals::ShutdownSignals;
use alongside_companion::places::Places;
use alongside_companion::{Options, RunningCompanion};

/// How long a file must stay unchanged to be treated as saved.
const SETTLE_DELAY: Duration = Duration::from_millis(80);

pub(crate) async fn run(common: &Common, lsp: Lsp) -> Result<ExitCode> {
    let mut signals = ShutdownSignals::register().context("cannot install signal handlers")?;
    if std::io::stdin().is_terminal() {
        common
            .output()
            .news("This is a language server and must be started by an editor; see `alongside lsp --help`.");
    }
    let mut connection = Connection::new(BufReader::new(tokio::io::stdin()), tokio::io::stdout());
    let initialize = tokio::select! {
        initialize = alongside_lsp::wait_for_initialize(&mut connection) => initialize,
        () = signals.received() => None,
    };
    let Some(mut initialize) = initialize else {
        return Ok(ExitCode::SUCCESS);
    };
    name_by_process(&mut initialize.client);
    if !common.workspace.is_empty() {
        initialize.client.folders.clone_from(&common.workspace);
        initialize.client.follows_folders = false;
    } else if initialize.client.folders.is_empty() {
        // No agent should find this companion before it is known what for.
        let known = tokio::select! {
            known = alongside_lsp::wait_for_workspace(connection, initialize) => known,
            () = signals.received() => return Ok(ExitCode::SUCCESS),
        };
        (connection, initialize) = match known {
            Ok(known) => known,
            Err(SessionEnd::Shutdown(shutdown)) => {
                shutdown.finish().await;
                return Ok(ExitCode::SUCCESS);
            }
            Err(SessionEnd::Abrupt) => return Ok(ExitCode::FAILURE),
        };
    }
    let (running, scratch) = match start(lsp, &mut initialize).await {
        Ok(started) => started,
        Err(error) => {
            alongside_lsp::refuse(connection, initialize, &format!("{error:#}")).await;
            return Err(error);
        }
    };
    let (changes, written) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let _watcher = watch(&scratch, &written);
    let settling = tokio::spawn(settle(written, changes.clone()));
    // It is stopped after the companion, so that the editor is notified of the shutdown too.
    let backend = running.companion().clone();
    let mut session = Session::start(backend, connection, initialize, scratch, changes);
    let end = tokio::select! {
        () = signals.received() => None,
        () = running.stop_requested() => None,
        end = session.end() => Some(end),
    };
    settling.abort();
    running.stop().await;
    Ok(match end {
        // Last, because the editor may kill the process after the response.
        Some(SessionEnd::Shutdown(shutdown)) => {
            shutdown.finish().await;
            ExitCode::SUCCESS
        }
        Some(SessionEnd::Abrupt) => ExitCode::FAILURE,
        None => {
            session.stop().await;
            ExitCode::SUCCESS
        }
    })
}

async fn start(lsp: Lsp, initialize: &mut PendingInitialize) -> Result<(RunningCompanion, Scratch)> {
    let client = &mut initialize.client;
    client.open = match lsp.open {
        OpenChange::Auto | OpenChange::Notify => Open::Notify,
        OpenChange::View => Open::View,
        OpenChange::Focus => Open::Focus,
    };
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

/// Some editors do not report a name.
fn name_by_process(client: &mut Client) {
    if client.is_named {
        return;
    }
    let process = editor(client).and_then(|pid| SystemProcesses::default().find(pid));
    if let Some(name) = process.and_then(|process| name_of_process(&process.command)) {
        client.set_name(&name);
    }
}

/// The editor's process. If it does not exist, the editor runs in another container; then our parent process is used.
fn editor(client: &Client) -> Option<u32> {
    let reported = client
        .pid
        .filter(|pid| SystemProcesses::default().is_alive(*pid) != Alive::No);
    #[cfg(unix)]
    let reported = reported.or_else(|| Some(std::os::unix::process::parent_id()));
    reported
}

/// Removes the files of killed processes.
fn sweep(drafts: &std::path::Path) {
    for entry in fs::read_dir(drafts).into_iter().flatten().flatten() {
        let owner = entry.file_name().to_str().and_then(Scratch::owner);
        let is_gone = owner.is_some_and(|owner| SystemProcesses::default().is_alive(owner) == Alive::No);
        if is_gone {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Waits until files have settled: many editors empty a file before they write it.
async fn settle(written: Arc<Notify>, changes: Arc<Notify>) {
    loop {
        written.notified().await;
        while tokio::time::timeout(SETTLE_DELAY, written.notified()).await.is_ok() {}
        changes.notify_one();
    }
}

/// Notifies when a draft file was saved. Without it, saved edits are noticed with the next decision.
fn watch(scratch: &Scratch, written: &Arc<Notify>) -> Option<RecommendedWatcher> {
    let written = written.clone();
    let note = move |event: notify::Result<notify::Event>| {
        if event.is_ok() {
            written.notify_one();
        }
    };
    // Without access, which also reading is.
    let watcher = RecommendedWatcher::new(note, Config::default().with_event_kinds(EventKindMask::CORE));
    let watching = watcher.and_then(|mut watcher| {
        watcher.watch(scratch.path(), RecursiveMode::Recursive)?;
        Ok(watcher)
    });
    watching
        .inspect_err(|error| tracing::warn!(%error, "cannot watch drafts; saved edits may be noticed late"))
        .ok()
}

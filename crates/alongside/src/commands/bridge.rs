//! `alongside bridge`: the companion of one editor, whose plugin is connected through stdin and stdout.
//!
//! It is the same companion as with `serve`, with one more front end, and it stops with that front end: when the plugin closes
//! the connection, the editor exits, or a command stops it. If the editor announced that it is `leaving`, the bridge waits for
//! the editor's next one, and exits without stopping when that one takes over.

mod check;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use alongside_discovery::{Announcement, Environment, Platform, terminal_environment};
use alongside_front::stdio;
use alongside_protocol::{Backend, FrontEnd, Request, RequestError, Response, SharedNotification, Variables};
use anyhow::{Context, Result};
use tokio::io::BufReader;
use tokio::sync::broadcast;

use crate::command_line::{Bridge, Common, Serve};
use crate::commands::serve;
use crate::signals::ShutdownSignals;
use alongside_companion::{Companion, RunningCompanion};

/// How long the discovery files may take to be removed when the next bridge takes over.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) async fn run(common: &Common, bridge: Bridge) -> Result<ExitCode> {
    if bridge.check {
        return check::run(common, &bridge.command).await;
    }
    let mut signals = ShutdownSignals::register().context("cannot install signal handlers")?;
    let options = Serve {
        name: bridge.name,
        display_name: bridge.display_name,
        pid: bridge.pid,
        open: false,
        plain: true,
    };
    let running = RunningCompanion::start(serve::options(common, options)).await?;
    let backend = Arc::new(BridgeBackend {
        companion: running.companion().clone(),
        announcement: running.announcement().clone(),
    });
    // A separate task, so that the plugin is notified of the stop as well.
    let mut conversation = tokio::spawn(stdio::serve(
        backend,
        BufReader::new(tokio::io::stdin()),
        tokio::io::stdout(),
    ));
    let companion = running.companion().clone();
    let deserted = async {
        let _ = (&mut conversation).await;
        tracing::info!("the plugin closed the connection");
        companion.deserted().await;
    };
    tokio::select! {
        () = signals.received_unless(|| companion.is_expected_back()) => {}
        () = running.stop_requested() => {}
        () = deserted => {}
        () = running.handed_over() => {
            tracing::info!("the editor's next companion has taken over");
            // A hung file system must not keep the next one waiting.
            let _abandoned = tokio::time::timeout(EXIT_TIMEOUT, running.leave_everything()).await;
            // Not 0: a plugin that is still there starts another one.
            std::process::exit(1);
        }
    }
    running.stop().await;
    conversation.abort();
    Ok(ExitCode::SUCCESS)
}

/// The companion for its own editor, with the requests that no other front end may use.
struct BridgeBackend {
    companion: Arc<Companion>,
    announcement: Announcement,
}

impl Backend for BridgeBackend {
    async fn handle(&self, front_end: &FrontEnd, request: Request) -> Result<Response, RequestError> {
        if request.cancels_leaving() {
            self.companion.stay().await;
        }
        match request {
            Request::TerminalEnvironment(_) => {}
            Request::Leaving(empty) => {
                self.companion.leave().await?;
                return Ok(Response::Leaving(empty));
            }
            _ => return self.companion.handle(front_end, request).await,
        }
        // Only Windows needs the aliases, and looking them up can hang, so do it only there.
        let aliases = if Platform::current() == Platform::Windows {
            let companion = self.companion.clone();
            let looking = tokio::task::spawn_blocking(move || companion.folder_aliases());
            looking.await.unwrap_or_default()
        } else {
            Vec::new()
        };
        let announcement = Announcement {
            workspace: self.companion.workspace(),
            aliases,
            ..self.announcement.clone()
        };
        let variables = terminal_environment(&announcement, &Environment::current());
        Ok(Response::TerminalEnvironment(Variables {
            variables: variables.into_iter().collect(),
        }))
    }

    fn disconnected(&self, front_end: &FrontEnd) {
        self.companion.disconnected(front_end);
    }

    fn subscribe(&self) -> broadcast::Receiver<SharedNotification> {
        self.companion.subscribe()
    }

    fn subscribe_chat(&self) -> broadcast::Receiver<SharedNotification> {
        self.companion.subscribe_chat()
    }
}

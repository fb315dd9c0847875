//! Start and stop of a companion.
//!
//! The order matters: listen, then announce. A stop removes the announcement first, so that no agent finds a port that is about to
//! close; then takes no more proposals, rejects what is pending, waits for agents between two event streams, and closes the
//! streams. What no agent has received for sure stays in the journal, and the next companion on this port sends it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use alongside_core::{Core, Secret, SessionKey};
use alongside_discovery::{Announcement, DiscoveryFiles, Environment};
use alongside_front::{connection, websocket};
use alongside_journal::Ticket;
use alongside_page::PageServer;
use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::announcer::{Announcer, AnnouncerTask};
use super::bases::{keep_bases, keep_rules};
use super::diagnostics::keep_diagnostics;
use super::journal::{Endpoint, Role, Slot};
use super::memory::keep_memory_low;
use super::ranking::{Rank, keep_ranked};
use super::watcher::Watcher;
use super::{Companion, Identity, Parts, Shared, editor, files, ignore_files};
use crate::companion_record::CompanionRecord;
use crate::places::Places;
use crate::settings::Settings;

/// How long the agents of restored reviews and decisions have to come back. They try again after one second, and twice more.
const RESTORE_GRACE: Duration = Duration::from_secs(30);

/// How often the journal notes that the companion is running: a crash is dated by it.
const SIGN_OF_LIFE: Duration = Duration::from_mins(30);
/// How often a journal that cannot be written is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// How long a clean stop waits for the responses to commands.
const FRONT_ENDS_TIMEOUT: Duration = Duration::from_secs(2);

/// How to start a companion.
#[derive(Debug, Default)]
pub struct Options {
    pub workspace: Vec<PathBuf>,
    /// The short name that agents are sent.
    pub name: Option<String>,
    /// The name that agents show.
    pub display_name: Option<String>,
    /// The editor's process; the companion stops when it ends.
    pub pid: Option<u32>,
    /// Where settings and state are kept; by default the user's directories.
    pub places: Option<Places>,
    /// What the discovery files depend on; by default this process's environment.
    pub environment: Option<Environment>,
    /// How long a stop waits for agents between two event streams; by default 2 s.
    pub reconnect_grace: Option<Duration>,
    /// Whether other commands should leave this companion alone, because it stops with the command that started it.
    pub is_private: bool,
}

/// A running companion. Dropping it closes everything at once; [`stop`](Self::stop) lets agents receive their decisions.
///
/// ```no_run
/// # async fn embed() -> anyhow::Result<()> {
/// use alongside_companion::{Options, RunningCompanion};
///
/// let options = Options {
///     workspace: vec!["/path/to/project".into()],
///     ..Options::default()
/// };
/// let running = RunningCompanion::start(options).await?;
/// let front_end = running.record().connect(true).await?;
/// running.stop_requested().await;
/// running.stop().await;
/// # Ok(())
/// # }
/// ```
pub struct RunningCompanion {
    companion: Shared,
    server: alongside_mcp::Server,
    page: PageServer,
    front_ends: alongside_loopback::Server,
    announcement: Announcement,
    record: CompanionRecord,
    announcer: AnnouncerTask,
    tasks: JoinSet<()>,
    editor: Option<u32>,
}

/// A companion that must not be dropped before the process exits.
#[must_use]
pub struct Abandoned {
    _kept: (
        Shared,
        alongside_mcp::Server,
        PageServer,
        alongside_loopback::Server,
        JoinSet<()>,
    ),
}

/// What `serve --json` prints when the companion is ready.
#[derive(Debug, Serialize)]
pub struct ReadyLine {
    port: u16,
    pid: u32,
    workspace: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl RunningCompanion {
    /// Starts a companion and announces it.
    pub async fn start(options: Options) -> Result<Self> {
        let (editor, reconnect, is_private) = (options.pid, options.reconnect_grace, options.is_private);
        let companion = tokio::task::spawn_blocking(move || open(&options))
            .await
            .context("cannot start the companion")??;
        let (server, token) = listen(&companion, reconnect).await?;
        // No agent can have connected yet: only this process has the token.
        let _ = companion.agents.set(server.agents());
        let (page, page_session) = serve_page(&companion).await?;
        // The first record of a new journal waits for the disk, and the announcement does not wait for the record.
        let remembered = companion.remember([
            endpoint(Role::Agents, server.port(), &token),
            endpoint(Role::Page, page.port(), &page_session),
        ]);

        let front_ends = websocket::Listener::bind()
            .await
            .context("cannot listen on a loopback port for front ends")?;
        let front_token = new_token()?;
        let identity = companion.identity.clone();
        let announcement = Announcement {
            port: server.port(),
            token,
            workspace: companion.workspace(),
            aliases: Vec::new(),
            socket: server.socket().map(Path::to_owned),
            directories: Vec::new(),
            name: identity.name,
            display_name: identity.display_name,
            pid: identity.pid,
            last_use: companion.ranking.last_use(),
            sorts_by_pid: false,
            is_first: false,
        };
        let _ = companion.own_announcement.set(announcement.clone());
        let front_port = front_ends.port();
        let (announcer, rank, peers) = {
            let (companion, front_token) = (companion.clone(), front_token.clone());
            tokio::task::spawn_blocking(move || announce(companion, announcement, front_port, &front_token, is_private))
                .await
                .context("cannot announce the companion")??
        };
        // A companion that is ready comes back on its port after a kill. If the journal cannot be written, front ends are told.
        let _ = remembered.written().await;
        let (announcement, record) = (announcer.announcement.clone(), announcer.record.clone());
        let (ranks, latest_rank) = watch::channel(rank);

        let front_ends = front_ends.serve(companion.clone(), front_token);
        let mut tasks = JoinSet::new();
        tasks.spawn(keep_deadlines(companion.clone()));
        tasks.spawn(files::keep_files(companion.clone()));
        tasks.spawn(keep_diagnostics(companion.clone()));
        tasks.spawn(companion.clone().listen_to_chat());
        tasks.spawn(companion.clone().resume_chat());
        tasks.spawn(keep_ranked(companion.clone(), ranks, peers));
        let watcher = Watcher::new();
        tasks.spawn(keep_rules(companion.clone(), watcher.changes.clone()));
        tasks.spawn(keep_bases(companion.clone(), watcher));
        tasks.spawn(end_absent_sessions(companion.clone()));
        tasks.spawn(keep_journal(companion.clone()));
        tasks.spawn(keep_memory_low(companion.clone()));
        tasks.spawn(serve_codex(companion.clone()));
        Ok(Self {
            announcer: announcer.start(latest_rank),
            companion,
            server,
            page,
            front_ends,
            announcement,
            record,
            tasks,
            editor,
        })
    }

    pub fn companion(&self) -> &Shared {
        &self.companion
    }

    pub fn announcement(&self) -> &Announcement {
        &self.announcement
    }

    /// How commands and front ends connect.
    pub fn record(&self) -> &CompanionRecord {
        &self.record
    }

    pub fn ready_line(&self) -> ReadyLine {
        ReadyLine {
            port: self.announcement.port,
            pid: std::process::id(),
            workspace: self.announcement.workspace.clone(),
            files: self.companion.announce_report().files,
        }
    }

    /// Waits until a front end asks the companion to stop, or the editor has exited.
    pub async fn stop_requested(&self) {
        let editor_ended = async {
            match self.editor {
                Some(pid) => editor::ended(pid).await,
                None => std::future::pending().await,
            }
            tracing::info!("the editor has exited");
            if self.companion.is_expected_back().await {
                self.companion.deserted().await;
            }
        };
        tokio::select! {
            () = self.companion.wake.stop.notified() => {}
            () = editor_ended => {}
        }
    }

    /// Waits until the editor's next companion takes over from this one. Then the process must exit without [`stop`](Self::stop).
    pub async fn handed_over(&self) {
        self.companion.departure.handed_over().await;
    }

    /// Removes the discovery files and the record, and nothing else: everything pending is left to the editor's next companion. The
    /// process must exit next, as if it had been killed, because dropping the rest would close the reviews of calls that wait.
    pub async fn leave_everything(self) -> Abandoned {
        self.announcer.stop().await;
        Abandoned {
            _kept: (self.companion, self.server, self.page, self.front_ends, self.tasks),
        }
    }

    /// Stops the companion: rejects pending changes, delivers decisions, and waits until everything is on disk. What could not be
    /// delivered, or not be written, is left to the next companion.
    pub async fn stop(mut self) {
        self.announcer.stop().await;
        // The decision that a command just made may be what ends a demo and its companion: the command still gets its response.
        self.front_ends.shutdown(FRONT_ENDS_TIMEOUT).await;
        self.tasks.shutdown().await;
        let companion = self.companion;
        companion.departure.cancel().await;
        let stopped = companion.commit(|core, _| {
            companion.is_stopping.store(true, Ordering::Relaxed);
            core.shut_down();
        });
        if let Err(error) = stopped.await {
            tracing::error!(%error, "pending changes are not rejected; the next companion here shows them again");
        }
        let expected: Vec<SessionKey> = {
            let core = companion.core.lock();
            let absent = core.ledger().deliveries().filter_map(|delivery| delivery.session());
            let absent = absent.filter(|session| core.agents().all(|agent| agent.session != **session));
            // All others end with the companion.
            absent.filter(|session| !session.is_waiting()).cloned().collect()
        };
        tokio::join!(companion.chat.end(), self.server.drain(&expected));
        tokio::join!(self.server.shutdown(), self.page.shutdown());
        companion.demo.end().await;
        companion.close_journal().await;
    }
}

impl Companion {
    /// Notes where this companion listens, for the next one.
    fn remember(&self, [agents, page]: [Endpoint; 2]) -> Ticket {
        self.push(|entry| entry.endpoint = Some(agents));
        let last = self.push(|entry| entry.endpoint = Some(page));
        self.start_writing();
        last
    }

    /// Where the previous companion listened, if its agents and pages may still be trying to come back.
    fn previous(&self, role: Role) -> Option<(u16, Secret)> {
        let limits = self.settings.lock().resume;
        self.journal.previous(role, self.clock.now().unix_milliseconds, limits)
    }

    async fn close_journal(&self) {
        let Some(companion) = self.me.upgrade() else { return };
        let closed = tokio::task::spawn_blocking(move || {
            companion.chat.writer.close();
            companion.push(|entry| entry.is_stop = true);
            companion.write();
            companion.journal.close();
        });
        let _ = closed.await;
    }
}

/// Reads settings, state and the chat's journal. Blocks.
fn open(options: &Options) -> Result<Shared> {
    let places = options.places.clone().map_or_else(Places::of_user, Ok)?;
    let environment = options.environment.clone().unwrap_or_else(Environment::current);
    let workspace = options
        .workspace
        .iter()
        .map(|folder| real_directory(folder))
        .collect::<Result<Vec<_>>>()?;
    let settings = Settings::load(&places.settings(), &workspace)?;
    let privacy = settings.privacy(&workspace, &ignore_files())?;
    let identity = identity(options, &settings);
    let slot = Slot::take(&places, &identity.name, &workspace)?;
    let parts = Parts::open(&places, &workspace, &slot)?;
    let logical: Vec<PathBuf> = options
        .workspace
        .iter()
        .map(|folder| environment.logical_path(folder))
        .collect();
    let companion =
        Arc::new_cyclic(|me| Companion::new(me.clone(), workspace, places, environment, settings, identity, parts));
    *companion.logical_folders.lock() = logical;
    let ledger = companion.journal.ledger();
    companion.with_core(|core, now| {
        core.set_privacy(privacy);
        core.restore(now, ledger);
    });
    Ok(companion)
}

/// Writes the record, then the discovery files. Blocks.
fn announce(
    companion: Shared,
    mut announcement: Announcement,
    front_port: u16,
    front_token: &Secret,
    is_private: bool,
) -> Result<(Announcer, Rank, Vec<u32>)> {
    announcement.aliases = companion.folder_aliases();
    let mut record = CompanionRecord::write(&companion.places, &announcement, front_port, front_token, is_private)?;
    let unranked = Rank::lowest(announcement.last_use);
    let (rank, peers) = companion.rank(unranked);
    if rank != unranked {
        rank.apply_to(&mut announcement);
        record.set_last_use(rank.last_use);
    }
    let files = DiscoveryFiles::write(&companion.environment, &announcement)?;
    let announcer = Announcer {
        companion,
        announcement,
        files,
        record,
        watcher: Watcher::new(),
    };
    announcer.report();
    Ok((announcer, rank, peers))
}

async fn listen(companion: &Shared, reconnect: Option<Duration>) -> Result<(alongside_mcp::Server, Secret)> {
    let places = companion.places.clone();
    let socket = tokio::task::spawn_blocking(move || crate::sockets::prepare(&places)).await?;
    let config = |port, token: &Secret| {
        let mut config = alongside_mcp::Config::new(token.clone());
        config.port = port;
        config.socket.clone_from(&socket);
        config.epoch = Some(companion.journal.epoch().clone());
        config.limits.sessions = companion.settings.lock().max_sessions.0;
        config.timing.reconnect = reconnect.unwrap_or(config.timing.reconnect);
        config
    };
    if let Some((port, token)) = companion.previous(Role::Agents) {
        match alongside_mcp::Server::bind(config(Some(port), &token), companion.clone()).await {
            Ok(server) => return Ok((server, token)),
            Err(error) => tracing::info!(%error, port, "the previous port is in use"),
        }
    }
    let token = new_token()?;
    let server = alongside_mcp::Server::bind(config(None, &token), companion.clone())
        .await
        .context("cannot listen on a loopback port for agents")?;
    Ok((server, token))
}

/// Serves the page on its previous port if that is free, so that open pages reconnect.
async fn serve_page(companion: &Shared) -> Result<(PageServer, Secret)> {
    if let Some((port, session)) = companion.previous(Role::Page) {
        match bind_page(companion, Some(port), &session).await {
            Ok(page) => return Ok((page, session)),
            Err(error) => tracing::info!(%error, port, "the page's previous port is in use"),
        }
    }
    let session = new_token()?;
    let page = bind_page(companion, None, &session)
        .await
        .context("cannot listen on a loopback port for the page")?;
    Ok((page, session))
}

async fn bind_page(companion: &Shared, port: Option<u16>, session: &Secret) -> std::io::Result<PageServer> {
    // The page's own tasks must not keep the companion alive.
    let desk = Arc::downgrade(companion);
    let config = alongside_page::Config {
        port,
        session: Some(session.clone()),
        ..alongside_page::Config::default()
    };
    let page = PageServer::bind(config, move |incoming, outgoing| {
        let desk = desk.upgrade();
        async move {
            if let Some(desk) = desk {
                connection::serve(desk, incoming, outgoing).await;
            }
        }
    });
    let page = page.await?;
    let _ = companion.page_links.set(page.login_links());
    Ok(page)
}

fn endpoint(role: Role, port: u16, secret: &Secret) -> Endpoint {
    let secret = secret.clone();
    Endpoint { role, port, secret }
}

fn new_token() -> Result<Secret> {
    alongside_loopback::random_secret().context("cannot get random bytes from the system")
}

fn identity(options: &Options, settings: &Settings) -> Identity {
    let name = options
        .name
        .clone()
        .or_else(|| settings.name.clone())
        .unwrap_or_else(|| "alongside".to_owned());
    let display_name = options.display_name.clone().or_else(|| settings.display_name.clone());
    // A custom name is also the better display name.
    let display_name = display_name.unwrap_or_else(|| {
        if name == "alongside" {
            "Alongside".to_owned()
        } else {
            name.clone()
        }
    });
    Identity {
        name,
        display_name,
        pid: options.pid.unwrap_or_else(std::process::id),
    }
}

fn real_directory(folder: &Path) -> Result<PathBuf> {
    let real = alongside_platform::path::real(folder)
        .with_context(|| format!("cannot use the workspace folder {}", folder.display()))?;
    if real.is_dir() {
        Ok(real)
    } else {
        Err(anyhow!("the workspace folder {} is not a directory", folder.display()))
    }
}

/// Lets the core do what is due.
pub(super) async fn keep_deadlines(companion: Shared) {
    loop {
        let deadline = companion.core.lock().next_deadline();
        let due = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(companion.clock.moment(deadline)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => companion.with_core(Core::tick),
            () = companion.wake.deadline.notified() => {}
        }
    }
}

/// Gives up on the agents of restored reviews and decisions that did not come back.
async fn end_absent_sessions(companion: Shared) {
    tokio::time::sleep(RESTORE_GRACE).await;
    companion.with_core(Core::end_absent_sessions);
}

/// Writes a sign of life now and then, and tries again while the journal cannot be written.
async fn keep_journal(companion: Shared) {
    let mut chat = companion.chat.writer.problem();
    let mut had_chat_problem = false;
    loop {
        let pause = if companion.journal.has_problem() {
            RETRY_PAUSE
        } else {
            SIGN_OF_LIFE
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {
                companion.push(|_| {});
                companion.start_writing();
            }
            () = companion.wake.journal.notified() => {}
            // Ends with the companion. The guard is dropped here: held during the report, which reads the problem again, it would
            // block that read behind a waiting writer, forever.
            () = async { drop(chat.wait_for(|problem| problem.sentence.is_some() != had_chat_problem).await) } => {
                had_chat_problem = !had_chat_problem;
                companion.report_problems();
            }
        }
    }
}

/// Serves Codex CLI, and reports why it cannot.
async fn serve_codex(companion: Shared) {
    let sockets = companion.environment.codex_sockets();
    let mut state = companion.codex.state();
    let report = async {
        let mut problem = None;
        // Ends with the companion. The guard is dropped before the report, which reads the problem again.
        while let Ok(changed) = state
            .wait_for(|state| state.problem != problem)
            .await
            .map(|state| state.clone())
        {
            problem = changed.problem;
            companion.report_problems();
        }
    };
    tokio::join!(companion.codex.run(&sockets), report);
}

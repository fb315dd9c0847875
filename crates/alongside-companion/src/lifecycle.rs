//! Start and stop of a companion.
//!
//! The order matters: listen, then announce. A stop removes the announcement first, so that no agent finds a port that is about to
//! close; then rejects what is pending, waits for agents between two event streams, and closes the streams. What no agent
//! received is saved, and the next companion on this port sends it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use alongside_core::{Decision, Secret, SessionId, SessionKey};
use alongside_discovery::{Announcement, DiscoveryFiles, Environment};
use alongside_front::{connection, websocket};
use alongside_page::PageServer;
use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::announcer::{Announcer, AnnouncerTask};
use super::ranking::{Rank, keep_ranked};
use super::store::Store;
use super::watcher::{Changes, Watcher};
use super::{Companion, Identity, Shared, editor, files, ignore_files};
use crate::companion_record::CompanionRecord;
use crate::places::Places;
use crate::settings::Settings;

/// How long the agents of restored reviews and decisions have to come back. They try again after one second, and twice more.
const RESTORE_GRACE: Duration = Duration::from_secs(30);

/// How long a file must be unchanged before it is read again.
const SETTLE_DELAY: Duration = Duration::from_millis(80);
/// When a file that keeps changing is read anyway.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);

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
    announcement: Announcement,
    record: CompanionRecord,
    announcer: AnnouncerTask,
    tasks: JoinSet<()>,
    editor: Option<u32>,
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
        let (editor, reconnect) = (options.pid, options.reconnect_grace);
        let companion = tokio::task::spawn_blocking(move || open(&options))
            .await
            .context("cannot start the companion")??;
        let (server, token) = listen(&companion, reconnect).await?;
        // No agent can have connected yet: only this process has the token.
        let _ = companion.agents.set(server.agents());
        companion.store.remember_agents(server.port(), &token);
        restore(&companion);

        let front_ends = websocket::Listener::bind()
            .await
            .context("cannot listen on a loopback port for front ends")?;
        let front_token = new_token()?;
        let page = serve_page(&companion).await?;
        let identity = companion.identity.clone();
        let announcement = Announcement {
            port: server.port(),
            token,
            workspace: companion.workspace(),
            name: identity.name,
            display_name: identity.display_name,
            pid: identity.pid,
            last_use: companion.ranking.last_use(),
            is_first: false,
        };
        let front_port = front_ends.port();
        let (announcer, rank, peers) = {
            let (companion, front_token) = (companion.clone(), front_token.clone());
            tokio::task::spawn_blocking(move || announce(companion, announcement, front_port, &front_token))
                .await
                .context("cannot announce the companion")??
        };
        let (announcement, record) = (announcer.announcement.clone(), announcer.record.clone());
        let (ranks, latest_rank) = watch::channel(rank);

        let mut tasks = JoinSet::new();
        tasks.spawn(front_ends.serve(companion.clone(), front_token));
        tasks.spawn(keep_deadlines(companion.clone()));
        tasks.spawn(files::keep_files(companion.clone()));
        tasks.spawn(companion.clone().listen_to_chat());
        tasks.spawn(companion.clone().resume_chat());
        tasks.spawn(keep_ranked(companion.clone(), ranks, peers));
        let watcher = Watcher::new();
        tasks.spawn(keep_rules(companion.clone(), watcher.changes.clone()));
        tasks.spawn(keep_bases(companion.clone(), watcher));
        tasks.spawn(drop_absent(companion.clone()));
        Ok(Self {
            announcer: announcer.start(latest_rank),
            companion,
            server,
            page,
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
        };
        tokio::select! {
            () = self.companion.wake.stop.notified() => {}
            () = editor_ended => tracing::info!("the editor has exited"),
        }
    }

    /// Stops the companion: rejects pending changes, delivers decisions, saves those that could not be delivered, and waits
    /// until all files are written.
    pub async fn stop(mut self) {
        self.announcer.stop().await;
        self.tasks.shutdown().await;
        let companion = self.companion;
        let expected = companion.with_core(|core, _| {
            companion.is_stopping.store(true, Ordering::Relaxed);
            core.shut_down();
            let early = core.early_decisions().iter();
            early
                .filter_map(|(session, _)| mcp_session(session))
                .collect::<Vec<_>>()
        });
        tokio::join!(companion.chat.end(), self.server.drain(&expected));
        let (undelivered, ()) = tokio::join!(self.server.shutdown(), self.page.shutdown());
        companion.save_undelivered(undelivered);
        companion.store.flush().await;
    }
}

impl Companion {
    fn save_undelivered(&self, outboxes: Vec<alongside_mcp::Undelivered>) {
        let of_outboxes = outboxes
            .into_iter()
            .flat_map(|(session, decisions)| decisions.into_iter().map(move |decision| (session.clone(), decision)));
        let early = self.core.lock().early_decisions().to_vec();
        let early = early
            .into_iter()
            .filter_map(|(session, decision)| Some((mcp_session(&session)?, decision)));
        let undelivered: Vec<(SessionId, Decision)> = early.chain(of_outboxes).collect();
        if !undelivered.is_empty() {
            let count = undelivered.len();
            tracing::warn!(
                count,
                "some decisions did not reach their agents; the next companion here sends them"
            );
        }
        self.store.save_undelivered(undelivered);
    }
}

/// The chat's own sessions end with the companion.
fn mcp_session(session: &SessionKey) -> Option<SessionId> {
    match session {
        SessionKey::Mcp(session) => Some(session.clone()),
        SessionKey::Chat(_) => None,
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
    let store = Store::open(&places, &identity.name, &workspace)?;
    let companion =
        Arc::new_cyclic(|me| Companion::new(me.clone(), workspace, places, environment, settings, identity, store));
    companion.with_core(|core, _| core.set_privacy(privacy));
    Ok(companion)
}

/// Restores open reviews and undelivered decisions.
fn restore(companion: &Companion) {
    let mut reviews = companion.store.restore();
    // A child process ended with its companion, so nothing waits for these.
    for review in reviews.extract_if(.., |review| review.session.is_chat()) {
        companion.store.forget(review.id);
    }
    let undelivered = companion.store.undelivered();
    companion.with_core(|core, now| {
        for review in reviews {
            core.restore_review(now, review);
        }
        for (session, decision) in undelivered {
            core.restore_decision(session.into(), decision);
        }
    });
}

/// Writes the record, then the discovery files. Blocks.
fn announce(
    companion: Shared,
    mut announcement: Announcement,
    front_port: u16,
    front_token: &Secret,
) -> Result<(Announcer, Rank, Vec<u32>)> {
    let mut record = CompanionRecord::write(&companion.places, &announcement, front_port, front_token)?;
    let unranked = Rank {
        is_first: false,
        last_use: announcement.last_use,
    };
    let (rank, peers) = companion.rank(unranked);
    if rank != unranked {
        announcement.is_first = rank.is_first;
        announcement.last_use = rank.last_use;
        record.set_last_use(rank.last_use);
    }
    let files = DiscoveryFiles::write(&companion.environment, &announcement)?;
    let announcer = Announcer {
        companion,
        announcement,
        files,
        record,
    };
    announcer.report();
    Ok((announcer, rank, peers))
}

async fn listen(companion: &Shared, reconnect: Option<Duration>) -> Result<(alongside_mcp::Server, Secret)> {
    let config = |port, token: &Secret| {
        let mut config = alongside_mcp::Config::new(token.clone());
        config.port = port;
        config.timing.reconnect = reconnect.unwrap_or(config.timing.reconnect);
        config
    };
    if let Some((port, token)) = companion.store.previous_agents() {
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
async fn serve_page(companion: &Shared) -> Result<PageServer> {
    if let Some((port, session)) = companion.store.previous_page() {
        match bind_page(companion, Some(port), session).await {
            Ok(page) => return Ok(page),
            Err(error) => tracing::info!(%error, port, "the page's previous port is in use"),
        }
    }
    bind_page(companion, None, new_token()?)
        .await
        .context("cannot listen on a loopback port for the page")
}

async fn bind_page(companion: &Shared, port: Option<u16>, session: Secret) -> std::io::Result<PageServer> {
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
    companion.store.remember_page(page.port(), &session);
    let _ = companion.page_links.set(page.login_links());
    Ok(page)
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
    let real = folder
        .canonicalize()
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
            () = due => companion.with_core(alongside_core::Core::tick),
            () = companion.wake.deadline.notified() => {}
        }
    }
}

/// Gives up on the agents of restored reviews and decisions that did not come back.
async fn drop_absent(companion: Shared) {
    tokio::time::sleep(RESTORE_GRACE).await;
    companion.with_core(|core, _| core.orphan_absent());
    companion.store.forget_all_undelivered();
}

/// Reads settings and ignore files again when they change, or the workspace does.
async fn keep_rules(companion: Shared, changes: Arc<Changes>) {
    loop {
        tokio::select! {
            () = companion.wake.rules.notified() => {}
            () = changes.rules.notified() => {}
        }
        let blocking = companion.clone();
        let _ = tokio::task::spawn_blocking(move || blocking.refresh_privacy()).await;
    }
}

/// Watches settings, ignore files and the files under review, and compares reviews with the latter when they change.
async fn keep_bases(companion: Shared, mut watcher: Watcher) {
    let changes = watcher.changes.clone();
    loop {
        // Watched first, then read once more, so that a change in between is not missed.
        watcher.watch(directories(&companion), reviewed(&companion));
        tokio::select! {
            () = companion.wake.reviews.notified() => {
                watcher.watch(directories(&companion), reviewed(&companion));
                settled(&changes).await;
            }
            () = companion.wake.bases.notified() => {}
            () = changes.bases.notified() => settled(&changes).await,
        }
        companion.refresh_bases();
    }
}

/// Waits until a file is no longer being written. Many programs empty a file before they fill it, and merging with an
/// empty file in between would throw the draft into conflict.
async fn settled(changes: &Changes) {
    let writing = async {
        while tokio::time::timeout(SETTLE_DELAY, changes.bases.notified())
            .await
            .is_ok()
        {}
    };
    let _ = tokio::time::timeout(SETTLE_TIMEOUT, writing).await;
}

/// The files under review.
fn reviewed(companion: &Companion) -> BTreeSet<PathBuf> {
    companion
        .core
        .lock()
        .reviews()
        .map(|review| PathBuf::from(&*review.path))
        .collect()
}

fn directories(companion: &Companion) -> BTreeSet<PathBuf> {
    let settings = Some(companion.places.configuration.clone()).filter(|directory| directory.is_dir());
    companion.workspace().into_iter().chain(settings).collect()
}

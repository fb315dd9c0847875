//! The beginning and the end of a companion.
//!
//! The order is the specification's: listen, then announce; and at the end take the announcement away first, so that no
//! agent finds a port that is about to close, then tell those who wait, then hang up.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alongside_core::Secret;
use alongside_discovery::{Announcement, DiscoveryFiles, Environment};
use alongside_front::{connection, websocket};
use alongside_page::PageServer;
use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use tokio::task::JoinSet;

use super::chat::is_of_chat;
use super::standing::Others;
use super::store::Store;
use super::watcher::{Changes, Watcher};
use super::{Companion, Identity, Shared, editor, files, ignore_files};
use crate::places::Places;
use crate::running::Record;
use crate::settings::Settings;

/// How long the agents of restored reviews have to come back. They try again after one second, and twice more.
const RETURN_TIME: Duration = Duration::from_secs(30);

/// How often a file that is removed again and again is written in one go.
const ATTEMPTS: usize = 5;

/// How long a file must not have changed to count as written.
const QUIET: Duration = Duration::from_millis(80);
/// How long to wait for that.
const NEVER_QUIET: Duration = Duration::from_secs(2);

/// What can be chosen about a companion.
#[derive(Debug, Default)]
pub struct Options {
    /// The folders of the workspace.
    pub workspace: Vec<PathBuf>,
    /// The short name that agents are given.
    pub name: Option<String>,
    /// The name that agents show.
    pub display_name: Option<String>,
    /// The editor's process.
    pub pid: Option<u32>,
}

/// A companion that serves.
pub struct Running {
    companion: Shared,
    server: alongside_mcp::Server,
    page: PageServer,
    announcement: Announcement,
    record: Record,
    tasks: JoinSet<()>,
    editor: Option<u32>,
}

/// What a script is told when the companion is ready.
#[derive(Debug, Serialize)]
pub struct Ready {
    port: u16,
    pid: u32,
    workspace: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Running {
    /// Starts a companion and announces it.
    pub async fn start(options: Options) -> Result<Self> {
        let places = Places::of_user()?;
        let environment = Environment::current();
        let workspace = options
            .workspace
            .iter()
            .map(|folder| real_directory(folder))
            .collect::<Result<Vec<_>>>()?;
        let settings = Settings::load(&places.settings(), &workspace)?;
        let privacy = settings.privacy(&workspace, &ignore_files())?;
        let identity = identity(&options, &settings);

        let store = Store::open(&places, &identity.name, &workspace)?;
        let former = store.former_agents();
        let companion = Arc::new_cyclic(|me| {
            let (workspace, places) = (workspace.clone(), places.clone());
            Companion::new(me.clone(), workspace, places, settings, identity.clone(), store)
        });
        let (server, token) = listen(&companion, former).await?;
        // Nobody can have connected yet who would have to be told something: the token is not written down before this.
        let _ = companion.agents.set(server.agents());
        companion.store.remember_agents(server.port(), &token);
        companion.with_core(|core, _| core.set_privacy(privacy));
        let mut restored = companion.store.restore();
        // A child has ended with the companion that it belonged to: nobody waits for these.
        for review in restored.extract_if(.., |review| is_of_chat(&review.session)) {
            companion.store.forget(review.id);
        }
        companion.with_core(|core, now| restored.into_iter().for_each(|review| core.restore_review(now, review)));

        let people = websocket::Listener::bind()
            .await
            .context("cannot listen on a loopback port for front ends")?;
        let people_token = new_token()?;
        let page = serve_page(&companion).await?;
        let mut announcement = Announcement {
            port: server.port(),
            token,
            workspace,
            name: identity.name,
            display_name: identity.display_name,
            pid: identity.pid,
            last_use: companion.standing.last_use(),
            is_first: false,
        };
        let mut record = Record::write(&places, &announcement, people.port(), &people_token)?;
        let (_, others) = companion.find_place(&mut announcement, &mut record);
        let files = DiscoveryFiles::write(&environment, &announcement)?;
        note_announced(&companion, announcement.port, &files);

        let mut tasks = JoinSet::new();
        tasks.spawn(people.serve(companion.clone(), people_token));
        tasks.spawn(keep_deadlines(companion.clone()));
        tasks.spawn(files::keep_files(companion.clone()));
        tasks.spawn(companion.clone().listen_to_chat());
        tasks.spawn(companion.clone().resume_chat());
        tasks.spawn(keep_announced(
            companion.clone(),
            announcement.clone(),
            files,
            record.clone(),
            others,
        ));
        tasks.spawn({
            let companion = companion.clone();
            async move {
                tokio::time::sleep(RETURN_TIME).await;
                companion.with_core(|core, _| core.orphan_absent());
            }
        });
        Ok(Self {
            companion,
            server,
            page,
            announcement,
            record,
            tasks,
            editor: options.pid,
        })
    }

    pub fn companion(&self) -> &Shared {
        &self.companion
    }

    pub fn announcement(&self) -> &Announcement {
        &self.announcement
    }

    /// Where commands find it.
    pub fn record(&self) -> &Record {
        &self.record
    }

    pub fn ready(&self) -> Ready {
        Ready {
            port: self.announcement.port,
            pid: std::process::id(),
            workspace: self.announcement.workspace.clone(),
            files: self.companion.announced().files,
        }
    }

    /// Waits until somebody says stop or the editor has exited.
    pub async fn stopped(&self) {
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

    /// Ends the companion in good order.
    pub async fn end(mut self) {
        // The discovery files go with the task that keeps them.
        self.tasks.shutdown().await;
        self.record.remove();
        self.companion.with_core(|core, _| core.shut_down());
        self.companion.chat.end().await;
        tokio::join!(self.server.shutdown(), self.page.shutdown());
    }
}

async fn listen(companion: &Shared, former: Option<(u16, Secret)>) -> Result<(alongside_mcp::Server, Secret)> {
    if let Some((port, token)) = former {
        let config = alongside_mcp::Config {
            port: Some(port),
            ..alongside_mcp::Config::new(token.clone())
        };
        match alongside_mcp::Server::bind(config, companion.clone()).await {
            Ok(server) => return Ok((server, token)),
            Err(error) => tracing::info!(%error, port, "the previous port is in use"),
        }
    }
    let token = new_token()?;
    let server = alongside_mcp::Server::bind(alongside_mcp::Config::new(token.clone()), companion.clone())
        .await
        .context("cannot listen on a loopback port for agents")?;
    Ok((server, token))
}

/// Serves the built-in page, where it was before if that is free, so that open pages go on by themselves.
async fn serve_page(companion: &Shared) -> Result<PageServer> {
    if let Some((port, session)) = companion.store.former_page() {
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
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("cannot get random bytes from the system: {error}"))?;
    Ok(Secret::from_bytes(bytes))
}

fn identity(options: &Options, settings: &Settings) -> Identity {
    let name = options
        .name
        .clone()
        .or_else(|| settings.name.clone())
        .unwrap_or_else(|| "alongside".to_owned());
    let display_name = options.display_name.clone().or_else(|| settings.display_name.clone());
    // A name that was given stands for itself before our own does.
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

fn real_directory(folder: &std::path::Path) -> Result<PathBuf> {
    let real = folder
        .canonicalize()
        .with_context(|| format!("cannot use the workspace folder {}", folder.display()))?;
    if real.is_dir() {
        Ok(real)
    } else {
        Err(anyhow!("the workspace folder {} is not a directory", folder.display()))
    }
}

fn note_announced(companion: &Companion, port: u16, files: &DiscoveryFiles) {
    let mut announced = companion.announced.lock();
    announced.port = port;
    announced.files = files.paths().map(std::path::Path::to_owned).collect();
    announced.problems = files.problems().iter().map(ToString::to_string).collect();
}

/// Lets the core do what has fallen due.
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

/// Keeps the discovery files true: when the workspace changes, when another companion is used or ends, and when somebody
/// removes them while we live. Dropping this removes them.
async fn keep_announced(
    companion: Shared,
    mut announcement: Announcement,
    mut files: DiscoveryFiles,
    mut record: Record,
    known: Vec<u32>,
) {
    let mut others = Others::default();
    others.watch(known);
    let mut watcher = Watcher::new();
    let changes = watcher.changes.clone();
    // Somebody may have been faster than the first watch.
    changes.removed.notify_one();
    loop {
        watcher.watch(directories(&companion, &announcement, &files), reviewed(&companion));
        tokio::select! {
            () = companion.wake.workspace.notified() => {
                announcement.workspace = companion.workspace();
                record.set_workspace(&announcement.workspace);
                companion.refresh_privacy();
                let (_, pids) = companion.find_place(&mut announcement, &mut record);
                others.watch(pids);
            }
            () = changes.removed.notified() => {
                // Looked at again after watching: what was removed before the new watch began would go unnoticed. A
                // place that cannot be written is left until the next event.
                for _ in 0..ATTEMPTS {
                    if files.missing().is_empty() {
                        break;
                    }
                    tracing::warn!("a discovery file was removed by another process; recreating it");
                    rewrite(&companion, &announcement, &mut files);
                    watcher.forget();
                    watcher.watch(directories(&companion, &announcement, &files), reviewed(&companion));
                }
                // What was removed or put in its place may be a record.
                let (is_new, pids) = companion.find_place(&mut announcement, &mut record);
                others.watch(pids);
                if !is_new {
                    continue;
                }
            }
            () = others.ended() => {
                changes.removed.notify_one();
                continue;
            }
            () = companion.wake.used.notified() => {
                changes.removed.notify_one();
                continue;
            }
            () = changes.rules.notified() => {
                companion.refresh_privacy();
                continue;
            }
            // Watched first, then looked at once more: what happened in between is not missed.
            () = companion.wake.reviews.notified() => {
                watcher.watch(directories(&companion, &announcement, &files), reviewed(&companion));
                settled(&changes).await;
                companion.refresh_bases();
                continue;
            }
            () = companion.wake.bases.notified() => {
                companion.refresh_bases();
                continue;
            }
            () = changes.bases.notified() => {
                settled(&changes).await;
                companion.refresh_bases();
                continue;
            }
        }
        rewrite(&companion, &announcement, &mut files);
    }
}

/// Waits until a file that is being written is quiet. Many programs empty a file before they fill it, and merging with an
/// empty file in between would throw the draft into conflict.
async fn settled(changes: &Changes) {
    let writing = async { while tokio::time::timeout(QUIET, changes.bases.notified()).await.is_ok() {} };
    // A file that is never quiet is looked at all the same.
    let _ = tokio::time::timeout(NEVER_QUIET, writing).await;
}

fn rewrite(companion: &Companion, announcement: &Announcement, files: &mut DiscoveryFiles) {
    if let Err(error) = files.rewrite(announcement) {
        tracing::error!(%error, "cannot update the discovery files; agents may not find this companion");
    }
    note_announced(companion, announcement.port, files);
}

/// The files of the reviews that wait.
fn reviewed(companion: &Companion) -> BTreeSet<PathBuf> {
    companion
        .core
        .lock()
        .reviews()
        .map(|review| PathBuf::from(&*review.path))
        .collect()
}

fn directories(companion: &Companion, announcement: &Announcement, files: &DiscoveryFiles) -> BTreeSet<PathBuf> {
    let discovery = files.directories().into_iter().map(std::path::Path::to_owned);
    let settings = Some(companion.places.configuration.clone()).filter(|directory| directory.is_dir());
    discovery
        .chain([companion.places.companions()])
        .chain(announcement.workspace.iter().cloned())
        .chain(settings)
        .collect()
}

//! The companion: the core with the world around it.
//!
//! Every input, from an agent, a front end or a timer, goes through `Companion::with_core`, which runs the effects in
//! order before the next input reaches the core. Nothing slow happens there: agents and front ends have outboxes, files
//! are written by a thread, open files are looked up before (`files`), and diffs are computed before (`drafts`).

mod agents;
mod announcer;
mod base;
mod buffers;
mod chat;
mod clock;
pub mod companion_record;
pub mod connect_target;
#[cfg(test)]
mod core_lock_tests;
pub mod doctor;
mod drafts;
mod editor;
mod files;
mod front_ends;
mod jobs;
mod lifecycle;
pub mod places;
mod ranking;
mod review_store;
pub mod settings;
mod store;
mod watcher;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};

use alongside_core::dialect::DIALECTS;
use alongside_core::draft::{Deadline, DraftChange};
use alongside_core::{Core, Effect, Now, Review, ReviewId, SessionKey};
use alongside_discovery::Environment;
use alongside_page::LoginLinks;
use alongside_protocol::{
    AgentSummary, AgentsChanged, Empty, Notification, PageTarget, PageView, ReviewClosed, ReviewEdited, ReviewRebased,
    ReviewSummary, SharedNotification,
};
use anyhow::Context;
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};

use crate::places::Places;
use crate::settings::Settings;
use buffers::Buffers;
use clock::Clock;
use files::Lookups;
use jobs::Jobs;
use ranking::Ranking;
use store::Store;

pub use editor::ended as process_ended;
pub use lifecycle::{Options, ReadyLine, RunningCompanion};

/// How many notifications a front end may be behind before it has to fetch everything again.
const CHANNEL_CAPACITY: usize = 128;
/// A larger edit is not broadcast; front ends fetch it.
const MAX_NOTIFICATION_BYTES: usize = 1024 * 1024;

/// One running companion.
pub struct Companion {
    /// Ourselves, for those that we start.
    me: Weak<Companion>,
    core: Mutex<Core>,
    clock: Clock,
    /// Set once the agents' port listens, before anybody can connect.
    agents: OnceLock<alongside_mcp::AgentHub>,
    notifications: broadcast::Sender<SharedNotification>,
    /// Makes links to the page; set once the page is served.
    page_links: OnceLock<LoginLinks>,
    store: Store,
    buffers: Buffers,
    host: Arc<Host>,
    lookups: Lookups,
    full_lookup: Arc<tokio::sync::Mutex<()>>,
    /// Reviews whose file is being read.
    base_reads: Jobs<ReviewId>,
    places: Places,
    chat: chat::Chat,
    settings: Mutex<Settings>,
    identity: Identity,
    environment: Environment,
    announce_report: Mutex<AnnounceReport>,
    ranking: Ranking,
    wake: WakeSignals,
    /// Set with the core locked, before pending reviews are rejected: no review is opened after that.
    is_stopping: AtomicBool,
}

/// Who the companion is for.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The short name that agents are given.
    pub name: String,
    /// The name that agents show.
    pub display_name: String,
    /// The editor's process, or our own.
    pub pid: u32,
}

impl Identity {
    /// Whether there is an editor at all.
    fn has_editor(&self) -> bool {
        self.pid != std::process::id()
    }
}

/// What was announced, and what could not be.
#[derive(Clone, Debug, Default)]
pub struct AnnounceReport {
    pub port: u16,
    pub files: Vec<PathBuf>,
    pub problems: Vec<String>,
}

/// What the background tasks wait for; each has one task.
#[derive(Default)]
struct WakeSignals {
    /// The core's next deadline may have changed.
    deadline: Notify,
    /// The workspace's folders changed.
    workspace: Notify,
    /// The order of companions may have changed.
    ranking: Notify,
    /// Settings and ignore files have to be read again.
    rules: Notify,
    /// Reviews were opened or closed, so other files must be watched.
    reviews: Notify,
    /// A file under review may have changed.
    bases: Notify,
    /// Other files are open, or they may lead elsewhere on disk.
    files: Notify,
    /// A front end asked the companion to stop.
    stop: Notify,
}

/// What the companion needs from the machine and must not do under the core's lock. Tests replace it.
struct Host {
    /// The file that a path leads to, links followed; `None` if there is none.
    resolve: Box<Resolve>,
    /// Called right before a diff.
    diff_deadline: Box<dyn Fn() -> Deadline + Send + Sync>,
}

type Resolve = dyn Fn(&Path) -> Option<PathBuf> + Send + Sync;

impl Default for Host {
    fn default() -> Self {
        Self {
            resolve: Box::new(files::real_file),
            diff_deadline: Box::new(|| Some(clock::diff_deadline())),
        }
    }
}

impl Companion {
    fn new(
        me: Weak<Self>,
        workspace: Vec<PathBuf>,
        places: Places,
        environment: Environment,
        settings: Settings,
        identity: Identity,
        store: Store,
    ) -> Self {
        Self {
            me,
            chat: chat::Chat::new(&places, &workspace, store.slot(), Arc::clone(store.writer())),
            core: Mutex::new(Core::new(workspace)),
            clock: Clock::start(),
            agents: OnceLock::new(),
            notifications: broadcast::channel(CHANNEL_CAPACITY).0,
            page_links: OnceLock::new(),
            store,
            buffers: Buffers::default(),
            host: Arc::default(),
            lookups: Lookups::default(),
            full_lookup: Arc::default(),
            base_reads: Jobs::default(),
            places,
            settings: Mutex::new(settings),
            ranking: Ranking::new(identity.has_editor()),
            identity,
            environment,
            announce_report: Mutex::default(),
            wake: WakeSignals::default(),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// Everything that happens from now on, for front ends and the terminal.
    pub fn subscribe(&self) -> broadcast::Receiver<SharedNotification> {
        self.notifications.subscribe()
    }

    /// Whether the person wants the page to be opened at the start.
    pub fn opens_page(&self) -> bool {
        self.settings.lock().open_page
    }

    /// A link that opens the page in a browser, once.
    pub fn page_link(&self, target: PageTarget) -> anyhow::Result<String> {
        let link = self.page_links()?.create(view(target));
        link.context("cannot create a link to the page")
    }

    /// A private file that redirects to such a link.
    pub async fn page_file(&self, target: PageTarget) -> anyhow::Result<PathBuf> {
        let (links, directory) = (self.page_links()?, self.places.links());
        let create = async {
            let private = directory.clone();
            tokio::task::spawn_blocking(move || places::private_directory(&private)).await??;
            anyhow::Ok(links.create_file(directory.clone(), view(target)).await?)
        };
        create
            .await
            .with_context(|| format!("cannot create a file in {}", directory.display()))
    }

    fn page_links(&self) -> anyhow::Result<&LoginLinks> {
        self.page_links.get().context("this companion does not serve a page")
    }

    pub fn announce_report(&self) -> AnnounceReport {
        self.announce_report.lock().clone()
    }

    pub fn workspace(&self) -> Vec<PathBuf> {
        self.core.lock().workspace().to_vec()
    }

    /// Runs an input of the core, and then its effects. Both must be quick: everything else waits.
    fn with_core<R>(&self, input: impl FnOnce(&mut Core, Now) -> R) -> R {
        let mut core = self.core.lock();
        let before = core.next_deadline();
        let result = input(&mut core, self.clock.now());
        for effect in core.take_effects() {
            self.carry_out(&core, effect);
        }
        if core.next_deadline() != before {
            self.wake.deadline.notify_one();
        }
        result
    }

    fn carry_out(&self, core: &Core, effect: Effect) {
        match effect {
            Effect::PublishContext(context) => {
                if let Some(agents) = self.agents.get() {
                    agents.publish_context(&context);
                }
                self.broadcast(Notification::ContextChanged(context));
            }
            Effect::SendDecision {
                session: session @ SessionKey::Chat(_),
                decision,
            } => {
                self.chat.waiting.tell(&session, decision);
            }
            Effect::SendDecision {
                session: SessionKey::Mcp(session),
                decision,
            } => {
                let known = self
                    .agents
                    .get()
                    .is_some_and(|agents| agents.notify(&session, decision));
                if !known {
                    tracing::warn!(%session, "dropping a decision: its session no longer exists");
                }
            }
            Effect::ReviewOpened(id) => {
                if let Ok(review) = core.review(id) {
                    self.store.save(review.clone());
                    self.wake.reviews.notify_one();
                    self.broadcast(Notification::ReviewOpened(ReviewSummary::from(review)));
                }
            }
            Effect::ReviewChanged(id) => {
                if let Ok(review) = core.review(id) {
                    self.store.save(review.clone());
                    self.broadcast(Notification::ReviewChanged(ReviewSummary::from(review)));
                }
            }
            Effect::ReviewEdited { id, change } => {
                if let Ok(review) = core.review(id) {
                    self.store.save(review.clone());
                    self.broadcast(edited(review, change));
                }
            }
            Effect::ReviewRebased { id, conflicts } => {
                self.broadcast(Notification::ReviewRebased(ReviewRebased { review: id, conflicts }));
            }
            Effect::ReviewClosed { id, path, outcome } => {
                self.store.forget(id);
                self.wake.reviews.notify_one();
                self.broadcast(Notification::ReviewClosed(ReviewClosed {
                    review: id,
                    path,
                    outcome,
                }));
            }
            Effect::AgentsChanged => {
                self.broadcast(Notification::AgentsChanged(AgentsChanged {
                    agents: summaries(core),
                }));
            }
            Effect::WorkspaceChanged => self.wake.workspace.notify_one(),
            Effect::FilesChanged => self.wake.files.notify_one(),
        }
    }

    fn broadcast(&self, notification: Notification) {
        // Fails only while no front end is connected.
        let _ = self.notifications.send(notification.into());
    }

    /// Reads settings and ignore files again; errors are logged, and the previous rules stay.
    fn refresh_privacy(&self) {
        let workspace = self.workspace();
        let settings = match Settings::load(&self.places.settings(), &workspace) {
            Ok(settings) => settings,
            Err(error) => return tracing::error!(%error, "invalid settings; keeping the previous ones"),
        };
        match settings.privacy(&workspace, &ignore_files()) {
            Ok(privacy) => self.with_core(|core, _| core.set_privacy(privacy)),
            Err(error) => return tracing::error!(%error, "invalid settings; keeping the previous ones"),
        }
        *self.settings.lock() = settings;
    }
}

fn view(target: PageTarget) -> alongside_page::View {
    match target.view {
        PageView::Reviews => alongside_page::View::Reviews,
        PageView::Chat => alongside_page::View::Chat,
    }
}

fn summaries(core: &Core) -> Vec<AgentSummary> {
    core.agents()
        .map(|agent| AgentSummary {
            identity: agent.identity(),
            session: agent.session.clone(),
            listening: agent.listening,
            since: agent.since_unix_milliseconds,
        })
        .collect()
}

/// The notification of an edit. Every slow front end holds a copy, so a very large one is fetched instead.
fn edited(review: &Review, change: DraftChange) -> Notification {
    if change
        .text
        .as_ref()
        .is_some_and(|text| text.insert.len() > MAX_NOTIFICATION_BYTES)
    {
        return Notification::Resync(Empty {});
    }
    Notification::ReviewEdited(ReviewEdited {
        review: review.id,
        version: review.version,
        changes: change.text.into_iter().collect(),
        hunks: change.hunks,
    })
}

/// The names of the files in which a workspace says what agents shall not see.
fn ignore_files() -> [&'static str; DIALECTS.len()] {
    DIALECTS.map(|dialect| dialect.ignore_file)
}

/// What `Arc<Companion>` is called where it is shared.
pub type Shared = Arc<Companion>;

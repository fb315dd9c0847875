//! The companion: the core with the world around it.
//!
//! Every input, from an agent, a front end or a timer, goes through `commit`, which writes what it changed to the journal and
//! then runs its effects, in order. Nothing slow happens with the core locked: agents and front ends have outboxes, the
//! journal is written after it (`journal`), open files are looked up before (`files`), and diffs are computed before
//! (`drafts`).

mod agents;
mod announcer;
mod base;
mod base_threads;
mod bases;
mod buffers;
mod chat;
mod clock;
mod commit;
pub mod companion_record;
pub mod connect_target;
#[cfg(test)]
mod core_lock_tests;
pub mod demo;
mod departure;
mod diagnostics;
pub mod doctor;
mod drafts;
mod editor;
mod files;
mod final_newline;
mod front_ends;
mod hooks;
mod jobs;
mod journal;
mod lifecycle;
pub mod memory;
mod mentions;
pub mod places;
mod ranking;
pub mod settings;
mod short_work;
pub mod sockets;
#[cfg(test)]
mod test_companion;
mod unreviewed;
mod waiting;
mod watcher;
mod writer;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};

use alongside_core::diagnostics::FrontEndId;
use alongside_core::dialect::DIALECTS;
use alongside_core::draft::Deadline;
use alongside_core::{Base, Core, ReviewId};
use alongside_discovery::Environment;
use alongside_page::LoginLinks;
use alongside_protocol::{AgentSummary, Notification, PageTarget, PageView, ProblemsChanged, SharedNotification};
use anyhow::Context;
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast, watch};

use crate::places::Places;
use crate::settings::Settings;
use crate::unreviewed::Unreviewed;
use crate::waiting::Waiting;
use base_threads::BaseThreads;
use buffers::Buffers;
use clock::Clock;
use demo::DemoSlot;
use departure::Departure;
use files::Lookups;
use hooks::Hooks;
use jobs::Jobs;
use journal::{Journal, Slot};
use ranking::Ranking;
use short_work::ShortWork;

pub use base::real_path;
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
    /// What is announced to agents, set as soon as they can connect.
    own_announcement: OnceLock<alongside_discovery::Announcement>,
    /// The connected front ends that show files.
    openers: Mutex<BTreeSet<FrontEndId>>,
    /// Serves the context to Codex CLI.
    codex: alongside_mcp::codex::Provider,
    demo: DemoSlot,
    notifications: broadcast::Sender<SharedNotification>,
    /// Makes links to the page; set once the page is served.
    page_links: OnceLock<LoginLinks>,
    journal: Journal,
    buffers: Buffers,
    host: Arc<Host>,
    lookups: Lookups,
    full_lookup: Arc<tokio::sync::Mutex<()>>,
    /// Reviews whose file is being read.
    base_reads: Jobs<ReviewId>,
    base_threads: BaseThreads,
    short_work: ShortWork,
    places: Places,
    chat: chat::Chat,
    /// The proposals whose agents wait for the decision.
    waiting: Waiting,
    hooks: Hooks,
    unreviewed: Unreviewed,
    settings: Mutex<Settings>,
    identity: Identity,
    environment: Environment,
    /// The workspace folders as they were named, with links.
    logical_folders: Mutex<Vec<PathBuf>>,
    /// Directories in which agents were started that connect only in a folder itself.
    entered: Mutex<Vec<PathBuf>>,
    announce_report: Mutex<AnnounceReport>,
    ranking: Ranking,
    wake: WakeSignals,
    departure: Departure,
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
    /// Agents have to be sent changed diagnostics.
    diagnostics: Notify,
    /// The journal cannot be written, or can be again.
    journal: Notify,
    /// Sessions or reviews ended, so memory may be free.
    memory: Notify,
    /// A front end asked the companion to stop.
    stop: Notify,
}

/// What the companion needs from the machine and must not do under the core's lock or on an async worker. Tests replace it.
struct Host {
    /// The file that a path leads to, links followed; `None` if there is none.
    resolve: Box<Resolve>,
    /// The same for a directory.
    resolve_folder: Box<Resolve>,
    /// The file of a proposal, unless it has unsaved text.
    read_base: Box<ReadBase>,
    /// Called right before a diff.
    diff_deadline: Box<dyn Fn() -> Deadline + Send + Sync>,
}

type ReadBase = dyn Fn(&str, Option<Arc<str>>) -> Result<Base, String> + Send + Sync;

type Resolve = dyn Fn(&Path) -> Option<PathBuf> + Send + Sync;

impl Default for Host {
    fn default() -> Self {
        Self {
            resolve: Box::new(files::real_file),
            resolve_folder: Box::new(files::real_folder),
            read_base: Box::new(base::read),
            diff_deadline: Box::new(|| Some(clock::diff_deadline())),
        }
    }
}

/// What is restored from the previous companion in a slot.
struct Parts {
    journal: Journal,
    chat: chat::Chat,
    departure: Departure,
}

impl Parts {
    /// Blocks.
    fn open(places: &Places, workspace: &[PathBuf], slot: &Slot) -> anyhow::Result<Self> {
        Ok(Self {
            journal: Journal::open(slot)?,
            chat: chat::Chat::new(places, workspace, slot)?,
            departure: Departure::new(slot.mark.clone()),
        })
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
        parts: Parts,
    ) -> Self {
        let short_work = ShortWork::default();
        Self {
            me,
            chat: parts.chat,
            waiting: Waiting::default(),
            hooks: Hooks::default(),
            unreviewed: Unreviewed::default(),
            openers: Mutex::default(),
            codex: alongside_mcp::codex::Provider::new(workspace.clone()),
            core: Mutex::new(Core::new(workspace)),
            clock: Clock::start(),
            agents: OnceLock::new(),
            own_announcement: OnceLock::new(),
            demo: DemoSlot::default(),
            notifications: broadcast::channel(CHANNEL_CAPACITY).0,
            page_links: OnceLock::new(),
            journal: parts.journal,
            buffers: Buffers::default(),
            host: Arc::default(),
            lookups: Lookups::default(),
            full_lookup: Arc::default(),
            base_reads: Jobs::default(),
            base_threads: BaseThreads::new(short_work.clone()),
            short_work,
            places,
            settings: Mutex::new(settings),
            ranking: Ranking::new(identity.has_editor()),
            identity,
            environment,
            logical_folders: Mutex::default(),
            entered: Mutex::default(),
            announce_report: Mutex::default(),
            wake: WakeSignals::default(),
            departure: parts.departure,
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

    /// How Codex CLI is served.
    pub fn codex_state(&self) -> watch::Receiver<alongside_mcp::codex::State> {
        self.codex.state()
    }

    pub fn workspace(&self) -> Vec<PathBuf> {
        self.core.lock().workspace().to_vec()
    }

    fn broadcast(&self, notification: Notification) {
        // Fails only while no front end is connected.
        let _ = self.notifications.send(notification.into());
    }

    /// The workspace folders under other paths than their own, as the user or the editor names them. Blocks.
    pub fn folder_aliases(&self) -> Vec<PathBuf> {
        let workspace = self.workspace();
        let logical = self.logical_folders.lock().clone();
        let is_alias = |folder: &PathBuf| {
            !workspace.contains(folder)
                && alongside_platform::path::real(folder).is_ok_and(|real| workspace.contains(&real))
        };
        logical.into_iter().filter(is_alias).collect()
    }

    /// Notifies front ends of what is wrong now.
    fn report_problems(&self) {
        let problems = self.problems();
        self.broadcast(Notification::ProblemsChanged(ProblemsChanged { problems }));
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = self.announce_report().problems;
        problems.extend(self.journal.problems());
        problems.extend(self.unreviewed.problems());
        problems.extend(self.codex.state().borrow().problem.clone());
        problems.extend(
            self.chat
                .writer
                .problem()
                .borrow()
                .sentence
                .as_deref()
                .map(str::to_owned),
        );
        problems
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

/// A hook counts as an agent only if its agent has no connection: otherwise one agent would be two.
fn summaries(core: &Core) -> Vec<AgentSummary> {
    let is_connected = |name: &str| {
        let mut agents = core.agents().filter(|agent| !agent.session.is_hook());
        agents.any(|agent| agent.identity().name == name)
    };
    core.agents()
        .filter(|agent| !agent.session.is_hook() || !is_connected(&agent.identity().name))
        .map(|agent| AgentSummary {
            identity: agent.identity(),
            session: agent.session.clone(),
            listening: agent.listening,
            since: agent.since_unix_milliseconds,
        })
        .collect()
}

/// The names of the files in which a workspace says what agents shall not see.
fn ignore_files() -> Vec<&'static str> {
    DIALECTS.iter().filter_map(|dialect| dialect.ignore_file).collect()
}

/// What `Arc<Companion>` is called where it is shared.
pub type Shared = Arc<Companion>;

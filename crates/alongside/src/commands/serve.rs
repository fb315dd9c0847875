//! `alongside serve`: runs a companion and prints what happens.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use alongside_core::{ReviewId, ReviewOutcome};
use alongside_discovery::{Environment, dials_the_containers_host};
use alongside_protocol::{AgentSummary, Notification, PageTarget, ReviewSummary, SharedNotification};
use anyhow::{Context, Result};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::command_line::{Common, Serve};
use crate::commands::page::open_in_browser;
use crate::commands::review;
use crate::output::Output;
use crate::printable::printable_line;
use crate::signals::ShutdownSignals;
use alongside_companion::companion_record::{self, CompanionRecord};
use alongside_companion::places::Places;
use alongside_companion::{Options, RunningCompanion};

pub(crate) async fn run(common: &Common, serve: Serve) -> Result<ExitCode> {
    let output = common.output();
    let mut signals = ShutdownSignals::register().context("cannot install signal handlers")?;
    let open = serve.open;
    // In an editor's terminal, or for a program, only what happens is printed.
    let shows_reviewer = !serve.plain && !common.json && serve.pid.is_none() && review::is_interactive();
    let others = others(common)?;
    let running = RunningCompanion::start(options(common, serve)).await?;
    let page = running.companion().page_link(PageTarget::default())?;
    output.answer(&running.ready_line(), || greeting(&running, &page, &others));
    if open || running.companion().opens_page() {
        let file = running.companion().page_file(PageTarget::default()).await;
        if let Err(error) = file.and_then(|file| open_in_browser(&file)) {
            output.news(&format!("{error:#}"));
        }
    }
    if shows_reviewer {
        let stopping = async {
            tokio::select! {
                () = signals.received() => {}
                () = running.stop_requested() => {}
            }
        };
        let shown = review::show_own(&running, stopping).await;
        output.news("Shutting down. Pending changes are rejected.");
        running.stop().await;
        return shown.map(|()| ExitCode::SUCCESS);
    }
    if !common.json {
        let printer = EventPrinter::new(output, running.companion().workspace());
        let notifications = running.companion().subscribe();
        // A thread of its own, because a terminal may stop reading. It ends with the process.
        std::thread::spawn(move || printer.run(notifications));
    }
    tokio::select! {
        () = signals.received() => {}
        () = running.stop_requested() => {}
    }
    output.news("Shutting down. Pending changes are rejected.");
    running.stop().await;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn options(common: &Common, serve: Serve) -> Options {
    let workspace = if common.workspace.is_empty() {
        vec![PathBuf::from(".")]
    } else {
        common.workspace.clone()
    };
    Options {
        workspace,
        name: serve.name,
        display_name: serve.display_name,
        pid: serve.pid,
        ..Options::default()
    }
}

/// The companions already running for this directory.
fn others(common: &Common) -> Result<Vec<CompanionRecord>> {
    let directory = common.directory();
    let directory = alongside_platform::path::real_or_same(&directory);
    let all = companion_record::all(&Places::of_user()?).into_iter();
    Ok(all.filter(|record| record.serves(&directory)).collect())
}

fn greeting(running: &RunningCompanion, page: &str, others: &[CompanionRecord]) -> String {
    let announcement = running.announcement();
    let folders: Vec<String> = announcement
        .workspace
        .iter()
        .map(|folder| printable_line(&folder.to_string_lossy()))
        .collect();
    let mut text = format!(
        "alongside {} is running for {}\n\n\
         Start an agent in another terminal, in this directory: `claude`, `codex`,\n\
         `copilot`, `gemini`, `opencode` or `qwen`. It connects automatically, or after\n\
         `/ide`. Review its changes here (one-time link):\n\n  \
         {page}\n\n  \
         alongside context focus FILE   tell agents what you are looking at\n  \
         alongside diff list            list pending changes\n  \
         alongside doctor               show what each agent needs to connect\n\n\
         Press Ctrl-C to stop.\n",
        env!("CARGO_PKG_VERSION"),
        folders.join(" and "),
    );
    let environment = Environment::current();
    for exposure in environment.exposures() {
        text.push_str(&format!("\nWarning: {exposure}\n"));
    }
    if dials_the_containers_host(&environment) {
        text.push_str(
            "\nYou are in a container, where Gemini CLI looks for its companion on the host.\nStart it with `alongside run gemini`, or set REMOTE_CONTAINERS=1 before running\n`gemini`.\n",
        );
    }
    for other in others {
        let who = format!("{} (pid {})", printable_line(&other.display_name), other.editor_pid);
        let rule = if other.has_editor() && announcement.pid == std::process::id() {
            "Agents connect to that one, because it belongs to an editor."
        } else {
            "Agents connect to the most recently used one, which is now this one."
        };
        text.push_str(&format!(
            "\n{who} is also running for this directory;\neach has its own agents and reviews.\n{rule}\nRun `alongside status` to see both.\n"
        ));
    }
    for problem in running.companion().announce_report().problems {
        text.push_str(&format!("\nWarning: {problem}\n"));
    }
    text.push('\n');
    text
}

struct EventPrinter {
    output: Output,
    workspace: Vec<PathBuf>,
    agents: Vec<AgentSummary>,
    /// Of pending reviews: only a new revision is printed.
    revisions: BTreeMap<ReviewId, u32>,
}

impl EventPrinter {
    fn new(output: Output, workspace: Vec<PathBuf>) -> Self {
        Self {
            output,
            workspace,
            agents: Vec::new(),
            revisions: BTreeMap::new(),
        }
    }

    fn run(mut self, mut notifications: broadcast::Receiver<SharedNotification>) {
        loop {
            match notifications.blocking_recv() {
                Ok(notification) => self.print(&notification),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }

    fn print(&mut self, notification: &Notification) {
        match notification {
            Notification::ReviewOpened(review) => {
                self.revisions.insert(review.id, review.revision);
                self.print_review(review, "proposed a change to");
            }
            Notification::ReviewChanged(review) => {
                let previous = self.revisions.insert(review.id, review.revision);
                if previous.is_some_and(|previous| previous < review.revision) {
                    self.print_review(review, "revised its change to");
                }
            }
            Notification::ReviewClosed(closed) => {
                self.revisions.remove(&closed.review);
                let path = self.display_name(&closed.path);
                self.output
                    .news(&format!("Review {} ({path}) was {}.", closed.review, closed.outcome));
                if closed.outcome == ReviewOutcome::Accepted {
                    self.output.news("  The agent is writing the file.");
                }
            }
            Notification::AgentsChanged(now) => {
                let is_in = |list: &[AgentSummary], agent: &AgentSummary| {
                    list.iter().any(|other| other.session == agent.session)
                };
                for agent in now.agents.iter().filter(|agent| !is_in(&self.agents, agent)) {
                    self.output
                        .news(&format!("{} connected.", printable_line(&agent.identity.to_string())));
                }
                for agent in self.agents.iter().filter(|agent| !is_in(&now.agents, agent)) {
                    self.output.news(&format!(
                        "{} disconnected.",
                        printable_line(&agent.identity.to_string())
                    ));
                }
                self.agents.clone_from(&now.agents);
            }
            Notification::ReviewRebased(rebased) => {
                let what = match rebased.conflicts {
                    0 => "the change still applies".to_owned(),
                    count => format!("{count} of its hunks now conflict"),
                };
                self.output.news(&format!(
                    "The file under review {} changed on disk; {what}.",
                    rebased.review
                ));
            }
            Notification::ProblemsChanged(now) => {
                for problem in &now.problems {
                    self.output.news(&format!("Problem: {}.", printable_line(problem)));
                }
                if now.problems.is_empty() {
                    self.output.news("The problem is solved.");
                }
            }
            Notification::ReviewEdited(_)
            | Notification::ContextChanged(_)
            | Notification::ChatEvent(_)
            | Notification::ChatChanged(_)
            | Notification::FileShow(_)
            | Notification::Resync(_) => {}
        }
    }

    fn print_review(&self, review: &ReviewSummary, what: &str) {
        let (agent, path) = (
            printable_line(&review.agent_identity().to_string()),
            self.display_name(&review.path),
        );
        let (id, size) = (review.id, review.size);
        self.output.news(&format!(
            "{agent} {what} {path} (+{} −{}).\n  \
             alongside diff show {id} · alongside diff accept {id} · alongside diff reject {id}",
            size.added, size.removed,
        ));
    }

    /// A path relative to its workspace folder.
    fn display_name(&self, path: &str) -> String {
        let inside = self
            .workspace
            .iter()
            .find_map(|folder| Path::new(path).strip_prefix(folder).ok());
        printable_line(&inside.map_or_else(|| path.to_owned(), |inside| inside.display().to_string()))
    }
}

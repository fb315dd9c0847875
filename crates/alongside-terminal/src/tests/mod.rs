//! The whole reviewer against a companion's own drafts, without a terminal.

mod behavior;
mod chat;
mod hostile;
mod snapshots;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use alongside_core::difference::ChangeSize;
use alongside_core::draft::Draft;
use alongside_core::{ReviewId, ReviewOutcome, TextChange};
use alongside_protocol::{
    AgentsChanged, Empty, ErrorKind, Notification, Request, RequestError, Response, ReviewClosed, ReviewDecided,
    ReviewEdited, ReviewSummary, ReviewTexts, ShownContext, Status, Version,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

use crate::highlight::Job;
use crate::message::{Action, LinkEvent, Message};
use crate::model::{Model, Options};
use crate::theme::{Background, ColorDepth, Theme};

/// A reviewer and a companion that responds with real drafts.
struct Bench {
    model: Model,
    now: Duration,
    drafts: BTreeMap<u64, (ReviewSummary, Draft)>,
    /// What the companion was asked to decide.
    decided: Vec<Request>,
    /// What the shell was asked for, other than requests and colors.
    actions: Vec<Action>,
    /// Whether requests reach the companion.
    is_online: bool,
    chat: Option<alongside_protocol::ChatState>,
    refuses_chat: bool,
    /// Whether lines get colors, which takes a while.
    highlights: bool,
    /// Lines that are waiting for colors, otherwise.
    jobs: Vec<Job>,
}

fn theme(depth: ColorDepth) -> Theme {
    Theme {
        depth,
        background: Background::Dark,
    }
}

impl Bench {
    fn new(width: u16, height: u16) -> Self {
        let options = Options {
            theme: theme(ColorDepth::Ansi16),
            owns_companion: false,
            starts_with_chat: false,
            id: "test".to_owned(),
        };
        let model = Model::new(options, vec![PathBuf::from("/home/me/project")], (width, height));
        Self {
            model,
            now: Duration::ZERO,
            drafts: BTreeMap::new(),
            decided: Vec::new(),
            actions: Vec::new(),
            is_online: true,
            chat: None,
            refuses_chat: false,
            highlights: false,
            jobs: Vec::new(),
        }
    }

    /// A connected reviewer.
    fn connected(width: u16, height: u16) -> Self {
        let mut bench = Self::new(width, height);
        bench.connect();
        bench
    }

    fn connect(&mut self) {
        self.is_online = true;
        let connected = LinkEvent::Connected {
            workspace: vec![PathBuf::from("/home/me/project")],
            version: "0.1.0".to_owned(),
        };
        self.apply(Message::Link(0, connected));
    }

    fn disconnect(&mut self) {
        self.is_online = false;
        let reason = "the companion closed the connection before responding".to_owned();
        self.apply(Message::Link(0, LinkEvent::Disconnected { reason }));
    }

    fn apply(&mut self, message: Message) {
        let mut actions = self.model.update(message, self.now);
        while !actions.is_empty() {
            let mut next = Vec::new();
            for action in actions {
                match action {
                    Action::Send(companion, request) => {
                        for event in self.respond(*request) {
                            next.extend(self.model.update(Message::Link(companion, event), self.now));
                        }
                    }
                    Action::Highlight(job) if !self.highlights => self.jobs.push(job),
                    Action::Highlight(job) => {
                        let marks = job.run();
                        next.extend(
                            self.model
                                .update(Message::Highlighted(Box::new((job, marks))), self.now),
                        );
                    }
                    other => self.actions.push(other),
                }
            }
            actions = next;
        }
    }

    fn notify(&mut self, notification: Notification) {
        self.apply(Message::Link(0, LinkEvent::Notification(Box::new(notification))));
    }

    /// Lets time pass.
    fn wait(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
        self.apply(Message::Tick);
    }

    fn press(&mut self, code: KeyCode) {
        self.apply(Message::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    }

    fn control(&mut self, letter: char) {
        self.apply(Message::Key(KeyEvent::new(
            KeyCode::Char(letter),
            KeyModifiers::CONTROL,
        )));
    }

    fn keys(&mut self, keys: &str) {
        for key in keys.chars() {
            self.press(KeyCode::Char(key));
        }
    }

    /// An agent proposes a change.
    fn propose(&mut self, id: u64, path: &str, base: &str, proposal: &str) {
        let draft = Draft::new(base, proposal, None);
        let summary = summary(id, path, base.is_empty(), &draft);
        self.drafts.insert(id, (summary.clone(), draft));
        self.notify(Notification::ReviewOpened(summary));
    }

    /// An open review that can be decided.
    fn open(&mut self, path: &str, base: &str, proposal: &str) {
        self.propose(1, path, base, proposal);
        self.wait(500);
    }

    fn draft(&self, id: u64) -> String {
        self.drafts[&id].1.text()
    }

    fn respond(&mut self, request: Request) -> Vec<LinkEvent> {
        if !self.is_online {
            return vec![reply(
                request,
                Err(RequestError::new(ErrorKind::NotConnected, "not connected")),
            )];
        }
        let mut events = Vec::new();
        let result = self.handle(&request, &mut events);
        // The companion responds before it notifies.
        events.insert(0, reply(request, result));
        events
    }

    fn handle(&mut self, request: &Request, events: &mut Vec<LinkEvent>) -> Result<Response, RequestError> {
        match request {
            Request::Status(_) => Ok(Response::Status(Status {
                pid: 1,
                port: 2,
                version: "0.1.0".to_owned(),
                display_name: "Alongside".to_owned(),
                workspace: vec![PathBuf::from("/home/me/project")],
                files: Vec::new(),
                problems: Vec::new(),
                agents: agents().agents,
                reviews: self.drafts.values().map(|(summary, _)| summary.clone()).collect(),
            })),
            Request::ContextShow(_) => Ok(Response::ContextShow(context())),
            Request::ReviewGet(get) => {
                let (summary, draft) = self.known(get.review)?;
                Ok(Response::ReviewGet(ReviewTexts {
                    summary: summary.clone(),
                    base: Some(draft.base().clone()),
                    proposal: draft.proposal().clone(),
                    draft: draft.text().into(),
                    hunks: draft.hunks().collect(),
                    notes: Vec::new(),
                }))
            }
            Request::ReviewHunk(params) => {
                let (summary, draft) = self.known(params.review)?;
                let change = draft.set_hunk(params.hunk, params.decision.into());
                let change = change.map_err(|error| RequestError::new(ErrorKind::UnknownHunk, error.to_string()))?;
                summary.version += 1;
                let edited = ReviewEdited {
                    review: params.review,
                    version: summary.version,
                    changes: change.text.into_iter().collect(),
                    hunks: change.hunks,
                    request: None,
                };
                let version = summary.version;
                events.push(notification(Notification::ReviewEdited(edited)));
                Ok(Response::ReviewHunk(Version { version }))
            }
            Request::ReviewChange(change) => {
                let (summary, draft) = self.known(change.review)?;
                if change.version != summary.version {
                    return Err(RequestError::new(ErrorKind::Stale, "stale"));
                }
                let text = TextChange::apply_all(&draft.text(), &change.changes).unwrap();
                let edited = edit(change.review, summary, draft, &text);
                let version = edited.version;
                events.push(notification(Notification::ReviewEdited(edited)));
                Ok(Response::ReviewChange(Version { version }))
            }
            Request::ReviewAccept(alongside_protocol::Accept { review, .. })
            | Request::ReviewReject(alongside_protocol::Reject { review, .. }) => {
                let review = *review;
                self.decided.push(request.clone());
                let path = self.known(review)?.0.path.clone();
                self.drafts.remove(&review.0);
                let accepts = matches!(request, Request::ReviewAccept(_));
                let outcome = if accepts {
                    ReviewOutcome::Accepted
                } else {
                    ReviewOutcome::Rejected
                };
                events.push(notification(Notification::ReviewClosed(ReviewClosed {
                    review,
                    path,
                    outcome,
                })));
                let decided = ReviewDecided { review, outcome };
                Ok(if accepts {
                    Response::ReviewAccept(decided)
                } else {
                    Response::ReviewReject(decided)
                })
            }
            Request::Diff(texts) => Ok(Response::Diff(chat::compare(texts))),
            Request::ChatState(_) => {
                let state = self.chat.clone();
                state
                    .map(Response::ChatState)
                    .ok_or_else(|| RequestError::new(ErrorKind::Failed, "no chat"))
            }
            Request::ChatCommand(_) if self.refuses_chat => {
                Err(RequestError::new(ErrorKind::AgentFailed, "the agent is gone"))
            }
            other => {
                self.decided.push(other.clone());
                Ok(Response::WindowFocus(Empty {}))
            }
        }
    }

    fn known(&mut self, review: ReviewId) -> Result<&mut (ReviewSummary, Draft), RequestError> {
        let known = self.drafts.get_mut(&review.0);
        known.ok_or_else(|| RequestError::new(ErrorKind::UnknownReview, "no such review"))
    }

    /// Another front end edits the draft.
    fn edit_elsewhere(&mut self, id: u64, text: &str) {
        let (summary, draft) = self.drafts.get_mut(&id).unwrap();
        let edited = edit(ReviewId(id), summary, draft, text);
        self.notify(Notification::ReviewEdited(edited));
    }

    /// Another front end decides.
    fn close_elsewhere(&mut self, id: u64, outcome: ReviewOutcome) {
        let (summary, _) = self.drafts.remove(&id).unwrap();
        self.notify(Notification::ReviewClosed(ReviewClosed {
            review: ReviewId(id),
            path: summary.path,
            outcome,
        }));
    }

    fn screen(&self) -> Terminal<TestBackend> {
        let (width, height) = self.model.size;
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| self.model.draw(frame)).unwrap();
        terminal
    }

    /// The screen as text.
    fn shown(&self) -> String {
        let terminal = self.screen();
        let buffer = terminal.backend().buffer();
        let mut text = String::new();
        for y in 0..buffer.area.height {
            let mut skip = 0;
            let mut line = String::new();
            for x in 0..buffer.area.width {
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                let symbol = buffer[(x, y)].symbol();
                skip = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
                line.push_str(symbol);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn reply(request: Request, result: Result<Response, RequestError>) -> LinkEvent {
    LinkEvent::Reply {
        request: Box::new(request),
        result: result.map(Box::new),
    }
}

fn notification(notification: Notification) -> LinkEvent {
    LinkEvent::Notification(Box::new(notification))
}

fn edit(review: ReviewId, summary: &mut ReviewSummary, draft: &mut Draft, text: &str) -> ReviewEdited {
    let (before, hunks) = (draft.text(), draft.hunks().collect::<Vec<_>>());
    draft.edit(text, None);
    summary.version += 1;
    let now: Vec<_> = draft.hunks().collect();
    ReviewEdited {
        review,
        version: summary.version,
        changes: TextChange::between(&before, text).into_iter().collect(),
        hunks: alongside_core::draft::HunkChange::between(&hunks, &now),
        request: None,
    }
}

fn summary(id: u64, path: &str, new_file: bool, draft: &Draft) -> ReviewSummary {
    let (added, removed) = draft.hunks().fold((0, 0), |(added, removed), hunk| {
        (added + hunk.draft.count, removed + hunk.base.count)
    });
    let mut size = ChangeSize::default();
    (size.added, size.removed) = (added, removed);
    ReviewSummary {
        id: ReviewId(id),
        path: path.into(),
        agent: "gemini-cli-mcp-client".to_owned(),
        agent_version: Some("0.31.0".to_owned()),
        session: serde_json::from_value(json!("mcp:1")).unwrap(),
        revision: 1,
        version: 0,
        new_file,
        edited: false,
        size,
        conflicts: 0,
        takes_reason: true,
        opened: 0,
    }
}

fn agents() -> AgentsChanged {
    let agents = json!({"agents": [
        {"name": "Gemini CLI", "version": "0.31.0", "session": "mcp:1", "listening": true, "since": 0},
    ]});
    serde_json::from_value(agents).unwrap()
}

fn context() -> ShownContext {
    let shown = json!({
        "context": {"workspaceState": {"openFiles": [
            {"path": "/home/me/project/src/main.rs", "timestamp": 1, "isActive": true,
             "cursor": {"line": 12, "character": 5}, "selectedText": "fn main() {\n    greet();\n}"},
            {"path": "/home/me/project/README.md", "timestamp": 0},
        ]}},
        "hidden": [{"path": "/home/me/project/.env", "reason": "its name is that of a secret"}],
    });
    serde_json::from_value(shown).unwrap()
}

/// A file with three hunks in it.
const BASE: &str = "\
use std::env;

fn main() {
    let name = env::args().nth(1);
    println!(\"Hello\");
}

// one
// two
// three
// four
// five
// six
// seven
// eight
// nine
// ten

fn helper(count: usize) -> usize {
    count + 1
}

fn unused() {}
";

fn proposal() -> String {
    BASE.replace(
        "println!(\"Hello\");",
        "println!(\"Hello, {}\", name.unwrap_or_default());",
    )
    .replace("count + 1", "count.saturating_add(1)")
    .replace("\nfn unused() {}\n", "")
}

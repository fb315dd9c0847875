//! `alongside bridge --check`: plays the companion for a plugin and says what the plugin does not do yet.
//!
//! What the program under check has to do on its own is in `docs/PROTOCOL.md`. Everything that it says and is told passes
//! through here, so that the list is about what is on the wire and not about what a parser made of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use alongside_core::{Core, Effect, EmptyDraft, Now, Proposal, ReviewId, ReviewOutcome, SessionKey};
use alongside_front::stdio;
use alongside_protocol::{
    Backend, Empty, ErrorKind, FrontEnd, Notification, Reject, Request, RequestError, Response, ReviewClosed,
    ReviewDecided, ReviewRef, ReviewSummary, ReviewTexts, SharedNotification, VERSION, Variables, Version, Welcome,
};
use anyhow::{Context, Result};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, broadcast, mpsc};

use crate::command_line::Common;

/// How long the plugin may take for each thing.
const PLUGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Texts in which everything is that gets lost easily: a byte order mark, Windows line endings, characters beyond the
/// basic plane, and no newline at the end.
const BASE: &str = "\u{feff}first\r\nsecond 🦀\r\nthird";
const PROPOSAL: &str = "\u{feff}first\r\nchanged 🦀\r\nthird";

pub(super) async fn run(common: &Common, command: &[OsString]) -> Result<ExitCode> {
    let report = examine(command).await?;
    let missing = report.iter().any(|finding| finding.required && !finding.fulfilled);
    common.output().answer(&report, || format_report(&report));
    Ok(if missing { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// One line of the list.
#[derive(Debug, Serialize)]
struct CheckItem {
    rule: &'static str,
    required: bool,
    fulfilled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<String>,
}

impl CheckItem {
    fn required(rule: &'static str, fulfilled: bool) -> Self {
        Self {
            rule,
            required: true,
            fulfilled,
            remark: None,
        }
    }

    fn optional(rule: &'static str, fulfilled: bool) -> Self {
        Self {
            required: false,
            ..Self::required(rule, fulfilled)
        }
    }

    /// Adds what was seen instead.
    fn but(mut self, remark: impl FnOnce() -> Option<String>) -> Self {
        self.remark = if self.fulfilled { None } else { remark() };
        self
    }
}

fn format_report(report: &[CheckItem]) -> String {
    let mut words = String::new();
    for finding in report {
        let mark = match (finding.fulfilled, finding.required) {
            (true, _) => "ok      ",
            (false, true) => "MISSING ",
            (false, false) => "optional",
        };
        words.push_str(&format!("{mark}  {}\n", finding.rule));
        if let Some(remark) = &finding.remark {
            words.push_str(&format!("          {remark}\n"));
        }
    }
    words
}

async fn examine(command: &[OsString]) -> Result<Vec<CheckItem>> {
    let scratch = tempfile::Builder::new().prefix("alongside check ").tempdir()?;
    let folder = alongside_platform::path::real(scratch.path())?;
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    for name in ["open.txt", "accept.txt", "reject.txt"] {
        std::fs::write(folder.join(name), BASE)?;
    }
    let mut plugin = Plugin::start(command, &folder)?;

    let hello = plugin.says(|_| true).await;
    let is_hello = hello.as_ref().is_some_and(|hello| {
        hello["method"] == "hello" && hello["params"]["protocol"] == VERSION && hello["params"]["name"].is_string()
    });
    let asks_to = |what: &str| hello.as_ref().is_some_and(|hello| hello["params"][what] == true);
    let (watches, interactive) = (asks_to("watch"), asks_to("interactive"));

    let focus = plugin.says(|message| message["method"] == "context/focus").await;
    let path = focus
        .as_ref()
        .and_then(|focus| focus["params"]["path"].as_str())
        .map(str::to_owned);
    let position = |part: &str| {
        focus
            .as_ref()
            .and_then(|focus| focus["params"]["cursor"][part].as_u64())
    };
    let from_one = [position("line"), position("character")]
        .iter()
        .all(|position| position.is_some_and(|position| position >= 1));

    if watches {
        // Its messages are seen here before the backend has handled them, and a front end that does not watch yet receives nothing.
        let _ = tokio::time::timeout(PLUGIN_TIMEOUT, plugin.backend.watched.notified()).await;
    }
    let unknown = json!({ "jsonrpc": "2.0", "method": "check/unheardOf", "params": { "a": [1] } });
    plugin.tell(&unknown.to_string());
    let to_accept = plugin.backend.propose(&file("accept.txt"));
    let accepted = plugin.decides("review/accept", to_accept).await;
    let asked = plugin.heard.iter().any(|heard| heard["method"] == "review/get");
    let to_reject = plugin.backend.propose(&file("reject.txt"));
    let rejected = plugin.decides("review/reject", to_reject).await;
    let lives_on = plugin.is_running() && (accepted.is_some() || rejected.is_some());
    let ended = plugin.hang_up().await;

    let content = accepted.and_then(|accepted| plugin.accepted_text(&accepted, to_accept));
    let sent = |method: &str| plugin.heard.iter().any(|heard| heard["method"] == method);
    let malformed = plugin.heard.iter().find(|heard| heard["jsonrpc"] != "2.0");
    let refused = plugin.refusals.lock().first().cloned();
    Ok(vec![
        CheckItem::required("sends `hello` first, with protocol 1 and a name", is_hello).but(|| {
            Some(
                hello
                    .as_ref()
                    .map_or("it sent nothing".to_owned(), |hello| format!("it sent {hello}")),
            )
        }),
        CheckItem::required("subscribes to notifications (`watch`)", watches),
        CheckItem::required("sends only JSON-RPC messages, one per line", malformed.is_none())
            .but(|| malformed.map(|line| format!("it sent {line}"))),
        CheckItem::required(
            "reports the focused file by its absolute path",
            path == Some(file("open.txt")),
        )
        .but(|| path.map(|path| format!("it sent {path:?}"))),
        CheckItem::required("reports the cursor position, counting from 1", from_one)
            .but(|| focus.map(|focus| format!("it sent {focus}"))),
        CheckItem::required("fetches the texts of a review (`review/get`)", asked),
        CheckItem::required("accepts a review with the user's text", content.is_some()),
        CheckItem::required(
            "preserves the byte order mark, line endings and a missing final newline",
            content.as_deref().is_some_and(is_exact),
        )
        .but(|| content.map(|content| format!("it sent {content:?}"))),
        CheckItem::required("rejects a review", rejected.is_some()),
        CheckItem::required("ignores unknown notifications", lives_on),
        CheckItem::required("sends no invalid requests", refused.is_none())
            .but(|| refused.map(|refused| format!("the companion answered: {refused}"))),
        CheckItem::required("exits when its stdin closes", ended),
        CheckItem::optional(
            "declares itself `interactive`, so that accidental keypresses are ignored",
            interactive,
        ),
        CheckItem::optional(
            "reports open files that are not focused (`context/open`)",
            sent("context/open"),
        ),
        CheckItem::optional(
            "reports activity when no file is focused (`window/focus`)",
            sent("window/focus"),
        ),
        CheckItem::optional("reports unsaved changes (`context/buffer`)", sent("context/buffer")),
        CheckItem::optional(
            "reports errors and warnings (`context/diagnostics`)",
            sent("context/diagnostics"),
        ),
        CheckItem::optional(
            "sets the `terminal/environment` variables in its terminals",
            sent("terminal/environment"),
        ),
    ])
}

/// Whether an accepted text kept all that the person cannot see. The words themselves may have been edited.
fn is_exact(content: &str) -> bool {
    let bare = content.replace("\r\n", "");
    content.starts_with("\u{feff}first\r\n") && content.ends_with("\r\nthird") && !bare.contains(['\r', '\n'])
}

/// The program under check.
struct Plugin {
    child: Child,
    backend: Arc<CheckBackend>,
    /// What it sent, in order. A line that is not JSON is a string.
    heard: Vec<Value>,
    incoming: mpsc::UnboundedReceiver<Value>,
    /// What it is told. Dropping this hangs up.
    outgoing: Option<mpsc::UnboundedSender<String>>,
    refusals: RefusedRequests,
}

/// Sentences with which the plugin was refused something, whether it wanted an answer or not.
type RefusedRequests = Arc<Mutex<Vec<String>>>;

impl Plugin {
    fn start(command: &[OsString], folder: &Path) -> Result<Self> {
        let mut parts = command.iter();
        let name = parts.next().context("missing plugin command after `--`")?;
        let mut child = Command::new(alongside_platform::program(name))
            .args(parts)
            .env("ALONGSIDE_CHECK", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start `{}`", name.display()))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (stdin, stdout) = stdin.zip(stdout).context("cannot open pipes to the plugin")?;
        let refusals = RefusedRequests::default();
        let backend = Arc::new(CheckBackend::new(folder, refusals.clone()));

        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (questions, answers) = tokio::io::split(ours);
        tokio::spawn(stdio::serve(backend.clone(), BufReader::new(questions), answers));
        let (answers, questions) = tokio::io::split(theirs);
        let (tell, told) = mpsc::unbounded_channel();
        let (hear, incoming) = mpsc::unbounded_channel();
        tokio::spawn(listen(BufReader::new(stdout), questions, hear));
        tokio::spawn(pass_on(BufReader::new(answers), tell.downgrade(), refusals.clone()));
        tokio::spawn(speak(stdin, told));
        Ok(Self {
            child,
            backend,
            heard: Vec::new(),
            incoming,
            outgoing: Some(tell),
            refusals,
        })
    }

    /// Waits for a message; one that was heard before counts too.
    async fn says(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        if let Some(heard) = self.heard.iter().find(|heard| is_wanted(heard)) {
            return Some(heard.clone());
        }
        tokio::time::timeout(PLUGIN_TIMEOUT, async {
            loop {
                let message = self.incoming.recv().await?;
                self.heard.push(message.clone());
                if is_wanted(&message) {
                    return Some(message);
                }
            }
        })
        .await
        .ok()
        .flatten()
    }

    /// Waits for a decision about one review.
    async fn decides(&mut self, method: &str, review: ReviewId) -> Option<Value> {
        self.says(|message| message["method"] == method && message["params"]["review"] == review.0)
            .await
    }

    fn tell(&self, line: &str) {
        if let Some(outgoing) = &self.outgoing {
            // Whether it still listens is asked later.
            let _ = outgoing.send(line.to_owned());
        }
    }

    /// The text that an acceptance means: its own, or that of the draft if the plugin sent the user's edits one by one. Call it once the
    /// plugin has ended: a message is seen here before the backend has handled it.
    fn accepted_text(&self, accepted: &Value, review: ReviewId) -> Option<String> {
        let has_edited = self.heard.iter().any(|heard| {
            (heard["method"] == "review/change" || heard["method"] == "review/edit")
                && heard["params"]["review"] == review.0
        });
        let sent = accepted["params"]["content"].as_str().map(str::to_owned);
        sent.or_else(|| self.backend.accepted_draft().filter(|_| has_edited))
    }

    fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Closes its stdin and returns whether it exited. What it sends before that is still recorded.
    async fn hang_up(&mut self) -> bool {
        let was_running = self.is_running();
        self.outgoing = None;
        let ended = tokio::time::timeout(PLUGIN_TIMEOUT, self.child.wait()).await.is_ok();
        if !ended {
            // It would keep its pipe open.
            let _ = self.child.kill().await;
        }
        while let Some(message) = self.incoming.recv().await {
            self.heard.push(message);
        }
        was_running && ended
    }
}

/// Forwards the plugin's messages to the backend, and reports them.
async fn listen(
    plugin: impl AsyncBufReadExt + Unpin,
    mut backend: impl AsyncWrite + Unpin,
    hear: mpsc::UnboundedSender<Value>,
) {
    let mut lines = plugin.lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message = serde_json::from_str(&line).unwrap_or_else(|_| Value::from(line.as_str()));
        let gone = hear.send(message).is_err();
        if gone || backend.write_all(format!("{line}\n").as_bytes()).await.is_err() {
            break;
        }
    }
}

/// Passes what the backend says on to the plugin, and notes what is refused.
async fn pass_on(
    backend: impl AsyncBufReadExt + Unpin,
    tell: mpsc::WeakUnboundedSender<String>,
    refusals: RefusedRequests,
) {
    let mut lines = backend.lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        if let Some(sentence) = message["error"]["message"].as_str() {
            refusals.lock().push(sentence.to_owned());
        }
        let Some(tell) = tell.upgrade() else { break };
        if tell.send(line).is_err() {
            break;
        }
    }
}

async fn speak(mut plugin: impl AsyncWrite + Unpin, mut told: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = told.recv().await {
        if plugin.write_all(format!("{line}\n").as_bytes()).await.is_err() {
            break;
        }
    }
}

/// A companion with nothing around it but the plugin under check.
struct CheckBackend {
    core: Mutex<Core>,
    news: broadcast::Sender<SharedNotification>,
    /// The chat, in which nothing happens.
    chat: broadcast::Sender<SharedNotification>,
    folder: PathBuf,
    refusals: RefusedRequests,
    /// The plugin hears notifications from now on.
    watched: Notify,
    /// The draft of the first accepted review.
    accepted_draft: Mutex<Option<String>>,
}

impl CheckBackend {
    fn new(folder: &Path, refusals: RefusedRequests) -> Self {
        Self {
            core: Mutex::new(Core::new(vec![folder.to_owned()])),
            news: broadcast::channel(64).0,
            chat: broadcast::channel(1).0,
            folder: folder.to_owned(),
            refusals,
            watched: Notify::new(),
            accepted_draft: Mutex::default(),
        }
    }

    fn accepted_draft(&self) -> Option<String> {
        self.accepted_draft.lock().clone()
    }

    /// Lets an agent propose a change.
    fn propose(&self, path: &str) -> ReviewId {
        let proposal = Proposal::new(path, alongside_core::Base::Text(BASE.into()), PROPOSAL, None);
        self.with_core(|core| core.open_review(Now::default(), &SessionKey::from("check"), proposal))
            // Only a hundredth one is refused.
            .unwrap_or(ReviewId(0))
    }

    fn with_core<R>(&self, input: impl FnOnce(&mut Core) -> R) -> R {
        let mut core = self.core.lock();
        let result = input(&mut core);
        for effect in core.take_effects() {
            let notification = match effect {
                Effect::ReviewOpened(id) => core
                    .review(id)
                    .ok()
                    .map(|review| Notification::ReviewOpened(ReviewSummary::from(review))),
                Effect::ReviewClosed { id, path, outcome } => Some(Notification::ReviewClosed(ReviewClosed {
                    review: id,
                    path,
                    outcome,
                })),
                _ => None,
            };
            if let Some(notification) = notification {
                // No receiver if the plugin does not subscribe.
                let _ = self.news.send(notification.into());
            }
        }
        result
    }
}

impl Backend for CheckBackend {
    async fn handle(&self, _: &FrontEnd, request: Request) -> Result<Response, RequestError> {
        self.respond(request)
            .map_err(|message| RequestError::new(ErrorKind::Failed, message))
            .inspect_err(|error| self.refusals.lock().push(error.message.clone()))
    }

    fn disconnected(&self, _: &FrontEnd) {}

    fn subscribe(&self) -> broadcast::Receiver<SharedNotification> {
        let news = self.news.subscribe();
        self.watched.notify_one();
        news
    }

    fn subscribe_chat(&self) -> broadcast::Receiver<SharedNotification> {
        self.chat.subscribe()
    }
}

impl CheckBackend {
    fn respond(&self, request: Request) -> Result<Response, String> {
        let now = Now::default();
        Ok(match request {
            Request::Hello(_) => Response::Hello(Welcome {
                protocol: VERSION,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
                workspace: vec![self.folder.clone()],
            }),
            Request::ContextOpen(file) => {
                self.attempt(|core| core.open_file(now, &file.path))?;
                Response::ContextOpen(Empty {})
            }
            Request::ContextFocus(focus) => {
                self.attempt(|core| {
                    core.focus_file(now, &focus.path, focus.cursor, focus.selected_text)?;
                    focus
                        .selection_start
                        .map_or(Ok(()), |start| core.set_selection_start(start))
                })?;
                Response::ContextFocus(Empty {})
            }
            Request::ContextClose(file) => {
                self.attempt(|core| core.close_file(now, &file.path))?;
                Response::ContextClose(Empty {})
            }
            Request::ReviewList(_) => {
                Response::ReviewList(self.with_core(|core| core.reviews().map(ReviewSummary::from).collect()))
            }
            Request::ReviewGet(ReviewRef { review }) => {
                Response::ReviewGet(self.attempt(|core| core.review(review).map(ReviewTexts::from))?)
            }
            Request::ReviewEdit(edit) => Response::ReviewEdit(self.attempt(|core| {
                let update = core.review(edit.review)?.edit(&edit.content, None);
                core.update_draft(update)?;
                core.review(edit.review).map(ReviewSummary::from)
            })?),
            Request::ReviewChange(change) => {
                let version = self.attempt(|core| {
                    let review = core.review(change.review)?;
                    let update = review.change(change.version, &change.changes, None)?;
                    core.update_draft(update)
                })?;
                Response::ReviewChange(Version { version })
            }
            Request::ReviewHunk(params) => {
                let version = self.attempt(|core| {
                    let review = core.review(params.review)?;
                    let update = review.decide_hunk(params.hunk, params.decision.into())?;
                    core.update_draft(update)
                })?;
                Response::ReviewHunk(Version { version })
            }
            Request::ReviewAccept(accept) => {
                let (review, outcome) = (accept.review, ReviewOutcome::Accepted);
                let draft = self.attempt(|core| core.review(review).map(|review| ReviewTexts::from(review).draft))?;
                self.accepted_draft.lock().get_or_insert_with(|| draft.to_string());
                self.attempt(|core| core.accept(review, accept.content, EmptyDraft::Refuse))?;
                Response::ReviewAccept(ReviewDecided { review, outcome })
            }
            Request::ReviewReject(Reject { review, reason }) => {
                self.attempt(|core| core.reject(review, reason))?;
                let outcome = ReviewOutcome::Rejected;
                Response::ReviewReject(ReviewDecided { review, outcome })
            }
            Request::TerminalEnvironment(_) => Response::TerminalEnvironment(Variables {
                variables: BTreeMap::new(),
            }),
            // The check does not depend on what these respond.
            _ => Response::Stop(Empty {}),
        })
    }

    fn attempt<T, E: std::fmt::Display>(&self, input: impl FnOnce(&mut Core) -> Result<T, E>) -> Result<T, String> {
        self.with_core(input).map_err(|error| error.to_string())
    }
}

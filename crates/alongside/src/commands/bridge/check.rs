//! `alongside bridge --check`: plays the companion for a plugin and says what the plugin does not do yet.
//!
//! What the program under check has to do on its own is in `docs/PROTOCOL.md`. Everything that it says and is told passes
//! through here, so that the list is about what is on the wire and not about what a parser made of it.

mod backend;
mod plugin;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use alongside_protocol::VERSION;
use anyhow::Result;
use serde::Serialize;
use serde_json::json;

use crate::command_line::Common;
use plugin::Plugin;

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
    let lives_on = plugin.is_running().await && (accepted.is_some() || rejected.is_some());
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

//! Messages, read and written.

use alongside_core::{Base, Core, Now, Proposal, ReviewId, SessionKey};
use alongside_protocol::{Notification, ReviewSummary, ReviewTexts};
use alongside_wire::rpc::{self, Message, Payload};
use alongside_wire::sse::SseReader;
use anyhow::{Result, bail, ensure};
use serde::Deserialize;
use serde_json::json;

use super::{code, texts};
use crate::counted;

pub(super) fn parse_1_kib() -> Result<()> {
    parse(1 << 10)
}

pub(super) fn parse_1_mib() -> Result<()> {
    parse(1 << 20)
}

/// The arguments with a derived reader. The agents' port has a reader of its own, which is private to it: `mcp: openDiff` counts that.
#[derive(Deserialize)]
struct Call {
    arguments: OpenDiff,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenDiff {
    file_path: String,
    new_content: String,
}

fn parse(bytes: usize) -> Result<()> {
    let content = texts(bytes).1;
    let arguments = json!({"filePath": "/workspace/a.rs", "newContent": content});
    let params = json!({"name": "openDiff", "arguments": arguments});
    let body = rpc::request(7, "tools/call", Some(&params))?;
    let call = counted(|| {
        let Ok(Payload::One(Message::Request(request))) = Payload::parse_strict(&body) else {
            bail!("not a request")
        };
        let call: Call = request.params().map_err(|error| anyhow::anyhow!("{}", error.message))?;
        let response = request.response(&json!({"content": []}));
        Ok((call, response))
    })?;
    let arguments = call.0.arguments;
    ensure!(arguments.file_path == "/workspace/a.rs" && arguments.new_content == content);
    Ok(())
}

pub(super) fn read_events() -> Result<()> {
    let event = |id: u64| {
        format!(
            "id: {id}\nevent: message\ndata: {}\n\n",
            json!({"jsonrpc": "2.0", "method": "ide/contextUpdate", "params": {"text": code(3)}})
        )
    };
    let stream: String = (0..1_000).map(event).collect();
    let count = counted(|| {
        let mut reader = SseReader::new(1 << 20);
        let mut count = 0;
        for chunk in stream.as_bytes().chunks(8 << 10) {
            reader.push(chunk)?;
            while reader.pop().is_some() {
                count += 1;
            }
        }
        anyhow::Ok(count)
    })?;
    ensure!(count == 1_000);
    Ok(())
}

/// A core with one review of 100 KiB.
fn review() -> Result<(Core, ReviewId)> {
    let mut core = Core::new(Vec::new());
    let session = SessionKey::from("one");
    core.session_started(Now::default(), &session, None);
    let (base, text) = texts(100 << 10);
    let proposal = Proposal::new("/workspace/a.rs", Base::Text(base.into()), text, None);
    let id = core.open_review(Now::default(), &session, proposal)?;
    Ok((core, id))
}

pub(super) fn serialize_notification() -> Result<()> {
    let (core, id) = review()?;
    let review = core.review(id)?;
    // Computed once for each version of the draft.
    review.text();
    let message = counted(|| {
        let notification = Notification::ReviewOpened(ReviewSummary::from(review));
        rpc::write_call(None, &notification)
    })?;
    ensure!(message.contains("review/opened"));
    Ok(())
}

pub(super) fn serialize_review() -> Result<()> {
    let (core, id) = review()?;
    let review = core.review(id)?;
    review.text();
    let text = counted(|| serde_json::to_string(&ReviewTexts::from(review)))?;
    ensure!(text.contains("changed("));
    Ok(())
}

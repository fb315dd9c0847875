//! What is acknowledged is written, whatever happens to the disk.

use std::sync::Arc;
use std::time::Duration;

use alongside_core::{Decision, DeliveryId, ReviewId, SessionEnd, SessionKey};
use alongside_journal::{Directory, Fault, SimDisk};
use alongside_mcp::Companion as _;
use alongside_protocol::{Backend, ErrorKind, FrontEnd, Hello, Notification, Request, RequestError, Response};
use serde_json::json;
use tempfile::TempDir;

use super::Slot;
use crate::{Host, Shared, test_companion};

/// A companion on a disk that can be made to fail.
fn companion(scratch: &TempDir, disk: &SimDisk) -> Shared {
    let directory = Directory::on(Arc::new(disk.clone()));
    let mark = scratch.path().join("leaving");
    test_companion::start(scratch, &Slot { directory, mark }, Host::default())
}

fn session() -> SessionKey {
    SessionKey::from("one")
}

/// Waits until everything so far is written.
async fn written(companion: &Shared) {
    let ticket = companion.push(|_| {});
    companion.start_writing();
    ticket.written().await.unwrap();
}

async fn propose(companion: &Shared, path: &str, text: &str) -> Result<(), String> {
    companion
        .open_diff(&session(), path.into(), text.into())
        .await
        .map(drop)
}

async fn ask(companion: &Shared, method: &str, params: serde_json::Value) -> Result<Response, RequestError> {
    let hello = Hello::new("test");
    let request: Request = serde_json::from_value(json!({"method": method, "params": params})).unwrap();
    companion.handle(&FrontEnd::new(hello), request).await
}

fn pending(companion: &Shared) -> Vec<(u64, String)> {
    let reviews = companion.reviews();
    reviews
        .iter()
        .map(|review| (review.id.0, review.text().to_string()))
        .collect()
}

fn kept(companion: &Shared) -> Vec<(u64, String)> {
    let core = companion.core.lock();
    let deliveries = core.ledger().deliveries();
    deliveries
        .map(|delivery| (delivery.id.0, delivery.decision.path().to_string()))
        .collect()
}

#[tokio::test]
async fn everything_acknowledged_survives_a_kill() {
    let scratch = tempfile::tempdir().unwrap();
    let disk = SimDisk::new(1);
    let before = companion(&scratch, &disk);
    before.session_started(&session(), None).await;
    let large = "large\n".repeat(20_000);
    propose(&before, "/edited", "text").await.unwrap();
    propose(&before, "/accepted", &large).await.unwrap();
    propose(&before, "/closed", "text").await.unwrap();
    ask(&before, "review/edit", json!({"review": 1, "content": "edited"}))
        .await
        .unwrap();
    ask(&before, "review/accept", json!({"review": 2})).await.unwrap();
    before.close_diff(&session(), "/closed").await.unwrap();

    let after = companion(&scratch, &disk.kill());
    assert_eq!(pending(&after), [(1, "edited".to_owned())]);
    assert_eq!(kept(&after), [(1, "/accepted".to_owned())]);
    let closed = ask(&after, "review/reject", json!({"review": 2})).await.unwrap_err();
    assert_eq!(closed.kind, ErrorKind::Closed);
    propose(&after, "/next", "text").await.unwrap();
    assert_eq!(pending(&after).last().unwrap().0, 4, "numbers are not reused");
}

/// A proposal that changes every other line of a file, so that it has this many hunks.
async fn propose_hunks(companion: &Shared, scratch: &TempDir, hunks: usize) {
    let path = scratch.path().join("many-hunks");
    let lines =
        |changed: &str| -> Vec<String> { (0..hunks).map(|line| format!("{line}\n{changed} {line}\n")).collect() };
    let text = |changed: &str| lines(changed).concat();
    std::fs::write(&path, text("before")).unwrap();
    propose(companion, path.to_str().unwrap(), &text("after"))
        .await
        .unwrap();
}

async fn reject_hunk(companion: &Shared, hunk: usize) {
    let decision = json!({"review": 1, "hunk": hunk, "decision": "reject"});
    ask(companion, "review/hunk", decision).await.unwrap();
}

#[tokio::test]
async fn decision_about_one_of_many_hunks_is_a_small_record() {
    const HUNKS: usize = 1000;
    let scratch = tempfile::tempdir().unwrap();
    let disk = SimDisk::new(1);
    let before = companion(&scratch, &disk);
    before.session_started(&session(), None).await;
    propose_hunks(&before, &scratch, HUNKS).await;
    let mut sizes = Vec::new();
    for hunk in 1..=100 {
        let before_it = disk.bytes_written();
        reject_hunk(&before, hunk).await;
        sizes.push(disk.bytes_written() - before_it);
    }
    sizes.sort_unstable();
    // Now and then, space is reserved too.
    assert!(sizes[90] < 500, "{sizes:?}");
    let expected = pending(&before);
    assert_eq!(expected[0].1.matches("before").count(), 100);

    let disk = disk.kill();
    let after = companion(&scratch, &disk);
    assert_eq!(pending(&after), expected);
    // The next ones follow what was read.
    reject_hunk(&after, HUNKS - 1).await;
    let expected = pending(&after);
    assert_eq!(pending(&companion(&scratch, &disk.kill())), expected);
}

#[tokio::test]
async fn edits_after_a_damaged_record_are_left_out_and_reported() {
    let scratch = tempfile::tempdir().unwrap();
    let disk = SimDisk::new(1);
    let before = companion(&scratch, &disk);
    before.session_started(&session(), None).await;
    propose_hunks(&before, &scratch, 9).await;
    let opened = pending(&before);
    for hunk in 1..=3 {
        reject_hunk(&before, hunk).await;
    }
    // What was not synced may be cut off.
    before.journal.durable.lock().sync().unwrap();
    reject_hunk(&before, 4).await;
    let disk = disk.kill();
    disk.corrupt("state-1", |bytes| {
        let first = bytes.windows(8).position(|window| window == b"\"edited\"").unwrap();
        bytes[first] = b'!';
    });
    let after = companion(&scratch, &disk);
    assert_eq!(pending(&after), opened);
    let problems = after.problems().join("; ");
    assert!(
        problems.contains("review 1 is as it was before its last edits"),
        "{problems}"
    );

    let again = companion(&scratch, &disk.kill());
    assert_eq!(pending(&again), opened);
    let problems = again.problems().join("; ");
    assert!(!problems.contains("review 1"), "reported once: {problems}");
}

#[tokio::test]
async fn large_proposal_for_a_large_file_is_stored_as_its_changes() {
    let scratch = tempfile::tempdir().unwrap();
    let disk = SimDisk::new(1);
    let before = companion(&scratch, &disk);
    before.session_started(&session(), None).await;
    let idle = disk.used();
    let file = scratch.path().join("large");
    let lines: Vec<String> = (0..50_000).map(|line| format!("line {line}\n")).collect();
    let base = lines.concat();
    let path = file.to_str().unwrap();
    let proposal = format!("first\n{base}last\n");
    std::fs::write(&file, &base).unwrap();
    let written_before = disk.bytes_written();
    propose(&before, path, &proposal).await.unwrap();
    let record = disk.bytes_written() - written_before - base.len();
    assert!(record < 2000, "{record} bytes besides the file's text");
    let expected = [(1, proposal.clone())];
    assert_eq!(pending(&companion(&scratch, &disk.kill())), expected);

    // The decision needs the text of the file, even after that has changed, and the review is gone.
    ask(&before, "review/accept", json!({"review": 1})).await.unwrap();
    std::fs::write(&file, "changed").unwrap();
    before.journal.close();
    let after = companion(&scratch, &disk.kill());
    let content = {
        let core = after.core.lock();
        let decision = core.ledger().deliveries().next().unwrap().decision.clone();
        match decision {
            Decision::Accepted { content, .. } => content,
            Decision::Rejected { .. } => panic!("it was accepted"),
        }
    };
    assert!(*content == *proposal);

    before.settled(&session(), &[DeliveryId(1)]);
    written(&before).await;
    before.journal.close();
    assert!(disk.used() < idle + 100_000, "{} bytes, and {idle} before", disk.used());
}

#[tokio::test]
async fn settled_decision_and_its_text_are_forgotten() {
    let scratch = tempfile::tempdir().unwrap();
    let disk = SimDisk::new(2);
    let before = companion(&scratch, &disk);
    before.session_started(&session(), None).await;
    let idle = disk.used();
    propose(&before, "/a", &"large\n".repeat(100_000)).await.unwrap();
    ask(&before, "review/accept", json!({"review": 1})).await.unwrap();
    before.settled(&session(), &[DeliveryId(1)]);
    written(&before).await;
    before.journal.close();
    let after = companion(&scratch, &disk.kill());
    assert_eq!(kept(&after), []);
    assert!(disk.used() < idle + 100_000, "{} bytes, and {idle} before", disk.used());
}

#[tokio::test]
async fn full_disk_refuses_with_a_sentence_and_work_resumes() {
    let scratch = tempfile::tempdir().unwrap();
    let disk = SimDisk::new(3);
    let companion = companion(&scratch, &disk);
    companion.session_started(&session(), None).await;
    propose(&companion, "/before", "text").await.unwrap();
    let mut notifications = companion.subscribe();

    disk.set_capacity(Some(disk.used()));
    let refused = propose(&companion, "/large", &"large\n".repeat(100_000))
        .await
        .unwrap_err();
    assert!(refused.contains("decide in the terminal"), "{refused}");
    assert_eq!(pending(&companion).len(), 1, "nothing was changed");

    disk.set_capacity(None);
    propose(&companion, "/after", "text").await.unwrap();
    assert_eq!(pending(&companion).len(), 2);
    assert!(companion.problems().is_empty());
    assert!(notifications.try_recv().is_ok());
}

#[tokio::test]
async fn write_that_fails_changes_nothing_and_everybody_is_told() {
    let scratch = tempfile::tempdir().unwrap();
    let disk = SimDisk::new(4);
    let before = companion(&scratch, &disk);
    before.session_started(&session(), None).await;
    propose(&before, "/a", "text").await.unwrap();
    let mut notifications = before.subscribe();

    disk.fail_at(disk.calls(), Fault::Full);
    let refused = ask(&before, "review/accept", json!({"review": 1})).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::NotSaved, "{refused}");
    assert_eq!(pending(&before), [(1, "text".to_owned())]);
    assert_eq!(kept(&before), []);
    let told = async {
        loop {
            let notification = notifications.recv().await.unwrap();
            assert!(!matches!(&*notification, Notification::ReviewClosed(_)));
            if matches!(&*notification, Notification::ProblemsChanged(now) if !now.problems.is_empty()) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), told).await.unwrap();
    assert!(!before.problems().is_empty());

    ask(&before, "review/reject", json!({"review": 1})).await.unwrap();
    assert!(before.problems().is_empty());
    let after = companion(&scratch, &disk.kill());
    assert_eq!(pending(&after), []);
    assert_eq!(kept(&after), [(1, "/a".to_owned())]);
}

#[tokio::test]
async fn ended_session_is_forgotten_and_its_review_is_an_orphan() {
    let scratch = tempfile::tempdir().unwrap();
    let disk = SimDisk::new(5);
    let before = companion(&scratch, &disk);
    let client = alongside_core::dialect::ClientInfo {
        name: "agent".into(),
        version: "1".into(),
    };
    before.session_started(&session(), Some(&client)).await;
    propose(&before, "/a", "text").await.unwrap();
    assert_eq!(companion(&scratch, &disk.kill()).known_client(&session()), Some(client));
    before.session_ended(&session(), &SessionEnd::Lost);
    written(&before).await;
    let after = companion(&scratch, &disk.kill());
    assert_eq!(after.known_client(&session()), None);
    assert_eq!(pending(&after), []);
    assert_eq!(kept(&after), [(1, "/a".to_owned())]);
    assert!(after.review(ReviewId(1)).is_err());
}

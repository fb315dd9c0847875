//! What the user is told and asked about a change.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use alongside_lsp::Scratch;
use alongside_protocol::Notification;
use common::{Editor, OneReview, start};
use serde_json::json;
use tokio::sync::Notify;

async fn question(editor: &mut Editor) -> String {
    let asked = tokio::time::timeout(Duration::from_secs(20), editor.receive("window/showMessageRequest"));
    asked.await.unwrap()["message"].as_str().unwrap().to_owned()
}

/// The list is fetched after subscribing, so it may have a review whose notification is still to come.
#[tokio::test]
async fn change_is_asked_about_once_for_each_revision() {
    let parent = tempfile::tempdir().unwrap();
    let scratch = Scratch::new(parent.path()).unwrap();
    let backend = OneReview::new(mpsc::channel().0);
    let capabilities = json!({ "window": { "showMessage": { "messageActionItem": {} } } });
    let (session, mut editor) = start(backend.clone(), capabilities, scratch, Arc::new(Notify::new())).await;
    assert!(question(&mut editor).await.contains("Agent proposed a change to a.txt"));
    let notify = |notification: Notification| backend.notifications.send(notification.into()).unwrap();
    notify(Notification::ReviewOpened(backend.summary()));
    backend.revision.store(2, Ordering::SeqCst);
    notify(Notification::ReviewChanged(backend.summary()));
    assert!(
        question(&mut editor)
            .await
            .contains("Agent revised its change to a.txt")
    );
    session.stop().await;
}

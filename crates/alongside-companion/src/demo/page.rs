//! The demo that a front end started.

use std::time::Duration;

use alongside_core::ReviewId;
use alongside_protocol::{ErrorKind, RequestError, ReviewRef};
use anyhow::Context;
use tokio::task::JoinHandle;

use super::{Demo, DemoAgent};
use crate::Companion;

/// How long a stop waits for it.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// At most one runs at a time.
#[derive(Default)]
pub(crate) struct DemoSlot(tokio::sync::Mutex<Option<RunningDemo>>);

struct RunningDemo {
    review: ReviewId,
    task: JoinHandle<()>,
}

impl DemoSlot {
    /// Waits for the demo's end: its change has been decided, or the agents' port was closed.
    pub(crate) async fn end(&self) {
        if let Some(demo) = self.0.lock().await.take() {
            let _ = tokio::time::timeout(END_TIMEOUT, demo.task).await;
        }
    }
}

impl Companion {
    /// Opens the sample review, or returns the one that is open.
    pub(crate) async fn start_demo(&self) -> Result<ReviewRef, RequestError> {
        let failed = |error: anyhow::Error| {
            let message = format!("cannot start the demo: {error:#}");
            RequestError::new(ErrorKind::Failed, message)
        };
        let mut running = self.demo.0.lock().await;
        if let Some(demo) = running.as_ref().filter(|demo| !demo.task.is_finished())
            && self.review(demo.review).is_ok()
        {
            return Ok(ReviewRef { review: demo.review });
        }
        let announcement = self
            .own_announcement
            .get()
            .context("the agents' port is not open yet")
            .map_err(failed)?;
        let mut demo = Demo::start(DemoAgent::Simple, announcement).await.map_err(failed)?;
        let review = self.reviews().into_iter().find(|review| *review.path == *demo.path());
        let review = review.context("the change was decided already").map_err(failed)?.id;
        let task = tokio::spawn(async move {
            if let Err(error) = demo.finish().await {
                tracing::debug!(%error, "the demo ended early");
            }
        });
        *running = Some(RunningDemo { review, task });
        Ok(ReviewRef { review })
    }
}

//! Changes to drafts: computed on a snapshot of the review, outside the core's lock, and applied by version.
//!
//! A diff of large texts takes as long as it may. Other agents and front ends do not wait for it.

use std::path::Path;
use std::sync::Arc;

use alongside_core::draft::{Deadline, HunkDecision, HunkId};
use alongside_core::{Base, DecideError, DraftUpdate, Review, ReviewId, TextChange};
use alongside_protocol::Origin;

use super::commit::CommitError;
use super::{Companion, base};

impl Companion {
    /// A copy of a pending review. Its texts are shared, so this is cheap.
    pub(super) fn review(&self, id: ReviewId) -> Result<Review, DecideError> {
        self.core.lock().review(id).cloned()
    }

    /// Copies of the pending reviews.
    pub(super) fn reviews(&self) -> Vec<Review> {
        self.core.lock().reviews().cloned().collect()
    }

    /// Replaces the whole draft, and returns the new version.
    pub(super) async fn edit_draft(
        &self,
        origin: Option<Origin>,
        id: ReviewId,
        text: Arc<str>,
    ) -> Result<u64, CommitError> {
        self.update_draft(origin, id, move |review, deadline| {
            Ok(Some(review.edit(Arc::clone(&text), deadline)))
        })
        .await
    }

    /// Replaces ranges of the draft at `version`, and returns the new version.
    pub(super) async fn change_draft(
        &self,
        origin: Option<Origin>,
        id: ReviewId,
        version: u64,
        changes: Vec<TextChange>,
    ) -> Result<u64, CommitError> {
        self.update_draft(origin, id, move |review, deadline| {
            review.change(version, &changes, deadline).map(Some)
        })
        .await
    }

    /// Decides one hunk, and returns the draft's new version.
    pub(super) async fn decide_hunk(
        &self,
        origin: Option<Origin>,
        id: ReviewId,
        hunk: HunkId,
        decision: HunkDecision,
    ) -> Result<u64, CommitError> {
        self.update_draft(origin, id, move |review, _| {
            review.decide_hunk(hunk, decision).map(Some)
        })
        .await
    }

    /// Computes a review's text before it is needed under the core's lock.
    pub(super) async fn prepare_text(&self, id: ReviewId) {
        if let Ok(review) = self.review(id) {
            let _ = tokio::task::spawn_blocking(move || review.text().len()).await;
        }
    }

    pub(super) async fn prepare_texts(&self) {
        for review in self.reviews() {
            self.prepare_text(review.id).await;
        }
    }

    /// Sets the unsaved text of a file; without a text, the file is saved.
    pub(super) async fn set_buffer(&self, path: String, text: Option<Arc<str>>) {
        let buffers = self.buffers.clone();
        let _ = tokio::task::spawn_blocking(move || buffers.set(&path, text)).await;
        self.wake.bases.notify_one();
    }

    /// Compares reviews with what their files hold now, without waiting for the result: a file may be on a hung file system.
    pub(super) fn refresh_bases(&self, is_due: impl Fn(ReviewId) -> bool) {
        for review in self.reviews() {
            if is_due(review.id)
                && self.base_reads.start(&review.id)
                && let Some(companion) = self.me.upgrade()
            {
                tokio::spawn(async move { companion.refresh_base(review.id, &review.path).await });
            }
        }
    }

    async fn refresh_base(&self, id: ReviewId, path: &Arc<str>) {
        loop {
            let (path, buffers) = (path.clone(), self.buffers.clone());
            let read = move || base::read(&path, buffers.get(Path::new(&*path)));
            // A file that cannot be read as text leaves its review as it is; the agent reports what is wrong.
            if let Ok(Ok(base)) = tokio::task::spawn_blocking(read).await {
                self.rebase_draft(id, base).await;
            }
            if !self.base_reads.repeats(&id) {
                return;
            }
        }
    }

    async fn rebase_draft(&self, id: ReviewId, base: Base) {
        // The review may have been closed.
        let _ = self
            .update_draft(None, id, move |review, deadline| {
                Ok(review.rebase(base.clone(), deadline))
            })
            .await;
    }

    /// Returns the draft's version, which is a new one unless there was nothing to update.
    async fn update_draft(
        &self,
        origin: Option<Origin>,
        id: ReviewId,
        compute: impl Fn(&Review, Deadline) -> Result<Option<DraftUpdate>, DecideError> + Send + Sync + 'static,
    ) -> Result<u64, CommitError> {
        let compute = Arc::new(compute);
        loop {
            let review = self.review(id)?;
            let version = review.version;
            let (host, compute) = (self.host.clone(), compute.clone());
            let computed = tokio::task::spawn_blocking(move || compute(&review, (host.diff_deadline)()));
            // Not run only if the companion is shutting down.
            let update = computed.await.unwrap_or(Err(DecideError::Stale { id, version }))?;
            let Some(update) = update else { return Ok(version) };
            match self
                .commit_from(origin.as_ref(), |core, _| core.update_draft(update))
                .await?
            {
                // Another client was faster.
                Err(DecideError::Stale { .. }) => {}
                result => return Ok(result?),
            }
        }
    }
}

//! Diagnostics from front ends, and their way to agents that are sent changes.

use alongside_core::diagnostics::FileDiagnostics;
use alongside_protocol::{Empty, FrontEnd, RequestError};

use super::{Companion, Shared};

impl Companion {
    pub(super) async fn set_diagnostics(
        &self,
        front_end: &FrontEnd,
        file: FileDiagnostics,
    ) -> Result<Empty, RequestError> {
        let real = self.resolve(&file.path).await;
        self.report(|core, now| core.report_diagnostics(now, front_end.id(), file, real))
    }

    fn publish_diagnostics(&self) {
        let changed = self.with_core(|core, _| core.take_changed_diagnostics());
        if let Some(agents) = self.agents.get() {
            agents.publish_diagnostics(&changed);
        }
    }
}

/// Sends changed diagnostics to agents; never returns.
pub(super) async fn keep_diagnostics(companion: Shared) {
    loop {
        companion.wake.diagnostics.notified().await;
        let companion = companion.clone();
        // There may be megabytes of them to serialize.
        let _ = tokio::task::spawn_blocking(move || companion.publish_diagnostics()).await;
    }
}

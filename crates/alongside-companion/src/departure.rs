//! An editor that exits and expects to be back: a window that reloads, an editor that restarts.
//!
//! The companion stays for [`RETURN_GRACE`] with its port, its agents and everything pending, and a file next to its journal marks
//! it. The editor's next companion finds the mark, has this one hand over, and continues as after a crash: with the same journal,
//! port and token. If none comes, this one stops cleanly.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alongside_front::client::ClientError;
use alongside_platform::unless_held;
use alongside_protocol::{Empty, ErrorKind, RequestError, requests};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::Companion;
use crate::companion_record;
use crate::places::{Places, write_private};

/// How long the editor has to come back.
const RETURN_GRACE: Duration = Duration::from_secs(15);
/// How long the next companion waits until this one has exited.
pub(crate) const HAND_OVER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long after an editor's exit its last messages may arrive. Usually the end of its connection is seen first.
const LAST_MESSAGES: Duration = Duration::from_millis(500);

pub(crate) struct Departure {
    mark: PathBuf,
    phase: watch::Sender<Phase>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Staying,
    Leaving { until: Instant },
    HandedOver,
}

impl Companion {
    /// The editor is about to exit and expects to be back.
    pub async fn leave(&self) -> Result<(), RequestError> {
        self.departure.begin().await.map_err(|error| {
            let message = format!("cannot keep pending changes for the editor's return: {error}");
            RequestError::new(ErrorKind::Failed, message)
        })
    }

    /// The editor is in use, so it is not leaving.
    pub async fn stay(&self) {
        self.departure.cancel().await;
    }

    /// Whether an editor that exits right now was leaving. Its last messages may still have to be read.
    pub async fn is_expected_back(&self) -> bool {
        tokio::time::sleep(LAST_MESSAGES).await;
        self.departure.is_leaving()
    }

    /// Waits until an editor that has exited can no longer come back, which is immediately unless it was leaving.
    pub async fn deserted(&self) {
        self.departure.over().await;
    }
}

impl Departure {
    pub(crate) fn new(mark: PathBuf) -> Self {
        Self {
            mark,
            phase: watch::Sender::new(Phase::Staying),
        }
    }

    async fn begin(&self) -> io::Result<()> {
        // Before the mark: a companion that finds the mark is not refused.
        self.phase.send_if_modified(|phase| {
            let until = Instant::now() + RETURN_GRACE;
            *phase != Phase::HandedOver && std::mem::replace(phase, Phase::Leaving { until }) != *phase
        });
        let mark = self.mark.clone();
        let write = move || write_private(&mark, std::process::id().to_string().as_bytes());
        tokio::task::spawn_blocking(write).await.map_err(io::Error::other)?
    }

    pub(crate) async fn cancel(&self) {
        if self.end() {
            let mark = self.mark.clone();
            let _ = tokio::task::spawn_blocking(move || remove(&mark)).await;
        }
    }

    fn is_leaving(&self) -> bool {
        matches!(*self.phase.borrow(), Phase::Leaving { .. })
    }

    /// Whether it was leaving.
    fn end(&self) -> bool {
        self.phase.send_if_modified(|phase| {
            let was_leaving = matches!(phase, Phase::Leaving { .. });
            if was_leaving {
                *phase = Phase::Staying;
            }
            was_leaving
        })
    }

    /// Whether this companion hands over. It then has to exit, and does nothing more.
    pub(crate) fn hand_over(&self) -> bool {
        self.phase.send_if_modified(|phase| {
            let is_expected = matches!(phase, Phase::Leaving { until } if Instant::now() < *until);
            if is_expected {
                *phase = Phase::HandedOver;
            }
            is_expected
        })
    }

    pub(crate) async fn handed_over(&self) {
        let mut phase = self.phase.subscribe();
        // The sender is ours.
        let _ = phase.wait_for(|phase| *phase == Phase::HandedOver).await;
    }

    /// Waits until the editor can no longer come back. Forever after a hand-over.
    pub(crate) async fn over(&self) {
        let mut phase = self.phase.subscribe();
        loop {
            let current = *phase.borrow_and_update();
            match current {
                Phase::Staying => return,
                Phase::HandedOver => std::future::pending().await,
                Phase::Leaving { until } => tokio::select! {
                    () = tokio::time::sleep_until(until) => self.cancel().await,
                    _ = phase.changed() => {}
                },
            }
        }
    }
}

/// The file that marks the companion of a slot as expecting its editor back.
pub(crate) fn mark(slot: &Path) -> PathBuf {
    slot.with_extension("leaving")
}

pub(crate) fn remove(mark: &Path) {
    // There is none unless the editor was leaving.
    let _ = unless_held(|| fs::remove_file(mark));
}

/// Whether the companion that a mark names hands over to this one, or no longer exists. Blocks.
pub(crate) fn take_over(places: &Places, mark: &Path) -> bool {
    let Ok(text) = fs::read_to_string(mark) else {
        return false;
    };
    let records = companion_record::all(places);
    let Some(record) = records.iter().find(|record| record.pid.to_string() == text) else {
        return true;
    };
    let asking = async {
        let mut client = record.connect(false).await?;
        client.call::<requests::HandOver>(Empty {}).await
    };
    let Ok(runtime) = Handle::try_current() else {
        return false;
    };
    match runtime.block_on(async { tokio::time::timeout(HAND_OVER_TIMEOUT, asking).await }) {
        // It may exit before its response is sent.
        Ok(Ok(_) | Err(ClientError::Closed)) => true,
        Err(_) => false,
        Ok(Err(error)) => {
            tracing::info!(%error, pid = record.pid, "an editor's previous companion does not hand over");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn departure(scratch: &tempfile::TempDir) -> Departure {
        Departure::new(mark(&scratch.path().join("slot-0")))
    }

    async fn is_over(departure: &Departure) -> bool {
        tokio::time::timeout(RETURN_GRACE / 2, departure.over()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn editor_that_did_not_announce_a_return_is_not_waited_for() {
        let scratch = tempfile::tempdir().unwrap();
        let departure = departure(&scratch);
        assert!(is_over(&departure).await);
        assert!(!departure.hand_over());
    }

    #[tokio::test(start_paused = true)]
    async fn editor_that_does_not_return_is_given_up() {
        let scratch = tempfile::tempdir().unwrap();
        let departure = departure(&scratch);
        departure.begin().await.unwrap();
        assert!(!is_over(&departure).await);
        departure.over().await;
        assert!(!departure.hand_over() && !departure.is_leaving() && !departure.mark.exists());
    }

    #[tokio::test(start_paused = true)]
    async fn cancelled_departure_is_over_and_has_no_mark() {
        let scratch = tempfile::tempdir().unwrap();
        let departure = departure(&scratch);
        departure.begin().await.unwrap();
        assert!(departure.mark.exists());
        departure.cancel().await;
        assert!(is_over(&departure).await);
        assert!(!departure.hand_over() && !departure.mark.exists());
    }

    #[tokio::test(start_paused = true)]
    async fn companion_hands_over_once_and_is_not_stopped() {
        let scratch = tempfile::tempdir().unwrap();
        let departure = departure(&scratch);
        departure.begin().await.unwrap();
        assert!(departure.hand_over());
        assert!(!departure.hand_over());
        departure.handed_over().await;
        departure.cancel().await;
        assert!(!is_over(&departure).await, "it exits, without rejecting anything");
    }
}

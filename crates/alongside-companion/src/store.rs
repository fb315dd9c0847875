//! What outlives the process: the port and token to take again, who was connected, and the reviews that wait.
//!
//! Command lines do not look for a companion again, so one that was killed must come back where it was, know the sessions
//! that call it, and still be able to answer what they wait for. Companions of one editor and workspace each hold a slot
//! by a lock, which the system lets go when the process ends, however it ends.

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use alongside_core::dialect::ClientInfo;
use alongside_core::{Review, ReviewId, Secret, SessionId};
use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::kept_reviews::KeptReviews;
use crate::places::{Places, private_directory, write_private};

/// More companions of one editor on one workspace are a mistake somewhere else.
const SLOTS: usize = 32;
/// How many sessions are remembered by who they are.
const MOST_CLIENTS: usize = 128;

/// The slot of this companion.
pub(super) struct Store {
    slot: String,
    record_path: PathBuf,
    record: Mutex<Record>,
    reviews: KeptReviews,
    restored: Mutex<Vec<Review>>,
    /// Held while we live.
    _lock: File,
}

/// What is written down to be taken again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Record {
    /// The agents' port and token.
    agents: Option<Door>,
    /// The page's port and the secret of its logins.
    page: Option<Door>,
    /// Oldest first.
    clients: VecDeque<(SessionId, ClientInfo)>,
}

/// A port and the secret that opens it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Door {
    port: u16,
    token: Secret,
}

impl Door {
    fn new(port: u16, token: &Secret) -> Self {
        let token = token.clone();
        Self { port, token }
    }

    fn open(&self) -> (u16, Secret) {
        (self.port, self.token.clone())
    }
}

impl Store {
    /// Takes the first free slot for an editor and a workspace.
    pub(super) fn open(places: &Places, editor: &str, workspace: &[PathBuf]) -> Result<Self> {
        let directory = places.resume();
        private_directory(&directory)
            .with_context(|| format!("cannot create the directory {}", directory.display()))?;
        let key = key(editor, workspace);
        for slot in 0..SLOTS {
            let name = format!("{key:016x}-{slot}");
            let lock_path = directory.join(format!("{name}.lock"));
            let lock = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&lock_path)
                .with_context(|| format!("cannot open {}", lock_path.display()))?;
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("cannot lock {}", lock_path.display()));
                }
            }
            let record_path = directory.join(format!("{name}.json"));
            // A record that cannot be read is as good as none: the companion takes a new port.
            let record = read_json(&record_path).unwrap_or_default();
            let (reviews, restored) = KeptReviews::open(places.reviews().join(&name))?;
            return Ok(Self {
                slot: name,
                record_path,
                record: Mutex::new(record),
                reviews,
                restored: Mutex::new(restored),
                _lock: lock,
            });
        }
        bail!("{SLOTS} {editor} companions are already running for this workspace; run `alongside stop` to stop one")
    }

    /// The name of the slot.
    pub(super) fn slot(&self) -> &str {
        &self.slot
    }

    /// The agents' port and token of the companion that had this slot before.
    pub(super) fn former_agents(&self) -> Option<(u16, Secret)> {
        self.record.lock().agents.as_ref().map(Door::open)
    }

    /// The page's port and secret of the companion that had this slot before.
    pub(super) fn former_page(&self) -> Option<(u16, Secret)> {
        self.record.lock().page.as_ref().map(Door::open)
    }

    /// Writes down where agents find this companion, to be taken again.
    pub(super) fn remember_agents(&self, port: u16, token: &Secret) {
        self.change(|record| record.agents = Some(Door::new(port, token)));
    }

    /// Writes down where pages find this companion, to be taken again.
    pub(super) fn remember_page(&self, port: u16, session: &Secret) {
        self.change(|record| record.page = Some(Door::new(port, session)));
    }

    pub(super) fn remember_client(&self, session: &SessionId, client: &ClientInfo) {
        if self.known_client(session).as_ref() == Some(client) {
            return;
        }
        self.change(|record| {
            record.clients.retain(|(known, _)| known != session);
            record.clients.push_back((session.clone(), client.clone()));
            if record.clients.len() > MOST_CLIENTS {
                record.clients.pop_front();
            }
        });
    }

    pub(super) fn known_client(&self, session: &SessionId) -> Option<ClientInfo> {
        let record = self.record.lock();
        record
            .clients
            .iter()
            .find(|(known, _)| known == session)
            .map(|(_, client)| client.clone())
    }

    fn change(&self, change: impl FnOnce(&mut Record)) {
        let mut record = self.record.lock();
        change(&mut record);
        let written = serde_json::to_vec(&*record)
            .map_err(Into::into)
            .and_then(|text| write_private(&self.record_path, &text));
        if let Err(error) = written {
            tracing::error!(%error, path = %self.record_path.display(), "cannot save the companion's state; a restart would not be able to resume it");
        }
    }

    /// The reviews that were open when the former companion ended without a word; they are given once.
    pub(super) fn restore(&self) -> Vec<Review> {
        std::mem::take(&mut *self.restored.lock())
    }

    /// Writes a review soon.
    pub(super) fn save(&self, review: Review) {
        self.reviews.save(review);
    }

    /// Removes a review soon.
    pub(super) fn forget(&self, id: ReviewId) {
        self.reviews.forget(id);
    }
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// A number for an editor and its workspace that is the same in every version of this program (FNV-1a).
pub(super) fn key(editor: &str, workspace: &[PathBuf]) -> u64 {
    let folders = workspace.iter().map(|folder| folder.as_os_str().as_encoded_bytes());
    let bytes = std::iter::once(editor.as_bytes())
        .chain(folders)
        .flat_map(|part| part.iter().copied().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(scratch: &tempfile::TempDir) -> Places {
        Places {
            configuration: scratch.path().join("config"),
            state: scratch.path().join("state"),
        }
    }

    #[test]
    fn slot_with_an_invalid_token_gets_a_new_one() {
        let scratch = tempfile::tempdir().unwrap();
        let open = || Store::open(&places(&scratch), "editor", &["/a".into()]).unwrap();
        let store = open();
        store.remember_agents(1234, &Secret::from_bytes([5; 32]));
        let path = store.record_path.clone();
        drop(store);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(&"05".repeat(32), "05")).unwrap();
        assert_eq!(open().former_agents(), None);
    }

    #[test]
    fn a_slot_is_taken_again_with_its_port_token_and_clients() {
        let scratch = tempfile::tempdir().unwrap();
        let (session, token) = (SessionId::new("one"), Secret::from_bytes([5; 32]));
        let client = ClientInfo {
            name: "streamable-http-client".into(),
            version: "1.0.0".into(),
        };
        let store = Store::open(&places(&scratch), "editor", &["/a".into()]).unwrap();
        assert_eq!(store.former_agents(), None);
        store.remember_agents(1234, &token);
        store.remember_page(1235, &token);
        store.remember_client(&session, &client);
        drop(store);
        let store = Store::open(&places(&scratch), "editor", &["/a".into()]).unwrap();
        assert_eq!(store.former_agents(), Some((1234, token.clone())));
        assert_eq!(store.former_page(), Some((1235, token)));
        assert_eq!(store.known_client(&session), Some(client));
    }

    #[test]
    fn two_companions_of_one_workspace_do_not_share_a_slot() {
        let scratch = tempfile::tempdir().unwrap();
        let first = Store::open(&places(&scratch), "editor", &["/a".into()]).unwrap();
        first.remember_agents(1234, &Secret::from_bytes([5; 32]));
        let second = Store::open(&places(&scratch), "editor", &["/a".into()]).unwrap();
        assert_eq!(second.former_agents(), None);
        let elsewhere = Store::open(&places(&scratch), "editor", &["/b".into()]).unwrap();
        assert_eq!(elsewhere.former_agents(), None);
    }
}

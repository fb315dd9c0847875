//! What outlives the process: the endpoints to take again, the connected agents, open reviews and undelivered decisions.
//!
//! CLIs do not search for a companion again, so a restarted one must come back on the same port, know the sessions that call
//! it, and still be able to answer what they wait for. Companions of one editor and workspace each hold a slot by a lock, which
//! the system releases when the process ends.

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alongside_core::dialect::ClientInfo;
use alongside_core::{Decision, Review, ReviewId, Secret, SessionId};
use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::review_store::ReviewStore;
use super::writer::{Key, Writer};
use crate::places::{Places, private_directory, write_private};

/// More companions of one editor in one workspace are a mistake somewhere else.
const MAX_SLOTS: usize = 32;
const MAX_CLIENTS: usize = 128;

/// The slot of this companion.
pub(super) struct Store {
    slot: String,
    state_path: PathBuf,
    state: Mutex<SavedState>,
    decisions_path: PathBuf,
    decisions: Mutex<Vec<SavedDecision>>,
    restored: Mutex<Vec<Review>>,
    reviews: ReviewStore,
    writer: Arc<Writer>,
    /// Declared last: released after the last write.
    _lock: File,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct SavedState {
    /// The agents' port and token.
    agents: Option<Endpoint>,
    /// The page's port and the secret of its logins.
    page: Option<Endpoint>,
    /// Oldest first.
    clients: VecDeque<(SessionId, ClientInfo)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Endpoint {
    port: u16,
    token: Secret,
}

impl Endpoint {
    fn new(port: u16, token: &Secret) -> Self {
        let token = token.clone();
        Self { port, token }
    }

    fn to_parts(&self) -> (u16, Secret) {
        (self.port, self.token.clone())
    }
}

/// A decision that its agent has not received.
#[derive(Clone, Serialize, Deserialize)]
struct SavedDecision {
    session: SessionId,
    path: Arc<str>,
    /// The accepted text; `None` for a rejection.
    content: Option<Arc<str>>,
}

impl From<(SessionId, Decision)> for SavedDecision {
    fn from((session, decision): (SessionId, Decision)) -> Self {
        let (path, content) = match decision {
            Decision::Accepted { path, content } => (path, Some(content)),
            Decision::Rejected { path } => (path, None),
        };
        Self { session, path, content }
    }
}

impl From<SavedDecision> for (SessionId, Decision) {
    fn from(saved: SavedDecision) -> Self {
        let path = saved.path;
        let decision = match saved.content {
            Some(content) => Decision::Accepted { path, content },
            None => Decision::Rejected { path },
        };
        (saved.session, decision)
    }
}

impl Store {
    /// Takes the first free slot for an editor and a workspace.
    pub(super) fn open(places: &Places, editor: &str, workspace: &[PathBuf]) -> Result<Self> {
        let directory = places.resume();
        private_directory(&directory)
            .with_context(|| format!("cannot create the directory {}", directory.display()))?;
        let key = key(editor, workspace);
        for slot in 0..MAX_SLOTS {
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
            let state_path = directory.join(format!("{name}.json"));
            let decisions_path = directory.join(format!("{name}.decisions.json"));
            let writer = Arc::new(Writer::start().context("cannot start the thread that writes files")?);
            let (reviews, restored) = ReviewStore::open(places.reviews().join(&name), writer.clone());
            return Ok(Self {
                slot: name,
                // Without a readable state the companion takes a new port.
                state: Mutex::new(read_json(&state_path).unwrap_or_default()),
                state_path,
                decisions: Mutex::new(read_json(&decisions_path).unwrap_or_default()),
                decisions_path,
                restored: Mutex::new(restored),
                reviews,
                writer,
                _lock: lock,
            });
        }
        bail!(
            "{MAX_SLOTS} {editor} companions are already running for this workspace; run `alongside stop` to stop one"
        )
    }

    pub(super) fn slot(&self) -> &str {
        &self.slot
    }

    pub(super) fn writer(&self) -> &Arc<Writer> {
        &self.writer
    }

    /// The agents' port and token of the previous companion in this slot.
    pub(super) fn previous_agents(&self) -> Option<(u16, Secret)> {
        self.state.lock().agents.as_ref().map(Endpoint::to_parts)
    }

    /// The page's port and secret of the previous companion in this slot.
    pub(super) fn previous_page(&self) -> Option<(u16, Secret)> {
        self.state.lock().page.as_ref().map(Endpoint::to_parts)
    }

    pub(super) fn remember_agents(&self, port: u16, token: &Secret) {
        self.change(|state| state.agents = Some(Endpoint::new(port, token)));
    }

    pub(super) fn remember_page(&self, port: u16, session: &Secret) {
        self.change(|state| state.page = Some(Endpoint::new(port, session)));
    }

    pub(super) fn remember_client(&self, session: &SessionId, client: &ClientInfo) {
        if self.known_client(session).as_ref() == Some(client) {
            return;
        }
        self.change(|state| {
            state.clients.retain(|(known, _)| known != session);
            state.clients.push_back((session.clone(), client.clone()));
            if state.clients.len() > MAX_CLIENTS {
                state.clients.pop_front();
            }
        });
    }

    pub(super) fn known_client(&self, session: &SessionId) -> Option<ClientInfo> {
        let state = self.state.lock();
        state
            .clients
            .iter()
            .find(|(known, _)| known == session)
            .map(|(_, client)| client.clone())
    }

    fn change(&self, change: impl FnOnce(&mut SavedState)) {
        let state = {
            let mut state = self.state.lock();
            change(&mut state);
            state.clone()
        };
        let path = self.state_path.clone();
        self.writer.replace(Key::SavedState, move || {
            let written = serde_json::to_vec(&state)
                .map_err(Into::into)
                .and_then(|text| write_private(&path, &text));
            if let Err(error) = written {
                tracing::error!(%error, path = %path.display(), "cannot save the companion's state; a restart would not be able to resume it");
            }
        });
    }

    /// The decisions that the previous companion in this slot could not deliver.
    pub(super) fn undelivered(&self) -> Vec<(SessionId, Decision)> {
        self.decisions.lock().iter().cloned().map(Into::into).collect()
    }

    /// Saves what could not be delivered before the stop, for the next companion in this slot.
    pub(super) fn save_undelivered(&self, undelivered: Vec<(SessionId, Decision)>) {
        self.change_decisions(|decisions| *decisions = undelivered.into_iter().map(Into::into).collect());
    }

    /// The session is back and gets its decisions from its outbox. After a crash they must not come a second time: they could
    /// decide a newer review of the same file.
    pub(super) fn forget_undelivered(&self, session: &SessionId) {
        self.change_decisions(|decisions| decisions.retain(|decision| decision.session != *session));
    }

    /// Like [`forget_undelivered`](Self::forget_undelivered) for sessions that did not come back.
    pub(super) fn forget_all_undelivered(&self) {
        self.change_decisions(Vec::clear);
    }

    fn change_decisions(&self, change: impl FnOnce(&mut Vec<SavedDecision>)) {
        let mut saved = self.decisions.lock();
        let before = saved.len();
        change(&mut saved);
        if before == 0 && saved.is_empty() {
            return;
        }
        let (decisions, path) = (saved.clone(), self.decisions_path.clone());
        self.writer.replace(Key::Decisions, move || {
            let written = if decisions.is_empty() {
                fs::remove_file(&path)
            } else {
                serde_json::to_vec(&decisions)
                    .map_err(Into::into)
                    .and_then(|text| write_private(&path, &text))
            };
            if let Err(error) = written
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::error!(%error, path = %path.display(), "cannot save undelivered decisions; their agents may wait for them");
            }
        });
    }

    /// The reviews that were open when the previous companion was killed; returned once.
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

    /// Waits until everything is written.
    pub(super) async fn flush(&self) {
        self.writer.flush().await;
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

    fn open(scratch: &tempfile::TempDir, folder: &str) -> Store {
        let places = Places {
            configuration: scratch.path().join("config"),
            state: scratch.path().join("state"),
        };
        Store::open(&places, "editor", &[folder.into()]).unwrap()
    }

    #[test]
    fn slot_with_an_invalid_token_gets_a_new_one() {
        let scratch = tempfile::tempdir().unwrap();
        let store = open(&scratch, "/a");
        store.remember_agents(1234, &Secret::from_bytes([5; 32]));
        let path = store.state_path.clone();
        drop(store);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(&"05".repeat(32), "05")).unwrap();
        assert_eq!(open(&scratch, "/a").previous_agents(), None);
    }

    #[test]
    fn reopened_slot_has_its_ports_tokens_and_clients() {
        let scratch = tempfile::tempdir().unwrap();
        let (session, token) = (SessionId::new("one"), Secret::from_bytes([5; 32]));
        let client = ClientInfo {
            name: "streamable-http-client".into(),
            version: "1.0.0".into(),
        };
        let store = open(&scratch, "/a");
        assert_eq!(store.previous_agents(), None);
        store.remember_agents(1234, &token);
        store.remember_page(1235, &token);
        store.remember_client(&session, &client);
        drop(store);
        let store = open(&scratch, "/a");
        assert_eq!(store.previous_agents(), Some((1234, token.clone())));
        assert_eq!(store.previous_page(), Some((1235, token)));
        assert_eq!(store.known_client(&session), Some(client));
    }

    #[test]
    fn companions_of_one_workspace_do_not_share_a_slot() {
        let scratch = tempfile::tempdir().unwrap();
        let first = open(&scratch, "/a");
        first.remember_agents(1234, &Secret::from_bytes([5; 32]));
        assert_eq!(open(&scratch, "/a").previous_agents(), None);
        assert_eq!(open(&scratch, "/b").previous_agents(), None);
    }

    #[test]
    fn undelivered_decisions_are_kept_until_their_session_is_back() {
        let scratch = tempfile::tempdir().unwrap();
        let decision = |session: &str, content: Option<&str>| {
            let path = Arc::from("/a\n");
            let decision = match content {
                Some(content) => Decision::Accepted {
                    path,
                    content: content.into(),
                },
                None => Decision::Rejected { path },
            };
            (SessionId::new(session), decision)
        };
        let all = vec![decision("one", Some("\u{feff}text\r\n")), decision("two", None)];
        let store = open(&scratch, "/a");
        store.save_undelivered(all.clone());
        drop(store);
        let store = open(&scratch, "/a");
        assert_eq!(store.undelivered(), all);
        store.forget_undelivered(&SessionId::new("one"));
        drop(store);
        let store = open(&scratch, "/a");
        assert_eq!(store.undelivered(), all[1..]);
        store.forget_all_undelivered();
        let path = store.decisions_path.clone();
        drop(store);
        assert!(!path.exists());
    }
}

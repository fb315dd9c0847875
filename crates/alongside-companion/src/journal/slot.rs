//! The directory of one companion's journal.
//!
//! CLIs do not search for a companion again, so a restarted one must come back on the same port, know the sessions that call
//! it, and still be able to answer what they wait for. Companions of one editor and workspace each hold a slot by a lock, which
//! the system releases when the process ends.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alongside_journal::{Directory, OpenError};
use anyhow::{Context, Result, bail};

use crate::departure;
use crate::places::{Places, private_directory};

/// More companions of one editor in one workspace are a mistake somewhere else.
const MAX_SLOTS: usize = 32;
/// The system does not notify of a released lock.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

pub(crate) struct Slot {
    pub(crate) directory: Directory,
    /// The file that says that the editor of this slot's companion is leaving.
    pub(crate) mark: PathBuf,
}

impl Slot {
    /// Takes the slot that an editor left to come back to, else the first free one, for an editor and a workspace. Blocks.
    pub(crate) fn take(places: &Places, editor: &str, workspace: &[PathBuf]) -> Result<Self> {
        let parent = super::directory(places);
        private_directory(&parent).with_context(|| format!("cannot create the directory {}", parent.display()))?;
        let key = key(editor, workspace);
        let paths = || (0..MAX_SLOTS).map(|slot| parent.join(format!("{key:016x}-{slot}")));
        // The first free one is taken, so there are none behind one that is not there.
        for path in paths().take_while(|path| path.exists()) {
            if departure::take_over(places, &departure::mark(&path))
                && let Some(slot) = Self::open_within(&path, departure::HAND_OVER_TIMEOUT)?
            {
                return Ok(slot);
            }
        }
        for path in paths() {
            if let Some(slot) = Self::open_within(&path, Duration::ZERO)? {
                return Ok(slot);
            }
        }
        bail!(
            "{MAX_SLOTS} {editor} companions are already running for this workspace; run `alongside stop` to stop one"
        )
    }
}

impl Slot {
    /// `None` if another process is still using it.
    fn open_within(path: &Path, timeout: Duration) -> Result<Option<Self>> {
        let start = Instant::now();
        loop {
            match Directory::open(path) {
                Ok(directory) => {
                    let mark = departure::mark(path);
                    departure::remove(&mark);
                    return Ok(Some(Self { directory, mark }));
                }
                Err(OpenError::InUse) if start.elapsed() < timeout => std::thread::sleep(RETRY_PAUSE),
                Err(OpenError::InUse) => return Ok(None),
                Err(error) => return Err(error).with_context(|| format!("cannot use {}", path.display())),
            }
        }
    }
}

/// A number for an editor and its workspace that is the same in every version of this program (FNV-1a).
pub(crate) fn key(editor: &str, workspace: &[PathBuf]) -> u64 {
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
    use crate::test_companion::places;

    #[test]
    fn companion_without_a_free_slot_says_so() {
        let scratch = tempfile::tempdir().unwrap();
        let take = || Slot::take(&places(&scratch), "vim", &[scratch.path().to_owned()]);
        let slots: Vec<Slot> = (0..MAX_SLOTS).map(|_| take().unwrap()).collect();
        let error = take().err().unwrap().to_string();
        assert!(error.starts_with("32 vim companions are already running"), "{error}");
        drop(slots);
        take().unwrap();
    }
}

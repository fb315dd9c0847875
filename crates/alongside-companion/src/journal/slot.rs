//! The directory of one companion's journal.
//!
//! CLIs do not search for a companion again, so a restarted one must come back on the same port, know the sessions that call
//! it, and still be able to answer what they wait for. Companions of one editor and workspace each hold a slot by a lock, which
//! the system releases when the process ends.

use std::path::PathBuf;

use alongside_journal::{Directory, OpenError};
use anyhow::{Context, Result, bail};

use crate::places::{Places, private_directory};

/// More companions of one editor in one workspace are a mistake somewhere else.
const MAX_SLOTS: usize = 32;

pub(crate) struct Slot {
    pub(crate) directory: Directory,
}

impl Slot {
    /// Takes the first free slot for an editor and a workspace.
    pub(crate) fn take(places: &Places, editor: &str, workspace: &[PathBuf]) -> Result<Self> {
        let parent = super::directory(places);
        private_directory(&parent).with_context(|| format!("cannot create the directory {}", parent.display()))?;
        let key = key(editor, workspace);
        for slot in 0..MAX_SLOTS {
            let path = parent.join(format!("{key:016x}-{slot}"));
            match Directory::open(&path) {
                Ok(directory) => return Ok(Self { directory }),
                Err(OpenError::InUse) => {}
                Err(error) => return Err(error).with_context(|| format!("cannot use {}", path.display())),
            }
        }
        bail!(
            "{MAX_SLOTS} {editor} companions are already running for this workspace; run `alongside stop` to stop one"
        )
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

//! The socket for agents that connect to one, and the directories in which such agents were started.

use std::path::{Path, PathBuf};

use alongside_discovery::process::{Alive, Processes, SystemProcesses};
use alongside_platform::Platform;
use alongside_platform::path::is_in;
use alongside_protocol::{ErrorKind, RequestError};

use crate::Companion;
use crate::places::{Places, private_directory};

/// Systems have limits of 104 or 108 bytes.
const MAX_PATH_BYTES: usize = 100;

/// More are forgotten, the oldest first.
const MAX_DIRECTORIES: usize = 64;

/// The path of this process' socket, in a private directory without the sockets of dead companions, or of its named pipe. `None`, with a
/// warning, if there cannot be one. Blocks.
pub(crate) fn prepare(places: &Places) -> Option<PathBuf> {
    if cfg!(windows) {
        return Some(PathBuf::from(format!(r"\\.\pipe\alongside-{}", std::process::id())));
    }
    let directory = places.sockets();
    let path = directory.join(name_of(std::process::id()));
    if path.as_os_str().len() > MAX_PATH_BYTES {
        tracing::warn!(path = %path.display(), "this path is too long for a socket; Copilot CLI cannot connect");
        return None;
    }
    if let Err(error) = private_directory(&directory) {
        tracing::warn!(%error, path = %directory.display(), "cannot create a directory; Copilot CLI cannot connect");
        return None;
    }
    sweep(&directory, &SystemProcesses::default());
    Some(path)
}

pub(crate) fn name_of(pid: u32) -> String {
    format!("{pid}.sock")
}

fn sweep(directory: &Path, processes: &impl Processes) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_suffix(".sock")?.parse().ok());
        if pid.is_some_and(|pid| processes.is_alive(pid) == Alive::No) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn remember(entered: &mut Vec<PathBuf>, directory: PathBuf) {
    if entered.len() == MAX_DIRECTORIES {
        entered.remove(0);
    }
    entered.push(directory);
}

impl Companion {
    /// An agent is about to be started in this directory. It connects only if the directory itself is announced.
    pub(crate) async fn enter(&self, directory: String) -> Result<(), RequestError> {
        let [directory] = <[PathBuf; 1]>::try_from(self.check_folders(vec![directory.into()]).await?)
            .map_err(|_| RequestError::new(ErrorKind::Internal, "one folder is not one folder"))?;
        let workspace = self.workspace();
        if !workspace
            .iter()
            .any(|folder| is_in(Platform::current(), folder, &directory))
        {
            let message = format!("{} is not in the workspace", directory.display());
            return Err(RequestError::new(ErrorKind::Failed, message));
        }
        {
            let mut entered = self.entered.lock();
            if workspace.contains(&directory) || entered.contains(&directory) {
                return Ok(());
            }
            remember(&mut entered, directory);
        }
        self.wake.workspace.notify_one();
        Ok(())
    }

    pub(crate) fn entered_directories(&self) -> Vec<PathBuf> {
        self.entered.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use alongside_discovery::process::ProcessTable;

    use super::*;

    #[test]
    fn entered_directories_are_limited() {
        let mut entered = Vec::new();
        for number in 0..=MAX_DIRECTORIES {
            remember(&mut entered, PathBuf::from(format!("/{number}")));
        }
        assert_eq!(entered.len(), MAX_DIRECTORIES);
        assert_eq!(entered[0], Path::new("/1"));
    }

    #[test]
    fn sockets_of_dead_companions_are_removed() {
        let scratch = tempfile::tempdir().unwrap();
        for name in ["7.sock", "8.sock", "other"] {
            std::fs::write(scratch.path().join(name), "").unwrap();
        }
        sweep(scratch.path(), &ProcessTable::default().with(7, 1, "alongside"));
        assert!(scratch.path().join("7.sock").exists());
        assert!(!scratch.path().join("8.sock").exists());
        assert!(scratch.path().join("other").exists());
    }
}

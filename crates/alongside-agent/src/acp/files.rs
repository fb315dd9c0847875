//! Files that are read and written for a local agent.
//!
//! The agent requests files of the workspace from us. Reading returns what the user sees, with unsaved changes, and writing goes through a
//! [`ReviewGate`]. All file access runs on blocking threads, on [`MAX_CONCURRENT_IO`] of them at most; further requests wait.

use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use alongside_core::SessionId;
use alongside_wire::rpc::{INTERNAL_ERROR, INVALID_PARAMS, RpcError};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::conversation::text_of;

const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// Files of the largest size take this many times their memory, and no disk gets faster with more.
const MAX_CONCURRENT_IO: usize = 4;

static FILE_IO: Semaphore = Semaphore::const_new(MAX_CONCURRENT_IO);

/// ACP's code for a missing resource.
const MISSING: i64 = -32002;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedWrite {
    pub session_id: SessionId,
    pub path: PathBuf,
    /// The current text; `None` if the file does not exist.
    pub base: Option<String>,
    /// The proposed text.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteDecision {
    /// Write this text: the proposed one, or as edited by the user.
    Write(String),
    Refuse {
        /// Sent to the agent.
        reason: String,
    },
}

/// Decides what a local agent reads and writes.
pub trait ReviewGate: Send + Sync {
    /// The text of a file as the user sees it, if it differs from the disk.
    fn unsaved_text(&self, path: &Path) -> Option<String> {
        let _ = path;
        None
    }

    /// Decides about a write. The turn waits for this; if the turn is cancelled, the future is dropped.
    fn review(&self, write: ProposedWrite) -> BoxFuture<'static, WriteDecision>;
}

/// Allows every write: for users who chose that, and for agents that ask for permission before.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowWrites;

impl ReviewGate for AllowWrites {
    fn review(&self, write: ProposedWrite) -> BoxFuture<'static, WriteDecision> {
        Box::pin(std::future::ready(WriteDecision::Write(write.text)))
    }
}

/// The error response to the agent.
#[derive(Debug)]
pub(super) struct FileError(RpcError);

impl FileError {
    pub(super) fn into_rpc(self) -> RpcError {
        self.0
    }

    pub(super) fn is_missing(&self) -> bool {
        self.0.code == MISSING
    }

    fn new(code: i64, message: &str, kind: &str) -> Self {
        Self(RpcError::new(code, message.to_owned()).with_data(json!({"errorKind": kind})))
    }

    /// Agents recognize a missing file by this message.
    fn missing(path: &Path) -> Self {
        Self::new(
            MISSING,
            &format!("Resource not found: {}", path.display()),
            "path_not_found",
        )
    }

    fn from_system(path: &Path, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::missing(path),
            _ => Self::new(INTERNAL_ERROR, &format!("{}: {error}", path.display()), "io_error"),
        }
    }
}

/// Runs file access on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    // The semaphore is never closed, and a task fails only if the runtime shuts down.
    let _permit = FILE_IO.acquire().await;
    let result = tokio::task::spawn_blocking(work).await;
    result.unwrap_or_else(|error| Err(FileError::new(INTERNAL_ERROR, &error.to_string(), "io_error")))
}

/// `fs/read_text_file`.
pub(super) async fn read(workspace: &Path, gate: &dyn ReviewGate, params: &Value) -> Result<Value, FileError> {
    let path = requested_path(workspace, params).await?;
    let text = if let Some(text) = gate.unsaved_text(&path) {
        text
    } else {
        let text = {
            let path = path.clone();
            blocking(move || text_on_disk(&path)).await?
        };
        text.ok_or_else(|| FileError::missing(&path))?
    };
    let number = |name: &str| {
        let number = params.get(name).and_then(Value::as_u64)?;
        usize::try_from(number).ok()
    };
    let content = match (number("line"), number("limit")) {
        (None, None) => text,
        (line, limit) => {
            let lines = text.split_inclusive('\n').skip(line.unwrap_or(1).saturating_sub(1));
            lines.take(limit.unwrap_or(usize::MAX)).collect()
        }
    };
    Ok(json!({"content": content}))
}

/// `fs/write_text_file`.
pub(super) async fn write(workspace: &Path, gate: &dyn ReviewGate, params: &Value) -> Result<Value, FileError> {
    let path = requested_path(workspace, params).await?;
    let text = text_of(params, "content");
    let text = text.ok_or_else(|| FileError::new(INVALID_PARAMS, "missing content", "parse_error"))?;
    let base = {
        let path = path.clone();
        blocking(move || text_on_disk(&path)).await?
    };
    let proposed = ProposedWrite {
        session_id: SessionId::new(text_of(params, "sessionId").unwrap_or_default()),
        base,
        path: path.clone(),
        text: text.to_owned(),
    };
    let text = match gate.review(proposed).await {
        WriteDecision::Write(text) => text,
        WriteDecision::Refuse { reason } => return Err(FileError::new(-32000, &reason, "refused")),
    };
    blocking(move || {
        let write = || {
            if let Some(directory) = path.parent() {
                fs::create_dir_all(directory)?;
            }
            // In place, so that permissions, symlinks and watchers stay as they are.
            fs::write(&path, text)
        };
        write().map_err(|error| FileError::from_system(&path, &error))
    })
    .await?;
    Ok(json!({}))
}

fn text_on_disk(path: &Path) -> Result<Option<String>, FileError> {
    let failed = |error: io::Error| FileError::from_system(path, &error);
    let refused = |what: &str, kind: &str| {
        let message = format!("{} is {what}", path.display());
        FileError::new(INTERNAL_ERROR, &message, kind)
    };
    match fs::metadata(path) {
        // Opening a pipe waits for its other end.
        Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => Err(refused("not a file", "not_a_file")),
        Ok(metadata) if metadata.len() > MAX_FILE_BYTES => Err(refused("too large", "file_too_large")),
        Ok(_) => {
            let text = String::from_utf8(fs::read(path).map_err(failed)?);
            text.map(Some).map_err(|_| refused("not a text file", "binary_file"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// The requested file, if it is in the workspace. An agent accesses other files itself, by its own rules.
async fn requested_path(workspace: &Path, params: &Value) -> Result<PathBuf, FileError> {
    let path = PathBuf::from(text_of(params, "path").unwrap_or_default());
    let workspace = workspace.to_owned();
    blocking(move || {
        if is_in_workspace(&workspace, &path) {
            return Ok(path);
        }
        let message = format!("{} is not in the workspace", path.display());
        Err(FileError::new(INVALID_PARAMS, &message, "path_outside_workspace"))
    })
    .await
}

fn is_in_workspace(workspace: &Path, path: &Path) -> bool {
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return false;
    }
    let root = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
    // The file may not exist yet: the existing part of its path decides.
    let mut existing = path;
    loop {
        match (existing.canonicalize(), existing.parent()) {
            (Ok(real), _) => return real.starts_with(&root),
            // Writing through a dangling symlink would create its target, wherever that is.
            (Err(_), Some(parent)) if existing.symlink_metadata().is_err() => existing = parent,
            (Err(_), _) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Decides as told, and records the proposed writes.
    struct Gate {
        decision: WriteDecision,
        asked: Mutex<Vec<ProposedWrite>>,
    }

    impl ReviewGate for Gate {
        fn unsaved_text(&self, path: &Path) -> Option<String> {
            path.ends_with("unsaved.txt").then(|| "unsaved".to_owned())
        }

        fn review(&self, write: ProposedWrite) -> BoxFuture<'static, WriteDecision> {
            self.asked.lock().unwrap().push(write);
            Box::pin(std::future::ready(self.decision.clone()))
        }
    }

    fn gate(decision: WriteDecision) -> Gate {
        Gate {
            decision,
            asked: Mutex::default(),
        }
    }

    fn kind(error: FileError) -> String {
        error.into_rpc().data["errorKind"].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn text_from_the_review_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/a.txt");
        let params = json!({"sessionId": "s", "path": path, "content": "proposed"});
        let gate = gate(WriteDecision::Write("edited".to_owned()));
        write(directory.path(), &gate, &params).await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "edited");
        write(directory.path(), &gate, &params).await.unwrap();
        let asked = gate.asked.lock().unwrap();
        assert_eq!((asked[0].base.as_deref(), asked[0].text.as_str()), (None, "proposed"));
        assert_eq!(asked[1].base.as_deref(), Some("edited"));
    }

    #[tokio::test]
    async fn refused_write_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.txt");
        let gate = gate(WriteDecision::Refuse {
            reason: "no".to_owned(),
        });
        let refused = write(directory.path(), &gate, &json!({"path": path, "content": "x"})).await;
        assert_eq!(refused.unwrap_err().into_rpc().message, "no");
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn reading_returns_unsaved_text_and_requested_lines() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.txt");
        std::fs::write(&path, "1\r\n2\n3").unwrap();
        let read =
            async |params: Value| read(directory.path(), &gate(WriteDecision::Write(String::new())), &params).await;
        assert_eq!(read(json!({"path": path})).await.unwrap()["content"], "1\r\n2\n3");
        assert_eq!(
            read(json!({"path": path, "line": 2, "limit": 1})).await.unwrap()["content"],
            "2\n"
        );
        let unsaved = directory.path().join("unsaved.txt");
        assert_eq!(read(json!({"path": unsaved})).await.unwrap()["content"], "unsaved");
        let missing = read(json!({"path": directory.path().join("missing")}))
            .await
            .unwrap_err()
            .into_rpc();
        assert_eq!(missing.code, -32002);
        assert!(missing.message.starts_with("Resource not found"));
    }

    #[tokio::test]
    async fn file_outside_the_workspace_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = directory.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        std::fs::write(directory.path().join("secret"), "x").unwrap();
        for path in [
            "/etc/hostname".to_owned(),
            "a.txt".to_owned(),
            format!("{}/../secret", workspace.display()),
        ] {
            let error = read(&workspace, &AllowWrites, &json!({"path": path}))
                .await
                .unwrap_err();
            assert_eq!(kind(error), "path_outside_workspace", "{path}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn symlink_out_of_the_workspace_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = directory.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        std::os::unix::fs::symlink(directory.path(), workspace.join("out")).unwrap();
        std::os::unix::fs::symlink(directory.path().join("not yet"), workspace.join("dangling")).unwrap();
        for name in ["out/new.txt", "dangling"] {
            let params = json!({"path": workspace.join(name), "content": "x"});
            let error = write(&workspace, &AllowWrites, &params).await.unwrap_err();
            assert_eq!(kind(error), "path_outside_workspace", "{name}");
        }
    }
    #[cfg(unix)]
    #[tokio::test]
    async fn pipe_is_refused_instead_of_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let params = json!({"path": path, "content": "x"});
        let error = read(directory.path(), &AllowWrites, &params).await.unwrap_err();
        assert_eq!(kind(error), "not_a_file");
        let error = write(directory.path(), &AllowWrites, &params).await.unwrap_err();
        assert_eq!(kind(error), "not_a_file");
    }
}

//! Files that are read and written for a local agent.
//!
//! The agent requests files of the workspace from us. Reading returns what the user sees, with unsaved changes, unless the file is
//! hidden from agents, and writing goes through a [`ReviewGate`]. All file access runs on the agent's own few threads ([`FileIo`]).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alongside_core::SessionId;
use alongside_wire::rpc::{INTERNAL_ERROR, INVALID_PARAMS, RpcError};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::file_io::FileIo;
use super::permission_review::ChangeRequests;
use super::workspace_file::{Content, WorkspaceFile, has_changed};
use crate::conversation::text_of;

const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

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

    /// Why an agent may not read a file, if so: the end of a sentence that begins with the path. `real` has symlinks resolved.
    fn hidden(&self, path: &Path, real: &Path) -> Option<String> {
        let _ = (path, real);
        None
    }

    /// What happens to permission requests for changes of files.
    fn change_requests(&self) -> ChangeRequests {
        ChangeRequests::default()
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
            _ if has_changed(error) => Self::new(
                INTERNAL_ERROR,
                &format!(
                    "{} changed after it was checked: part of it is now a symlink or not a directory",
                    path.display()
                ),
                "path_changed",
            ),
            _ => Self::new(INTERNAL_ERROR, &format!("{}: {error}", path.display()), "io_error"),
        }
    }
}

async fn blocking<T: Send + 'static>(
    io: &FileIo,
    path: &Path,
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    io.run(work).await.unwrap_or_else(|error| {
        let message = format!("{}: {error}", path.display());
        Err(FileError::new(INTERNAL_ERROR, &message, "io_error"))
    })
}

/// `fs/read_text_file`.
pub(super) async fn read(
    io: &FileIo,
    workspace: &Path,
    gate: &dyn ReviewGate,
    params: &Value,
) -> Result<Value, FileError> {
    let file = requested_file(io, workspace, params).await?;
    if let Some(reason) = gate.hidden(&file.path, &file.real) {
        let message = format!("{} {reason}", file.path.display());
        return Err(FileError::new(INVALID_PARAMS, &message, "hidden"));
    }
    let text = if let Some(text) = gate.unsaved_text(&file.path) {
        text
    } else {
        let text = current_text(io, &file).await?;
        text.ok_or_else(|| FileError::missing(&file.path))?
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
pub(super) async fn write(
    io: &FileIo,
    workspace: &Path,
    gate: &dyn ReviewGate,
    params: &Value,
) -> Result<Value, FileError> {
    let file = requested_file(io, workspace, params).await?;
    let text = text_of(params, "content");
    let text = text.ok_or_else(|| FileError::new(INVALID_PARAMS, "missing content", "parse_error"))?;
    let base = current_text(io, &file).await?;
    let proposed = ProposedWrite {
        session_id: SessionId::new(text_of(params, "sessionId").unwrap_or_default()),
        base,
        path: file.path.clone(),
        text: text.to_owned(),
    };
    let text = match gate.review(proposed).await {
        WriteDecision::Write(text) => text,
        WriteDecision::Refuse { reason } => return Err(FileError::new(-32000, &reason, "refused")),
    };
    put(io, file, text).await?;
    Ok(json!({}))
}

pub(super) async fn put(io: &FileIo, file: Arc<WorkspaceFile>, text: String) -> Result<(), FileError> {
    blocking(io, &file.path.clone(), move || {
        file.write(&text)
            .map_err(|error| FileError::from_system(&file.path, &error))
    })
    .await
}

pub(super) async fn remove(io: &FileIo, file: Arc<WorkspaceFile>) -> Result<(), FileError> {
    blocking(io, &file.path.clone(), move || {
        file.remove()
            .map_err(|error| FileError::from_system(&file.path, &error))
    })
    .await
}

/// The text of a file in the workspace now; `None` if it does not exist.
pub(super) async fn text_of_file(io: &FileIo, workspace: &Path, path: PathBuf) -> Result<Option<String>, FileError> {
    let file = find(io, workspace, path).await?;
    current_text(io, &file).await
}

/// The text of a file now; `None` if it does not exist.
async fn current_text(io: &FileIo, file: &Arc<WorkspaceFile>) -> Result<Option<String>, FileError> {
    let read = Arc::clone(file);
    blocking(io, &file.path, move || text_on_disk(&read)).await
}

fn text_on_disk(file: &WorkspaceFile) -> Result<Option<String>, FileError> {
    let path = &file.path;
    let refused = |what: &str, kind: &str| {
        let message = format!("{} is {what}", path.display());
        Err(FileError::new(INTERNAL_ERROR, &message, kind))
    };
    match file.read(MAX_FILE_BYTES) {
        Ok(Content::Missing) => Ok(None),
        Ok(Content::NotAFile) => refused("not a file", "not_a_file"),
        Ok(Content::TooLarge) => refused("too large", "file_too_large"),
        Ok(Content::Bytes(bytes)) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => refused("not a text file", "binary_file"),
        },
        Err(error) => Err(FileError::from_system(path, &error)),
    }
}

/// The requested file, if it is in the workspace. An agent accesses other files itself, by its own rules.
async fn requested_file(io: &FileIo, workspace: &Path, params: &Value) -> Result<Arc<WorkspaceFile>, FileError> {
    let path = PathBuf::from(text_of(params, "path").unwrap_or_default());
    find(io, workspace, path).await
}

pub(super) async fn find(io: &FileIo, workspace: &Path, path: PathBuf) -> Result<Arc<WorkspaceFile>, FileError> {
    let workspace = workspace.to_owned();
    blocking(io, &path.clone(), move || {
        let found = WorkspaceFile::find(&workspace, path.clone());
        let found = found.map_err(|error| FileError::from_system(&path, &error))?;
        found.map(Arc::new).ok_or_else(|| {
            let message = format!("{} is not in the workspace", path.display());
            FileError::new(INVALID_PARAMS, &message, "path_outside_workspace")
        })
    })
    .await
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
        write(&FileIo::default(), directory.path(), &gate, &params)
            .await
            .unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "edited");
        write(&FileIo::default(), directory.path(), &gate, &params)
            .await
            .unwrap();
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
        let refused = write(
            &FileIo::default(),
            directory.path(),
            &gate,
            &json!({"path": path, "content": "x"}),
        )
        .await;
        assert_eq!(refused.unwrap_err().into_rpc().message, "no");
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn reading_returns_unsaved_text_and_requested_lines() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.txt");
        std::fs::write(&path, "1\r\n2\n3").unwrap();
        let read = async |params: Value| {
            read(
                &FileIo::default(),
                directory.path(),
                &gate(WriteDecision::Write(String::new())),
                &params,
            )
            .await
        };
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
            let error = read(&FileIo::default(), &workspace, &AllowWrites, &json!({"path": path}))
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
            let error = write(&FileIo::default(), &workspace, &AllowWrites, &params)
                .await
                .unwrap_err();
            assert_eq!(kind(error), "path_outside_workspace", "{name}");
        }
    }

    /// Accepts a write after replacing something by a symlink.
    #[cfg(unix)]
    struct Swap {
        swapped: PathBuf,
        target: PathBuf,
    }

    #[cfg(unix)]
    impl ReviewGate for Swap {
        fn review(&self, write: ProposedWrite) -> BoxFuture<'static, WriteDecision> {
            let moved = self.swapped.with_extension("moved");
            if self.swapped.exists() {
                std::fs::rename(&self.swapped, moved).unwrap();
            }
            std::os::unix::fs::symlink(&self.target, &self.swapped).unwrap();
            Box::pin(std::future::ready(WriteDecision::Write(write.text)))
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn symlink_swapped_in_during_the_review_is_not_followed() {
        // What the agent writes, and what it replaces by a symlink while the user reviews.
        for (written, swapped) in [
            ("file", "file"),
            ("new", "new"),
            ("directory/file", "directory"),
            ("directory/new", "directory"),
            ("not/yet/there", "not"),
            ("directory/sub/new", "directory/sub"),
        ] {
            let scratch = tempfile::tempdir().unwrap();
            let (workspace, outside) = (scratch.path().join("workspace"), scratch.path().join("outside"));
            std::fs::create_dir_all(workspace.join("directory/sub")).unwrap();
            std::fs::create_dir(&outside).unwrap();
            std::fs::write(workspace.join("file"), "before").unwrap();
            std::fs::write(workspace.join("directory/file"), "before").unwrap();
            let is_directory = written != swapped;
            let target = if is_directory {
                outside.clone()
            } else {
                outside.join("written")
            };
            let gate = Swap {
                swapped: workspace.join(swapped),
                target,
            };
            let params = json!({"path": workspace.join(written), "content": "x"});
            let refused = write(&FileIo::default(), &workspace, &gate, &params).await;
            assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0, "{written}");
            assert_eq!(kind(refused.unwrap_err()), "path_changed", "{written}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn swapped_workspace_is_not_written_to() {
        let scratch = tempfile::tempdir().unwrap();
        let (workspace, outside) = (scratch.path().join("workspace"), scratch.path().join("outside"));
        std::fs::create_dir(&workspace).unwrap();
        std::fs::create_dir(&outside).unwrap();
        let gate = Swap {
            swapped: workspace.clone(),
            target: outside.clone(),
        };
        let params = json!({"path": workspace.join("new"), "content": "x"});
        write(&FileIo::default(), &workspace, &gate, &params).await.unwrap();
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
        assert_eq!(std::fs::read(scratch.path().join("workspace.moved/new")).unwrap(), b"x");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn write_through_a_symlink_in_the_workspace_keeps_the_symlink() {
        let workspace = tempfile::tempdir().unwrap();
        let (file, link) = (workspace.path().join("file"), workspace.path().join("link"));
        std::fs::write(&file, "long text before").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let params = json!({"path": link, "content": "after"});
        write(&FileIo::default(), workspace.path(), &AllowWrites, &params)
            .await
            .unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "after");
        assert!(link.symlink_metadata().unwrap().is_symlink());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn pipe_is_refused_instead_of_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let params = json!({"path": path, "content": "x"});
        let error = read(&FileIo::default(), directory.path(), &AllowWrites, &params)
            .await
            .unwrap_err();
        assert_eq!(kind(error), "not_a_file");
        let error = write(&FileIo::default(), directory.path(), &AllowWrites, &params)
            .await
            .unwrap_err();
        assert_eq!(kind(error), "not_a_file");
    }
}

//! Files that are read and written for an agent.
//!
//! An agent that is our child asks us for files of the workspace: reading gives what a person sees, with changes
//! that are not saved, and writing goes through a [`ReviewGate`].

use std::io;
use std::path::{Component, Path, PathBuf};

use alongside_wire::rpc::{INTERNAL_ERROR, INVALID_PARAMS, RpcError};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::conversation::text_of;

/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// The code with which the protocol says that something is not there.
const MISSING: i64 = -32002;

/// Something that an agent wants to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedWrite {
    /// The session of the agent.
    pub session_id: String,
    /// The file.
    pub path: PathBuf,
    /// What it holds now; `None` if it does not exist.
    pub base: Option<String>,
    /// What it shall hold.
    pub text: String,
}

/// What becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteDecision {
    /// It is written, as proposed or as somebody changed it.
    Write(String),
    /// It is not written.
    Refuse {
        /// What the agent is told.
        reason: String,
    },
}

/// What stands between an agent and the files of a person.
pub trait ReviewGate: Send + Sync {
    /// The text of a file as a person sees it, if it differs from the disk.
    fn unsaved_text(&self, path: &Path) -> Option<String> {
        let _ = path;
        None
    }

    /// Decides about a change. The turn goes on when this does; if the turn is cancelled this is dropped.
    fn review(&self, write: ProposedWrite) -> BoxFuture<'static, WriteDecision>;
}

/// Lets everything through, for people who have chosen so, and where the agent asks for permission itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowWrites;

impl ReviewGate for AllowWrites {
    fn review(&self, write: ProposedWrite) -> BoxFuture<'static, WriteDecision> {
        Box::pin(std::future::ready(WriteDecision::Write(write.text)))
    }
}

/// What goes back to the agent instead of a result.
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

    /// The words count: programs recognise a missing file by them.
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

/// `fs/read_text_file`.
pub(super) async fn read(workspace: &Path, gate: &dyn ReviewGate, params: &Value) -> Result<Value, FileError> {
    let path = path_of(workspace, params).await?;
    let text = match gate.unsaved_text(&path) {
        Some(text) => text,
        None => text_on_disk(&path).await?.ok_or_else(|| FileError::missing(&path))?,
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
    let path = path_of(workspace, params).await?;
    let text = text_of(params, "content");
    let text = text.ok_or_else(|| FileError::new(INVALID_PARAMS, "missing content", "parse_error"))?;
    let proposed = ProposedWrite {
        session_id: text_of(params, "sessionId").unwrap_or_default().to_owned(),
        base: text_on_disk(&path).await?,
        path: path.clone(),
        text: text.to_owned(),
    };
    let text = match gate.review(proposed).await {
        WriteDecision::Write(text) => text,
        WriteDecision::Refuse { reason } => return Err(FileError::new(-32000, &reason, "refused")),
    };
    let failed = |error: io::Error| FileError::from_system(&path, &error);
    if let Some(directory) = path.parent() {
        tokio::fs::create_dir_all(directory).await.map_err(failed)?;
    }
    // In place, so that permissions, links and watchers stay as they are.
    tokio::fs::write(&path, text).await.map_err(failed)?;
    Ok(json!({}))
}

async fn text_on_disk(path: &Path) -> Result<Option<String>, FileError> {
    let failed = |error: io::Error| FileError::from_system(path, &error);
    match tokio::fs::metadata(path).await {
        Ok(metadata) if metadata.len() > MAX_FILE_BYTES => Err(FileError::new(
            INTERNAL_ERROR,
            &format!("{} is too large", path.display()),
            "file_too_large",
        )),
        Ok(_) => {
            let bytes = tokio::fs::read(path).await.map_err(failed)?;
            let text = String::from_utf8(bytes);
            text.map(Some).map_err(|_| {
                FileError::new(
                    INTERNAL_ERROR,
                    &format!("{} is not a text file", path.display()),
                    "binary_file",
                )
            })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// The file that is meant, if it is in the workspace. For others an agent has its own ways, and its own rules.
async fn path_of(workspace: &Path, params: &Value) -> Result<PathBuf, FileError> {
    let path = Path::new(text_of(params, "path").unwrap_or_default());
    let outside = || {
        let message = format!("{} is not in the workspace", path.display());
        FileError::new(INVALID_PARAMS, &message, "path_outside_workspace")
    };
    let has_steps_up = path.components().any(|part| part == Component::ParentDir);
    if !path.is_absolute() || has_steps_up {
        return Err(outside());
    }
    let root = tokio::fs::canonicalize(workspace)
        .await
        .unwrap_or_else(|_| workspace.to_owned());
    // The file may not exist yet: what counts is where the part of its path leads that does.
    let mut existing = path;
    loop {
        match tokio::fs::canonicalize(existing).await {
            Ok(real) if real.starts_with(&root) => return Ok(path.to_owned()),
            Ok(_) => return Err(outside()),
            Err(_) => match existing.parent() {
                // A link that leads nowhere leads somewhere once it is written through.
                Some(parent) if tokio::fs::symlink_metadata(existing).await.is_err() => existing = parent,
                _ => return Err(outside()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Writes something else than what was proposed, or refuses, and remembers what it was asked.
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
    async fn what_is_written_is_what_the_review_decided() {
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
    async fn what_the_review_refuses_is_not_written() {
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
    async fn reading_gives_what_a_person_sees_and_the_lines_that_are_asked_for() {
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
    async fn files_outside_the_workspace_are_not_ours_to_give() {
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
    async fn a_link_does_not_lead_out_of_the_workspace() {
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
}

//! Which folders are the workspace: those of the client, or what its first file belongs to.
//!
//! A companion is found from every directory in its workspace, so a workspace must not be too wide. Editors that are started from
//! a desktop often name no folder, or name `/` or the home directory. For these the companion starts with the first file.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use alongside_wire::rpc::{INVALID_REQUEST, METHOD_NOT_FOUND, Message, Request, RpcError};
use serde::de::IgnoredAny;

use crate::types::{
    DidChangeParams, DidChangeWorkspaceFoldersParams, DidOpenParams, DidSaveParams, InitializeResult,
    TextDocumentParams,
};
use crate::{Connection, PendingInitialize, PendingShutdown, REQUEST_FAILED, SessionEnd, documents, uri};

/// What is kept of documents that are in no workspace until there is one. Beyond it they are forgotten.
const MAX_HELD_BYTES: usize = 32 * 1024 * 1024;

/// The workspace for a folder: its repository, or the folder itself. `None` if that would be `/` or the home directory.
pub(crate) fn workspace_of(folder: PathBuf) -> Option<PathBuf> {
    let project = project_of(folder);
    let real = documents::real(&project);
    let is_home = std::env::home_dir().is_some_and(|home| documents::real(&home) == real);
    (real.parent().is_some() && !is_home).then_some(project)
}

/// The repository that contains a folder, or the folder itself. Clients report the root of a language's project, such as a crate, but
/// users start agents anywhere in the repository.
fn project_of(folder: PathBuf) -> PathBuf {
    // Some users keep their home directory in a repository; that is not one project.
    let home = std::env::home_dir();
    let repository = folder
        .ancestors()
        .take_while(|ancestor| Some(*ancestor) != home.as_deref())
        .find(|ancestor| is_repository(ancestor));
    repository.map(Path::to_owned).unwrap_or(folder)
}

fn is_repository(folder: &Path) -> bool {
    const MARKS: [&str; 4] = [".git", ".hg", ".jj", ".svn"];
    MARKS.iter().map(|mark| folder.join(mark)).any(|mark| {
        // An agent's sandbox may leave an empty directory of this name behind, also in the directory for temporary files. In
        // a worktree it is a file.
        fs::read_dir(&mark).map_or_else(|_| mark.is_file(), |mut entries| entries.next().is_some())
    })
}

/// Responds to `initialize`, and waits until the editor opens a file or a folder that can be in a workspace, which becomes
/// the client's folder. Its messages about documents are handled by the session that follows.
pub async fn wait_for_workspace(
    mut connection: Connection,
    mut initialize: PendingInitialize,
) -> Result<(Connection, PendingInitialize), SessionEnd> {
    if let Some(id) = initialize.id.take() {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        connection.respond(&id, &InitializeResult::new(&initialize.client, version));
    }
    let mut held = Held::default();
    while let Some(frame) = connection.next().await {
        let folders = match Message::parse_bytes(&frame) {
            Ok(Message::Notification(notification)) => match &*notification.method {
                "exit" => break,
                "initialized" => {
                    held.initialized = Some(frame.clone());
                    Vec::new()
                }
                "textDocument/didOpen" => match notification.params::<DidOpenParams>() {
                    Ok(opened) => {
                        let uri = opened.text_document.uri;
                        let folder = uri::to_path(&uri).and_then(|path| Path::new(&path).parent().map(Path::to_owned));
                        held.add(uri, frame.clone());
                        workspaces(folder.into_iter().collect()).await
                    }
                    Err(_) => Vec::new(),
                },
                "textDocument/didClose" => {
                    if let Ok(closed) = notification.params::<TextDocumentParams>() {
                        held.close(&closed.text_document.uri);
                    }
                    Vec::new()
                }
                "textDocument/didChange" => {
                    if let Ok(changed) = notification.params::<DidChangeParams>() {
                        held.add(changed.text_document.uri, frame.clone());
                    }
                    Vec::new()
                }
                "textDocument/didSave" => {
                    if let Ok(saved) = notification.params::<DidSaveParams>() {
                        held.add(saved.text_document.uri, frame.clone());
                    }
                    Vec::new()
                }
                "workspace/didChangeWorkspaceFolders" => {
                    let event = notification.params::<DidChangeWorkspaceFoldersParams>();
                    let added = event.map(|params| params.event.added).unwrap_or_default();
                    let paths = added.iter().filter_map(|folder| uri::to_path(&folder.uri));
                    workspaces(paths.map(PathBuf::from).collect()).await
                }
                _ => Vec::new(),
            },
            Ok(Message::Request(request)) if request.method == "shutdown" => {
                let id = request.id.into();
                return Err(SessionEnd::Shutdown(PendingShutdown { connection, id }));
            }
            Ok(Message::Request(request)) => {
                connection.send_text(respond(&request));
                Vec::new()
            }
            Ok(Message::Response(_)) => Vec::new(),
            Err(invalid) => {
                connection.send_text(invalid.to_response());
                Vec::new()
            }
        };
        if !folders.is_empty() {
            initialize.client.folders = folders;
            connection.hold(held.into_frames());
            return Ok((connection, initialize));
        }
    }
    connection.close().await;
    Err(SessionEnd::Abrupt)
}

/// The workspaces of some folders. In a thread, because they may be on a hung file system.
async fn workspaces(folders: Vec<PathBuf>) -> Vec<PathBuf> {
    let find = move || distinct(folders.into_iter().filter_map(workspace_of));
    tokio::task::spawn_blocking(find).await.unwrap_or_default()
}

pub(crate) fn distinct(folders: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut distinct: Vec<PathBuf> = Vec::new();
    for folder in folders {
        if !distinct.contains(&folder) {
            distinct.push(folder);
        }
    }
    distinct
}

/// There is nothing to say about any document.
fn respond(request: &Request<'_>) -> String {
    match &*request.method {
        "textDocument/hover"
        | "textDocument/documentHighlight"
        | "textDocument/codeAction"
        | "textDocument/codeLens" => match request.params::<IgnoredAny>() {
            Ok(_) => request.response(&()),
            Err(error) => request.error(&error),
        },
        "workspace/executeCommand" => request.error(&RpcError::new(
            REQUEST_FAILED,
            "no file of a project is open, so there is no workspace yet",
        )),
        "initialize" => request.error(&RpcError::new(INVALID_REQUEST, "the server is already initialized")),
        method => request.error(&RpcError::new(METHOD_NOT_FOUND, format!("unknown method `{method}`"))),
    }
}

/// Messages about documents that are open, to be handled later.
#[derive(Default)]
struct Held {
    initialized: Option<Vec<u8>>,
    /// With the URI of the document.
    documents: VecDeque<(String, Vec<u8>)>,
    bytes: usize,
}

impl Held {
    fn add(&mut self, uri: String, frame: Vec<u8>) {
        self.bytes += frame.len();
        self.documents.push_back((uri, frame));
        while self.bytes > MAX_HELD_BYTES
            && let Some((oldest, _)) = self.documents.front()
        {
            // Its later changes would make no sense alone.
            let oldest = oldest.clone();
            self.close(&oldest);
        }
    }

    fn close(&mut self, uri: &str) {
        self.documents.retain(|(of, _)| of != uri);
        self.bytes = self.documents.iter().map(|(_, frame)| frame.len()).sum();
    }

    fn into_frames(self) -> VecDeque<Vec<u8>> {
        let documents = self.documents.into_iter().map(|(_, frame)| frame);
        self.initialized.into_iter().chain(documents).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_in_a_repository_means_the_repository() {
        let scratch = tempfile::tempdir().unwrap();
        let inside = scratch.path().join("crates/one");
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir(scratch.path().join(".git")).unwrap();
        assert_eq!(
            project_of(inside.clone()),
            inside,
            "an empty directory is not a repository"
        );
        fs::write(scratch.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(workspace_of(inside.clone()).as_deref(), Some(scratch.path()));
        fs::write(scratch.path().join("crates/.git"), "gitdir: elsewhere\n").unwrap();
        assert_eq!(project_of(inside), scratch.path().join("crates"), "a worktree");
    }

    #[test]
    fn root_and_home_directory_are_too_wide() {
        assert_eq!(workspace_of(PathBuf::from("/")), None);
        assert_eq!(workspace_of(std::env::home_dir().unwrap()), None);
    }

    #[test]
    fn messages_about_documents_without_a_workspace_are_limited() {
        let mut held = Held::default();
        held.add("small".to_owned(), vec![0; 8]);
        held.add("large".to_owned(), vec![0; MAX_HELD_BYTES / 2]);
        held.add("large".to_owned(), vec![0; MAX_HELD_BYTES / 2]);
        assert_eq!(held.documents.len(), 2, "the oldest document is forgotten");
        held.add("last".to_owned(), vec![0; 8]);
        assert_eq!(held.into_frames(), [vec![0; 8]]);
        let mut held = Held::default();
        held.add("closed".to_owned(), vec![0; 8]);
        held.close("closed");
        assert_eq!((held.bytes, held.into_frames().len()), (0, 0));
    }
}

//! Finds the router's socket, or takes its place.
//!
//! Codex uses a socket only if its directory belongs to its user and no other user can write there, so none can plant
//! a socket or replace ours. We apply the same rule before we connect, listen or remove anything.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};

use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};

/// Held while a companion takes a socket, so that two do not remove each other's.
const LOCK_FILE: &str = "alongside.lock";

pub(super) enum Found {
    /// A connection to the router on this socket.
    Router(UnixStream, PathBuf),
    /// There was none, and we are listening now.
    Owned(OwnedSocket),
    /// Another program is becoming the router right now.
    Contended,
    /// No socket can be used.
    Nothing,
}

/// A socket on which we listen. Dropping it removes the file.
#[derive(Debug)]
pub(super) struct OwnedSocket {
    listener: UnixListener,
    path: PathBuf,
    identity: Identity,
}

/// Which file a path led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

#[derive(Debug, Error)]
enum SocketError {
    #[error("cannot serve Codex: {0} belongs to another user; remove it")]
    Foreign(PathBuf),
    #[error("cannot serve Codex: other users can write to {0}; run `chmod go-w {0}`")]
    Writable(PathBuf),
    #[error("cannot serve Codex: {0} is not a directory; remove it")]
    NotADirectory(PathBuf),
    #[error("cannot serve Codex: {0} is not a socket; remove it")]
    NotASocket(PathBuf),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl SocketError {
    /// What the user can do something about.
    fn to_problem(&self) -> Option<String> {
        match self {
            Self::Io(_) => None,
            problem => Some(problem.to_string()),
        }
    }
}

/// Looks for a router on these sockets; if there is none, takes the first one possible. Also returns what is wrong with those that
/// Codex tries before.
pub(super) async fn find(sockets: &[PathBuf]) -> (Found, Option<String>) {
    let mut problem = None;
    for path in sockets {
        match connect(path).await {
            Ok(Connected::Yes(stream)) => return (Found::Router(stream, path.clone()), problem),
            Ok(Connected::Busy) => return (Found::Contended, problem),
            Ok(Connected::Absent | Connected::Dead(_)) => {}
            Err(error) => problem = problem.or(error.to_problem()),
        }
    }
    let mut problem = None;
    for path in sockets {
        match take(path).await {
            Ok(Some(socket)) => return (Found::Owned(socket), problem),
            Ok(None) => return (Found::Contended, problem),
            Err(error) => {
                tracing::debug!(%error, path = %path.display(), "cannot listen for Codex");
                problem = problem.or(error.to_problem());
            }
        }
    }
    (Found::Nothing, problem)
}

enum Connected {
    Yes(UnixStream),
    /// A program is listening, but accepts nothing now.
    Busy,
    Absent,
    /// A file whose program has exited.
    Dead(Identity),
}

async fn connect(path: &Path) -> Result<Connected, SocketError> {
    // In a thread, because the directory may be on a hung file system.
    let Some(identity) = blocking(path, check).await? else {
        return Ok(Connected::Absent);
    };
    match UnixStream::connect(path).await {
        Ok(stream) if is_ours(&stream) => Ok(Connected::Yes(stream)),
        Ok(_) => Err(SocketError::Foreign(path.to_owned())),
        Err(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => Ok(Connected::Dead(identity)),
            io::ErrorKind::NotFound => Ok(Connected::Absent),
            io::ErrorKind::WouldBlock => Ok(Connected::Busy),
            _ => Err(error.into()),
        },
    }
}

/// Listens on a socket; `None` if another program does so already, or is about to.
async fn take(path: &Path) -> Result<Option<OwnedSocket>, SocketError> {
    let Some(_lock) = blocking(path, lock).await? else {
        return Ok(None);
    };
    let dead = match connect(path).await? {
        Connected::Yes(_) | Connected::Busy => return Ok(None),
        Connected::Absent => None,
        Connected::Dead(identity) => Some(identity),
    };
    let listening = blocking(path, move |path| listen(path, dead)).await?;
    let Some((listener, identity)) = listening else {
        return Ok(None);
    };
    Ok(Some(OwnedSocket {
        listener: UnixListener::from_std(listener)?,
        path: path.to_owned(),
        identity,
    }))
}

/// Whether the other end is a process of our user.
fn is_ours(stream: &UnixStream) -> bool {
    stream
        .peer_cred()
        .is_ok_and(|peer| peer.uid() == rustix::process::getuid().as_raw())
}

impl OwnedSocket {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection; `None` if it is of another user.
    pub(super) async fn accept(&self) -> io::Result<Option<UnixStream>> {
        let (stream, _) = self.listener.accept().await?;
        Ok(Some(stream).filter(is_ours))
    }

    /// Whether clients still reach us: a program that starts may remove a socket without asking.
    pub(super) async fn is_in_place(&self) -> bool {
        matches!(blocking(&self.path, check).await, Ok(Some(identity)) if identity == self.identity)
    }
}

impl Drop for OwnedSocket {
    fn drop(&mut self) {
        // While we listen, no other file can have the same identity.
        if matches!(check(&self.path), Ok(Some(identity)) if identity == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Path) -> Result<T, SocketError> + Send + 'static,
) -> Result<T, SocketError> {
    let path = path.to_owned();
    let working = tokio::task::spawn_blocking(move || work(&path));
    working.await.map_err(io::Error::other)?
}

/// The socket, if there is one. An error if another user may have put it there.
fn check(path: &Path) -> Result<Option<Identity>, SocketError> {
    let Some(status) = status(directory(path))? else {
        return Ok(None);
    };
    check_directory(directory(path), &status)?;
    let Some(status) = self::status(path)? else {
        return Ok(None);
    };
    if !status.file_type().is_socket() {
        return Err(SocketError::NotASocket(path.to_owned()));
    }
    check_owner(path, &status)?;
    Ok(Some(identity(&status)))
}

fn check_directory(path: &Path, status: &Metadata) -> Result<(), SocketError> {
    if !status.is_dir() {
        return Err(SocketError::NotADirectory(path.to_owned()));
    }
    check_owner(path, status)?;
    if status.mode() & 0o022 != 0 {
        return Err(SocketError::Writable(path.to_owned()));
    }
    Ok(())
}

fn check_owner(path: &Path, status: &Metadata) -> Result<(), SocketError> {
    if status.uid() == rustix::process::getuid().as_raw() {
        Ok(())
    } else {
        Err(SocketError::Foreign(path.to_owned()))
    }
}

/// Creates the directory, and locks it against other companions; `None` if one of them has it locked. Only the directory itself is
/// created: where Codex has no directory of its own, it is not installed.
fn lock(path: &Path) -> Result<Option<File>, SocketError> {
    let directory = directory(path);
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    let status = fs::symlink_metadata(directory)?;
    check_directory(directory, &status)?;
    let mut options = File::options();
    options.create(true).truncate(false).write(true).mode(0o600);
    let file = options.open(directory.join(LOCK_FILE))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Replaces a dead socket. `None` if another program was faster.
fn listen(path: &Path, dead: Option<Identity>) -> Result<Option<(StdListener, Identity)>, SocketError> {
    match (check(path)?, dead) {
        (None, _) => {}
        (Some(now), Some(dead)) if now == dead => fs::remove_file(path)?,
        (Some(_), _) => return Ok(None),
    }
    let listener = match StdListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Ok(None),
        result => result?,
    };
    listener.set_nonblocking(true)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(check(path)?.map(|identity| (listener, identity)))
}

/// Without following a symlink; `None` if there is nothing.
fn status(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(status) => Ok(Some(status)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn identity(status: &Metadata) -> Identity {
    Identity {
        device: status.dev(),
        inode: status.ino(),
    }
}

fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

//! Removal of discovery files left by a crash.
//!
//! Gemini CLI never removes a discovery file; a stale file whose PID was reused sorts first and hides a running
//! companion. So each companion sweeps at startup. It only touches files that have our mark, belong to our user and
//! were written on this machine, and removes one if
//!
//! - the companion that wrote it is dead, or
//! - the status is unclear (the PID now belongs to another user's process or to one started after the file was written,
//!   or the editor is dead) *and* nothing is listening on the port.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use alongside_core::dialect::FileRule;
use alongside_platform::unless_held;

use crate::announcement::MARK;
use crate::document::Document;
use crate::files::{TEMPORARY_PREFIX, TEMPORARY_SUFFIX};
use crate::process::{Alive, Processes, SystemProcesses};
use crate::{Environment, node_path, place};

/// A loopback connection succeeds or fails immediately.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(250);

/// Start times are relative to the boot time, which has a resolution of one second.
const CLOCK_RESOLUTION: Duration = Duration::from_secs(2);

/// Removes files left by dead companions and returns their paths. `name_is_ours` filters by the editor name in the file
/// (`ideInfo.name`), for callers that sweep for one editor only.
pub fn sweep(environment: &Environment, name_is_ours: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    sweep_among(environment, &SystemProcesses::default(), &name_is_ours)
}

fn sweep_among(
    environment: &Environment,
    processes: &dyn Processes,
    name_is_ours: &dyn Fn(&str) -> bool,
) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    for (_, rule) in place::rules() {
        let directory = place::directory(environment, rule);
        if !is_our_directory(environment, rule) {
            continue;
        }
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_leftover = match place::parse_file_name(rule, &name) {
                Some(_) => is_leftover(environment, processes, name_is_ours, &path),
                None => is_leftover_temporary(environment, processes, &name, &path),
            };
            if is_leftover && unless_held(|| fs::remove_file(&path)).is_ok() {
                removed.push(path);
            }
        }
    }
    removed
}

fn is_leftover(
    environment: &Environment,
    processes: &dyn Processes,
    name_is_ours: &dyn Fn(&str) -> bool,
    path: &Path,
) -> bool {
    if !is_our_file(environment, path) {
        return false;
    }
    let Some(document) = Document::read(path).filter(|document| is_marked(environment, document)) else {
        return false;
    };
    let Some((name, _)) = document.ide_info() else {
        return false;
    };
    let Some(companion) = document.number("companionPid").and_then(|pid| u32::try_from(pid).ok()) else {
        return false;
    };
    if !name_is_ours(&name) {
        return false;
    }
    let began_later = || {
        let written = document
            .number("companionWrote")
            .map(|milliseconds| UNIX_EPOCH + Duration::from_millis(milliseconds));
        let started = processes.started(companion);
        started.is_some_and(|started| written.is_none_or(|written| started > written + CLOCK_RESOLUTION))
    };
    let editor_is_dead = || {
        let editor = document
            .number("companionEditor")
            .and_then(|pid| u32::try_from(pid).ok());
        editor.is_some_and(|editor| processes.is_alive(editor) == Alive::No)
    };
    let is_doubtful = match processes.is_alive(companion) {
        Alive::No => return true,
        Alive::YesButForeign => true,
        Alive::Yes => began_later() || editor_is_dead(),
    };
    is_doubtful && !somebody_listens(&document)
}

/// Whether every directory under the base belongs to us. In another user's directory, a path may point to a different
/// file at any moment.
fn is_our_directory(environment: &Environment, rule: &FileRule) -> bool {
    let mut path = place::base(environment, rule);
    rule.directories.iter().all(|name| {
        path.push(name);
        fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir() && is_ours(environment, &metadata))
    })
}

/// Whether this is a temporary file whose writer died before finishing it.
fn is_leftover_temporary(environment: &Environment, processes: &dyn Processes, name: &str, path: &Path) -> bool {
    let Some(rest) = name
        .strip_prefix(TEMPORARY_PREFIX)
        .filter(|rest| rest.ends_with(TEMPORARY_SUFFIX))
    else {
        return false;
    };
    let writer = node_path::parse_integer(rest).and_then(|pid| u32::try_from(pid).ok());
    let writer_is_dead = writer.is_some_and(|pid| processes.is_alive(pid) == Alive::No);
    writer_is_dead && is_our_file(environment, path)
}

fn is_marked(environment: &Environment, document: &Document) -> bool {
    let same_host = match (document.text("companionHost"), environment.host_name.as_deref()) {
        (Some(there), Some(here)) => there == here,
        _ => true,
    };
    document.text("companion") == Some(MARK) && same_host
}

/// Whether this is our own user's regular file, not a symlink.
fn is_our_file(environment: &Environment, path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && is_ours(environment, &metadata))
}

#[cfg(unix)]
fn is_ours(environment: &Environment, metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;

    environment.uid.is_none_or(|uid| uid == metadata.uid())
}

#[cfg(not(unix))]
fn is_ours(_environment: &Environment, _metadata: &fs::Metadata) -> bool {
    true
}

fn somebody_listens(document: &Document) -> bool {
    let port = document.number("port").and_then(|port| u16::try_from(port).ok());
    port.is_some_and(|port| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).is_ok()
    })
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::net::TcpListener;

    use tempfile::TempDir;

    use super::*;
    use crate::announcement::tests::announcement;
    use crate::process::tests::dead_pid;
    use crate::{Announcement, DiscoveryFiles};

    struct Fixture {
        directory: TempDir,
        environment: Environment,
    }

    impl Fixture {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let environment =
                Environment::new(directory.path(), "/").with("TMPDIR", directory.path().to_str().unwrap());
            Self { directory, environment }
        }

        /// Leaves files behind as a crashed companion would.
        fn leave(&self, companion: u32, announcement: &Announcement) {
            let environment = Environment {
                pid: companion,
                ..self.environment.clone()
            };
            std::mem::forget(DiscoveryFiles::write(&environment, announcement).unwrap());
        }

        fn sweep(&self) -> usize {
            sweep(&self.environment, |name| name == "neovim").len()
        }

        /// Until all of these files are gone: another test may have got the port that was just closed.
        fn sweep_all(&self, files: usize) {
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
            let mut swept = 0;
            while swept < files && std::time::Instant::now() < deadline {
                swept += self.sweep();
                std::thread::yield_now();
            }
            assert_eq!(swept, files);
        }

        fn lock(&self) -> PathBuf {
            self.directory.path().join(".qwen/ide/4321.lock")
        }
    }

    fn closed_port() -> u16 {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    /// Difference 22: the specification only asks to delete the file at exit; files left by a crash must be swept.
    #[test]
    fn files_of_dead_companion_are_swept() {
        let scene = Fixture::new();
        scene.leave(dead_pid(), &announcement(&[Path::new("/a")]));
        assert_eq!(scene.sweep(), 4);
        assert_eq!(scene.sweep(), 0);
    }

    #[test]
    fn files_of_running_companion_stay() {
        let scene = Fixture::new();
        scene.leave(std::process::id(), &announcement(&[Path::new("/a")]));
        assert_eq!(scene.sweep(), 0);
    }

    #[test]
    fn files_of_others_stay() {
        let scene = Fixture::new();
        scene.leave(dead_pid(), &announcement(&[Path::new("/a")]));
        assert!(sweep(&scene.environment, |name| name == "emacs").is_empty());
        let elsewhere = Environment {
            host_name: Some("elsewhere.example".to_owned()),
            ..scene.environment.clone()
        };
        assert!(sweep(&elsewhere, |_| true).is_empty());
        let stranger = Environment {
            uid: scene.environment.uid.map(|uid| uid + 1),
            ..scene.environment.clone()
        };
        assert!(sweep(&stranger, |_| true).is_empty());
        let unmarked = fs::read_to_string(scene.lock())
            .unwrap()
            .replace("\"alongside\"", "\"another\"");
        fs::write(scene.lock(), unmarked).unwrap();
        assert_eq!(scene.sweep(), 3);
        assert!(scene.lock().exists());
    }

    #[test]
    fn file_with_reused_pid_is_swept_unless_port_is_open() {
        let scene = Fixture::new();
        let mut announcement = announcement(&[Path::new("/a")]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        announcement.port = listener.local_addr().unwrap().port();
        announcement.socket = Some(scene.environment.working_directory.join("s"));
        scene.leave(std::process::id(), &announcement);
        for (_, rule) in place::rules() {
            for entry in fs::read_dir(place::directory(&scene.environment, rule))
                .unwrap()
                .flatten()
            {
                let mut file: serde_json::Value = serde_json::from_slice(&fs::read(entry.path()).unwrap()).unwrap();
                file["companionWrote"] = 1.into();
                fs::write(entry.path(), file.to_string()).unwrap();
            }
        }
        assert_eq!(scene.sweep(), 0);
        drop(listener);
        scene.sweep_all(5);
    }

    #[test]
    fn file_of_dead_editor_is_swept_unless_port_is_open() {
        let scene = Fixture::new();
        let mut announcement = announcement(&[Path::new("/a")]);
        announcement.pid = dead_pid();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        announcement.port = listener.local_addr().unwrap().port();
        scene.leave(std::process::id(), &announcement);
        assert_eq!(scene.sweep(), 0);
        drop(listener);
        scene.sweep_all(4);
    }

    #[test]
    fn file_with_foreign_pid_and_closed_port_is_swept() {
        let scene = Fixture::new();
        let mut announcement = announcement(&[Path::new("/a")]);
        announcement.port = closed_port();
        scene.leave(77, &announcement);
        let processes = crate::process::ProcessTable::default().with_foreign(77);
        assert_eq!(sweep_among(&scene.environment, &processes, &|_| true).len(), 4);
    }

    #[test]
    fn sweep_follows_no_symlink() {
        let scene = Fixture::new();
        scene.leave(dead_pid(), &announcement(&[Path::new("/a")]));
        let directory = scene.directory.path().join("gemini");
        fs::rename(&directory, scene.directory.path().join("moved")).unwrap();
        std::os::unix::fs::symlink("moved", &directory).unwrap();
        assert_eq!(scene.sweep(), 3);
    }

    #[test]
    fn temporary_files_of_dead_writers_are_swept() {
        let scene = Fixture::new();
        scene.leave(std::process::id(), &announcement(&[Path::new("/a")]));
        let directory = scene.lock().parent().unwrap().to_owned();
        let temporary = |pid: u32| directory.join(format!(".alongside-{pid}-4321.lock.tmp"));
        let (dead, alive) = (temporary(dead_pid()), temporary(std::process::id()));
        fs::write(&dead, "{").unwrap();
        fs::write(&alive, "{").unwrap();
        fs::write(directory.join("notes.txt"), "mine").unwrap();
        assert_eq!(sweep(&scene.environment, |_| true), [dead]);
        assert!(alive.exists());
    }
}

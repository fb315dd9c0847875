//! Notices that a process has ended, such as the editor that the companion belongs to.

use std::time::Duration;

use alongside_discovery::process::{Alive, Processes, StartStamp, SystemProcesses};

const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Waits until a process ends.
#[cfg(target_os = "linux")]
pub async fn ended(pid: u32) {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return;
    };
    match pidfd_open(raw, PidfdFlags::empty()) {
        Ok(descriptor) => {
            let (notify, notified) = tokio::sync::oneshot::channel();
            // The descriptor becomes readable when the process ends.
            let waiting = std::thread::Builder::new().name("editor".to_owned()).spawn(move || {
                let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
                while poll(&mut descriptors, None) == Err(rustix::io::Errno::INTR) {}
                let _ = notify.send(());
            });
            if waiting.is_err() || notified.await.is_err() {
                poll_until_ended(pid).await;
            }
        }
        Err(rustix::io::Errno::SRCH) => {}
        // An old kernel.
        Err(_) => poll_until_ended(pid).await,
    }
}

/// Waits until a process ends.
#[cfg(target_os = "macos")]
pub async fn ended(pid: u32) {
    let Ok(raw) = i32::try_from(pid) else { return };
    let (notify, notified) = tokio::sync::oneshot::channel();
    let waiting = std::thread::Builder::new().name("editor".to_owned()).spawn(move || {
        use std::io::ErrorKind;

        use kqueue::{Event, EventData, EventFilter, FilterFlag, Proc, Watcher};

        let watch = || -> std::io::Result<bool> {
            let mut watcher = Watcher::new()?;
            watcher.add_pid(raw, EventFilter::EVFILT_PROC, FilterFlag::NOTE_EXIT)?;
            watcher.watch()?;
            Ok(has_exited(|| match watcher.poll_forever(None) {
                Some(Event {
                    data: EventData::Proc(Proc::Exit(_)),
                    ..
                }) => Report::Exit,
                Some(Event {
                    data: EventData::Error(error),
                    ..
                }) if error.kind() == ErrorKind::Interrupted => Report::Interruption,
                _ => Report::Other,
            }))
        };
        if watch().is_ok_and(|has_exited| has_exited) {
            let _ = notify.send(());
        }
    });
    // It also fails if the process has ended already, which polling sees at once.
    if waiting.is_err() || notified.await.is_err() {
        poll_until_ended(pid).await;
    }
}

/// What the system reports while waiting for the exit of a process.
#[cfg(any(target_os = "macos", all(test, unix)))]
enum Report {
    Exit,
    /// A signal arrived.
    Interruption,
    /// An error, or something that was not asked for.
    Other,
}

/// Waits for the exit; false if the wait failed, which says nothing about the process.
#[cfg(any(target_os = "macos", all(test, unix)))]
fn has_exited(mut next: impl FnMut() -> Report) -> bool {
    loop {
        match next() {
            Report::Exit => return true,
            Report::Interruption => {}
            Report::Other => return false,
        }
    }
}

/// Waits until a process ends.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub async fn ended(pid: u32) {
    poll_until_ended(pid).await;
}

/// For systems without notification.
async fn poll_until_ended(pid: u32) {
    let mut process = None;
    loop {
        let look = move || {
            let process = process.unwrap_or_else(|| Polled::new(pid));
            let is_running = process.is_running(SystemProcesses::default().is_alive(pid), || StartStamp::of(pid));
            (process, is_running)
        };
        match tokio::task::spawn_blocking(look).await {
            Ok((polled, true)) => process = Some(polled),
            Ok((_, false)) | Err(_) => return,
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// A process that is looked at now and then. Its id may be taken by another one in between, which happens soon on Windows.
struct Polled {
    /// `None` if it could not be read, as of a process with more privileges.
    started: Option<StartStamp>,
}

impl Polled {
    fn new(pid: u32) -> Self {
        Self {
            started: StartStamp::of(pid),
        }
    }

    fn is_running(&self, alive: Alive, started_now: impl FnOnce() -> Option<StartStamp>) -> bool {
        if alive == Alive::No {
            return false;
        }
        let Some(started) = &self.started else { return true };
        // If it cannot be read this time, that proves nothing.
        started_now().is_none_or(|now| now == *started)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ended_process_is_noticed() {
        let mut child = tokio::process::Command::new("sleep")
            .arg("600")
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let pid = child.id().unwrap();
        let waiting = tokio::spawn(ended(pid));
        child.kill().await.unwrap();
        tokio::time::timeout(std::time::Duration::from_secs(30), waiting)
            .await
            .unwrap()
            .unwrap();
    }

    #[tokio::test]
    async fn missing_process_counts_as_ended() {
        ended(0x3fff_fffe).await;
        poll_until_ended(0x3fff_fffe).await;
    }

    #[test]
    fn wait_that_is_interrupted_or_fails_is_no_exit() {
        let waited = |reports: Vec<Report>| {
            let mut reports = reports.into_iter();
            let has_exited = has_exited(|| reports.next().unwrap());
            (has_exited, reports.len())
        };
        assert_eq!(waited(vec![Report::Exit]), (true, 0));
        let interrupted = vec![Report::Interruption, Report::Interruption, Report::Exit];
        assert_eq!(waited(interrupted), (true, 0));
        assert_eq!(waited(vec![Report::Other, Report::Exit]), (false, 1), "polling decides");
    }

    #[test]
    fn process_that_took_the_id_is_not_the_editor() {
        let stamp = |text: &str| -> StartStamp { serde_json::from_value(text.into()).unwrap() };
        let editor = Polled {
            started: Some(stamp("1")),
        };
        let is_running = |alive, now: Option<&str>| editor.is_running(alive, || now.map(stamp));
        assert!(is_running(Alive::Yes, Some("1")));
        assert!(is_running(Alive::YesButForeign, None), "nothing is known");
        assert!(!is_running(Alive::Yes, Some("2")));
        assert!(!is_running(Alive::No, Some("1")));
        let unknown = Polled { started: None };
        assert!(unknown.is_running(Alive::Yes, || Some(stamp("2"))));
        assert!(!unknown.is_running(Alive::No, || None));
    }
}

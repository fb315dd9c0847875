//! Notices that a process has ended, such as the editor that the companion belongs to.

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
        use kqueue::{EventFilter, FilterFlag, Watcher};

        let watch = || -> std::io::Result<()> {
            let mut watcher = Watcher::new()?;
            watcher.add_pid(raw, EventFilter::EVFILT_PROC, FilterFlag::NOTE_EXIT)?;
            watcher.watch()?;
            let _ = watcher.poll_forever(None);
            Ok(())
        };
        if watch().is_ok() {
            let _ = notify.send(());
        }
    });
    // It fails if the process has ended already, which polling sees at once.
    if waiting.is_err() || notified.await.is_err() {
        poll_until_ended(pid).await;
    }
}

/// Waits until a process ends.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub async fn ended(pid: u32) {
    poll_until_ended(pid).await;
}

/// For systems without notification.
async fn poll_until_ended(pid: u32) {
    use std::time::Duration;

    use alongside_discovery::process::{Alive, Processes, SystemProcesses};

    let is_alive = move || SystemProcesses::default().is_alive(pid) != Alive::No;
    while tokio::task::spawn_blocking(is_alive).await.unwrap_or(false) {
        tokio::time::sleep(Duration::from_secs(2)).await;
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
    }
}

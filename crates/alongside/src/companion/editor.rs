//! Noticing that the editor is gone, so that its companion ends with it.

/// Waits until a process ends.
#[cfg(target_os = "linux")]
pub(super) async fn ended(pid: u32) {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    let opened = i32::try_from(pid).ok().and_then(Pid::from_raw).map(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK));
    match opened {
        Some(Ok(descriptor)) => match AsyncFd::with_interest(descriptor, Interest::READABLE) {
            // The descriptor becomes readable when the process ends.
            Ok(descriptor) => {
                let _ = descriptor.readable().await;
            }
            Err(_) => look_now_and_then(pid).await,
        },
        Some(Err(rustix::io::Errno::SRCH)) | None => {}
        // An old kernel.
        Some(Err(_)) => look_now_and_then(pid).await,
    }
}

/// Waits until a process ends.
#[cfg(not(target_os = "linux"))]
pub(super) async fn ended(pid: u32) {
    look_now_and_then(pid).await;
}

/// For systems that do not tell.
async fn look_now_and_then(pid: u32) {
    use std::time::Duration;

    use alongside_discovery::process::{Alive, is_alive};

    while is_alive(pid) != Alive::No {
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_a_process_is_noticed() {
        let mut child = tokio::process::Command::new("sleep").arg("600").kill_on_drop(true).spawn().unwrap();
        let pid = child.id().unwrap();
        let waiting = tokio::spawn(ended(pid));
        child.kill().await.unwrap();
        tokio::time::timeout(std::time::Duration::from_secs(30), waiting).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_process_that_does_not_exist_has_ended() {
        ended(0x3fff_fffe).await;
    }
}

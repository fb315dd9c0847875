//! Memory that is given back to the system once it is free.
//!
//! Elsewhere the allocator does that. glibc needs help, in three ways:
//!
//! - It maps large buffers one by one and unmaps each as soon as it is free. Every page of the next one then costs a page fault again,
//!   which was half of the CPU time of a proposal of 1 MiB. So buffers come from the heap, and the end of the heap is kept.
//! - It has a heap for each thread, and what is free at the end of any but the first is never given back. So there is one.
//! - It gives back no free pages within a heap: one small buffer that is still in use at the end keeps the memory of hundreds of
//!   sessions that are gone. So it is asked to release all of this after sessions or reviews have ended, or a draft was edited.
//!
//! On Linux, code that only the start or a burst needed is released too. The kernel maps it again from the file, in a few microseconds,
//! when it is used; until then it does not count as memory of this process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Shared;

/// Everything that ends within this time is released at once.
const PAUSE: Duration = Duration::from_secs(15);
/// What the first clients need is in use by then.
const START_PAUSE: Duration = Duration::from_secs(1);
/// What nothing reports, such as a large text that a front end fetched, is released this much later.
const INTERVAL: Duration = Duration::from_mins(5);

/// Whether this process is a companion and nothing else.
static IS_OWN_PROCESS: AtomicBool = AtomicBool::new(false);

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator {
    use std::ffi::c_int;

    /// `M_MMAP_THRESHOLD`: larger buffers are mapped one by one. This is the largest value that glibc accepts.
    const MMAP_THRESHOLD: (c_int, c_int) = (-3, 32 * MEBIBYTE);
    /// `M_TRIM_THRESHOLD`: what may be free at the end of the heap.
    const TRIM_THRESHOLD: (c_int, c_int) = (-1, 64 * MEBIBYTE);
    /// `M_ARENA_MAX`: how many heaps there are.
    const ARENA_MAX: (c_int, c_int) = (-8, 1);
    const MEBIBYTE: c_int = 1024 * 1024;

    #[expect(
        unsafe_code,
        reason = "glibc's own functions take numbers and can be called at any time from any thread"
    )]
    unsafe extern "C" {
        safe fn mallopt(parameter: c_int, value: c_int) -> c_int;
        safe fn malloc_trim(keep: usize) -> c_int;
    }

    pub(super) fn configure() {
        for (parameter, value) in [MMAP_THRESHOLD, TRIM_THRESHOLD, ARENA_MAX] {
            // Without it, everything works as well, with more memory.
            mallopt(parameter, value);
        }
    }

    pub(super) fn release_free_pages() {
        malloc_trim(0);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod allocator {
    pub(super) fn configure() {}

    pub(super) fn release_free_pages() {}
}

#[cfg(target_os = "linux")]
mod code {
    use std::fs;

    use rustix::mm::{Advice, madvise};

    /// Releases the pages of this program's code, and of the libraries'.
    pub(super) fn release() {
        // A debugger's breakpoints are in these pages.
        if is_traced() {
            return;
        }
        let Ok(maps) = fs::read_to_string("/proc/self/maps") else {
            return;
        };
        for (start, end) in maps.lines().filter_map(code_of_a_file) {
            #[expect(
                unsafe_code,
                reason = "pages that can be executed and not written are as in their file, from which the kernel reads them again"
            )]
            // SAFETY: the mapping is private, of a file, and cannot be written, so nothing is lost. Nothing in this process unmaps code.
            let _ = unsafe {
                madvise(
                    std::ptr::without_provenance_mut(start),
                    end - start,
                    Advice::LinuxDontNeed,
                )
            };
        }
    }

    fn is_traced() -> bool {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
        tracer.is_none_or(|tracer| tracer.trim() != "0")
    }

    /// The range of a line of `maps`, if it is the code of a file.
    fn code_of_a_file(line: &str) -> Option<(usize, usize)> {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let (mode, path) = (fields.next()?, fields.nth(3)?);
        let address = |text| usize::from_str_radix(text, 16).ok();
        // Those of files in memory need not be as they were.
        let is_file = path.starts_with('/') && !path.starts_with("/memfd:") && !path.starts_with("/dev/");
        (mode == "r-xp" && is_file).then_some((address(start)?, address(end)?))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn only_code_of_files_is_released() {
            let range = |line| code_of_a_file(line);
            assert_eq!(
                range("1000-3000 r-xp 00001000 fe:00 7  /usr/bin/my program"),
                Some((0x1000, 0x3000))
            );
            for other in [
                "1000-3000 r--p 00000000 fe:00 7  /usr/bin/program",
                "1000-3000 rw-p 00000000 fe:00 7  /usr/bin/program",
                "1000-3000 rwxp 00000000 fe:00 7  /usr/bin/program",
                "1000-3000 r-xp 00000000 00:00 0  [vdso]",
                "1000-3000 r-xp 00000000 00:01 9  /memfd:code (deleted)",
                "1000-3000 r-xp 00000000 00:01 9  /dev/zero (deleted)",
                "1000-3000 r-xp 00000000 00:00 0 ",
                "",
            ] {
                assert_eq!(range(other), None, "{other}");
            }
        }

        /// Code runs before and after, also on other threads.
        #[test]
        fn released_code_still_runs() {
            let resident = || {
                let maps = fs::read_to_string("/proc/self/smaps").unwrap();
                let (mut is_code, mut kilobytes) = (false, 0_u64);
                for line in maps.lines() {
                    if let Some(size) = line.strip_prefix("Rss:") {
                        let size: u64 = size.trim_end_matches("kB").trim().parse().unwrap();
                        kilobytes += if is_code { size } else { 0 };
                    } else if line.contains('-') {
                        is_code = code_of_a_file(line).is_some();
                    }
                }
                kilobytes
            };
            let before = resident();
            release();
            assert!(is_traced() || resident() < before);
            let sorted = std::thread::spawn(|| {
                let mut numbers: Vec<u32> = (0..1000).rev().collect();
                numbers.sort_unstable();
                numbers
            });
            assert!(sorted.join().unwrap().is_sorted());
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod code {
    pub(super) fn release() {}
}

/// Sets up the allocator, for a process that is a companion and nothing else. Call it before there are threads.
pub fn configure() {
    IS_OWN_PROCESS.store(true, Ordering::Relaxed);
    allocator::configure();
}

/// Never returns.
pub(super) async fn keep_memory_low(companion: Shared) {
    tokio::time::sleep(START_PAUSE).await;
    loop {
        let release = || {
            // It visits every page.
            allocator::release_free_pages();
            // A program that embeds a companion may unload code, or have written it itself.
            if IS_OWN_PROCESS.load(Ordering::Relaxed) {
                code::release();
            }
        };
        let _ = tokio::task::spawn_blocking(release).await;
        tokio::select! {
            () = companion.wake.memory.notified() => tokio::time::sleep(PAUSE).await,
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

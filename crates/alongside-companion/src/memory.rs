//! Memory that is given back to the system once it is free.
//!
//! Elsewhere the allocator does that. glibc needs help, in two ways:
//!
//! - It maps large buffers one by one and unmaps each as soon as it is free, but raises the size from which it does so with every
//!   such buffer, up to 32 MiB. After a burst of large proposals, a companion held several times the memory that it needed. A fixed
//!   size prevents that.
//! - It gives back the end of a heap, but no free pages within it. One small buffer that is still in use at the end keeps the
//!   memory of hundreds of sessions that are gone. So after sessions or reviews have ended, it is asked to release such pages.

use std::time::Duration;

use super::Shared;

/// Everything that ends within this time is released at once.
const PAUSE: Duration = Duration::from_secs(15);

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator {
    use std::ffi::c_int;

    /// `M_MMAP_THRESHOLD`.
    const MMAP_THRESHOLD: c_int = -3;
    /// Buffers of this size are mapped one by one. Below, mapping costs more than it saves.
    const MAPPED_BYTES: c_int = 256 * 1024;

    #[expect(
        unsafe_code,
        reason = "glibc's own functions take numbers and can be called at any time from any thread"
    )]
    unsafe extern "C" {
        safe fn mallopt(parameter: c_int, value: c_int) -> c_int;
        safe fn malloc_trim(keep: usize) -> c_int;
    }

    pub(super) fn map_large_buffers() {
        // Without it, everything works as well, with more memory.
        mallopt(MMAP_THRESHOLD, MAPPED_BYTES);
    }

    pub(super) fn release_free_pages() {
        malloc_trim(0);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod allocator {
    pub(super) fn map_large_buffers() {}

    pub(super) fn release_free_pages() {}
}

/// Never returns.
pub(super) async fn keep_memory_low(companion: Shared) {
    allocator::map_large_buffers();
    loop {
        companion.wake.memory.notified().await;
        tokio::time::sleep(PAUSE).await;
        // It visits every page.
        let _ = tokio::task::spawn_blocking(allocator::release_free_pages).await;
    }
}

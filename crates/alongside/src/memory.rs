//! Memory that is given back to the system once it is free.
//!
//! glibc maps large buffers one by one, and unmaps each as soon as it is freed. But with every such buffer it raises the size from
//! which it does so, up to 32 MiB. Smaller ones then come from heaps that it keeps: after a burst of large proposals, a companion
//! held several times the memory that it needed. A fixed size prevents that. glibc reads it from the environment, once, when a
//! program starts; so the companion starts itself again with it. The process stays the same.

/// glibc's variable, in bytes.
const VARIABLE: &str = "MALLOC_MMAP_THRESHOLD_";

/// Buffers of this size are mapped one by one. Below, mapping costs more than it saves.
const THRESHOLD_BYTES: &str = "262144";

/// Starts this program again unless the environment already decides how memory is allocated. Does nothing with other allocators:
/// those of musl and macOS do not have the problem.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn release_large_buffers() {
    use std::os::unix::process::CommandExt;

    let is_set = [VARIABLE, "GLIBC_TUNABLES"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    let mut arguments = std::env::args_os();
    let (false, Ok(program), Some(name)) = (is_set, std::env::current_exe(), arguments.next()) else {
        return;
    };
    // Returns only if it failed; then everything works as well, with more memory.
    let error = std::process::Command::new(program)
        .arg0(name)
        .args(arguments)
        .env(VARIABLE, THRESHOLD_BYTES)
        .exec();
    tracing::debug!(%error, "cannot set how memory is allocated");
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn release_large_buffers() {
    let _ = (VARIABLE, THRESHOLD_BYTES);
}

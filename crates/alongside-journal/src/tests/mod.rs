//! Tests that need more than the public interface: a disk that crashes, and bytes that no journal wrote.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crashes;
mod full_disk;
mod reading;
mod texts;

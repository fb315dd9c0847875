//! Random numbers for names and identifiers. None of them is a secret, so the standard library's are good enough.

use std::hash::{BuildHasher, RandomState};

pub(crate) fn random_u64() -> u64 {
    // The keys of a `RandomState` come from the system once per thread and differ for each instance.
    RandomState::new().hash_one(std::process::id())
}

#[allow(clippy::cast_possible_truncation, reason = "any 32 bits of it are as random")]
pub(crate) fn random_u32() -> u32 {
    random_u64() as u32
}

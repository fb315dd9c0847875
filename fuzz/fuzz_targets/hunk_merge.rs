//! See `alongside_fuzz_checks::hunk_merge`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| alongside_fuzz_checks::hunk_merge(bytes));

//! See `alongside_fuzz_checks::settings`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| alongside_fuzz_checks::settings(bytes));

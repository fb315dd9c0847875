//! See `alongside_fuzz_checks::discovery_files`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| alongside_fuzz_checks::discovery_files(bytes));

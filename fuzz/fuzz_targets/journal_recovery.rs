//! See `alongside_fuzz_checks::journal_recovery`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| alongside_fuzz_checks::journal_recovery(bytes));

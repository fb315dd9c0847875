//! See `alongside_fuzz_checks::sse_reader`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| alongside_fuzz_checks::sse_reader(bytes));

//! See `alongside_fuzz_checks::front_message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| alongside_fuzz_checks::front_message(bytes));

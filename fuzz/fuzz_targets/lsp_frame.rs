//! See `alongside_fuzz_checks::lsp_frame`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| alongside_fuzz_checks::lsp_frame(bytes));

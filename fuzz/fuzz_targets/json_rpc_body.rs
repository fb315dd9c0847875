//! See `alongside_fuzz_checks::json_rpc_body`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| alongside_fuzz_checks::json_rpc_body(bytes));

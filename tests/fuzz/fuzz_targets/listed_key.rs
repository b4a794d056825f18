//! See parsers.rs.
#![no_main]

#[path = "../parsers.rs"]
#[allow(dead_code, reason = "each target is one of its functions")]
mod parsers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parsers::listed_keys(bytes));

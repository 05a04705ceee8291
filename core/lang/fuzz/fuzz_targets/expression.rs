//! See `expression` in `targets.rs`.

#![no_main]

#[allow(dead_code)]
#[path = "../../tests/lang/support.rs"]
mod support;
#[allow(dead_code)]
#[path = "../targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|text: &str| targets::expression(text));

//! libFuzzer around the functions that the tests call too: `OUTLAST_FUZZ` names one of them.
#![no_main]

#[path = "../../crates/outlast/tests/all/fuzz_targets/mod.rs"]
mod fuzz_targets;

use std::sync::LazyLock;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("OUTLAST_FUZZ").expect("OUTLAST_FUZZ names what is fuzzed");
    fuzz_targets::target(&name)
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));

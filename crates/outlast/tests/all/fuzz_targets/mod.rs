//! What is fuzzed: plain functions of bytes, each of which panics where something that must hold does not.
//!
//! The fuzzer in `fuzz/` calls them with bytes of its own making, the tests with its seeds and with everything it has found before.
#![allow(dead_code)]

mod bytes;
mod files;
mod fits;
mod models;

/// What is done with some bytes.
pub type Target = fn(&[u8]);

/// The targets by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("csv", files::csv),
    ("libsvm", files::libsvm),
    ("parquet", files::parquet),
    ("stream", files::stream),
    ("decisions", files::decisions),
    ("payoff", files::payoff),
    ("model", models::model),
    ("libsvm_model", models::libsvm_model),
    ("fit", fits::fit),
];

/// The target of that name.
pub fn target(name: &str) -> fn(&[u8]) {
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("there is no target {name:?}; targets: {:?}", TARGETS.map_names())).1
}

trait Names {
    fn map_names(&self) -> Vec<&'static str>;
}

impl Names for [(&'static str, fn(&[u8]))] {
    fn map_names(&self) -> Vec<&'static str> {
        self.iter().map(|(name, _)| *name).collect()
    }
}

//! The seeds of the fuzzer, and all that it has found, through the same functions that it calls.

use crate::fuzz_targets::TARGETS;
use std::path::{Path, PathBuf};

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// SplitMix64: the same mutations on every machine.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A few bytes changed, taken out or put in, or two seeds joined.
fn mutated(seeds: &[Vec<u8>], state: &mut u64) -> Vec<u8> {
    let pick = |state: &mut u64| &seeds[random(state) as usize % seeds.len()];
    let mut bytes = pick(state).clone();
    for _ in 0..1 + random(state) % 6 {
        let at = random(state) as usize % bytes.len().max(1);
        match random(state) % 6 {
            0 if at < bytes.len() => bytes[at] ^= 1 << (random(state) % 8),
            1 if at < bytes.len() => bytes[at] = random(state) as u8,
            2 if at < bytes.len() => drop(bytes.drain(at..(at + random(state) as usize % 9).min(bytes.len()))),
            3 => bytes.insert(at.min(bytes.len()), random(state) as u8),
            4 => {
                let other = pick(state);
                let from = random(state) as usize % other.len().max(1);
                let to = (from + random(state) as usize % 33).min(other.len());
                bytes.splice(at.min(bytes.len())..at.min(bytes.len()), other[from..to].iter().copied());
            }
            _ => bytes.truncate(at + 1),
        }
    }
    bytes
}

fn pass(name: &str, mutations: usize) {
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let seeds: Vec<PathBuf> = files(&root.join("seeds").join(name));
    assert!(!seeds.is_empty(), "{name} has no seeds");
    let findings = files(&root.join("findings").join(name));
    let all: Vec<Vec<u8>> = seeds.iter().chain(&findings).map(|path| std::fs::read(path).unwrap()).collect();
    for (path, bytes) in seeds.iter().chain(&findings).zip(&all) {
        println!("{}", path.display());
        target(bytes);
    }
    let mut state = 1;
    for _ in 0..mutations {
        let bytes = mutated(&all, &mut state);
        // what fails is shown in a form that can be kept
        let shown = Shown(&bytes);
        target(&bytes);
        std::mem::forget(shown);
    }
}

/// Says which bytes they were, if it is dropped by a panic.
struct Shown<'a>(&'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        let hex: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("the bytes (xxd -r -p makes a file of them): {hex}");
    }
}

/// How many mutations of the seeds beside the seeds themselves: a second's worth each.
macro_rules! passes {
    ($($name:ident $mutations:literal),*) => {
        $(#[test]
        fn $name() {
            pass(stringify!($name), $mutations);
        })*

        #[test]
        fn every_target_has_a_pass() {
            assert_eq!(TARGETS.iter().map(|(name, _)| *name).collect::<Vec<_>>(), [$(stringify!($name)),*]);
        }
    };
}

passes!(csv 20000, libsvm 20000, parquet 10000, stream 1000, decisions 10000, payoff 20000, model 5000, libsvm_model 10000, fit 2000);

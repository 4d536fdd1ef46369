//! The direction of flow, as ARCHITECTURE.md draws it: a lower layer never uses a higher one.

use std::fs;
use std::path::{Path, PathBuf};

/// From the ground up. A module may use itself and whatever stands before it (equal rank: not each other).
const LAYERS: &[&[&str]] = &[
    &["error"],
    &["control", "linalg", "memory"],
    &["data"],
    &["problem"],
    &["solver"],
    &["model"],
    &["select"],
    &["io"],
];

fn rank(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<(Vec<String>, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    sources(&root, &mut found);
    assert!(found.len() > 10, "the sources were not found");
    let read = |path: PathBuf| {
        let relative = path.strip_prefix(&root).unwrap().with_extension("");
        let module = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        (module, fs::read_to_string(path).unwrap())
    };
    found.into_iter().map(read).collect()
}

/// Code without comments: prose may name any module.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(|line| line.split("//").next().unwrap_or(""))
}

/// The modules of the crate that a line names: after `crate::`, or in `crate::{a, b}`.
fn named(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    for rest in line.split("crate::").skip(1) {
        let word =
            |text: &str| text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        match rest.strip_prefix('{') {
            Some(group) => names.extend(group.split(',').map(word)),
            None => names.push(word(rest)),
        }
    }
    names
}

#[test]
fn lower_layers_do_not_use_higher_ones() {
    for (module, text) in all_sources() {
        let top = module[0].as_str();
        if top == "lib" {
            continue;
        }
        let own = rank(top).unwrap_or_else(|| panic!("module {top} has no place in LAYERS"));
        for line in code(&text) {
            for name in named(line) {
                let Some(used) = rank(&name) else { continue };
                assert!(used < own || name == top, "{module:?} uses {name}, which stands above it: {line}");
            }
        }
    }
}

#[test]
fn paths_through_super_stay_inside_their_layer() {
    for (module, text) in all_sources() {
        let depth = module.len() - usize::from(module.last().is_some_and(|name| name == "mod"));
        for line in code(&text) {
            let mut most = 0;
            for part in line.split_whitespace() {
                most = most.max(part.matches("super::").count());
            }
            // the tests module inside a file stands one deeper
            assert!(most <= depth, "{module:?} climbs out of the crate: {line}");
            assert!(
                most < depth || module.len() == 1 || depth == 1,
                "{module:?} reaches the crate root by super: {line}"
            );
        }
    }
}

#[test]
fn losses_never_see_data_and_the_numerics_never_print() {
    for (module, text) in all_sources() {
        let losses = module.len() > 1 && module[0] == "problem" && (module[1] == "loss" || module[1] == "penalty");
        for line in code(&text) {
            assert!(!(losses && named(line).iter().any(|name| name == "data")), "{module:?}: {line}");
            for macro_name in ["println!", "print!", "eprintln!", "eprint!", "dbg!"] {
                assert!(!line.contains(macro_name), "{module:?} prints: {line}");
            }
        }
    }
}

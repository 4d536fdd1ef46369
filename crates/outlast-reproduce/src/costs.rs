//! What experiments cost: `costs.json` in the folder of results has, for each name, the units of work run into it and the processor time they
//! took, summed over the threads.

use crate::report::{read_json, write_json};
use outlast::Result;
use serde_json::{Value, json};
use std::path::Path;

const FILE: &str = "costs.json";

/// Units of work and the seconds of one core they took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Units of work.
    pub units: u64,
    /// Seconds of one core.
    pub seconds: f64,
}

/// What was spent on an experiment so far; `None` if that is not known.
pub fn of(folder: &Path, name: &str) -> Option<Cost> {
    let entry = &read_json(&folder.join(FILE))?[name];
    Some(Cost { units: entry["units"].as_u64()?, seconds: entry["core_seconds"].as_f64()? })
}

/// Adds what was spent now.
pub fn add(folder: &Path, name: &str, units: usize, seconds: f64) -> Result<()> {
    let before = of(folder, name).unwrap_or(Cost { units: 0, seconds: 0.0 });
    let rounded = (1e3 * (before.seconds + seconds)).round() / 1e3;
    set(folder, name, json!({"units": before.units + units as u64, "core_seconds": rounded}))
}

/// Begins anew.
pub fn forget(folder: &Path, name: &str) -> Result<()> {
    set(folder, name, Value::Null)
}

fn set(folder: &Path, name: &str, entry: Value) -> Result<()> {
    let path = folder.join(FILE);
    let mut all = read_json(&path).filter(Value::is_object).unwrap_or_else(|| json!({}));
    all[name] = entry;
    write_json(&path, &all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_add_up_and_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(of(folder.path(), "a"), None);
        add(folder.path(), "a", 2, 1.5).unwrap();
        add(folder.path(), "b", 1, 9.0).unwrap();
        add(folder.path(), "a", 3, 0.25).unwrap();
        assert_eq!(of(folder.path(), "a"), Some(Cost { units: 5, seconds: 1.75 }));
        forget(folder.path(), "a").unwrap();
        assert_eq!(of(folder.path(), "a"), None);
        assert_eq!(of(folder.path(), "b"), Some(Cost { units: 1, seconds: 9.0 }));
    }
}

//! What a search runs over: named lists of values, and the points of their product.

use crate::error::{Error, Result};
use std::fmt;

/// Most points of a grid.
const MOST_CELLS: usize = 100_000;

/// A value of a parameter: a number, a rule or kind by name, or nothing at all (no truncation).
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    /// A number.
    Number(f64),
    /// A name, as users write it.
    Name(String),
    /// None.
    Nothing,
}

impl Setting {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        if let Setting::Number(number) = self { Some(*number) } else { None }
    }
}

impl From<f64> for Setting {
    fn from(number: f64) -> Self {
        Setting::Number(number)
    }
}

impl From<&str> for Setting {
    fn from(name: &str) -> Self {
        Setting::Name(name.to_string())
    }
}

impl From<Option<f64>> for Setting {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Setting::Nothing, Setting::Number)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Number(number) => write!(f, "{number}"),
            Setting::Name(name) => f.write_str(name),
            Setting::Nothing => f.write_str("none"),
        }
    }
}

/// The values of one parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The parameter's name, as in Python.
    pub name: &'static str,
    /// The values tried.
    pub values: Vec<Setting>,
}

impl Axis {
    pub(in crate::select) fn new<T: Into<Setting>>(name: &'static str, values: impl IntoIterator<Item = T>) -> Axis {
        Axis { name, values: values.into_iter().map(Into::into).collect() }
    }
}

/// The points of the product, the last list running fastest.
pub(in crate::select) fn product(axes: &[Axis]) -> Result<Vec<Vec<Setting>>> {
    for axis in axes {
        if axis.values.is_empty() {
            return Err(Error::parameter(axis.name, "an empty list", "at least one value to try"));
        }
    }
    let size = axes.iter().try_fold(1usize, |size, axis| size.checked_mul(axis.values.len()));
    if size.is_none_or(|size| size > MOST_CELLS) {
        let found = size.map_or("more than can be counted".to_string(), |size| format!("{size} points"));
        return Err(Error::shape("the grid", found, format!("at most {MOST_CELLS}")));
    }
    let mut cells: Vec<Vec<Setting>> = vec![Vec::new()];
    for axis in axes {
        let longer = |cell: &Vec<Setting>| {
            let cell = cell.clone();
            axis.values.iter().map(move |value| [&cell[..], std::slice::from_ref(value)].concat()).collect::<Vec<_>>()
        };
        cells = cells.iter().flat_map(longer).collect();
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_list_runs_fastest() {
        let axes = [Axis::new("gamma", ["q1", "q3"]), Axis::new("C", [1.0, 2.0])];
        let cells: Vec<String> =
            product(&axes).unwrap().iter().map(|cell| format!("{} {}", cell[0], cell[1])).collect();
        assert_eq!(cells, ["q1 1", "q1 2", "q3 1", "q3 2"]);
    }

    #[test]
    fn empty_and_endless_grids_are_refused() {
        assert!(product(&[Axis::new("C", Vec::<f64>::new())]).is_err());
        let long: Vec<f64> = vec![1.0; 1000];
        assert!(product(&[Axis::new("C", long.clone()), Axis::new("q", long.clone())]).is_err());
    }
}

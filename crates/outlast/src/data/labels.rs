//! Labels of any kind, mapped to classes `0..k` in sorted order.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::fmt;

/// The name of a class: a whole number or a text. Numbers sort before texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A whole number, as in `-1` and `+1`.
    Int(i64),
    /// Anything else.
    Text(String),
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Class::Int(value) => write!(f, "{value}"),
            Class::Text(value) => f.write_str(value),
        }
    }
}

macro_rules! class_from_int {
    ($($t:ty),*) => { $(impl From<$t> for Class { fn from(value: $t) -> Self { Class::Int(value.into()) } })* };
}
class_from_int!(i8, i16, i32, i64, u8, u16, u32, bool);

macro_rules! class_from_wide {
    ($($t:ty),*) => {
        $(impl From<$t> for Class {
            /// A number beyond the range of i64 becomes text.
            fn from(value: $t) -> Self {
                i64::try_from(value).map_or_else(|_| Class::Text(value.to_string()), Class::Int)
            }
        })*
    };
}
class_from_wide!(u64, usize, isize);

impl From<&str> for Class {
    fn from(value: &str) -> Self {
        Class::Text(value.to_owned())
    }
}

impl From<String> for Class {
    fn from(value: String) -> Self {
        Class::Text(value)
    }
}

/// One label per row: a sorted list of distinct classes and, per row, its position in that list.
///
/// ```
/// use outlast::Labels;
/// let labels = Labels::new(["spam", "ham", "spam"]);
/// assert_eq!(labels.codes(), [1, 0, 1]);
/// assert_eq!(labels.classes()[0].to_string(), "ham");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    classes: Vec<Class>,
    codes: Vec<u32>,
}

impl Labels {
    /// Collects labels and sorts the classes that occur.
    pub fn new<C: Into<Class>>(labels: impl IntoIterator<Item = C>) -> Self {
        let mut seen: BTreeMap<Class, u32> = BTreeMap::new();
        let mut first_seen = Vec::new();
        for label in labels {
            let next = seen.len() as u32;
            first_seen.push(*seen.entry(label.into()).or_insert(next));
        }
        let mut position = vec![0; seen.len()];
        for (sorted, &code) in seen.values().enumerate() {
            position[code as usize] = sorted as u32;
        }
        let codes = first_seen.into_iter().map(|code| position[code as usize]).collect();
        Labels { classes: seen.into_keys().collect(), codes }
    }

    /// Labels already coded as positions in a list of classes.
    pub fn from_codes(classes: Vec<Class>, codes: Vec<u32>) -> Result<Self> {
        match codes.iter().position(|&code| code as usize >= classes.len()) {
            None => Ok(Labels { classes, codes }),
            Some(row) => {
                let problem = format!("code {} does not name one of {} classes", codes[row], classes.len());
                Err(Error::Value { what: "y", row, column: None, problem })
            }
        }
    }

    /// Some rows, all of some classes that are given ascending: their labels among these alone.
    pub(crate) fn taken(&self, rows: &[u32], classes: &[u32]) -> Result<Self> {
        let names = classes.iter().map(|&class| self.classes[class as usize].clone()).collect();
        let place = |&row: &u32| classes.binary_search(&self.codes[row as usize]).unwrap_or(classes.len()) as u32;
        Labels::from_codes(names, rows.iter().map(place).collect())
    }

    /// The distinct classes, sorted.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// Per row, the position of its class in [`classes`](Self::classes).
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// Rows of each class.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.classes.len()];
        for &code in &self.codes {
            counts[code as usize] += 1;
        }
        counts
    }
}

/// Anything that can stand as `y`: [`Labels`], or a slice, array or vector of integers, booleans or texts.
pub trait Target {
    /// The labels, coded.
    fn labels(&self) -> Labels;
}

impl Target for Labels {
    fn labels(&self) -> Labels {
        self.clone()
    }
}

impl<C: Clone + Into<Class>> Target for [C] {
    fn labels(&self) -> Labels {
        Labels::new(self.iter().cloned())
    }
}

impl<C: Clone + Into<Class>> Target for Vec<C> {
    fn labels(&self) -> Labels {
        self.as_slice().labels()
    }
}

impl<C: Clone + Into<Class>, const N: usize> Target for [C; N] {
    fn labels(&self) -> Labels {
        self.as_slice().labels()
    }
}

impl<T: Target + ?Sized> Target for &T {
    fn labels(&self) -> Labels {
        (**self).labels()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_sorted_whatever_the_order_of_rows() {
        let labels = Labels::new([3, -1, 3, 0]);
        assert_eq!(labels.classes(), [Class::Int(-1), Class::Int(0), Class::Int(3)]);
        assert_eq!(labels.codes(), [2, 0, 2, 1]);
        assert_eq!(labels.counts(), [1, 1, 2]);
    }

    #[test]
    fn a_code_beyond_the_classes_is_refused() {
        let error = Labels::from_codes(vec![Class::Int(0)], vec![0, 1]).unwrap_err();
        assert!(error.to_string().contains("code 1"), "{error}");
    }
}

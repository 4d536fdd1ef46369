//! From the texts of a target column to classes.

use super::field::Problem;
use crate::data::{Class, Labels};
use crate::error::ParseKind;
use crate::model::MOST_CLASSES;
use std::collections::{HashMap, HashSet};

/// Whole numbers up to this size are exact in a 64-bit float.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Collects the labels of a column, each distinct text kept once.
#[derive(Default)]
pub(super) struct Names {
    seen: HashMap<String, u32>,
    /// The text last met and its code: neighbouring rows often agree.
    last: Option<(String, u32)>,
    codes: Vec<u32>,
    /// Whether more classes than a classifier takes are refused.
    bounded: bool,
}

impl Names {
    /// For a file of any length: as soon as there are more classes than a classifier takes, a label is refused.
    pub fn bounded() -> Names {
        Names { bounded: true, ..Names::default() }
    }

    /// Adds one label, outer white space already removed.
    pub fn push(&mut self, label: &str) -> Result<(), Problem> {
        if let Some((last, code)) = &self.last
            && last == label
        {
            self.codes.push(*code);
            return Ok(());
        }
        let code = match self.seen.get(label) {
            Some(&code) => code,
            None => {
                let code = self.seen.len() as u32;
                self.seen.insert(label.to_string(), code);
                if self.bounded && self.seen.len() > MOST_CLASSES && self.count() > MOST_CLASSES {
                    let problem = format!(
                        "the labels have more than {MOST_CLASSES} distinct values, and a classifier takes no more classes (is y a number to predict?)"
                    );
                    return Err(Problem::new(ParseKind::ManyClasses, problem));
                }
                code
            }
        };
        self.last = Some((label.to_string(), code));
        self.codes.push(code);
        Ok(())
    }

    /// How many classes there are so far: whole numbers count once, however they are written.
    fn count(&self) -> usize {
        let integers: Option<HashSet<i64>> = self.seen.keys().map(|text| integer(text)).collect();
        integers.map_or(self.seen.len(), |integers| integers.len())
    }

    /// The labels: whole numbers if every one of them is, else texts.
    pub fn finish(mut self) -> Labels {
        let codes = self.take_codes();
        let (classes, position) = self.classes();
        let codes = codes.into_iter().map(|code| position[code as usize]).collect();
        Labels::from_codes(classes, codes).unwrap_or_else(|_| Labels::new(Vec::<Class>::new()))
    }

    /// The labels added since the last time, in the order in which texts were met.
    pub fn take_codes(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.codes)
    }

    /// The classes so far, sorted, and where each text that was met is among them.
    pub fn classes(self) -> (Vec<Class>, Vec<u32>) {
        let mut texts: Vec<(String, u32)> = self.seen.into_iter().collect();
        texts.sort_by_key(|(_, code)| *code);
        let integers: Option<Vec<Class>> = texts.iter().map(|(text, _)| integer(text).map(Class::Int)).collect();
        let of_text = integers.unwrap_or_else(|| texts.into_iter().map(|(text, _)| Class::Text(text)).collect());
        let mut classes = of_text.clone();
        classes.sort();
        classes.dedup();
        let position: Vec<u32> =
            of_text.iter().map(|class| classes.binary_search(class).unwrap_or_default() as u32).collect();
        (classes, position)
    }
}

/// The whole number a text stands for: `3`, `+3`, `3.0`.
fn integer(text: &str) -> Option<i64> {
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    let value: f64 = text.parse().ok()?;
    (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i64)
}

/// Which of a model's classes a label of another file means: the same, or the same when written out.
///
/// A file whose labels are all whole numbers has numbers for classes, one with a text among them has texts; the model may
/// have seen the other kind.
///
/// ```
/// use outlast::{io::match_class, Class};
/// let classes = [Class::from("1"), Class::from("other")];
/// assert_eq!(match_class(&classes, &Class::Int(1)), Some(0));
/// assert_eq!(match_class(&classes, &Class::Int(2)), None);
/// ```
pub fn match_class(classes: &[Class], label: &Class) -> Option<usize> {
    let same = classes.iter().position(|class| class == label);
    same.or_else(|| {
        let value = |class: &Class| match class {
            Class::Int(value) => Some(*value),
            Class::Text(text) => integer(text),
        };
        let wanted = value(label)?;
        classes.iter().position(|class| value(class) == Some(wanted))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(texts: &[&str]) -> Labels {
        let mut names = Names::default();
        texts.iter().for_each(|text| names.push(text).unwrap());
        names.finish()
    }

    #[test]
    fn too_many_are_refused_at_once() {
        let mut names = Names::bounded();
        for class in 0..MOST_CLASSES {
            names.push(&class.to_string()).unwrap();
            // the same class
            names.push(&format!("{class}.0")).unwrap();
        }
        assert!(names.push("-1").unwrap_err().text.contains("more than 1000 distinct values"));
        let mut whole = Names::default();
        (0..2 * MOST_CLASSES).for_each(|class| whole.push(&class.to_string()).unwrap());
        assert_eq!(whole.finish().classes().len(), 2 * MOST_CLASSES);
    }

    #[test]
    fn whole_numbers_are_numbers_however_written() {
        let found = labels(&["1.0", "-1", "+1", "1", "10"]);
        assert_eq!(found.classes(), [Class::Int(-1), Class::Int(1), Class::Int(10)]);
        assert_eq!(found.codes(), [1, 0, 1, 1, 2]);
    }

    #[test]
    fn one_text_makes_all_texts() {
        let found = labels(&["1", "b", "1.5", "1"]);
        assert_eq!(found.classes(), ["1", "1.5", "b"].map(Class::from));
        assert_eq!(found.codes(), [0, 2, 1, 0]);
        assert_eq!(labels(&["1e300", "2"]).classes().len(), 2);
        assert!(labels(&[]).is_empty());
    }

    #[test]
    fn labels_match_across_kinds() {
        let classes = [Class::Int(-1), Class::Int(1)];
        assert_eq!(match_class(&classes, &Class::from("1.0")), Some(1));
        assert_eq!(match_class(&classes, &Class::from("one")), None);
        assert_eq!(match_class(&classes, &Class::Int(-1)), Some(0));
    }
}

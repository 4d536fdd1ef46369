//! What users get to see: aligned text for people, one JSON object for programs.

use crate::destination;
use crate::failure::Failure;
use outlast::Class;
use outlast::error::shown;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// Writes to standard output. Whoever closed it has seen enough: what the command found does not depend on a reader.
pub fn print(text: &str) -> Result<(), Failure> {
    destination::write(Path::new("-"), |out| out.write_all(text.as_bytes()))
}

/// Writes a line to standard error; if that is closed nobody can be told, and the work goes on.
pub fn tell(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Writes one JSON object to standard output.
pub fn print_json(value: &Value) -> Result<(), Failure> {
    print(&format!("{value}\n"))
}

/// A class as JSON: a number stays a number.
pub fn class_json(class: &Class) -> Value {
    match class {
        Class::Int(value) => json!(value),
        Class::Text(text) => json!(text),
    }
}

/// Names and values, the values aligned.
#[derive(Default)]
pub struct Pairs(Vec<(&'static str, String)>);

impl Pairs {
    /// Adds a line.
    pub fn add(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.push((name, value.into()));
    }

    /// The lines.
    pub fn render(&self) -> String {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        self.0.iter().map(|(name, value)| format!("{name:width$}  {value}\n")).collect()
    }
}

/// A table: the first column to the left, the others to the right.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let length = |text: &str| text.chars().count();
    let mut widths: Vec<usize> = header.iter().map(|name| length(name)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(length(cell));
        }
    }
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_string() + "\n"
    };
    let rows = rows.iter().map(|row| line(row.iter().map(String::as_str).collect()));
    std::iter::once(line(header.to_vec())).chain(rows).collect()
}

/// A count with its noun.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A number with six digits, short where it can be.
pub fn short(value: f64) -> String {
    if value == 0.0 || (1e-4..1e7).contains(&value.abs()) {
        let digits = 5 - value.abs().log10().floor().clamp(0.0, 5.0) as usize * usize::from(value != 0.0);
        let text = format!("{value:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
    } else {
        format!("{value:.5e}")
    }
}

/// Seconds.
pub fn seconds(value: f64) -> String {
    if value < 10.0 { format!("{value:.2} s") } else { format!("{value:.0} s") }
}

/// A class for people: nothing that would move the cursor, and not too long.
pub fn class_text(class: &Class) -> String {
    shown(&class.to_string())
}

/// Classes named in one line of text.
const CLASSES_SHOWN: usize = 12;

/// Classes with a number each, not too many: `a (5), b (7)`.
pub fn classes_text<'a>(classes: impl ExactSizeIterator<Item = (&'a Class, usize)>) -> String {
    let more = classes.len().saturating_sub(CLASSES_SHOWN);
    let named = classes.take(CLASSES_SHOWN).map(|(class, number)| format!("{} ({number})", class_text(class)));
    listed(named.collect(), more)
}

/// Names in one line, and how many were left out.
pub fn listed(mut names: Vec<String>, more: usize) -> String {
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

/// A text of at most `most` characters.
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    text.chars().take(most.saturating_sub(1)).chain(['~']).collect()
}

/// A field of a CSV file, quoted where needed.
pub fn csv_field(text: &str) -> String {
    let special = text.contains([',', '"', '\n', '\r', ';', '\t']) || text.trim() != text || text.is_empty();
    if special { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_true() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (123456.789, "123457"),
            (0.000123456, "0.00012"),
            (1.0 / 3.0, "0.33333"),
            (1e-9, "1.00000e-9"),
            (1e9, "1.00000e9"),
            (100.0, "100"),
        ] {
            assert_eq!(short(value), text);
        }
        assert_eq!(short(f64::INFINITY), "inf");
    }

    #[test]
    fn tables_line_up() {
        let rows = [vec!["a".to_string(), "1".to_string()], vec!["bcd".to_string(), "23".to_string()]];
        assert_eq!(table(&["x", "rows"], &rows), "x    rows\na       1\nbcd    23\n");
    }

    #[test]
    fn lists_are_cut() {
        let classes: Vec<Class> = (0..100).map(Class::Int).collect();
        let text = classes_text(classes.iter().zip(1..101));
        assert!(text.starts_with("0 (1), 1 (2), ") && text.ends_with("11 (12), 88 more"), "{text}");
        assert_eq!(classes_text(classes[..2].iter().zip([3, 4])), "0 (3), 1 (4)");
        assert_eq!((cut("abcdef", 4), cut("abcd", 4)), ("abc~".to_string(), "abcd".to_string()));
    }

    #[test]
    fn fields_are_quoted_where_needed() {
        assert_eq!(csv_field("a"), "a");
        assert_eq!(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(class_text(&"a\nb".into()), "a\\nb");
        assert_eq!(class_text(&Class::Int(-1)), "-1");
    }
}

//! One field of a text: a number, or why not.

use crate::error::{ParseKind, quoted};

/// Markers of a missing value, beside the empty field.
const MISSING: &[&str] = &["na", "n/a", "nan", "null", "none", "?"];

/// Those that are missing as a label too; a class may well be named none or null.
const MISSING_LABELS: &[&str] = &["na", "nan", "?"];

/// Most bytes of a field looked at for a message, more than it will show.
const LOOKED_AT: usize = 400;

/// What is wrong with a field, a row or the columns.
#[derive(Debug, PartialEq)]
pub(super) struct Problem {
    pub kind: ParseKind,
    pub text: String,
}

impl Problem {
    pub fn new(kind: ParseKind, text: impl Into<String>) -> Self {
        Problem { kind, text: text.into() }
    }
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Problem { kind: ParseKind::Other, text }
    }
}

impl From<&str> for Problem {
    fn from(text: &str) -> Self {
        text.to_string().into()
    }
}

/// A finite number, or what is wrong with the field.
#[inline]
pub(super) fn number(field: &[u8]) -> Result<f64, Problem> {
    if let Some(value) = short_decimal(field) {
        return Ok(value);
    }
    match parse(field) {
        Some(value) if value.is_finite() => Ok(value),
        _ => slow_number(field),
    }
}

/// Powers of ten that are exact in f64 up to the longest fraction taken here.
const TENS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Up to 15 digits with at most one dot, as most fields are. Both the digits as a whole number (below 2^53) and the power
/// of ten are exact, so their quotient is rounded once: the nearest f64 (Clinger 1990). Anything else is left to others.
#[inline]
fn short_decimal(field: &[u8]) -> Option<f64> {
    let (negative, digits) = match field {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.len() > 16 {
        return None;
    }
    let (mut whole, mut count, mut fraction) = (0u64, 0usize, None);
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            whole = 10 * whole + u64::from(digit);
            count += 1;
        } else if byte == b'.' && fraction.is_none() {
            fraction = Some(count);
        } else {
            return None;
        }
    }
    if count == 0 || count > 15 {
        return None;
    }
    let value = whole as f64 / TENS[fraction.map_or(0, |dot| count - dot)];
    Some(if negative { -value } else { value })
}

#[inline]
fn parse(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cold]
fn slow_number(field: &[u8]) -> Result<f64, Problem> {
    let trimmed = field.trim_ascii();
    if is_missing(trimmed) {
        return Err(missing(trimmed));
    }
    match parse(trimmed) {
        Some(value) if value.is_finite() => Ok(value),
        Some(_) => Err(format!("{} is infinite or too large for a 64-bit number", quote(trimmed)).into()),
        None => Err(Problem::new(ParseKind::NotANumber, format!("{} is not a number", quote(trimmed)))),
    }
}

/// Whether a trimmed field stands for a value that is not there.
pub(super) fn is_missing(trimmed: &[u8]) -> bool {
    trimmed.is_empty() || MISSING.iter().any(|marker| trimmed.eq_ignore_ascii_case(marker.as_bytes()))
}

/// Whether a trimmed label is none.
pub(super) fn is_missing_label(trimmed: &[u8]) -> bool {
    trimmed.is_empty() || MISSING_LABELS.iter().any(|marker| trimmed.eq_ignore_ascii_case(marker.as_bytes()))
}

/// What to say of a missing value.
pub(super) fn missing(trimmed: &[u8]) -> Problem {
    let what = if trimmed.is_empty() { "empty field".to_string() } else { quote(trimmed) };
    format!("the value is missing ({what}); fill it in, or leave out the row or the column").into()
}

/// A piece of a file, fit for a message: quoted, escaped, not too long.
pub(super) fn quote(piece: &[u8]) -> String {
    quoted(&String::from_utf8_lossy(&piece[..piece.len().min(LOOKED_AT)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_in_every_spelling() {
        for (text, value) in [("1", 1.0), (" -2.5 ", -2.5), ("+3e-2", 0.03), (".5", 0.5), ("1E3", 1000.0), ("-0", -0.0)]
        {
            assert_eq!(number(text.as_bytes()).unwrap().to_bits(), f64::to_bits(value), "{text}");
        }
    }

    proptest! {
        #[test]
        fn short_decimals_are_those_of_the_standard_library(text in "-?[0-9]{0,9}\\.?[0-9]{0,9}") {
            if let Some(value) = short_decimal(text.as_bytes()) {
                prop_assert_eq!(value.to_bits(), text.parse::<f64>().unwrap().to_bits());
            }
        }
    }

    #[test]
    fn refusals_say_why() {
        for missing in ["", "  ", "NA", "nan", "NaN", "?", "N/A", "null"] {
            assert!(number(missing.as_bytes()).unwrap_err().text.contains("missing"), "{missing}");
        }
        for infinite in ["inf", "-Infinity", "1e999"] {
            assert!(number(infinite.as_bytes()).unwrap_err().text.contains("infinite"), "{infinite}");
        }
        for wrong in ["abc", "1,5", "0x10", "1_000", "1 2"] {
            assert!(number(wrong.as_bytes()).unwrap_err().text.contains("is not a number"), "{wrong}");
        }
        assert!(number(b"\xff\xfe").is_err());
        assert!(number(&[b'x'; 100_000]).unwrap_err().text.len() < 100);
    }
}

//! JSON that can stand inside a `<script>` element, and numbers that JSON has no word for.
//!
//! Inside `<script type="application/json">` a browser looks for `</script` and `<!--` and for nothing else, so no `<` may
//! be left; `>`, `&` and the line separators U+2028 and U+2029 go as well, so that the text survives any other reader of
//! HTML or JavaScript. In JSON these characters occur inside strings only, where `\u003c` means the same.
//! What is not finite is written as `null` and read back as NaN.

use crate::error::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

struct InScript;

impl Formatter for InScript {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut from = 0;
        for (at, sign) in fragment.char_indices() {
            if matches!(sign, '<' | '>' | '&' | '\u{2028}' | '\u{2029}') {
                writer.write_all(&fragment.as_bytes()[from..at])?;
                write!(writer, "\\u{:04x}", sign as u32)?;
                from = at + sign.len_utf8();
            }
        }
        writer.write_all(&fragment.as_bytes()[from..])
    }
}

/// A value as JSON for a `<script>` element.
pub fn for_script(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut text, InScript));
    written.map_err(|error| Error::io("page", io::Error::other(error)))?;
    Ok(text)
}

pub fn number<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::NAN))
}

pub fn numbers<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Vec<f32>, D::Error> {
    Ok(plain(Vec::deserialize(from)?, f32::NAN))
}

pub fn pair<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<[Vec<f32>; 2], D::Error> {
    Ok(<[Vec<Option<f32>>; 2]>::deserialize(from)?.map(|values| plain(values, f32::NAN)))
}

pub fn matrix<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Vec<Vec<f64>>, D::Error> {
    let rows = Vec::<Vec<Option<f64>>>::deserialize(from)?;
    Ok(rows.into_iter().map(|row| plain(row, f64::NAN)).collect())
}

fn plain<T: Copy>(values: Vec<Option<T>>, missing: T) -> Vec<T> {
    values.into_iter().map(|value| value.unwrap_or(missing)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_text_can_end_the_script() {
        let hostile = "</script><script>alert(1)</script><!-- & \u{2028}\u{2029} \" \\ \u{0} \u{202e} 🎲";
        let text = String::from_utf8(for_script(&hostile).unwrap()).unwrap();
        assert!(!text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), hostile);
    }

    #[test]
    fn keys_are_escaped_too() {
        let map = std::collections::BTreeMap::from([("</script>", 1)]);
        assert_eq!(for_script(&map).unwrap(), br#"{"\u003c/script\u003e":1}"#);
    }

    #[test]
    fn what_is_not_finite_becomes_null() {
        assert_eq!(for_script(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.1]).unwrap(), b"[null,null,null,0.1]");
    }
}

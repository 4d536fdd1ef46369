//! The suspects of an audit as CSV.
//!
//! ```text
//! row,line,given,suggested,score,confidence,agreement,margin,reasons
//! ```
//!
//! Rows count from 1, as in a file of decisions. A text that a spreadsheet would take for a formula (it starts with `=`, `+`, `-`, `@`,
//! a tab or a carriage return, and is no number) gets an apostrophe in front, the usual guard.

use crate::select::audit::AuditReport;
use std::io::{Result, Write};

/// Writes one line per suspect, most suspect first. `lines` says on which line of its file each row starts, where there is one.
pub fn write_suspects(report: &AuditReport, lines: Option<&[u64]>, out: &mut dyn Write) -> Result<()> {
    let line_name = if lines.is_some() { "line," } else { "" };
    writeln!(out, "row,{line_name}given,suggested,score,confidence,agreement,margin,reasons")?;
    for suspect in &report.suspects {
        let line = lines.and_then(|lines| lines.get(suspect.row)).map_or(String::new(), |line| format!("{line},"));
        let class = |code: u32| csv_text(&report.classes[code as usize].to_string());
        let (given, suggested) = (class(suspect.given), class(suspect.suggested));
        let reasons = csv_text(&report.words(suspect).join("; "));
        writeln!(
            out,
            "{},{line}{given},{suggested},{:.6},{:.6},{:.4},{:.6},{reasons}",
            suspect.row + 1,
            suspect.score,
            suspect.confidence,
            suspect.agreement,
            report.margins[suspect.row]
        )?;
    }
    Ok(())
}

/// A text as a CSV field: no formula, quoted where needed.
fn csv_text(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    let text = if formula { format!("'{text}") } else { text.to_string() };
    let special = text.contains([',', '"', '\n', '\r', ';', '\t']) || text.trim() != text || text.is_empty();
    if special { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::csv_text;

    #[test]
    fn formulas_are_guarded_and_numbers_are_not() {
        for (text, written) in [
            ("=cmd()", "'=cmd()"),
            ("+1", "+1"),
            ("-1", "-1"),
            ("-a", "'-a"),
            ("@x,y", "\"'@x,y\""),
            ("\tx", "\"'\tx\""),
            ("a=b", "a=b"),
            ("", "\"\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
        ] {
            assert_eq!(csv_text(text), written);
        }
    }
}

//! The page of an audit: one HTML file, without network, on which a reader decides about suspect rows.
//!
//! ```text
//! Page (plain data) -> check -> JSON in a <script> -> page.html with page.css, plotly.js and the scripts in it
//! ```
//!
//! Text of the table reaches the browser as JSON that can't leave its element (`json.rs`), and from there the document as
//! text nodes only. Behind that stands a Content-Security-Policy: nothing is loaded from anywhere, and only the two scripts
//! whose SHA-256 the page names may run, so that a script in the data would not run even if it found a way in.
//!
//! The reader's marks are kept by the browser under a key made of the digest of the data. The corrected table that the page
//! lets the reader download holds the cells as they came: also those that a spreadsheet would take for formulas.

mod json;
mod sha256;

use crate::error::{Error, Result};
use crate::io::write_atomically;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::Path;

const DOCUMENT: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const CHARTS: &str = include_str!("plotly/plotly-basic.min.js");

/// One script in the page; the files share its scope.
const SCRIPTS: &[&str] = &[
    "\"use strict\";\n(() => {\n",
    include_str!("script/data.js"),
    include_str!("script/decisions.js"),
    include_str!("script/table.js"),
    include_str!("script/detail.js"),
    include_str!("script/scatter.js"),
    include_str!("script/summary.js"),
    include_str!("script/main.js"),
    "})();\n",
];

/// Everything the page of an audit shows. Rows, columns and classes are counted from 0.
///
/// ```
/// use outlast::io::{Page, Suspect, write_page};
/// let page = Page {
///     source: "flowers.csv".into(),
///     target: "kind".into(),
///     target_column: Some(1),
///     cells: vec![vec!["1.5".into(), "9".into()], vec!["a".into(), "a".into()]],
///     numeric: vec![true, false],
///     classes: vec!["a".into(), "b".into()],
///     labels: vec![0, 0],
///     components: [vec![0.0, 1.0], vec![0.0, 0.5]],
///     margins: vec![1.2, -0.7],
///     scores: vec![0.1, 0.9],
///     suspects: vec![Suspect { row: 1, score: 0.9, suggested: 1, confidence: 0.8, agreement: 1.0, reasons: vec![] }],
///     ..Page::default()
/// };
/// let mut html = Vec::new();
/// write_page(&page, &mut html)?;
/// assert!(html.starts_with(b"<!doctype html>"));
/// # Ok::<(), outlast::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// Version of Outlast.
    pub version: String,
    /// The table's name, as the user gave it.
    pub source: String,
    /// Name of the target column.
    pub target: String,
    /// Where the target stands in `cells`; without, the corrected table has it as another column at the end.
    pub target_column: Option<usize>,
    /// Names of the columns; the corrected table has a header only if there is one here.
    pub header: Option<Vec<String>>,
    /// The table as text, column by column, the target among them; empty when it is too large to be carried along.
    pub cells: Vec<Vec<String>>,
    /// Which columns hold numbers.
    pub numeric: Vec<bool>,
    /// Names of the classes.
    pub classes: Vec<String>,
    /// The given class of each row.
    pub labels: Vec<usize>,
    /// Line of the file on which the first row stands, counted from 1; 0 when the rows have no lines.
    pub first_line: usize,
    /// The two leading principal components of each row.
    #[serde(deserialize_with = "json::pair")]
    pub components: [Vec<f32>; 2],
    /// Functional margin of each row, out of sample.
    #[serde(deserialize_with = "json::numbers")]
    pub margins: Vec<f32>,
    /// Suspicion of each row; larger is more suspect.
    #[serde(deserialize_with = "json::numbers")]
    pub scores: Vec<f32>,
    /// The rows to look at, most suspect first.
    pub suspects: Vec<Suspect>,
    /// The margin at which the loss is cut off.
    pub truncation: Option<f64>,
    /// Rows by given class and class predicted out of sample; may be empty.
    pub confusion: Vec<Vec<usize>>,
    /// Of the rows of each given class, the share that likely belongs to each class; may be empty.
    #[serde(deserialize_with = "json::matrix")]
    pub noise: Vec<Vec<f64>>,
    /// Lines of the model card: what, and its value.
    pub model: Vec<(String, String)>,
    /// The numbers at the top: what, and its value.
    pub headline: Vec<(String, String)>,
}

/// A row to look at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suspect {
    /// The row, counted from 0.
    pub row: usize,
    /// Suspicion; larger is more suspect.
    #[serde(deserialize_with = "json::number")]
    pub score: f64,
    /// The class it looks like; its given one when only its features are suspect.
    pub suggested: usize,
    /// How sure that is, from 0 to 1.
    #[serde(deserialize_with = "json::number")]
    pub confidence: f64,
    /// Share of the fits without it that say so.
    #[serde(deserialize_with = "json::number")]
    pub agreement: f64,
    /// Why, in words.
    pub reasons: Vec<String>,
}

impl Page {
    /// Refuses lists that do not fit together, by the name of the list.
    pub fn check(&self) -> Result<()> {
        let (rows, columns, classes) = (self.labels.len(), self.cells.len(), self.classes.len());
        self.check_rows(rows)?;
        if columns > 0 {
            self.check_columns(rows, columns)?;
        }
        if let Some(label) = self.labels.iter().find(|&&label| label >= classes) {
            return Err(not_a_class("labels of the page", *label, classes));
        }
        let mut listed = vec![false; rows];
        for suspect in &self.suspects {
            match listed.get_mut(suspect.row) {
                None => {
                    return Err(Error::shape(
                        "suspects of the page",
                        format!("row {}", suspect.row),
                        format!("rows below {rows}"),
                    ));
                }
                Some(true) => {
                    return Err(Error::shape(
                        "suspects of the page",
                        format!("row {} twice", suspect.row),
                        "each row once",
                    ));
                }
                Some(seen) => *seen = true,
            }
            if suspect.suggested >= classes {
                return Err(not_a_class("suspects of the page", suspect.suggested, classes));
            }
        }
        square("confusion of the page", &self.confusion, classes)?;
        square("noise of the page", &self.noise, classes)
    }

    fn check_rows(&self, rows: usize) -> Result<()> {
        let per_row = [
            ("margins of the page", self.margins.len()),
            ("scores of the page", self.scores.len()),
            ("first component of the page", self.components[0].len()),
            ("second component of the page", self.components[1].len()),
        ];
        for (what, found) in per_row {
            if found != rows {
                return Err(Error::shape(what, format!("{found} values"), format!("{rows}, one for each label")));
            }
        }
        Ok(())
    }

    fn check_columns(&self, rows: usize, columns: usize) -> Result<()> {
        if let Some((index, column)) = self.cells.iter().enumerate().find(|(_, column)| column.len() != rows) {
            let found = format!("{} cells in column {index} (counted from 0)", column.len());
            return Err(Error::shape("cells of the page", found, format!("{rows}, one for each label")));
        }
        let names = self.header.as_ref().map_or(columns, Vec::len);
        for (what, found) in [("header of the page", names), ("numeric of the page", self.numeric.len())] {
            if found != columns {
                return Err(Error::shape(what, format!("{found} values"), format!("{columns}, one for each column")));
            }
        }
        match self.target_column {
            Some(target) if target >= columns => Err(Error::shape(
                "target_column of the page",
                format!("column {target}"),
                format!("one below {columns}"),
            )),
            _ => Ok(()),
        }
    }
}

fn not_a_class(what: &'static str, class: usize, classes: usize) -> Error {
    Error::shape(what, format!("class {class}"), format!("classes below {classes}"))
}

fn square<T>(what: &'static str, matrix: &[Vec<T>], classes: usize) -> Result<()> {
    if matrix.is_empty() {
        return Ok(());
    }
    let found = match matrix.iter().find(|row| row.len() != classes) {
        Some(row) => format!("rows of {} values", row.len()),
        None if matrix.len() != classes => format!("{} rows", matrix.len()),
        None => return Ok(()),
    };
    Err(Error::shape(what, found, format!("{classes} x {classes} values")))
}

/// Writes the page of an audit: one HTML file that needs nothing else.
pub fn write_page(page: &Page, out: &mut impl Write) -> Result<()> {
    page.check()?;
    let data = json::for_script(page)?;
    write(&data, out).map_err(|error| Error::io("page", error))
}

/// [`write_page`] into a file, which appears whole or not at all.
pub fn save_page(page: &Page, path: impl AsRef<Path>) -> Result<()> {
    page.check()?;
    let data = json::for_script(page)?;
    write_atomically(path, |mut out| write(&data, &mut out))
}

/// The document with everything in its places.
fn write(data: &[u8], out: &mut impl Write) -> io::Result<()> {
    let script = SCRIPTS.concat();
    let policy = policy(&[CHARTS, &script]);
    let key = sha256::hex(&sha256::sha256(data));
    for (index, part) in DOCUMENT.split("{{").enumerate() {
        let (name, text) = if index == 0 { ("", part) } else { part.split_once("}}").unwrap_or(("", part)) };
        out.write_all(match name {
            "policy" => policy.as_bytes(),
            "style" => STYLE.as_bytes(),
            "key" => key.as_bytes(),
            "data" => data,
            "charts" => CHARTS.as_bytes(),
            "script" => script.as_bytes(),
            _ => b"",
        })?;
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Nothing from anywhere, and only the scripts of these texts. Styles can't be held to a digest: plotly sets its own.
fn policy(scripts: &[&str]) -> String {
    let digest = |text: &&str| format!(" 'sha256-{}'", sha256::base64(&sha256::sha256(text.as_bytes())));
    let digests: String = scripts.iter().map(digest).collect();
    format!(
        "default-src 'none'; script-src{digests}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
}

#[cfg(test)]
mod tests;

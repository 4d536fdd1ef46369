//! A table as text, cell by cell, for the page of an audit.

use super::columns::{Columns, Role};
use super::csv::{Record, Records, has_header, header_names};
use super::field::number;
use super::parquet;
use super::source::{Source, display_name};
use super::table::{Format, ReadOptions, Table};
use crate::error::Result;
use std::io::Read;
use std::path::Path;

/// The cells of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cells {
    /// Names of the columns, if the file has a header.
    pub header: Option<Vec<String>>,
    /// The text of each cell, column by column, quotes taken off.
    pub columns: Vec<Vec<String>>,
    /// Whether every cell of a column is a number.
    pub numeric: Vec<bool>,
    /// Where the labels are.
    pub target_column: Option<usize>,
    /// One-based line where the first row starts.
    pub first_line: usize,
}

/// Reads the cells of CSV text or of a Parquet file's columns in use from memory or any other reader; `name` stands for the file in messages and for guessing the format.
/// LIBSVM text has no cells: the answer is empty. So it is, but for its header, where the table holds more than `most` bytes.
pub fn read_cells(reader: impl Read, name: impl AsRef<Path>, options: &ReadOptions, most: usize) -> Result<Cells> {
    let source = Source::new(Box::new(reader), display_name(name.as_ref()))?;
    let format = source.format(options.format)?;
    match format {
        Format::Libsvm => return Ok(Cells::default()),
        Format::Parquet => return of_table(&parquet::read(source, options, None)?, most),
        _ => {}
    }
    let mut records = Records::new(source, options.delimiter);
    let (mut first, mut record) = (Record::default(), Record::default());
    if !records.next(&mut first)? {
        return Err(records.lines.whole("the file is empty"));
    }
    let mut more = records.next(&mut record)?;
    let with_header = has_header(&first, more.then_some(&record), options);
    let header = if with_header { Some(header_names(&first, &records.lines)?) } else { None };
    let count = first.fields.len();
    let columns = Columns { count, header: header.as_deref() };
    let plan = columns.plan(options, None).map_err(|problem| records.lines.at(first.line, None, None, problem))?;
    let first_line = if with_header { record.line } else { first.line } as usize;
    let target_column = plan.roles.iter().position(|role| *role == Role::Target);
    let mut cells =
        Cells { header, columns: vec![Vec::new(); count], numeric: vec![true; count], target_column, first_line };
    let mut bytes = 0;
    if !with_header {
        bytes += cells.push(&first);
    }
    while more {
        bytes += cells.push(&record);
        if bytes > most {
            return Ok(Cells { columns: Vec::new(), numeric: Vec::new(), target_column: None, ..cells });
        }
        more = records.next(&mut record)?;
    }
    Ok(cells)
}

/// The cells of a table that has no text of its own: the features as numbers, then the labels.
fn of_table(table: &Table, most: usize) -> Result<Cells> {
    let (x, rows, cols) = (table.design(), table.rows(), table.cols());
    let header = table.feature_names.clone().map(|mut names| {
        names.extend(table.labels.as_ref().map(|_| "label".to_string()));
        names
    });
    let empty = Cells { header, columns: Vec::new(), numeric: Vec::new(), target_column: None, first_line: 1 };
    // a number takes three bytes at least, and a cell some more to hold it
    if rows.saturating_mul(cols) > most / 3 {
        return Ok(empty);
    }
    let mut columns = vec![Vec::with_capacity(rows); cols];
    let mut values = vec![0.0; cols];
    for row in 0..rows {
        x.copy_row(row, &mut values);
        columns.iter_mut().zip(&values).for_each(|(column, value)| column.push(value.to_string()));
    }
    let mut numeric = vec![true; cols];
    if let Some(labels) = &table.labels {
        columns.push(labels.codes().iter().map(|&code| labels.classes()[code as usize].to_string()).collect());
        numeric.push(false);
    }
    let target_column = table.labels.as_ref().map(|_| cols);
    Ok(Cells { columns, numeric, target_column, ..empty })
}

impl Cells {
    /// Adds a row, returns its bytes.
    fn push(&mut self, record: &Record) -> usize {
        let mut bytes = 0;
        for ((field, column), numeric) in record.iter().zip(&mut self.columns).zip(&mut self.numeric) {
            *numeric &= number(field).is_ok();
            bytes += field.len();
            column.push(String::from_utf8_lossy(field).into_owned());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_the_text_as_it_stands() {
        let text = "\n a,\"b, c\",kind\n 1.50,\"x\ny\",\"<b>\"\n2,,k\n";
        let cells = read_cells(text.as_bytes(), "t.csv", &ReadOptions::default(), 1000).unwrap();
        assert_eq!(cells.header.as_deref().unwrap(), ["a", "b, c", "kind"]);
        assert_eq!(cells.columns, [vec![" 1.50", "2"], vec!["x\ny", ""], vec!["<b>", "k"]]);
        assert_eq!((cells.numeric, cells.target_column, cells.first_line), (vec![true, false, false], Some(2), 3));
        assert!(read_cells(text.as_bytes(), "t.csv", &ReadOptions::default(), 5).unwrap().columns.is_empty());
        assert_eq!(read_cells("1 1:2\n".as_bytes(), "t.svm", &ReadOptions::default(), 5).unwrap(), Cells::default());
    }
}

//! A table as text, cell by cell, for the page of an audit.

use super::columns::{Columns, Role};
use super::csv::{Record, Records, has_header, header_names};
use super::field::number;
use super::source::{Source, display_name};
use super::table::{Format, ReadOptions};
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

/// Reads the cells of CSV text from memory or any other reader; `name` stands for the file in messages and for guessing the format.
/// LIBSVM text has no cells: the answer is empty. So it is, but for its header, where the table holds more than `most` bytes.
pub fn read_cells(reader: impl Read, name: impl AsRef<Path>, options: &ReadOptions, most: usize) -> Result<Cells> {
    let source = Source::new(Box::new(reader), display_name(name.as_ref()))?;
    let format = match options.format {
        Format::Auto => source.guess_format(),
        given => given,
    };
    if format == Format::Libsvm {
        return Ok(Cells::default());
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

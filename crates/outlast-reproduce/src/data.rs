//! Real data: read from a folder the user names, never carried along.

use crate::random::{Random, fnv};
use outlast::io::{ReadOptions, read_table};
use outlast::{Class, Dense, Design, Error, Labels, Result};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A public data set: the file's name without its ending, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataSet {
    /// The file is NAME.csv or NAME.csv.gz: a header, numbers, the label in the last column.
    pub name: &'static str,
    /// Where the public set comes from.
    pub source: &'static str,
    /// Columns beside the label.
    pub columns: usize,
    /// The labels, ascending.
    pub classes: &'static [i64],
}

/// A folder with data sets, or none. A set is read once.
#[derive(Debug, Default)]
pub struct DataFolder {
    folder: Option<PathBuf>,
    known: Mutex<HashMap<&'static str, Arc<Rows>>>,
}

/// Rows with their labels.
#[derive(Debug, Clone)]
pub struct Rows {
    /// The columns.
    pub x: Dense<'static>,
    /// The labels.
    pub y: Labels,
}

impl Rows {
    /// Some of the rows, in the order asked for.
    pub fn some(&self, rows: &[usize]) -> Result<Rows> {
        let values: Vec<f64> = rows.iter().flat_map(|&row| self.x.row(row).iter().copied()).collect();
        let codes = rows.iter().map(|&row| self.y.codes()[row]).collect();
        Ok(Rows {
            x: Dense::new(rows.len(), self.x.cols(), values)?,
            y: Labels::from_codes(self.y.classes().to_vec(), codes)?,
        })
    }

    /// The rows of some classes, which are counted anew in the order given.
    pub fn of_classes(&self, classes: &[i64]) -> Result<Rows> {
        let new = |row: &usize| {
            let class = &self.y.classes()[self.y.codes()[*row] as usize];
            classes.iter().position(|&wanted| *class == Class::Int(wanted))
        };
        let rows: Vec<usize> = (0..self.x.rows()).filter(|row| new(row).is_some()).collect();
        let codes = rows.iter().filter_map(new).map(|code| code as u32).collect();
        let names = classes.iter().map(|&class| Class::Int(class)).collect();
        Ok(Rows { x: self.some(&rows)?.x, y: Labels::from_codes(names, codes)? })
    }

    /// The rows of each class in random order.
    pub fn shuffled_by_class(&self, random: &mut Random) -> Vec<Vec<usize>> {
        let of_class = |class: u32| {
            let mut rows: Vec<usize> = (0..self.x.rows()).filter(|&row| self.y.codes()[row] == class).collect();
            random.shuffle(&mut rows);
            rows
        };
        (0..self.y.classes().len() as u32).map(of_class).collect()
    }

    /// The same rows with each column brought to mean 0 and standard deviation 1 over all rows; a constant column becomes 0.
    pub fn standardized(&self) -> Result<Rows> {
        let (n, d) = (self.x.rows(), self.x.cols());
        let mut values = self.x.values().to_vec();
        for column in 0..d {
            let of_column = || (0..n).map(|row| row * d + column);
            let mean = of_column().map(|at| values[at]).sum::<f64>() / n as f64;
            let square = of_column().map(|at| (values[at] - mean).powi(2)).sum::<f64>();
            let deviation = (square / (n as f64 - 1.0)).sqrt();
            for at in of_column() {
                values[at] = if deviation > 0.0 { (values[at] - mean) / deviation } else { 0.0 };
            }
        }
        Ok(Rows { x: Dense::new(n, d, values)?, y: self.y.clone() })
    }
}

impl DataFolder {
    /// The data sets of a folder.
    pub fn new(folder: Option<PathBuf>) -> DataFolder {
        DataFolder { folder, ..DataFolder::default() }
    }

    /// The file of a data set, if it is there.
    pub fn file(&self, set: &DataSet) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        let names = [format!("{}.csv", set.name), format!("{}.csv.gz", set.name)];
        names.into_iter().map(|name| folder.join(name)).find(|path| path.is_file())
    }

    /// What tells this file from another of the same name.
    pub(crate) fn fingerprint(&self, set: &DataSet) -> Option<String> {
        let bytes = std::fs::read(self.file(set)?).ok()?;
        Some(format!("{} {:016x}", bytes.len(), fnv(&bytes)))
    }

    /// A data set.
    pub fn get(&self, set: &DataSet) -> Result<Arc<Rows>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rows) = known.get(set.name) {
            return Ok(rows.clone());
        }
        let rows = Arc::new(self.read(set)?);
        known.insert(set.name, rows.clone());
        Ok(rows)
    }

    fn read(&self, set: &DataSet) -> Result<Rows> {
        let Some(path) = self.file(set) else {
            let missing = std::io::Error::new(std::io::ErrorKind::NotFound, format!("comes from {}", set.source));
            return Err(Error::io(format!("{}.csv", set.name), missing));
        };
        let table = read_table(&path, &ReadOptions::default())?;
        let design = table.design();
        let mut values = vec![0.0; design.rows() * design.cols()];
        for (row, out) in values.chunks_exact_mut(design.cols().max(1)).enumerate() {
            design.copy_row(row, out);
        }
        let x = Dense::new(design.rows(), design.cols(), values)?;
        let classes: Vec<Class> = set.classes.iter().map(|&class| Class::Int(class)).collect();
        match table.labels {
            Some(y) if x.cols() == set.columns && y.classes() == classes => Ok(Rows { x, y }),
            other => {
                let found = other.map_or(0, |labels| labels.classes().len());
                let found = format!("{} columns and {found} classes in {}", x.cols(), path.display());
                let expected = format!("{} columns and the classes {:?}, last in the row", set.columns, set.classes);
                Err(Error::shape("data set", found, expected))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: DataSet = DataSet { name: "small", source: "nowhere", columns: 2, classes: &[1, 2] };

    #[test]
    fn a_set_is_read_chosen_from_and_standardized() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::new(Some(folder.path().to_path_buf()));
        assert!(data.file(&SET).is_none());
        assert!(data.get(&SET).unwrap_err().to_string().contains("nowhere"));
        std::fs::write(folder.path().join("small.csv"), "a,b,label\n1,7,2\n2,7,1\n3,7,2\n").unwrap();
        let rows = data.get(&SET).unwrap();
        assert_eq!((rows.x.rows(), rows.x.cols(), rows.y.codes()), (3, 2, &[1, 0, 1][..]));
        assert_eq!(rows.some(&[2, 1]).unwrap().x.values(), [3.0, 7.0, 2.0, 7.0]);
        assert_eq!(rows.standardized().unwrap().x.values(), [-1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
        let second = rows.of_classes(&[2]).unwrap();
        assert_eq!((second.x.values(), second.y.codes()), (&[1.0, 7.0, 3.0, 7.0][..], &[0, 0][..]));
        let by_class = rows.shuffled_by_class(&mut Random::new(1));
        assert!(by_class[0] == [1] && (by_class[1] == [0, 2] || by_class[1] == [2, 0]));
        let other = DataSet { columns: 3, ..SET };
        let refused = DataFolder::new(Some(folder.path().to_path_buf())).get(&other).unwrap_err();
        assert!(refused.to_string().contains("3 columns"), "{refused}");
        assert!(data.fingerprint(&SET).unwrap().starts_with("28 "));
    }
}

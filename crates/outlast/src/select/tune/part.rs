//! One split, ready to be fitted and judged: rows copied next to each other, on the scale of the training rows.

use crate::data::{Class, Design, Labels, Repeated, Scaling, Standardized};
use crate::error::{Error, Result, quoted};
use crate::model::{FitRequest, Rows};
use crate::problem::Kernel;
use crate::select::Split;

/// Labelled rows with their weights.
#[derive(Clone, Copy)]
pub(in crate::select) struct Labelled<'a> {
    pub x: &'a dyn Design,
    pub labels: &'a Labels,
    pub weights: Option<&'a [f64]>,
}

impl Labelled<'_> {
    pub fn weight(&self, row: u32) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row as usize])
    }

    fn weights_of(&self, rows: &[u32]) -> Option<Vec<f64>> {
        self.weights.map(|weights| rows.iter().map(|&row| weights[row as usize]).collect())
    }

    pub fn labels_of(&self, rows: &[u32]) -> Result<Labels> {
        let codes = rows.iter().map(|&row| self.labels.codes()[row as usize]).collect();
        Labels::from_codes(self.labels.classes().to_vec(), codes)
    }

    /// Some rows for themselves, as data of their own.
    pub fn taken(&self, rows: &[u32], kernel: &Kernel) -> Result<Owned> {
        let copied = match kernel {
            Kernel::Precomputed => copy_all(&Repeated::square(self.x, rows.to_vec()))?,
            _ => Rows::copy(self.x, rows)?,
        };
        Ok(Owned { rows: copied, labels: self.labels_of(rows)?, weights: self.weights_of(rows) })
    }
}

/// Labelled rows that belong to no one else.
pub(in crate::select) struct Owned {
    pub rows: Rows,
    pub labels: Labels,
    pub weights: Option<Vec<f64>>,
}

impl Owned {
    pub fn as_labelled(&self) -> Labelled<'_> {
        Labelled { x: self.rows.as_design(), labels: &self.labels, weights: self.weights.as_deref() }
    }

    /// The columns on one scale, if that is wanted.
    pub fn on_one_scale(mut self, wanted: bool) -> Result<(Owned, Option<Scaling>)> {
        if !wanted {
            return Ok((self, None));
        }
        let scaling = Scaling::of(self.rows.as_design(), self.weights.as_deref());
        self.rows = copy_all(&Standardized::new(self.rows.as_design(), &scaling))?;
        Ok((self, Some(scaling)))
    }

    pub fn request<'a>(&'a self, request: &FitRequest<'a>) -> FitRequest<'a> {
        FitRequest { sample_weight: self.weights.as_deref(), start: None, ..*request }
    }
}

/// A split: what is fitted, and what is decided about.
pub(in crate::select) struct Part {
    pub train: Owned,
    pub held: Rows,
    pub codes: Vec<u32>,
    pub weights: Vec<f64>,
}

impl Part {
    /// `held` is looked up in `by`, which may be other data than those fitted.
    pub fn new(
        data: Labelled,
        train: &[u32],
        by: Labelled,
        held: &[u32],
        kernel: &Kernel,
        scale: bool,
    ) -> Result<Part> {
        let owned = data.taken(train, kernel)?;
        if matches!(kernel, Kernel::Precomputed) {
            return Ok(Part::of(owned, columns(by.x, held, train)?, by, held));
        }
        let (owned, scaling) = owned.on_one_scale(scale)?;
        Part::beside(owned, scaling.as_ref(), by, held)
    }

    /// Rows of `by` beside those fitted, on the scale of these.
    pub fn beside(train: Owned, scaling: Option<&Scaling>, by: Labelled, held: &[u32]) -> Result<Part> {
        let rows = Rows::copy(by.x, held)?;
        let rows = match scaling {
            Some(scaling) => copy_all(&Standardized::new(rows.as_design(), scaling))?,
            None => rows,
        };
        Ok(Part::of(train, rows, by, held))
    }

    fn of(train: Owned, held_rows: Rows, by: Labelled, held: &[u32]) -> Part {
        Part {
            train,
            held: held_rows,
            codes: held.iter().map(|&row| by.labels.codes()[row as usize]).collect(),
            weights: held.iter().map(|&row| by.weight(row)).collect(),
        }
    }
}

fn copy_all(x: &dyn Design) -> Result<Rows> {
    Rows::copy(x, &(0..x.rows() as u32).collect::<Vec<u32>>())
}

/// Kernel values of some rows with others, which are columns of the same matrix.
fn columns(x: &dyn Design, rows: &[u32], columns: &[u32]) -> Result<Rows> {
    let mut values = Vec::with_capacity(rows.len() * columns.len());
    let mut row_values = vec![0.0; x.cols()];
    for &row in rows {
        x.copy_row(row as usize, &mut row_values);
        values.extend(columns.iter().map(|&column| row_values[column as usize]));
    }
    Ok(Rows::Dense(crate::data::Dense::new(rows.len(), columns.len(), values)?))
}

/// Every class must have weight in every training part: a model that does not know a class can't be compared with one that does.
pub(in crate::select) fn check_classes(data: Labelled, splits: &[Split]) -> Result<()> {
    for (at, split) in splits.iter().enumerate() {
        let mut present = vec![false; data.labels.classes().len()];
        for &row in split.train.iter().filter(|&&row| data.weight(row) > 0.0) {
            present[data.labels.codes()[row as usize] as usize] = true;
        }
        if let Some(missing) = present.iter().position(|present| !present) {
            let class = quoted(&data.labels.classes()[missing].to_string());
            let rows = data.labels.counts()[missing];
            let problem = format!(
                "split {} of {} leaves no row of class {class} to fit (y has {rows} of that class): every class needs two rows or \
                 more, spread over the folds",
                at + 1,
                splits.len(),
            );
            return Err(Error::Classes { problem });
        }
    }
    Ok(())
}

/// The labels of other rows among the classes of these.
pub(in crate::select) fn known_labels(labels: &Labels, cols: usize, x: &dyn Design, tuning: &Labels) -> Result<Labels> {
    if x.cols() != cols {
        return Err(Error::shape("the tuning set", format!("{} columns", x.cols()), format!("{cols}, as X has")));
    }
    if tuning.len() != x.rows() || tuning.is_empty() {
        let expected = format!("{}, one per row of the tuning set", x.rows().max(1));
        return Err(Error::shape("the tuning set's y", format!("{} labels", tuning.len()), expected));
    }
    x.check_finite()?;
    let known = |class: &Class| labels.classes().iter().position(|other| other == class);
    let codes: Vec<Option<usize>> = tuning.classes().iter().map(known).collect();
    if let Some(unknown) = codes.iter().position(|code| code.is_none()) {
        let class = quoted(&tuning.classes()[unknown].to_string());
        return Err(Error::Classes {
            problem: format!("the tuning set has class {class}, which the training rows lack"),
        });
    }
    let code = |&code: &u32| codes[code as usize].unwrap_or(0) as u32;
    Labels::from_codes(labels.classes().to_vec(), tuning.codes().iter().map(code).collect())
}

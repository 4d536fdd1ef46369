//! The seam between a solver and the rows: a pass asks questions about all rows, and the answers of parts add up.
//!
//! ```text
//! Request  --(as it is, or as bytes)-->  every part of the rows  --Request::answer-->  Answer + Answer + ... = Answer
//! ```
//!
//! A request is small (a point theta and a few numbers), an answer is of a size that does not depend on the number of rows: sums of O(d k) or
//! O((d k)^2) values, and no more sampled or gathered rows than the request allows. [`Local`] reads chunks in this process. Where parts lie in
//! other processes, [`Messages`] hands the request as bytes to whoever reaches them, and gets the sum of their answers as bytes.

use super::Spec;
use super::band::{Band, Found, partition_band};
use super::columns::some_columns;
use super::sums::{State, Sums, partition_ray, partition_statistics};
use super::survey::{Survey, SurveyAsk, partition_survey};
use super::wide::partition_products;
use crate::control::Control;
use crate::data::{Chunk, ChunkView, Chunks};
use crate::error::{Error, Result};

/// Questions about all rows, for one pass.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "wire", derive(serde::Serialize, serde::Deserialize))]
pub struct Request {
    pub(super) asks: Vec<Ask>,
    /// Those that are meant; all of them if there are none.
    pub(super) columns: Vec<u32>,
}

#[derive(Debug, Clone)]
#[cfg_attr(feature = "wire", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Ask {
    Survey(SurveyAsk),
    Statistics { spec: Spec, states: Vec<State> },
    Ray { spec: Spec, ends: [Vec<f64>; 2], steps: Vec<f64>, width: f64 },
    Gather { spec: Spec, now: Band, before: Option<Band>, most: usize },
    Products { spec: Spec, state: State, along: Vec<f64> },
}

/// What some rows answer to a [`Request`], question by question.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "wire", derive(serde::Serialize, serde::Deserialize))]
pub struct Answer(pub(super) Vec<Told>);

#[derive(Debug, Clone)]
#[cfg_attr(feature = "wire", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Told {
    Survey(Survey),
    /// Those of each state.
    Statistics(Vec<Sums>),
    /// A value for each point that was asked about.
    Values(Vec<f64>),
    Gather(Found),
}

impl Request {
    /// The answer of some rows, on all threads of the pool or on this one. Rows that can't be used are refused by the first request
    /// of a fit, a survey.
    pub fn answer(&self, rows: &ChunkView, parallel: bool) -> Result<Answer> {
        let some = match self.columns.is_empty() {
            true => None,
            false => Some(some_columns(rows, &self.columns)?),
        };
        let rows = some.as_ref().map_or(*rows, Chunk::view);
        self.asks.iter().map(|ask| ask.answer(&rows, parallel)).collect::<Result<Vec<_>>>().map(Answer)
    }

    /// The same, asking no more of further rows than can still matter.
    fn after(&mut self, so_far: &Answer) {
        for pair in self.asks.iter_mut().zip(&so_far.0) {
            if let (Ask::Survey(ask), Told::Survey(survey)) = pair {
                ask.below.iter_mut().for_each(|below| *below = survey.limit.min(*below));
            }
        }
    }
}

impl Ask {
    fn answer(&self, rows: &ChunkView, parallel: bool) -> Result<Told> {
        Ok(match self {
            Ask::Survey(ask) => Told::Survey(partition_survey(rows, ask)?),
            Ask::Statistics { spec, states } => {
                fits(rows, spec, &states.iter().map(|state| &state.theta[..]).collect::<Vec<_>>())?;
                Told::Statistics(partition_statistics(rows, spec, states, parallel))
            }
            Ask::Ray { spec, ends, steps, width } => {
                fits(rows, spec, &[&ends[0], &ends[1]])?;
                Told::Values(partition_ray(rows, spec, [&ends[0], &ends[1]], steps, *width, parallel))
            }
            Ask::Gather { spec, now, before, most } => {
                let points: Vec<&[f64]> = std::iter::once(now).chain(before).map(|band| &band.theta[..]).collect();
                fits(rows, spec, &points)?;
                Told::Gather(partition_band(rows, spec, now, before.as_ref(), *most, parallel))
            }
            Ask::Products { spec, state, along } => {
                fits(rows, spec, &[&state.theta, along])?;
                Told::Values(partition_products(rows, spec, state, along, parallel))
            }
        })
    }
}

/// Whether a question is one of these rows, and its parts of one another.
fn fits(rows: &ChunkView, spec: &Spec, points: &[&[f64]]) -> Result<()> {
    let known = rows.codes.iter().all(|code| (*code as usize) < spec.terms.len());
    let values = Some(rows.x.len()) == rows.rows().checked_mul(spec.cols);
    let functions = spec.functions == 1 || spec.functions == spec.classes;
    let anchors = spec.terms.iter().flatten().all(|(anchor, _)| (*anchor as usize) < spec.classes);
    let size = spec.cols.checked_add(1).and_then(|order| order.checked_mul(spec.functions));
    let sized = !points.is_empty() && points.iter().all(|point| Some(point.len()) == size);
    match known && values && functions && anchors && sized && spec.functions > 0 {
        true => Ok(()),
        false => Err(Error::shape("X", "rows of another table", "those that were surveyed")),
    }
}

impl Answer {
    /// Adds the answer of other rows. The order makes a difference in last digits only.
    pub fn add(&mut self, other: Answer) -> Result<()> {
        if self.0.len() != other.0.len() {
            return Err(unexpected());
        }
        self.0.iter_mut().zip(other.0).try_for_each(|(sum, part)| sum.add(part))
    }
}

impl Told {
    fn add(&mut self, other: Told) -> Result<()> {
        match (self, other) {
            (Told::Survey(sum), Told::Survey(part)) => sum.add(part),
            (Told::Statistics(sums), Told::Statistics(parts)) if sums.len() == parts.len() => {
                sums.iter_mut().zip(parts).for_each(|(sum, part)| sum.add(part));
            }
            (Told::Values(sum), Told::Values(part)) => sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part),
            (Told::Gather(sum), Told::Gather(part)) => sum.add(part),
            _ => return Err(unexpected()),
        }
        Ok(())
    }
}

pub(super) fn unexpected() -> Error {
    Error::shape("an answer", "another kind than was asked for", "sums of the rows of every part")
}

/// Rows that can be asked, wherever they are.
pub trait Passes: Send {
    /// Number of columns.
    fn cols(&self) -> usize;

    /// What was taken off each column, see [`Chunks::shift`].
    fn shift(&self) -> &[f64] {
        &[]
    }

    /// Number of rows, where that is known beforehand.
    fn rows(&self) -> Option<u64> {
        None
    }

    /// The answer of all rows.
    fn pass(&mut self, request: &Request, control: &Control) -> Result<Answer>;
}

/// Rows in chunks, read in this process.
pub struct Local<'a> {
    rows: &'a mut dyn Chunks,
    chunk: Chunk,
}

impl<'a> Local<'a> {
    /// These rows.
    pub fn new(rows: &'a mut dyn Chunks) -> Local<'a> {
        Local { rows, chunk: Chunk::default() }
    }
}

impl Passes for Local<'_> {
    fn cols(&self) -> usize {
        self.rows.cols()
    }

    fn shift(&self) -> &[f64] {
        self.rows.shift()
    }

    fn pass(&mut self, request: &Request, control: &Control) -> Result<Answer> {
        let mut request = request.clone();
        let mut total: Option<Answer> = None;
        self.rows.rewind()?;
        while self.rows.next(&mut self.chunk)? {
            control.check()?;
            let part = request.answer(&self.chunk.view(), true)?;
            match &mut total {
                None => total = Some(part),
                Some(total) => total.add(part)?,
            }
            total.iter().for_each(|total| request.after(total));
        }
        match total {
            Some(total) => Ok(total),
            None => request.answer(&ChunkView::default(), true),
        }
    }
}

/// Rows in other places: `ask` gets a request as bytes and returns the sum of all parts' answers as bytes.
#[cfg(feature = "wire")]
pub struct Messages<F> {
    /// Number of columns.
    pub cols: usize,
    /// Number of rows.
    pub rows: u64,
    /// What was taken off each column; empty for nothing.
    pub shift: Vec<f64>,
    /// The way to the parts.
    pub ask: F,
}

#[cfg(feature = "wire")]
impl<F: FnMut(Vec<u8>) -> Result<Vec<u8>> + Send> Passes for Messages<F> {
    fn cols(&self) -> usize {
        self.cols
    }

    fn shift(&self) -> &[f64] {
        &self.shift
    }

    fn rows(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn pass(&mut self, request: &Request, control: &Control) -> Result<Answer> {
        control.check()?;
        Answer::from_bytes(&(self.ask)(request.to_bytes()?)?)
    }
}

/// Bytes: those of postcard, a binary form of serde's data. Both ends are of the same version of this crate, which the first byte tells.
#[cfg(feature = "wire")]
mod wire {
    use super::{Answer, Request};
    use crate::error::{Error, Result};
    use serde::{Serialize, de::DeserializeOwned};

    const VERSION: u8 = 5;

    fn write(value: &impl Serialize) -> Result<Vec<u8>> {
        let wrong =
            |error: postcard::Error| Error::shape("a message", error.to_string(), "something that fits in memory");
        postcard::to_extend(value, vec![VERSION]).map_err(wrong)
    }

    fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
        let wrong = |found: String| Error::shape("a message", found, "one of the same version of outlast");
        match bytes.split_first() {
            Some((&VERSION, rest)) => postcard::from_bytes(rest).map_err(|error| wrong(error.to_string())),
            Some((version, _)) => Err(wrong(format!("version {version}"))),
            None => Err(wrong("no bytes".to_string())),
        }
    }

    impl Request {
        /// As bytes.
        pub fn to_bytes(&self) -> Result<Vec<u8>> {
            write(self)
        }

        /// From bytes.
        pub fn from_bytes(bytes: &[u8]) -> Result<Request> {
            read(bytes)
        }
    }

    impl Answer {
        /// As bytes.
        pub fn to_bytes(&self) -> Result<Vec<u8>> {
            write(self)
        }

        /// From bytes.
        pub fn from_bytes(bytes: &[u8]) -> Result<Answer> {
            read(bytes)
        }
    }
}

/// One call for each kind of request, with the answer it gets.
pub(super) struct Asking<'a> {
    pub passes: &'a mut dyn Passes,
    pub control: &'a Control<'a>,
    pub count: usize,
}

impl Asking<'_> {
    fn told(&mut self, ask: Ask) -> Result<Told> {
        match <[Told; 1]>::try_from(self.all(vec![ask])?) {
            Ok([told]) => Ok(told),
            Err(_) => Err(unexpected()),
        }
    }

    /// What is told of several questions in one pass, as many as were asked.
    pub fn all(&mut self, asks: Vec<Ask>) -> Result<Vec<Told>> {
        self.control.check()?;
        self.count += 1;
        let count = asks.len();
        let told = self.passes.pass(&Request { asks, columns: Vec::new() }, self.control)?.0;
        if told.len() == count { Ok(told) } else { Err(unexpected()) }
    }

    pub fn survey(&mut self, ask: SurveyAsk) -> Result<Survey> {
        match self.told(Ask::Survey(ask))? {
            Told::Survey(survey) => Ok(survey),
            _ => Err(unexpected()),
        }
    }

    pub fn statistics(&mut self, spec: &Spec, state: State) -> Result<Sums> {
        match self.told(Ask::Statistics { spec: spec.clone(), states: vec![state] })? {
            Told::Statistics(mut sums) if sums.len() == 1 => Ok(sums.remove(0)),
            _ => Err(unexpected()),
        }
    }

    pub fn ray(&mut self, spec: &Spec, ends: [&[f64]; 2], steps: &[f64], width: f64) -> Result<Vec<f64>> {
        let (ends, steps) = (ends.map(<[f64]>::to_vec), steps.to_vec());
        match self.told(Ask::Ray { spec: spec.clone(), ends, steps, width })? {
            Told::Values(values) => Ok(values),
            _ => Err(unexpected()),
        }
    }

    /// The products of both parts of the Hessian with a vector.
    pub fn products(&mut self, spec: &Spec, state: State, along: &[f64]) -> Result<Vec<f64>> {
        match self.told(Ask::Products { spec: spec.clone(), state, along: along.to_vec() })? {
            Told::Values(values) if values.len() == 2 * along.len() => Ok(values),
            _ => Err(unexpected()),
        }
    }

    pub fn gather(&mut self, spec: &Spec, now: &Band, before: Option<&Band>, most: usize) -> Result<Found> {
        let (spec, now, before) = (spec.clone(), now.clone(), before.cloned());
        match self.told(Ask::Gather { spec, now, before, most })? {
            Told::Gather(found) => Ok(found),
            _ => Err(unexpected()),
        }
    }
}

#[cfg(all(test, feature = "wire"))]
mod tests {
    use super::super::{MOST_SENT, Options, Shape, Task, sample_size, solve, survey};
    use super::*;
    use crate::data::Parts;
    use crate::problem::Loss;

    fn parts() -> Vec<Chunk> {
        let mut state = 1u64 << 63 | 77;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1 << 24) as f32
        };
        let part = |rows: usize, next: &mut dyn FnMut() -> f32| {
            let codes: Vec<u32> = (0..rows).map(|_| u32::from(next() < 0.5)).collect();
            let x = codes.iter().flat_map(|code| [next() + 0.4 * *code as f32, next()]).collect();
            Chunk { first: 0, x, codes, weights: Vec::new() }
        };
        [3000, 0, 1, 5000].map(|rows| part(rows, &mut next)).to_vec()
    }

    fn task(loss: Loss) -> Task {
        Task {
            classes: 2,
            terms: vec![vec![(0, 0.1)], vec![(1, 0.1)]],
            shape: Shape::Margin,
            loss,
            penalty: None,
            starts: Vec::new(),
            intercept: true,
            memory: 1 << 20,
            sums: MOST_SENT,
        }
    }

    fn solved(passes: &mut dyn Passes, loss: Loss) -> f64 {
        let (options, control) = (Options::default(), Control::default());
        let sampled = sample_size(2, 2, 1 << 20, None);
        let first = survey(passes, 2, sampled, 3, &control).unwrap();
        solve(passes, &first, &task(loss), &options, &control).unwrap().objective
    }

    #[test]
    fn messages_give_the_answer_of_chunks() {
        for loss in [Loss::hinge(), Loss::hinge().truncated_at(-1.0).unwrap()] {
            let mut rows = Parts::new(2, parts());
            let wanted = solved(&mut Local::new(&mut rows), loss);
            let mut numbered = parts();
            let mut first = 0;
            for part in &mut numbered {
                part.first = first;
                first += part.rows() as u64;
            }
            let ask = |bytes: Vec<u8>| {
                let request = Request::from_bytes(&bytes)?;
                // added up in another order, as a tree does
                let mut total = request.answer(&numbered[3].view(), false)?;
                for part in [0, 2, 1] {
                    let answer = request.answer(&numbered[part].view(), false)?;
                    total.add(Answer::from_bytes(&answer.to_bytes()?)?)?;
                }
                total.to_bytes()
            };
            let found = solved(&mut Messages { cols: 2, rows: first, shift: Vec::new(), ask }, loss);
            assert!((found - wanted).abs() <= 1e-9 * wanted, "{found} and {wanted}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert!(Request::from_bytes(&[]).is_err() && Answer::from_bytes(&[]).is_err());
        assert!(Request::from_bytes(&[9, 0, 0]).unwrap_err().to_string().contains("version 9"));
        let ask = SurveyAsk { classes: 2, cols: 2, most: 5, below: vec![u64::MAX; 2], weightless: true, seed: 0 };
        let bytes = Request { asks: vec![Ask::Survey(ask.clone())], columns: Vec::new() }.to_bytes().unwrap();
        for length in 0..bytes.len() {
            assert!(Request::from_bytes(&bytes[..length]).is_err());
        }
        // an answer to another question does not add up
        let chunk = &parts()[0];
        let request = Request { asks: vec![Ask::Survey(ask)], columns: Vec::new() };
        let mut survey = request.answer(&chunk.view(), false).unwrap();
        assert!(survey.add(Answer(vec![Told::Values(vec![1.0])])).is_err());
        // nor do fewer or more
        assert!(survey.add(Answer(Vec::new())).is_err());
        assert!(survey.add(Answer(vec![survey.0[0].clone(), survey.0[0].clone()])).is_err());
    }
}

//! What a search found, and which point it takes.

use super::score::{mean, standard_error};
use super::{Axis, Rule, Setting};
use crate::model::Model;
use crate::solver::Status;

/// How far a point got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Judged on every split.
    Done,
    /// Given up on the way: too far behind the best, or not among those that successive halving kept.
    Stopped,
    /// The search ended before it was judged on every split.
    Partly,
    /// The search ended before it was fitted.
    NotReached,
}

impl State {
    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            State::Done => "done",
            State::Stopped => "stopped",
            State::Partly => "partly",
            State::NotReached => "not_reached",
        }
    }
}

/// A point of the grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// A value for each list of the grid.
    pub settings: Vec<Setting>,
    /// Mean error over the splits judged; minus the mean utility, or the mean cost, where such a matrix is given. Less is better.
    pub mean: f64,
    /// Standard error of the mean: over the splits; with one split, over its rows.
    pub standard_error: f64,
    /// By split; NaN where the point was not judged, or the rows held out have no weight.
    pub errors: Vec<f64>,
    /// The share of each split's training rows that was fitted: below 1 for points that successive halving left behind.
    pub share: f64,
    /// How far it got.
    pub state: State,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The share of weight decided wrongly.
    Error,
    /// The mean cost of the decisions.
    Cost,
    /// The mean utility of the decisions.
    Utility,
}

impl Measure {
    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Error => "error",
            Measure::Cost => "mean cost",
            Measure::Utility => "mean utility",
        }
    }

    /// What users see of a number that is better when it is less.
    pub fn shown(self, loss: f64) -> f64 {
        if self == Measure::Utility { -loss } else { loss }
    }
}

/// The error of the whole procedure, choice included, by cross-validation around it.
#[derive(Debug, Clone, PartialEq)]
pub struct Nested {
    /// By outer fold; less is better, as in [`Cell::mean`].
    pub errors: Vec<f64>,
    /// Their mean.
    pub mean: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// What was chosen in each outer fold.
    pub chosen: Vec<Vec<Setting>>,
}

/// What a search found.
#[derive(Debug, Clone)]
pub struct Tuned {
    /// The lists of values; the last runs fastest.
    pub axes: Vec<Axis>,
    /// The points, in the order of their product.
    pub cells: Vec<Cell>,
    /// Which point was chosen.
    pub chosen: usize,
    /// How many splits there were.
    pub splits: usize,
    /// What is compared.
    pub measure: Measure,
    /// The honest error, if asked for and not interrupted.
    pub nested: Option<Nested>,
    /// `Converged` if the search went through, else `Interrupted` or `TimeLimit`: the choice is then among the points judged so far.
    pub status: Status,
    /// The model of the chosen point, fitted to all rows.
    pub model: Model,
}

impl Tuned {
    /// The chosen point.
    pub fn best(&self) -> &Cell {
        &self.cells[self.chosen]
    }

    /// The values chosen, with their names.
    pub fn parameters(&self) -> impl Iterator<Item = (&'static str, &Setting)> {
        self.axes.iter().map(|axis| axis.name).zip(&self.best().settings)
    }
}

impl Cell {
    /// A point by what it lost on each split; `of_rows` is the standard error over the rows of a single split.
    pub(in crate::select) fn of(settings: Vec<Setting>, errors: Vec<f64>, of_rows: f64, state: State) -> Cell {
        let (mean, standard_error) = (mean(&errors), standard_error(&errors, of_rows));
        Cell { settings, mean, standard_error, errors, share: 1.0, state }
    }
}

/// Which point to take: of those that got furthest, the one with the least mean, or with the other rule one whose mean is within one
/// standard error of the least. Of several that of the least size, where sizes are given, then of the smallest C, then the first.
///
/// Of a search that was stopped, points that take long got less far than others. One of them takes the place of that choice where it is
/// better on the splits that both were judged on, by more than its standard error; the one that is better by most.
pub(in crate::select) fn choose(cells: &[Cell], axes: &[Axis], rule: Rule, sizes: &[usize]) -> Option<usize> {
    let judged = |cell: &Cell| cell.errors.iter().filter(|error| !error.is_nan()).count();
    // how far: through, with how large a share of the rows, on how many splits
    let reached = |cell: &Cell| (cell.state == State::Done, cell.share, judged(cell));
    let furthest = cells.iter().filter(|cell| cell.state != State::Stopped && judged(cell) > 0).map(reached);
    let furthest = furthest.max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)))?;
    let is_open = |cell: &Cell| match furthest {
        (true, share, _) => cell.state == State::Done && cell.share == share,
        furthest => reached(cell) == furthest,
    };
    let open: Vec<usize> = (0..cells.len()).filter(|&at| is_open(&cells[at])).collect();
    let best = open.iter().copied().min_by(|&a, &b| cells[a].mean.total_cmp(&cells[b].mean))?;
    let spread = if cells[best].standard_error.is_nan() { 0.0 } else { cells[best].standard_error };
    let within = cells[best].mean + if rule == Rule::OneSe { spread } else { 0.0 } + 1e-12;
    let place = axes.iter().position(|axis| axis.name == "C");
    let size = |at: usize| sizes.get(at).copied().unwrap_or(0);
    let c = |at: usize| place.and_then(|place| cells[at].settings[place].number()).unwrap_or(0.0);
    let simplest = open.iter().copied().filter(|&at| cells[at].mean <= within).min_by(|&a, &b| {
        let simpler = size(a).cmp(&size(b)).then(c(a).total_cmp(&c(b)));
        simpler.then(cells[a].mean.total_cmp(&cells[b].mean)).then(a.cmp(&b))
    })?;
    let is_behind = |cell: &Cell| cell.state == State::Partly && cell.share == furthest.1;
    let gains = (0..cells.len()).filter(|&at| is_behind(&cells[at]) && !open.contains(&at)).map(|at| {
        let gain = gain(&cells[at], &cells[simplest]);
        (if gain > cells[at].standard_error { gain } else { 0.0 }, at)
    });
    let better = gains.filter(|(gain, _)| *gain > 0.0).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    Some(better.map_or(simplest, |(_, at)| at))
}

/// How much less a point loses than another on the splits that both were judged on, on average; 0 without any.
fn gain(one: &Cell, other: &Cell) -> f64 {
    let gains = one.errors.iter().zip(&other.errors).map(|(one, other)| other - one);
    let gains: Vec<f64> = gains.filter(|gain| !gain.is_nan()).collect();
    if gains.is_empty() { 0.0 } else { mean(&gains) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(c: f64, errors: &[f64], state: State) -> Cell {
        Cell::of(vec![Setting::Number(c)], errors.to_vec(), f64::NAN, state)
    }

    #[test]
    fn the_rules_take_what_they_say() {
        let axes = [Axis::new("C", [10.0, 1.0, 0.1, 0.01])];
        let cells = [
            cell(10.0, &[0.10, 0.20], State::Done), // the best: 0.15, standard error 0.05
            cell(1.0, &[0.18, 0.20], State::Done),
            cell(0.1, &[0.19, 0.205], State::Done), // 0.1975: within
            cell(0.01, &[0.25, 0.25], State::Done),
        ];
        assert_eq!(choose(&cells, &axes, Rule::Best, &[]), Some(0));
        assert_eq!(choose(&cells, &axes, Rule::OneSe, &[]), Some(2));
        // the fewest columns come before the smallest C
        assert_eq!(choose(&cells, &axes, Rule::OneSe, &[3, 1, 2, 0]), Some(1));
        // what takes long was judged on one split, and is clearly better there; or is not
        let slow = |error: f64| {
            let slow = Cell::of(vec![Setting::Number(30.0)], vec![f64::NAN, error], 0.02, State::Partly);
            [&cells[..], &[slow]].concat()
        };
        assert_eq!(choose(&slow(0.1), &axes, Rule::Best, &[]), Some(4));
        assert_eq!(choose(&slow(0.19), &axes, Rule::Best, &[]), Some(0));
        let mut stopped = cells.clone();
        stopped[2].state = State::Stopped;
        assert_eq!(choose(&stopped, &axes, Rule::OneSe, &[]), Some(1));
        let mut none = cells.clone();
        none.iter_mut().for_each(|cell| cell.errors = vec![f64::NAN; 2]);
        none.iter_mut().for_each(|cell| cell.state = State::NotReached);
        assert_eq!(choose(&none, &axes, Rule::Best, &[]), None);
    }
}

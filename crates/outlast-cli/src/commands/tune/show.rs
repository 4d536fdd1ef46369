//! What a search found, in every form it is asked for: text, JSON, the grid as CSV, a picture.

use super::{Found, column_name};
use crate::args::tune::TuneArgs;
use crate::chart::{Chart, Panel};
use crate::commands::fit::Fitted;
use crate::output::{self, Pairs, count, short};
use outlast::error::shown;
use outlast::select::Point;
use outlast::select::tune::{Axis, Cell, Setting, State};
use outlast::{Status, Tuned};
use serde_json::{Map, Value, json};
use std::io::Write;

/// Points shown where there are more of them than twice as many, and columns whose stability is.
const SHOWN: usize = 15;
const COLUMNS: usize = 10;

/// What only the search for the L_q machine knows: the path on all rows, and the share of the splits that select each column.
pub struct Selection {
    pub path: Vec<Point>,
    pub stability: Vec<f64>,
}

/// Everything there is to show.
struct Shown<'a> {
    request: &'a TuneArgs,
    fitted: &'a Fitted,
    tuned: &'a Tuned,
    selection: Option<&'a Selection>,
}

/// What was found, in every form.
pub fn found(request: &TuneArgs, fitted: Fitted, tuned: &Tuned, selection: Option<&Selection>) -> Found {
    let shown = Shown { request, fitted: &fitted, tuned, selection };
    let mut grid = Vec::new();
    // writing to memory does not fail
    let _ = write_grid(tuned, selection, &mut grid);
    let (text, json, picture) = (shown.text(), shown.json(), draw(tuned, selection));
    Found { text, json, grid, picture, cut: cut(tuned), fitted }
}

/// What to say of a search that did not go through.
fn cut(tuned: &Tuned) -> Option<String> {
    let done = tuned.cells.iter().filter(|cell| cell.state == State::Done).count();
    let judged = format!("with {done} of {} judged on every split", count(tuned.cells.len(), "point", "points"));
    match tuned.status {
        Status::TimeLimit => Some(format!(
            "the time limit ended the search {judged}: this is the best model so far; raise --time-limit, or give fewer values"
        )),
        Status::Interrupted => Some(format!("interrupted: this is the best model so far, {judged}")),
        _ => None,
    }
}

/// Which of the chosen values lie at the end of their list, where a better one may lie beyond.
fn at_the_ends(tuned: &Tuned) -> Vec<String> {
    let mut found = Vec::new();
    // other parameters have ends of their own
    let open = |(_, (name, _)): &(&Axis, (&str, &Setting))| matches!(*name, "C" | "gamma");
    for (axis, (name, value)) in tuned.axes.iter().zip(tuned.parameters()).filter(open) {
        let numbers: Vec<f64> = axis.values.iter().filter_map(Setting::number).collect();
        let Some(value) = value.number().filter(|_| numbers.len() > 2 && numbers.len() == axis.values.len()) else {
            continue;
        };
        let end = match () {
            _ if numbers.iter().all(|&other| value >= other) => "largest",
            _ if numbers.iter().all(|&other| value <= other) => "smallest",
            _ => continue,
        };
        found.push(format!("{name} = {} is the {end} of its {} values", short(value), numbers.len()));
    }
    found
}

fn value_text(value: &Setting) -> String {
    value.number().map_or_else(|| value.to_string(), short)
}

fn value_json(value: &Setting) -> Value {
    match value {
        Setting::Number(number) => json!(number),
        Setting::Name(name) => json!(name),
        Setting::Nothing => Value::Null,
    }
}

fn named(axes: &[Axis], settings: &[Setting]) -> Map<String, Value> {
    axes.iter().zip(settings).map(|(axis, value)| (axis.name.to_string(), value_json(value))).collect()
}

/// A line per point of the grid.
fn write_grid(tuned: &Tuned, selection: Option<&Selection>, out: &mut dyn Write) -> std::io::Result<()> {
    let names: Vec<&str> = tuned.axes.iter().map(|axis| axis.name).collect();
    let splits: Vec<String> = (1..=tuned.splits).map(|split| format!(",error_{split}")).collect();
    let measure = tuned.measure.name().replace(' ', "_");
    let more = if selection.is_some() { ",selected,objective,converged" } else { "" };
    writeln!(out, "{},{measure},standard_error,state,train_share{more},chosen{}", names.join(","), splits.concat())?;
    let number = |value: f64| if value.is_nan() { String::new() } else { value.to_string() };
    for (at, cell) in tuned.cells.iter().enumerate() {
        let settings: Vec<String> = cell.settings.iter().map(Setting::to_string).collect();
        let (mean, spread) = (number(tuned.measure.shown(cell.mean)), number(cell.standard_error));
        let (state, chosen) = (cell.state.name(), at == tuned.chosen);
        write!(out, "{},{mean},{spread},{state},{}", settings.join(","), cell.share)?;
        if let Some(point) = selection.map(|selection| &selection.path[at]) {
            write!(out, ",{},{},{}", point.size, point.objective, point.converged)?;
        }
        write!(out, ",{chosen}")?;
        for error in &cell.errors {
            write!(out, ",{}", number(tuned.measure.shown(*error)))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The error over C with its standard errors, a line for each choice of the other parameters; for the L_q machine also the number of columns
/// selected and, at the chosen q, the coefficients.
fn draw(tuned: &Tuned, selection: Option<&Selection>) -> String {
    let axes = &tuned.axes;
    let Some(last) = axes.last() else { return String::new() };
    let cs: Vec<f64> = last.values.iter().filter_map(Setting::number).collect();
    let mut order: Vec<usize> = (0..cs.len()).collect();
    order.sort_by(|&a, &b| cs[a].total_cmp(&cs[b]));
    let positions: Vec<f64> = order.iter().map(|&at| cs[at]).collect();
    let lines: Vec<&[Cell]> = tuned.cells.chunks_exact(cs.len().max(1)).collect();
    let of = |value: &dyn Fn(&Cell) -> f64| -> Vec<Vec<f64>> {
        lines.iter().map(|line| order.iter().map(|&at| value(&line[at])).collect()).collect()
    };
    let place = order.iter().position(|&at| at == tuned.chosen % cs.len().max(1)).unwrap_or(0);
    let ring = Some((tuned.chosen / cs.len().max(1), place));
    let mut panels = vec![Panel {
        title: tuned.measure.name(),
        lines: of(&|cell| tuned.measure.shown(cell.mean)),
        named: true,
        ring,
        bars: of(&|cell| cell.standard_error),
    }];
    let title = selection.map(|selection| format!("coefficients, q = {}", short(selection.path[tuned.chosen].q)));
    if let (Some(selection), Some(title)) = (selection, &title) {
        let paths: Vec<&[Point]> = selection.path.chunks_exact(cs.len().max(1)).collect();
        let sizes = paths.iter().map(|path| order.iter().map(|&at| path[at].size as f64).collect()).collect();
        panels.push(Panel { title: "selected columns", lines: sizes, named: true, ring, bars: Vec::new() });
        let lines = coefficients(paths[tuned.chosen / cs.len().max(1)], &order);
        panels.push(Panel { title, lines, named: false, ring: None, bars: Vec::new() });
    }
    let name = |line: &&[Cell]| {
        let several = axes.iter().zip(&line[0].settings).take(axes.len() - 1).filter(|(axis, _)| axis.values.len() > 1);
        several.map(|(axis, value)| format!("{} {}", axis.name, value_text(value))).collect::<Vec<_>>().join(", ")
    };
    let names = if lines.len() > 1 { lines.iter().map(name).collect() } else { Vec::new() };
    // what was the same for every point need not be said in a picture
    let several = tuned.axes.iter().zip(tuned.parameters()).filter(|(axis, _)| axis.values.len() > 1);
    let several: Vec<String> = several.map(|(_, (name, value))| format!("{name} = {}", value_text(value))).collect();
    let chosen = if several.is_empty() { chosen_text(tuned) } else { several.join(", ") };
    let title = format!("{} at {chosen}", score_text(tuned));
    Chart { title: &title, names, axis: ("C", &positions), panels }.draw()
}

/// The coefficients that are not 0 everywhere, in an order of C.
fn coefficients(path: &[Point], order: &[usize]) -> Vec<Vec<f64>> {
    let size = path[0].weights.len();
    let lines = (0..size).map(|w| order.iter().map(|&at| path[at].weights[w]).collect::<Vec<f64>>());
    lines.filter(|line| line.iter().any(|&w| w != 0.0)).collect()
}

/// Points judged on every split come first, then those given up or cut off on the way, the best of each first; last those that were not judged.
fn best_first(cells: &[Cell], size: impl Fn(usize) -> usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cells.len()).collect();
    let behind = |at: usize| cells[at].state != State::Done;
    order.sort_by(|&a, &b| {
        // what has no mean may be first or last by its size alone
        let unknown = cells[a].mean.is_nan().cmp(&cells[b].mean.is_nan());
        let better = behind(a).cmp(&behind(b)).then(unknown).then(cells[a].mean.total_cmp(&cells[b].mean));
        better.then(size(a).cmp(&size(b))).then(a.cmp(&b))
    });
    order
}

fn chosen_text(tuned: &Tuned) -> String {
    tuned.parameters().map(|(name, value)| format!("{name} = {}", value_text(value))).collect::<Vec<_>>().join(", ")
}

fn with_error(mean: f64, spread: f64) -> String {
    if spread.is_nan() { format!("{mean:.4}") } else { format!("{mean:.4} ± {spread:.4}") }
}

fn score_text(tuned: &Tuned) -> String {
    let best = tuned.best();
    format!("{} {}", tuned.measure.name(), with_error(tuned.measure.shown(best.mean), best.standard_error))
}

impl Shown<'_> {
    fn text(&self) -> String {
        let Shown { request, fitted, tuned, .. } = *self;
        let mut pairs = Pairs::default();
        let judge = match (&request.tuning, request.holdout) {
            (Some(path), _) => format!("on {}", path.display()),
            (_, Some(share)) => format!("on {} of the rows", short(share)),
            _ => {
                let judged = tuned.best().errors.iter().filter(|error| !error.is_nan()).count();
                let some = if judged < request.cv { format!("{judged} of ") } else { String::new() };
                format!("over {some}{}", count(request.cv, "fold", "folds"))
            }
        };
        let best = tuned.best();
        pairs.add("chosen", chosen_text(tuned));
        pairs.add(
            tuned.measure.name(),
            format!("{} {judge}", with_error(tuned.measure.shown(best.mean), best.standard_error)),
        );
        if let Some(nested) = &tuned.nested {
            let honest = with_error(tuned.measure.shown(nested.mean), nested.standard_error);
            pairs.add("honest", format!("{honest} by nested cross-validation, {} folds", nested.errors.len()));
        }
        let sizes = tuned.axes.iter().filter(|axis| axis.values.len() > 1);
        let sizes: Vec<String> = sizes.map(|axis| format!("{} of {}", axis.values.len(), axis.name)).collect();
        let of = |state: State| tuned.cells.iter().filter(|cell| cell.state == state).count();
        let mut grid = count(tuned.cells.len(), "point", "points");
        if !sizes.is_empty() {
            grid += &format!(" ({})", sizes.join(" x "));
        }
        if of(State::Stopped) > 0 {
            grid += &format!(", {} given up early", of(State::Stopped));
        }
        if tuned.status != Status::Converged {
            grid += &format!(", {} judged on every split before the search ended", of(State::Done));
        }
        let missed = (0..tuned.cells.len()).filter(|&at| self.missed(at)).count();
        if missed > 0 {
            grid += &format!(", {missed} not solved to the tolerance");
        }
        pairs.add("grid", grid);
        let ends = at_the_ends(tuned);
        if !ends.is_empty() {
            pairs.add("at the end", format!("{}: a better one may lie beyond", ends.join(", ")));
        }
        pairs.add(
            "columns",
            if fitted.model.is_standardized() {
                "standardized without far values, as part of the model"
            } else {
                "as they are"
            },
        );
        if let Some(columns) = self.stability_text() {
            pairs.add("in splits", columns);
        }
        pairs.render() + "\n" + &fitted.text_for(request.output.as_deref(), None) + &self.table_text()
    }

    /// Whether a point was judged on every split by fits that did not all meet the tolerance.
    fn missed(&self, at: usize) -> bool {
        let done = self.tuned.cells[at].state == State::Done;
        done && self.selection.is_some_and(|selection| !selection.path[at].converged)
    }

    /// The grid, the best points first; those given up after the others.
    fn table_text(&self) -> String {
        let tuned = self.tuned;
        let cells = &tuned.cells;
        let size = |at: usize| self.selection.map_or(0, |selection| selection.path[at].size);
        let order = best_first(cells, size);
        let shown = if cells.len() <= 2 * SHOWN { cells.len() } else { SHOWN };
        let several: Vec<usize> = (0..tuned.axes.len()).filter(|&at| tuned.axes[at].values.len() > 1).collect();
        let several = if several.is_empty() { vec![tuned.axes.len() - 1] } else { several };
        let line = |&at: &usize| -> Vec<String> {
            let cell = &cells[at];
            let mut row: Vec<String> = several.iter().map(|&axis| value_text(&cell.settings[axis])).collect();
            let number = |value: f64| if value.is_nan() { "-".to_string() } else { format!("{value:.4}") };
            row.extend([number(tuned.measure.shown(cell.mean)), number(cell.standard_error)]);
            row.extend(self.selection.map(|_| size(at).to_string()));
            let judged = cell.errors.iter().filter(|error| !error.is_nan()).count();
            row.push(match (at == tuned.chosen, cell.state) {
                (true, _) if self.missed(at) => "chosen, not solved to the tolerance".to_string(),
                (true, _) => "chosen".to_string(),
                (_, State::Done) if self.missed(at) => "not solved to the tolerance".to_string(),
                (_, State::Done) => String::new(),
                (_, State::Stopped) => format!("given up after {judged}"),
                (_, State::Partly) => format!("judged on {judged}"),
                (_, State::NotReached) => "not reached".to_string(),
            });
            row
        };
        let rows: Vec<Vec<String>> = order.iter().take(shown).map(line).collect();
        let mut head: Vec<&str> = several.iter().map(|&axis| tuned.axes[axis].name).collect();
        head.extend([tuned.measure.name(), "std. error"]);
        head.extend(self.selection.map(|_| "selected"));
        head.push("");
        let more = cells.len() - shown;
        let more = if more > 0 { format!("... and {more} more; --grid writes them all\n") } else { String::new() };
        format!("\nthe grid, best first\n{}{more}", output::table(&head, &rows))
    }

    fn json(&self) -> Value {
        let Shown { request, fitted, tuned, selection } = *self;
        let shown = |value: f64| tuned.measure.shown(value);
        let point = |(at, cell): (usize, &Cell)| {
            let mut point = named(&tuned.axes, &cell.settings);
            point.insert("error".to_string(), json!(shown(cell.mean)));
            point.insert("standard_error".to_string(), json!(cell.standard_error));
            point.insert("fold_errors".to_string(), json!(cell.errors.iter().map(|&e| shown(e)).collect::<Vec<_>>()));
            point.insert("state".to_string(), json!(cell.state.name()));
            point.insert("train_share".to_string(), json!(cell.share));
            if let Some(solved) = selection.map(|selection| &selection.path[at]) {
                point.insert("selected".to_string(), json!(solved.size));
                point.insert("objective".to_string(), json!(solved.objective));
                point.insert("converged".to_string(), json!(solved.converged));
            }
            Value::Object(point)
        };
        let nested = tuned.nested.as_ref().map(|nested| {
            json!({
                "folds": nested.errors.len(),
                "error": shown(nested.mean),
                "standard_error": nested.standard_error,
                "fold_errors": nested.errors.iter().map(|&e| shown(e)).collect::<Vec<_>>(),
                "chosen": nested.chosen.iter().map(|settings| named(&tuned.axes, settings)).collect::<Vec<_>>(),
            })
        });
        let mut found = json!({
            "command": "tune",
            "method": request.method.method,
            "chosen": named(&tuned.axes, &tuned.best().settings),
            "measure": tuned.measure.name(),
            "error": shown(tuned.best().mean),
            "standard_error": tuned.best().standard_error,
            "nested": nested,
            "rule": request.rule,
            "standardize": fitted.model.is_standardized(),
            "status": tuned.status.name(),
            "cv": (request.tuning.is_none() && request.holdout.is_none()).then_some(request.cv),
            "holdout": request.holdout,
            "tuning": request.tuning.as_ref().map(|path| path.to_string_lossy()),
            "grid": tuned.cells.iter().enumerate().map(point).collect::<Vec<_>>(),
            "fit": fitted.json_for(request.output.as_deref()),
        });
        if selection.is_some() {
            let share = |(column, share): (usize, f64)| json!({"feature": column_name(fitted, column), "share": share});
            found["stability"] = self.stable().into_iter().map(share).collect();
        }
        found
    }

    /// Columns of X by the share of the splits that select them at the chosen point, the most stable first.
    fn stable(&self) -> Vec<(usize, f64)> {
        let shares = self.selection.iter().flat_map(|selection| selection.stability.iter().copied().enumerate());
        let mut stable: Vec<(usize, f64)> = shares.filter(|(_, share)| *share > 0.0).collect();
        stable.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        stable
    }

    fn stability_text(&self) -> Option<String> {
        let stable = self.stable();
        let name = |column: usize| match column_name(self.fitted, column) {
            Value::String(name) => shown(&name),
            number => number.to_string(),
        };
        let text = |&(column, share): &(usize, f64)| format!("{} {:.0} %", name(column), 100.0 * share);
        let some: Vec<String> = stable.iter().take(COLUMNS).map(text).collect();
        (!stable.is_empty()).then(|| output::listed(some, stable.len().saturating_sub(COLUMNS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast::{Dense, LqSearch};

    fn cell(mean: f64, state: State) -> Cell {
        let (settings, errors) = (vec![Setting::Number(1.0)], vec![mean]);
        Cell { settings, mean, standard_error: f64::NAN, errors, share: 1.0, state }
    }

    #[test]
    fn points_that_were_not_judged_come_last() {
        let cells = [
            cell(-f64::NAN, State::NotReached),
            cell(0.3, State::Partly),
            cell(f64::NAN, State::NotReached),
            cell(0.4, State::Done),
            cell(0.2, State::Stopped),
            cell(0.1, State::Done),
        ];
        assert_eq!(best_first(&cells, |_| 0), [5, 3, 4, 1, 0, 2]);
    }

    #[test]
    fn what_was_cut_off_and_what_lies_at_an_end_is_said() {
        let x = Dense::from_rows(&[[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [0.5, 0.0], [2.5, 1.0]]);
        let search = LqSearch::new(vec![0.1, 1.0, 10.0], vec![1.0]).folds(2);
        let mut tuned = search.fit(&x, &[0, 0, 1, 1, 0, 1]).unwrap().tuned;
        assert_eq!(cut(&tuned), None);
        tuned.status = Status::TimeLimit;
        tuned.cells[0].state = State::NotReached;
        let said = cut(&tuned).unwrap();
        assert!(said.contains("the time limit ended the search with 2 of 3 points judged on every split"), "{said}");
        assert!(said.contains("best model so far") && !said.contains("gap"), "{said}");
        let mut ends = |chosen: usize| {
            tuned.chosen = chosen;
            at_the_ends(&tuned)
        };
        assert_eq!(ends(0), ["C = 0.1 is the smallest of its 3 values"]);
        assert!(ends(1).is_empty());
        assert_eq!(ends(2), ["C = 10 is the largest of its 3 values"]);
    }

    #[test]
    fn the_grid_and_the_picture_show_every_point() {
        let x = Dense::from_rows(&[[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [0.5, 0.0], [2.5, 1.0]]);
        let search = LqSearch::new(vec![1.0, 0.1, 10.0], vec![0.5, 1.0]).folds(2);
        let choice = search.fit(&x, &[0, 0, 1, 1, 0, 1]).unwrap();
        let selection = Selection { path: choice.path, stability: choice.stability };
        let mut csv = Vec::new();
        write_grid(&choice.tuned, Some(&selection), &mut csv).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        assert_eq!(csv.lines().count(), 7);
        let head = "q,C,error,standard_error,state,train_share,selected,objective,converged,chosen,error_1,error_2";
        assert_eq!(csv.lines().next(), Some(head));
        let chosen = |line: &&str| line.split(',').nth(9) == Some("true");
        assert_eq!(csv.lines().filter(chosen).count(), 1);
        let picture = draw(&choice.tuned, Some(&selection));
        assert!(picture.matches("<polyline").count() >= 4 && !picture.contains("NaN"));
        assert!(picture.contains("<title>error 0."), "the error comes first");
    }
}

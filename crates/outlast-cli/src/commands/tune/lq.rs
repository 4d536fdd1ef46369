//! `outlast tune --method lq`: C and q along paths.

use super::{Found, check_columns, column_name};
use crate::args::tune::{TuneArgs, Values};
use crate::chart::{Chart, Panel};
use crate::commands::fit::Fitted;
use crate::commands::labels_of;
use crate::failure::Failure;
use crate::output::{self, Pairs, count, short};
use crate::watch::Watch;
use outlast::error::shown;
use outlast::select::default_cs;
use outlast::{FitRequest, LqChoice, LqSearch, io};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Instant;

/// Points shown in the summary, and columns whose stability is.
const SHOWN: usize = 5;
const COLUMNS: usize = 10;

/// Values tried unless others are asked for.
const CS: usize = 20;
const QS: [f64; 6] = [0.3, 0.5, 0.75, 1.0, 1.5, 2.0];

/// Refuses what only other methods know.
pub fn check(request: &TuneArgs) -> Result<(), Failure> {
    let usage = |problem: String| Err(Failure::Usage(problem));
    if let Some((option, ..)) = request.lists().into_iter().find(|(option, ..)| *option != "--qs") {
        return usage(format!("{option} is no option of --method lq"));
    }
    let options = [
        ("--holdout", request.holdout.is_some()),
        ("--nested", request.nested.is_some()),
        ("--halving", request.halving),
        ("--exact", request.exact),
        ("--rule", request.rule != "best"),
        ("--solver", request.method.solver.is_some()),
    ];
    match options.iter().find(|(_, given)| *given) {
        Some((option, _)) => usage(format!("{option} is no option of tune --method lq")),
        None => Ok(()),
    }
}

/// Searches.
pub fn search(request: &TuneArgs, watch: &Watch) -> Result<Found, Failure> {
    let start = Instant::now();
    watch.say(format!("reading {}", request.data.display()));
    let table = io::read_table(&request.data, &request.input.options(request.weight_column.as_deref()))?;
    let labels = labels_of(&table)?;
    let base = request.method.lq(labels)?;
    let tuning = match &request.tuning {
        Some(path) => Some(io::read_table(path, &request.input.options(request.weight_column.as_deref()))?),
        None => None,
    };
    if let Some(tuning) = &tuning {
        check_columns(&table, tuning)?;
    }
    let tuning = tuning.as_ref().map(|table| labels_of(table).map(|labels| (table, labels))).transpose()?;
    let read_seconds = start.elapsed().as_secs_f64();
    let cs = match &request.cs {
        Some(Values::Given(cs)) => cs.clone(),
        count => {
            let count = if let Some(Values::Count(count)) = count { *count } else { CS };
            default_cs(&base, table.design(), labels, table.weights.as_deref(), count)?
        }
    };
    let qs = request.qs.clone().unwrap_or(QS.to_vec());
    let search = LqSearch::new(cs, qs).base(base).folds(request.cv);
    watch.say("searching");
    let start = Instant::now();
    let mut choice = watch.run(
        request.method.time_limit,
        |_| false,
        |control| {
            let fit = FitRequest {
                sample_weight: table.weights.as_deref(),
                feature_names: table.feature_names.as_deref(),
                start: None,
                control,
            };
            match tuning {
                Some((table_tuning, tuning)) => {
                    search.fit_tuned(table.design(), labels, (table_tuning.design(), tuning), &fit)
                }
                None => search.fit_with(table.design(), labels, &fit),
            }
        },
    )?;
    let fit_seconds = start.elapsed().as_secs_f64();
    let model = choice.model.clone();
    // what is shown of each training row is the model's, not the search's
    choice.model.training = None;
    Ok(described(request, Fitted { table, model, read_seconds, fit_seconds }, &choice))
}

/// What was found, in every form it is asked for.
fn described(request: &TuneArgs, fitted: Fitted, choice: &LqChoice) -> Found {
    let mut grid = Vec::new();
    // writing to memory does not fail
    let _ = write_grid(choice, &mut grid);
    Found {
        text: text(request, &fitted, choice),
        json: json(request, &fitted, choice),
        grid,
        picture: draw(choice, request.method.cost.is_some()),
        fitted,
    }
}

/// A line per point of the grid.
fn write_grid(choice: &LqChoice, out: &mut dyn Write) -> std::io::Result<()> {
    let folds = choice.fold_errors.len() / choice.path.len().max(1);
    let names: Vec<String> = (1..=folds).map(|fold| format!(",error_{fold}")).collect();
    writeln!(out, "q,C,error,selected,objective,chosen{}", names.concat())?;
    for (at, point) in choice.path.iter().enumerate() {
        let (error, chosen) = (choice.mean_errors[at], at == choice.chosen);
        write!(out, "{},{},{error},{},{},{chosen}", point.q, point.c, point.size, point.objective)?;
        for fold in 0..folds {
            write!(out, ",{}", choice.fold_errors[fold * choice.path.len() + at])?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Error and size over the grid, and the coefficients along C at the chosen q.
fn draw(choice: &LqChoice, costs: bool) -> String {
    let count = choice.cs.len();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| choice.cs[a].total_cmp(&choice.cs[b]));
    let positions: Vec<f64> = order.iter().map(|&at| choice.cs[at]).collect();
    let lines = |value: &dyn Fn(usize) -> f64| -> Vec<Vec<f64>> {
        (0..choice.qs.len()).map(|q| order.iter().map(|&at| value(q * count + at)).collect()).collect()
    };
    let place = order.iter().position(|&at| at == choice.chosen % count).unwrap_or(0);
    let ring = Some((choice.chosen / count, place));
    let error = if costs { "mean cost" } else { "error" };
    let grid = [
        Panel { title: error, lines: lines(&|at| choice.mean_errors[at]), named: true, ring, bars: Vec::new() },
        Panel {
            title: "selected columns",
            lines: lines(&|at| choice.path[at].size as f64),
            named: true,
            ring,
            bars: Vec::new(),
        },
    ];
    let first = choice.chosen / count * count;
    let size = choice.path[first].weights.len();
    let path = (0..size).map(|w| order.iter().map(|&at| choice.path[first + at].weights[w]).collect::<Vec<f64>>());
    let moving: Vec<Vec<f64>> = path.filter(|line| line.iter().any(|&w| w != 0.0)).collect();
    let title = format!("coefficients, q = {}", short(choice.q));
    let coefficients = Panel { title: &title, lines: moving, named: false, ring: None, bars: Vec::new() };
    let head = format!(
        "C = {} and q = {} chosen, {error} {:.4}",
        short(choice.c),
        short(choice.q),
        choice.mean_errors[choice.chosen]
    );
    let names = choice.qs.iter().map(|&q| format!("q = {}", short(q))).collect();
    Chart { title: &head, names, axis: ("C", &positions), panels: grid.into_iter().chain([coefficients]).collect() }
        .draw()
}

/// Columns of X by the share of the folds that select them, the most stable first.
fn stable(fitted: &Fitted, choice: &LqChoice) -> Vec<(usize, f64)> {
    let shares = choice.stability.iter().copied().enumerate();
    let mut stable: Vec<(usize, f64)> = shares.filter(|(_, share)| *share > 0.0).collect();
    stable.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    debug_assert!(choice.stability.is_empty() || choice.stability.len() == fitted.table.cols());
    stable
}

fn text(request: &TuneArgs, fitted: &Fitted, choice: &LqChoice) -> String {
    let mut pairs = Pairs::default();
    let error = if request.method.cost.is_some() { "mean cost" } else { "error" };
    let judge = match &request.tuning {
        Some(path) => format!("on {}", path.display()),
        None => format!("over {}", count(request.cv, "fold", "folds")),
    };
    pairs.add("chosen", format!("C = {}, q = {}", short(choice.c), short(choice.q)));
    pairs.add(error, format!("{:.4} {judge}", choice.mean_errors[choice.chosen]));
    pairs.add("grid", format!("{} x {}", count(choice.cs.len(), "C", "Cs"), count(choice.qs.len(), "q", "qs")));
    let stable = stable(fitted, choice);
    if !stable.is_empty() {
        let name = |column: usize| match column_name(fitted, column) {
            Value::String(name) => shown(&name),
            number => number.to_string(),
        };
        let some: Vec<String> = stable
            .iter()
            .take(COLUMNS)
            .map(|&(column, share)| format!("{} {:.0} %", name(column), 100.0 * share))
            .collect();
        let more = stable.len().saturating_sub(COLUMNS);
        pairs.add("in folds", output::listed(some, more));
    }
    pairs.render() + "\n" + &fitted.text_for(request.output.as_deref(), None) + &best_text(choice, error)
}

/// The best points of the grid.
fn best_text(choice: &LqChoice, error: &str) -> String {
    let mut order: Vec<usize> = (0..choice.path.len()).collect();
    order.sort_by(|&a, &b| {
        choice.mean_errors[a].total_cmp(&choice.mean_errors[b]).then(choice.path[a].size.cmp(&choice.path[b].size))
    });
    let rows: Vec<Vec<String>> = order
        .iter()
        .take(SHOWN)
        .map(|&at| {
            let point = &choice.path[at];
            vec![short(point.q), short(point.c), format!("{:.4}", choice.mean_errors[at]), point.size.to_string()]
        })
        .collect();
    format!("\nbest of the grid\n{}", output::table(&["q", "C", error, "selected"], &rows))
}

fn json(request: &TuneArgs, fitted: &Fitted, choice: &LqChoice) -> Value {
    let folds = choice.fold_errors.len() / choice.path.len().max(1);
    let grid: Vec<Value> = choice
        .path
        .iter()
        .enumerate()
        .map(|(at, point)| {
            let errors: Vec<f64> = (0..folds).map(|fold| choice.fold_errors[fold * choice.path.len() + at]).collect();
            json!({"q": point.q, "c": point.c, "error": choice.mean_errors[at], "fold_errors": errors,
                "selected": point.size, "objective": point.objective})
        })
        .collect();
    let stability: Vec<Value> = stable(fitted, choice)
        .into_iter()
        .map(|(column, share)| json!({"feature": column_name(fitted, column), "share": share}))
        .collect();
    json!({
        "command": "tune",
        "method": "lq",
        "chosen": {"C": choice.c, "q": choice.q},
        "c": choice.c,
        "q": choice.q,
        "measure": if request.method.cost.is_some() { "mean cost" } else { "error" },
        "error": choice.mean_errors[choice.chosen],
        "status": "converged",
        "cv": request.tuning.is_none().then_some(request.cv),
        "tuning": request.tuning.as_ref().map(|path| path.to_string_lossy()),
        "grid": grid,
        "stability": stability,
        "fit": fitted.json_for(request.output.as_deref()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast::Dense;

    #[test]
    fn the_grid_and_the_picture_show_every_point() {
        let x = Dense::from_rows(&[[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [0.5, 0.0], [2.5, 1.0]]);
        let search = LqSearch::new(vec![1.0, 0.1, 10.0], vec![0.5, 1.0]).folds(2);
        let choice = search.fit(&x, &[0, 0, 1, 1, 0, 1]).unwrap();
        let mut csv = Vec::new();
        write_grid(&choice, &mut csv).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        assert_eq!(csv.lines().count(), 7);
        assert_eq!(csv.lines().next(), Some("q,C,error,selected,objective,chosen,error_1,error_2"));
        assert_eq!(csv.matches(",true,").count(), 1);
        let picture = draw(&choice, false);
        assert!(picture.matches("<polyline").count() >= 4 && !picture.contains("NaN"));
    }
}

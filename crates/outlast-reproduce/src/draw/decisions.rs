//! What a classifier decides over a square of the plane.

use super::contour::{Grid, Place};
use outlast::{Dense, Model, Result};

/// Grid points per side.
const SIDE: usize = 161;

/// The lines between the classes of a model of two columns, over the square from `low` to `high` in both.
pub fn boundaries(model: &Model, low: f64, high: f64) -> Result<Vec<Vec<Place>>> {
    let points = Dense::new(SIDE * SIDE, 2, Grid::points(SIDE, low, high))?;
    let values = model.decision_function(&points)?;
    Ok(boundaries_of(&values, low, high))
}

/// The lines between the classes of any rule: it gives one value, whose sign decides, or one for each class.
pub fn boundaries_by(low: f64, high: f64, rule: impl Fn(Place) -> Vec<f64>) -> Vec<Vec<Place>> {
    let points = Grid::points(SIDE, low, high);
    let values: Vec<f64> = points.chunks_exact(2).flat_map(|point| rule([point[0], point[1]])).collect();
    boundaries_of(&values, low, high)
}

/// Between two classes f = 0; else where the margin of a class is 0, of all but the last, whose lines the others have.
fn boundaries_of(values: &[f64], low: f64, high: f64) -> Vec<Vec<Place>> {
    let grid = |values: Vec<f64>| Grid { side: SIDE, low, high, values }.lines(0.0);
    if values.len() == SIDE * SIDE {
        return grid(values.to_vec());
    }
    let functions = values.len() / (SIDE * SIDE);
    let margin = |of: &[f64], class: usize| {
        let others = of.iter().enumerate().filter(|(other, _)| *other != class);
        of[class] - others.map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max)
    };
    let of_class = |class: usize| grid(values.chunks_exact(functions).map(|of| margin(of, class)).collect());
    (0..functions - 1).flat_map(of_class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_three_sectors_meet_in_the_middle() {
        let centres = [[1.0, 0.0], [-0.5, 0.866], [-0.5, -0.866]];
        let rule = |at: Place| centres.iter().map(|centre| at[0] * centre[0] + at[1] * centre[1]).collect();
        let lines = boundaries_by(-1.0, 1.0, rule);
        let nearest = lines.iter().flatten().map(|at| at[0].hypot(at[1])).fold(f64::INFINITY, f64::min);
        assert!(nearest < 0.02, "{nearest}");
        // every point of a line is as near to one centre as to another
        for at in lines.iter().flatten() {
            let mut values: Vec<f64> = rule(*at);
            values.sort_by(f64::total_cmp);
            assert!(values[2] - values[1] < 0.02, "{at:?}");
        }
    }
}

//! Level lines of a function on a square grid, by marching squares.
//!
//! On each edge of the grid whose ends lie on different sides of the level, the crossing is found by linear interpolation;
//! the crossings of a cell are joined in pairs, and the pairs chained into lines. A cell with four crossings (a saddle) is
//! resolved by the mean of its corners.

use std::collections::HashMap;

/// Values of a function on a grid over a square.
pub struct Grid {
    /// Points per side.
    pub side: usize,
    /// Lowest coordinate.
    pub low: f64,
    /// Highest coordinate.
    pub high: f64,
    /// Values, row by row from the lowest second coordinate.
    pub values: Vec<f64>,
}

/// A point in the plane.
pub type Place = [f64; 2];

/// Edges around a cell: lower, right, upper, left.
type Edge = (usize, usize, bool);

impl Grid {
    /// The points of a grid, in the order of [`values`](Self::values).
    pub fn points(side: usize, low: f64, high: f64) -> Vec<f64> {
        let at = |step: usize| low + (high - low) * step as f64 / (side - 1) as f64;
        (0..side * side).flat_map(|point| [at(point % side), at(point / side)]).collect()
    }

    fn place(&self, column: usize, row: usize) -> Place {
        let at = |step: usize| self.low + (self.high - self.low) * step as f64 / (self.side - 1) as f64;
        [at(column), at(row)]
    }

    fn value(&self, column: usize, row: usize) -> f64 {
        self.values[row * self.side + column]
    }

    /// Corners of a cell, counted around it.
    fn corners(&self, column: usize, row: usize) -> [(usize, usize); 4] {
        [(column, row), (column + 1, row), (column + 1, row + 1), (column, row + 1)]
    }

    /// Where the level is crossed between two neighbours.
    fn crossing(&self, a: (usize, usize), b: (usize, usize), level: f64) -> Place {
        let (va, vb) = (self.value(a.0, a.1) - level, self.value(b.0, b.1) - level);
        let share = va / (va - vb);
        let (pa, pb) = (self.place(a.0, a.1), self.place(b.0, b.1));
        [pa[0] + share * (pb[0] - pa[0]), pa[1] + share * (pb[1] - pa[1])]
    }

    /// The lines where the function takes the value `level`.
    pub fn lines(&self, level: f64) -> Vec<Vec<Place>> {
        let mut places: HashMap<Edge, Place> = HashMap::new();
        let mut pairs: Vec<[Edge; 2]> = Vec::new();
        for row in 0..self.side - 1 {
            for column in 0..self.side - 1 {
                let corners = self.corners(column, row);
                let above = corners.map(|(column, row)| self.value(column, row) > level);
                let edges: [Edge; 4] =
                    [(column, row, true), (column + 1, row, false), (column, row + 1, true), (column, row, false)];
                let crossed: Vec<usize> = (0..4).filter(|&side| above[side] != above[(side + 1) % 4]).collect();
                for &side in &crossed {
                    let place = self.crossing(corners[side], corners[(side + 1) % 4], level);
                    places.insert(edges[side], place);
                }
                match crossed[..] {
                    [a, b] => pairs.push([edges[a], edges[b]]),
                    [_, _, _, _] => {
                        let mean = corners.iter().map(|&(c, r)| self.value(c, r)).sum::<f64>() / 4.0;
                        // the corners that agree with the centre are joined through it, so the others are cut off
                        let first = usize::from((mean > level) == above[0]);
                        for start in [first, first + 2] {
                            pairs.push([edges[(start + 3) % 4], edges[start % 4]]);
                        }
                    }
                    _ => {}
                }
            }
        }
        chain(&pairs).into_iter().map(|line| line.iter().map(|edge| places[edge]).collect()).collect()
    }

    /// Polygons that cover where the function lies above 0, whole runs of cells as one.
    pub fn above_zero(&self) -> Vec<Vec<Place>> {
        let mut polygons = Vec::new();
        for row in 0..self.side - 1 {
            let mut run: Option<usize> = None;
            for column in 0..self.side {
                let inside = |&(column, row): &(usize, usize)| self.value(column, row) > 0.0;
                let whole = column + 1 < self.side && self.corners(column, row).iter().all(inside);
                if whole {
                    run.get_or_insert(column);
                    continue;
                }
                if let Some(start) = run.take() {
                    let corners = [(start, row), (column, row), (column, row + 1), (start, row + 1)];
                    polygons.push(corners.map(|(column, row)| self.place(column, row)).to_vec());
                }
                if column + 1 < self.side {
                    let polygon = self.cut(self.corners(column, row));
                    polygons.extend((polygon.len() > 2).then_some(polygon));
                }
            }
        }
        polygons
    }

    /// The part of a cell above 0.
    fn cut(&self, corners: [(usize, usize); 4]) -> Vec<Place> {
        let mut polygon = Vec::new();
        for side in 0..4 {
            let (here, next) = (corners[side], corners[(side + 1) % 4]);
            let (a, b) = (self.value(here.0, here.1) > 0.0, self.value(next.0, next.1) > 0.0);
            if a {
                polygon.push(self.place(here.0, here.1));
            }
            if a != b {
                polygon.push(self.crossing(here, next, 0.0));
            }
        }
        polygon
    }
}

/// Joins pairs that share an edge into lines; a closed line ends where it began.
fn chain(pairs: &[[Edge; 2]]) -> Vec<Vec<Edge>> {
    let mut at: HashMap<Edge, Vec<usize>> = HashMap::new();
    for (index, pair) in pairs.iter().enumerate() {
        pair.iter().for_each(|&edge| at.entry(edge).or_default().push(index));
    }
    let mut used = vec![false; pairs.len()];
    let mut lines = Vec::new();
    // open lines start at an edge of the square, where only one pair ends; what is left then is closed
    let ends_first = |index: &usize| pairs[*index].iter().all(|edge| at[edge].len() == 2);
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    order.sort_by_key(ends_first);
    for first in order {
        if used[first] {
            continue;
        }
        used[first] = true;
        let [a, b] = pairs[first];
        let (start, mut end) = if at[&b].len() == 1 { (b, a) } else { (a, b) };
        let mut line = vec![start, end];
        while let Some(&next) = at[&end].iter().find(|&&index| !used[index]) {
            used[next] = true;
            end = if pairs[next][0] == end { pairs[next][1] } else { pairs[next][0] };
            line.push(end);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(side: usize, function: impl Fn(f64, f64) -> f64) -> Grid {
        let points = Grid::points(side, -1.0, 1.0);
        let values = points.chunks_exact(2).map(|point| function(point[0], point[1])).collect();
        Grid { side, low: -1.0, high: 1.0, values }
    }

    #[test]
    fn a_circle_is_one_closed_line_of_its_length_and_area() {
        let circle = grid(201, |x, y| 0.25 - x * x - y * y);
        let lines = circle.lines(0.0);
        assert_eq!(lines.len(), 1);
        let line = &lines[0];
        assert_eq!(line.first(), line.last());
        let length: f64 = line.windows(2).map(|p| (p[1][0] - p[0][0]).hypot(p[1][1] - p[0][1])).sum();
        assert!((length - std::f64::consts::PI).abs() < 1e-3, "{length}");
        let area: f64 = circle.above_zero().iter().map(|polygon| shoelace(polygon)).sum();
        assert!((area - std::f64::consts::FRAC_PI_4).abs() < 1e-3, "{area}");
    }

    fn shoelace(polygon: &[Place]) -> f64 {
        let next = polygon.iter().cycle().skip(1);
        polygon.iter().zip(next).map(|(a, b)| a[0] * b[1] - a[1] * b[0]).sum::<f64>() / 2.0
    }

    #[test]
    fn a_straight_line_is_straight_and_open() {
        let lines = grid(11, |x, y| x + 2.0 * y - 0.33).lines(0.0);
        assert_eq!(lines.len(), 1);
        assert_ne!(lines[0].first(), lines[0].last());
        assert!(lines[0].iter().all(|p| (p[0] + 2.0 * p[1] - 0.33).abs() < 1e-12));
    }

    #[test]
    fn a_saddle_gives_two_lines_that_do_not_touch() {
        for shift in [-0.05, 0.05] {
            let lines = grid(10, |x, y| x * y + shift).lines(0.0);
            assert_eq!(lines.len(), 2);
            assert!(lines.iter().flatten().all(|p| (p[0] * p[1] + shift).abs() < 0.02));
        }
        assert!(grid(10, |_, _| 1.0).lines(0.0).is_empty());
    }
}

//! Made-up data: a disc within a ring, some labels wrong.
//!
//! Points are uniform on the unit disc; those within the radius 1/sqrt(2), half of them, are `inside`, the others
//! `outside`. Training labels are flipped at random for a share of the rows, and a few rows lie far out, beyond the disc,
//! with the wrong label `inside`: the kind of error that costs an ordinary support vector machine most.

use outlast::{Dense, Labels, Result};
use outlast_reproduce::random::Random;
use std::f64::consts::TAU;

/// Square of the radius of the true boundary.
pub const TRUE_RADIUS_SQUARED: f64 = 0.5;

/// Share of the training rows that lie far out with the wrong label.
const FAR_SHARE: f64 = 0.05;

/// Distance from the centre of the rows far out.
const FAR: (f64, f64) = (1.45, 1.75);

/// A point with its label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub x: [f64; 2],
    /// The label in the data.
    pub outside: bool,
    /// Whether that label is wrong.
    pub wrong: bool,
}

/// Training rows: flipped at random, the last ones far out.
pub fn training(rows: usize, flip: f64, random: &mut Random) -> Vec<Point> {
    let far = (FAR_SHARE * rows as f64).round() as usize;
    let near = (far..rows).map(|_| {
        let point = clean(random);
        let wrong = random.uniform() < flip;
        Point { outside: point.outside != wrong, wrong, ..point }
    });
    let mut points: Vec<Point> = near.collect();
    points.extend((0..far).map(|_| {
        let (angle, radius) = (random.between(0.0, TAU), random.between(FAR.0, FAR.1));
        Point { x: [radius * angle.cos(), radius * angle.sin()], outside: false, wrong: true }
    }));
    points
}

/// Rows of the disc, every label right.
pub fn test(rows: usize, random: &mut Random) -> Vec<Point> {
    (0..rows).map(|_| clean(random)).collect()
}

fn clean(random: &mut Random) -> Point {
    let (angle, radius) = (random.between(0.0, TAU), random.uniform().sqrt());
    Point {
        x: [radius * angle.cos(), radius * angle.sin()],
        outside: radius * radius > TRUE_RADIUS_SQUARED,
        wrong: false,
    }
}

/// The points as a table with the label in the last column.
pub fn as_csv(points: &[Point]) -> String {
    let row = |point: &Point| {
        let label = if point.outside { "outside" } else { "inside" };
        format!("{},{},{label}\n", point.x[0], point.x[1])
    };
    "x1,x2,label\n".to_string() + &points.iter().map(row).collect::<String>()
}

/// The points as a design matrix and labels.
pub fn split(points: &[Point]) -> Result<(Dense<'static>, Labels)> {
    let values: Vec<f64> = points.iter().flat_map(|point| point.x).collect();
    let labels = Labels::from_codes(
        vec!["inside".into(), "outside".into()],
        points.iter().map(|point| u32::from(point.outside)).collect(),
    )?;
    Ok((Dense::new(points.len(), 2, values)?, labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_wrong_where_they_say_so() {
        let points = training(1000, 0.1, &mut Random::new(3));
        assert_eq!(points.len(), 1000);
        for point in &points {
            let truly_outside = point.x[0].powi(2) + point.x[1].powi(2) > TRUE_RADIUS_SQUARED;
            assert_eq!(point.wrong, point.outside != truly_outside);
        }
        let wrong = points.iter().filter(|point| point.wrong).count();
        assert!((110..190).contains(&wrong), "{wrong}");
        assert!(test(100, &mut Random::new(4)).iter().all(|point| !point.wrong));
    }
}

//! The paper's made-up data, examples 1 to 4.

use crate::data::Rows;
use crate::random::Random;
use crate::samples::rows;
use outlast::Result;

/// The factor on f in example 1 that gives the printed Bayes error.
pub const SCALE: f64 = 1.101;

/// Columns of example 1; the first three count.
pub const COLUMNS: usize = 20;

/// f of example 1.
pub fn signal(x: &[f64]) -> f64 {
    2.0 * x[0] + 4.0 * x[1] + 4.0 * x[2] - 4.8
}

/// Example 1: uniform on the cube of 20 columns, P(y = 1) = 1 / (1 + exp(-1.101 f)).
pub fn first(count: usize, random: &mut Random) -> Result<Rows> {
    let (mut values, mut codes) = (Vec::with_capacity(count * COLUMNS), Vec::with_capacity(count));
    for _ in 0..count {
        let x: Vec<f64> = (0..COLUMNS).map(|_| random.uniform()).collect();
        let chance = 1.0 / (1.0 + (-SCALE * signal(&x)).exp());
        codes.push(u32::from(random.uniform() < chance));
        values.extend(x);
    }
    rows(COLUMNS, values, codes, 2)
}

/// Example 2: with chance .7 the first three columns tell the class, else the next three; then noise of variance 20.
pub fn second(count: usize, noise: usize, random: &mut Random) -> Result<Rows> {
    let (mut values, mut codes) = (Vec::with_capacity(count * (6 + noise)), Vec::with_capacity(count));
    for _ in 0..count {
        let class = random.below(2) as u32;
        let (sign, early) = (if class == 1 { 1.0 } else { -1.0 }, random.uniform() < 0.7);
        for column in 0..6 {
            let tells = (column < 3) == early;
            let draw = random.normal();
            values.push(if tells { sign * ((column % 3) as f64 + 1.0 + draw) } else { draw });
        }
        values.extend((0..noise).map(|_| 20f64.sqrt() * random.normal()));
        codes.push(class);
    }
    rows(6 + noise, values, codes, 2)
}

/// The squared radius of example 3.
pub fn radius(x: f64, y: f64) -> f64 {
    (x - 0.5).powi(2) + (y - 0.5).powi(2)
}

/// Example 3: class +1 near the middle of the unit square, -1 far from it, by a coin between; then standard normal noise.
pub fn third(count: usize, noise: usize, random: &mut Random) -> Result<Rows> {
    let (mut values, mut codes) = (Vec::with_capacity(count * (2 + noise)), Vec::with_capacity(count));
    for _ in 0..count {
        let (x, y) = (random.uniform(), random.uniform());
        let coin = random.uniform() < 0.5;
        let inside = match radius(x, y) {
            near if near < 0.07 => true,
            far if far > 0.13 => false,
            _ => coin,
        };
        values.extend([x, y]);
        values.extend((0..noise).map(|_| random.normal()));
        codes.push(u32::from(inside));
    }
    rows(2 + noise, values, codes, 2)
}

/// The centres of example 4.
const CENTRES: [[f64; 2]; 3] = [[1.732_050_807_568_877_2, 1.0], [-1.732_050_807_568_877_2, 1.0], [0.0, -2.0]];

/// Example 4: three normal groups of variance 2 in each direction.
pub fn fourth(count: usize, random: &mut Random) -> Result<Rows> {
    let (mut values, mut codes) = (Vec::with_capacity(2 * count), Vec::with_capacity(count));
    for _ in 0..count {
        let class = random.below(3);
        values.extend(CENTRES[class].map(|centre| centre + 2f64.sqrt() * random.normal()));
        codes.push(class as u32);
    }
    rows(2, values, codes, 3)
}

/// The best decision in example 4: the nearest centre.
pub fn nearest(x: &[f64]) -> u32 {
    let distance = |class: usize| (x[0] - CENTRES[class][0]).powi(2) + (x[1] - CENTRES[class][1]).powi(2);
    (0..3).fold(0, |best, class| if distance(class) < distance(best) { class } else { best }) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five standard errors of a share of 40,000 rows.
    const CLOSE: f64 = 5.0 * 0.5 / 200.0;

    #[test]
    fn the_best_rules_err_as_the_formulas_say() {
        let mut random = Random::new(6);
        let share = |rows: &Rows, rule: &dyn Fn(&[f64]) -> u32| {
            (0..40_000).filter(|&row| rule(rows.x.row(row)) != rows.y.codes()[row]).count() as f64 / 40_000.0
        };
        let bayes = share(&first(40_000, &mut random).unwrap(), &|x| u32::from(signal(x) > 0.0));
        assert!((bayes - 0.2216).abs() < CLOSE, "{bayes}");
        // the ring between has the area pi (.13 - .07), half of it decided wrongly
        let bayes = share(&third(40_000, 3, &mut random).unwrap(), &|x| u32::from(radius(x[0], x[1]) < 0.1));
        assert!((bayes - 0.5 * std::f64::consts::PI * 0.06).abs() < CLOSE, "{bayes}");
        let bayes = share(&fourth(40_000, &mut random).unwrap(), &nearest);
        assert!((bayes - 0.1845).abs() < CLOSE, "{bayes}");
    }

    #[test]
    fn the_columns_of_example_two_have_their_means() {
        let rows = second(40_000, 2, &mut Random::new(8)).unwrap();
        let mean = |column: usize| {
            let signed = |row: usize| if rows.y.codes()[row] == 1 { 1.0 } else { -1.0 } * rows.x.row(row)[column];
            (0..40_000).map(signed).sum::<f64>() / 40_000.0
        };
        for (column, expected) in [0.7, 1.4, 2.1, 0.3, 0.6, 0.9, 0.0, 0.0].into_iter().enumerate() {
            assert!((mean(column) - expected).abs() < 5.0 * 4.5 / 200.0, "{column}: {}", mean(column));
        }
    }
}

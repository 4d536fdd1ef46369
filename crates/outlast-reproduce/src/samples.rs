//! Made-up data of the papers.

use crate::data::Rows;
use crate::random::Random;
use outlast::{Class, Dense, Labels, Result};
use std::f64::consts::TAU;

/// Rows with codes of the classes 1, ..., k; a class may have none.
pub fn rows(columns: usize, values: Vec<f64>, codes: Vec<u32>, classes: usize) -> Result<Rows> {
    let names = (1..=classes as i64).map(Class::Int).collect();
    Ok(Rows { x: Dense::new(codes.len(), columns, values)?, y: Labels::from_codes(names, codes)? })
}

/// Which class a sector of the disc belongs to, sector by sector.
#[derive(Debug, Clone, Copy)]
pub struct Sectors {
    /// Counted anticlockwise from the first axis.
    pub classes: &'static [u32],
    /// How many classes.
    pub count: usize,
}

impl Sectors {
    /// k equal sectors, a class each.
    pub const fn equal(k: usize) -> Sectors {
        const EACH: [u32; 4] = [0, 1, 2, 3];
        Sectors { classes: EACH.split_at(k).0, count: k }
    }

    /// Six sectors, three classes: {1, 4}, {2, 3}, {5, 6}.
    pub const SIX: Sectors = Sectors { classes: &[0, 1, 1, 0, 2, 2], count: 3 };

    /// The class of a place.
    pub fn class(&self, x: f64, y: f64) -> u32 {
        let sectors = self.classes.len();
        let angle = y.atan2(x).rem_euclid(TAU);
        self.classes[((sectors as f64 * angle / TAU) as usize).min(sectors - 1)]
    }

    /// How close a place lies to the middle of a sector of each class; the closest is its class.
    pub fn closeness(&self, at: [f64; 2]) -> Vec<f64> {
        let mut most = vec![f64::NEG_INFINITY; self.count];
        for (sector, &class) in self.classes.iter().enumerate() {
            let middle = TAU * (sector as f64 + 0.5) / self.classes.len() as f64;
            let close = at[0] * middle.cos() + at[1] * middle.sin();
            most[class as usize] = most[class as usize].max(close);
        }
        most
    }

    /// Points uniform on the unit disc (Wu and Liu, sections 4.1 and 4.2), a share of the labels, exactly so many, changed to one of the
    /// others with equal chances; columns beyond the second are noise, uniform on [-1, 1].
    pub fn draw(&self, rows_count: usize, columns: usize, share: f64, random: &mut Random) -> Result<Rows> {
        let (mut values, mut codes) = (Vec::with_capacity(rows_count * columns), Vec::with_capacity(rows_count));
        for _ in 0..rows_count {
            let (angle, radius) = (random.between(0.0, TAU), random.uniform().sqrt());
            let (x, y) = (radius * angle.cos(), radius * angle.sin());
            values.extend([x, y]);
            values.extend((2..columns).map(|_| random.between(-1.0, 1.0)));
            codes.push(self.class(x, y));
        }
        flip_exactly(&mut codes, self.count, share, random);
        rows(columns, values, codes, self.count)
    }
}

/// Three normal groups with standard deviation 0.7 around the corners of a triangle (Liu, Wu and He, examples 1 and 2).
pub mod triangle {
    use super::*;

    /// The corners.
    pub const CENTRES: [[f64; 2]; 3] = [[1.0, 0.0], [-0.5, HALF_ROOT], [-0.5, -HALF_ROOT]];
    const HALF_ROOT: f64 = 0.866_025_403_784_438_6;
    const DEVIATION: f64 = 0.7;

    /// Rows; a row's label is changed with the chance `flip`, to one of the others with equal chances.
    pub fn draw(count: usize, flip: f64, random: &mut Random) -> Result<Rows> {
        let (mut values, mut codes) = (Vec::with_capacity(2 * count), Vec::with_capacity(count));
        for _ in 0..count {
            let class = random.below(3);
            values.extend(CENTRES[class].map(|centre| centre + DEVIATION * random.normal()));
            codes.push(flipped(class as u32, 3, flip, random));
        }
        rows(2, values, codes, 3)
    }

    /// The chance of each class at a place, labels as drawn with that chance of a change.
    pub fn chances(at: [f64; 2], flip: f64) -> Vec<f64> {
        let density = CENTRES.map(|centre| {
            let squared = (at[0] - centre[0]).powi(2) + (at[1] - centre[1]).powi(2);
            (-squared / (2.0 * DEVIATION * DEVIATION)).exp()
        });
        flipped_chances(&density, flip)
    }
}

/// Another label than this, each of the others with the same chance.
pub fn changed(class: u32, classes: usize, random: &mut Random) -> u32 {
    (class + 1 + random.below(classes - 1) as u32) % classes as u32
}

/// A label, changed with some chance.
pub fn flipped(class: u32, classes: usize, flip: f64, random: &mut Random) -> u32 {
    if random.uniform() < flip { changed(class, classes, random) } else { class }
}

/// The chances of labels that are changed with some chance, from those of the labels before, up to a factor.
pub fn flipped_chances(before: &[f64], flip: f64) -> Vec<f64> {
    let (sum, others) = (before.iter().sum::<f64>(), before.len() as f64 - 1.0);
    before
        .iter()
        .map(|chance| chance / sum)
        .map(|chance| (1.0 - flip) * chance + flip / others * (1.0 - chance))
        .collect()
}

/// Changes a share of the labels, exactly so many rows, to one of the others with equal chances.
pub fn flip_exactly(codes: &mut [u32], classes: usize, share: f64, random: &mut Random) {
    let wrong = (share * codes.len() as f64).round() as usize;
    for row in random.choose(wrong, codes.len()) {
        codes[row] = changed(codes[row], classes, random);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_triangle_has_its_groups_and_the_chances_add_up() {
        let rows = triangle::draw(30_000, 0.15, &mut Random::new(4)).unwrap();
        let mut right = 0.0;
        let mut expected = 0.0;
        for row in 0..30_000 {
            let at = [rows.x.row(row)[0], rows.x.row(row)[1]];
            let chances = triangle::chances(at, 0.15);
            assert!((chances.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let best = (0..3).max_by(|&a, &b| chances[a].total_cmp(&chances[b])).unwrap();
            expected += chances[best];
            right += f64::from(u8::from(rows.y.codes()[row] as usize == best));
        }
        // the chances say how often the likeliest class is the label: five standard errors
        assert!((right - expected).abs() < 5.0 * (30_000.0f64 * 0.25).sqrt(), "{right} {expected}");
    }

    #[test]
    fn sectors_have_their_classes_and_as_many_wrong_labels_as_asked_for() {
        let mut random = Random::new(1);
        for (sectors, columns) in [(Sectors::equal(2), 5), (Sectors::equal(4), 2), (Sectors::SIX, 2)] {
            let rows = sectors.draw(1000, columns, 0.1, &mut random).unwrap();
            assert_eq!(rows.x.values().len(), 1000 * columns);
            let right = |row: usize| sectors.class(rows.x.row(row)[0], rows.x.row(row)[1]) == rows.y.codes()[row];
            for row in 0..1000 {
                let at = [rows.x.row(row)[0], rows.x.row(row)[1]];
                let close = sectors.closeness(at);
                assert!(close.iter().all(|&other| other <= close[sectors.class(at[0], at[1]) as usize] + 1e-12));
            }
            assert_eq!((0..1000).filter(|&row| !right(row)).count(), 100);
        }
        // of two classes the second variable alone decides
        assert_eq!((Sectors::equal(2).class(-0.3, 0.1), Sectors::equal(2).class(0.9, -0.1)), (0, 1));
        assert_eq!(Sectors::SIX.class(0.5, -0.01), 2);
        assert_eq!(Sectors::SIX.class(0.5, -0.0), 0);
    }
}

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

/// Changes a share of the labels, exactly so many rows, to one of the others with equal chances.
pub fn flip_exactly(codes: &mut [u32], classes: usize, share: f64, random: &mut Random) {
    let wrong = (share * codes.len() as f64).round() as usize;
    for row in random.choose(wrong, codes.len()) {
        codes[row] = (codes[row] + 1 + random.below(classes - 1) as u32) % classes as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_have_their_classes_and_as_many_wrong_labels_as_asked_for() {
        let mut random = Random::new(1);
        for (sectors, columns) in [(Sectors::equal(2), 5), (Sectors::equal(4), 2), (Sectors::SIX, 2)] {
            let rows = sectors.draw(1000, columns, 0.1, &mut random).unwrap();
            assert_eq!(rows.x.values().len(), 1000 * columns);
            let right = |row: usize| sectors.class(rows.x.row(row)[0], rows.x.row(row)[1]) == rows.y.codes()[row];
            assert_eq!((0..1000).filter(|&row| !right(row)).count(), 100);
        }
        // of two classes the second variable alone decides
        assert_eq!((Sectors::equal(2).class(-0.3, 0.1), Sectors::equal(2).class(0.9, -0.1)), (0, 1));
        assert_eq!(Sectors::SIX.class(0.5, -0.01), 2);
        assert_eq!(Sectors::SIX.class(0.5, -0.0), 0);
    }
}

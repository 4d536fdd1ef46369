//! Random numbers for made-up data: SplitMix64 (Steele, Lea and Flood 2014), the same on every machine.
//!
//! Every replication of an experiment has a stream of its own, made from the experiment's name, the seed, the setting and the
//! replication: results do not depend on which thread runs what, nor on what ran before.

use std::f64::consts::TAU;

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The stream of one replication of an experiment under one setting.
    pub fn of(name: &str, seed: u64, setting: usize, replication: usize) -> Random {
        let mut state = fnv(name.as_bytes());
        for part in [seed, setting as u64, replication as u64] {
            state = Random(state ^ part).next();
        }
        Random(state)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Uniform on [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform on [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Standard normal (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (TAU * self.uniform()).cos()
    }

    /// A whole number below `count`, which is not 0.
    pub fn below(&mut self, count: usize) -> usize {
        // the bias of the product is below count / 2^64
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }

    /// Brings a list into random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            list.swap(end, self.below(end + 1));
        }
    }

    /// `count` distinct numbers below `of`, in random order.
    pub fn choose(&mut self, count: usize, of: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..of).collect();
        self.shuffle(&mut all);
        all.truncate(count);
        all
    }
}

/// The FNV-1a hash, which tells texts and files apart.
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // first outputs of SplitMix64 for the seed 1234567, from its reference implementation
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.uniform())));
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv(b"a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn streams_differ_in_every_part() {
        let first = |mut random: Random| random.next();
        let all = [
            first(Random::of("a", 1, 0, 0)),
            first(Random::of("b", 1, 0, 0)),
            first(Random::of("a", 2, 0, 0)),
            first(Random::of("a", 1, 1, 0)),
            first(Random::of("a", 1, 0, 1)),
        ];
        let mut distinct = all.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn moments_and_counts_are_those_of_the_distributions() {
        let mut random = Random::new(5);
        let draws: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        let square = draws.iter().map(|z| z * z).sum::<f64>() / 20_000.0;
        // five standard errors: 1/sqrt(n) and sqrt(2/n)
        assert!(mean.abs() < 5.0 / 20_000f64.sqrt() && (square - 1.0).abs() < 5.0 * (2.0 / 20_000f64).sqrt());
        let mut counts = [0; 3];
        (0..30_000).for_each(|_| counts[random.below(3)] += 1);
        assert!(counts.iter().all(|&count: &i32| (count - 10_000).abs() < 5 * 82), "{counts:?}");
        let mut chosen = random.choose(7, 7);
        chosen.sort_unstable();
        assert_eq!(chosen, [0, 1, 2, 3, 4, 5, 6]);
    }
}

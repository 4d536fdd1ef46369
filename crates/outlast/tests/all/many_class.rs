//! The judge of problems with many classes: weak duality, bounds that touch, and sums against their definitions.

use outlast::problem::{KernelFunction, Loss, Majorant, ManyCandidate, ManyClass, Norm, Terms};
use outlast::{Dense, Design};
use proptest::prelude::*;

const ROUNDING: f64 = 1e-9;

/// Uniform numbers from -1 to 1.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn list(&mut self, count: usize, scale: f64) -> Vec<f64> {
        (0..count).map(|_| scale * self.next()).collect()
    }
}

struct Data {
    x: Dense<'static, f64>,
    codes: Vec<u32>,
    caps: Vec<f64>,
    factors: Vec<f64>,
    classes: usize,
}

impl Data {
    fn new(seed: u64, rows: usize, classes: usize) -> Data {
        let mut numbers = Numbers(seed.wrapping_add(77));
        let x = Dense::new(rows, 3, numbers.list(3 * rows, 2.0)).unwrap();
        let codes = (0..rows).map(|row| (row % classes) as u32).collect();
        let caps = (0..rows).map(|_| 1.5 + numbers.next()).collect();
        let factors = (0..classes * classes).map(|_| (numbers.next() + 0.7).max(0.0)).collect();
        Data { x, codes, caps, factors, classes }
    }

    fn problem<'a>(&'a self, kind: usize, loss: Loss, kernel: &'a KernelFunction) -> ManyClass<'a> {
        let terms = match kind {
            0 => Terms::Own,
            1 => Terms::Utility(&self.factors),
            _ => Terms::Cost(&self.factors),
        };
        ManyClass {
            x: &self.x,
            codes: &self.codes,
            classes: self.classes,
            caps: &self.caps,
            terms,
            loss,
            norm: Norm::Squared,
            kernel,
            intercept: true,
        }
    }
}

/// Dual variables within their bounds: q_i anywhere in total_i x simplex, the columns of V not yet balanced.
fn feasible(problem: &ManyClass, bound: &Majorant, numbers: &mut Numbers) -> Vec<f64> {
    let k = problem.classes;
    let (mut knots, mut base) = (vec![0.0; k], vec![0.0; k]);
    let mut expansion = Vec::new();
    for row in 0..problem.rows() {
        let total = problem.shape(bound, row, &mut knots, &mut base);
        let weights: Vec<f64> = (0..k).map(|_| (numbers.next() + 0.3).max(0.0) + 1e-3).collect();
        let sum: f64 = weights.iter().sum();
        expansion.extend((0..k).map(|class| base[class] - total * weights[class] / sum));
    }
    expansion
}

fn linear_candidate<'a>(expansion: &'a [f64], weights: &'a [f64], intercepts: &'a [f64]) -> ManyCandidate<'a> {
    ManyCandidate { expansion, weights: Some(weights), intercepts }
}

/// Weights and intercepts that sum to 0 over the classes.
fn functions(numbers: &mut Numbers, classes: usize, cols: usize) -> (Vec<f64>, Vec<f64>) {
    let centred = |mut values: Vec<f64>, cols: usize| {
        for column in 0..cols {
            let mean = (0..classes).map(|class| values[class * cols + column]).sum::<f64>() / classes as f64;
            (0..classes).for_each(|class| values[class * cols + column] -= mean);
        }
        values
    };
    (centred(numbers.list(classes * cols, 1.5), cols), centred(numbers.list(classes, 1.0), 1))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// The bound lies above the objective everywhere and touches it where it was made. What it leaves out is the constant of
    /// the dropped terms.
    #[test]
    fn bounds_touch_and_lie_above(seed in 0u64..10_000, classes in 2usize..6, kind in 0usize..3) {
        let data = Data::new(seed, 8, classes);
        let loss = Loss::hinge().truncated_at(-0.4).unwrap();
        let problem = data.problem(kind, loss, &KernelFunction::Linear);
        let mut numbers = Numbers(seed);
        let decision: Vec<f64> = numbers.list(8 * classes, 2.0);
        let bound = problem.majorant(&decision, None);
        let dropped: f64 = (0..8)
            .flat_map(|row| (0..classes).map(move |class| (row, class)))
            .map(|(row, class)| (problem.cap(row, class) - problem.kept_cap(&bound, row, class)) * loss.value(-9.0))
            .sum();
        let here = problem.convex_loss(&bound, &decision) + dropped;
        prop_assert!((here - problem.total_loss(&decision)).abs() <= ROUNDING * here);
        for _ in 0..5 {
            let other: Vec<f64> = numbers.list(8 * classes, 2.0);
            let above = problem.convex_loss(&bound, &other) + dropped;
            prop_assert!(above >= problem.total_loss(&other) - ROUNDING * above.abs());
        }
    }

    /// Whatever the dual variables, the dual is below the primal of whatever function: with the imbalance of the columns
    /// accounted for by intercepts of 0.
    #[test]
    fn weak_duality(seed in 0u64..10_000, classes in 2usize..6, kind in 0usize..3, rbf in any::<bool>()) {
        let data = Data::new(seed, 9, classes);
        let kernel = if rbf { KernelFunction::Rbf { gamma: 0.5 } } else { KernelFunction::Linear };
        let problem = ManyClass { intercept: false, ..data.problem(kind, Loss::hinge().truncated_at(-0.4).unwrap(), &kernel) };
        let mut numbers = Numbers(seed);
        let bound = problem.majorant(&numbers.list(9 * classes, 2.0), None);
        let expansion = feasible(&problem, &bound, &mut numbers);
        let zeros = vec![0.0; classes];
        let certificate = if rbf {
            // of the function that the dual variables themselves give
            problem.certify(&ManyCandidate { expansion: &expansion, weights: None, intercepts: &zeros }, &bound)
        } else {
            let (weights, _) = functions(&mut numbers, classes, 3);
            problem.certify(&linear_candidate(&expansion, &weights, &zeros), &bound)
        };
        prop_assert!(certificate.dual.is_finite());
        prop_assert!(certificate.dual <= certificate.primal + ROUNDING * certificate.primal.abs());
    }

    /// One vector q per row is enough: max over q of the reduced form is the sum of the row's terms.
    #[test]
    fn the_reduced_form_is_the_sum_of_terms(seed in 0u64..10_000, classes in 2usize..5, kind in 0usize..3) {
        let data = Data::new(seed, 3, classes);
        let problem = data.problem(kind, Loss::hinge(), &KernelFunction::Linear);
        let mut numbers = Numbers(seed);
        let decision: Vec<f64> = numbers.list(3 * classes, 1.5);
        let bound = problem.majorant(&decision, None);
        let (mut knots, mut base) = (vec![0.0; classes], vec![0.0; classes]);
        let mut sum = 0.0;
        for row in 0..3 {
            let f = &decision[row * classes..(row + 1) * classes];
            let total = problem.shape(&bound, row, &mut knots, &mut base);
            // a linear program over the simplex: fill the pieces (worth f below the knot, f - 1 above) from the best
            let mut pieces: Vec<(f64, f64)> =
                (0..classes).flat_map(|class| [(f[class], knots[class]), (f[class] - 1.0, f64::INFINITY)]).collect();
            pieces.sort_by(|a, b| b.0.total_cmp(&a.0));
            let mut left = total;
            for (worth, room) in pieces {
                let amount = left.min(room);
                sum += amount * worth;
                left -= amount;
            }
            sum += total - base.iter().zip(f).map(|(base, f)| base * f).sum::<f64>();
        }
        let terms = problem.convex_loss(&bound, &decision);
        prop_assert!((sum - terms).abs() <= ROUNDING * (1.0 + terms.abs()), "{sum} {terms}");
    }
}

#[test]
fn the_objective_is_its_definition() {
    let data = Data::new(5, 10, 4);
    let mut numbers = Numbers(3);
    let (weights, intercepts) = functions(&mut numbers, 4, 3);
    let expansion = vec![0.0; 40];
    for (kind, sign) in [(0, 1.0), (1, 1.0), (2, -1.0)] {
        let problem = data.problem(kind, Loss::logistic().truncated_at(-0.7).unwrap(), &KernelFunction::Linear);
        let found = problem.objective(&linear_candidate(&expansion, &weights, &intercepts));
        let mut expected = 0.5 * weights.iter().map(|w| w * w).sum::<f64>();
        for row in 0..10 {
            let f: Vec<f64> = (0..4).map(|j| data.x.dot(row, &weights[3 * j..3 * j + 3]) + intercepts[j]).collect();
            for class in 0..4 {
                let rival = (0..4).filter(|&j| j != class).map(|j| f[j]).fold(f64::NEG_INFINITY, f64::max);
                let margin: f64 = sign * (f[class] - rival);
                let factor = match kind {
                    0 => f64::from(u8::from(data.codes[row] as usize == class)),
                    _ => data.factors[data.codes[row] as usize * 4 + class],
                };
                expected += data.caps[row] * factor * (-margin.max(-0.7)).exp().ln_1p();
            }
        }
        assert!((found - expected).abs() <= ROUNDING * expected, "{found} {expected}");
    }
}

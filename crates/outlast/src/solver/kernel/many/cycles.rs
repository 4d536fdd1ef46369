//! Cycles of classes, and the intercepts.
//!
//! Moves keep the column sums when the classes they go through close a cycle. On the graph of classes with an arc a -> b of
//! weight g(a, b), the largest gain of a move, the state is optimal when no cycle has positive mean weight. The largest mean
//! lambda (Karp 1978, O(k^3)) is how far that fails, and longest paths under g - lambda give multipliers b with
//! g(a, b) + b_b - b_a <= lambda for every arc: the intercepts. They are the middle of what the data allow, as the average
//! over the classes a path may end in.

use super::gains::Gains;
use crate::linalg::{Isa, padded};

/// The cycle of largest mean gain: its mean, and its classes in order.
pub(super) fn best_cycle(gains: &Gains) -> (f64, Vec<usize>) {
    best_cycle_among(gains, &(0..gains.classes).collect::<Vec<_>>())
}

/// The same for cycles through some of the classes.
pub(super) fn best_cycle_among(gains: &Gains, classes: &[usize]) -> (f64, Vec<usize>) {
    // a class without mass is on no cycle
    let has_arcs = |&from: &usize| classes.iter().any(|&to| gains.get(from, to) > f64::NEG_INFINITY);
    let classes: Vec<usize> = classes.iter().copied().filter(has_arcs).collect();
    let (k, width) = (classes.len(), padded(classes.len()));
    let mut arcs = vec![f64::NEG_INFINITY; k * width];
    for (arcs, &from) in arcs.chunks_exact_mut(width.max(1)).zip(&classes) {
        arcs.iter_mut().zip(&classes).for_each(|(arc, &to)| *arc = gains.get(from, to));
    }
    let (length, before) = longest_walks(gains.isa, &arcs, k, width);
    let mean = |end: usize| {
        let means = (0..k).map(|step| (length[k * width + end] - length[step * width + end]) / (k - step) as f64);
        means.filter(|mean| !mean.is_nan()).fold(f64::INFINITY, f64::min)
    };
    let ends = (0..k).filter(|&end| length[k * width + end] > f64::NEG_INFINITY);
    let Some((end, value)) = ends.map(|end| (end, mean(end))).max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return (f64::NEG_INFINITY, Vec::new());
    };
    // the walk of k steps to that end goes round the cycle
    let mut walk = vec![end];
    for step in (1..=k).rev() {
        let parent = before[step * width + walk[walk.len() - 1]] as usize;
        if let Some(at) = walk.iter().position(|&class| class == parent) {
            let mut cycle = walk.split_off(at);
            cycle.reverse();
            return (value, cycle.into_iter().map(|class| classes[class]).collect());
        }
        walk.push(parent);
    }
    (value, Vec::new())
}

/// The longest walks of 0..=k steps to each class, and the class before; arcs and answers are `width` to a row.
fn longest_walks(isa: Isa, arcs: &[f64], k: usize, width: usize) -> (Vec<f64>, Vec<u64>) {
    // SAFETY: the instruction set was detected.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => walks_avx512(arcs, k, width),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => walks_avx2(arcs, k, width),
            _ => walks(arcs, k, width),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
fn walks_avx512(arcs: &[f64], k: usize, width: usize) -> (Vec<f64>, Vec<u64>) {
    walks(arcs, k, width)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn walks_avx2(arcs: &[f64], k: usize, width: usize) -> (Vec<f64>, Vec<u64>) {
    walks(arcs, k, width)
}

#[inline(always)]
fn walks(arcs: &[f64], k: usize, width: usize) -> (Vec<f64>, Vec<u64>) {
    let mut length = vec![f64::NEG_INFINITY; (k + 1) * width];
    let mut before = vec![0u64; (k + 1) * width];
    length[..k].fill(0.0);
    for step in 1..=k {
        let (done, next) = length.split_at_mut(step * width);
        let (last, next) = (&done[(step - 1) * width..], &mut next[..width]);
        let parents = &mut before[step * width..][..width];
        for from in 0..k {
            let (start, arcs) = (last[from], &arcs[from * width..][..width]);
            for to in 0..width {
                let value = start + arcs[to];
                parents[to] = if value > next[to] { from as u64 } else { parents[to] };
                next[to] = if value > next[to] { value } else { next[to] };
            }
        }
    }
    (length, before)
}

/// Multipliers of the column sums for gains whose largest mean is `mean`, with sum 0.
pub(super) fn intercepts(gains: &Gains, mean: f64) -> Vec<f64> {
    let k = gains.classes;
    let alive: Vec<usize> = (0..k).filter(|&class| (0..k).any(|to| gains.get(class, to) > f64::NEG_INFINITY)).collect();
    if alive.is_empty() {
        return vec![0.0; k];
    }
    // classes with mass have arcs to all others: among them every path exists
    let size = alive.len();
    let mut path = vec![0.0; size * size];
    for (a, &from) in alive.iter().enumerate() {
        for (b, &to) in alive.iter().enumerate().filter(|(b, _)| *b != a) {
            path[a * size + b] = gains.get(from, to) - mean;
        }
    }
    for through in 0..size {
        for a in 0..size {
            for b in (0..size).filter(|&b| b != a) {
                let detour = path[a * size + through] + path[through * size + b];
                if detour > path[a * size + b] {
                    path[a * size + b] = detour;
                }
            }
        }
    }
    let mut result = vec![0.0; k];
    for end in 0..size {
        let sum: f64 = (0..size).map(|a| path[a * size + end]).sum();
        for (a, &class) in alive.iter().enumerate() {
            result[class] += (path[a * size + end] - sum / size as f64) / size as f64;
        }
    }
    // a class without mass is only bounded from above
    for class in (0..k).filter(|class| !alive.contains(class)) {
        let bound =
            alive.iter().map(|&from| result[from] - gains.get(from, class) + mean).fold(f64::INFINITY, f64::min);
        result[class] = bound;
    }
    let centre = result.iter().sum::<f64>() / k as f64;
    result.iter_mut().for_each(|b| *b -= centre);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gains(k: usize, value: Vec<f64>) -> Gains {
        let mut gains = Gains::new(k, Isa::Portable);
        let width = gains.width;
        (0..k * k).for_each(|at| gains.value[at / k * width + at % k] = value[at]);
        gains
    }

    fn random(seed: u64, count: usize) -> Vec<f64> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        (0..count).map(|_| 2.0 * next() - 1.0).collect()
    }

    /// Largest mean over all simple cycles, by enumeration.
    fn by_enumeration(g: &Gains) -> f64 {
        fn extend(g: &Gains, path: &mut Vec<usize>, sum: f64, best: &mut f64) {
            let (first, last) = (path[0], path[path.len() - 1]);
            for next in 0..g.classes {
                if next == first && path.len() > 1 {
                    *best = best.max((sum + g.get(last, next)) / path.len() as f64);
                } else if next > first && !path.contains(&next) {
                    path.push(next);
                    extend(g, path, sum + g.get(last, next), best);
                    path.pop();
                }
            }
        }
        let mut best = f64::NEG_INFINITY;
        (0..g.classes).for_each(|first| extend(g, &mut vec![first], 0.0, &mut best));
        best
    }

    #[test]
    fn the_best_cycle_is_found_and_multipliers_bound_every_arc() {
        for seed in 0..200 {
            let k = 2 + (seed % 5) as usize;
            let mut value = random(seed, k * k);
            (0..k).for_each(|class| value[class * k + class] = f64::NEG_INFINITY);
            if seed % 7 == 0 {
                // a class without mass
                value[..k].fill(f64::NEG_INFINITY);
            }
            let g = gains(k, value);
            let (mean, cycle) = best_cycle(&g);
            assert_eq!(mean > f64::NEG_INFINITY, by_enumeration(&g) > f64::NEG_INFINITY);
            if !cycle.is_empty() {
                assert!((mean - by_enumeration(&g)).abs() < 1e-12, "{seed}");
                let sum: f64 = (0..cycle.len()).map(|at| g.get(cycle[at], cycle[(at + 1) % cycle.len()])).sum();
                assert!((sum / cycle.len() as f64 - mean).abs() < 1e-12, "{seed}");
            }
            let mean = if mean.is_finite() { mean } else { 0.0 };
            let b = intercepts(&g, mean);
            assert!(b.iter().sum::<f64>().abs() < 1e-12);
            for from in 0..k {
                for to in (0..k).filter(|&to| to != from) {
                    assert!(g.get(from, to) + b[to] - b[from] <= mean + 1e-12, "{seed}");
                }
            }
        }
    }
}

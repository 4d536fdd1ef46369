//! Fisher consistency (Wu and Liu, propositions 1 and 2, theorem 1; Liu, Wu and He, theorem 3.1).
//!
//! At a place with class probabilities p the risk of f is sum_j p_j l_T(g_j), g_j = f_j - max_{m != j} f_m. With t the class of the largest f and
//! d_j = f_t - f_j >= 0 this is p_t l_T(min_j d_j) + sum_{j != t} p_j l_T(-d_j): a search over t and a grid of d finds the minimum without any
//! of the papers' arguments. f decides for the likeliest class when t is that class and every d_j > 0.

use super::Finding;
use crate::experiment::Unit;
use crate::random::Random;
use crate::wrsvm::worths;
use outlast::{Loss, Result};

const LOSSES: [fn() -> Loss; 3] = [Loss::hinge, Loss::exponential, Loss::logistic];

/// Shares of the bound well inside the consistent range, and multiples of it well outside.
const INSIDE: [f64; 3] = [0.0, 0.5, 0.95];
const OUTSIDE: [f64; 2] = [1.2, 2.0];

/// Differences looked at: fine where losses bend, then wide.
fn differences(small: bool) -> Vec<f64> {
    let step = if small { 0.2 } else { 0.05 };
    let fine = (0..=(2.0 / step) as usize).map(|at| at as f64 * step);
    fine.chain([2.5, 3.0, 4.0, 6.0, 9.0, 14.0]).collect()
}

/// min risk among f that decide for the likeliest class, and among those that decide otherwise.
fn minima(p: &[f64], loss: &Loss, differences: &[f64]) -> [f64; 2] {
    let likeliest = (0..p.len()).max_by(|&a, &b| p[a].total_cmp(&p[b])).unwrap_or(0);
    let (mut right, mut other) = (f64::INFINITY, f64::INFINITY);
    let ahead: Vec<f64> = differences.iter().map(|&d| loss.value(d)).collect();
    let behind: Vec<f64> = differences.iter().map(|&d| loss.value(-d)).collect();
    for top in 0..p.len() {
        let rest: Vec<f64> = (0..p.len()).filter(|&class| class != top).map(|class| p[class]).collect();
        let mut at = vec![0; rest.len()];
        loop {
            let least = at.iter().copied().min().unwrap_or(0);
            let risk = p[top] * ahead[least] + rest.iter().zip(&at).map(|(p, &d)| p * behind[d]).sum::<f64>();
            let best = if top == likeliest && least > 0 { &mut right } else { &mut other };
            *best = best.min(risk);
            let Some(digit) = at.iter().position(|&d| d + 1 < differences.len()) else { break };
            at[digit] += 1;
            at[..digit].fill(0);
        }
    }
    [right, other]
}

/// The second less the first.
fn gap(p: &[f64], loss: &Loss, differences: &[f64]) -> f64 {
    let [right, other] = minima(p, loss, differences);
    other - right
}

/// All probabilities of k classes that are multiples of 1/steps, in falling order, the first the largest alone.
fn simplex(k: usize, steps: usize) -> Vec<Vec<f64>> {
    fn extend(prefix: &[usize], left: usize, classes: usize, found: &mut Vec<Vec<usize>>) {
        let most = prefix.last().copied().unwrap_or(left);
        if classes == 1 {
            if left <= most {
                found.push([prefix, &[left]].concat());
            }
            return;
        }
        (0..=left.min(most)).for_each(|part| extend(&[prefix, &[part]].concat(), left - part, classes - 1, found));
    }
    let mut found = Vec::new();
    extend(&[], steps, k, &mut found);
    let alone = found.into_iter().filter(|parts| parts[0] > parts[1]);
    alone.map(|parts| parts.into_iter().map(|part| part as f64 / steps as f64).collect()).collect()
}

/// The smallest gap over the probabilities.
fn smallest(all: &[Vec<f64>], loss: &Loss, differences: &[f64]) -> f64 {
    all.iter().map(|p| gap(p, loss, differences)).fold(f64::INFINITY, f64::min)
}

/// Nearly even chances, the hardest case.
fn near_even(k: usize) -> Vec<f64> {
    let more = 0.02 / k as f64;
    (0..k).map(|class| 1.0 / k as f64 + if class == 0 { more * (k as f64 - 1.0) } else { -more }).collect()
}

/// Propositions 1 and 2 and theorem 1. Nothing is random.
pub fn standard(unit: &mut Unit) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let classes: &[usize] = if unit.small { &[3] } else { &[3, 4] };
    for make in LOSSES {
        let loss = make();
        let name = loss.base().name();
        let two = differences(unit.small);
        let binary = simplex(2, 40);
        let worst = [0.0, -0.5, -2.0, -10.0].map(|s| Ok(smallest(&binary, &loss.truncated_at(s)?, &two)));
        let worst = worst.into_iter().collect::<Result<Vec<f64>>>()?.into_iter().fold(f64::INFINITY, f64::min);
        findings.push(Finding::new(
            format!("{name}: two classes: consistent for s = 0 and -0.5 and -2 and -10"),
            "smallest gap",
            worst,
            worst > 0.0,
        ));
        for &k in classes {
            let grid = differences(unit.small || k > 3);
            let mut all = simplex(k, if k == 3 { 24 } else { 16 });
            all.push(near_even(k));
            let bound = loss.base().lowest_consistent_truncation(k);
            for share in INSIDE {
                let gap = smallest(&all, &loss.truncated_at(share * bound)?, &grid);
                let text = format!("{name}: {k} classes: consistent for s = {share} of the bound");
                findings.push(Finding::new(text, "smallest gap", gap, gap > 0.0));
            }
            for factor in OUTSIDE {
                let gap = gap(&near_even(k), &loss.truncated_at(factor * bound)?, &grid);
                let text = format!("{name}: {k} classes: not consistent for s = {factor} times the bound");
                findings.push(Finding::new(text, "gap near even chances", gap, gap <= 0.0));
            }
            let (dominated, level): (Vec<_>, Vec<_>) = all.into_iter().partition(|p| p[0] > 0.5);
            let gap = smallest(&dominated, &loss, &grid);
            let text = format!("{name}: {k} classes: without truncation right where one class has p > 1/2");
            findings.push(Finding::new(text, "smallest gap", gap, gap > 0.0));
            let zero =
                |p: &Vec<f64>| minima(p, &loss, &grid).into_iter().fold(f64::INFINITY, f64::min) - loss.value(0.0);
            let least = level.iter().map(zero).fold(f64::INFINITY, f64::min);
            let text = format!("{name}: {k} classes: without truncation f = 0 is a minimiser where none has p > 1/2");
            findings.push(Finding::new(text, "lowest risk less that of 0", least, least >= -1e-12));
        }
    }
    Ok(findings)
}

/// Theorem 3.1: random utilities and probabilities. With A_j = sum_l U_lj p_l the risk is that of the probabilities A / sum A.
pub fn weighted(unit: &mut Unit) -> Result<Vec<Finding>> {
    const K: usize = 3;
    let grid = differences(unit.small);
    let draws = if unit.small { 5 } else { 40 };
    let mut findings = Vec::new();
    for make in LOSSES {
        let loss = make();
        let loss = loss.truncated_at(0.95 * loss.base().lowest_consistent_truncation(K))?;
        let mut worst = f64::INFINITY;
        for _ in 0..draws {
            let utility: Vec<Vec<f64>> = (0..K).map(|_| (0..K).map(|_| unit.random.uniform()).collect()).collect();
            let p: Vec<f64> = (0..K).map(|_| 0.01 + unit.random.uniform()).collect();
            let worth = worths(&p, &utility);
            let sum: f64 = worth.iter().sum();
            let share: Vec<f64> = worth.iter().map(|worth| worth / sum).collect();
            let mut sorted = share.clone();
            sorted.sort_by(f64::total_cmp);
            // where two decisions are worth the same there is nothing to be consistent with
            if sorted[K - 1] - sorted[K - 2] > 0.02 {
                worst = worst.min(gap(&share, &loss, &grid));
            }
        }
        let text = format!("{}: weighted: decides for what is worth most within the bound", loss.base().name());
        findings.push(Finding::new(text, "smallest gap", worst, worst > 0.0));
        for factor in OUTSIDE {
            let beyond = loss.base().lowest_consistent_truncation(K) * factor;
            let beyond = make().truncated_at(beyond)?;
            let most = (0..draws).map(|_| gap(&nearly_even_worth(&mut unit.random), &beyond, &grid));
            let most = most.fold(f64::NEG_INFINITY, f64::max);
            let text = format!("{}: weighted: not consistent for s = {factor} times the bound", loss.base().name());
            findings.push(Finding::new(text, "largest gap where worths are near even", most, most <= 0.0));
        }
    }
    Ok(findings)
}

/// Shares of the worth of three decisions, nearly even, for random utilities: probabilities p with U'p of these shares are looked for until there
/// are some, and the shares are computed from them.
fn nearly_even_worth(random: &mut Random) -> Vec<f64> {
    const K: usize = 3;
    loop {
        let utility: Vec<Vec<f64>> = (0..K).map(|_| (0..K).map(|_| random.uniform()).collect()).collect();
        let at = |row: usize, column: usize| utility[column % K][row % K];
        // Cramer's rule for U'p = a
        let minor = |r: usize, c: usize| at(r + 1, c + 1) * at(r + 2, c + 2) - at(r + 1, c + 2) * at(r + 2, c + 1);
        let determinant: f64 = (0..K).map(|c| at(0, c) * minor(0, c)).sum();
        let wanted = near_even(K);
        let p: Vec<f64> = (0..K).map(|c| (0..K).map(|r| minor(r, c) * wanted[r]).sum::<f64>() / determinant).collect();
        if determinant.abs() > 1e-3 && p.iter().all(|&p| p > 0.0) {
            let worth = worths(&p, &utility);
            let sum: f64 = worth.iter().sum();
            return worth.iter().map(|worth| worth / sum).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_of_the_truncated_hinge_is_the_formula() {
        // right: d = 1 everywhere, risk (1 - p)(1 - s); otherwise: the better of f = 0, risk 1, and the runner-up ahead
        let (p, s) = ([0.4, 0.35, 0.25], -0.5);
        let loss = Loss::hinge().truncated_at(s).unwrap();
        let right = 0.6 * (1.0 - s);
        let other = (0.65f64 * (1.0 - s)).min(1.0);
        assert!((gap(&p, &loss, &differences(false)) - (other - right)).abs() < 1e-12);
    }

    #[test]
    fn the_simplex_has_every_point_once() {
        let all = simplex(3, 6);
        // 600 510 420 411 321, and not 330 or 222, where the first is not alone
        assert_eq!(all.len(), 5);
        assert!(all.iter().all(|p| (p.iter().sum::<f64>() - 1.0).abs() < 1e-12 && p[0] > p[1] && p[1] >= p[2]));
    }
}

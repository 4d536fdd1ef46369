//! Costs and utilities (Liu, Wu and He, section 3.3): U = max C - C has the same Bayes rule, (9).

use super::Finding;
use crate::experiment::Unit;
use crate::wrsvm::worths;
use outlast::Result;

/// Random costs and probabilities.
pub fn check(unit: &mut Unit) -> Result<Vec<Finding>> {
    const DRAWS: usize = 2000;
    let (mut same, mut tie) = (0, 0);
    let mut difference: f64 = 0.0;
    for _ in 0..DRAWS {
        let k = 2 + unit.random.below(4);
        let mut cost: Vec<Vec<f64>> = (0..k).map(|_| (0..k).map(|_| unit.random.uniform()).collect()).collect();
        (0..k).for_each(|class| cost[class][class] = 0.0);
        let chances: Vec<f64> = (0..k).map(|_| unit.random.uniform()).collect();
        let sum: f64 = chances.iter().sum();
        let chances: Vec<f64> = chances.iter().map(|chance| chance / sum).collect();
        let most = cost.iter().flatten().copied().fold(0.0, f64::max);
        let utility: Vec<Vec<f64>> = cost.iter().map(|row| row.iter().map(|cost| most - cost).collect()).collect();
        let (costs, worth) = (worths(&chances, &cost), worths(&chances, &utility));
        let cheapest = (0..k).min_by(|&a, &b| costs[a].total_cmp(&costs[b]));
        let best = (0..k).max_by(|&a, &b| worth[a].total_cmp(&worth[b]));
        same += usize::from(cheapest == best);
        let off = costs.iter().zip(&worth).map(|(cost, worth)| (cost + worth - most).abs());
        difference = off.fold(difference, f64::max);
        // f with a tie decides for nobody: its cost in (9) is 0 and its utility is 0
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        tie += usize::from(least <= 0.0);
    }
    Ok(vec![
        Finding::new(
            "the cheapest decision is the one worth most",
            "share of draws",
            same as f64 / DRAWS as f64,
            same == DRAWS,
        ),
        Finding::new(
            "cost and utility of a decision add up to the largest cost",
            "largest difference",
            difference,
            difference < 1e-12,
        )
        .ours(),
        Finding::new(
            "(9) as printed where f may tie: minimisers of the cost are maximisers of the utility",
            "share of draws",
            tie as f64 / DRAWS as f64,
            tie == DRAWS,
        ),
    ])
}

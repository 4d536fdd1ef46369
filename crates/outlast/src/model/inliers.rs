//! The share of rows that ROD keeps: given, or found in the data.
//!
//! Two ways (both from the paper). *Cross-validation* takes the share with the fewest held-out mistakes. The *phase transition*: with a
//! large share the rows inside keep eta = 1; with a small one the relaxation shrinks until no row reaches the margin, and the
//! largest eta falls below 1. The share at which that happens is looked for by bisection.

use super::ablation::classifier;
use crate::control::Control;
use crate::data::Repeated;
use crate::error::{Error, Result};
use crate::problem::{KernelFunction, TwoClass};
use crate::solver::Options;
use crate::solver::ablation::{Relaxed, Rule, relax};

/// rho of ROD.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Inliers {
    /// A share in (0, 1].
    Given(f64),
    /// Where the largest eta falls below 1.
    Transition,
    /// By the fewest mistakes in five-fold cross-validation.
    #[default]
    CrossValidation,
}

impl Inliers {
    /// The names of the rules, the first being the default.
    pub const NAMES: &'static [&'static str] = &["auto", "cv", "transition"];

    /// The rule of that name.
    pub fn from_name(name: &str) -> Result<Inliers> {
        match name {
            "auto" | "cv" => Ok(Inliers::CrossValidation),
            "transition" => Ok(Inliers::Transition),
            _ => {
                let allowed = format!("a number in (0, 1] or one of {}", Self::NAMES.join(", "));
                Err(Error::parameter("inlier_fraction", format!("{name:?}"), allowed))
            }
        }
    }

    pub(super) fn check(self) -> Result<()> {
        match self {
            Inliers::Given(share) if !(share > 0.0 && share <= 1.0) => {
                Err(Error::parameter("inlier_fraction", share, "a number in (0, 1], or a rule's name"))
            }
            _ => Ok(()),
        }
    }
}

impl From<f64> for Inliers {
    fn from(share: f64) -> Self {
        Inliers::Given(share)
    }
}

/// Shares tried by cross-validation, the largest first: of equally good ones the largest is taken.
const SHARES: [f64; 11] = [1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5];

const FOLDS: usize = 5;

/// Relative gap at which the relaxations of cross-validation stop: their classifiers matter, not their bounds.
const LOOSE: f64 = 1e-3;

/// An eta that counts as 1.
const WHOLE: f64 = 1.0 - 1e-3;

/// Width of the interval in which the transition is found.
const WIDTH: f64 = 1.0 / 128.0;

/// The smallest share, to within [`WIDTH`], at which some eta is 1, and its relaxation.
pub(super) fn transition(problem: &TwoClass, options: &Options, control: &Control) -> Result<(Rule, Option<Relaxed>)> {
    let at = |inliers: f64| relax(problem, Rule::Rod { inliers }, options, *control);
    let whole = |relaxed: &Relaxed| {
        let rows = relaxed.eta.iter().zip(problem.caps);
        rows.filter(|(_, cap)| **cap > 0.0).any(|(eta, _)| *eta >= WHOLE)
    };
    let (mut low, mut high) = (0.0, 1.0);
    let mut best = at(high)?;
    while high - low > WIDTH && !control.out_of_time() {
        let middle = 0.5 * (low + high);
        let relaxed = at(middle)?;
        if whole(&relaxed) {
            (high, best) = (middle, relaxed);
        } else {
            low = middle;
        }
    }
    Ok((Rule::Rod { inliers: high }, Some(best)))
}

/// The share with the fewest held-out mistakes, by weight.
pub(super) fn cross_validated(problem: &TwoClass, refine: bool, options: &Options, control: &Control) -> Result<Rule> {
    let folds = folds(problem);
    let loose = Options { tolerance: options.tolerance.max(LOOSE), ..options.clone() };
    let mut best = (f64::INFINITY, SHARES[0]);
    for share in SHARES {
        let rule = Rule::Rod { inliers: share };
        let mut mistakes = 0.0;
        for fold in 0..FOLDS {
            mistakes += held_out(problem, &folds, fold, rule, refine, &loose, control)?;
        }
        if mistakes < best.0 {
            best = (mistakes, share);
        }
        if control.out_of_time() {
            break;
        }
    }
    Ok(Rule::Rod { inliers: best.1 })
}

/// The fold of each row, the classes dealt out evenly. Rows without weight are as if they were not there: in no fold.
fn folds(problem: &TwoClass) -> Vec<usize> {
    let mut dealt = [0, 0];
    let of_row = |(sign, cap): (&f64, &f64)| {
        if *cap == 0.0 {
            return FOLDS;
        }
        let count = &mut dealt[usize::from(*sign > 0.0)];
        *count += 1;
        (*count - 1) % FOLDS
    };
    problem.signs.iter().zip(problem.caps).map(of_row).collect()
}

/// Weight of the rows of a fold that the others' classifier gets wrong.
fn held_out(
    problem: &TwoClass,
    folds: &[usize],
    fold: usize,
    rule: Rule,
    refine: bool,
    options: &Options,
    control: &Control,
) -> Result<f64> {
    let (inside, outside): (Vec<u32>, Vec<u32>) = (0..folds.len() as u32).partition(|&row| folds[row as usize] != fold);
    let pick = |rows: &[u32], of: &[f64]| -> Vec<f64> { rows.iter().map(|&row| of[row as usize]).collect() };
    let (signs, caps) = (pick(&inside, problem.signs), pick(&inside, problem.caps));
    let both = |sign: f64| signs.iter().zip(&caps).any(|(s, cap)| *s == sign && *cap > 0.0);
    if outside.is_empty() || !(both(1.0) && both(-1.0)) {
        return Ok(0.0);
    }
    let x = match problem.kernel {
        KernelFunction::Precomputed => Repeated::square(problem.x, inside.clone()),
        _ => Repeated::new(problem.x, inside.clone()),
    };
    let part = TwoClass { x: &x, signs: &signs, caps: &caps, ..*problem };
    let relaxed = relax(&part, rule, options, *control)?;
    let solution = classifier(&part, rule, &relaxed, refine, options, control)?;
    let mut expansion = vec![0.0; folds.len()];
    inside.iter().zip(&solution.expansion).for_each(|(&row, &value)| expansion[row as usize] = value);
    let decision: Vec<f64> = match &solution.weights {
        Some(weights) => outside.iter().map(|&row| problem.x.dot(row as usize, weights)).collect(),
        None => problem.kernel.expand_at(problem.x, &expansion, &outside),
    };
    let rows = outside.iter().map(|&row| row as usize).zip(decision);
    let wrong = rows.filter(|(row, f)| problem.signs[*row] * (f + solution.intercept()) <= 0.0);
    Ok(wrong.map(|(row, _)| problem.caps[row]).sum())
}

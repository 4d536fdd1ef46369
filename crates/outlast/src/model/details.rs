//! Numbers that only some methods have, by name.

use std::collections::BTreeMap;

/// Numbers of a method, by name: parameters it does not share with others, and what it found beyond a classifier.
///
/// | name | methods | what |
/// |---|---|---|
/// | `lower_bound` | reh, rod, truncated with a global search | certified lower bound of the global optimum, in the units of the objective |
/// | `relaxation` | reh, rod | value of the relaxation at the point found, in the units of the objective |
/// | `proved` | truncated with a global search | 1 if the model is proved to be globally optimal, else 0 |
/// | `nodes` | truncated with a global search | subproblems that branch and bound looked at |
/// | `probability_unconverged` | truncated with probabilities | how many of their fits did not converge |
/// | `inlier_fraction` | rod | the share of the rows' weight that is kept |
/// | `refined` | reh, rod | 1 if the relaxation's classifier was refined by alternation, else 0 |
/// | `rank` | reh, rod | rank of the factor of the kernel matrix |
/// | `kernel_error` | reh, rod | trace of what that factor leaves out |
/// | `q` | lq, truncated with the penalty lq | the exponent |
/// | `shift` | centroid | factor on the squared distance to the centre of a row's class |
/// | `power` | capped | p |
/// | `cap` | capped | what a row costs at most; absent where there is no cap |
/// | `cap_fraction` | capped with the cap "auto" or "cv" | the share of the rows that the cap was put below |
/// | `cap_fraction_unused` | capped with the cap "cv" or a number | the parameter, which played no part |
/// | `standardized` | after a search | 1 if the columns were put on one scale as part of the fit |
/// | `passes` | truncated, of rows in chunks | passes over the data |
/// | `factor` | loo | factor on a row's own kernel value |
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details(BTreeMap<String, f64>);

impl Details {
    /// The number of that name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Sets the number of that name.
    pub fn set(&mut self, name: impl Into<String>, value: f64) {
        self.0.insert(name.into(), value);
    }

    /// All of them, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, &value)| (name.as_str(), value))
    }
}

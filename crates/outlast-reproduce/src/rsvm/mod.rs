//! Wu and Liu, "Robust truncated hinge loss support vector machines".

pub mod boundaries;
mod figure1;
mod linear;
mod table1;
mod table2;

pub use figure1::Losses;
pub use linear::Linear;
pub use table1::Nonlinear;
pub use table2::Liver;

use crate::draw::Look;
use outlast::Truncation;

/// Rows to train on, to tune on and to test on (section 4).
pub const TRAIN: usize = 100;
pub const TUNE: usize = 1000;
pub const TEST: usize = 10_000;

/// The three losses for k classes: the hinge, truncated at 0, truncated at -1/(k-1).
pub fn losses(k: usize) -> [(&'static str, Truncation); 3] {
    [("H1", Truncation::Off), ("T0", Truncation::At(0.0)), ("Ts", Truncation::At(-1.0 / (k as f64 - 1.0)))]
}

/// Their names in the records.
pub const LOSSES: [&str; 3] = ["H1", "T0", "Ts"];

/// Their names as the paper has them, for k classes.
pub fn titles(k: usize) -> [String; 3] {
    ["H_1".to_string(), "T_0".to_string(), if k == 2 { "T_-1".to_string() } else { format!("T_-1/{}", k - 1) }]
}

/// Their looks in figures.
pub const LOOKS: [Look; 3] = [Look::line(0), Look::line(2), Look::line(1)];

/// Notes that all experiments of section 4 share.
pub fn notes() -> Vec<String> {
    vec![
        "The paper does not print its grid of C. Here C runs over half powers of ten from 0.1 to 1,000, each fit starting from the one before; \
         of equal errors on the tuning rows the smallest C is taken."
            .to_string(),
        "Exactly the stated share of the labels is changed, in training, tuning and test rows alike, as the paper's \"in the same \
         manner\" says: so the test error has a floor at that share."
            .to_string(),
    ]
}

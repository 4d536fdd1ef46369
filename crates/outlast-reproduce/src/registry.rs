//! Every experiment, in the order of the papers.

use crate::experiment::Experiment;
use crate::{ablation, capped, lq, rsvm, theory, wrsvm};

/// Every experiment: a file and a line here.
pub const ALL: &[&dyn Experiment] = &[
    &rsvm::Linear,
    &rsvm::Nonlinear,
    &rsvm::Liver,
    &rsvm::Losses,
    &rsvm::boundaries::LINEAR,
    &rsvm::boundaries::GAUSSIAN,
    &wrsvm::boundaries::LINEAR,
    &wrsvm::boundaries::GAUSSIAN,
    &wrsvm::Outliers,
    &wrsvm::Curved,
    &wrsvm::Digits,
    &ablation::boundaries::FIGURE2,
    &ablation::boundaries::FIGURE3,
    &ablation::Radii,
    &ablation::Betas,
    &ablation::Detection,
    &ablation::Pairs,
    &lq::Penalties,
    &lq::Noise,
    &lq::Exponents,
    &lq::Sizes,
    &lq::Curved,
    &lq::Boundaries,
    &lq::Triangle,
    &lq::Real,
    &capped::Losses,
    &capped::Sets,
    &capped::Accuracies,
    &capped::Parameters,
    &capped::NoiseLevels,
    &theory::Theory,
];

/// The experiment of that name.
pub fn find(name: &str) -> Option<&'static dyn Experiment> {
    ALL.iter().copied().find(|experiment| experiment.about().name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_fit_for_files_and_columns() {
        let names: Vec<&str> = ALL.iter().map(|experiment| experiment.about().name).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
            assert!(!names[..at].contains(name), "{name} stands twice");
        }
        for experiment in ALL {
            let (settings, about) = (experiment.settings(), experiment.about());
            assert!(!settings.is_empty() && about.reps.count() > 0 && about.seconds > 0.0, "{}", about.name);
            for (at, setting) in settings.iter().enumerate() {
                assert!(!setting.name.contains([',', '\n', '"']), "{}: {}", about.name, setting.name);
                assert!(settings[..at].iter().all(|other| other.name != setting.name), "{}", setting.name);
            }
        }
    }
}

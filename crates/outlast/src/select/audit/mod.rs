//! Which rows of a table have a label, or values, that look wrong.
//!
//! ```text
//! columns on one scale -> folds, repeated -> robust fits of all pairs of classes, rbf and linear, without the fold
//!                      -> decisions about its rows -> chances of the classes -> mean over repeats and kernels
//! score of a row = 1 - chance of the label it was given
//! ```
//!
//! **Out of sample.** What a row is judged by was fitted without it, in every repeat. Its own label counts for nothing but the two
//! numbers per pair of classes that turn decisions of all rows into chances (`chances.rs`), and for which C is taken.
//!
//! **Robust.** The fits minimise 1/2 |f|^2 + C sum_i min([1 - y_i f(x_i)]_+, 1 - s) with the truncation s = -1, so that a wrong label far on
//! the wrong side stops pulling (Wu and Liu 2007). Columns are pulled in to a fence before (`scaled.rs`).
//!
//! **C** is chosen for each kernel out of [`CS`] by the likelihood of the given labels of held-out rows, in the first repeat, where the
//! solution of one C is the start of the next.
//!
//! **Both kernels.** An rbf function says little about rows far out and much about crooked boundaries, a linear one the reverse;
//! their mean ranks better than either on most tables.
//!
//! **How many labels are wrong.** A row counts for its likeliest class j where the chance of j is at least that of four fifths of the
//! rows which bear the label j and look like it. The noise matrix holds the shares of these counts by given class. (The confident joint
//! of Northcutt, Jiang and Chuang 2021 takes the mean chance among all rows with the label j for that bound. With 30 % of a class under
//! another name, half of these rows then fall below it, and the share comes out too low.)
//!
//! Cost: (3 + repeats - 1) x folds fits of each kernel, spread over the cores.

mod chances;
mod components;
mod fits;
mod oddities;
mod report;
mod scaled;

pub use components::components;
pub use report::{AuditReport, Chosen, Reason, Suspect};
pub use scaled::Scale;

use super::stratified;
use crate::control::Control;
use crate::data::{Design, Labels, Target};
use crate::error::{Error, Result};
use crate::model::{FitRequest, Model, Truncated, Truncation};
use crate::problem::{Gamma, Kernel, KernelFunction, Loss};
use crate::solver::kernel::KernelStore;
use chances::{Sigmoid, couple, normalize};
use fits::{Field, Scheme};
use rayon::prelude::*;
use scaled::Scaled;
use std::sync::atomic::AtomicUsize;

/// What progress is called.
pub const STAGE: &str = "audit";

/// The values of C tried.
pub const CS: [f64; 3] = [0.1, 1.0, 10.0];

/// Classes with fewer rows can't be judged.
pub const FEWEST: usize = 3;

/// Rows of a class below which it is called near-empty.
const NEARLY_EMPTY: usize = 5;

/// The kernels of the fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuditKernel {
    /// rbf and linear; their chances are averaged.
    #[default]
    Both,
    /// rbf alone.
    Rbf,
    /// Linear alone.
    Linear,
}

impl AuditKernel {
    /// The names users see.
    pub const NAMES: [&'static str; 3] = ["both", "rbf", "linear"];

    /// The kernels of that name.
    pub fn from_name(name: &str) -> Result<AuditKernel> {
        match name {
            "both" => Ok(AuditKernel::Both),
            "rbf" => Ok(AuditKernel::Rbf),
            "linear" => Ok(AuditKernel::Linear),
            _ => Err(Error::parameter("kernel", format!("{name:?}"), "one of both, rbf, linear")),
        }
    }
}

/// Parameters of an audit.
///
/// ```
/// use outlast::{Audit, Dense};
///
/// let rows: Vec<[f64; 2]> = (0..60).map(|i| [f64::from(i % 2) * 4.0 + f64::from(i % 7) / 7.0, f64::from(i % 5)]).collect();
/// let mut y: Vec<&str> = (0..60).map(|i| if i % 2 == 0 { "cat" } else { "dog" }).collect();
/// y[10] = "dog"; // looks like a cat
/// let report = Audit::default().run(&Dense::from_rows(&rows), &y)?;
/// assert_eq!(report.suspects[0].row, 10);
/// assert_eq!(report.classes[report.suspects[0].suggested as usize].to_string(), "cat");
/// # Ok::<(), outlast::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Audit {
    /// Folds of each cross-validation, at most one per row.
    pub folds: usize,
    /// How often the rows are split anew.
    pub repeats: usize,
    /// Seed of the splits.
    pub seed: u64,
    /// The kernels.
    pub kernel: AuditKernel,
    /// Width of the rbf kernel, for columns of variance 1.
    pub gamma: Gamma,
    /// Weight of the losses; `None` to choose from [`CS`].
    pub c: Option<f64>,
    /// Where the loss is cut off: -1 for `Auto`, as these are problems of two classes.
    pub truncation: Truncation,
    /// Threads; `None` for all cores.
    pub threads: Option<usize>,
}

impl Default for Audit {
    fn default() -> Self {
        Audit {
            folds: 5,
            repeats: 3,
            seed: 0,
            kernel: AuditKernel::Both,
            gamma: Gamma::Scale,
            c: None,
            truncation: Truncation::Auto,
            threads: None,
        }
    }
}

/// One of the kernels.
struct Member {
    kernel: KernelFunction,
}

/// Chances of the judged classes and margins, of one kernel in one repeat.
struct Verdict {
    /// Rows x judged classes.
    chances: Vec<f64>,
    /// Functional margin of each row.
    margins: Vec<f64>,
    /// Mean of -ln chance of the given label.
    surprise: f64,
}

/// A repeat's splits: fold of each row.
type Folds = Vec<usize>;

impl Audit {
    /// Sets the number of folds.
    pub fn folds(mut self, folds: usize) -> Self {
        self.folds = folds;
        self
    }

    /// Sets how often the rows are split anew.
    pub fn repeats(mut self, repeats: usize) -> Self {
        self.repeats = repeats;
        self
    }

    /// Sets the seed of the splits.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the kernels.
    pub fn kernel(mut self, kernel: AuditKernel) -> Self {
        self.kernel = kernel;
        self
    }

    /// Sets the width of the rbf kernel.
    pub fn gamma(mut self, gamma: Gamma) -> Self {
        self.gamma = gamma;
        self
    }

    /// Sets C instead of choosing it.
    pub fn c(mut self, c: f64) -> Self {
        self.c = Some(c);
        self
    }

    /// Sets the truncation.
    pub fn truncation(mut self, truncation: impl Into<Truncation>) -> Self {
        self.truncation = truncation.into();
        self
    }

    /// Sets the number of threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Checks every parameter that can be checked without data.
    pub fn check(&self) -> Result<()> {
        if self.folds < 2 {
            return Err(Error::parameter("folds", self.folds, "a whole number >= 2"));
        }
        if !(1..=1000).contains(&self.repeats) {
            return Err(Error::parameter("repeats", self.repeats, "a whole number from 1 to 1000"));
        }
        if let Gamma::Value(gamma) = self.gamma
            && !(gamma.is_finite() && gamma > 0.0)
        {
            return Err(Error::parameter("gamma", gamma, "a finite number > 0"));
        }
        crate::model::Estimator::check(&self.final_method(self.c.unwrap_or(1.0), &KernelFunction::Linear))
    }

    /// How many steps an audit of these labels reports, each a binary fit.
    pub fn steps(&self, labels: &Labels) -> usize {
        let judged = labels.counts().into_iter().filter(|&count| count >= FEWEST).count();
        let kernels = if self.kernel == AuditKernel::Both { 2 } else { 1 };
        let rounds = self.cs().len() + self.repeats - 1;
        Scheme::of(judged.max(2)).count() * kernels * self.folds.min(labels.len()) * rounds
    }

    /// Audits.
    pub fn run(&self, x: &dyn Design, y: &(impl Target + ?Sized)) -> Result<AuditReport> {
        self.run_with(x, y, Control::default())
    }

    /// Audits with someone watching: each step of the progress is a binary fit, [`steps`](Self::steps) in all.
    pub fn run_with(&self, x: &dyn Design, y: &(impl Target + ?Sized), control: Control) -> Result<AuditReport> {
        let labels = y.labels();
        self.check()?;
        let mut checker = Truncated::new(1.0);
        checker.common.threads = self.threads;
        checker.check_data(x, &labels, &FitRequest::default())?;
        checker.in_pool(|| self.run_here(x, &labels, control))
    }

    fn run_here(&self, x: &dyn Design, labels: &Labels, control: Control) -> Result<AuditReport> {
        let judged = judged(labels)?;
        let place: Vec<Option<u32>> = (0..labels.classes().len() as u32)
            .map(|class| judged.iter().position(|&known| known == class).map(|at| at as u32))
            .collect();
        let codes: Vec<Option<u32>> = labels.codes().iter().map(|&code| place[code as usize]).collect();
        let scaled = Scaled::new(x)?;
        let done = AtomicUsize::new(0);
        let field = Field {
            x: &scaled,
            codes: &codes,
            scheme: Scheme::of(judged.len()),
            loss: self.loss()?,
            seed: self.seed,
            done: &done,
        };
        let members = self.members(&scaled, labels)?;
        let splits: Vec<Folds> = (0..self.repeats).map(|repeat| self.split(labels, repeat)).collect::<Result<_>>()?;

        let cs = self.cs();
        let first = self.judge(&field, &members, &splits[..1], &vec![cs.clone(); members.len()], &control)?;
        let mut chosen = Vec::new();
        let mut verdicts: Vec<Vec<Verdict>> = Vec::new();
        for (member, of_cs) in members.iter().zip(first.into_iter().flatten()) {
            let best = (0..cs.len()).min_by(|&a, &b| of_cs[a].surprise.total_cmp(&of_cs[b].surprise)).unwrap_or(0);
            chosen.push(Chosen { kernel: member.kernel.clone(), c: cs[best], surprise: of_cs[best].surprise });
            verdicts.push(of_cs.into_iter().skip(best).take(1).collect());
        }
        let own: Vec<Vec<f64>> = chosen.iter().map(|chosen| vec![chosen.c]).collect();
        let (rest, model) = rayon::join(
            || self.judge(&field, &members, &splits[1..], &own, &control),
            || self.final_fit(&scaled, labels, &chosen, &control),
        );
        for repeat in rest? {
            for (verdicts, mut of_cs) in verdicts.iter_mut().zip(repeat) {
                verdicts.append(&mut of_cs);
            }
        }
        let evidence = report::Evidence {
            labels,
            judged: &judged,
            verdicts: verdicts.into_iter().flatten().collect(),
            conflicts: oddities::conflicts(x, labels.codes()),
            far: oddities::far(x, &scaled, &control)?,
            nearly_empty: NEARLY_EMPTY,
        };
        control.check()?;
        Ok(evidence.report(chosen, self.loss()?.truncation(), model?, scaled, self))
    }

    fn cs(&self) -> Vec<f64> {
        self.c.map_or(CS.to_vec(), |c| vec![c])
    }

    fn loss(&self) -> Result<Loss> {
        let hinge = Loss::hinge();
        match self.truncation {
            Truncation::Off => Ok(hinge),
            Truncation::At(at) => hinge.truncated_at(at),
            Truncation::Auto => hinge.truncated_at(hinge.base().lowest_consistent_truncation(2)),
        }
    }

    fn members(&self, scaled: &Scaled, labels: &Labels) -> Result<Vec<Member>> {
        let rbf = || -> Result<Member> {
            let kernel = Kernel::rbf(self.gamma).resolve(scaled.design(), labels, None)?;
            Ok(Member { kernel })
        };
        let linear = Member { kernel: KernelFunction::Linear };
        Ok(match self.kernel {
            AuditKernel::Both => vec![rbf()?, linear],
            AuditKernel::Rbf => vec![rbf()?],
            AuditKernel::Linear => vec![linear],
        })
    }

    fn split(&self, labels: &Labels, repeat: usize) -> Result<Folds> {
        // far apart in the generator's sequence, whatever the user's seeds
        let seed = self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add((repeat as u64) << 32);
        stratified(labels, self.folds.min(labels.len()), seed)
    }

    /// Verdicts by repeat, kernel and C.
    fn judge(
        &self,
        field: &Field,
        members: &[Member],
        splits: &[Folds],
        cs: &[Vec<f64>],
        control: &Control,
    ) -> Result<Vec<Vec<Vec<Verdict>>>> {
        let folds = self.folds.min(field.codes.len());
        let mut tasks = Vec::new();
        for repeat in 0..splits.len() {
            for member in 0..members.len() {
                tasks.extend((0..folds).map(|fold| (repeat, member, fold)));
            }
        }
        let stop = || control.check().is_err();
        let run = |&(repeat, member, fold): &(usize, usize, usize)| -> Result<(Vec<u32>, Vec<Vec<f32>>)> {
            let (held, train): (Vec<u32>, Vec<u32>) =
                (0..field.codes.len() as u32).partition(|&row| splits[repeat][row as usize] == fold);
            let decisions = field.judge(
                &members[member],
                &cs[member],
                &train,
                &held,
                control,
                &Control::default().interrupt(&stop),
            )?;
            Ok((held, decisions))
        };
        let found: Vec<Result<_>> = tasks.par_iter().with_max_len(1).map(run).collect();
        let found = found.into_iter().collect::<Result<Vec<_>>>()?;
        let mut of_folds = found.chunks(folds.max(1));
        let mut verdicts = Vec::new();
        for _ in 0..splits.len() {
            let mut of_members = Vec::new();
            for cs in cs {
                let folds = of_folds.next().unwrap_or(&[]);
                of_members.push((0..cs.len()).map(|at| verdict(field, folds, at)).collect());
            }
            verdicts.push(of_members);
        }
        Ok(verdicts)
    }

    fn final_method(&self, c: f64, kernel: &KernelFunction) -> Truncated {
        let kernel = kernel.gamma().map_or(Kernel::Linear, Kernel::rbf);
        Truncated::new(c).kernel(kernel).truncation(self.truncation).random_state(self.seed)
    }

    /// All rows and classes at once, with the kernel and C of the least surprise.
    fn final_fit(&self, scaled: &Scaled, labels: &Labels, chosen: &[Chosen], control: &Control) -> Result<Model> {
        let best = chosen.iter().min_by(|a, b| a.surprise.total_cmp(&b.surprise));
        let (c, kernel) = best.map_or((1.0, &KernelFunction::Linear), |best| (best.c, &best.kernel));
        let stop = || control.check().is_err();
        let control = Control::default().interrupt(&stop);
        let request = FitRequest { control, ..FitRequest::default() };
        self.final_method(c, kernel).fit_roughly(scaled.design(), labels, &request, &KernelStore::default())
    }
}

/// The classes that can be judged.
fn judged(labels: &Labels) -> Result<Vec<u32>> {
    let counts = labels.counts();
    let judged: Vec<u32> = (0..counts.len() as u32).filter(|&class| counts[class as usize] >= FEWEST).collect();
    if judged.len() < 2 {
        let problem = format!("an audit needs two classes of {FEWEST} rows or more; y has {}", judged.len());
        return Err(Error::Classes { problem });
    }
    Ok(judged)
}

/// What the decisions of all folds say, at one C.
fn verdict(field: &Field, folds: &[(Vec<u32>, Vec<Vec<f32>>)], at: usize) -> Verdict {
    let (n, count) = (field.codes.len(), field.scheme.count());
    let mut decisions = vec![0f32; n * count];
    for (held, found) in folds {
        for (&row, values) in held.iter().zip(found[at].chunks_exact(count)) {
            decisions[row as usize * count..][..count].copy_from_slice(values);
        }
    }
    let sigmoid = |(problem, (first, second)): (usize, (u32, Option<u32>))| {
        let of = |(row, code): (usize, &Option<u32>)| {
            let code = (*code)?;
            let counts = code == first || second.is_none_or(|second| code == second);
            counts.then(|| (f64::from(decisions[row * count + problem]), code == first))
        };
        Sigmoid::fit(&field.codes.iter().enumerate().filter_map(of).collect::<Vec<_>>())
    };
    let problems: Vec<_> = field.scheme.problems().into_iter().enumerate().collect();
    let sigmoids: Vec<Sigmoid> = problems.into_par_iter().map(sigmoid).collect();
    let k = match field.scheme {
        Scheme::Pairs(k) | Scheme::Rest(k) => k,
    };
    let mut chances = vec![0.0; n * k];
    chances.par_chunks_exact_mut(k).zip(decisions.par_chunks_exact(count)).for_each_init(
        Vec::new,
        |scratch, (out, values)| {
            let chance = |problem: usize| sigmoids[problem].chance(f64::from(values[problem]));
            match field.scheme {
                Scheme::Pairs(k) => couple(k, |i, j| chance(Scheme::pair(k, i, j)), scratch, out),
                Scheme::Rest(_) => {
                    out.iter_mut().enumerate().for_each(|(class, out)| *out = chance(class));
                    normalize(out);
                }
            }
        },
    );
    let margin = |(row, code): (usize, &Option<u32>)| {
        let Some(own) = code.map(|code| code as usize) else { return 0.0 };
        let values = &decisions[row * count..(row + 1) * count];
        match field.scheme {
            Scheme::Rest(_) => f64::from(values[own]),
            Scheme::Pairs(k) => {
                let against = |other: usize| match own < other {
                    true => f64::from(values[Scheme::pair(k, own, other)]),
                    false => -f64::from(values[Scheme::pair(k, other, own)]),
                };
                (0..k).filter(|&other| other != own).map(against).fold(f64::INFINITY, f64::min)
            }
        }
    };
    let margins = field.codes.iter().enumerate().map(margin).collect();
    let known =
        field.codes.iter().enumerate().filter_map(|(row, code)| code.map(|code| chances[row * k + code as usize]));
    let (sum, rows) = known.fold((0.0, 0usize), |(sum, rows), chance| (sum - chance.ln(), rows + 1));
    Verdict { chances, margins, surprise: sum / rows.max(1) as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;

    /// A row's label changes nothing in what is decided about the row, splits being the same.
    #[test]
    fn decisions_about_a_row_do_not_see_its_label() {
        let rows: Vec<[f64; 2]> =
            (0..90).map(|row| [f64::from(row % 3) + f64::from(row * 7 % 11) / 6.0, f64::from(row * 5 % 13)]).collect();
        let x = Dense::from_rows(&rows);
        let scaled = Scaled::new(&x).unwrap();
        let codes: Vec<Option<u32>> = (0..90).map(|row| Some(row % 3)).collect();
        let done = AtomicUsize::new(0);
        let loss = Loss::hinge().truncated_at(-1.0).unwrap();
        for (row, kernel) in [(4u32, KernelFunction::Rbf { gamma: 0.5 }), (50, KernelFunction::Linear)] {
            let member = Member { kernel };
            let decide = |label: u32| {
                let mut codes = codes.clone();
                codes[row as usize] = Some(label);
                let field = Field { x: &scaled, codes: &codes, scheme: Scheme::Pairs(3), loss, seed: 0, done: &done };
                let (held, train): (Vec<u32>, Vec<u32>) = (0..90u32).partition(|other| other % 5 == row % 5);
                let control = Control::default();
                let found = field.judge(&member, &CS, &train, &held, &control, &control).unwrap();
                let at = held.iter().position(|&other| other == row).unwrap();
                found.into_iter().flat_map(|list| list[3 * at..3 * at + 3].to_vec()).collect::<Vec<f32>>()
            };
            assert_eq!(decide(0), decide(1));
            assert_eq!(decide(1), decide(2));
            assert!(decide(0).iter().any(|value| value.abs() > 0.1));
        }
    }
}

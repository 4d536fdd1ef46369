//! Which rows of a table have a label, or values, that look wrong.
//!
//! ```text
//! columns on one scale -> folds, repeated -> robust fits of all pairs of classes, rbf and linear, without the fold
//!                      -> decisions about its rows -> chances of the classes -> mean over repeats, logarithmic pool of the kernels
//! score of a row = 1 - p - r / 3        p: chance of the label it was given,    r: of classes that are neither that nor the likeliest other
//! ```
//!
//! **Out of sample.** What a row is judged by was fitted without it, in every repeat. Its own label counts for nothing but the two
//! numbers per pair of classes that turn decisions of all rows into chances (`chances.rs`), and for which C is taken.
//!
//! **Robust.** The fits minimise 1/2 |f|^2 + C sum_i min([1 - y_i f(x_i)]_+, 1 - s) with the truncation s = -1, so that a wrong label far on
//! the wrong side stops pulling (Wu and Liu 2007). Columns are pulled in to a fence before (`scaled.rs`).
//!
//! **C** is chosen for each kernel out of [`CS`] by the likelihood of the given labels of held-out rows, in the first repeat, where the
//! solution of one C is the start of the next. Where a C is worse than the one before, larger ones are not tried.
//!
//! **Both kernels.** An rbf function says little about rows far out and much about crooked boundaries, a linear one the reverse;
//! pooled they rank better than either on most tables, and better than by their plain mean.
//!
//! **The score.** A row that looks like one other class is likelier to bear a wrong label than one that looks like nothing in particular.
//! So a third of the chance that goes to further classes is not counted; with two classes there are none.
//!
//! **How many labels are wrong.** A row counts for its likeliest class j where the chance of j is at least that of four fifths of the
//! rows which bear the label j and look like it. The noise matrix holds the shares of these counts by given class. (The confident joint
//! of Northcutt, Jiang and Chuang 2021 takes the mean chance among all rows with the label j for that bound. With 30 % of a class under
//! another name, half of these rows then fall below it, and the share comes out too low.)
//!
//! **The fit to all rows** is one of all classes together, with the kernel that was surprised the least. Classes too small to be judged have no part in it.
//! What it gives up is named.
//!
//! Cost: (2 or 3 + repeats - 1) x folds fits of each kernel, spread over the cores. None begins at a solution that has seen rows of its fold:
//! what one fit finds helps only the same fit at the next C, and kernel values, which know no labels, are shared by all.

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
use crate::model::{FitRequest, Model, Rows, Truncated, Truncation};
use crate::problem::{Gamma, Kernel, KernelFunction, Loss};
use crate::solver::kernel::{KernelStore, SharedRows};
use chances::{Sigmoid, couple, normalize};
use fits::{Field, Fold, Scheme};
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

/// The share of a class beyond which a fit that gives it up has not learnt it.
const MOST_GIVEN_UP: f64 = 0.5;

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

/// Bytes that kernel rows which all fits share may take.
const SHARED_BYTES: usize = 1 << 29;

/// One of the kernels.
struct Member {
    kernel: KernelFunction,
    /// Kernel rows, where they are dear.
    shared: Option<SharedRows>,
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

/// The fits of one kernel in one repeat, and the C they are at.
struct Round<'a> {
    folds: Vec<Fold<'a>>,
    c: f64,
}

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
        let field = Field {
            x: &scaled,
            codes: &codes,
            scheme: Scheme::of(judged.len()),
            loss: self.loss()?,
            seed: self.seed,
            done: AtomicUsize::new(0),
        };
        let members = self.members(&scaled, labels)?;
        let splits: Vec<Folds> = (0..self.repeats).map(|repeat| self.split(labels, repeat)).collect::<Result<_>>()?;
        let first = self.choose(&field, &members, &splits[0], &control)?;
        let chosen: Vec<Chosen> = members
            .iter()
            .zip(&first)
            .map(|(member, (c, verdict))| Chosen { kernel: member.kernel.clone(), c: *c, surprise: verdict.surprise })
            .collect();
        let (rest, model) = rayon::join(
            || self.repeat(&field, &members, &splits[1..], &chosen, &control),
            || self.final_fit(&scaled, labels, &judged, &members, &chosen, &control),
        );
        let mut verdicts: Vec<Vec<Verdict>> = first.into_iter().map(|(_, verdict)| vec![verdict]).collect();
        for (at, verdict) in rest?.into_iter().enumerate() {
            verdicts[at % members.len()].push(verdict);
        }
        let evidence = report::Evidence {
            labels,
            judged: &judged,
            verdicts,
            conflicts: oddities::conflicts(x, labels.codes()),
            far: oddities::far(x, &scaled, &control)?,
            nearly_empty: NEARLY_EMPTY,
        };
        control.check()?;
        let (model, given_up) = model?;
        Ok(evidence.report(chosen, self.loss()?.truncation(), (model, given_up), scaled, self))
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
        let member = |kernel: KernelFunction| {
            let shared = SharedRows::new(scaled.design(), &kernel, SHARED_BYTES);
            Member { kernel, shared }
        };
        let rbf = || Ok(member(Kernel::rbf(self.gamma).resolve(scaled.design(), labels, None)?));
        let linear = member(KernelFunction::Linear);
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

    /// The best C of each kernel on one split, and what is found with it.
    fn choose(
        &self,
        field: &Field,
        members: &[Member],
        split: &Folds,
        control: &Control,
    ) -> Result<Vec<(f64, Verdict)>> {
        let cs = self.cs();
        let mut rounds: Vec<Round> = members.iter().map(|member| self.round(field, member, split, cs[0])).collect();
        let mut best: Vec<Option<(f64, Verdict)>> = members.iter().map(|_| None).collect();
        let mut rising = vec![true; members.len()];
        for (at, &c) in cs.iter().enumerate() {
            let mut live: Vec<(usize, &mut Round)> =
                rounds.iter_mut().enumerate().filter(|(member, _)| rising[*member]).collect();
            live.iter_mut().for_each(|(_, round)| round.c = c);
            let names: Vec<usize> = live.iter().map(|(member, _)| *member).collect();
            let found = run(field, live.into_iter().map(|(_, round)| round), control)?;
            for (member, verdict) in names.into_iter().zip(found) {
                match &best[member] {
                    Some((_, before)) if verdict.surprise >= before.surprise => {
                        rising[member] = false;
                        let left = cs.len() - at - 1;
                        field.report(left * field.scheme.count() * rounds[member].folds.len(), control);
                    }
                    _ => best[member] = Some((c, verdict)),
                }
            }
        }
        Ok(best.into_iter().flatten().collect())
    }

    /// Verdicts by repeat and kernel, each with the C chosen for it.
    fn repeat(
        &self,
        field: &Field,
        members: &[Member],
        splits: &[Folds],
        chosen: &[Chosen],
        control: &Control,
    ) -> Result<Vec<Verdict>> {
        let of_split = |split| members.iter().zip(chosen).map(move |(member, chosen)| (split, member, chosen.c));
        let mut rounds: Vec<Round> =
            splits.iter().flat_map(of_split).map(|(split, member, c)| self.round(field, member, split, c)).collect();
        run(field, rounds.iter_mut(), control)
    }

    fn round<'a>(&self, field: &'a Field<'a>, member: &'a Member, split: &Folds, c: f64) -> Round<'a> {
        let folds = 0..self.folds.min(field.codes.len());
        Round { folds: folds.map(|fold| Fold::new(field, member, split, fold)).collect(), c }
    }

    fn final_method(&self, c: f64, kernel: &KernelFunction) -> Truncated {
        let kernel = kernel.gamma().map_or(Kernel::Linear, Kernel::rbf);
        Truncated::new(c).kernel(kernel).truncation(self.truncation).tol(fits::TOLERANCE).random_state(self.seed)
    }

    /// All classes that can be judged at once, all their rows, with the kernel of the least surprise. Its C was chosen for pairs of classes, where
    /// the loss is cut off further out: where this fit gives up most of a class with it, another of the C that are tried is taken.
    fn final_fit(
        &self,
        scaled: &Scaled,
        labels: &Labels,
        judged: &[u32],
        members: &[Member],
        chosen: &[Chosen],
        control: &Control,
    ) -> Result<(Model, Vec<bool>)> {
        let best = members.iter().zip(chosen).min_by(|a, b| a.1.surprise.total_cmp(&b.1.surprise));
        let (c, kernel) = best.map_or((1.0, &KernelFunction::Linear), |(_, best)| (best.c, &best.kernel));
        let kept: Vec<u32> =
            (0..labels.len() as u32).filter(|&row| judged.contains(&labels.codes()[row as usize])).collect();
        let some = labels.taken(&kept, judged)?;
        let rows = if kept.len() < labels.len() { Some(Rows::copy(scaled.design(), &kept)?) } else { None };
        let x = rows.as_ref().map_or(scaled.design(), Rows::as_design);
        let shared = best.and_then(|(member, _)| member.shared.clone());
        let store = shared.map_or_else(KernelStore::default, |shared| KernelStore::within(shared, kept.clone().into()));
        let stop = || control.check().is_err();
        let control = Control::default().interrupt(&stop);
        let request = FitRequest { control, ..FitRequest::default() };
        let mut found: Option<(f64, Model)> = None;
        let others = self.cs().into_iter().filter(|&other| other != c);
        for c in std::iter::once(c).chain(others) {
            let model = self.final_method(c, kernel).fit_roughly(x, &some, &request, &store)?;
            let lost = most_given_up(&model, &some);
            if found.as_ref().is_none_or(|(least, _)| lost < *least) {
                found = Some((lost, model));
            }
            if lost <= MOST_GIVEN_UP {
                break;
            }
        }
        let (_, model) = found.ok_or_else(|| Error::Numerical { problem: "no fit to all rows".to_string() })?;
        let mut given_up = vec![false; labels.len()];
        let outliers = model.training.iter().flat_map(|training| &training.outliers);
        kept.iter().zip(outliers).for_each(|(&row, &outlier)| given_up[row as usize] = outlier);
        Ok((model, given_up))
    }
}

/// The largest share of a class's rows that a fit gives up.
fn most_given_up(model: &Model, labels: &Labels) -> f64 {
    let Some(training) = &model.training else { return 0.0 };
    let mut lost = vec![0.0; labels.classes().len()];
    labels
        .codes()
        .iter()
        .zip(&training.outliers)
        .for_each(|(&code, &out)| lost[code as usize] += f64::from(u8::from(out)));
    lost.iter().zip(labels.counts()).map(|(lost, count)| lost / count.max(1) as f64).fold(0.0, f64::max)
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

/// Runs all fits of some rounds, spread over the cores, and says what each found.
fn run<'r, 'f: 'r>(
    field: &Field,
    rounds: impl Iterator<Item = &'r mut Round<'f>>,
    control: &Control,
) -> Result<Vec<Verdict>> {
    let mut sizes = Vec::new();
    let mut tasks: Vec<(f64, &mut Fold)> = Vec::new();
    for round in rounds {
        sizes.push(round.folds.len());
        let c = round.c;
        tasks.extend(round.folds.iter_mut().map(|fold| (c, fold)));
    }
    let stop = || control.check().is_err();
    let silent = Control::default().interrupt(&stop);
    let decide = |(c, fold): (f64, &mut Fold)| Ok((fold.held.clone(), fold.decide(c, control, &silent)?));
    let found: Vec<Result<Decided>> = tasks.into_par_iter().with_max_len(1).map(decide).collect();
    let mut found = found.into_iter().collect::<Result<Vec<Decided>>>()?.into_iter();
    Ok(sizes.into_iter().map(|folds| verdict(field, &found.by_ref().take(folds).collect::<Vec<_>>())).collect())
}

/// Rows held out, and the decisions about them.
type Decided = (Vec<u32>, Vec<f32>);

/// What the decisions of all folds say.
fn verdict(field: &Field, folds: &[Decided]) -> Verdict {
    let (n, count) = (field.codes.len(), field.scheme.count());
    let mut decisions = vec![0f32; n * count];
    for (held, found) in folds {
        for (&row, values) in held.iter().zip(found.chunks_exact(count)) {
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
        let loss = Loss::hinge().truncated_at(-1.0).unwrap();
        for (row, kernel) in [(4u32, KernelFunction::Rbf { gamma: 0.5 }), (50, KernelFunction::Linear)] {
            let member = Member { kernel, shared: None };
            let decide = |label: u32| {
                let mut codes = codes.clone();
                codes[row as usize] = Some(label);
                let done = AtomicUsize::new(0);
                let field = Field { x: &scaled, codes: &codes, scheme: Scheme::Pairs(3), loss, seed: 0, done };
                let split: Vec<usize> = (0..90).map(|other| other % 5).collect();
                let mut fold = Fold::new(&field, &member, &split, row as usize % 5);
                let at = fold.held.iter().position(|&other| other == row).unwrap();
                let control = Control::default();
                let found = CS.map(|c| fold.decide(c, &control, &control).unwrap());
                found.into_iter().flat_map(|list| list[3 * at..3 * at + 3].to_vec()).collect::<Vec<f32>>()
            };
            assert_eq!(decide(0), decide(1));
            assert_eq!(decide(1), decide(2));
            assert!(decide(0).iter().any(|value| value.abs() > 0.1));
        }
    }
}

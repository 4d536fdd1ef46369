//! Runs an experiment: units of work over the threads, each on one, kept as they end; then the report.

use crate::costs;
use crate::data::DataFolder;
use crate::experiment::{Experiment, Record, Results, Unit};
use crate::random::Random;
use crate::report::{Report, make_folder};
use crate::store::{Kept, Store};
use cpu_time::ThreadTime;
use outlast::{Control, Error, Progress, Result};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How experiments are run.
#[derive(Debug)]
pub struct Settings {
    /// Replications; `None` for as many as in the paper.
    pub reps: Option<usize>,
    /// The seed all streams come from.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
    /// Where real data are.
    pub data: DataFolder,
    /// Where results go; made if it is not there.
    pub out: PathBuf,
    /// Cuts samples to 60 rows and grids to two values: to see that everything runs. The numbers mean nothing.
    pub small: bool,
}

impl Settings {
    /// The paper's replications, seed 1, no real data, all cores.
    pub fn into_folder(out: impl AsRef<Path>) -> Settings {
        Settings {
            reps: None,
            seed: 1,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            data: DataFolder::default(),
            out: out.as_ref().to_path_buf(),
            small: false,
        }
    }
}

/// How it ended.
#[derive(Debug)]
pub enum Outcome {
    /// All replications are done.
    Finished(Finished),
    /// The caller asked to stop; what is done is kept, and the same call goes on from there.
    Stopped {
        /// Units of work done.
        done: usize,
        /// Units of work in all.
        of: usize,
    },
    /// Every setting needs data that are not there.
    Skipped,
}

/// A finished experiment.
#[derive(Debug)]
pub struct Finished {
    /// What was found.
    pub report: Report,
    /// Files written.
    pub files: Vec<PathBuf>,
    /// Units of work that were run now; the others were kept from before.
    pub ran: usize,
}

/// Units of work an experiment has: replications of the settings whose data are there.
pub fn units(experiment: &dyn Experiment, settings: &Settings) -> usize {
    settings.reps.unwrap_or(experiment.about().reps.count()) * present(experiment, &settings.data, &|_| ()).len()
}

/// Runs an experiment, or what is left of it. `tell` gets messages: data that are missing, results that were moved aside. Progress counts
/// units of work, first those kept from before, as the stage `"kept"`.
pub fn run(experiment: &dyn Experiment, settings: &Settings, control: Control, tell: &dyn Fn(&str)) -> Result<Outcome> {
    let about = experiment.about();
    if settings.reps == Some(0) {
        return Err(Error::parameter("reps", 0, "a whole number >= 1"));
    }
    let reps = settings.reps.unwrap_or(about.reps.count());
    make_folder(&settings.out)?;
    let present = present(experiment, &settings.data, tell);
    if present.is_empty() {
        return Ok(Outcome::Skipped);
    }
    let identity = identity(experiment, settings, &present);
    let store = Store::new(experiment, identity.clone(), &settings.out);
    let (mut kept, why) = store.load()?;
    if let Some(why) = why {
        tell(&format!("{}: {why}; starting anew", about.name));
        costs::forget(&settings.out, about.name)?;
    }
    let all: Vec<(usize, usize)> =
        (0..reps).flat_map(|replication| present.iter().map(move |&setting| (setting, replication))).collect();
    let left: Vec<(usize, usize)> = all.iter().copied().filter(|unit| !kept.contains_key(unit)).collect();
    let before = all.len() - left.len();
    if before > 0 && !left.is_empty() {
        tell(&format!("{}: going on after {before} of {} units of work", about.name, all.len()));
    }
    let crew = Crew { experiment, settings, control, store: &store, left: &left, before };
    if !left.is_empty() && !crew.work(&mut kept)? {
        let done = all.iter().filter(|unit| kept.contains_key(unit)).count();
        return Ok(Outcome::Stopped { done, of: all.len() });
    }
    let results = Results {
        experiment,
        reps,
        seed: settings.seed,
        data: &settings.data,
        control,
        records: &kept,
        small: settings.small,
    };
    let report = match alone(|| experiment.report(&results)) {
        Err(Error::Interrupted) => return Ok(Outcome::Stopped { done: all.len(), of: all.len() }),
        report => report?,
    };
    if !left.is_empty() || !settings.out.join(format!("{}.csv", about.name)).exists() {
        store.finish(&kept)?;
    }
    let mut files = report.write(&results, &identity, &settings.out)?;
    files.push(settings.out.join(format!("{}.csv", about.name)));
    store.close()?;
    Ok(Outcome::Finished(Finished { report, files, ran: left.len() }))
}

/// The settings whose data are there; says which are not.
fn present(experiment: &dyn Experiment, data: &DataFolder, tell: &dyn Fn(&str)) -> Vec<usize> {
    let mut present = Vec::new();
    let mut said = Vec::new();
    for (at, setting) in experiment.settings().iter().enumerate() {
        let missing = setting.data.iter().find(|set| data.file(set).is_none());
        match missing {
            None => present.push(at),
            Some(set) if !said.contains(&set.name) => {
                said.push(set.name);
                tell(&format!(
                    "{}: skipped what needs {}.csv, a public set from {}; name its folder with --data",
                    experiment.about().name,
                    set.name,
                    set.source
                ));
            }
            Some(_) => {}
        }
    }
    present
}

/// What replications must have in common to stand in one file.
fn identity(experiment: &dyn Experiment, settings: &Settings, present: &[usize]) -> Value {
    let all = experiment.settings();
    let mut data = Map::new();
    for set in present.iter().flat_map(|&at| all[at].data) {
        if !data.contains_key(set.name) {
            data.insert(set.name.to_string(), json!(settings.data.fingerprint(set)));
        }
    }
    let mut identity = json!({
        "name": experiment.about().name,
        "seed": settings.seed,
        "small": settings.small,
        "version": env!("CARGO_PKG_VERSION"),
        "columns": [experiment.labels(), experiment.values()],
        "settings": all.iter().map(|setting| setting.name.as_str()).collect::<Vec<_>>(),
        "data": data,
    });
    if experiment.about().revision > 1 {
        identity["revision"] = json!(experiment.about().revision);
    }
    identity
}

/// Those who work on the units that are left.
struct Crew<'a> {
    experiment: &'a dyn Experiment,
    settings: &'a Settings,
    control: Control<'a>,
    store: &'a Store<'a>,
    left: &'a [(usize, usize)],
    before: usize,
}

impl Crew<'_> {
    /// Runs all units; false when asked to stop before the end.
    fn work(&self, kept: &mut Kept) -> Result<bool> {
        let journal = Mutex::new(self.store.open(kept)?);
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let spent = Mutex::new(0.0);
        let over = AtomicBool::new(false);
        let failure = Mutex::new(None);
        self.report("kept", self.before);
        let member = || {
            while !over.load(Ordering::SeqCst) {
                let Some(&unit) = self.left.get(next.fetch_add(1, Ordering::SeqCst)) else { break };
                let start = ThreadTime::now();
                let outcome = self.one(unit, &over).and_then(|records| {
                    *spent.lock().unwrap_or_else(PoisonError::into_inner) += start.elapsed().as_secs_f64();
                    let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
                    journal.append(&self.store.closed(unit, &records))?;
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.push((unit, records));
                    self.report(self.experiment.about().name, self.before + done.len());
                    Ok(())
                });
                if let Err(error) = outcome {
                    over.store(true, Ordering::SeqCst);
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.settings.threads.clamp(1, self.left.len().max(1)) {
                scope.spawn(|| alone(member));
            }
        });
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let spent = spent.into_inner().unwrap_or_else(PoisonError::into_inner);
        costs::add(&self.settings.out, self.experiment.about().name, done.len(), spent)?;
        kept.extend(done);
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(true),
            Some(Error::Interrupted) => Ok(false),
            Some(error) => Err(error),
        }
    }

    fn one(&self, (setting, replication): (usize, usize), over: &AtomicBool) -> Result<Vec<Record>> {
        let stop = || self.control.check().is_err() || over.load(Ordering::SeqCst);
        let control = Control::default().interrupt(&stop);
        control.check()?;
        let random = Random::of(self.experiment.about().name, self.settings.seed, setting, replication);
        let (data, small) = (&self.settings.data, self.settings.small);
        let records = self.experiment.replicate(Unit { setting, replication, random, data, control, small })?;
        // some searches end with the best so far when they are stopped, which is no result
        control.check()?;
        Ok(records)
    }

    fn report(&self, stage: &'static str, step: usize) {
        self.control.report(Progress { stage, step, objective: f64::NAN, gap: f64::NAN });
    }
}

/// Runs work in a pool of one thread, so that fits inside share no thread with other units.
fn alone<T: Send>(work: impl Fn() -> T + Send + Sync) -> T {
    match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

//! Fits, predicts, writes and reads models without end, and watches memory and speed: `make soak MINUTES=10`.
//!
//! Ends with code 1 if resident memory grows after the first tenth of the time, or if the last third does fewer rounds than the first.

use outlast::data::{Chunk, Parts};
use outlast::io::{ReadOptions, model_from_bytes, model_to_bytes, read_from};
use outlast::model::StreamRequest;
use outlast::solver::stream::MOST_SENT;
use outlast::{
    Ablation, Capped, Centroid, Control, Dense, Estimator, FitRequest, Kernel, Labels, LeaveOneOut, Loss, Lq, Penalty,
    Truncated,
};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How much more memory the end may have than the first tenth, and how much slower the last third may be than the first.
const GROWTH: f64 = 1.05;
const SLOWER: f64 = 0.85;

struct Random(u64);

impl Random {
    /// In [-1, 1).
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as f64 / f64::from(1u32 << 30) - 1.0
    }
}

/// Resident memory in MB, 0 where the system does not tell.
fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0
}

fn methods() -> Vec<Box<dyn Estimator>> {
    let linear = || Truncated::new(1.0).kernel(Kernel::Linear);
    vec![
        Box::new(Truncated::new(1.0)),
        Box::new(linear()),
        Box::new(linear().penalty(Penalty::L1)),
        Box::new(linear().loss(Loss::logistic())),
        Box::new(Truncated::new(1.0).loss(Loss::exponential())),
        Box::new(Capped::new(1.0)),
        Box::new(Capped::new(1.0).kernel(Kernel::rbf(0.5))),
        Box::new(Lq::new(1.0).q(0.5)),
        Box::new(Lq::new(1.0).q(1.5)),
        Box::new(Ablation::reh(0.1)),
        Box::new(Centroid::new(1.0)),
        Box::new(LeaveOneOut::new()),
    ]
}

/// One fit of each method to the same rows, with all that follows a fit.
fn round(random: &mut Random, methods: &[Box<dyn Estimator>]) -> outlast::Result<()> {
    let (n, d, k) = (120, 6, 2 + (random.0 >> 60) as u32 % 2);
    let values: Vec<f64> = (0..n * d).map(|_| random.next()).collect();
    let codes: Vec<u32> = (0..n as u32).map(|row| row % k).collect();
    let shifted: Vec<f64> = values.iter().enumerate().map(|(at, v)| v + 0.4 * f64::from(codes[at / d])).collect();
    let (x, labels) = (Dense::new(n, d, &shifted[..])?, Labels::new(codes.clone()));
    for method in methods {
        let model = method.fit_labels(&x, &labels, &FitRequest::default())?;
        let again = model_from_bytes(&model_to_bytes(&model)?)?;
        assert_eq!(again.predict_codes(&x)?, model.predict_codes(&x)?);
    }
    let part = Chunk { x: shifted.iter().map(|&v| v as f32).collect(), codes, ..Chunk::default() };
    let request = StreamRequest {
        classes: labels.classes(),
        feature_names: None,
        memory: 1 << 26,
        sums: MOST_SENT,
        control: Control::default(),
    };
    Truncated::new(1.0).kernel(Kernel::Linear).fit_chunks(&mut Parts::new(d, vec![part]), &request)?;
    let text: String = shifted.chunks(d).map(|row| format!("{},{},a\n", row[0], row[1])).collect();
    read_from(text.as_bytes(), "soak.csv", &ReadOptions::default())?;
    Ok(())
}

fn main() -> ExitCode {
    let minutes: f64 = std::env::args().nth(1).map_or(10.0, |text| text.parse().expect("minutes"));
    let (length, began) = (Duration::from_secs_f64(60.0 * minutes), Instant::now());
    let mut random = Random(1);
    let methods = methods();
    // rounds and memory at the end of each thirtieth of the time
    let mut marks = Vec::new();
    let mut rounds = 0usize;
    while began.elapsed() < length {
        round(&mut random, &methods).expect("every fit ends well");
        rounds += 1;
        if began.elapsed().as_secs_f64() >= length.as_secs_f64() * (marks.len() + 1) as f64 / 30.0 {
            marks.push((rounds, resident()));
            println!("{:6.0} s  {rounds:7} rounds  {:7.1} MB", began.elapsed().as_secs_f64(), resident());
        }
    }
    let [first, third, two_thirds, last] = [2, 9, 19, marks.len() - 1].map(|at| marks[at.min(marks.len() - 1)]);
    let (early, late) = (third.0 as f64, (last.0 - two_thirds.0) as f64);
    println!(
        "{} fits; {:.1} MB early, {:.1} MB at the end; {early} rounds in the first third, {late} in the last",
        13 * rounds,
        first.1,
        last.1
    );
    let flat = last.1 <= GROWTH * first.1 + 1.0;
    let steady = late >= SLOWER * early;
    if flat && steady { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

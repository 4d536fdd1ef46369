//! profiling
use outlast::problem::TwoClass;
use outlast::solver::{Options, linear};
use outlast::{Control, Dense, KernelFunction, Loss};
use std::io::Read;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (n, d): (usize, usize) = (a[2].parse().unwrap(), a[3].parse().unwrap());
    let c: f64 = a[4].parse().unwrap();
    let tol: f64 = a[5].parse().unwrap();
    let mut raw = Vec::new();
    std::fs::File::open(&a[1]).unwrap().read_to_end(&mut raw).unwrap();
    let v: Vec<f64> = raw.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect();
    let y = v[n * d..n * d + n].to_vec();
    let x = Dense::new(n, d, v[..n * d].to_vec()).unwrap();
    drop(v);
    let caps = vec![c; n];
    if a.len() > 6 { linear::TRACE.store(true, std::sync::atomic::Ordering::Relaxed); }
    for loss in [Loss::hinge(), Loss::hinge().truncated_at(-1.0).unwrap()] {
        for _ in 0..if a.len() > 6 { 1 } else { 3 } {
            let p = TwoClass { x: &x, signs: &y, caps: &caps, loss, kernel: &KernelFunction::Linear, intercept: true };
            let t = std::time::Instant::now();
            let s = linear::solve(&p, &Options { tolerance: tol, ..Options::default() }, &Control::default()).unwrap();
            println!("{} {:.1} ms P {:.6} gap {:.2e} {} it {} trace {} T {}", if loss.truncation().is_some() {"robust"} else {"plain"}, t.elapsed().as_secs_f64() * 1e3, s.objective, s.gap, s.status, s.iterations, s.trace.len(), s.truncated.iter().filter(|t| **t).count());
        }
    }
}

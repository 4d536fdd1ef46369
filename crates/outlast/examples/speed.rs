//! Scratch timing.
use outlast::*;
use std::time::Instant;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let bytes = std::fs::read(&args[1]).unwrap();
    let v: Vec<f64> = bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect();
    let (n, d) = (v[0] as usize, v[1] as usize);
    let x = Dense::new(n, d, v[2..2 + n * d].to_vec()).unwrap();
    let y: Vec<i32> = v[2 + n * d..].iter().map(|v| *v as i32).collect();
    let c: f64 = args[2].parse().unwrap();
    let kernel = if args[3] == "linear" { Kernel::Linear } else { Kernel::rbf(Gamma::Scale) };
    let tol: f64 = args.get(4).map_or(1e-4, |t| t.parse().unwrap());
    let report = |p: Progress| {
        if std::env::var("V").is_ok() {
            eprintln!("{p:?}")
        }
    };
    for t in [Truncation::Off, Truncation::Auto] {
        let start = Instant::now();
        let request = FitRequest { control: Control::default().progress(&report), ..Default::default() };
        let m = Truncated::new(c).kernel(kernel.clone()).truncation(t).tol(tol).fit_with(&x, &y, &request).unwrap();
        let time = start.elapsed().as_secs_f64();
        println!(
            "{t:?} {time:.3}s obj {:.6} gap {:.2e} sv {} out {} trace {} it {} {:?} {}",
            m.summary.objective,
            m.summary.gap,
            m.support_count(),
            m.summary.outliers,
            m.summary.trace.len(),
            m.summary.iterations,
            m.summary.status,
            m.summary.solver
        );
    }
}

//! Block coordinate descent for many classes: against Clarabel, the two-class solver, the judge, and itself in other clothes.

use crate::many_class_data::{
    Random, candidate, check_honest, clarabel_objective, close, clouds, pick, problem, sparse,
};
use outlast::problem::{ManyClass, Norm, Terms, TwoClass};
use outlast::solver::{Options, Solution, Start, coordinate};
use outlast::{Control, Csr, Dense, Design, KernelFunction, Loss};

const TOLERANCE: f64 = 1e-8;
const AGREES: f64 = 1e-6;

fn own<'a>(x: &'a dyn Design, codes: &'a [u32], k: usize, caps: &'a [f64], loss: Loss) -> ManyClass<'a> {
    problem(x, codes, k, caps, loss, &KernelFunction::Linear)
}

fn solve_from(problem: &ManyClass, start: Option<Start>) -> Solution {
    let options = Options { tolerance: TOLERANCE, start, ..Options::default() };
    let solution = coordinate::solve_many(problem, &options, &Control::default()).unwrap();
    check_honest(problem, &solution, TOLERANCE);
    assert!(solution.status.is_converged(), "{} {}", solution.status, solution.gap);
    solution
}

fn solve(problem: &ManyClass) -> Solution {
    solve_from(problem, None)
}

#[test]
fn objectives_match_clarabel() {
    for k in 2..=5 {
        for (n, d, zeros) in [(40, 3, 0.0), (30, 60, 0.8)] {
            let (x, codes) = clouds(n, d, k, zeros, 10 + k as u64);
            let compressed = sparse(&x);
            for c in [1e-2, 1.0, 30.0] {
                for intercept in [true, false] {
                    let caps: Vec<f64> = (0..n).map(|row| c * (row % 4) as f64).collect();
                    let many = ManyClass { intercept, ..own(&x, &codes, k, &caps, Loss::hinge()) };
                    let expected = clarabel_objective(&many, &x, &many.untruncated());
                    for x in [&x as &dyn Design, &compressed] {
                        let found = solve(&ManyClass { x, ..many });
                        assert!(close(found.objective, expected, AGREES), "{} vs {expected}", found.objective);
                    }
                }
            }
        }
    }
}

#[test]
fn two_classes_are_the_two_class_problem() {
    let (x, codes) = clouds(60, 8, 2, 0.3, 3);
    let signs: Vec<f64> = codes.iter().map(|&code| if code == 0 { 1.0 } else { -1.0 }).collect();
    for c in [1e-2, 1.0] {
        let (caps, double) = (vec![c; 60], vec![2.0 * c; 60]);
        let many = solve(&own(&x, &codes, 2, &caps, Loss::hinge()));
        let two = TwoClass {
            norm: Norm::Squared,
            x: &x,
            signs: &signs,
            caps: &double,
            loss: Loss::hinge(),
            kernel: &KernelFunction::Linear,
            intercept: true,
        };
        let options = Options { tolerance: TOLERANCE, ..Options::default() };
        let two = coordinate::solve(&two, &options, &Control::default()).unwrap();
        assert!(close(2.0 * many.objective, two.objective, AGREES));
    }
}

#[test]
fn truncated_solutions_are_critical_points_below_the_start() {
    for seed in 0..4 {
        let k = 3 + seed as usize % 2;
        let (x, codes) = clouds(60, 4, k, 0.0, 50 + seed);
        let caps = vec![[0.05, 1.0][seed as usize % 2]; 60];
        let truncation = -0.5;
        let loss = Loss::hinge().truncated_at(truncation).unwrap();
        let robust = own(&x, &codes, k, &caps, loss);
        let plain = solve(&own(&x, &codes, k, &caps, Loss::hinge()));
        let found = solve(&robust);
        let start = robust.objective(&candidate(&plain));
        assert!(found.objective <= start * (1.0 + AGREES));
        let bound = robust.majorant(&found.decision, None);
        let flat: f64 = (0..60).filter(|&row| !bound.kept[row]).map(|row| caps[row] * (1.0 - truncation)).sum();
        let value = clarabel_objective(&robust, &x, &bound) + flat;
        assert!(found.objective <= value + AGREES * found.objective, "{} {value}", found.objective);
    }
}

#[test]
fn copies_and_names_and_warm_starts_do_not_matter() {
    let k = 3;
    let (x, codes) = clouds(50, 8, k, 0.5, 8);
    let caps: Vec<f64> = (0..50).map(|row| [0.0, 1.0, 2.0][row % 3]).collect();
    let rows: Vec<usize> = (0..50).flat_map(|row| vec![row; row % 3]).collect();
    let copied = pick(&x, &rows);
    let copied_codes: Vec<u32> = rows.iter().map(|&row| codes[row]).collect();
    let ones = vec![1.0; rows.len()];
    let renamed: Vec<u32> = codes.iter().map(|code| (code + 1) % 3).collect();
    let weighted = solve(&own(&x, &codes, k, &caps, Loss::hinge()));
    let near: Vec<f64> = caps.iter().map(|cap| 1.1 * cap).collect();
    let start = solve(&own(&x, &codes, k, &near, Loss::hinge()));
    let start = Start { expansion: start.expansion, weights: start.weights, intercepts: start.intercepts };
    let others = [
        solve(&own(&copied, &copied_codes, k, &ones, Loss::hinge())),
        solve(&own(&x, &renamed, k, &caps, Loss::hinge())),
        solve_from(&own(&x, &codes, k, &caps, Loss::hinge()), Some(start)),
    ];
    for other in &others {
        assert!(close(weighted.objective, other.objective, AGREES));
    }
    for (a, b) in weighted.decision.chunks(k).zip(others[1].decision.chunks(k)) {
        (0..k).for_each(|class| assert!((a[class] - b[(class + 1) % k]).abs() <= 1e-2, "{a:?} {b:?}"));
    }
}

#[test]
fn a_million_columns_and_many_classes() {
    let (n, d, k) = (300, 1_000_000, 20);
    let mut random = Random(5);
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    let codes: Vec<u32> = (0..n).map(|row| (row % k) as u32).collect();
    for &code in &codes {
        // a few columns of the class's own among many of no meaning
        let mut row: Vec<u32> = (0..20).map(|_| (random.uniform() * d as f64) as u32).collect();
        row.extend((0..3).map(|_| code * 5 + (5.0 * random.uniform()) as u32));
        row.sort_unstable();
        row.dedup();
        values.extend(row.iter().map(|_| 1.0 + 0.1 * random.normal()));
        columns.extend(row);
        starts.push(values.len());
    }
    let x = Csr::new(n, d, starts, columns, values).unwrap();
    let caps = vec![1.0; n];
    let options = Options { tolerance: 1e-4, ..Options::default() };
    let hinge = own(&x, &codes, k, &caps, Loss::hinge());
    let found = coordinate::solve_many(&hinge, &options, &Control::default()).unwrap();
    check_honest(&hinge, &found, 1e-4);
    assert!(found.status.is_converged(), "{} {}", found.status, found.gap);
}

#[test]
fn hostile_data_end_with_an_honest_status() {
    let options = Options { tolerance: 1e-6, max_iterations: 2000, ..Options::default() };
    let run = |x: &dyn Design, codes: &[u32], k: usize, caps: &[f64]| {
        for loss in [Loss::hinge(), Loss::hinge().truncated_at(-0.5).unwrap()] {
            for intercept in [true, false] {
                let hostile = ManyClass { intercept, ..own(x, codes, k, caps, loss) };
                let found = coordinate::solve_many(&hostile, &options, &Control::default()).unwrap();
                check_honest(&hostile, &found, 1e-6);
            }
        }
    };
    let (x, codes) = clouds(30, 3, 4, 0.0, 31);
    let scaled = |factor: f64| {
        let values: Vec<f64> = x.values().iter().map(|value| value * factor).collect();
        Dense::new(30, 3, values).unwrap()
    };
    for c in [0.0, 1e-300, 1e-10, 1.0, 1e10] {
        run(&x, &codes, 4, &[c; 30]);
    }
    for factor in [1e-300, 1e-150, 1e-8, 1e8, 1e150, 1e300] {
        run(&scaled(factor), &codes, 4, &[1.0; 30]);
    }
    let constant = Dense::from_rows(&[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]);
    let empty = Csr::<f64>::new(3, 4, vec![0, 0, 0, 0], vec![], vec![]).unwrap();
    for c in [1e-6, 1.0, 1e10] {
        run(&constant, &[0, 1, 2, 0], 3, &[c; 4]);
        run(&constant, &[0, 1, 2, 0], 7, &[c; 4]);
        run(&Dense::from_rows(&[[1.0, 2.0]]), &[1], 3, &[c]);
        run(&empty, &[0, 2, 2], 3, &[c; 3]);
    }
}

#[test]
fn what_it_cannot_take_is_refused_by_name() {
    let (x, codes) = clouds(20, 2, 3, 0.0, 1);
    let (caps, factors, rates) = (vec![1.0; 20], vec![1.0; 9], vec![1.0; 6]);
    let hinge = own(&x, &codes, 3, &caps, Loss::hinge());
    let kernel = KernelFunction::Rbf { gamma: 1.0 };
    let wrong = [
        ManyClass { kernel: &kernel, ..hinge },
        ManyClass { loss: Loss::logistic(), ..hinge },
        ManyClass { terms: Terms::Utility(&factors), ..hinge },
        ManyClass { norm: Norm::Absolute(&rates), ..hinge },
    ];
    for wrong in &wrong {
        let error = coordinate::solve_many(wrong, &Options::default(), &Control::default()).unwrap_err();
        assert!(error.to_string().contains("linear-dcd"), "{error}");
    }
}

//! Units, centres, and numbers at the ends of floating point.

use crate::common::relative;
use crate::lq_data::{AGREEMENT, Data, independent};
use outlast::data::Design;
use outlast::{Csr, Dense, Lq, Model, Status};

/// A gap that rounding leaves to all of q and C below.
const ATTAINABLE: f64 = 1e-5;

fn fit(data: &Data, lq: &Lq) -> Model {
    lq.fit(&data.dense(), &data.codes[..]).unwrap()
}

/// X in another unit for each column.
fn scaled(data: &Data, by: impl Fn(usize) -> f64) -> Dense<'static> {
    let values = data.values.iter().enumerate().map(|(at, x)| x * by(at % data.d));
    Dense::new(data.n, data.d, values.collect::<Vec<_>>()).unwrap()
}

/// X t with C / t^q is the same problem in another unit: objectives are in the ratio t^q.
#[test]
fn units_do_not_matter() {
    for k in [2, 3] {
        let data = Data::new(80, 6, k, 1.0, 121);
        for q in [1.05, 1.3, 1.7, 2.0] {
            for c in [1e-2, 1.0, 1e3, 1e6] {
                let plain = fit(&data, &Lq::new(c).q(q).tol(ATTAINABLE));
                assert_eq!(plain.summary.status, Status::Converged, "k {k} q {q} C {c}: gap {}", plain.summary.gap);
                for t in [1e-4, 1e4, 1e20] {
                    let values: Vec<f64> = data.values.iter().map(|x| x * t).collect();
                    let x = Dense::new(80, 6, values).unwrap();
                    let model = Lq::new(c * t.powf(-q)).q(q).tol(ATTAINABLE).fit(&x, &data.codes[..]).unwrap();
                    let objective = model.summary.objective * t.powf(q);
                    assert!(
                        relative(objective, plain.summary.objective) < 10.0 * AGREEMENT,
                        "k {k} q {q} C {c} t {t}: {objective} {}, gap {}",
                        plain.summary.objective,
                        model.summary.gap
                    );
                }
            }
        }
    }
}

/// Where columns are huge the penalty is next to nothing, and the least loss is all that is left: a linear program.
#[test]
fn huge_columns_leave_the_loss() {
    for k in [2, 3] {
        let strong = 1e7;
        let data = Data::new(60, 3, k, strong, 131);
        let x = data.dense();
        let least = independent(&data.problem(&x, 1.0, true)) / strong;
        assert!(least > 1.0, "the classes overlap");
        for t in [1e20, 1e100, 1e200, 1e300] {
            let x = scaled(&data, |_| t);
            for q in [0.5, 1.0, 1.02, 1.5, 2.0] {
                let model = Lq::new(1.0).q(q).fit(&x, &data.codes[..]).unwrap();
                let (found, gap) = (model.summary.objective, model.summary.gap);
                // the penalty of 1e20^0.5 columns is 1e-10 of what it is for columns of 1
                assert!(relative(found, least) < 3.0 * AGREEMENT, "k {k} t {t} q {q}: {found} {least}, gap {gap}");
                assert_eq!(model.summary.status, Status::Converged, "k {k} t {t} q {q}: gap {gap}");
            }
        }
    }
}

/// A huge column beside others costs nothing, and takes nothing from what the others cost.
#[test]
fn columns_of_all_sizes_side_by_side() {
    for k in [2, 3] {
        let data = Data::new(60, 4, k, 1.0, 133);
        for q in [1.0, 1.5, 2.0] {
            let lq = Lq::new(1.0).q(q);
            let large = lq.fit(&scaled(&data, |column| [1e9, 1.0, 1.0, 1e-9][column]), &data.codes[..]).unwrap();
            for (most, least) in [(1e50, 1e-50), (1e150, 1e-150), (1e300, 1e-300)] {
                let x = scaled(&data, |column| [most, 1.0, 1.0, least][column]);
                let huge = lq.fit(&x, &data.codes[..]).unwrap();
                let (a, b) = (huge.summary.objective, large.summary.objective);
                assert!(relative(a, b) < 10.0 * AGREEMENT, "k {k} q {q} {most}: {a} {b}");
                // with three functions rounding may keep X'V from a certificate, which is then told
                let told = huge.summary.status == Status::Converged || (k, q) == (3, 2.0);
                assert!(told, "k {k} q {q} {most}: gap {}", huge.summary.gap);
            }
        }
    }
}

/// Next to nothing in X leaves the intercept.
#[test]
fn tiny_columns_leave_the_intercept() {
    for k in [2, 3] {
        let data = Data::new(60, 3, k, 1.0, 131);
        let zeros = Dense::new(60, 1, vec![0.0; 60]).unwrap();
        let nothing = Lq::new(1.0).fit(&zeros, &data.codes[..]).unwrap().summary.objective;
        for t in [1e-20, 1e-100, 1e-300] {
            for q in [0.5, 1.0, 1.02, 1.5, 2.0] {
                let tiny = Lq::new(1.0).q(q).fit(&scaled(&data, |_| t), &data.codes[..]).unwrap();
                assert_eq!(tiny.summary.status, Status::Converged, "k {k} q {q} t {t}: gap {}", tiny.summary.gap);
                let found = tiny.summary.objective;
                assert!(relative(found, nothing) < AGREEMENT, "k {k} q {q} t {t}: {found} {nothing}");
            }
        }
    }
}

/// A C beyond what the penalty can answer, near q = 1, where the conjugate is steepest.
#[test]
fn a_huge_c_is_certified_or_told() {
    for q in [1.02, 1.5, 2.0] {
        for (c, t) in [(1e10, 1e4), (1e12, 1.0), (1e8, 1e4)] {
            let data = Data::new(60, 4, 2, 1e7, 135);
            let x = data.dense();
            let least = independent(&data.problem(&x, 1.0, true)) / 1e7 * c;
            let model = Lq::new(c).q(q).fit(&scaled(&data, |_| t), &data.codes[..]).unwrap();
            let far = relative(model.summary.objective, least);
            let told = if model.summary.status == Status::Converged { 3.0 * AGREEMENT } else { model.summary.gap };
            assert!(far < told, "q {q} C {c} t {t}: {far}, {:?}", model.summary.status);
        }
    }
}

/// Most columns of sparse X may be empty, on paths as well.
#[test]
fn empty_columns_cost_nothing() {
    let data = Data::new(40, 3, 2, 1.0, 137);
    let places = [7u32, 400_000, 999_999];
    let starts: Vec<usize> = (0..=40).map(|row| 3 * row).collect();
    let columns: Vec<u32> = (0..120).map(|at| places[at % 3]).collect();
    let x = Csr::new(40, 1_000_000, starts, columns, data.values.clone()).unwrap();
    for q in [0.5, 1.0, 1.5, 2.0] {
        let lq = Lq::new(1.0).q(q).tol(1e-8);
        let (few, many) = (fit(&data, &lq), lq.fit(&x, &data.codes[..]).unwrap());
        assert!(relative(many.summary.objective, few.summary.objective) < AGREEMENT, "q {q}");
        assert!(many.selected().unwrap().iter().all(|&column| places.contains(&(column as u32))));
        let path = lq.path(&x, &data.codes[..], &[0.1, 1.0]).unwrap();
        assert!(path[1].selected().unwrap().iter().all(|&column| places.contains(&(column as u32))));
        assert!(!path[1].selected().unwrap().is_empty());
    }
    let beyond = Csr::new(2, usize::MAX / 64, vec![0, 1, 2], vec![0, 0], vec![1.0, -1.0]).unwrap();
    let told = Lq::new(1.0).fit(&beyond, &[0u32, 1][..]).unwrap_err().to_string();
    assert!(told.contains("at most 4294967295"), "{told}");
}

/// b is free: what is added to a column changes nothing.
#[test]
fn columns_far_from_zero_are_as_good() {
    for k in [2, 3] {
        let data = Data::new(80, 5, k, 1.0, 141);
        for q in [0.5, 1.0, 1.5, 2.0] {
            let lq = Lq::new(1.0).q(q);
            let plain = fit(&data, &lq);
            for by in [1e3, 1e8] {
                let far =
                    Data { values: data.values.iter().map(|x| x + by).collect(), ..Data::new(80, 5, k, 1.0, 141) };
                for x in [&far.dense() as &dyn Design, &far.sparse()] {
                    let model = lq.fit(x, &data.codes[..]).unwrap();
                    assert_eq!(
                        model.summary.status,
                        Status::Converged,
                        "k {k} q {q} + {by}: gap {}",
                        model.summary.gap
                    );
                    // values were rounded to 1e8 of their last digits
                    let ratio = relative(model.summary.objective, plain.summary.objective);
                    assert!(ratio < 1e-5, "k {k} q {q} + {by}: {ratio}");
                    let decided = model.predict_codes(x).unwrap();
                    let same = plain.predict_codes(&data.dense()).unwrap();
                    assert!(decided.iter().zip(&same).filter(|(a, b)| a != b).count() <= 1);
                }
                let path = lq.path(&far.dense(), &data.codes[..], &[0.3, 1.0]).unwrap();
                assert!(relative(path[1].summary.objective, plain.summary.objective) < 1e-2);
            }
        }
    }
}

/// The intercept does what a constant column could do, for nothing.
#[test]
fn constant_columns_are_not_selected() {
    for k in [2, 3] {
        let data = Data::new(60, 3, k, 1.0, 137);
        let plain = data.dense();
        for constant in [1.0, -3.0, 1e6] {
            let values: Vec<f64> = data.values.chunks(3).flat_map(|x| [x[0], constant, x[1], x[2]]).collect();
            let x = Dense::new(data.n, 4, values).unwrap();
            for q in [0.5, 1.0, 1.3, 2.0] {
                let lq = Lq::new(1.0).q(q);
                let (with, without) = (lq.fit(&x, &data.codes[..]).unwrap(), lq.fit(&plain, &data.codes[..]).unwrap());
                let coefficients = with.predictor.weights().unwrap();
                let of_constant: Vec<f64> = coefficients.iter().skip(1).step_by(4).copied().collect();
                assert!(of_constant.iter().all(|w| *w == 0.0), "k {k} q {q} constant {constant}: {of_constant:?}");
                assert!(coefficients.iter().any(|w| *w != 0.0), "k {k} q {q}: nothing is left");
                let (a, b) = (with.summary.objective, without.summary.objective);
                assert!(relative(a, b) < 1e-4, "k {k} q {q} constant {constant}: {a} {b}");
            }
        }
    }
}

//! The same fit again: the same bits on one thread; on several, the objective to the tolerance asked for, and for the L_q machine the
//! same bits.

use crate::common::{Data, relative};
use crate::lq_data;
use outlast::io::model_to_bytes;
use outlast::{
    Ablation, Capped, Centroid, Design, Estimator, FitRequest, Inliers, Kernel, Labels, LeaveOneOut, Loss, Lq, Model,
    Penalty, Probability, Truncated, Truncation,
};

fn methods() -> Vec<(&'static str, usize, Box<dyn Estimator>)> {
    let linear = || Truncated::new(1.0).kernel(Kernel::Linear);
    vec![
        ("truncated rbf", 1500, Box::new(Truncated::new(1.0))),
        ("plain rbf", 1500, Box::new(Truncated::new(1.0).truncation(Truncation::Off))),
        ("truncated linear", 4000, Box::new(linear())),
        ("plain linear", 4000, Box::new(linear().truncation(Truncation::Off))),
        ("coordinate descent", 1500, Box::new(linear().truncation(Truncation::Off).solver("linear-dcd"))),
        ("logistic", 1500, Box::new(linear().loss(Loss::logistic()).truncation(Truncation::Off))),
        ("logistic rbf", 400, Box::new(Truncated::new(1.0).loss(Loss::logistic()).truncation(Truncation::Off))),
        ("l1", 1500, Box::new(linear().penalty(Penalty::L1).truncation(Truncation::Off))),
        ("probabilities", 300, Box::new(linear().probability(Probability::Weighted))),
        ("capped", 1500, Box::new(Capped::new(1.0))),
        ("lq 1", 1500, Box::new(Lq::new(1.0))),
        ("lq 0.5", 500, Box::new(Lq::new(1.0).q(0.5))),
        ("reh", 400, Box::new(Ablation::reh(0.1))),
        ("rod", 300, Box::new(Ablation::rod(0.1).inlier_fraction(Inliers::Given(0.9)))),
        ("centroid", 500, Box::new(Centroid::new(1.0))),
        ("loo", 150, Box::new(LeaveOneOut::new())),
    ]
}

fn fit(method: &dyn Estimator, rows: usize) -> Model {
    let data = Data::noisy(rows, 6, 0.1, 31);
    method.fit_labels(&data.dense(), &Labels::new(data.labels()), &FitRequest::default()).unwrap()
}

#[test]
fn one_thread_gives_the_same_bits_again_and_several_the_same_objective() {
    for (name, rows, mut method) in methods() {
        method.common_mut().threads = Some(1);
        let (one, again) = (fit(&*method, rows), fit(&*method, rows));
        assert_eq!(model_to_bytes(&one).unwrap(), model_to_bytes(&again).unwrap(), "{name}");
        assert_eq!(one.training, again.training, "{name}");
        method.common_mut().threads = Some(3);
        let several = fit(&*method, rows);
        let difference = relative(several.summary.objective, one.summary.objective);
        // both lie within the tolerance of the same minimum
        assert!(difference <= one.summary.tol, "{name}: objectives differ by {difference:e} on three threads");
    }
}

/// Its sums are cut by their size, where there is enough to share: wide and tall, dense and sparse, two classes and three.
#[test]
fn the_l_q_machine_gives_the_same_bits_on_any_number_of_threads() {
    for (n, d, k, qs) in
        [(500, 400, 2, &[0.5, 1.0, 1.5][..]), (250, 300, 3, &[0.5, 1.5]), (8000, 20, 2, &[0.5, 1.0, 1.5])]
    {
        let data = lq_data::Data::new(n, d, k, 1.0, 17);
        let (dense, sparse) = (data.dense(), data.sparse());
        for (x, q) in [&dense as &dyn Design, &sparse].iter().flat_map(|x| qs.iter().map(move |q| (*x, *q))) {
            let fit = |threads: usize| Lq::new(0.05).q(q).threads(threads).fit(x, &data.codes[..]).unwrap();
            let one = fit(1);
            assert!(one.predictor.weights().unwrap().iter().any(|w| *w != 0.0));
            for threads in [2, 3] {
                let other = fit(threads);
                let what = format!("{n} x {d}, q {q}, sparse {}, {threads} threads", x.is_sparse());
                assert_eq!(one.predictor.weights(), other.predictor.weights(), "{what}");
                assert_eq!(one.predictor.intercepts, other.predictor.intercepts, "{what}");
                assert_eq!(one.summary.trace, other.summary.trace, "{what}");
                assert_eq!(one.training, other.training, "{what}");
            }
        }
    }
}

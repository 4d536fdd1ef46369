"""Probabilities from a family of weighted fits, on data whose true probabilities are known."""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import outlast
from outlast import TruncatedSVC

NOISE = 0.01
"""What two mean absolute errors over 4,000 rows may differ by without a meaning."""


def logistic(n, rng):
    X = rng.uniform(-2, 2, (n, 2))
    p = 1 / (1 + np.exp(-1.5 * X[:, 0] + X[:, 1]))
    return X, np.c_[1 - p, p]


def stairs(n, rng):
    """No sigmoid of any score: three levels."""
    X = rng.uniform(-2, 2, (n, 2))
    p = np.choose(np.digitize(X[:, 0] + 0.5 * X[:, 1], [-1.0, 1.0]), [0.1, 0.65, 0.9])
    return X, np.c_[1 - p, p]


def three(n, rng):
    X = rng.uniform(-2, 2, (n, 2))
    scores = np.exp(X @ np.array([[1.5, 0.0], [-0.75, 1.3], [-0.75, -1.3]]).T)
    return X, scores / scores.sum(axis=1, keepdims=True)


def draw(p, rng):
    return (rng.uniform(size=(len(p), 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)


def error(model, X, p):
    return np.abs(model.predict_proba(X) - p).mean()


@pytest.mark.parametrize(
    ("truth", "parameters", "bound"),
    [
        (logistic, {"kernel": "linear"}, 0.04),
        (stairs, {"gamma": 1.0}, 0.075),
        (three, {"kernel": "linear"}, 0.05),
        (three, {"gamma": 0.5}, 0.06),
    ],
)
def test_estimates_are_near_the_truth(truth, parameters, bound):
    rng = np.random.default_rng(0)
    X, p = truth(2000, rng)
    y = draw(p, rng)
    new, truth_there = truth(4000, rng)
    model = TruncatedSVC(probability="weighted", **parameters).fit(X, y)
    found = model.predict_proba(new)
    assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert found.min() > 0 and found.max() < 1
    assert error(model, new, truth_there) < bound
    # far better than what knows nothing but the classes' shares
    assert error(model, new, truth_there) < 0.4 * np.abs(p.mean(axis=0) - truth_there).mean()
    curve = CalibratedClassifierCV(TruncatedSVC(**parameters), method="sigmoid", cv=5).fit(X, y)
    assert error(model, new, truth_there) < error(curve, new, truth_there) + NOISE
    assert_array_equal(found.argmax(axis=1), model.predict(new))


@pytest.mark.filterwarnings("ignore:.*of the weighted fits behind predict_proba did not converge")
@pytest.mark.parametrize("truth", [stairs, three])
def test_what_is_most_probable_is_what_is_predicted(truth):
    """Also where few rows leave the fits in disagreement; with payoffs decisions go by worth, and need not agree."""
    rng = np.random.default_rng(6)
    X, p = truth(80, rng)
    y = draw(p, rng)
    new, _ = truth(4000, rng)
    for parameters in ({"kernel": "linear"}, {"gamma": 3.0, "C": 10.0}, {"gamma": 1.0, "truncation": 0}):
        model = TruncatedSVC(probability="weighted", **parameters).fit(X, y)
        found = model.predict_proba(new)
        assert_array_equal(found.argmax(axis=1), model.predict(new))
        assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    cost = 1.0 - np.eye(p.shape[1])
    cost[0, 1:] = 9.0
    model = TruncatedSVC(probability="weighted", gamma=1.0, cost=cost).fit(X, y)
    assert (model.predict_proba(new).argmax(axis=1) != model.predict(new)).mean() > 0.05


def test_wrong_labels_far_away_hardly_matter():
    rng = np.random.default_rng(0)
    X, p = logistic(1500, rng)
    y = draw(p, rng)
    new, truth_there = logistic(4000, rng)
    far = rng.normal(size=(75, 2)) * 0.1 + [8.0, -6.0]
    X, y = np.r_[X, far], np.r_[y, np.zeros(75, int)]
    model = TruncatedSVC(kernel="linear", probability="weighted").fit(X, y)
    curve = CalibratedClassifierCV(TruncatedSVC(kernel="linear", truncation=None), method="sigmoid", cv=5).fit(X, y)
    regression = LogisticRegression().fit(X, y)
    assert error(model, new, truth_there) < 0.05
    assert error(model, new, truth_there) < 0.5 * min(error(curve, new, truth_there), error(regression, new, truth_there))


def test_level_one_half_is_the_model_itself():
    rng = np.random.default_rng(1)
    X, p = logistic(300, rng)
    y = draw(p, rng)
    for parameters in ({"kernel": "linear"}, {"gamma": 0.5}):
        plain = TruncatedSVC(**parameters).fit(X, y)
        model = TruncatedSVC(probability="weighted", **parameters).fit(X, y)
        assert_array_equal(model.decision_function(X), plain.decision_function(X))
        assert model.objective_ == plain.objective_


def test_a_family_costs_less_than_its_fits_one_by_one():
    rng = np.random.default_rng(2)
    X, p = stairs(400, rng)
    y = draw(p, rng)
    model = TruncatedSVC(gamma=1.0)

    def seconds(work):
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    def one_by_one():
        for level in np.arange(1, 20) / 20:
            clone(model).set_params(class_weight={0: 2 * level, 1: 2 * (1 - level)}).fit(X, y)

    together = seconds(lambda: clone(model).set_params(probability="weighted").fit(X, y))
    assert together < 0.7 * seconds(one_by_one)


def by_hand(model, X, y, new):
    """The estimate from fits one by one, each from scratch: the share on which the broken line through their values is positive of the half of
    [0, 1] that the value at 1/2 leaves open."""
    values = [np.ones(len(new))]
    for level in np.arange(1, 20) / 20:
        weighted = clone(model).set_params(class_weight={0: 2 * level, 1: 2 * (1 - level)}).fit(X, y)
        values.append(weighted.decision_function(new))
    values = np.array([*values, -np.ones(len(new))])
    fine = np.linspace(0, 1, 20001)

    def second(line):
        positive = np.interp(fine, np.linspace(0, 1, 21), line) > 0
        return 0.5 + positive[10000:].mean() / 2 if line[10] > 0 else positive[:10001].mean() / 2

    return np.array([second(line) for line in values.T])


def test_a_family_is_that_of_the_weighted_fits():
    rng = np.random.default_rng(3)
    X, p = logistic(300, rng)
    y = draw(p, rng)
    new, _ = logistic(300, rng)
    # convex: there is one answer
    model = TruncatedSVC(truncation=None, kernel="linear", tol=1e-9)
    found = clone(model).set_params(probability="weighted").fit(X, y).predict_proba(new)[:, 1]
    assert_allclose(found, by_hand(model, X, y, new), atol=2e-4)
    # truncated fits that follow each other may end in other local minima, here and there
    for model in (TruncatedSVC(kernel="linear"), TruncatedSVC(gamma=0.3)):
        found = clone(model).set_params(probability="weighted").fit(X, y).predict_proba(new)[:, 1]
        assert np.abs(found - by_hand(model, X, y, new)).mean() < 0.03


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_files_and_pickles_keep_them(k, kernel, form, tmp_path):
    import pickle

    from scipy import sparse

    rng = np.random.default_rng(4)
    X, p = (logistic if k == 2 else three)(60, rng)
    y = np.array(["a", "b", "c"])[draw(p, rng)]
    X = X @ X.T if kernel == "precomputed" else X
    if form == "sparse":
        if kernel == "precomputed":
            return
        X = sparse.csr_matrix(X)
    model = TruncatedSVC(kernel=kernel, probability="weighted").fit(X, y)
    model.save(tmp_path / "model")
    again = outlast.load(tmp_path / "model")
    assert again.probability == "weighted"
    for other in (again, pickle.loads(pickle.dumps(model))):
        assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        assert_array_equal(other.predict_log_proba(X), np.log(model.predict_proba(X)))


def test_weights_of_rows_count():
    rng = np.random.default_rng(5)
    X, p = logistic(200, rng)
    y = draw(p, rng)
    weights = rng.integers(1, 4, 200)
    model = TruncatedSVC(truncation=None, kernel="linear", tol=1e-8, probability="weighted")
    by_weight = clone(model).fit(X, y, weights).predict_proba(X)
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).predict_proba(X)
    assert_allclose(by_weight, repeated, atol=1e-4)


def test_only_where_asked_for():
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    model = TruncatedSVC(kernel="linear")
    assert not hasattr(model, "predict_proba") and not hasattr(model.fit(X, y), "predict_proba")
    assert hasattr(TruncatedSVC(probability="weighted"), "predict_proba")
    # by what was fitted
    model.probability = "weighted"
    assert not hasattr(model, "predict_proba") and hasattr(model.fit(X, y), "predict_proba")
    with pytest.raises(ValueError, match="probability = 'platt' is not allowed: .*CalibratedClassifierCV"):
        TruncatedSVC(probability="platt").fit(X, y)
    with pytest.raises(ValueError, match="probability = True is not allowed"):
        TruncatedSVC(probability=True).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_hostile_data(kernel, scale):
    X = scale * np.array([[0.0, 1.0], [0.0, 1.0], [5.0, 1.0], [5.0, 1.0], [0.0, 1.0], [7.0, 1.0]])
    for y in ([0, 1, 0, 1, 1, 1], [0, 0, 0, 0, 0, 1], [0, 0, 1, 1, 2, 2]):
        for C in (1e-10, 1e10):
            try:
                model = TruncatedSVC(C, kernel=kernel, probability="weighted", max_iter=20).fit(X, y)
            except (ValueError, FloatingPointError) as refused:
                assert str(refused)
                continue
            p = model.predict_proba(X)
            assert np.isfinite(p).all() and p.min() >= 0
            assert_allclose(p.sum(axis=1), 1.0)


def fan(n, rng):
    """The lines of equal probability go through one point: no function of a score that is linear, whose lines are parallel."""
    X = rng.uniform(-2, 2, (n, 2)) * [1.0, 0.5] + [0.0, 1.5]
    p = 1 / (1 + np.exp(-2 * X[:, 0] / X[:, 1] ** 2))
    return X, np.c_[1 - p, p]


def test_one_order_for_probabilities_and_decision_values_would_be_wrong():
    """scikit-learn's check_decision_proba_consistency asks that both order rows alike: that probabilities are a function of decision values. The fits
    of a family have boundaries that are not parallel, and that is what they are for; on a line they are points, and the order is the same."""
    rng = np.random.default_rng(7)
    X, p = fan(3000, rng)
    y = draw(p, rng)
    new, truth = fan(4000, rng)
    model = TruncatedSVC(kernel="linear", probability="weighted").fit(X, y)
    # the best function of the decision value there is, for the rows it is judged on
    curve = IsotonicRegression().fit(model.decision_function(new), truth[:, 1])
    ordered = curve.predict(model.decision_function(new))
    assert error(model, new, truth) < 0.8 * np.abs(ordered - truth[:, 1]).mean()

    x = np.linspace(-3, 3, 200)[:, None]
    line = TruncatedSVC(kernel="linear", probability="weighted").fit(X[:, :1], y)
    order = np.argsort(line.decision_function(x))
    assert (np.diff(line.predict_proba(x)[order, 1]) >= 0).all()

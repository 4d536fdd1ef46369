"""Many classes, utilities and selecting penalties: Clarabel is the judge."""

import pickle

import cvxpy as cp
import judge
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import outlast
from outlast import TruncatedSVC, gamma_quartiles

TOL = 1e-8
CLOSE = 1e-6
"""Relative difference allowed between our objective and the judge's, and of what should be equal."""

EXACT = 1e-9
"""Relative size allowed of what is 0 by the problem's definition."""

GAMMA = 0.4


def data(k, n=60, d=4, seed=0, flipped=0.1):
    """Overlapping groups around k centres, some labels changed; every class occurs."""
    rng = np.random.default_rng(100 * k + seed)
    codes = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    centres = 1.5 * rng.standard_normal((k, d))
    X = centres[codes] + rng.standard_normal((n, d))
    wrong = rng.random(n) < flipped
    wrong[:k] = False
    return X, np.where(wrong, (codes + rng.integers(1, k, n)) % k, codes)


def utilities(k, seed=0):
    """Being right is worth most, but not the same everywhere; some mistakes are worth nothing."""
    rng = np.random.default_rng(seed + k)
    matrix = rng.uniform(0.0, 0.6, (k, k)) * (rng.random((k, k)) < 0.7)
    return matrix + np.diag(rng.uniform(0.7, 1.5, k))


def fitted(X, y, **parameters):
    return TruncatedSVC(tol=TOL, **parameters).fit(X, y)


@pytest.mark.parametrize("utility", [None, "random"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_the_plain_machine_reaches_the_judge_s_minimum(k, kernel, utility):
    X, y = data(k)
    utility = None if utility is None else utilities(k)
    gamma = GAMMA if kernel == "rbf" else None
    model = fitted(X, y, C=0.7, kernel=kernel, gamma=GAMMA, truncation=None, utility=utility)
    expected = judge.minimum(judge.features(X, gamma), judge.factors(y, k, utility), 0.7)
    assert model.objective_ == pytest.approx(expected, rel=CLOSE)
    assert model.objective_ == pytest.approx(judge.value(model, X, y, utility=utility, gamma=gamma), rel=CLOSE)
    assert model.status_ == "converged" and np.abs(model.decision_function(X)).max() > 0.1


@pytest.mark.parametrize("utility", [None, "random"])
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_selecting_penalties_reach_the_judge_s_minimum(k, utility):
    X, y = data(k, d=8)
    utility = None if utility is None else utilities(k)
    weights = judge.factors(y, k, utility)
    C = 10.0  # small ones select nothing
    shared = {"C": C, "kernel": "linear", "truncation": None, "utility": utility}
    pilot = fitted(X, y, **shared)
    assert pilot.objective_ == pytest.approx(judge.minimum(X, weights, C), rel=CLOSE)
    with np.errstate(divide="ignore"):
        rates = 1.0 / np.abs(pilot.coef_)
    for penalty, own in (("l1", None), ("adaptive_l1", rates)):
        model = fitted(X, y, penalty=penalty, **shared)
        expected = judge.minimum(X, weights, C, penalty=penalty, rates=own)
        assert model.objective_ == pytest.approx(expected, rel=CLOSE), penalty
        assert judge.value(model, X, y, utility=utility, rates=own) == pytest.approx(expected, rel=CLOSE), penalty
        assert 0 < model.n_features_selected_ <= 8


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("k", [3, 4])
def test_smooth_losses_reach_the_judge_s_minimum(k, kernel, loss):
    X, y = data(k, n=40)
    gamma = GAMMA if kernel == "rbf" else None
    model = fitted(X, y, C=0.5, kernel=kernel, gamma=GAMMA, loss=loss, truncation=None)
    expected = judge.minimum(judge.features(X, gamma), judge.factors(y, k), 0.5, loss=loss)
    assert model.objective_ == pytest.approx(expected, rel=CLOSE)


@pytest.mark.parametrize("utility", [None, "random"])
@pytest.mark.parametrize(("kernel", "penalty"), [("linear", "l2"), ("rbf", "l2"), ("linear", "l1")])
@pytest.mark.parametrize("k", [3, 5])
@pytest.mark.parametrize("truncation", [0.0, "auto"])
def test_a_truncated_fit_is_a_critical_point(k, kernel, penalty, utility, truncation):
    """The terms it has given up cost a constant; without them the convex problem must not go lower."""
    X, y = data(k, flipped=0.2)
    s = -1 / (k - 1) if truncation == "auto" else truncation
    # without the larger diagonal f = 0 is what the l1 penalty finds best
    utility = None if utility is None else utilities(k) + 3 * np.eye(k)
    gamma = GAMMA if kernel == "rbf" else None
    C = 10.0 if penalty == "l1" else 1.0
    model = fitted(X, y, C=C, kernel=kernel, gamma=GAMMA, penalty=penalty, truncation=truncation, utility=utility)
    assert np.all(np.diff(model.objective_trace_) <= 0)
    found = judge.value(model, X, y, utility=utility, gamma=gamma, truncation=s)
    assert model.objective_ == pytest.approx(found, rel=CLOSE)
    weights = judge.factors(y, k, utility)
    given_up = judge.margins(judge.decision(model, X, gamma)) < s
    assert (given_up & (weights > 0)).any(), "without a term given up the test would show nothing"
    constant = C * (1 - s) * float(weights[given_up].sum())
    least = judge.minimum(judge.features(X, gamma), np.where(given_up, 0.0, weights), C, penalty=penalty)
    assert model.objective_ <= (least + constant) * (1 + CLOSE)


def test_the_judge_needs_no_licence():
    assert "CLARABEL" in cp.installed_solvers()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_an_identity_of_utilities_is_none(k, kernel):
    X, y = data(k)
    shared = {"kernel": kernel, "gamma": GAMMA, "truncation": None}
    plain = fitted(X, y, **shared)
    for same in ({"utility": np.eye(k)}, {"cost": 1 - np.eye(k)}, {"utility": np.eye(k) + 3, "utility_baseline": "row_minimum"}):
        assert fitted(X, y, **same, **shared).objective_ == pytest.approx(plain.objective_, rel=CLOSE)


@pytest.mark.parametrize("parameters", [{"kernel": "linear"}, {"kernel": "rbf"}, {"kernel": "linear", "penalty": "l1"}], ids=str)
def test_the_order_of_classes_does_not_matter(parameters):
    X, y = data(4)
    utility = utilities(4)
    order = np.array([2, 0, 3, 1])
    shared = {"gamma": GAMMA, "truncation": None, **parameters}
    one = fitted(X, y, utility=utility, **shared)
    # class c is now called order[c]
    turned = np.empty_like(utility)
    turned[np.ix_(order, order)] = utility
    other = fitted(X, order[y], utility=turned, **shared)
    assert other.objective_ == pytest.approx(one.objective_, rel=CLOSE)
    if "penalty" not in parameters:
        np.testing.assert_allclose(other.decision_function(X)[:, order], one.decision_function(X), atol=1e-3)


@pytest.mark.parametrize(
    "parameters",
    [{"kernel": "linear"}, {"kernel": "rbf"}, {"kernel": "linear", "penalty": "l1"}, {"kernel": "linear", "loss": "logistic"}],
    ids=str,
)
def test_functions_sum_to_zero(parameters):
    X, y = data(4, d=6)
    model = fitted(X, y, gamma=GAMMA, **parameters)
    values = model.decision_function(X)
    assert values.shape == (60, 4)
    assert np.abs(values.sum(axis=1)).max() <= 1e-4 * np.abs(values).max()
    assert abs(model.intercept_.sum()) <= EXACT * max(1.0, np.abs(model.intercept_).max())
    if parameters["kernel"] == "linear":
        assert np.abs(model.coef_.sum(axis=0)).max() <= EXACT * np.abs(model.coef_).max()
    if "penalty" not in parameters:
        assert np.abs(model.dual_coef_.sum(axis=0)).max() <= EXACT * np.abs(model.dual_coef_).max()


@pytest.mark.parametrize("utility", [None, "random"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_weight_of_two_is_two_rows(kernel, utility):
    X, y = data(3)
    weight = np.random.default_rng(5).integers(0, 4, len(y))
    weight[:3] = 1
    shared = {"kernel": kernel, "gamma": GAMMA, "truncation": None, "utility": None if utility is None else utilities(3)}
    weighted = TruncatedSVC(tol=TOL, **shared).fit(X, y, weight)
    repeated = fitted(X.repeat(weight, axis=0), y.repeat(weight), **shared)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=CLOSE)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_dense_single_and_sparse_are_the_same_problem(kernel):
    X, y = data(3)
    X = np.where(np.abs(X) < 0.8, 0.0, X).astype(np.float32).astype(float)
    shared = {"kernel": kernel, "gamma": GAMMA, "truncation": None}
    expected = fitted(X, y, **shared)
    for form in (X.astype(np.float32), sparse.csr_matrix(X)):
        model = fitted(form, y, **shared)
        assert model.objective_ == pytest.approx(expected.objective_, rel=CLOSE)
        np.testing.assert_allclose(model.decision_function(form), expected.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_warm_start_ends_where_a_cold_one_does(kernel):
    X, y = data(4)
    shared = {"kernel": kernel, "gamma": GAMMA, "truncation": None, "tol": TOL}
    model = TruncatedSVC(warm_start=True, **shared).fit(X, y)
    for C in (3.0, 0.2):
        model.set_params(C=C).fit(X, y)
        assert model.objective_ == pytest.approx(TruncatedSVC(C, **shared).fit(X, y).objective_, rel=CLOSE)
    # another number of classes, and back: no start, no harm
    two = np.minimum(y, 1)
    model.fit(X, two)
    assert model.objective_ == pytest.approx(TruncatedSVC(0.2, **shared).fit(X, two).objective_, rel=CLOSE)
    model.fit(X, y)
    assert model.decision_function(X).shape == (60, 4)


NAMES = {
    "text": np.array(["ant", "bee", "cow", "dog"]),
    "far apart": np.array([-7, 0, 3, 10**12]),
    "floats": np.array([-2.0, 7.0, 10.0, 30.0]),
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_labels_of_any_kind(names, tmp_path):
    X, y = data(4)
    model = TruncatedSVC(utility=utilities(4)).fit(X, names[y])
    np.testing.assert_array_equal(model.classes_, names)
    prediction = model.predict(X)
    assert prediction.dtype == names.dtype
    np.testing.assert_array_equal(prediction, names[model.decision_function(X).argmax(axis=1)])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), prediction)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(outlast.load(tmp_path / "model").decision_function(X), model.decision_function(X))
    assert model.utility_score(X, names[y]) == pytest.approx(
        utilities(4)[y, np.searchsorted(names, prediction)].mean(), rel=EXACT
    )


@pytest.mark.parametrize(
    "parameters",
    [{"kernel": "linear"}, {"kernel": "rbf"}, {"kernel": "linear", "penalty": "l1"}, {"kernel": "precomputed"}],
    ids=str,
)
@pytest.mark.parametrize("payoff", ["utility", "cost", None])
def test_files_and_pickles_keep_everything(parameters, payoff, tmp_path):
    X, y = data(3)
    rows = X @ X.T if parameters["kernel"] == "precomputed" else X
    matrix = {} if payoff is None else {payoff: utilities(3)}
    model = TruncatedSVC(0.5, **parameters, **matrix).fit(rows, y)
    model.save(tmp_path / "model")
    loaded, pickled = outlast.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))
    for again in (loaded, pickled):
        np.testing.assert_array_equal(again.decision_function(rows), model.decision_function(rows))
        for name in ("intercept_", "dual_coef_", "support_", "objective_trace_", "classes_"):
            np.testing.assert_array_equal(getattr(again, name), getattr(model, name), err_msg=name)
        assert again.utility_score(rows, y) == model.utility_score(rows, y)
        assert again.penalty == model.penalty
        if payoff is not None:
            np.testing.assert_array_equal(getattr(again, payoff), utilities(3))
    for name in ("margins_", "outliers_", "outlier_scores_", "n_support_"):
        np.testing.assert_array_equal(getattr(pickled, name), getattr(model, name), err_msg=name)
    pickled.set_params(warm_start=True).fit(rows, y)


def test_shapes_of_the_fitted_attributes():
    X, y = data(4)
    for kernel in ("linear", "rbf"):
        model = TruncatedSVC(kernel=kernel).fit(X, y)
        assert model.intercept_.shape == (4,) and model.dual_coef_.shape == (4, len(model.support_))
        assert model.n_support_.shape == (4,) and model.n_support_.sum() == len(model.support_)
        own = judge.margins(model.decision_function(X))[np.arange(60), y]
        np.testing.assert_allclose(model.margins_, own, atol=1e-4)
        np.testing.assert_array_equal(model.outliers_, model.margins_ < -1 / 3)
        np.testing.assert_array_equal(model.outlier_scores_, -model.margins_)
    for name in ("coef_", "n_features_selected_", "selected_features_"):
        assert not hasattr(model, name)
    assert TruncatedSVC(kernel="linear").fit(X, y).coef_.shape == (4, 4)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("penalty", ["l1", "adaptive_l1"])
def test_selected_features_go_by_name(k, penalty):
    rng = np.random.default_rng(k)
    X, y = data(k, n=120, d=2, flipped=0.0)
    wide = np.hstack([rng.standard_normal((120, 10)), X, rng.standard_normal((120, 10))])
    model = TruncatedSVC(0.1, kernel="linear", penalty=penalty).fit(wide, y)
    used = np.flatnonzero((model.coef_ != 0).any(axis=0))
    np.testing.assert_array_equal(model.selected_features_, used)
    assert model.n_features_selected_ == len(used) < 22 and np.intersect1d(used, [10, 11]).size > 0
    names = [f"x{column}" for column in range(22)]
    named = TruncatedSVC(0.1, kernel="linear", penalty=penalty).fit(pd.DataFrame(wide, columns=names), y)
    assert named.selected_features_.tolist() == [names[column] for column in used]


def test_a_frame_of_utilities_goes_by_name():
    X, y = data(3)
    names = np.array(["a", "b", "c"])
    utility = utilities(3)
    frame = pd.DataFrame(utility, index=names, columns=names)
    expected = TruncatedSVC(utility=utility).fit(X, names[y])
    turned = TruncatedSVC(utility=frame.loc[["c", "a", "b"], ["b", "c", "a"]]).fit(X, names[y])
    assert turned.objective_ == expected.objective_
    assert TruncatedSVC(utility=utility.tolist()).fit(X, names[y]).objective_ == expected.objective_
    with pytest.raises(ValueError, match=r"rows of utility must be named as the classes are; missing: \['c'\]; unknown: \['d'\]"):
        TruncatedSVC(utility=frame.rename(index={"c": "d"})).fit(X, names[y])
    with pytest.raises(ValueError, match="columns of cost .* twice"):
        TruncatedSVC(cost=frame.rename(columns={"c": "a"})).fit(X, names[y])
    with pytest.raises(ValueError, match="missing"):
        TruncatedSVC(cost=pd.DataFrame(utility)).fit(X, names[y])


@pytest.mark.parametrize("k", [2, 3])
def test_utilities_move_decisions(k):
    """A mistake that is worth nearly as much as being right is made more often."""
    X, y = data(k, n=200, flipped=0.0)
    plain = TruncatedSVC(kernel="linear").fit(X, y)
    utility = np.eye(k)
    utility[0, 1] = 0.95
    weighted = TruncatedSVC(kernel="linear", utility=utility).fit(X, y)
    assert (weighted.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()
    assert plain.utility_score(X, y) == plain.score(X, y)
    assert weighted.utility_score(X, y) > weighted.score(X, y)
    weight = np.arange(200.0)
    expected = np.average(utility[y, weighted.predict(X)], weights=weight)
    assert weighted.utility_score(X, y, weight) == pytest.approx(expected, rel=EXACT)
    with pytest.raises(ValueError, match=r"does not know: \[9\]"):
        weighted.utility_score(X, np.where(y == 0, 9, y))


@pytest.mark.parametrize("k", [2, 3])
def test_direct_costs_never_rise(k):
    X, y = data(k)
    cost = (1 - np.eye(k)) * np.arange(1, k + 1)[:, None]
    for kernel in ("linear", "rbf"):
        model = fitted(X, y, kernel=kernel, gamma=GAMMA, cost=cost, cost_form="direct")
        assert np.all(np.diff(model.objective_trace_) <= 0)
        gamma = GAMMA if kernel == "rbf" else None
        F = judge.decision(model, X, gamma)
        # sum_j cost[y, j] min([1 + m_j]_+, 1 - s)
        s = -1 / (k - 1)
        loss = float((cost[y] * np.clip(1 + judge.margins(F), 0, 1 - s)).sum())
        empty = float((cost[y] * min(1.0, 1 - s)).sum())
        assert loss < model.objective_ < empty


def test_widths_are_quartiles_of_distances_between_classes():
    X, y = data(3, n=90)
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)[np.tril(y[:, None] != y[None])]
    expected = 1 / (2 * np.quantile(distances, [0.25, 0.5, 0.75]) ** 2)
    found = gamma_quartiles(X, y)
    np.testing.assert_allclose(found, expected, rtol=1e-2)
    np.testing.assert_allclose(gamma_quartiles(sparse.csr_matrix(X), y), found, rtol=1e-12)
    for name, gamma in zip(("q1", "median", "q3"), found, strict=True):
        assert TruncatedSVC(gamma=name).fit(X, y)._fitted.gamma == gamma
    weight = np.random.default_rng(0).integers(0, 3, 90)
    weight[:3] = 1
    repeated = gamma_quartiles(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(gamma_quartiles(X, y, weight), repeated, rtol=1e-12)


def test_a_hundred_classes():
    X = np.random.default_rng(0).standard_normal((200, 5))
    y = np.arange(200) % 100
    model = TruncatedSVC(tol=1e-2).fit(X, y)
    assert model.decision_function(X).shape == (200, 100) and np.isfinite(model.objective_)

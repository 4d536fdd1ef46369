"""The L_q machine: cvxpy judges the convex cases, brute force and the paper's algorithm the others."""

import warnings

import lq_judge as judge
import lq_papers as papers
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import outlast
from outlast import LqSVC, LqSVCCV, TruncatedSVC, plot

CLOSE = 1e-6
"""Relative difference allowed between our objective and the judge's; our tolerance is 100 times smaller."""

TOL = 1e-8


def data(n, d, k, seed=0):
    """Columns of which three count, one rule per class, and some labels at random."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = (X[:, :3] @ rng.standard_normal((3, k)) + 0.3 * rng.standard_normal((n, k))).argmax(axis=1)
    y[:k] = np.arange(k)
    return X, y


def prices(k, seed=0):
    matrix = np.random.default_rng(seed + k).uniform(0.2, 2.0, (k, k))
    np.fill_diagonal(matrix, 0.0)
    return matrix


@pytest.mark.parametrize("costly", [False, True])
@pytest.mark.parametrize("shape", [(60, 6), (25, 40)])
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("q", [1.0, 1.5, 2.0])
def test_the_convex_cases_reach_the_judge_s_minimum(q, k, shape, costly):
    X, y = data(*shape, k)
    cost = prices(k) if costly else None
    model = LqSVC(1.0, q=q, cost=cost, tol=TOL).fit(X, y)
    assert model.status_ == "converged" and model.gap_ <= TOL
    assert model.objective_ == pytest.approx(judge.minimum(X, y, 1.0, q, cost, k), rel=CLOSE)
    assert model.objective_ == pytest.approx(judge.value(model.coef_, model.intercept_, X, y, 1.0, q, cost), rel=1e-9)
    assert np.abs(model.coef_).max() > 1e-3
    if k > 2:
        assert np.abs(model.coef_.sum(axis=0)).max() < 1e-9 and abs(model.intercept_.sum()) < 1e-9
    if q == 1.0 and shape[1] > shape[0]:
        assert 0 < model.n_features_selected_ < shape[1]


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("C", [10.0, 300.0])
def test_correlated_columns_and_a_large_C_reach_the_judge_s_minimum(C, k):
    """More rows than columns, which depend on each other: here steps of the augmented Lagrangian alone come to a halt."""
    rng = np.random.default_rng(k)
    X = rng.standard_normal((150, 50)) @ rng.standard_normal((50, 50))
    X /= X.std(axis=0)
    y = (X[:, :3] @ rng.standard_normal((3, k)) + 0.5 * rng.standard_normal((150, k))).argmax(axis=1)
    y[:k] = np.arange(k)
    cost = prices(k)
    model = LqSVC(C, cost=cost, tol=TOL).fit(X, y)
    assert model.status_ == "converged" and model.gap_ <= TOL
    assert model.objective_ == pytest.approx(judge.minimum(X, y, C, 1.0, cost, k), rel=CLOSE)
    assert 0 < model.n_features_selected_ <= 50


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("q", [0.3, 0.7])
def test_powers_below_one_end_in_a_better_place_than_the_paper_s_algorithm(k, q):
    below, sparser = 0, 0
    for seed in range(6):
        X, y = data(80, 12, k, seed)
        ours, theirs = LqSVC(0.5, q=q, tol=TOL).fit(X, y), LqSVC(0.5, q=q, solver="lqa", tol=1e-4).fit(X, y)
        assert ours.objective_ == pytest.approx(judge.value(ours.coef_, ours.intercept_, X, y, 0.5, q), rel=1e-9)
        assert ours.objective_ <= theirs.objective_ * (1 + 1e-9)
        assert np.all(np.diff(ours.objective_trace_) <= 1e-9 * ours.objective_)
        assert np.all(np.diff(theirs.objective_trace_) <= 1e-9 * theirs.objective_)
        # no column costs what it can save at most: each coefficient the steepest slope of the loss
        steepest = 0.5 * np.array([np.abs(X[(y != function) | (k == 2)]).sum(axis=0) for function in range(len(ours.coef_))])
        used, saved = np.any(ours.coef_ != 0, axis=0), (steepest * np.abs(ours.coef_)).sum(axis=0)
        assert used.any() and np.all((np.abs(ours.coef_) ** q).sum(axis=0)[used] < saved[used])
        below += ours.objective_ < theirs.objective_ * (1 - 1e-4)
        sparser += ours.n_features_selected_ < theirs.n_features_selected_
    assert below > 0 and sparser > 0


@pytest.mark.parametrize(("at", "q"), [(0, 0.3), (1, 0.8), (2, 0.95), (3, 0.99)])
def test_no_fit_of_small_data_is_above_the_paper_s_algorithm(at, q):
    """Ten random problems for each q, half of them with three classes."""
    below = 0
    for seed in range(at, 40, 4):
        rng = np.random.default_rng(seed)
        d, n, C = rng.integers(3, 61), rng.integers(40, 121), np.exp(rng.uniform(np.log(0.05), np.log(20)))
        X, y = data(n, d, 2 + seed // 4 % 2, seed)
        with warnings.catch_warnings():
            # the paper's algorithm may take more than its thousand steps
            warnings.simplefilter("ignore", ConvergenceWarning)
            theirs = LqSVC(C, q=q, solver="lqa").fit(X, y)
        ours = LqSVC(C, q=q).fit(X, y)
        assert 0 < ours.objective_ <= theirs.objective_ * (1 + 1e-9), f"{seed}: {n} x {d}, C = {C}"
        below += ours.objective_ < theirs.objective_ * (1 - 1e-6)
    assert below > 0


def test_the_paper_s_algorithm_is_followed_to_its_end_however_many_columns():
    """A step of it takes 2e8 multiplications, dense and sparse."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 6000))
    y = (X[:, :10] @ rng.standard_normal((10, 3))).argmax(axis=1)
    with pytest.warns(ConvergenceWarning):
        theirs = LqSVC(0.3, q=0.5, solver="lqa", max_iter=200).fit(X, y)
    ours = LqSVC(0.3, q=0.5).fit(X, y)
    assert 0 < ours.objective_ <= theirs.objective_ * (1 + 1e-9)
    same = LqSVC(0.3, q=0.5).fit(sparse.csr_array(X), y)
    assert 0 < same.objective_ <= theirs.objective_ * (1 + 1e-9)


@pytest.mark.parametrize("given", ["nothing", "costs", "weights", "costs and weights"])
@pytest.mark.parametrize("shape", [(70, 5), (20, 25)])
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("q", [0.5, 1.0, 1.5])
def test_the_paper_s_algorithm_takes_the_steps_it_prints(q, k, shape, given):
    """Six steps of the judge, from a start of its own, beside as many of ours."""
    X, y = data(*shape, k, 3)
    X = X * 3 + 1
    C, cost, weights = 0.4, None, None
    if "costs" in given:
        cost = prices(k)
    if "weights" in given:
        weights = np.random.default_rng(0).integers(0, 4, len(y))
        weights[:k] = 1
    w, b = judge.discriminant(X, y, k, weights)
    for step in range(1, 7):
        w, b = judge.lqa_step(w, b, X, y, C, q, 1e-10, cost, weights)
        with pytest.warns(ConvergenceWarning):
            model = LqSVC(C, q=q, cost=cost, solver="lqa", max_iter=step, tol=1e-12).fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(model.coef_, w, rtol=0, atol=1e-7 * np.abs(w).max())
        np.testing.assert_allclose(model.intercept_, b, rtol=0, atol=1e-6)
        assert model.objective_ == pytest.approx(judge.value(w, b, X, y, C, q, cost, weights), rel=1e-8)
        assert len(model.objective_trace_) == step + 1


def test_dense_sparse_and_weights_agree():
    X, y = data(60, 8, 3)
    X[np.abs(X) < 0.5] = 0.0
    weights = np.random.default_rng(0).integers(0, 3, 60)
    weights[:3] = 1
    dense = LqSVC(tol=TOL).fit(X, y, sample_weight=weights)
    packed = LqSVC(tol=TOL).fit(sparse.csr_matrix(X), y, sample_weight=weights)
    repeated = LqSVC(tol=TOL).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert packed.objective_ == pytest.approx(dense.objective_, rel=CLOSE)
    assert repeated.objective_ == pytest.approx(dense.objective_, rel=CLOSE)


def test_squares_are_polynomial_features_without_products():
    rng = np.random.default_rng(0)
    X, y = papers.example_3(120, 3, rng)
    model = LqSVC(3.0, q=1.0, feature_map="squares", tol=TOL).fit(X, y)
    both = LqSVC(3.0, q=1.0, tol=TOL).fit(np.c_[X, X**2], y)
    assert model.coef_.shape == (1, 10) and model.n_features_in_ == 5
    assert model.objective_ == pytest.approx(both.objective_, rel=CLOSE)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0, :5] + X**2 @ model.coef_[0, 5:] + model.intercept_)
    np.testing.assert_array_equal(model.selected_features_, np.flatnonzero(np.any(model.coef_.reshape(2, 5) != 0, axis=0)))
    pipeline = make_pipeline(PolynomialFeatures(2), StandardScaler(), LqSVC(q=0.5)).fit(X, y)
    assert pipeline.score(X, y) > 0.8


def test_selected_columns_go_by_name_and_files_keep_all(tmp_path):
    X, y = data(80, 10, 3)
    frame = pd.DataFrame(X, columns=[f"c{column}" for column in range(10)])
    model = LqSVC(0.3, q=0.5, cost=prices(3), feature_map="squares").fit(frame, y)
    assert model.selected_features_.tolist() == [f"c{column}" for column in np.flatnonzero(
        np.any(model.coef_.reshape(3, 2, 10) != 0, axis=(0, 1)))]
    model.save(tmp_path / "model")
    again = outlast.load(tmp_path / "model")
    assert isinstance(again, LqSVC)
    assert (again.C, again.q, again.solver, again.feature_map) == (0.3, 0.5, "auto", "squares")
    np.testing.assert_array_equal(again.cost, prices(3))
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    np.testing.assert_array_equal(again.coef_, model.coef_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"q": 0.0}, "q = 0"),
        ({"q": 2.5}, "q = 2.5"),
        ({"q": np.nan}, "q = NaN"),
        ({"solver": "simplex"}, "solver"),
        ({"feature_map": "cubes"}, "feature_map"),
        ({"cost": [[0, 1, 1], [1, 0.5, 1], [1, 1, 0]]}, "right decision"),
        ({"cost": [[0, 1], [1, 0]]}, "cost"),
        ({"cost": [[0, -1, 1], [1, 0, 1], [1, 1, 0]]}, "cost"),
        ({"q": -1.0}, "q = -1"),
        ({"q": np.inf}, "q = inf"),
        ({"cost": [[0, np.nan, 1], [1, 0, 1], [1, 1, 0]]}, "cost"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X, y = data(20, 3, 3)
    with pytest.raises(ValueError, match=message):
        LqSVC(**parameters).fit(X, y)


def test_the_paper_s_algorithm_certifies_nothing(tmp_path):
    X, y = data(60, 5, 2)
    model = LqSVC(q=0.5, solver="lqa").fit(X, y)
    assert np.isnan(model.gap_) and model.status_ == "converged"
    model.save(tmp_path / "model")
    assert np.isnan(outlast.load(tmp_path / "model").gap_)
    with pytest.warns(ConvergenceWarning) as told:
        LqSVC(q=0.5, solver="lqa", max_iter=2).fit(X, y)
    assert "iteration_limit" in str(told[0].message) and "gap" not in str(told[0].message)


def test_a_gap_that_nothing_is_known_about_is_1():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 40))
    y = (X[:, 0] + rng.standard_normal(3000) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for q in (0.5, 1.0, 1.5):
            model = LqSVC(1.0, q=q, time_limit=1e-6).fit(X, y)
            assert model.status_ == "time_limit" and 0.0 <= model.gap_ <= 1.0, (q, model.gap_)


def test_a_time_limit_keeps_the_best_point_known():
    """Sparse columns for which a fit takes longer than this: not the empty model."""
    rng = np.random.default_rng(0)
    n, d = 2000, 4000
    X = sparse.csr_matrix((rng.standard_normal(10 * n), rng.integers(0, d, 10 * n), np.arange(0, 10 * n + 1, 10)), shape=(n, d))
    y = X @ (rng.standard_normal(d) * (rng.uniform(size=d) < 0.05)) + 0.1 * rng.standard_normal(n) > 0
    with pytest.warns(ConvergenceWarning):
        model = LqSVC(0.3, q=0.5, time_limit=1.0).fit(X, y)
    assert model.objective_ < 0.3 * n and model.n_features_selected_ > 0


def test_constant_and_duplicate_columns():
    X, y = data(60, 5, 2)
    plain = LqSVC(0.3, tol=TOL).fit(X, y)
    doubled = LqSVC(0.3, tol=TOL).fit(np.c_[X, X[:, 0], np.full(60, 7.0), np.zeros(60)], y)
    assert doubled.objective_ == pytest.approx(plain.objective_, rel=CLOSE)
    assert np.all(doubled.coef_[0, -2:] == 0)


@pytest.mark.parametrize("k", [2, 3])
def test_truncated_loss_with_the_penalty(k):
    """A robust and sparse machine: fewer columns than l1 at no larger truncated loss than its own l1 start's objective."""
    X, y = data(150, 20, k, 1)
    far = np.random.default_rng(1).choice(150, 8, replace=False)
    X[far] *= 20
    model = TruncatedSVC(0.5, kernel="linear", penalty="lq", q=0.5).fit(X, y)
    plain = TruncatedSVC(0.5, kernel="linear", penalty="l1").fit(X, y)
    assert np.all(np.diff(model.objective_trace_) <= 1e-9 * model.objective_)
    margins, most = model.margins_, 1 + 1 / (k - 1) if k > 2 else 2.0
    value = (np.abs(model.coef_) ** 0.5).sum() + 0.5 * np.clip(1 - margins, 0, most).sum()
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    others = (np.abs(plain.coef_) ** 0.5).sum() + 0.5 * np.clip(1 - plain.margins_, 0, most).sum()
    assert model.objective_ <= others
    assert 0 < model.n_features_selected_ <= plain.n_features_selected_
    same = TruncatedSVC(0.5, kernel="linear", penalty="lq", q=1.0).fit(X, y)
    assert same.objective_ == pytest.approx(plain.objective_, rel=1e-6)


def folds_of(n, count):
    return [(np.setdiff1d(np.arange(n), test), test) for test in np.array_split(np.arange(n), count)]


@pytest.mark.parametrize("k", [2, 3])
def test_the_search_is_what_cold_fits_find(k):
    """For q >= 1 the problems have one minimum each, so that errors and sizes are those of fits on their own."""
    X, y = data(90, 8, k, 5)
    X = X + 0.0
    Cs, qs, folds = [0.05, 0.3, 2.0], [1.0, 2.0], folds_of(90, 3)
    search = LqSVCCV(Cs, qs, cv=folds, tol=1e-9, standardize=False).fit(X, y)
    assert search.fold_errors_.shape == (3, 2, 3) and search.coefs_path_.shape == (2, 3, 1 if k == 2 else k, 8)
    np.testing.assert_allclose(search.errors_, search.fold_errors_.mean(axis=0))
    for i, q in enumerate(qs):
        for j, C in enumerate(Cs):
            cold = LqSVC(C, q=q, tol=1e-9).fit(X, y)
            assert judge.value(search.coefs_path_[i, j], search.intercepts_path_[i, j], X, y, C, q) == pytest.approx(
                cold.objective_, rel=1e-4)
            errors = [1 - LqSVC(C, q=q, tol=1e-9).fit(X[train], y[train]).score(X[test], y[test]) for train, test in folds]
            # a row on the boundary may fall to either side
            np.testing.assert_allclose(search.fold_errors_[:, i, j], errors, atol=1.01 / 30)
    best = search.errors_.min()
    chosen = search.errors_[list(qs).index(search.q_), Cs.index(search.C_)]
    assert chosen == best
    assert search.sizes_[list(qs).index(search.q_), Cs.index(search.C_)] == search.sizes_[search.errors_ <= best + 1e-12].min()
    assert search.objective_ == pytest.approx(LqSVC(search.C_, q=search.q_, tol=1e-9).fit(X, y).objective_, rel=1e-6)


def test_a_tuning_set_chooses_and_the_model_is_fitted_to_the_training_rows():
    rng = np.random.default_rng(0)
    (X, y), (X2, y2) = papers.example_1(150, rng), papers.example_1(150, rng)
    search = LqSVCCV([0.1, 1.0], [0.5, 1.0], standardize=False).fit(X, y, tuning=(X2, y2))
    assert search.fold_errors_.shape == (1, 2, 2) and np.all(np.isnan(search.selection_frequency_))
    at = list(search.qs_).index(search.q_), list(search.Cs_).index(search.C_)
    judged = judge.value(search.coefs_path_[at], search.intercepts_path_[at], X, (y > 0).astype(int), search.C_, search.q_)
    assert search.objective_ == pytest.approx(judged, rel=1e-4)
    assert search.errors_.min() == pytest.approx(1 - search.score(X2, y2), abs=1.01 / 150)
    with pytest.raises(ValueError, match="classes that y lacks"):
        LqSVCCV([1.0], [1.0]).fit(X, y, tuning=(X2, y2 + 7))


def test_what_the_data_do_not_allow_is_named():
    X, y = data(30, 3, 2)
    with pytest.raises(ValueError, match="C = "):
        LqSVC(1e250).fit(X, y)
    with pytest.raises(ValueError, match="row 4, column 1.*square"):
        large = X.copy()
        large[4, 1] = 1e300
        LqSVC(feature_map="squares").fit(large, y)
    rare = (np.arange(30) == 7).astype(int)
    with pytest.raises(ValueError, match="leaves only rows of class"):
        LqSVCCV([1.0], [1.0], cv=3).fit(X, rare)
    with pytest.raises(ValueError, match="split 1 of 1"):
        LqSVCCV([1.0], [1.0], cv=[(np.flatnonzero(y == 0), np.flatnonzero(y == 1))]).fit(X, y)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(bad):
    X, y = data(30, 3, 2)
    X[4, 1] = bad
    for model in (LqSVC(q=0.5), LqSVCCV([1.0], [1.0])):
        with pytest.raises(ValueError, match="NaN|inf"):
            model.fit(X, y)
        with pytest.raises(ValueError, match="NaN|inf"):
            model.fit(sparse.csr_matrix(X), y)


@pytest.mark.parametrize("q", [0.5, 1.0, 1.5, 2.0])
def test_more_columns_than_entries(q):
    """Ten million columns of which a hundred have an entry, and more than memory holds the coefficients of."""
    X, y = data(50, 4, 2)
    narrow = LqSVC(q=q).fit(X, y)
    rows, columns = np.repeat(np.arange(50), 4), np.tile([5, 70, 9_000_000, 9_999_999], 50)
    wide = LqSVC(q=q).fit(sparse.csr_matrix((X.ravel(), (rows, columns)), shape=(50, 10_000_000)), y)
    assert wide.objective_ == pytest.approx(narrow.objective_, rel=1e-5)
    assert set(wide.selected_features_) <= {5, 70, 9_000_000, 9_999_999}
    endless = sparse.csr_matrix((np.ones(50), (np.arange(50), np.zeros(50, int))), shape=(50, 2**46))
    with pytest.raises(ValueError, match="columns"):
        LqSVC(q=q).fit(endless, y)


@pytest.mark.parametrize("q", [0.5, 1.0, 1.02, 1.5, 2.0])
def test_huge_columns_leave_the_least_loss(q):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    y = (X[:, 0] + rng.standard_normal(80) > 0).astype(int)
    signs = np.where(y == 1, 1.0, -1.0)
    program = linprog(np.r_[np.zeros(5), np.ones(80)], -np.c_[signs[:, None] * X, signs, np.eye(80)], -np.ones(80),
                      bounds=[(None, None)] * 5 + [(0, None)] * 80)
    for size in (1e20, 1e100, 1e300):
        model = LqSVC(q=q).fit(X * size, y)
        assert model.status_ == "converged"
        assert model.objective_ == pytest.approx(program.fun, rel=3e-6)


@pytest.mark.parametrize("q", [0.5, 1.0, 1.5, 2.0])
def test_columns_far_from_zero_are_as_good(q):
    X, y = data(80, 5, 2)
    near, far = LqSVC(q=q).fit(X, y), LqSVC(q=q).fit(X + 1e8, y)
    assert far.status_ == "converged"
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-5)
    assert judge.value(far.coef_, far.intercept_, X + 1e8, y, 1.0, q) == pytest.approx(near.objective_, rel=1e-5)


def test_the_search_by_default_finds_the_columns_that_count():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 12))
    y = X[:, 2] - 2 * X[:, 7] + rng.standard_normal(300) > 0
    search = LqSVCCV(qs=[0.3, 0.5, 1.0]).fit(X, y)
    assert {2, 7} <= set(search.selected_features_)
    assert search.selection_frequency_[[2, 7]].min() == 1.0
    assert len(search.Cs_) == 20 and search.sizes_[list(search.qs_).index(1.0), 0] == 0


def test_the_pictures_show_the_search():
    from matplotlib import pyplot

    pyplot.switch_backend("Agg")
    X, y = data(60, 5, 2)
    search = LqSVCCV([1.0, 0.1], [0.5, 1.0], cv=3).fit(X, y)
    errors, sizes = plot.tuning(search)
    for at in range(2):
        np.testing.assert_array_equal(errors.get_lines()[at].get_xydata(), np.c_[[0.1, 1.0], search.errors_[at, ::-1]])
        np.testing.assert_array_equal(sizes.get_lines()[at].get_xydata(), np.c_[[0.1, 1.0], search.sizes_[at, ::-1]])
    path = plot.coefficient_path(search, q=1.0)
    used = np.flatnonzero(np.any(search.coefs_path_[1, :, 0] != 0, axis=0))
    for line, column in zip(path.get_lines(), used):
        np.testing.assert_array_equal(line.get_ydata(), search.coefs_path_[1, ::-1, 0, column])
    with pytest.raises(ValueError, match="q = 0.7"):
        plot.coefficient_path(search, q=0.7)
    pyplot.close("all")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"Cs": []}, "Cs"), ({"Cs": [0.0]}, "Cs = 0"), ({"qs": [3.0]}, "qs = 3"), ({"cv": 1}, "cv = 1"), ({"qs": []}, "qs")],
)
def test_bad_grids_are_named(parameters, message):
    X, y = data(20, 3, 2)
    with pytest.raises(ValueError, match=message):
        LqSVCCV(**parameters).fit(X, y)


# The paper's examples, smaller. What 100 repetitions found (docs/reproduction), with its standard error, is what a mean over fewer is held
# against: three standard errors of their difference.
SMALL_QS = [0.3, 0.6, 1.0]


def agrees(values, mean, error):
    own = np.std(values, ddof=1) / np.sqrt(len(values))
    assert abs(np.mean(values) - mean) <= 3 * np.hypot(own, error), f"{np.mean(values)} +- {own}, not {mean} +- {error}"


def is_below(values, errors=2):
    """Below 0 by more than so many standard errors."""
    own = np.std(values, ddof=1) / np.sqrt(len(values))
    assert np.mean(values) < -errors * own, f"{np.mean(values)} +- {own}"


def tuned(train, tune, test, qs, **options):
    model = LqSVCCV(15, qs, standardize=False, **options).fit(*train, tuning=tune)
    return 1 - model.score(*test), set(model.selected_features_)


def test_example_1():
    errors = {"lq": [], "l1": [], "l2": []}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        parts = [papers.example_1(n, rng) for n in (400, 400, 3000)]
        for name, qs in (("lq", SMALL_QS), ("l1", [1.0]), ("l2", [2.0])):
            error, columns = tuned(*parts, qs)
            errors[name].append(error)
            # the two of the three that weigh most
            assert {1, 2} <= columns
    lq, l1, l2 = map(np.array, errors.values())
    agrees(lq, 0.2298, 0.00096)
    agrees(l1, 0.2320, 0.00092)
    agrees(l2, 0.2386, 0.00094)
    is_below(lq - l2)
    is_below(l1 - l2)
    # the gain over L_1 is a third of that, too little for twelve repetitions to show
    agrees(lq - l1, -0.0022, 0.00070)


def test_example_3_with_20_columns_of_noise():
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        parts = [papers.example_3(n, 20, rng) for n in (200, 200, 3000)]
        error, columns = tuned(*parts, SMALL_QS, feature_map="squares")
        errors.append(error)
        assert {0, 1} <= columns
    assert 0.08 <= np.mean(errors) <= 0.13


def test_a_path_finds_the_true_columns_among_200_of_noise():
    # no l1 solution leads there: 204 columns separate 200 rows, and the true ones want large coefficients
    for seed in range(2):
        rng = np.random.default_rng(seed)
        parts = [papers.example_3(n, 100, rng) for n in (200, 200, 3000)]
        error, columns = tuned(*parts, SMALL_QS, feature_map="squares")
        assert {0, 1} <= columns and 0.08 <= error <= 0.13


def test_example_4():
    """Of the paper's order L_q, L_2, L_1 100 repetitions show that L_q errs less than L_1, and no more (docs/reproduction): fewer show nothing but
    that all are where they were there."""
    errors = {"lq": [], "l1": [], "l2": []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        parts = [papers.example_4(n, rng) for n in (100, 100, 1000)]
        for name, qs in (("lq", [0.5, 1.0, 1.5, 2.0]), ("l1", [1.0]), ("l2", [2.0])):
            errors[name].append(tuned(*parts, qs)[0])
    lq, l1, l2 = map(np.array, errors.values())
    agrees(lq, 0.2148, 0.00378)
    agrees(l1, 0.2177, 0.00411)
    agrees(l2, 0.2155, 0.00367)
    agrees(lq - l1, -0.0029, 0.00132)
    agrees(lq - l2, -0.0007, 0.00107)

"""`LqSVCCV`, the search over C and q, against scikit-learn's own loops."""

import signal
import subprocess
import sys
import textwrap

import lq_judge as judge
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from outlast import LqSVC, LqSVCCV, load, plot

FOLDS = StratifiedKFold(3, shuffle=True, random_state=1)

SAME = 1e-6
"""Of two ways to the same convex optimum; the solver's tolerance is a hundredth of it."""
TOL = 1e-8


def uneven(n=120, d=8, k=2, seed=0):
    """Columns of sizes that differ by orders of magnitude, far from 0."""
    X, y = make_classification(n, d, n_informative=4, n_classes=k, flip_y=0.1, random_state=seed)
    return 10.0 ** (np.arange(d) % 5 - 2) * (X + 3), y


def pipeline(point, **parameters):
    return make_pipeline(StandardScaler(), LqSVC(tol=TOL, **point, **parameters))


@pytest.mark.parametrize("k", [2, 3])
def test_points_have_the_scores_of_a_pipeline(k):
    X, y = uneven(k=k)
    # for smaller C the intercepts of several classes are not unique
    search = LqSVCCV([0.3, 3.0], [1.0, 1.5, 2.0], cv=FOLDS, tol=TOL).fit(X, y)
    scaler = StandardScaler().fit(X)
    for at, point in enumerate(search.cv_results_["params"]):
        found = [search.cv_results_[f"split{split}_test_score"][at] for split in range(3)]
        assert_allclose(found, cross_val_score(pipeline(point), X, y, cv=FOLDS), atol=SAME, err_msg=str(point))
        # the path on all rows, in the units of X
        i, j = np.unravel_index(at, search.errors_.shape)
        coef, intercept = search.coefs_path_[i, j], search.intercepts_path_[i, j]
        value = judge.value(coef * scaler.scale_, intercept + coef @ scaler.mean_, scaler.transform(X), y, point["C"], point["q"])
        assert value == pytest.approx(pipeline(point).fit(X, y)[-1].objective_, rel=SAME), str(point)
    alone = pipeline(search.best_params_).fit(X, y)
    assert search.objective_ == pytest.approx(alone[-1].objective_, rel=SAME)
    assert_array_equal(search.predict(X), alone.predict(X))
    assert_allclose(X @ search.coef_.T + search.intercept_, search.decision_function(X).reshape(len(X), -1), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("k", [2, 3])
def test_the_model_is_what_was_judged(k):
    """For q < 1 the path's solution to the tolerance of a fit, and no lower one with other columns."""
    X, y = uneven(150, 20, k, seed=1)
    X = StandardScaler().fit_transform(X)
    search = LqSVCCV(6, [0.3, 0.5], cv=3, standardize=False).fit(X, y)
    at = np.unravel_index(search.best_index_, search.errors_.shape)
    coef, intercept = search.coefs_path_[at], search.intercepts_path_[at]
    judged = judge.value(coef, intercept, X, y, search.C_, search.q_)
    assert (1 - 1e-4) * judged <= search.objective_ <= (1 + 1e-9) * judged
    assert_array_equal(search.coef_ != 0, coef != 0)
    assert_allclose(search.coef_, coef, atol=0.01 * np.abs(coef).max())
    # the path's points are not those of fits of their own, but not far above the paper's algorithm either
    assert search.objective_ <= 1.1 * LqSVC(search.C_, q=search.q_, solver="lqa").fit(X, y).objective_


def test_default_values_of_c_know_the_costs():
    X, y = uneven()
    cost = np.array([[0.0, 1.0], [3.0, 0.0]])
    once, often = (LqSVCCV(4, [1.0], cost=by * cost, cv=2).fit(X, y).Cs_ for by in (1, 10))
    assert_allclose(once, 10 * often, rtol=1e-12)


def test_costs_are_the_measure():
    X, y = uneven()
    cost = np.array([[0.0, 1.0], [7.0, 0.0]])
    search = LqSVCCV([0.03, 0.3], [1.0, 2.0], cost=cost, cv=FOLDS, tol=TOL).fit(X, y)
    for at, (train, test) in enumerate(FOLDS.split(X, y)):
        for i, q in enumerate(search.qs_):
            for j, C in enumerate(search.Cs_):
                alone = pipeline({"C": C, "q": q}, cost=cost).fit(X[train], y[train])
                assert search.fold_errors_[at, i, j] == pytest.approx(cost[y[test], alone.predict(X[test])].mean(), abs=SAME)
    assert search.best_score_ == pytest.approx(-search.errors_.min())


def test_the_rule_of_one_standard_error_by_brute_force():
    X, y = uneven(200, 15)
    search = LqSVCCV(10, [0.5, 1.0, 2.0], rule="one_se", random_state=0).fit(X, y)
    means = search.fold_errors_.mean(axis=0)
    errors = search.fold_errors_.std(axis=0, ddof=1) / np.sqrt(5)
    assert_allclose(search.standard_errors_, errors, atol=1e-15)
    best = np.unravel_index(means.argmin(), means.shape)
    within = means <= means[best] + errors[best] + 1e-12
    assert search.sizes_.reshape(-1)[search.best_index_] == search.sizes_[within].min()
    fewest = within & (search.sizes_ == search.sizes_[within].min())
    assert search.C_ == np.broadcast_to(search.Cs_, means.shape)[fewest].min()
    plain = LqSVCCV(10, [0.5, 1.0, 2.0], random_state=0).fit(X, y)
    assert search.n_features_selected_ <= plain.n_features_selected_


def test_nested_scores_are_those_of_an_outer_loop():
    X, y = uneven(150)
    parameters = {"Cs": 5, "qs": [0.5, 1.0], "cv": 3, "random_state": 0}
    search = LqSVCCV(nested=3, **parameters).fit(X, y)
    assert search.nested_scores_.shape == (3,) and len(search.nested_params_) == 3
    assert search.nested_score_ == pytest.approx(search.nested_scores_.mean())
    # another way of dealing the rows out
    outer = cross_val_score(LqSVCCV(**parameters), X, y, cv=FOLDS)
    assert abs(outer.mean() - search.nested_score_) < 0.1
    assert not hasattr(LqSVCCV(**parameters).fit(X, y), "nested_score_")


def test_parts_held_out_and_sets():
    X, y = uneven(150)
    held = LqSVCCV([0.1, 1.0], [1.0], holdout=0.3).fit(X, y)
    assert held.n_splits_ == 1 and np.all(held.standard_errors_ > 0)
    tuned = LqSVCCV([0.1, 1.0], [1.0, 2.0], tol=TOL).fit(X[:100], y[:100], tuning=(X[100:], y[100:]))
    for at, point in enumerate(tuned.cv_results_["params"]):
        assert tuned.cv_results_["mean_test_score"][at] == pytest.approx(pipeline(point).fit(X[:100], y[:100]).score(X[100:], y[100:]))
    with pytest.raises(ValueError, match="tuning"):
        LqSVCCV([1.0], [1.0], nested=3).fit(X[:100], y[:100], tuning=(X[100:], y[100:]))


def test_balance_is_that_of_each_training_part():
    X, y = make_classification(200, 5, weights=[0.85], random_state=0)
    search = LqSVCCV([0.1], [1.0], class_weight="balanced", cv=FOLDS, tol=TOL).fit(X, y)
    alone = pipeline({"C": 0.1, "q": 1.0}, class_weight="balanced")
    assert_allclose(1 - search.fold_errors_.reshape(-1), cross_val_score(alone, X, y, cv=FOLDS), atol=SAME)


@pytest.mark.parametrize("feature_map", ["identity", "squares"])
def test_files_and_exports_hold_the_scaling(feature_map, tmp_path):
    import onnxruntime

    X, y = uneven()
    search = LqSVCCV([0.3], [1.0], feature_map=feature_map, cv=2).fit(X, y)
    search.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is LqSVC and (again.C, again.q) == (0.3, 1.0)
    assert_array_equal(again.decision_function(X), search.decision_function(X))
    assert_array_equal(search.best_estimator_.predict(X), search.predict(X))
    search.export(tmp_path / "model.onnx", "onnx")
    label, values = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(None, {"X": X})
    assert_allclose(values, search.decision_function(X), rtol=1e-6, atol=1e-6)
    assert_array_equal(label, search.predict(X))


def test_the_units_of_the_columns_do_not_matter():
    X, y = uneven()
    unit = 10.0 ** np.arange(-3, 5)
    one, other = (LqSVCCV(5, [0.5, 1.0], random_state=0).fit(rows, y) for rows in (X, X * unit))
    assert_allclose(one.Cs_, other.Cs_, rtol=1e-9)
    assert_array_equal(one.errors_, other.errors_)
    assert_array_equal(one.selected_features_, other.selected_features_)
    raw = LqSVCCV(5, [0.5, 1.0], random_state=0, standardize=False)
    assert not np.array_equal(raw.fit(X, y).sizes_, raw.fit(X * unit, y).sizes_)


def test_pictures_show_standard_errors():
    import matplotlib

    matplotlib.use("Agg")
    X, y = uneven()
    for search in (LqSVCCV(4, [0.5, 1.0], cv=3), LqSVCCV(4, [0.5, 1.0], holdout=0.3)):
        error, size = plot.tuning(search.fit(X, y))
        assert len(error.collections) == 2 and len(size.collections) == 0


def test_a_time_limit_keeps_the_best_so_far():
    X, y = make_classification(3000, 60, n_informative=20, flip_y=0.2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="best so far"):
        search = LqSVCCV(60, cv=20, time_limit=8.0).fit(X, y)
    assert search.search_status_ == search.status_ == "time_limit"
    states = search.cv_results_["state"]
    assert not np.all(states == "done") and states[search.best_index_] != "not_reached"


def test_ctrl_c_keeps_the_best_so_far():
    program = textwrap.dedent(
        """
        import warnings
        from sklearn.datasets import make_classification
        from outlast import LqSVCCV
        X, y = make_classification(1000, 30, n_informative=20, flip_y=0.3, random_state=0)
        print("ready", flush=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = LqSVCCV(cv=200).fit(X, y)
        print(model.search_status_, model.status_, len(model.predict(X)), "best so far" in str(caught[-1].message))
        """
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    try:
        child.wait(timeout=10)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=120)
    assert out.strip() == "interrupted interrupted 1000 True"


def test_points_that_did_not_converge_are_told():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = rng.integers(0, 3, 60)
    search = LqSVCCV([0.01, 10.0], [0.5, 1.0, 1.5], cv=3).fit(X, y)
    assert search.cv_results_["converged"].all()
    # one step is too few for q below 1
    with pytest.warns(ConvergenceWarning, match="iteration_limit"):
        search = LqSVCCV([1.0, 10.0], [0.5], cv=3, max_iter=1).fit(X, y)
    assert (search.cv_results_["state"] == "done").all() and not search.cv_results_["converged"].any()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"Cs": 0}, "Cs"),
        ({"cv": 1}, "cv"),
        ({"cv": 1000}, "cv"),
        ({"cv": []}, "cv"),
        ({"holdout": 1.5}, "holdout"),
        ({"rule": "worst"}, "rule"),
        ({"nested": 1}, "nested"),
        ({"time_limit": 1e-9}, "time_limit"),
    ],
)
def test_bad_searches_are_refused_by_name(parameters, words):
    with pytest.raises((ValueError, TypeError), match=words):
        LqSVCCV(**parameters).fit(*uneven())

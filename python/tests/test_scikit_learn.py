"""The estimator keeps scikit-learn's promises."""

import pickle
import re
from pathlib import Path
from unittest import SkipTest

import joblib
import numpy as np
import pytest
from estimators import ONE_OF_EACH, VARIANTS
from numpy.testing import assert_array_equal
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import outlast
from outlast import TruncatedSVC

# the checks allow five steps, which not every method ends in
@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([*ONE_OF_EACH, *VARIANTS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def exceptions():
    """The table of the documentation: configurations, and the checks that they fail."""
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.split("## Checks of scikit-learn")[1].splitlines() if line.startswith("| `")]
    return [(row[0].strip("|` "), set(re.findall(r"`(\w+)`", row[1]))) for row in rows]


EXCEPTIONS = exceptions()


def failed(estimator):
    """The names of the checks that an estimator fails."""
    names = set()
    for instance, check in estimator_checks_generator(estimator):
        try:
            check(instance)
        except SkipTest:
            continue
        except Exception:
            names.add(getattr(check, "func", check).__name__)
    return names


@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("code", "names"), EXCEPTIONS, ids=[code for code, _ in EXCEPTIONS])
def test_exceptions_are_those_that_the_documentation_lists(code, names):
    assert names and failed(eval(code, vars(outlast))) == names


def test_the_documentation_counts_them():
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    passed = len(ONE_OF_EACH) + len(VARIANTS)
    assert f"| every estimator, {passed} configurations | passed; {len(EXCEPTIONS)} configurations that fail some |" in page


@pytest.fixture(scope="module")
def data():
    return make_classification(200, 5, flip_y=0.1, random_state=0)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("copy", [lambda model: pickle.loads(pickle.dumps(model)), "joblib"])
def test_pickling_keeps_everything(data, kernel, copy, tmp_path):
    X, y = data
    model = TruncatedSVC(kernel=kernel).fit(X, y)
    if copy == "joblib":
        joblib.dump(model, tmp_path / "model")
        again = joblib.load(tmp_path / "model")
    else:
        again = copy(model)
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    for name in ("margins_", "outliers_", "outlier_scores_", "support_", "n_support_", "dual_coef_", "objective_trace_"):
        assert_array_equal(getattr(again, name), getattr(model, name), err_msg=name)
    # also what only a later warm start needs; plain, so that warm and cold must end at the same value
    again.set_params(warm_start=True, truncation=None, tol=1e-8).fit(X, y)
    cold = TruncatedSVC(kernel=kernel, truncation=None, tol=1e-8).fit(X, y)
    assert again.objective_ == pytest.approx(cold.objective_, rel=1e-6)


def test_grid_search_and_pipelines(data):
    X, y = data
    steps = make_pipeline(StandardScaler(), TruncatedSVC())
    search = GridSearchCV(steps, {"truncatedsvc__C": [0.1, 1.0], "truncatedsvc__truncation": [None, -1.0]}, cv=3)
    search.fit(X, y)
    assert search.best_score_ > 0.7


def test_grid_search_splits_precomputed_kernels_both_ways(data):
    X, y = data
    search = GridSearchCV(TruncatedSVC(kernel="precomputed"), {"C": [0.1, 1.0]}, cv=3).fit(X @ X.T, y)
    same = GridSearchCV(TruncatedSVC(kernel="linear"), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], same.cv_results_["mean_test_score"], atol=0.02)


def test_grid_search_in_worker_processes(data):
    search = GridSearchCV(TruncatedSVC(), {"C": [0.1, 1.0]}, cv=2, n_jobs=2).fit(*data)
    alone = GridSearchCV(TruncatedSVC(), {"C": [0.1, 1.0]}, cv=2).fit(*data)
    assert_array_equal(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])


@pytest.mark.parametrize(
    "names", [np.array(["ham", "spam"]), np.array([-1, 1]), np.array([False, True]), np.array([2.0, 7.0])]
)
def test_labels_of_any_kind(data, names):
    X, y = data
    model = TruncatedSVC().fit(X, names[y])
    assert_array_equal(model.classes_, names)
    prediction = model.predict(X)
    assert prediction.dtype == names.dtype
    assert_array_equal(prediction, names[TruncatedSVC().fit(X, y).predict(X)])
    assert_array_equal(prediction == names[1], model.decision_function(X) > 0)


def test_not_converging_warns(data):
    with pytest.warns(ConvergenceWarning, match="iteration_limit") as caught:
        TruncatedSVC(max_iter=1, C=10.0).fit(*data)
    assert caught[0].filename == __file__


def test_progress_is_printed_when_asked(data, capsys):
    TruncatedSVC().fit(*data)
    assert capsys.readouterr().out == ""
    TruncatedSVC(verbose=1).fit(*data)
    assert "[outlast]" in capsys.readouterr().out

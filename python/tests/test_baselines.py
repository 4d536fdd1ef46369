"""The centroid and the leave-one-out machine against cvxpy."""

import cvxpy as cp
import numpy as np
import pytest
from relaxations import solved
from scipy.optimize import linprog
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

import outlast
from outlast import CentroidSVC, LeaveOneOutSVC

TIGHT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


def data(seed=0, n=40):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    X = rng.standard_normal((n, 2)) + 0.8 * y[:, None]
    X[0] *= -5.0
    return X, y


def gram(kernel, X):
    return X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=0.5)


def features(K):
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shift", [0.0, 0.05, 1.0])
def test_the_centroid_machine_is_at_the_minimum(kernel, intercept, shift):
    X, y = data()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    model = CentroidSVC(0.7, shift=shift, kernel=kernel, gamma=0.5, fit_intercept=intercept, tol=1e-8)
    model.fit(X, y, sample_weight=weights)
    Z = features(gram(kernel, X))
    centres = {label: np.average(Z[y == label], axis=0, weights=weights[y == label]) for label in (-1, 1)}
    asked = 1 - shift * np.array([((row - centres[label]) ** 2).sum() for row, label in zip(Z, y, strict=True)])
    w, b = cp.Variable(Z.shape[1]), cp.Variable()
    margins = cp.multiply(y, Z @ w + (b if intercept else 0.0))
    least = solved(cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + 0.7 * weights @ cp.pos(asked - margins))), TIGHT)
    assert model.objective_ == pytest.approx(least, rel=1e-6, abs=1e-8)
    np.testing.assert_array_equal(model.outliers_, asked <= 0)


def test_without_shift_the_centroid_machine_is_the_ordinary_one():
    X, y = data(2)
    model = CentroidSVC(1.5, shift=0.0, kernel="rbf", gamma=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), SVC(C=1.5, gamma=0.5, tol=1e-8).fit(X, y).decision_function(X), atol=1e-4
    )


def test_the_shift_is_found_from_the_distances():
    X, y = data(3)
    model = CentroidSVC(1.0).fit(X, y)
    distances = np.concatenate([((X[y == label] - X[y == label].mean(axis=0)) ** 2).sum(axis=1) for label in (-1, 1)])
    assert model.shift_ == pytest.approx(0.5 / np.sort(distances)[len(y) // 2 - 1])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("factor", [0.3, 1.0, 2.0])
def test_the_leave_one_out_machine_is_at_the_minimum(kernel, factor):
    X, y = data(4)
    model = LeaveOneOutSVC(factor=factor, kernel=kernel, gamma=0.5, tol=1e-9).fit(X, y)
    assert model.status_ == "converged"
    K = gram(kernel, X)
    n = len(y)
    # variables alpha, xi >= 0: xi + (yy' o K - factor diag K) alpha >= 1
    rows = np.outer(y, y) * K - factor * np.diag(np.diag(K))
    least = linprog(np.r_[np.zeros(n), np.ones(n)], A_ub=-np.c_[rows, np.eye(n)], b_ub=-np.ones(n), method="highs").fun
    assert model.objective_ == pytest.approx(least, rel=1e-6, abs=1e-7)
    assert (model.dual_coef_[0] * y[model.support_] > 0).all()


@pytest.mark.parametrize("model", [CentroidSVC(shift=0.1, kernel="rbf"), LeaveOneOutSVC(factor=0.5)])
def test_files_and_more_than_two_classes(model, tmp_path):
    rng = np.random.default_rng(6)
    y = np.repeat(["a", "b", "c"], 15)
    X = rng.standard_normal((45, 2)) + np.repeat([[5.0, 0.0], [-5.0, 5.0], [-5.0, -5.0]], 15, axis=0)
    model.fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.decision_function(X).shape == (45, 3)
    model.save(tmp_path / "model")
    again = outlast.load(tmp_path / "model")
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    name = "shift" if isinstance(model, CentroidSVC) else "factor"
    assert getattr(again, name) == getattr(model, name)


@pytest.mark.parametrize("model", [CentroidSVC(kernel="precomputed"), LeaveOneOutSVC(kernel="precomputed")])
def test_a_kernel_that_is_not_positive_semidefinite_is_refused(model):
    X, y = data()
    with pytest.raises(ValueError, match="positive semidefinite"):
        model.fit(-(X @ X.T), y)


@pytest.mark.parametrize(("model", "message"), [
    (CentroidSVC(shift=-1.0), "shift = -1 is not allowed"),
    (CentroidSVC(shift="far"), 'shift = "far" is not allowed'),
    (CentroidSVC(C=0.0), "C = 0 is not allowed"),
    (LeaveOneOutSVC(factor=0.0), "factor = 0 is not allowed"),
    (LeaveOneOutSVC(factor=np.nan), "factor = NaN is not allowed"),
])
def test_parameters_out_of_range_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*data())

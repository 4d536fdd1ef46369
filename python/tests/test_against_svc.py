"""Without truncation the model is scikit-learn's SVC: LIBSVM is the judge."""

import numpy as np
import pytest
from problems import SETS, expansion, objective, parts, signs
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel
from sklearn.svm import SVC

from outlast import TruncatedSVC

SOLVER_TOLERANCE = 1e-8
DUAL_TOLERANCE = 1e-6
SAME = 1e-9
"""Relative difference allowed where the same number is computed in two ways."""
PREDICTION = 1e-4
"""Difference allowed in predicted values, relative to the largest: their kernel values are single precision."""

KERNELS = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf"},
    "rbf_narrow": {"kernel": "rbf", "gamma": 0.5},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "callable": {"kernel": linear_kernel},
}


def dual(model, X, y):
    """sum alpha - 1/2 beta'K beta; beta_j = y_j alpha_j, so sum alpha = sum y_j beta_j."""
    return float(signs(model, y)[model.support_] @ expansion(model)) - parts(model, X)[0]


def compare(ours, theirs, X, y, weight=None):
    ours.set_params(tol=SOLVER_TOLERANCE).fit(X, y, weight)
    theirs.set_params(tol=SOLVER_TOLERANCE, cache_size=500).fit(X, y, weight)
    expected = dual(theirs, X, y)
    assert expected > 0, "the trivial answer would prove nothing"
    assert dual(ours, X, y) == pytest.approx(expected, rel=DUAL_TOLERANCE)
    # weak duality from the other side: our primal value can't be below their dual
    assert ours.objective_ == pytest.approx(expected, rel=DUAL_TOLERANCE)
    assert ours.objective_ == pytest.approx(objective(ours, X, y, None, weight), rel=SAME)
    values = parts(ours, X)[1]
    assert np.abs(ours.decision_function(X) - values).max() <= PREDICTION * np.abs(values).max()
    # where LIBSVM is sure of a class, so are we
    sure = np.abs(theirs.decision_function(X)) > 1e-2
    np.testing.assert_array_equal(ours.predict(X)[sure], theirs.predict(X)[sure])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", SETS)
def test_the_dual_objective_is_that_of_svc(name, kernel):
    X, y = SETS[name]()
    compare(TruncatedSVC(truncation=None, **KERNELS[kernel]), SVC(**KERNELS[kernel]), X, y)


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", ["breast_cancer", "classification", "moons", "sparse"])
def test_weights_and_C_mean_what_they_mean_to_svc(name, kernel, C):
    X, y = SETS[name]()
    weight = np.random.default_rng(3).uniform(0.1, 3.0, X.shape[0])
    gamma = 0.1  # ours weighs "scale", SVC's does not
    ours = TruncatedSVC(C, truncation=None, kernel=kernel, gamma=gamma)
    compare(ours, SVC(C=C, kernel=kernel, gamma=gamma), X, y, weight)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 0.3, 1: 4.0}])
@pytest.mark.parametrize("name", ["breast_cancer", "moons"])
def test_class_weights_mean_what_they_mean_to_svc(name, class_weight):
    X, y = SETS[name]()
    ours = TruncatedSVC(truncation=None, class_weight=class_weight, tol=SOLVER_TOLERANCE).fit(X, y)
    theirs = SVC(class_weight=class_weight, tol=SOLVER_TOLERANCE).fit(X, y)
    assert dual(ours, X, y) == pytest.approx(dual(theirs, X, y), rel=DUAL_TOLERANCE)


@pytest.mark.parametrize("name", ["iris", "moons"])
def test_precomputed_kernels(name):
    X, y = SETS[name]()
    values = laplacian_kernel(X)
    compare(TruncatedSVC(truncation=None, kernel="precomputed"), SVC(kernel="precomputed"), values, y)


def test_a_callable_kernel_is_the_precomputed_one():
    X, y = SETS["moons"]()
    ours = TruncatedSVC(kernel=laplacian_kernel).fit(X, y)
    given = TruncatedSVC(kernel="precomputed").fit(laplacian_kernel(X), y)
    assert ours.objective_ == given.objective_
    np.testing.assert_array_equal(ours.decision_function(X[:20]), given.decision_function(laplacian_kernel(X[:20], X)))


def test_sigmoid_where_it_is_a_kernel():
    # tanh(gamma x.z) is no kernel in general; of nearly orthogonal rows its matrix is positive definite
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 600)) / np.sqrt(600)
    y = rng.integers(0, 2, 60)
    parameters = {"kernel": "sigmoid", "gamma": 1.0, "coef0": 0.01}
    assert np.linalg.eigvalsh(np.tanh(X @ X.T + 0.01))[0] > 0.1
    compare(TruncatedSVC(truncation=None, **parameters), SVC(**parameters), X, y)


def test_gamma_rules():
    X, y = SETS["classification"]()
    for gamma, number in (("scale", 1 / (X.shape[1] * X.var())), ("auto", 1 / X.shape[1])):
        by_name = TruncatedSVC(gamma=gamma).fit(X, y)
        by_number = TruncatedSVC(gamma=number).fit(X, y)
        np.testing.assert_allclose(by_name.decision_function(X), by_number.decision_function(X), rtol=1e-6, atol=1e-6)
    distances = np.linalg.norm(X[y == 0][:, None] - X[y == 1][None], axis=2)
    widths = {name: TruncatedSVC(gamma=name).fit(X, y)._fitted.gamma for name in ("q1", "median", "q3")}
    for name, quantile in (("q1", 0.25), ("median", 0.5), ("q3", 0.75)):
        assert widths[name] == pytest.approx(1 / (2 * np.quantile(distances, quantile) ** 2), rel=1e-3)

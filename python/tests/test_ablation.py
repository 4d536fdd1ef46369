"""REH and ROD against semidefinite programs, their promises, and the paper's synthetic experiment."""

import numpy as np
import pytest
from relaxations import relaxation
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

import outlast
from outlast import AblationSVC, TruncatedSVC

SDP_ACCURACY = 1e-5


def ring(radius, seed, rows=20, test=1000):
    """Two Gaussian classes and a ring of rows with random labels around them; the last 1/5 of the training rows."""
    rng = np.random.default_rng(seed)
    factor = np.linalg.cholesky(np.array([[20.0, 16.0], [16.0, 20.0]]))

    def classes(count):
        noise = rng.standard_normal((2 * count, 2)) @ factor.T
        y = np.repeat([1, -1], count)
        return noise + y[:, None] * [3.0, -3.0], y

    X, y = classes(rows)
    angle, length = rng.uniform(0, 2 * np.pi, rows // 2), radius + rng.uniform(0, 1, rows // 2)
    far = length[:, None] * np.c_[np.cos(angle), np.sin(angle)]
    return np.r_[X, far], np.r_[y, rng.choice([-1, 1], rows // 2)], *classes(test)


def small(n, d, seed):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    X = rng.standard_normal((n, d)) + 0.7 * y[:, None]
    X[0] *= -6.0
    return X, y


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(("n", "beta"), [(8, 0.3), (14, 3.0), (25, 30.0)])
@pytest.mark.parametrize("rho", [None, 0.9, 0.6])
def test_values_are_those_of_the_semidefinite_program(n, beta, kernel, rho):
    X, y = small(n, 3, n)
    method = {"method": "reh"} if rho is None else {"method": "rod", "inlier_fraction": rho}
    model = AblationSVC(C=1 / beta, kernel=kernel, gamma=0.5, tol=1e-7, **method).fit(X, y)
    K = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=0.5)
    value = relaxation(K, y, beta, rho) / beta
    slack = SDP_ACCURACY * max(abs(value), 1e-3)
    lower, upper = model.lower_bound_, model._fitted.detail("relaxation")
    assert lower <= upper
    assert lower - slack <= value <= upper + slack
    assert upper - lower <= slack


def test_the_printed_relaxation_is_worthless():
    # without diag(M) = eta the point eta = 1, M = 11' + c I is allowed; its value is the maximum over alpha in [0, 1] of
    # eta'(alpha - 1) - alpha'(G o M) alpha / (2 beta) + n = sum alpha - alpha'(G + c diag(G)) alpha / (2 beta), which falls to 0
    X, y = small(12, 2, 0)
    G = (X @ X.T) * np.outer(y, y)
    beta = 1.0
    assert AblationSVC(C=1 / beta).fit(X, y).lower_bound_ > 1.0
    for c in (1e3, 1e6):
        matrix = (G + c * np.diag(np.diag(G))) / beta
        # the maximum over all alpha is at least that over the box
        value = 0.5 * np.ones(12) @ np.linalg.solve(matrix, np.ones(12))
        assert 0 <= value <= beta / (2 * c) * (1 / np.diag(G)).sum()


@pytest.mark.parametrize("method", ["reh", "rod"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("intercept", [False, True])
def test_what_is_reported_agrees_with_the_definition(method, kernel, intercept):
    X, y, _, _ = ring(35, 3)
    C, rho, gamma = 0.05, 0.8, 0.01
    model = AblationSVC(method, C, inlier_fraction=rho, kernel=kernel, gamma=gamma, fit_intercept=intercept).fit(X, y)
    assert model.status_ == "converged"
    assert model.gap_ <= (1e-3 if intercept else 1e-6)
    assert (model.intercept_[0] != 0) == intercept
    f = model.decision_function(X)
    margins = y * f
    np.testing.assert_allclose(model.margins_, margins, rtol=1e-5, atol=1e-5)
    losses = np.maximum(0, 1 - margins)
    alpha = model.dual_coef_[0]
    K = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=gamma)
    norm = alpha @ K[np.ix_(model.support_, model.support_)] @ alpha
    loss = np.minimum(losses, 1).sum() if method == "reh" else np.sort(losses)[: int(rho * len(y))].sum()
    assert model.objective_ == pytest.approx(norm / 2 + C * loss, rel=1e-4)
    assert model.lower_bound_ <= model.objective_
    assert (np.diff(model.objective_trace_) <= 0).all()
    assert ((model.eta_ >= 0) & (model.eta_ <= 1)).all()
    np.testing.assert_array_equal(model.outlier_scores_, -model.margins_)
    given_up = margins <= 0 if method == "reh" else losses > np.sort(losses)[int(rho * len(y)) - 1]
    np.testing.assert_array_equal(model.outliers_, given_up)


def test_refining_never_makes_it_worse():
    X, y, _, _ = ring(55, 1)
    for method in ("reh", "rod"):
        raw = AblationSVC(method, 0.01, inlier_fraction=0.8, refine=False).fit(X, y)
        refined = AblationSVC(method, 0.01, inlier_fraction=0.8).fit(X, y)
        assert refined.objective_ <= raw.objective_
        assert refined.lower_bound_ == raw.lower_bound_


def test_reh_refined_is_a_local_optimum_of_the_truncated_hinge():
    X, y, _, _ = ring(55, 2)
    model = AblationSVC("reh", 0.01).fit(X, y)
    # the same rows kept, the convex problem solved again by another solver
    kept = model.margins_ > 0
    again = TruncatedSVC(0.01, truncation=None, kernel="linear", fit_intercept=False, tol=1e-10).fit(X[kept], y[kept])
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-4, atol=1e-6)


def test_the_synthetic_experiment():
    wrong = {"svm": [], "reh": [], "rod": []}
    for seed in range(20):
        X, y, X_test, y_test = ring(55, seed)
        models = {
            "svm": TruncatedSVC(0.01, truncation=None, kernel="linear", fit_intercept=False),
            "reh": AblationSVC("reh", 0.01),
            "rod": AblationSVC("rod", 0.01, inlier_fraction=0.8),
        }
        for name, model in models.items():
            wrong[name].append(1 - model.fit(X, y).score(X_test, y_test))
    assert np.mean(wrong["reh"]) <= 0.03
    assert np.mean(wrong["rod"]) <= 0.03
    assert np.mean(wrong["svm"]) >= 0.08


def test_the_share_of_inliers_is_found_by_cross_validation():
    X, y, X_test, y_test = ring(55, 4)
    model = AblationSVC("rod", 0.01).fit(X, y)
    assert 0.7 <= model.inlier_fraction_ <= 0.95
    assert model.score(X_test, y_test) > 0.95
    by_transition = AblationSVC("rod", 0.01, inlier_fraction="transition").fit(X, y)
    # there some row is kept whole, and with a smaller share none is
    assert by_transition.eta_.max() > 1 - 1e-3
    less = AblationSVC("rod", 0.01, inlier_fraction=by_transition.inlier_fraction_ - 0.02).fit(X, y)
    assert less.eta_.max() < 1 - 1e-3


@pytest.mark.parametrize("method", ["reh", "rod"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_row_of_weight_two_is_two_rows(method, kernel):
    X, y = small(16, 2, 5)
    parameters = {"inlier_fraction": 0.75, "kernel": kernel, "gamma": 0.3, "tol": 1e-8}
    twice = AblationSVC(method, 0.2, **parameters).fit(np.r_[X, X[:4]], np.r_[y, y[:4]])
    weights = np.where(np.arange(16) < 4, 2.0, 1.0)
    weighted = AblationSVC(method, 0.2, **parameters).fit(X, y, sample_weight=weights)
    assert weighted.lower_bound_ == pytest.approx(twice.lower_bound_, rel=1e-6)
    assert weighted.objective_ == pytest.approx(twice.objective_, rel=1e-4)


@pytest.mark.parametrize("tol", [None, 1e-7, 1e-8])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_rounding_does_not_decide_among_rows_at_the_margin(kernel, tol):
    """More columns than rows: after a step all rows that are kept stand at the margin, and more of them than the share allows."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y, weights = rng.uniform(size=(15, 30)), rng.integers(0, 2, 15), rng.integers(0, 5, 15)
        y[:2], weights[:2] = [0, 1], 1
        model = AblationSVC("rod", kernel=kernel, inlier_fraction=0.9, tol=tol)
        order = rng.permutation(15)
        repeated = clone(model).fit(X.repeat(weights, axis=0), y.repeat(weights))
        weighted = clone(model).fit(X[order], y[order], sample_weight=weights[order])
        assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-7)
        np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-5, atol=1e-7)


def test_a_share_that_folds_choose_is_not_that_of_repeated_rows():
    """Folds deal rows, not weights; with the share that was chosen the fit is the same."""
    rng = np.random.default_rng(0)
    X, y, weights = rng.uniform(size=(15, 30)), rng.integers(0, 2, 15), rng.integers(1, 5, 15)
    found = AblationSVC("rod", kernel="rbf").fit(X, y, sample_weight=weights)
    model = AblationSVC("rod", kernel="rbf", inlier_fraction=found.inlier_fraction_)
    repeated = model.fit(X.repeat(weights, axis=0), y.repeat(weights))
    np.testing.assert_allclose(found.decision_function(X), repeated.decision_function(X), rtol=1e-5, atol=1e-7)


def test_a_linear_kernel_by_any_other_name():
    X, y, _, _ = ring(15, 6)
    plain = AblationSVC("reh", 0.01).fit(X, y)
    for other in (AblationSVC("reh", 0.01, kernel="precomputed").fit(X @ X.T, y),
                  AblationSVC("reh", 0.01, kernel=lambda A, B: A @ B.T).fit(X, y)):
        assert other.lower_bound_ == pytest.approx(plain.lower_bound_, rel=1e-5)
        assert other.objective_ == pytest.approx(plain.objective_, rel=1e-4)


def test_more_than_two_classes_are_set_against_each_other():
    rng = np.random.default_rng(7)
    y = np.repeat(["a", "b", "c"], 20)
    X = rng.standard_normal((60, 2)) + np.repeat([[4.0, 0.0], [-4.0, 4.0], [-4.0, -4.0]], 20, axis=0)
    model = AblationSVC("reh", 1.0, fit_intercept=True).fit(X, y)
    parts = [AblationSVC("reh", 1.0, fit_intercept=True).fit(X, y == name) for name in "abc"]
    np.testing.assert_allclose(model.decision_function(X), np.c_[[part.decision_function(X) for part in parts]].T)
    assert model.objective_ == pytest.approx(sum(part.objective_ for part in parts))
    assert model.lower_bound_ == pytest.approx(sum(part.lower_bound_ for part in parts))
    assert model.eta_.shape == (60, 3)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("parameters", [{"method": "reh"}, {"method": "rod", "inlier_fraction": 0.8, "refine": False},
                                        {"method": "rod", "inlier_fraction": 0.7, "kernel": "rbf", "fit_intercept": True}])
def test_files_keep_what_was_solved(parameters, tmp_path):
    X, y, _, _ = ring(35, 8)
    model = AblationSVC(C=0.02, **parameters).fit(X, y)
    model.save(tmp_path / "model")
    again = outlast.load(tmp_path / "model")
    assert isinstance(again, AblationSVC)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    for name, value in {"C": 0.02, **parameters}.items():
        assert getattr(again, name) == value
    assert again.lower_bound_ == model.lower_bound_


@pytest.mark.parametrize(("parameters", "message"), [
    ({"method": "ablate"}, "method = 'ablate' is not allowed: method must be 'reh' or 'rod'"),
    ({"C": 0.0}, "C = 0 is not allowed"),
    ({"C": -1.0}, "C = -1 is not allowed"),
    ({"C": np.inf}, "C = inf is not allowed"),
    ({"method": "rod", "inlier_fraction": 0.0}, r"inlier_fraction = 0 is not allowed.*\(0, 1\]"),
    ({"method": "rod", "inlier_fraction": 1.1}, r"inlier_fraction = 1.1 is not allowed.*\(0, 1\]"),
    ({"method": "rod", "inlier_fraction": np.nan}, "inlier_fraction = NaN is not allowed"),
    ({"method": "rod", "inlier_fraction": "most"}, 'inlier_fraction = "most" is not allowed'),
])
def test_parameters_out_of_range_are_refused(parameters, message):
    X, y = small(8, 2, 9)
    with pytest.raises(ValueError, match=message):
        AblationSVC(**parameters).fit(X, y)


def test_a_kernel_that_is_not_positive_semidefinite_is_refused():
    X, y = small(8, 2, 10)
    with pytest.raises(ValueError, match="positive semidefinite"):
        AblationSVC(kernel="precomputed").fit(-(X @ X.T), y)
    lopsided = X @ X.T
    lopsided[0, 1] += 5.0
    with pytest.raises(ValueError, match="symmetric|semidefinite"):
        AblationSVC(kernel="precomputed").fit(lopsided, y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_zero_rows_and_duplicates_are_no_trouble(kernel):
    X, y = small(12, 2, 11)
    X[3] = X[7] = 0.0
    X[5] = X[4]
    model = AblationSVC("reh", 0.5, kernel=kernel, gamma=0.4).fit(X, y)
    assert model.status_ == "converged"
    K = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=0.4)
    assert model.lower_bound_ == pytest.approx(0.5 * relaxation(K, y, 2.0), rel=SDP_ACCURACY)

"""The capped machine against scikit-learn and cvxpy, algorithm 2 written down once more, and what it is for."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import outlast
from outlast import CappedSVC

EXACT = 1e-8
"""Relative accuracy of objectives; the solvers run a hundred times tighter."""

STEP = 1e-9
"""Relative accuracy of each pass of algorithm 2."""


def codes(y):
    """y in {-1, +1}^k, one column for two classes."""
    classes = np.unique(y)
    if len(classes) == 2:
        return np.where(y == classes[1], 1.0, -1.0)[:, None]
    return np.where(y[:, None] == classes[None, :], 1.0, -1.0)


def losses(W, b, X, Y, p):
    residuals = np.maximum(0.0, 1.0 - Y * (X @ W.T + b))
    return np.sqrt((residuals**2).sum(axis=1)) ** p


def objective(W, b, X, Y, C, p, cap):
    return 0.5 * (W**2).sum() + C * np.minimum(losses(W, b, X, Y, p), cap).sum()


def data(k, n=90, d=5, seed=0):
    return make_classification(n, d, n_informative=4, n_redundant=0, n_classes=k, n_clusters_per_class=1, flip_y=0.15,
                               random_state=seed)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("C", [0.1, 3.0])
def test_without_a_cap_the_square_is_linear_svc(k, C):
    X, y = data(k)
    Y = codes(y)
    model = CappedSVC(C, p=2.0, cap=np.inf, tol=1e-10).fit(X, y)
    ours = objective(model.coef_, model.intercept_, X, Y, C, 2.0, np.inf)
    assert model.objective_ == pytest.approx(ours, rel=1e-10)
    # LinearSVC penalises its intercept: on a huge scale that costs nothing
    peer = LinearSVC(C=C, dual=False, intercept_scaling=1e3, tol=1e-12, max_iter=100_000).fit(X, y)
    theirs = objective(peer.coef_, peer.intercept_, X, Y, C, 2.0, np.inf)
    assert ours <= theirs * (1 + EXACT)
    assert ours == pytest.approx(theirs, rel=1e-5)


@pytest.mark.parametrize("k", [2, 3])
def test_without_a_cap_the_square_is_the_quadratic_program(k):
    cp = pytest.importorskip("cvxpy")
    X, y = data(k, n=60)
    Y = codes(y)
    W, b = cp.Variable((Y.shape[1], X.shape[1])), cp.Variable((1, Y.shape[1]))
    slack = cp.pos(1.0 - cp.multiply(Y, X @ W.T + np.ones((len(y), 1)) @ b))
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W) + 0.7 * cp.sum_squares(slack)))
    value = problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-11, tol_gap_abs=1e-11, tol_feas=1e-11)
    model = CappedSVC(0.7, p=2.0, cap=np.inf, tol=1e-10).fit(X, y)
    assert model.objective_ == pytest.approx(value, rel=EXACT)
    assert model.gap_ <= 1e-10


def test_the_gradient_is_zero_on_the_rows_kept():
    for k in (2, 3):
        X, y = data(k, n=120)
        Y = codes(y)
        model = CappedSVC(0.5, p=2.0, cap=2.0, tol=1e-12).fit(X, y)
        kept = ~model.outliers_
        assert kept.sum() < len(y)
        pull = (Y * np.maximum(0.0, 1.0 - Y * (X @ model.coef_.T + model.intercept_)))[kept]
        scale = np.abs(model.coef_).max()
        assert np.abs(model.coef_ - 2 * 0.5 * pull.T @ X[kept]).max() < 1e-8 * scale
        assert np.abs(pull.sum(axis=0)).max() < 1e-8


def algorithm_2(X, Y, C, p, cap, passes, floor):
    """Nie, Wang and Huang's algorithm 2 as printed, in its own symbols, with (25) bounded where its g is 0.

    Gives W, b and the surrogate's value after each pass."""
    gamma, n, d = 1.0 / (2.0 * C), *X.shape
    D, M = np.ones(n), np.zeros_like(Y)
    found = []
    for _ in range(passes):
        Z = Y + Y * M
        H = np.diag(D) - np.outer(D, D) / D.sum()
        W = np.linalg.solve(X.T @ H @ X + gamma * np.eye(d), X.T @ H @ Z)
        b = (Z.T @ D - W.T @ X.T @ D) / D.sum()
        F = X @ W + b
        M = np.maximum(0.0, Y * F - 1.0)
        g = ((F - Y - Y * M) ** 2).sum(axis=1)
        low = min(floor, 0.01 * cap ** (2 / p)) if p < 2 else 0.0
        D = np.where(g ** (p / 2) <= cap, p / 2 * np.maximum(g, low) ** (p / 2 - 1), 0.0)
        bound = np.where(g < low, low ** (p / 2) + p / 2 * low ** (p / 2 - 1) * (g - low), g ** (p / 2)) if p < 2 else g
        found.append((W.T, b, gamma * (W**2).sum() + np.minimum(bound, cap).sum()))
    return found


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("p", [0.5, 1.0, 2.0])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_alternating_solver_is_algorithm_2_pass_by_pass(k, p):
    X, y = data(k, seed=3)
    Y, C, cap = codes(y), 0.8, 1.3
    passes = algorithm_2(X, Y, C, p, cap, 12, floor=1e-2)
    for count in range(1, 12):
        model = CappedSVC(C, p=p, cap=cap, solver="alternating", max_iter=count).fit(X, y)
        W, b, _ = passes[count]
        scale = np.abs(W).max()
        assert np.abs(model.coef_ - W).max() < STEP * scale
        assert np.abs(model.intercept_ - b).max() < STEP * max(1.0, scale)
    values = C * np.array([value for _, _, value in passes])
    # the trace starts after the first pass and ends with the loss itself
    shown = model.objective_trace_
    assert shown[: len(shown) - 1] == pytest.approx(values[: len(shown) - 1], rel=STEP)
    assert np.all(np.diff(shown) <= 0)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_exact_is_never_above_alternating(k, p):
    for seed in range(4):
        X, y = data(k, n=80, seed=seed)
        exact = CappedSVC(1.0, p=p, cap=1.5).fit(X, y)
        slow = CappedSVC(1.0, p=p, cap=1.5, solver="alternating", max_iter=3000).fit(X, y)
        assert exact.objective_ <= slow.objective_ * (1 + 1e-6)
        for model in (exact, slow):
            value = objective(model.coef_, model.intercept_, X, codes(y), 1.0, p, 1.5)
            assert model.objective_ == pytest.approx(value, rel=1e-9)
            assert np.all(np.diff(model.objective_trace_) <= 0)


def test_p_1_of_two_classes_is_the_truncated_hinge():
    X, y = data(2, n=150)
    model = CappedSVC(1.0, p=1.0, cap=2.0, tol=1e-8).fit(X, y)
    peer = outlast.TruncatedSVC(1.0, kernel="linear", truncation=-1.0, tol=1e-8).fit(X, y)
    assert model.objective_ <= peer.objective_ * (1 + 1e-6)


def test_the_cap_leaves_its_share_beyond():
    for k in (2, 3):
        X, y = data(k, n=400)
        for p in (1.0, 2.0):
            model = CappedSVC(p=p, cap_fraction=0.1).fit(X, y)
            assert 0 < model.outliers_.mean() < 0.2
            assert np.array_equal(model.outliers_, model.outlier_scores_ > model.cap_)
            fixed = CappedSVC(p=p, cap=model.cap_).fit(X, y)
            assert fixed.cap_ == model.cap_
            assert model.objective_ == pytest.approx(fixed.objective_, rel=0.02)
    none = CappedSVC(p=2.0, cap_fraction=0.0).fit(X, y)
    assert none.cap_ == np.inf and not none.outliers_.any()


def test_cross_validation_chooses_a_share():
    X, y = data(2, n=200)
    model = CappedSVC(p=2.0, cap="cv").fit(X, y)
    assert model.cap_fraction_ in (0.0, 0.05, 0.1, 0.2, 0.3)


def test_every_row_beyond_the_cap_warns_and_keeps_a_model():
    X, y = data(2)
    with pytest.warns(ConvergenceWarning, match="beyond the cap"):
        model = CappedSVC(1e-6, p=2.0, cap=1e-3).fit(X, y)
    assert model.status_ == "all_capped" and model.outliers_.all() and np.abs(model.coef_).max() > 0


@pytest.mark.parametrize("loss", ["lp", "logistic", "geman_mcclure"])
def test_losses_kernels_and_sparse_rows(loss, tmp_path):
    X, y = data(3, n=100)
    for kernel in ("linear", "rbf", "poly"):
        model = CappedSVC(p=2.0, loss=loss, kernel=kernel).fit(X, y)
        assert model.score(X, y) > 0.6
        assert np.all(np.diff(model.objective_trace_) <= 0)
        other = CappedSVC(p=2.0, loss=loss, kernel=kernel).fit(sparse.csr_matrix(X), y)
        assert other.objective_ == pytest.approx(model.objective_, rel=1e-6)
        model.save(tmp_path / "model")
        again = outlast.load(tmp_path / "model")
        assert isinstance(again, CappedSVC) and np.array_equal(again.predict(X), model.predict(X))
        assert again.cap_ == model.cap_ and again.loss == loss


def test_a_precomputed_kernel_is_the_kernel():
    X, y = data(3, n=80)
    K = X @ X.T
    linear = CappedSVC(p=2.0, cap=2.0).fit(X, y)
    given = CappedSVC(p=2.0, cap=2.0, kernel="precomputed").fit(K, y)
    assert given.objective_ == pytest.approx(linear.objective_, rel=1e-8)
    assert np.abs(given.decision_function(K) - linear.decision_function(X)).max() < 1e-6


@pytest.mark.parametrize(
    ("parameters", "name"),
    [({"p": 0.0}, "p"), ({"p": 2.5}, "p"), ({"p": float("nan")}, "p"), ({"cap": 0.0}, "cap"), ({"cap": -1.0}, "cap"),
     ({"cap": "none"}, "cap"), ({"cap_fraction": 1.0}, "cap_fraction"), ({"cap_fraction": -0.1}, "cap_fraction"),
     ({"solver": "newton"}, "solver"), ({"loss": "hinge"}, "loss"), ({"loss": "logistic", "solver": "alternating"}, "solver")],
)
def test_bad_parameters_are_named(parameters, name):
    X, y = data(2, n=30)
    with pytest.raises(ValueError, match=name):
        CappedSVC(**parameters).fit(X, y)


def spoiled(X, y, share, rng):
    """A share of the rows with a wrong label, moved out fourfold."""
    X, y = X.copy(), y.copy()
    rows = rng.choice(len(y), int(share * len(y)), replace=False)
    classes = np.unique(y)
    y[rows] = [rng.choice(classes[classes != label]) for label in y[rows]]
    X[rows] *= 4.0
    return X, y


def gaussians(rng, n):
    y = rng.integers(0, 2, n)
    return rng.standard_normal((n, 2)) + 1.2 * (2 * y[:, None] - 1) * [1.0, 0.3], y


def compare(sets):
    """Mean accuracy on clean test rows of the linear SVM and the capped machine, both at C = 1."""
    plain, capped = [], []
    for X, y, X_test, y_test in sets:
        plain.append(SVC(kernel="linear", C=1.0).fit(X, y).score(X_test, y_test))
        capped.append(CappedSVC(1.0, p=1.0).fit(X, y).score(X_test, y_test))
    return np.mean(plain), np.mean(capped)


def test_bad_rows_do_less_harm_two_gaussians():
    def sets():
        for seed in range(10):
            rng = np.random.default_rng(seed)
            yield *spoiled(*gaussians(rng, 200), 0.1, rng), *gaussians(rng, 2000)

    plain, capped = compare(sets())
    assert capped > plain + 0.01
    assert 0.8 < capped < 0.95


@pytest.mark.parametrize(("load", "gain"), [(load_breast_cancer, 0.01), (load_wine, -0.01)])
def test_bad_rows_do_less_harm_real_data(load, gain):
    X, y = load(return_X_y=True)

    def sets():
        for seed in range(6):
            rng = np.random.default_rng(seed)
            train, test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
            scaler = StandardScaler().fit(train)
            yield *spoiled(scaler.transform(train), y_train, 0.1, rng), scaler.transform(test), y_test

    plain, capped = compare(sets())
    assert capped > plain + gain
    assert 0.88 < capped < 0.99

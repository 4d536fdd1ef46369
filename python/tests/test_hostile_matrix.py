"""Every public estimator on every kind of data that breaks programs: refused in words, or a finite model."""

import warnings

import numpy as np
import pytest
from estimators import CLASSES, small
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

RNG = np.random.default_rng(3)
N, D = 24, 3
Y = np.arange(N) % 2
X = RNG.normal(size=(N, D)) + Y[:, None]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")


def with_value(value):
    wrong = X.copy()
    wrong[4, 1] = value
    return wrong


def million_columns():
    columns = np.c_[RNG.integers(2, 1_000_000, size=(N, 3)), Y]
    return sparse.csr_matrix((np.ones(N * 4), (np.repeat(np.arange(N), 4), columns.ravel())), shape=(N, 1_000_000))


REFUSED = {
    "NaN": lambda: (with_value(np.nan), Y),
    "infinity": lambda: (with_value(np.inf), Y),
    "minus infinity": lambda: (with_value(-np.inf), Y),
    "no rows": lambda: (np.empty((0, D)), np.empty(0)),
    "no columns": lambda: (np.empty((N, 0)), Y),
    "one row": lambda: (X[:1], Y[:1]),
    "one class": lambda: (X, np.zeros(N)),
    "100000 classes": lambda: (np.zeros((100_000, 1)), np.arange(100_000)),
    "too few labels": lambda: (X, Y[:-1]),
}

TAKEN = {
    "a constant column": lambda: (np.c_[X, np.ones(N)], Y),
    "only constants": lambda: (np.ones((N, D)), Y),
    "only zeros": lambda: (np.zeros((N, D)), Y),
    "duplicates": lambda: (X[Y], Y),
    "collinear columns": lambda: (np.c_[X, 2 * X], Y),
    "sparse": lambda: (sparse.csr_matrix(np.where(X > 0.5, X, 0.0)), Y),
    "float32": lambda: (X.astype(np.float32), Y),
    "labels that differ by white space": lambda: (X, np.array(["a", "a ", " a"])[np.arange(N) % 3]),
    "a million sparse columns": lambda: (million_columns(), Y),
}

SCALES = [1e-300, 1e-200, 1e-30, 1e30, 1e200, 1e300]

EACH = pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)


def finite(model, X):
    values = model.decision_function(X)
    assert np.isfinite(values).all() and np.isfinite(model.objective_) and model.objective_ >= 0
    assert set(model.predict(X)) <= set(model.classes_)


@EACH
@pytest.mark.parametrize("what", REFUSED)
def test_refused(kind, what):
    wrong, y = REFUSED[what]()
    with pytest.raises(ValueError, match=r"\w{3}"):
        small(kind).fit(wrong, y)


@EACH
@pytest.mark.parametrize("what", TAKEN)
def test_taken(kind, what):
    data, y = TAKEN[what]()
    if what == "a million sparse columns" and kind.__name__.endswith("CV"):
        data = data[:, :20_000]
    finite(small(kind).fit(data, y), data)


@EACH
@pytest.mark.parametrize("scale", SCALES)
def test_any_scale(kind, scale):
    """A model, or an error that says to scale the columns; never one that is silently nothing."""
    data = X * scale
    try:
        model = small(kind).fit(data, Y)
    except (ValueError, FloatingPointError) as error:
        assert "scale" in str(error), error
    else:
        finite(model, data)


def test_the_leave_one_out_machine_does_not_see_the_scale():
    from outlast import LeaveOneOutSVC

    expected = LeaveOneOutSVC().fit(X, Y)
    for scale in [2.0**-400, 2.0**400, 2.0**800]:
        model = LeaveOneOutSVC().fit(X * scale, Y)
        np.testing.assert_allclose(model.decision_function(X * scale), expected.decision_function(X), rtol=1e-9, atol=1e-9)
        assert model.objective_ == pytest.approx(expected.objective_, rel=1e-9)


@EACH
@pytest.mark.parametrize("weight", [1e-300, 1e-12, 1e12, "zeros", "1e300", "one class"])
def test_weights(kind, weight):
    import inspect

    if "sample_weight" not in inspect.signature(kind.fit).parameters:
        return
    weights = {
        "zeros": np.where(np.arange(N) % 5 == 0, 0.0, 1.0),
        "1e300": np.full(N, 1e300),
        "one class": Y.astype(float),
    }.get(weight, np.full(N, weight))
    model = small(kind)
    if weight in ("1e300", "one class"):
        with pytest.raises(ValueError, match=r"\w{3}"):
            model.fit(X, Y, sample_weight=weights)
    else:
        finite(model.fit(X, Y, sample_weight=weights), X)


KERNELS = [kind for kind in CLASSES if "kernel" in small(kind).get_params() and not kind.__name__.endswith("CV")]


@pytest.mark.parametrize("gamma", [1e-12, 1e12])
@pytest.mark.parametrize("kind", KERNELS, ids=lambda kind: kind.__name__)
def test_ill_conditioned_kernels(kind, gamma):
    twice = np.concatenate([X, X])
    finite(small(kind, kernel="rbf", gamma=gamma).fit(twice, np.r_[Y, Y]), twice)


@pytest.mark.parametrize("kind", KERNELS, ids=lambda kind: kind.__name__)
def test_matrices_that_are_no_kernels(kind):
    """Detected where the problem would have no minimum, else a finite model."""
    K = RNG.normal(size=(N, N))
    K = K + K.T - 2 * np.eye(N)
    try:
        model = small(kind, kernel="precomputed").fit(K, Y)
    except ValueError as error:
        assert "semidefinite" in str(error)
    else:
        assert kind.__name__ in ("TruncatedSVC", "CappedSVC")
        # what such a matrix calls a squared norm may be negative, and the objective with it
        assert np.isfinite(model.objective_) and np.isfinite(model.decision_function(K)).all()


@EACH
def test_one_thread_gives_the_same_model_again(kind):
    models = [small(kind, n_jobs=1).fit(X, Y) for _ in range(2)]
    np.testing.assert_array_equal(models[0].decision_function(X), models[1].decision_function(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        several = small(kind, n_jobs=2).fit(X, Y)
    assert several.objective_ == pytest.approx(models[0].objective_, rel=1e-6)

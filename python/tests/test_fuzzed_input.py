"""Shapes and dtypes drawn at random, most of them wrong: what `sklearn.svm.SVC` accepts is accepted with the same answer whatever its
form, and what it refuses is refused with the same type of exception, in the same words where they are scikit-learn's."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from estimators import CLASSES, ONE_OF_EACH, name, small
from scipy import sparse
from sklearn.svm import SVC

from outlast import TruncatedSVC

N, D = 30, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)).round(3)
Y = (X[:, 0] + 0.3 * RNG.normal(size=N) > 0).astype(int)

pytestmark = pytest.mark.filterwarnings(
    "default::sklearn.exceptions.ConvergenceWarning", "ignore::DeprecationWarning", "ignore::UserWarning"
)


def spoiled(rng, value, dtype=object):
    """X with a value in a place drawn at random."""
    wrong = X.astype(dtype)
    wrong[rng.integers(N), rng.integers(D)] = value
    return wrong


BAD_X = {
    "text in an array of objects": lambda rng: spoiled(rng, rng.choice(["a", "1e", "ü", ""])),
    "None": lambda rng: spoiled(rng, None),
    "a list in a cell": lambda rng: spoiled(rng, [1.0]),
    "a dict in a cell": lambda rng: spoiled(rng, {}),
    "pd.NA": lambda rng: pd.DataFrame(spoiled(rng, pd.NA)),
    "an array of text": lambda rng: X.astype(str) if rng.integers(2) else np.full((N, D), "word"),
    "a column of text": lambda rng: pd.DataFrame(X).astype({int(rng.integers(D)): str}).replace("0", "zero").map(
        lambda cell: "x" if isinstance(cell, str) else cell
    ),
    "complex": lambda rng: X + 1j * rng.integers(2, size=(N, D)),
    "NaN": lambda rng: spoiled(rng, np.nan, rng.choice([np.float32, np.float64])),
    "infinity": lambda rng: spoiled(rng, rng.choice([np.inf, -np.inf]), float),
    "too large for float64": lambda rng: spoiled(rng, 10**400),
    "one dimension": lambda rng: X[:, int(rng.integers(D))],
    "three dimensions": lambda rng: X[:, :, None],
    "a scalar": lambda rng: rng.normal(),
    "no rows": lambda rng: np.empty((0, D)),
    "no columns": lambda rng: np.empty((N, 0)),
    "rows of different lengths": lambda rng: [list(row[: 1 + at % D]) for at, row in enumerate(X)],
    "too few rows": lambda rng: X[: int(rng.integers(2, N))],
    "sparse NaN": lambda rng: sparse.csr_matrix(spoiled(rng, np.nan, float)),
    "sparse complex": lambda rng: sparse.csr_matrix(X + 1j),
    "None itself": lambda rng: None,
    "a set": lambda rng: {1, 2},
    "text itself": lambda rng: "rows",
}

BAD_Y = {
    "NaN": lambda rng: np.where(np.arange(N) == rng.integers(N), np.nan, Y),
    "infinity": lambda rng: np.where(np.arange(N) == rng.integers(N), np.inf, Y),
    "None": lambda rng: np.where(np.arange(N) == rng.integers(N), None, Y),
    "None beside text": lambda rng: np.where(np.arange(N) == rng.integers(N), None, np.array(["a", "b"], object)[Y]),
    "numbers beside text": lambda rng: np.array([1, "a"], object)[Y],
    "bytes": lambda rng: np.array([b"no", b"yes"])[Y],
    "numbers to predict": lambda rng: rng.normal(size=N),
    "two columns": lambda rng: np.c_[Y, 1 - Y],
    "two columns of numbers": lambda rng: rng.normal(size=(N, 2)),
    "one class": lambda rng: np.full(N, rng.integers(5)),
    "too few": lambda rng: Y[: int(rng.integers(1, N))],
    "none at all": lambda rng: None,
    "sequences": lambda rng: [[1, 2]] * N,
    "pd.NA": lambda rng: pd.Series(np.where(np.arange(N) == 3, pd.NA, Y), dtype=object),
    "complex": lambda rng: Y + 1j,
    "a scalar": lambda rng: 1,
}


def refusal(estimator, X, y):
    """The exception of a fit; None if it accepts."""
    try:
        estimator.fit(X, y)
    except Exception as error:
        return error
    return None


def words(error):
    """A message without what differs by the estimator: its name, what it allows, addresses."""
    text = re.sub(r"\b(SVC|[A-Z]\w*SVC(CV)?)\b", "ESTIMATOR", str(error))
    return re.sub(r"0x[0-9a-f]+", "", text).strip()


OWN_WORDS = {"one class", "bytes", "numbers beside text", "None", "None beside text", "pd.NA"}
"""Where scikit-learn leaves the words to the estimator, or to numpy."""


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("what", BAD_X)
@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_bad_x_is_refused_as_svc_refuses_it(kind, what, seed):
    wrong = BAD_X[what](np.random.default_rng(seed))
    expected = refusal(SVC(), wrong, Y)
    found = refusal(small(kind), wrong, Y)
    if expected is None:
        # text that is a number is one
        assert what == "an array of text" and found is None
        return
    assert type(found) is type(expected), f"{found!r} in place of {expected!r}"
    assert words(found) == words(expected)
    model = small(kind).fit(X, Y)
    again = pytest.raises(type(expected), model.predict, wrong) if what != "too few rows" else None
    assert again is None or str(again.value)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("what", BAD_Y)
@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_bad_y_is_refused_as_svc_refuses_it(kind, what, seed):
    wrong = BAD_Y[what](np.random.default_rng(seed))
    expected, found = refusal(SVC(), X, wrong), refusal(small(kind), X, wrong)
    if expected is None:
        assert found is None, repr(found)
        return
    assert type(found) is type(expected), f"{found!r} in place of {expected!r}"
    assert str(found)
    if what not in OWN_WORDS:
        assert words(found) == words(expected)


@pytest.mark.parametrize("width", [1, D - 1, D + 1, 10 * D])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, pd.DataFrame, pl.DataFrame], ids=lambda form: form.__name__)
@pytest.mark.parametrize("estimator", ONE_OF_EACH, ids=name)
def test_another_width_at_predict(estimator, form, width):
    model = small(type(estimator)).fit(X, Y)
    wrong = form(np.ones((4, width)))
    expected = pytest.raises(ValueError, SVC().fit(X, Y).predict, wrong)
    for method in (model.predict, model.decision_function):
        found = pytest.raises(ValueError, method, wrong)
        assert words(found.value) == words(expected.value)


def shuffled(matrix, rng):
    """The same CSR matrix with the entries of each row in any order, and some of them in two parts."""
    data, indices, indptr = [], [], [0]
    for row in range(matrix.shape[0]):
        entries = []
        for at in range(matrix.indptr[row], matrix.indptr[row + 1]):
            value, column = matrix.data[at], matrix.indices[at]
            # halves add up exactly
            entries += [(column, value)] if rng.integers(2) else [(column, value / 2), (column, value / 2)]
        rng.shuffle(entries)
        indices += [int(column) for column, _ in entries]
        data += [value for _, value in entries]
        indptr.append(len(indices))
    return sparse.csr_matrix((data, indices, indptr), shape=matrix.shape)


def forms(rng):
    """X in forms that say the same, and what the core gets of each."""
    matrix = sparse.csr_matrix(X)
    wide = sparse.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield "a list", X.tolist()
    yield "objects", X.astype(object)
    yield "numbers as text", X.astype(object).astype(str).astype(object)
    yield "Fortran order", np.asfortranarray(X)
    yield "big-endian", X.astype(">f8")
    yield "a view", np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    yield "read-only", (lambda copy: (copy.setflags(write=False), copy)[1])(X.copy())
    yield "pandas", pd.DataFrame(X, columns=list("abc"))
    yield "pandas of objects", pd.DataFrame(X.astype(object))
    yield "pandas of nullable numbers", pd.DataFrame(X).convert_dtypes()
    yield "polars", pl.DataFrame(X, schema=list("abc"))
    yield "CSC", sparse.csc_matrix(X)
    yield "COO with duplicates", sparse.coo_matrix(
        (np.r_[X.ravel() / 2, X.ravel() / 2], (np.tile(np.repeat(np.arange(N), D), 2), np.tile(np.arange(D), 2 * N))), shape=X.shape
    )
    yield "CSR", matrix
    yield "CSR array", sparse.csr_array(X)
    yield "CSR of 64-bit indices", wide
    yield "CSR, unsorted, with duplicates", shuffled(matrix, rng)
    yield "LIL", sparse.lil_matrix(X)


def without_scaling(estimator):
    """Where the scale of the columns is part of the model, sparse ones are divided only, dense ones also shifted: other models."""
    return estimator.set_params(standardize=False) if "standardize" in estimator.get_params() else estimator


@pytest.mark.parametrize("estimator", ONE_OF_EACH, ids=name)
def test_every_form_gives_the_same_model(estimator):
    rng = np.random.default_rng(1)
    expected = without_scaling(small(type(estimator))).fit(X, Y).decision_function(X)
    for what, form in forms(rng):
        before = form.copy() if sparse.issparse(form) else None
        model = without_scaling(small(type(estimator))).fit(form, Y)
        np.testing.assert_allclose(model.decision_function(form), expected, rtol=1e-4, atol=1e-4, err_msg=what)
        if before is not None and before.format == "csr":
            # the caller's matrix is as it was
            np.testing.assert_array_equal(form.indices, before.indices)
            np.testing.assert_array_equal(form.data, before.data)


def test_labels_in_every_form():
    expected = TruncatedSVC().fit(X, Y).decision_function(X)
    names = np.array(["no", "yes"])
    for y in [
        Y.tolist(), Y.astype(bool), Y.astype(np.uint8), Y.astype(float), Y[:, None], names[Y], names[Y].astype(object),
        pd.Series(Y), pd.Series(names[Y]), pd.Series(names[Y], dtype="category"), pl.Series(Y), pd.Series(Y, dtype="Int64"),
    ]:
        np.testing.assert_array_equal(TruncatedSVC().fit(X, y).decision_function(X), expected)


@pytest.mark.parametrize("seed", range(60))
def test_matrices_drawn_at_random_never_crash(seed):
    """Any shape, dtype, scale: a model with finite decision values, or an exception of scikit-learn's kinds."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 12), rng.integers(1, 6)
    dtype = rng.choice([np.float64, np.float32, np.int8, np.int64, np.uint16, np.bool_, object])
    scale = 10.0 ** rng.integers(-320, 300, size=d) if rng.integers(3) == 0 else 1.0
    with np.errstate(all="ignore"):
        A = (rng.normal(size=(n, d)) * scale * rng.integers(0, 2, size=d)).astype(dtype)
    y = rng.choice(rng.choice([2, 3, n + 1]) + 0, size=n) if rng.integers(4) else rng.choice(["a", "b", ""], size=n)
    form = rng.choice(["dense", "csr", "frame"])
    A = {"dense": lambda: A, "csr": lambda: sparse.csr_matrix(A.astype(float)), "frame": lambda: pd.DataFrame(A)}[form]()
    kind = CLASSES[seed % len(CLASSES)]
    try:
        model = small(kind).fit(A, y)
    except (ValueError, TypeError, FloatingPointError) as error:
        assert str(error)
    else:
        values = model.decision_function(A)
        assert np.isfinite(values).all() and np.isfinite(model.objective_)
        assert set(model.predict(A)) <= set(model.classes_)

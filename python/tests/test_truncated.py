"""The truncated objective: what is reported is what the numbers say."""

from importlib.metadata import version

import numpy as np
import pytest
from problems import SETS, kernel_values, objective, parts, signs
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

import outlast
from outlast import TruncatedSVC

SAME = 1e-9
"""Relative difference allowed where the same number is computed in two ways."""

CRITICAL = 1e-4
"""Relative failure allowed of an optimality condition, at a gap of 1e-10 (the square of it, and some)."""

SETTINGS = [(kernel, truncation) for kernel in ("linear", "rbf") for truncation in ("auto", 0.0, -0.3, -2.0)]


def flipped(name, share=0.15):
    X, y = SETS[name]()
    rng = np.random.default_rng(7)
    flip = rng.random(len(y)) < share
    return X, np.where(flip, 1 - y, y)


@pytest.mark.parametrize(("kernel", "truncation"), SETTINGS)
@pytest.mark.parametrize("name", SETS)
def test_reports_agree_with_the_definition(name, kernel, truncation):
    X, y = flipped(name)
    model = TruncatedSVC(kernel=kernel, truncation=truncation, tol=1e-6).fit(X, y)
    s = -1.0 if truncation == "auto" else truncation
    y_signs = np.where(y == 1, 1.0, -1.0)
    np.testing.assert_allclose(model.margins_, y_signs * model.decision_function(X), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(model.outliers_, model.margins_ < s)
    if s == 0.0:
        assert model.outliers_.any(), "the data have flipped labels: some row must be given up"
    np.testing.assert_array_equal(model.outlier_scores_, -model.margins_)
    assert model.objective_ == pytest.approx(objective(model, X, y, s), rel=1e-6)
    trace = model.objective_trace_
    assert np.all(np.diff(trace) <= 0) and trace[-1] == pytest.approx(model.objective_, rel=SAME)
    assert model.n_iter_ == max(1, len(trace) - 1) and model.status_ == "converged" and model.gap_ <= 1e-6


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", SETS)
def test_never_worse_than_the_plain_machine(name, kernel):
    X, y = flipped(name)
    robust = TruncatedSVC(kernel=kernel).fit(X, y)
    plain = TruncatedSVC(kernel=kernel, truncation=None).fit(X, y)
    assert robust.objective_ <= objective(plain, X, y, -1.0) * (1 + 1e-6)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_other_losses_are_at_a_critical_point(loss, kernel):
    X, y = flipped("classification")
    model = TruncatedSVC(kernel=kernel, loss=loss, tol=1e-10).fit(X, y)
    value, slope = {
        "logistic": (lambda u: np.logaddexp(0, -u), lambda u: -1 / (1 + np.exp(u))),
        "exponential": (lambda u: np.exp(-u), lambda u: -np.exp(-u)),
    }[loss]
    # the lowest Fisher-consistent truncation solves l(s) = 2 l(0) for two classes
    most = 2 * value(0.0)
    np.testing.assert_array_equal(model.outliers_, value(model.margins_) > most)
    assert model.outliers_.any() and not model.outliers_.all()
    decision = model.decision_function(X)
    norm = 0.5 * float((model.coef_**2).sum()) if kernel == "linear" else parts(model, X)[0]
    assert model.objective_ == pytest.approx(norm + np.minimum(value(model.margins_), most).sum(), rel=SAME)
    assert np.all(np.diff(model.objective_trace_) <= 0)
    # the gradient vanishes: f = sum_kept -C y l'(y f) k(x, .), and its coefficients sum to 0
    pull = np.where(model.outliers_, 0.0, -signs(model, y) * slope(model.margins_))
    assert abs(pull.sum()) <= CRITICAL * np.abs(pull).sum()
    expected = kernel_values(model, X) @ pull + model.intercept_[0]
    assert np.abs(decision - expected).max() <= CRITICAL * np.abs(decision).max()


def test_dense_single_and_sparse_are_the_same_problem():
    X, y = flipped("sparse")
    dense = X.toarray().astype(np.float32).astype(np.float64)
    reference = TruncatedSVC(tol=1e-8).fit(dense, y)
    forms = [dense.astype(np.float32), sparse.csr_matrix(dense), sparse.csc_array(dense), sparse.coo_matrix(dense)]
    for form in forms:
        model = TruncatedSVC(tol=1e-8).fit(form, y)
        assert model.objective_ == pytest.approx(reference.objective_, rel=1e-6), type(form)
        np.testing.assert_allclose(
            model.decision_function(form), reference.decision_function(dense), rtol=1e-2, atol=1e-3
        )


def test_sparse_matrices_out_of_order_are_left_as_they_are():
    X, y = flipped("sparse")
    # each entry split in two halves, columns descending
    coo = X.tocoo()
    order = np.lexsort((-np.tile(coo.col, 2), np.tile(coo.row, 2)))
    rows, columns = np.tile(coo.row, 2)[order], np.tile(coo.col, 2)[order]
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=X.shape[0]))])
    messy = sparse.csr_matrix((np.tile(coo.data, 2)[order] / 2, columns, starts), shape=X.shape)
    assert not messy.has_canonical_format
    before = messy.indices.copy()
    model = TruncatedSVC().fit(messy, y)
    np.testing.assert_array_equal(messy.indices, before)
    assert model.objective_ == pytest.approx(TruncatedSVC().fit(X, y).objective_, rel=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_warm_start_ends_where_its_certificate_says(kernel):
    X, y = flipped("classification")
    model = TruncatedSVC(kernel=kernel, truncation=None, warm_start=True, tol=1e-8).fit(X, y)
    for C in (3.0, 0.2):
        model.set_params(C=C).fit(X, y)
        cold = TruncatedSVC(C, kernel=kernel, truncation=None, tol=1e-8).fit(X, y)
        assert model.objective_ == pytest.approx(cold.objective_, rel=1e-6)
    # other rows, other classes: no start, no harm
    model.fit(X[:100], np.array(["a", "b"])[y[:100]])
    model.fit(X[:, :3], y)


@pytest.mark.parametrize("threads", [1, 2, -1])
def test_threads_do_not_change_the_answer(threads):
    X, y = flipped("breast_cancer")
    alone = TruncatedSVC(truncation=None, tol=1e-8, n_jobs=1).fit(X, y)
    assert TruncatedSVC(truncation=None, tol=1e-8, n_jobs=threads).fit(X, y).objective_ == pytest.approx(
        alone.objective_, rel=1e-6
    )


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_weight_of_two_is_two_rows(kernel):
    X, y = flipped("moons")
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = TruncatedSVC(kernel=kernel, truncation=None, tol=1e-8).fit(X, y, weight)
    repeated = TruncatedSVC(kernel=kernel, truncation=None, tol=1e-8).fit(X.repeat(weight, axis=0), y.repeat(weight))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)


def test_without_intercept():
    X, y = flipped("classification")
    model = TruncatedSVC(kernel="linear", fit_intercept=False).fit(X, y)
    assert model.intercept_.tolist() == [0.0]
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0], rtol=1e-9, atol=1e-12)


def test_shapes_of_the_fitted_attributes():
    X, y = flipped("breast_cancer")
    model = TruncatedSVC(kernel="linear").fit(X, y)
    assert model.coef_.shape == (1, X.shape[1]) and model.intercept_.shape == (1,)
    assert model.dual_coef_.shape == (1, len(model.support_))
    assert model.n_support_.shape == (2,) and model.n_support_.sum() == len(model.support_)
    assert model.decision_function(X).shape == (len(y),)
    assert isinstance(model.solver_, str) and isinstance(model.n_iter_, int)
    with pytest.raises(AttributeError, match="linear kernel"):
        TruncatedSVC().fit(X, y).coef_  # noqa: B018


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", ["moons", "sparse"])
def test_support_vectors_are_the_rows_of_support(name, kernel):
    X, y = SETS[name]()
    model = TruncatedSVC(kernel=kernel).fit(X, y)
    rows = model.support_vectors_
    if sparse.issparse(X):
        assert sparse.issparse(rows) and rows.format == "csr"
        rows, X = rows.toarray(), X.toarray()
    np.testing.assert_array_equal(rows, X[model.support_])


def test_a_kernel_matrix_has_no_support_vectors():
    X, y = SETS["moons"]()
    assert TruncatedSVC(kernel="precomputed").fit(rbf_kernel(X), y).support_vectors_.size == 0
    assert TruncatedSVC(kernel=rbf_kernel).fit(X, y).support_vectors_.shape[1] == X.shape[1]


def test_the_version_is_the_package_s():
    assert outlast.__version__ == version("outlast")

"""Bad input: a clear error that names the thing, or the right answer; never a crash, never a hang."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.utils._param_validation import InvalidParameterError

import outlast
from outlast import AblationSVC, AblationSVCCV, CappedSVCCV, LqSVCCV, TruncatedSVC, TruncatedSVCCV

X, Y = make_classification(60, 4, random_state=0)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, lambda X: X.astype(np.float32)])
def test_not_finite(kernel, bad, form):
    spoiled = X.copy()
    spoiled[3, 2] = bad
    with pytest.raises(ValueError, match="NaN|infinity"):
        TruncatedSVC(kernel=kernel).fit(form(spoiled), Y)
    model = TruncatedSVC(kernel=kernel).fit(X, Y)
    with pytest.raises(ValueError, match="NaN|infinity"):
        model.predict(form(spoiled))


def test_shapes():
    with pytest.raises(ValueError, match="0 sample"):
        TruncatedSVC().fit(np.empty((0, 4)), np.empty(0))
    with pytest.raises(ValueError, match="class"):
        TruncatedSVC().fit(X[:1], Y[:1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        TruncatedSVC().fit(X, Y[:-1])
    with pytest.raises(ValueError, match="greater than one; got 1 class"):
        TruncatedSVC().fit(X, np.zeros(60))
    with pytest.raises(ValueError, match="4 features"):
        TruncatedSVC().fit(X, Y).predict(X[:, :3])
    with pytest.raises(ValueError, match="square"):
        TruncatedSVC(kernel="precomputed").fit(X, Y)
    with pytest.raises(ValueError, match="kernel returned shape"):
        TruncatedSVC(kernel=lambda A, B: np.ones((2, 2))).fit(X, Y)


def test_weights():
    with pytest.raises(ValueError, match="[Nn]egative"):
        TruncatedSVC().fit(X, Y, -np.ones(60))
    with pytest.raises(ValueError, match="zero"):
        TruncatedSVC().fit(X, Y, np.zeros(60))
    with pytest.raises(ValueError, match="one class only"):
        TruncatedSVC().fit(X, Y, Y.astype(float))
    with pytest.raises(ValueError, match="sample_weight"):
        TruncatedSVC().fit(X, Y, np.ones(59))
    with pytest.raises(ValueError, match="NaN"):
        TruncatedSVC().fit(X, Y, np.full(60, np.nan))


@pytest.mark.parametrize(
    ("parameters", "kind"),
    [
        ({"C": 0.0}, ValueError),
        ({"C": -1}, ValueError),
        ({"C": np.nan}, ValueError),
        ({"C": "1"}, TypeError),
        ({"truncation": 0.5}, ValueError),
        ({"truncation": "never"}, ValueError),
        ({"loss": "huber"}, ValueError),
        ({"penalty": "l1"}, ValueError),
        ({"penalty": "l7"}, ValueError),
        ({"kernel": "gauss"}, ValueError),
        ({"kernel": 3}, TypeError),
        ({"gamma": -1.0}, ValueError),
        ({"gamma": "wide"}, ValueError),
        ({"kernel": "poly", "degree": 0}, ValueError),
        ({"kernel": "poly", "degree": 2.5}, TypeError),
        ({"kernel": "poly", "coef0": np.inf}, ValueError),
        ({"tol": 0.0}, ValueError),
        ({"max_iter": 0}, ValueError),
        ({"cache_size": -1.0}, ValueError),
        ({"solver": "magic"}, ValueError),
        ({"kernel": "poly", "penalty": "adaptive_l1"}, ValueError),
        ({"utility": np.eye(3)}, ValueError),
        ({"utility": [[1, 0]]}, ValueError),
        ({"utility": [[1, 0], [0]]}, ValueError),
        ({"utility": [1, 0]}, ValueError),
        ({"utility": "much"}, ValueError),
        ({"utility": [[1, -1], [0, 1]]}, ValueError),
        ({"utility": [[1, 0], [0, np.nan]]}, ValueError),
        ({"utility": [[1, np.inf], [0, 1]]}, ValueError),
        ({"utility": np.zeros((2, 2))}, ValueError),
        ({"cost": -np.eye(2)}, ValueError),
        ({"cost": np.ones((2, 2))}, ValueError),
        ({"utility": np.ones((2, 2))}, ValueError),
        ({"utility": np.eye(2), "cost": np.eye(2)}, ValueError),
        ({"utility_baseline": "lowest"}, ValueError),
        ({"cost_form": "odd"}, ValueError),
        ({"cost_form": "direct"}, ValueError),
        ({"loss": "logistic", "cost": 1 - np.eye(2), "cost_form": "direct"}, ValueError),
        ({"random_state": -1}, ValueError),
    ],
    ids=str,
)
def test_parameters_are_refused_by_name(parameters, kind):
    name = list(parameters)[-1]
    with pytest.raises(kind, match=rf"\b{name}\b"):
        TruncatedSVC(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"utility": np.eye(2)}, "utility has 2 rows, expected 3 x 3"),
        ({"utility": [[1, 0, 0], [0, 1], [0, 0, 1]]}, "utility has 2 values in row 1, expected 3 x 3"),
        ({"utility": np.eye(3) - 0.5}, "utility, row 0, column 1 .*: -0.5 for deciding \"b\" when \"a\" is true"),
        ({"cost": np.full((3, 3), np.inf)}, "cost, row 0, column 0 .*: inf for deciding"),
        ({"utility": np.zeros((3, 3))}, "utility = a matrix of zeros is not allowed"),
        ({"penalty": "l1"}, "penalty = \"l1\" with the rbf kernel is not allowed"),
        ({"truncation": 0.1}, "truncation = 0.1 is not allowed"),
        ({"utility": np.eye(3), "cost": np.eye(3)}, "only one of utility and cost"),
        (
            {"cost": 1 - np.eye(3), "cost_form": "direct", "loss": "logistic"},
            "cost_form = \"direct\" with the logistic loss is not allowed",
        ),
    ],
    ids=str,
)
def test_refusals_name_the_place(parameters, message):
    with pytest.raises(ValueError, match=message):
        TruncatedSVC(**parameters).fit(X, np.array(["a", "b", "c"])[np.arange(60) % 3])


def test_a_class_without_weight_is_named():
    y = np.array(["a", "b", "c"])[np.arange(60) % 3]
    with pytest.raises(ValueError, match='class "c" has no row of positive weight'):
        TruncatedSVC().fit(X, y, (y != "c").astype(float))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_class_of_one_row(kernel):
    y = np.where(np.arange(60) == 7, 2, Y)
    model = TruncatedSVC(kernel=kernel, C=10.0).fit(X, y)
    assert model.decision_function(X).shape == (60, 3) and np.isfinite(model.objective_)


def test_read_only_memory_maps(tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = TruncatedSVC().fit(mapped, Y)
    assert model.objective_ == TruncatedSVC().fit(X, Y).objective_
    np.testing.assert_array_equal(model.decision_function(mapped), model.decision_function(X))


def test_odd_strides_and_orders():
    wide = np.zeros((120, 8))
    wide[::2, ::2] = X
    views = [wide[::2, ::2], np.asfortranarray(X), X[:, ::-1][:, ::-1], X.tolist(), X.astype(">f8")]
    expected = TruncatedSVC().fit(X, Y)
    for view in views:
        model = TruncatedSVC().fit(view, Y)
        np.testing.assert_array_equal(model.decision_function(view), expected.decision_function(X))


def test_single_precision_is_not_widened_by_a_copy():
    narrow = X.astype(np.float32)
    model = TruncatedSVC().fit(narrow, Y)
    assert model.objective_ == pytest.approx(TruncatedSVC().fit(narrow.astype(float), Y).objective_, rel=1e-3)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_extreme_scales(kernel, scale):
    model = TruncatedSVC(kernel=kernel)
    try:
        model.fit(X * scale, Y)
    except (ValueError, FloatingPointError) as error:
        assert str(error)
    else:
        assert np.isfinite(model.objective_) and np.isfinite(model.decision_function(X * scale)).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("C", [1e-10, 1e10])
def test_extreme_C(kernel, C):
    model = TruncatedSVC(C, kernel=kernel).fit(X, Y)
    assert np.isfinite(model.objective_) and np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_constant_columns_and_contradicting_rows(kernel):
    constant = np.ones((10, 2))
    y = np.arange(10) % 2
    model = TruncatedSVC(kernel=kernel).fit(constant, y)
    assert np.isfinite(model.decision_function(constant)).all()
    twice = np.concatenate([X, X])
    model = TruncatedSVC(kernel=kernel).fit(twice, np.concatenate([Y, 1 - Y]))
    assert np.isfinite(model.objective_)


@pytest.mark.parametrize(
    ("estimator", "name"),
    [(TruncatedSVC, "fit_intercept"), (TruncatedSVC, "warm_start"), (TruncatedSVC, "global_search"), (AblationSVC, "refine")]
    + [(TruncatedSVCCV, name) for name in ("standardize", "early_stopping", "halving", "exact")],
)
def test_yes_or_no(estimator, name):
    for value in ("no", 1, None):
        with pytest.raises(InvalidParameterError, match=f"{name} = .* must be True or False"):
            estimator(**{name: value}).fit(X, Y)


@pytest.mark.parametrize("estimator", [TruncatedSVCCV, CappedSVCCV, AblationSVCCV, LqSVCCV])
def test_lists_without_values(estimator):
    with pytest.raises(ValueError, match=r"Cs = \[\] is not allowed: Cs must hold at least one value"):
        estimator(Cs=[]).fit(X, Y)


def damaged(form, part, at, value):
    matrix = sparse.random(60, 4, density=0.5, format=form, random_state=0)
    getattr(matrix, part)[at] = value
    return matrix


@pytest.mark.parametrize(
    ("form", "part", "at", "value", "message"),
    [
        ("csr", "indptr", 5, 1_000_000, "indptr falls somewhere"),
        ("csr", "indptr", 0, 3, "indptr starts with 3"),
        ("csr", "indptr", -1, 1_000_000, "indptr ends with 1000000, but there are 120 values"),
        ("csr", "indptr", 7, -1, "indptr falls somewhere"),
        ("csr", "indices", 3, 4, "indices must be from 0 to 3, got 0 to 4"),
        ("csr", "indices", 3, -1, "indices must be from 0 to 3, got -1 to 3"),
        ("csc", "indptr", 2, 1_000_000, "indptr falls somewhere"),
        ("csc", "indices", 0, 60, "indices must be from 0 to 59"),
        ("bsr", "indptr", 1, 1_000_000, "indptr falls somewhere"),
        ("coo", "row", 0, 1_000_000, "row must be from 0 to 59"),
        ("coo", "col", 0, -1, "col must be from 0 to 3"),
    ],
)
def test_damaged_sparse_matrices(form, part, at, value, message):
    """scipy follows such numbers out of its arrays, and takes the interpreter along."""
    matrix = damaged(form, part, at, value)
    model = TruncatedSVC().fit(X, Y)
    search = TruncatedSVCCV([1.0], cv=2)
    for call in (
        lambda: TruncatedSVC().fit(matrix, Y),
        lambda: model.predict(matrix),
        lambda: search.fit(X, Y, tuning=(matrix, Y)),
        lambda: outlast.audit(matrix, Y),
        lambda: outlast.gamma_quartiles(matrix, Y),
    ):
        with pytest.raises(ValueError, match=f"Sparse matrix X is damaged: {message}"):
            call()


def test_sparse_matrices_of_parts_that_differ_in_length():
    matrix = sparse.csr_matrix(X)
    matrix.data = matrix.data[:-1]
    with pytest.raises(ValueError, match="ends with 240, but there are 239 values"):
        TruncatedSVC().fit(matrix, Y)
    matrix = sparse.csr_matrix(X)
    matrix.indptr = matrix.indptr[:-1]
    with pytest.raises(ValueError, match="indptr has 60 entries, expected 61"):
        TruncatedSVC().fit(matrix, Y)


@pytest.mark.parametrize(
    ("labels", "kind", "message"),
    [
        ([None] * 60, ValueError, "Unknown label type"),
        (np.array(["a", 1], object)[Y], ValueError, "Unknown label type"),
        (np.array([1, "a"], object)[Y], TypeError, r"uniformly strings or numbers. Got \['int', 'str'\]"),
        (np.array([None, "a"], object)[Y], TypeError, r"uniformly strings or numbers. Got \['NoneType', 'str'\]"),
        (np.full(60, np.nan), ValueError, "contains NaN"),
        (X[:, 0], ValueError, "Unknown label type: continuous"),
        # which scikit-learn before 1.7 allows: they are none of the classes then
        (np.array([b"a", b"b"])[Y], (TypeError, ValueError), "bytes|classes that"),
    ],
    ids=["None", "a number first", "a text first", "None beside text", "NaN", "numbers to predict", "bytes"],
)
def test_bad_labels_outside_of_fits(labels, kind, message):
    model = TruncatedSVC(truncation=0).fit(X, Y)
    for call in (
        lambda: model.utility_score(X, labels),
        lambda: outlast.certify(model, X, labels),
        lambda: TruncatedSVCCV([1.0]).fit(X, Y, tuning=(X, labels)),
        lambda: LqSVCCV([1.0], [1.0]).fit(X, Y, tuning=(X, labels)),
    ):
        with pytest.raises(kind, match=message):
            call()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 10**400}, "C = inf is not allowed"),
        ({"C": -(10**400)}, "C = -inf is not allowed"),
        ({"utility": [[10**400, 0], [0, 1]]}, "utility, row 0, column 0"),
        ({"class_weight": {0: 10**400}}, "class_weight holds a factor that is too large"),
        ({"kernel": "\ud800"}, r"kernel = '\\ud800' is not allowed"),
        ({"gamma": "\ud800"}, r"gamma = '\\ud800' is not allowed"),
    ],
    ids=["C", "-C", "utility", "class_weight", "kernel", "gamma"],
)
def test_numbers_and_texts_that_the_core_cannot_take(parameters, message):
    with pytest.raises(ValueError, match=message):
        TruncatedSVC(**parameters).fit(X, Y)


def test_names_with_half_a_character():
    with pytest.raises(ValueError, match=r"class names = 'a\\ud800' is not allowed: it holds half a character"):
        TruncatedSVC().fit(X, np.array(["a\ud800", "b"], object)[Y])
    frame = pd.DataFrame(X)
    frame.columns = pd.Index(["a\ud800", "b", "c", "d"], dtype=object)
    with pytest.raises(ValueError, match=r"feature names = 'a\\ud800' is not allowed"):
        TruncatedSVC().fit(frame, Y)


@pytest.mark.parametrize("files", [3, None, [3], b"rows.csv", ["rows.csv", None]], ids=str)
def test_files_that_are_none(files):
    with pytest.raises(TypeError, match="files must be a path or a list of paths, got"):
        TruncatedSVC(kernel="linear").fit_files(files)

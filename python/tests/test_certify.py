"""Certificates and the search for a global optimum, against enumeration."""

import numpy as np
import pytest
from relaxations import global_optimum
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from test_ablation import ring, small

import outlast
from outlast import AblationSVC, TruncatedSVC, TruncatedSVCCV, certify


def features(kernel, X, y):
    """y_i times rows whose inner products are the kernel's values."""
    if kernel == "linear":
        return y[:, None] * X
    values, vectors = np.linalg.eigh(rbf_kernel(X, gamma=0.5))
    return y[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_bounds_lie_below_and_local_answers_above_the_enumerated_optimum(kernel, C):
    X, y = small(8, 2, 3)
    options = {"truncation": 0, "kernel": kernel, "gamma": 0.5, "fit_intercept": False}
    least = C * global_optimum(features(kernel, X, y), 1 / C)
    slack = 1e-6 * least
    local = TruncatedSVC(C, **options).fit(X, y)
    assert local.objective_ >= least - slack
    found = certify(local, X, y)
    assert found.lower_bound <= least + slack
    assert found.objective == pytest.approx(local.objective_, rel=1e-6)
    assert found.gap == pytest.approx((found.objective - found.lower_bound) / found.objective, abs=1e-12)
    relaxed = AblationSVC("reh", C, kernel=kernel, gamma=0.5).fit(X, y)
    assert relaxed.lower_bound_ <= least + slack
    assert relaxed.objective_ >= least - slack
    searched = TruncatedSVC(C, global_search=True, **options).fit(X, y)
    assert searched.proved_
    assert searched.objective_ == pytest.approx(least, rel=1e-5)
    assert searched.lower_bound_ <= least + slack


def test_the_search_takes_an_intercept():
    X, y = small(7, 1, 5)
    least = global_optimum(y[:, None] * X, 1.0, y)
    options = {"truncation": 0, "kernel": "linear", "global_search": True}
    model = TruncatedSVC(1.0, **options).fit(X, y)
    assert model.proved_
    assert model.objective_ == pytest.approx(least, rel=1e-5)
    assert model.lower_bound_ <= least * (1 + 1e-6)


def test_a_small_c_is_proved_by_the_certificate_alone():
    X, y = small(30, 2, 6)
    model = TruncatedSVC(1e-4, truncation=0, kernel="linear", fit_intercept=False, tol=1e-10).fit(X, y)
    found = certify(model, X, y)
    assert found.proved
    assert found.gap <= 1e-6


def test_the_search_escapes_where_the_local_method_is_stuck():
    X, y, _, _ = ring(55, 0)
    options = {"truncation": 0, "kernel": "linear", "fit_intercept": False}
    local = TruncatedSVC(0.01, **options).fit(X, y)
    searched = TruncatedSVC(0.01, global_search=True, **options).fit(X, y)
    assert searched.proved_
    assert searched.status_ == "converged"
    assert searched.objective_ <= local.objective_
    assert (np.diff(searched.objective_trace_) <= 0).all()
    assert searched.objective_trace_[-1] == searched.objective_


def test_sample_weights_and_files(tmp_path):
    X, y = small(20, 2, 7)
    weights = np.random.default_rng(8).uniform(0.2, 2.0, 20)
    model = TruncatedSVC(0.3, truncation=0, kernel="rbf", gamma=0.5, fit_intercept=False).fit(X, y, weights)
    found = certify(model, X, y, weights)
    assert found.objective == pytest.approx(model.objective_, rel=1e-6)
    model.save(tmp_path / "model")
    again = certify(outlast.load(tmp_path / "model"), X, y, weights)
    assert again == found


def test_what_can_not_be_certified_is_refused():
    X, y = small(12, 2, 9)
    with pytest.raises(ValueError, match="truncated at -1"):
        certify(TruncatedSVC(kernel="linear").fit(X, y), X, y)
    with pytest.raises(ValueError, match="logistic"):
        certify(TruncatedSVC(loss="logistic", truncation=0).fit(X, y), X, y)
    with pytest.raises(ValueError, match="3 classes"):
        certify(TruncatedSVC(truncation=0).fit(X, np.arange(12) % 3), X, np.arange(12) % 3)
    with pytest.raises(ValueError, match="method rod"):
        certify(AblationSVC("rod", inlier_fraction=0.9).fit(X, y), X, y)
    model = TruncatedSVC(truncation=0).fit(X, y)
    with pytest.raises(ValueError, match="not fitted to these rows"):
        certify(model, X[::-1], y[::-1])
    with pytest.raises(ValueError, match="11 rows"):
        certify(model, X[1:], y[1:])
    with pytest.raises(ValueError, match="does not know"):
        certify(model, X, y + 5)
    with pytest.raises(TypeError, match="estimator of outlast"):
        certify("model", X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        certify(model, X, y[1:])
    with pytest.raises(ValueError, match="Unknown label type"):
        certify(model, X, np.array([None, *y[1:]], dtype=object))


@pytest.mark.parametrize(("parameters", "message"), [
    ({}, "truncation \"auto\""),
    ({"truncation": -0.5}, "truncation -0.5"),
    ({"truncation": 0, "loss": "logistic"}, "logistic"),
    ({"truncation": 0, "penalty": "l1", "kernel": "linear"}, "l1"),
])
def test_a_search_that_is_not_possible_is_refused(parameters, message):
    X, y = small(12, 2, 10)
    with pytest.raises(ValueError, match=f"global_search.*{message}"):
        TruncatedSVC(global_search=True, **parameters).fit(X, y)


def test_a_search_of_three_classes_is_refused():
    X, _ = small(12, 2, 10)
    with pytest.raises(ValueError, match="two classes"):
        TruncatedSVC(truncation=0, global_search=True).fit(X, np.arange(12) % 3)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_models_that_scaled_their_columns_are_certified_as_models_of_scaled_rows(kernel, fit_intercept, tmp_path):
    X, y = small(20, 2, 4)
    X = X * [1.0, 1000.0] + [5.0, 0.0]
    options = {"kernel": kernel, "fit_intercept": fit_intercept, "tol": 1e-8}
    search = TruncatedSVCCV([1.0], gammas=None if kernel == "linear" else [0.5], truncations=[0.0], cv=2, **options).fit(X, y)
    Z = StandardScaler().fit_transform(X)
    alone = TruncatedSVC(1.0, gamma=0.5, truncation=0, **options).fit(Z, y)
    search.save(tmp_path / "model")
    expected = certify(alone, Z, y)
    for model in (search, outlast.load(tmp_path / "model")):
        found = certify(model, X, y)
        assert found.objective == pytest.approx(expected.objective, rel=1e-6)
        assert found.lower_bound == pytest.approx(expected.lower_bound, rel=1e-5)
        assert found.proved == expected.proved

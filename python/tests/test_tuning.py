"""The estimators that tune themselves, against scikit-learn's own loops."""

import inspect
import re
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, ShuffleSplit, StratifiedKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import outlast
from outlast import (
    AblationSVC,
    AblationSVCCV,
    CappedSVC,
    CappedSVCCV,
    LqSVCCV,
    TruncatedSVC,
    TruncatedSVCCV,
    load,
    plot,
)

FOLDS = StratifiedKFold(3, shuffle=True, random_state=1)

ROUNDING = 1e-12
"""One minus a share of rows, against the share of the others."""


@pytest.fixture(scope="module")
def data():
    X, y = make_moons(150, noise=0.25, random_state=0)
    return np.column_stack([X[:, 0], 1000 * X[:, 1], np.sin(X[:, 0])]), y


def points(search):
    return zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True)


def scores(search, at):
    return [search.cv_results_[f"split{split}_test_score"][at] for split in range(search.n_splits_)]


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_points_have_the_scores_of_cross_validation(data, kernel, standardize):
    X, y = data
    X = X if standardize else X / [1, 1000, 1]
    gammas = ["median", 0.7] if kernel == "rbf" else None
    search = TruncatedSVCCV(
        [0.1, 2.0], gammas=gammas, truncations=["auto", None, -0.3], kernel=kernel, cv=FOLDS, standardize=standardize,
        early_stopping=False, exact=True, tol=1e-8,
    ).fit(X, y)
    for at, (point, mean) in enumerate(points(search)):
        single = TruncatedSVC(kernel=kernel, tol=1e-8, **{"gamma": 1.0, **point})
        alone = make_pipeline(StandardScaler(), single) if standardize else single
        assert_allclose(scores(search, at), cross_val_score(alone, X, y, cv=FOLDS), atol=ROUNDING, err_msg=str(point))
        assert mean == pytest.approx(np.mean(scores(search, at)))


def test_untruncated_points_are_those_of_svc(data):
    X, y = data
    search = TruncatedSVCCV([0.1, 1.0, 10.0], gammas=[0.2, 1.0], truncations=[None], cv=FOLDS, early_stopping=False, tol=1e-8, exact=True).fit(X, y)
    for at, (point, _) in enumerate(points(search)):
        peer = make_pipeline(StandardScaler(), SVC(C=point["C"], gamma=point["gamma"], tol=1e-8))
        assert_allclose(scores(search, at), cross_val_score(peer, X, y, cv=FOLDS), atol=ROUNDING, err_msg=str(point))


def test_rough_fits_say_nearly_the_same(data):
    X, y = data
    parameters = {"gammas": [0.2, 1.0], "truncations": [None], "cv": FOLDS, "early_stopping": False}
    rough = TruncatedSVCCV([0.1, 1.0, 10.0], **parameters).fit(X, y)
    exact = TruncatedSVCCV([0.1, 1.0, 10.0], exact=True, **parameters).fit(X, y)
    # one row of a fold of 50
    assert np.abs(rough.fold_errors_ - exact.fold_errors_).max() <= 0.02 + 1e-12


@pytest.mark.parametrize(
    ("search", "single"),
    [
        (CappedSVCCV([0.1, 1.0], ps=[1.0, 2.0], caps=[2.0, None], cap_fractions=[0.1]), CappedSVC()),
        (CappedSVCCV([1.0], kernel="rbf", gammas=[0.5], cap_fractions=[0.0, 0.2]), CappedSVC(kernel="rbf")),
        (AblationSVCCV("rod", [0.1, 1.0], inlier_fractions=[0.8, 1.0]), AblationSVC("rod")),
        (AblationSVCCV("reh", [0.1, 1.0]), AblationSVC("reh")),
    ],
)
def test_other_methods_have_the_scores_of_cross_validation(data, search, single):
    X, y = data[0][:90], data[1][:90]
    search.set_params(cv=FOLDS, exact=True, early_stopping=False).fit(X, y)
    for at, (point, _) in enumerate(points(search)):
        point = {name: np.inf if name == "cap" and value is None else value for name, value in point.items()}
        alone = make_pipeline(StandardScaler(), single.set_params(**point))
        assert_allclose(scores(search, at), cross_val_score(alone, X, y, cv=FOLDS), atol=ROUNDING, err_msg=str(point))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_model_is_that_of_a_pipeline(data, kernel):
    X, y = data
    search = TruncatedSVCCV([1.0], gammas=None if kernel == "linear" else [0.4], kernel=kernel, cv=2, tol=1e-8).fit(X, y)
    pipeline = make_pipeline(StandardScaler(), TruncatedSVC(1.0, gamma=0.4, kernel=kernel, tol=1e-8)).fit(X, y)
    assert_allclose(search.decision_function(X), pipeline.decision_function(X), rtol=1e-5, atol=1e-6)
    if kernel == "linear":
        assert_allclose(X @ search.coef_[0] + search.intercept_, search.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_files_and_exports_hold_the_scaling(data, kernel, tmp_path):
    X, y = data
    search = TruncatedSVCCV([1.0], kernel=kernel, cv=2, probability="weighted").fit(X, y)
    search.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert_array_equal(again.decision_function(X), search.decision_function(X))
    assert_array_equal(again.predict_proba(X), search.predict_proba(X))
    assert type(again) is TruncatedSVC and again.C == 1.0
    assert_array_equal(search.best_estimator_.predict(X), search.predict(X))
    with pytest.warns(UserWarning, match="probabilities"):
        search.export(tmp_path / "model.onnx", "onnx")
    if kernel == "rbf":
        with pytest.raises(ValueError, match="libsvm"):
            search.export(tmp_path / "model.libsvm", "libsvm")
    else:
        with pytest.warns(UserWarning, match="probabilities"):
            search.export(tmp_path / "model.libsvm", "libsvm")
        assert_allclose(load(tmp_path / "model.libsvm", n_features=3).decision_function(X), search.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_onnx_graphs_scale_the_columns(data, kernel, tmp_path):
    import onnxruntime

    X, y = data
    search = TruncatedSVCCV([1.0], kernel=kernel, cv=2).fit(X, y)
    search.export(tmp_path / "model.onnx", "onnx")
    label, values = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(None, {"X": X})
    # kernel values of a prediction are f32, the graph is double
    assert_allclose(values, search.decision_function(X), rtol=1e-5, atol=1e-6)
    assert_array_equal(label, search.predict(X))


def test_probabilities_of_scaled_columns(data):
    X, y = data
    for kernel in ["rbf", "linear"]:
        search = TruncatedSVCCV([1.0], gammas=None if kernel == "linear" else ["scale"], kernel=kernel, cv=2, probability="weighted").fit(X, y)
        pipeline = make_pipeline(StandardScaler(), TruncatedSVC(1.0, kernel=kernel, probability="weighted")).fit(X, y)
        assert_allclose(search.predict_proba(X), pipeline.predict_proba(X), atol=0.02)


def test_the_rule_of_one_standard_error_by_brute_force(data):
    X, y = data
    search = TruncatedSVCCV(gammas=[0.3, 1.0], rule="one_se", early_stopping=False, cv=5).fit(X, y)
    table = np.array([scores(search, at) for at in range(len(search.cv_results_["params"]))])
    means, errors = table.mean(axis=1), table.std(axis=1, ddof=1) / np.sqrt(5)
    assert_allclose(search.cv_results_["se_test_score"], errors)
    assert_allclose(search.cv_results_["std_test_score"], table.std(axis=1))
    best = np.argmax(means)
    within = [at for at in range(len(means)) if means[at] >= means[best] - errors[best] - 1e-12]
    smallest = min(search.cv_results_["params"][at]["C"] for at in within)
    assert search.C_ == smallest
    assert means[search.best_index_] == max(means[at] for at in within if search.cv_results_["params"][at]["C"] == smallest)


def test_costs_and_utilities(data):
    X, y = data
    cost = np.array([[0.0, 1.0], [6.0, 0.0]])
    search = TruncatedSVCCV([0.1, 1.0], gammas=[0.5], truncations=[None], cost=cost, cv=FOLDS, early_stopping=False, exact=True).fit(X, y)
    for at, (train, test) in enumerate(FOLDS.split(X, y)):
        alone = make_pipeline(StandardScaler(), TruncatedSVC(1.0, gamma=0.5, truncation=None, cost=cost)).fit(X[train], y[train])
        assert search.fold_errors_[at, 0, 0, 0, 1] == pytest.approx(cost[y[test], alone.predict(X[test])].mean())
    assert search.best_score_ == pytest.approx(-search.errors_.min())
    useful = TruncatedSVCCV([0.1, 1.0], gammas=[0.5], truncations=[None], utility=6 - cost, cv=FOLDS, early_stopping=False, exact=True).fit(X, y)
    assert_allclose(useful.errors_, 6 - search.errors_)
    assert useful.best_score_ == pytest.approx(useful.errors_.max())


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("form", ["cost", "utility"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_points_have_the_payoff_of_single_fits(data, kernel, form, standardize):
    X, y = data
    X = X if standardize else X / [1, 1000, 1]
    cost = np.array([[0.0, 1.0], [6.0, 0.0]])
    matrix = cost if form == "cost" else 6 - cost
    # two scalings differ by rounding, from which a truncated loss may be led to another local minimum
    search = TruncatedSVCCV(
        [0.1, 1.0], gammas=[0.5, 1.0] if kernel == "rbf" else None, truncations=[None] if standardize else ["auto", -0.3, None],
        kernel=kernel, cv=FOLDS, standardize=standardize, early_stopping=False, exact=True, tol=1e-8, **{form: matrix},
    ).fit(X, y)
    for at, point in enumerate(search.cv_results_["params"]):
        found = search.fold_errors_.reshape(FOLDS.n_splits, -1)[:, at]
        for split, (train, test) in enumerate(FOLDS.split(X, y)):
            single = TruncatedSVC(kernel=kernel, tol=1e-8, **{"gamma": 1.0, **point}, **{form: matrix})
            alone = (make_pipeline(StandardScaler(), single) if standardize else single).fit(X[train], y[train])
            assert found[split] == pytest.approx(matrix[y[test], alone.predict(X[test])].mean(), abs=ROUNDING), str(point)
    best = search.errors_.min() if form == "cost" else search.errors_.max()
    assert search.errors_.reshape(-1)[search.best_index_] == best


def test_weights_count_held_out_rows_too(data):
    X, y = data
    weights = np.random.default_rng(0).uniform(0.1, 2.0, len(y))
    train, test = np.arange(0, 100), np.arange(100, 150)
    search = TruncatedSVCCV([1.0], gammas=[0.5], cv=[(train, test)], exact=True).fit(X, y, sample_weight=weights)
    scaler = StandardScaler().fit(X[train], sample_weight=weights[train])
    alone = TruncatedSVC(1.0, gamma=0.5).fit(scaler.transform(X[train]), y[train], sample_weight=weights[train])
    wrong = alone.predict(scaler.transform(X[test])) != y[test]
    assert search.errors_.item() == pytest.approx(np.average(wrong, weights=weights[test]))


def test_nothing_of_a_held_out_row_leaks(data):
    X, y = data
    train, test = np.arange(0, 100), np.arange(100, 150)
    weights = np.ones(150)
    weights[120] = 0.0
    absurd = X.copy()
    absurd[120] = [1e8, -1e8, 1e8]
    found = [
        TruncatedSVCCV(gammas=["q1", "scale"], cv=[(train, test)]).fit(rows, y, sample_weight=weights).errors_
        for rows in (X, absurd)
    ]
    assert_array_equal(*found)


def test_splitters_holdouts_and_sets(data):
    X, y = data
    some = ShuffleSplit(4, test_size=0.3, random_state=0)
    search = TruncatedSVCCV([0.1, 1.0], gammas=[1.0], cv=some).fit(X, y)
    assert search.n_splits_ == 4
    groups = list(GroupKFold(3).split(X, y, groups=np.arange(150) // 10))
    assert TruncatedSVCCV([1.0], gammas=[1.0], cv=groups).fit(X, y).n_splits_ == 3
    held = TruncatedSVCCV([0.1, 1.0], gammas=[1.0], holdout=0.3).fit(X, y)
    assert held.n_splits_ == 1 and np.all(held.standard_errors_ > 0)
    tuned = TruncatedSVCCV([0.1, 1.0], gammas=[1.0], exact=True).fit(X[:100], y[:100], tuning=(X[100:], y[100:]))
    assert tuned.best_score_ == pytest.approx(tuned.score(X[100:], y[100:]))


SEARCHES = [
    TruncatedSVCCV([0.1, 1.0], gammas=[1.0]),
    CappedSVCCV([0.1, 1.0], cap_fractions=[0.1]),
    AblationSVCCV("reh", [0.1, 1.0]),
    LqSVCCV([0.1, 1.0], [1.0]),
]


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
def test_groups_stay_together(data, search):
    X, y = data
    groups = np.random.default_rng(0).permutation(150) // 10
    by_groups = clone(search).set_params(cv=GroupKFold(3)).fit(X, y, groups=groups)
    by_hand = clone(search).set_params(cv=list(GroupKFold(3).split(X, y, groups))).fit(X, y)
    assert by_groups.n_splits_ == 3
    assert_array_equal(by_groups.fold_errors_, by_hand.fold_errors_)
    in_order = clone(search).set_params(cv=GroupKFold(3)).fit(X, y, groups=np.arange(150) // 10)
    assert not np.array_equal(by_groups.fold_errors_, in_order.fold_errors_)
    with pytest.raises(ValueError, match="'groups' parameter should not be None"):
        clone(search).set_params(cv=GroupKFold(3)).fit(X, y)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[150, 149\]"):
        clone(search).set_params(cv=GroupKFold(3)).fit(X, y, groups=groups[1:])
    with pytest.raises(ValueError, match="nested = 2 is not allowed with groups"):
        clone(search).set_params(cv=GroupKFold(3), nested=2).fit(X, y, groups=groups)


@pytest.mark.parametrize("parameters", [{"cv": 2}, {"holdout": 0.3}])
def test_groups_that_nobody_asks_for_are_told(data, parameters):
    X, y = data
    with pytest.warns(UserWarning, match="The groups parameter is ignored") as caught:
        TruncatedSVCCV([1.0], gammas=[1.0], **parameters).fit(X, y, groups=np.arange(150) // 10)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="The groups parameter is ignored"):
        TruncatedSVCCV([1.0], gammas=[1.0], cv=GroupKFold(2)).fit(X, y, groups=np.arange(150) // 10, tuning=(X, y))


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
def test_groups_are_routed_to_the_splitter(data, search):
    X, y = data
    groups = np.random.default_rng(0).permutation(150) // 10
    folds = GroupKFold(2)
    with config_context(enable_metadata_routing=True):
        inner = clone(search).set_params(cv=GroupKFold(3))
        found = cross_validate(inner, X, y, params={"groups": groups}, cv=folds, return_estimator=True, error_score="raise")
        for model, (train, _) in zip(found["estimator"], folds.split(X, y, groups), strict=True):
            alone = clone(inner).fit(X[train], y[train], groups=groups[train])
            assert_array_equal(model.fold_errors_, alone.fold_errors_)
        with pytest.raises(TypeError, match="unexpected argument.*groups"):
            cross_validate(clone(search).set_params(cv=2), X, y, params={"groups": groups}, cv=2)


def test_nested_scores_are_those_of_an_outer_loop(data):
    X, y = data
    search = TruncatedSVCCV([0.1, 1.0], gammas=[0.5, 1.0], cv=3, nested=3, random_state=0).fit(X, y)
    assert search.nested_scores_.shape == (3,) and len(search.nested_params_) == 3
    assert search.nested_score_ == pytest.approx(search.nested_scores_.mean())
    outer = cross_val_score(TruncatedSVCCV([0.1, 1.0], gammas=[0.5, 1.0], cv=3), X, y, cv=FOLDS)
    # another way of dealing the rows out
    assert abs(outer.mean() - search.nested_score_) < 0.1
    assert not hasattr(TruncatedSVCCV([1.0], gammas=[0.5], cv=2).fit(X, y), "nested_score_")


def test_seeds_and_threads(data):
    X, y = data
    table = [TruncatedSVCCV(random_state=seed, n_jobs=jobs).fit(X, y) for seed, jobs in [(0, 1), (0, 2), (1, 2)]]
    assert_array_equal(table[0].fold_errors_, table[1].fold_errors_)
    assert_array_equal(table[0].decision_function(X), table[1].decision_function(X))
    assert not np.array_equal(table[0].fold_errors_, table[2].fold_errors_, equal_nan=True)


def test_halving_and_early_stopping_take_good_points():
    X, y = make_classification(600, 6, flip_y=0.1, random_state=0)
    full = TruncatedSVCCV(early_stopping=False).fit(X, y)
    best = full.errors_.reshape(-1)
    for search in (TruncatedSVCCV().fit(X, y), TruncatedSVCCV(halving=True).fit(X, y)):
        states = search.cv_results_["state"]
        assert {"done", "stopped"} == set(states)
        assert states[search.best_index_] == "done"
        assert best[search.best_index_] <= best.min() + full.standard_errors_.reshape(-1)[best.argmin()]
        assert search.cv_results_["rank_test_score"][search.best_index_] == 1


def test_three_classes_text_labels_and_balance():
    X, y = make_classification(240, 6, n_informative=4, n_classes=3, weights=[0.6, 0.3, 0.1], random_state=0)
    names = np.array(["red", "green", "blue"])
    search = TruncatedSVCCV([0.1, 1.0], gammas=["scale"], class_weight="balanced", cv=FOLDS, exact=True, early_stopping=False, tol=1e-7).fit(X, names[y])
    assert search.decision_function(X).shape == (240, 3)
    alone = make_pipeline(StandardScaler(), TruncatedSVC(1.0, class_weight="balanced", tol=1e-7))
    assert_allclose(scores(search, 1), cross_val_score(alone, X, names[y], cv=FOLDS), atol=ROUNDING)


def test_kernels_of_the_callers(data):
    X, y = data
    Z = StandardScaler().fit_transform(X)

    def kernel(A, B):
        return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    parameters = {"cv": FOLDS, "exact": True, "early_stopping": False}
    own = TruncatedSVCCV([0.1, 1.0], kernel=kernel, **parameters).fit(Z, y)
    matrix = TruncatedSVCCV([0.1, 1.0], kernel="precomputed", **parameters).fit(kernel(Z, Z), y)
    same = TruncatedSVCCV([0.1, 1.0], gammas=[0.5], standardize=False, **parameters).fit(Z, y)
    assert_array_equal(own.errors_.reshape(-1), same.errors_.reshape(-1))
    assert_array_equal(matrix.errors_.reshape(-1), same.errors_.reshape(-1))
    assert_array_equal(own.predict(Z), same.predict(Z))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"Cs": []}, "C"),
        ({"Cs": [np.nan]}, "C"),
        ({"Cs": [0.0]}, "C"),
        ({"Cs": 3}, "Cs"),
        ({"Cs": ["many"]}, "C"),
        ({"gammas": []}, "gamma"),
        ({"gammas": [-1.0]}, "gamma"),
        ({"gammas": ["wide"]}, "gamma"),
        ({"truncations": [0.5]}, "truncation"),
        ({"truncations": [np.nan]}, "truncation"),
        ({"penalties": ["l1"]}, "penalty"),
        ({"penalties": ["l7"]}, "penalty"),
        ({"cv": 1}, "cv"),
        ({"cv": 1000}, "cv"),
        ({"cv": []}, "cv"),
        ({"cv": [([0, 1], [])]}, "cv"),
        ({"cv": [([0, 1], [999])]}, "cv"),
        ({"holdout": 1.5}, "holdout"),
        ({"rule": "worst"}, "rule"),
        ({"nested": 1}, "nested"),
    ],
)
def test_bad_grids_are_refused_by_name(data, parameters, words):
    with pytest.raises((ValueError, TypeError), match=words):
        TruncatedSVCCV(**parameters).fit(*data)


def test_a_class_of_one_row_is_named(data):
    X, y = data
    rare = np.where(np.arange(150) == 17, "rare", np.where(y == 1, "yes", "no"))
    with pytest.raises(ValueError, match=r"split \d of 5 leaves no row of class .rare"):
        TruncatedSVCCV([1.0]).fit(X, rare)


def test_pictures_show_the_grid(data):
    import matplotlib

    matplotlib.use("Agg")
    X, y = data
    for search in (TruncatedSVCCV([0.1, 1.0, 10.0], gammas=["q1", "q3"], cv=3), CappedSVCCV([0.1, 1.0], cv=3), AblationSVCCV(cv=2)):
        ax = plot.tuning(search.fit(X[:80], y[:80]))
        lines = search.errors_.size // search.errors_.shape[-1]
        assert len(ax.get_lines()) == lines + 1 and len(ax.collections) == lines
        assert ax.get_ylabel() == "error" and ax.get_xscale() == "log"


def test_a_time_limit_keeps_the_best_so_far():
    X, y = make_classification(3000, 10, flip_y=0.2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="best so far"):
        search = TruncatedSVCCV(exact=True, time_limit=2.0, early_stopping=False).fit(X, y)
    assert search.search_status_ == "time_limit" and hasattr(search, "best_params_")
    assert not np.all(search.cv_results_["state"] == "done")


def test_ctrl_c_keeps_the_best_so_far():
    program = textwrap.dedent(
        """
        import sys, warnings
        from sklearn.datasets import make_classification
        from outlast import TruncatedSVCCV
        X, y = make_classification(4000, 20, flip_y=0.3, random_state=0)
        print("ready", flush=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = TruncatedSVCCV(early_stopping=False, exact=True, nested=10).fit(X, y)
        print(model.search_status_, model.status_, len(model.predict(X)), "best so far" in str(caught[-1].message))
        """
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    try:
        child.wait(timeout=6)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=120)
    assert out.strip() == "interrupted interrupted 4000 True"


SEARCHES = (TruncatedSVCCV, CappedSVCCV, AblationSVCCV, LqSVCCV)


def documented(estimator, section):
    """The words about each name of a section."""
    text = inspect.getdoc(estimator)
    text = text[text.index(f"{section}\n{'-' * len(section)}\n") :].split("\n\n")[0]
    return dict(re.findall(r"^(\S[^:]*) : (.*(?:\n    .*)*)", text, flags=re.MULTILINE))


@pytest.mark.parametrize("section", ["Parameters", "Attributes"])
def test_what_the_searches_share_is_documented_in_the_same_words(section):
    shared = {
        "Parameters": {"cv", "holdout", "early_stopping", "halving", "nested", "n_jobs", "verbose", "time_limit"},
        "Attributes": {"C_", "best_index_", "n_splits_", "nested_scores_", "nested_params_", "search_status_"},
    }[section]
    words = [documented(estimator, section) for estimator in SEARCHES]
    for name in shared:
        assert len({own[name] for own in words if name in own}) == 1, name


def test_public_names():
    assert {search.__name__ for search in SEARCHES} <= set(outlast.__all__)

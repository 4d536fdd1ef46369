"""What is built on fits to dask collections: audits, kernels by Nystroem features, and searches whose splits are fitted on workers."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold

import outlast

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
import distributed  # noqa: E402
import pandas as pd  # noqa: E402
from clusters import SMALL, cluster, margins, rows  # noqa: E402, F401

import outlast.dask as od  # noqa: E402
import outlast.dask._audit  # noqa: E402
import outlast.dask._tune  # noqa: E402


def test_audit_finds_flipped_labels():
    X, y = rows(n=20_000, wrong=0.0)
    rng = np.random.default_rng(3)
    flipped = rng.choice(len(y), 400, replace=False)
    y[flipped] = 1 - y[flipped]
    names = np.array(["cat", "dog"])[y]
    found = od.audit(da.from_array(X, chunks=(6000, 5)), da.from_array(names, chunks=6000), memory=SMALL)
    scores = found.scores.compute()
    inside = np.isin(np.arange(len(y)), flipped)
    # a flipped row is above one that is not, nearly always
    assert roc_auc_score(inside, scores) > 0.97
    assert found.noise_matrix.shape == (2, 2)
    np.testing.assert_allclose(found.noise_matrix.sum(axis=1), 1.0)
    assert (np.diag(found.noise_matrix) > 0.7).all()
    suspects = found.suspects(300)
    assert len(suspects) == 300 and list(suspects.columns) == ["given", "suggested", "score", "margin"]
    # one row in fifty is flipped
    assert np.isin(suspects.index[:100], flipped).mean() > 0.9
    assert (suspects["given"].to_numpy() == names[suspects.index]).all()
    np.testing.assert_allclose(suspects["score"], scores[suspects.index])

def held_out(X, y, folds, **parameters):
    """The decision values of each row by the fit in memory that is made without its fold."""
    fold = od._audit._fold_of(0, len(y), folds, 0)
    assert np.bincount(fold.astype(int), minlength=folds).min() > 0.9 * len(y) / folds
    f = None
    for number in range(folds):
        own = fold == number
        values = outlast.TruncatedSVC(kernel="linear", tol=1e-8, **parameters).fit(X[~own], y[~own]).decision_function(X[own])
        f = np.zeros((len(y), *values.shape[1:])) if f is None else f
        f[own] = values
    return f


@pytest.mark.parametrize("seed", range(4))
def test_an_audit_of_classes_with_few_rows(seed):
    """By chance alone, two rows are in the same fold one time in five."""
    X, y = rows(n=600, d=3, k=3, wrong=0.0)
    y[[5, 400]], y[[100, 300, 590]] = 7, 8
    found = od.audit(da.from_array(X, chunks=(150, -1)), da.from_array(y, chunks=150), random_state=seed)
    assert found.classes.tolist() == [0, 1, 2, 7, 8]
    assert np.isfinite(found.scores.compute()).all() and np.isfinite(found.margins.compute()).all()


def test_the_rows_of_a_class_with_few_are_in_different_folds():
    few = od._audit._Few(np.array([3, 150, 151]), np.array([0, 1, 2], dtype=np.uint64))
    whole = od._audit._fold_of(0, 300, 5, 1, few)
    assert whole[[3, 150, 151]].tolist() == [0, 1, 2]
    # whatever the parts are
    parts = [od._audit._fold_of(first, 50, 5, 1, few) for first in range(0, 300, 50)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    others = np.setdiff1d(np.arange(300), few.rows)
    np.testing.assert_array_equal(whole[others], od._audit._fold_of(0, 300, 5, 1)[others])


def test_an_audit_refuses_a_class_with_a_single_row():
    X, y = rows(n=600, d=3, wrong=0.0)
    y[17] = 2
    with pytest.raises(ValueError, match=r"class 2 has 1 row: every class needs 2 rows"):
        od.audit(da.from_array(X, chunks=(150, -1)), da.from_array(y, chunks=150))


@pytest.mark.parametrize("k", [2, 3])
def test_rows_are_judged_by_fits_made_without_them(k):
    X, y = rows(n=2000, d=12, k=k, wrong=0.3)
    found = od.audit(da.from_array(X, chunks=(600, -1)), y, folds=4, C=10.0, truncation=None)
    f = held_out(X, y, 4, C=10.0, truncation=None)
    wanted = margins(f, y)
    seen = margins(outlast.TruncatedSVC(10.0, kernel="linear", truncation=None, tol=1e-8).fit(X, y).decision_function(X), y)
    judged = found.margins.compute()
    # far nearer to that than to the fit that saw the rows
    np.testing.assert_allclose(judged, wanted, atol=0.02 * np.abs(seen - wanted).max())
    chances = LogisticRegression(C=1e6, max_iter=1000).fit(f.reshape(len(y), -1), y).predict_proba(f.reshape(len(y), -1))
    np.testing.assert_allclose(found.scores.compute(), 1 - chances[np.arange(len(y)), y], atol=0.01)


def test_an_audit_of_more_rows_than_are_brought_here(cluster):
    # sorted by class, in parts of one class each; and one class is rare
    X, y = rows(n=50_000, k=3)
    kept = np.flatnonzero((y != 2) | (np.arange(len(y)) % 250 == 0))
    kept = kept[np.argsort(y[kept], kind="stable")]
    X, y = X[kept], y[kept]
    assert 30 < (y == 2).sum() < 200 and len(y) > 30_000
    names = np.array(["cat", "dog", "fox"])[y]
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcde")).assign(kind=names), npartitions=2, sort=False)
    found = od.audit(frame[list("abcde")], frame["kind"], folds=2, C=0.1, truncation=None, memory=SMALL)
    f = held_out(X, y, 2, C=0.1, truncation=None)
    np.testing.assert_allclose(found.margins.compute(), margins(f, y), atol=0.01)
    # what the sample says about the classes is what all rows say
    chances = LogisticRegression(C=1e6, max_iter=1000).fit(f, y).predict_proba(f)
    scores = found.scores.compute()
    assert np.abs(scores - (1 - chances[np.arange(len(y)), y])).max() < 0.1
    assert np.abs(scores - (1 - chances[np.arange(len(y)), y])).mean() < 0.005
    wanted = np.stack([chances[y == code].mean(axis=0) for code in range(3)])
    np.testing.assert_allclose(found.noise_matrix, wanted, atol=0.05)
    suspects = found.suspects(50)
    assert (suspects["given"].to_numpy() == names[suspects.index]).all()
    assert found.suggested.compute()[suspects.index].tolist() == suspects["suggested"].tolist()


def test_a_client_that_is_not_the_current_one(cluster):
    X, y = rows(n=2000)
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as other:
        with distributed.Client(other, set_as_default=False) as client:
            # what another scheduler holds, the current client can't find
            parts, labels = client.persist([da.from_array(X, chunks=(600, 5)), da.from_array(y, chunks=600)])
            model = od.TruncatedSVC(0.1).fit(parts, labels, client=client)
            assert model.score(parts, labels, client=client) == pytest.approx((model.predict(X) == y).mean())
            found = od.audit(parts, labels, client=client)
            suspects = found.suspects(20)
            scores = client.compute(found.scores).result()
            assert distributed.default_client() is cluster
    assert len(suspects) == 20
    np.testing.assert_array_equal(suspects["score"], np.sort(scores[suspects.index])[::-1])
    assert pickle.loads(pickle.dumps(model)).predict(X).tolist() == model.predict(X).tolist()


def test_nystroem_comes_near_the_kernel_machine():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12_000, 2))
    y = ((X**2).sum(axis=1) > 1.4).astype(int)
    parts = da.from_array(X, chunks=(5000, 2))
    assert od.TruncatedSVC(1.0).fit(parts, y).score(parts, y) < 0.7
    model = od.TruncatedSVC(1.0, kernel_approximation="nystroem", n_components=60, memory=SMALL).fit(parts, y)
    assert model.score(parts, y) > 0.97
    # the same as the package's machine on the same columns
    Z = model.map_.transform(X)
    one = outlast.TruncatedSVC(1.0, kernel="linear").fit(Z, y)
    assert model.objective_ <= one.objective_ * (1 + 1e-3)
    np.testing.assert_allclose(model.decision_function(parts).compute(), Z @ model.coef_[0] + model.intercept_[0], atol=1e-9)
    with pytest.raises(ValueError, match="pickle"):
        model.save("model")
    with pytest.raises(ValueError, match="kernel_approximation"):
        od.TruncatedSVC(kernel_approximation="magic").fit(parts, y)

def test_nystroem_against_the_kernel_machine():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 2))
    y = (np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(3000) > X[:, 1]).astype(int)
    train, test = slice(2000), slice(2000, None)
    # the plain hinge: one optimum, and that of a part of the functions can't be lower than that of all
    kernel = outlast.TruncatedSVC(1.0, kernel="rbf", gamma=0.5, truncation=None, tol=1e-6).fit(X[train], y[train])
    near = od.TruncatedSVC(1.0, kernel_approximation="nystroem", gamma=0.5, n_components=150, truncation=None, tol=1e-6)
    near.fit(da.from_array(X[train], chunks=(700, 2)), y[train])
    assert kernel.objective_ <= near.objective_ * (1 + 1e-4)
    assert near.objective_ <= kernel.objective_ * 1.01
    assert near.score(X[test], y[test]) == pytest.approx(kernel.score(X[test], y[test]), abs=0.01)
    few = od.TruncatedSVC(1.0, kernel_approximation="nystroem", gamma=0.5, n_components=5, truncation=None).fit(da.from_array(X[train], chunks=(700, 2)), y[train])
    assert few.objective_ > near.objective_ * 1.05


def test_nystroem_draws_every_row_alike():
    X, y = rows(n=10_200, d=3)
    X[10_000:, 2] = 100.0
    for chunks in [(10_000, 200), (10_000, *(0,) * 15, 200)]:
        model = od.TruncatedSVC(1e-3, truncation=None, kernel_approximation="nystroem", n_components=200)
        model.fit(da.from_array(X, chunks=(chunks, 3)), y)
        assert len(model.map_.components_) == 200
        # 2 % of the rows: of 200, more than 14 in one case of ten thousand
        assert (model.map_.components_[:, 2] == 100.0).sum() <= 14
    with pytest.warns(UserWarning, match="n_components = 200 is lowered to 50") as warned:
        model = od.TruncatedSVC(0.1, kernel_approximation="nystroem").fit(da.from_array(X[:50], chunks=(20, 3)), y[:50])
    assert len(model.map_.components_) == 50 and warned[0].filename == __file__
    with pytest.raises(ValueError, match="no rows"):
        od.TruncatedSVC(kernel_approximation="nystroem").fit(da.from_array(X[:0], chunks=(20, 3)), y[:0])


def test_nystroem_looks_at_the_names_of_columns():
    X, y = rows(n=500, d=2)
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=2)
    model = od.TruncatedSVC(kernel_approximation="nystroem", n_components=20).fit(frame, dd.from_pandas(pd.Series(y), npartitions=2))
    f = model.map_.transform(X) @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(frame).compute(), f, atol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a"]]).compute()


def test_searches_over_workers(cluster):
    import joblib

    X, y = rows(n=600)
    search = GridSearchCV(outlast.TruncatedSVC(kernel="linear"), {"C": [0.01, 1.0]}, cv=3)
    here = search.fit(X, y).cv_results_["mean_test_score"]
    with joblib.parallel_backend("dask"):
        there = search.fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(here, there)
    splits = list(StratifiedKFold(3).split(X, y))
    own = outlast.TruncatedSVCCV(Cs=[0.01, 1.0], kernel="linear", cv=splits, early_stopping=False, halving=False)
    tuned = od.tune(own, X, y, client=cluster)
    own.fit(X, y)
    np.testing.assert_allclose(tuned.errors_, own.errors_.ravel())
    assert tuned.best_params_ == own.best_params_
    assert tuned.best_estimator_.objective_ == pytest.approx(own.objective_, rel=1e-9)
    with pytest.raises(TypeError, match="TruncatedSVCCV"):
        od.tune(search, X, y, client=cluster)

GIVEN_UP = {"early_stopping": False, "halving": False}


@pytest.mark.parametrize(
    "parameters",
    [
        {"utility": [[2.0, 0.0], [0.0, 1.0]]},
        {"cost": [[0.0, 5.0], [1.0, 0.0]]},
        {"utility": [[2.0, 0.0], [0.0, 1.0]], "rule": "one_se"},
        {"rule": "one_se"},
        {"Cs": [300.0, 3.0, 30.0]},
    ],
    ids=["utility", "cost", "utility, one_se", "one_se", "ties"],
)
def test_a_search_over_workers_chooses_as_one_in_memory(parameters, cluster):
    X, y = rows(n=300, d=8, wrong=0.0 if "Cs" in parameters else 0.35, seed=3)
    splits = list(StratifiedKFold(3).split(X, y))
    parameters = {"Cs": [1e-5, 1e-3, 1e-2, 1e-1, 1.0, 10.0], **parameters}
    own = outlast.TruncatedSVCCV(kernel="linear", cv=splits, **GIVEN_UP, **parameters)
    tuned = od.tune(own, X, y, client=cluster)
    own.fit(X, y)
    np.testing.assert_allclose(tuned.errors_, own.errors_.ravel())
    np.testing.assert_allclose(tuned.fold_errors_, own.fold_errors_.reshape(3, -1).T)
    assert tuned.best_params_ == own.best_params_
    assert tuned.best_estimator_.objective_ == pytest.approx(own.objective_, rel=1e-9)
    assert tuned.measure_ in repr(tuned)
    # the case tells the least number from what is best, and that from what the rule takes
    assert (tuned.best_index_ == int(np.argmin(own.errors_))) == ("cost" in parameters)
    if "rule" in parameters:
        assert own.set_params(rule="best").fit(X, y).best_index_ != tuned.best_index_


def test_the_rule_of_one_standard_error_on_one_split(cluster):
    X, y = rows(n=300, d=8, wrong=0.2)
    split = (np.arange(200), np.arange(200, 300))
    own = outlast.TruncatedSVCCV(Cs=[1e-5, 1e-3, 1e-2, 0.1, 1.0], kernel="linear", cv=[split], rule="one_se", **GIVEN_UP)
    tuned = od.tune(own, X, y, client=cluster)
    assert tuned.best_params_ == own.fit(X, y).best_params_
    assert tuned.best_index_ != int(np.argmin(tuned.errors_))


def test_frames_and_sparse_rows_are_searched_as_they_are(cluster):
    X, y = rows(n=300)
    own = outlast.TruncatedSVCCV(Cs=[0.01, 1.0], kernel="linear", cv=[(np.arange(200), np.arange(200, 300))], **GIVEN_UP)
    frame = pd.DataFrame(X, columns=list("abcde"))
    for given in (frame, dd.from_pandas(frame, npartitions=2)):
        assert od.tune(own, given, y, client=cluster).best_estimator_.feature_names_in_.tolist() == list("abcde")
    found = od.tune(own, sparse.csr_matrix(np.maximum(X, 0)), y, client=cluster)
    own.fit(sparse.csr_matrix(np.maximum(X, 0)), y)
    assert found.best_params_ == own.best_params_
    assert found.best_estimator_.objective_ == pytest.approx(own.objective_, rel=1e-9)


def test_what_splits_cannot_do_apart_is_refused_by_name(cluster):
    X, y = rows(n=60)
    for refused, match in [
        (outlast.TruncatedSVCCV(holdout=0.3), "holdout = 0.3 .* cv="),
        (outlast.CappedSVCCV(nested=3), "nested = 3 .*cross_validate"),
        (outlast.LqSVCCV(), "LqSVCCV, expected TruncatedSVCCV.*own fit"),
    ]:
        with pytest.raises((TypeError, ValueError), match=match):
            od.tune(refused, X, y, client=cluster)


def test_points_that_ran_out_of_time_are_not_chosen():
    points = [{"C": 1.0}, {"C": 10.0}, {"C": 0.1}]
    losses = np.array([[0.2, 0.3], [0.1, np.nan], [np.nan, np.nan]])
    with pytest.warns(match="1 of 3 points"):
        assert od._tune._chosen(points, losses, np.zeros(3), "best") == 0

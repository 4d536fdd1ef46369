"""What is taken from dask collections, and what is refused."""

import os
import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import outlast

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
import pandas as pd  # noqa: E402
from clusters import SMALL, cluster, rows, threads  # noqa: E402, F401

import outlast.dask as od  # noqa: E402


def made(number, folder, columns=("a", "b", "label", "unused")):
    """Rows of a source that is never twice the same, each with its label. It keeps a list of what it was asked for."""
    with open(os.path.join(folder, str(number)), "a") as file:
        file.write(f"{','.join(columns)}\n")
    values = np.random.default_rng().uniform(-1, 1, (400, 2))
    return pd.DataFrame({"a": values[:, 0], "b": values[:, 1], "label": (values[:, 0] > 0).astype(int), "unused": 1.0})[list(columns)]


@pytest.mark.parametrize("where", ["threads", "cluster"])
@pytest.mark.parametrize("kind", ["array", "frame", "table"])
def test_what_rows_and_labels_come_from_is_computed_once(kind, where, tmp_path, request):
    request.getfixturevalue(where)
    meta = pd.DataFrame({"a": [0.0], "b": [0.0], "label": [0], "unused": [1.0]})
    folder = str(tmp_path)
    if kind == "array":
        numbers = da.arange(3, chunks=1)[:, None]
        source = da.map_blocks(lambda block: made(int(block[0, 0]), folder).to_numpy(), numbers, chunks=((400,) * 3, 4), meta=np.empty((0, 0)))
        X, y, weights = source[:, :2], source[:, 2].astype(int), source[:, 2] + 1.0
    else:
        # the second is a reader that makes the columns it is asked for
        source = dd.from_map(made if kind == "table" else lambda number: made(number, folder), range(3), meta=meta, **({"folder": folder} if kind == "table" else {}))
        X, y, weights = source[["a", "b"]], source["label"], source["label"] + 1.0

    def asked():
        return [(tmp_path / str(number)).read_text().splitlines() for number in range(3)]

    model = od.TruncatedSVC(100.0, truncation=None).fit(X, y, weights)
    columns = "a,b,label" if kind == "table" else "a,b,label,unused"
    assert asked() == [[columns]] * 3
    # the label is whether a > 0, of the rows that were fitted
    assert model.coef_[0, 0] > 50 * abs(model.coef_[0, 1])
    assert model.score(X, y, weights) > 0.99
    assert asked() == [[columns] * 2] * 3


@pytest.mark.parametrize("where", ["threads", "cluster"])
@pytest.mark.parametrize("k, kernel", [(2, None), (3, None), (3, "nystroem")])
def test_sparse_rows_are_predicted_as_they_are_fitted(k, kernel, where, request):
    request.getfixturevalue(where)
    X, y = rows(n=900, k=k)
    X = np.maximum(X, 0.0)
    dense = da.from_array(X, chunks=((400, 0, 500), 5))
    for kind in (sparse.csr_matrix, sparse.csr_array):
        blocks = dense.map_blocks(kind, dtype=X.dtype, meta=kind((0, 0)))
        labels = da.from_array(y, chunks=((400, 0, 500),))
        model = od.TruncatedSVC(0.1, kernel_approximation=kernel, n_components=20).fit(blocks, labels)
        f, predicted = model.decision_function(X), model.predict(X)
        for given in (blocks, kind(X), dense):
            here = not isinstance(given, da.Array)
            values, classes = model.decision_function(given), model.predict(given)
            np.testing.assert_allclose(values if here else values.compute(), f, atol=1e-12)
            np.testing.assert_array_equal(classes if here else classes.compute(), predicted)
            assert model.score(given, y if here else labels) == pytest.approx((predicted == y).mean())


LABELS = {
    "text": (["a", "b", None], object),
    "NA": (["a", "b", pd.NA], object),
    "str": (["a", "b", None], "str"),
    "string": (["a", "b", None], "string"),
    "pyarrow": (["a", "b", None], "string[pyarrow]"),
    "Int64": ([0, 1, None], "Int64"),
    "boolean": ([True, False, None], "boolean"),
    "float": ([0, 1, None], float),
    "category": (["a", "b", None], "category"),
}


@pytest.mark.parametrize("kind", LABELS)
def test_a_missing_label_is_named(kind, threads):
    values, dtype = LABELS[kind]
    X, _ = rows(n=90)
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    whole = pd.Series(values[:2] * 45, dtype=dtype)
    model = od.TruncatedSVC().fit(frame, dd.from_pandas(whole, npartitions=3))
    holed = dd.from_pandas(pd.Series([*values[:2] * 20, values[2], *values[:2] * 25][:90], dtype=dtype), npartitions=3)
    for judge in (model.fit, model.score):
        with pytest.raises(ValueError, match=r"^partition 1: y, row 10: the label is missing"):
            judge(frame, holed)
    weights = pd.Series([1.0] * 40 + [None] + [1.0] * 49, dtype="Float64")
    with pytest.raises(ValueError, match=r"^partition 1: sample_weight, row 10: "):
        model.fit(frame, dd.from_pandas(whole, npartitions=3), dd.from_pandas(weights, npartitions=3))


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_a_column_of_numbers_is_no_label(threads):
    X, _ = rows(n=3_000)
    parts = da.from_array(X, chunks=(500, 5))
    # in memory and in parts of 500 or 1,500 rows
    for model, given in [(outlast.TruncatedSVC(kernel="linear"), X), (od.TruncatedSVC(), parts)]:
        with pytest.raises(ValueError, match=r"^y has 3000 distinct values; a classifier takes at most 1000 classes \(is y a number to predict\?\)$"):
            model.fit(given, np.arange(3_000))
    with pytest.raises(ValueError, match=r"^partition [01]: y has 1500 distinct values; a classifier takes at most 1000 classes"):
        od.TruncatedSVC().fit(parts.rechunk((1500, 5)), np.arange(3_000))


def test_what_cannot_be_scored_is_refused_by_name(cluster):
    X, y = rows(n=300)
    parts, labels = da.from_array(X, chunks=(100, 5)), da.from_array(y, chunks=100)
    model = od.TruncatedSVC(0.1).fit(parts, labels)

    def refusal(*data):
        with pytest.raises(ValueError) as refused:
            model.score(*data)
        return str(refused.value)

    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    series = dd.from_pandas(pd.Series(y), npartitions=3)
    assert model.score(frame, series) == pytest.approx((model.predict(X) == y).mean())
    cut = dd.concat([series.partitions[:2], series.partitions[[2]].loc[:250]])
    assert refusal(frame, cut) == "partition 2: 100 rows, but 51 labels"
    weights = np.ones(300)
    assert refusal(frame, series, cut * 1.0) == "partition 2: 100 rows, but 51 weights"
    weights[150] = np.nan
    assert refusal(parts, labels, weights).startswith("partition 1: sample_weight, row 50: a weight of nan is not allowed")
    weights[150] = -1
    assert refusal(parts, labels, weights).startswith("partition 1: sample_weight, row 50: a weight of -1.0 is not allowed")
    assert "every sample_weight is zero" in refusal(parts, labels, weights * 0)
    assert "no rows" in refusal(parts[:0], labels[:0])
    # of the part that is looked at first
    assert re.match(r"partition \d: X has 3 features", refusal(parts[:, :3], labels))
    assert re.match(r"partition \d: y, row 0: .* is not a class", refusal(parts, labels + 0.5))
    assert re.match(r"partition \d: y holds text, but the classes are numbers", refusal(parts, labels.astype(str)))
    with pytest.raises(ValueError, match="not fitted"):
        od.TruncatedSVC().score(parts, labels)


def test_files_after_parts(tmp_path):
    X, y = rows(n=2_000, d=2)
    path = tmp_path / "rows.csv"
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": y}).to_csv(path, index=False)
    parts = da.from_array(X, chunks=(500, 2))
    model = od.TruncatedSVC(0.1, kernel_approximation="nystroem", n_components=20).fit(parts, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="kernel_approximation = 'nystroem' .* files"):
        model.fit_files(path)
    # which is still the model that it was
    np.testing.assert_array_equal(model.predict(X), before)
    model.set_params(kernel_approximation=None, memory=1_000).fit_files(path, memory=SMALL)
    one = outlast.TruncatedSVC(0.1, kernel="linear").fit(X, y)
    assert model.map_ is None and model.objective_ == pytest.approx(one.objective_, rel=1e-6)
    np.testing.assert_array_equal(model.predict(X), one.predict(X))
    np.testing.assert_array_equal(model.predict(parts).compute(), one.predict(X))
    assert not any(hasattr(model, name) for name in ("passes_", "bytes_per_pass_", "history_", "partition_rows_"))
    # the memory is the estimator's
    with pytest.raises(ValueError, match="memory = 1000"):
        model.fit_files(path)
    model.set_params(memory=SMALL, max_iter=1, tol=1e-12)
    with pytest.warns(ConvergenceWarning) as warned:
        model.fit_files(path)
    assert warned[0].filename == __file__


def test_labels_of_two_types_that_no_type_holds_are_refused(threads):
    X = da.from_array(np.arange(8.0)[:, None], chunks=4)

    def declared_signed(unsigned, signed):
        """What a partition holds need not be what it is declared to hold."""
        parts = [np.array(unsigned, dtype=np.uint64), np.array(signed)]
        return da.concatenate([da.from_delayed(dask.delayed(part), (4,), np.int64) for part in parts])

    with pytest.raises(ValueError, match=f"y holds {2**63 + 1} and labels of a signed type"):
        od.TruncatedSVC().fit(X, declared_signed([2**63, 2**63 + 1] * 2, [0, 1] * 2))
    assert od.TruncatedSVC().fit(X, declared_signed([3, 7] * 2, [-1, 3] * 2)).classes_.tolist() == [-1, 3, 7]


def test_a_client_of_another_kind_is_refused(cluster, monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.arange(90) % 2
    search = outlast.TruncatedSVCCV(Cs=[0.1], kernel="linear", cv=3)
    calls = (lambda client: od.TruncatedSVC().fit(da.from_array(X), da.from_array(y), client=client), lambda client: od.tune(search, X, y, client=client))
    for call in calls:
        with pytest.raises(TypeError, match="client is a str, expected a distributed.Client"):
            call("tcp://here")
    with monkeypatch.context() as patch:
        patch.setattr(type(cluster), "asynchronous", True)
        for call in calls:
            with pytest.raises(TypeError, match="client is asynchronous"):
                call(cluster)


def test_a_split_without_a_class_is_named(cluster):
    X = np.random.default_rng(0).normal(size=(90, 2))
    y = np.where(np.arange(90) == 7, "rare", np.where(X[:, 0] > 0, "a", "b"))
    with pytest.raises(ValueError, match="split [123] of 3 leaves no row of class 'rare' to fit"), pytest.warns(UserWarning, match="least populated"):
        od.tune(outlast.TruncatedSVCCV(Cs=[0.1], kernel="linear", cv=3), X, y)

"""Files larger than memory: `TruncatedSVC.fit_files` against `fit` on the same rows, from files that pandas, pyarrow and polars wrote."""

import gzip

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file

from outlast import CappedSVC, LqSVC, TruncatedSVC, load

ROWS, COLUMNS = 60_000, 30
SAME = 1e-5
"""Relative difference of objectives: rows are kept in 32 bits."""


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, ROWS)
    X = rng.standard_normal((ROWS, COLUMNS)) + 0.4 * (2 * y[:, None] - 1) * (np.arange(COLUMNS) % 3 == 0)
    X[:, 1] += 1e5
    wrong = rng.random(ROWS) < 0.05
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(COLUMNS)])
    frame["weight"] = rng.integers(1, 4, ROWS)
    frame["kind"] = np.where(y ^ wrong, "spam", "ham")
    return frame


@pytest.fixture(scope="module")
def files(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    frame.iloc[:20_000].to_csv(folder / "a.csv", index=False)
    frame.iloc[20_000:45_000].to_parquet(folder / "b.parquet", row_group_size=7_000)
    polars.from_pandas(frame.iloc[45_000:]).write_parquet(folder / "c.parquet")
    return [folder / name for name in ("a.csv", "b.parquet", "c.parquet")]


def in_memory(frame, sample_weight=None, **parameters):
    X, y = frame.drop(columns=["weight", "kind"]), frame["kind"]
    return TruncatedSVC(kernel="linear", **parameters).fit(X, y, sample_weight)


@pytest.mark.parametrize("class_weight", [None, "balanced", {"ham": 1.0, "spam": 2.0}])
def test_the_objective_is_that_of_a_fit_in_memory(frame, files, class_weight):
    parameters = {"C": 0.01, "truncation": None, "class_weight": class_weight, "tol": 1e-7}
    wanted = in_memory(frame, **parameters)
    found = TruncatedSVC(kernel="linear", **parameters).fit_files(files, target="kind", ignore=["weight"], memory="64MB")
    assert found.solver_ == "linear-stream" and found.status_ == "converged"
    assert found.objective_ == pytest.approx(wanted.objective_, rel=SAME)
    assert list(found.classes_) == ["ham", "spam"] and list(found.feature_names_in_) == [f"x{j}" for j in range(COLUMNS)]
    X = frame.drop(columns=["weight", "kind"]).iloc[:5000]
    assert (found.predict(X) == wanted.predict(X)).mean() > 0.999


def test_truncated_with_weights(frame, files, tmp_path):
    parameters = {"C": 0.01, "tol": 1e-7}
    wanted = in_memory(frame, sample_weight=frame["weight"].to_numpy(float), **parameters)
    model = TruncatedSVC(kernel="linear", **parameters)
    found = model.fit_files(files, target="kind", weight_column="weight", memory="64MB", cache=tmp_path)
    assert found.objective_ <= wanted.objective_ * (1 + 1e-4)
    assert np.all(np.diff(found.objective_trace_) <= 0)
    assert found.margins_ is None and found.outliers_ is None
    assert not list(tmp_path.iterdir())
    found.save(tmp_path / "model")
    X = frame.drop(columns=["weight", "kind"]).iloc[:500]
    np.testing.assert_array_equal(load(tmp_path / "model").decision_function(X), found.decision_function(X))


def test_few_rows_are_fitted_in_memory(frame, tmp_path):
    few = frame.drop(columns="weight").iloc[:300]
    few.to_parquet(tmp_path / "few.parquet")
    parameters = {"C": 0.1, "kernel": "linear"}
    found = TruncatedSVC(**parameters).fit_files(tmp_path / "few.parquet")
    wanted = TruncatedSVC(**parameters).fit(few.drop(columns="kind"), few["kind"])
    assert found.solver_ == wanted.solver_ and found.objective_ == wanted.objective_
    np.testing.assert_array_equal(found.coef_, wanted.coef_)


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "lz4", "none"])
def test_parquet_is_the_table_it_was_made_of(frame, tmp_path, codec):
    few = frame.iloc[:2000].copy()
    few["flag"], few["count"], few["short"] = few["x0"] > 0, np.arange(2000, dtype=np.uint16), few["x2"].astype(np.float32)
    few.to_parquet(tmp_path / "few.parquet", compression=codec, row_group_size=777)
    # text has all digits of a number of 32 bits only as one of 64
    few.assign(flag=few["flag"].astype(int), short=few["short"].astype(float)).to_csv(tmp_path / "few.csv", index=False)
    fits = [
        TruncatedSVC(C=1e-3, kernel="linear").fit_files(tmp_path / name, target="kind")
        for name in ("few.parquet", "few.csv")
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


def test_what_it_cannot_do_is_refused(frame, tmp_path):
    frame.iloc[:50].to_csv(tmp_path / "few.csv", index=False)
    with pytest.raises(ValueError, match="kernel"):
        TruncatedSVC().fit_files(tmp_path / "few.csv", target="kind")
    with pytest.raises(ValueError, match="loss"):
        TruncatedSVC(kernel="linear", loss="logistic").fit_files(tmp_path / "few.csv", target="kind")
    with pytest.raises(ValueError, match="feature_map"):
        LqSVC(feature_map="squares").fit_files(tmp_path / "few.csv", target="kind")
    for memory in ("1MB", "many", 5):
        with pytest.raises(ValueError, match="memory"):
            TruncatedSVC(kernel="linear").fit_files(tmp_path / "few.csv", target="kind", memory=memory)
    with pytest.raises(OSError, match="nowhere"):
        TruncatedSVC(kernel="linear").fit_files(tmp_path / "nowhere.csv")


def test_progress_is_shown(frame, files, capsys):
    model = TruncatedSVC(0.01, kernel="linear", truncation=None)
    model.fit_files(files, target="kind", ignore=["weight"], memory="64MB")
    assert capsys.readouterr().out == ""
    model.set_params(verbose=1).fit_files(files, target="kind", ignore=["weight"], memory="64MB")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[outlast] reading, step 0" and lines[1].startswith("[outlast] reading, step ")
    # not one for each of the many batches
    assert sum("reading" in line for line in lines) < 20
    told = [float(line.split("objective ")[1].split(",")[0]) for line in lines[:-1] if "objective" in line]
    assert len(told) > 2 and min(told) == pytest.approx(model.objective_, rel=1e-3)
    assert lines[-1].startswith(f"[outlast] converged, objective {model.objective_:.8g}")
    # few rows, fitted in memory
    frame.iloc[:300].to_csv(files[0].with_name("few.csv"), index=False)
    model.fit_files(files[0].with_name("few.csv"), target="kind", ignore=["weight"])
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"[outlast] converged, objective {model.objective_:.8g}")


def test_capped_and_lq_machines(frame, files):
    X, y = frame.drop(columns=["weight", "kind"]), frame["kind"]
    for method in (CappedSVC(0.01, p=2.0, cap=4.0), LqSVC(0.01)):
        wanted = clone(method).fit(X, y)
        found = method.fit_files(files, target="kind", ignore=["weight"], memory="64MB")
        assert found.solver_ == "linear-stream" and found.status_ == "converged"
        assert found.objective_ <= wanted.objective_ * (1 + 1e-4)


def test_weights_of_rows_with_every_method(frame, files):
    X, y, weights = frame.drop(columns=["weight", "kind"]), frame["kind"], frame["weight"].to_numpy(float)
    for method in (
        CappedSVC(0.01, p=2.0, cap=4.0),
        LqSVC(0.01),
        TruncatedSVC(0.01, kernel="linear", penalty="adaptive_l1"),
        TruncatedSVC(0.01, kernel="linear", utility=[[3.0, 0.5], [0.0, 1.0]]),
    ):
        wanted = clone(method).fit(X, y, weights)
        found = method.fit_files(files, target="kind", weight_column="weight", memory="64MB")
        assert found.solver_ == "linear-stream" and found.status_ == "converged"
        assert found.objective_ <= wanted.objective_ * (1 + 1e-4), (method, found.objective_ / wanted.objective_ - 1)
        assert (found.predict(X) == wanted.predict(X)).mean() > 0.995


def test_libsvm_text(tmp_path):
    rng = np.random.default_rng(8)
    y = rng.integers(0, 2, ROWS)
    X = np.round(rng.standard_normal((ROWS, COLUMNS)) + 0.4 * (2 * y[:, None] - 1) * (np.arange(COLUMNS) % 3 == 0), 3)
    X[np.abs(X) < 0.5] = 0.0
    y = np.where(rng.random(ROWS) < 0.05, 1 - y, y)
    dump_svmlight_file(X[:40_000], y[:40_000], str(tmp_path / "a.svm"), zero_based=False)
    with gzip.open(tmp_path / "b.svm.gz", "wb", compresslevel=1) as file:
        dump_svmlight_file(X[40_000:], y[40_000:], file, zero_based=False)
    files = [tmp_path / "a.svm", tmp_path / "b.svm.gz"]
    for method in (TruncatedSVC(0.01, kernel="linear", truncation=None, tol=1e-7), LqSVC(0.01, q=1.0)):
        wanted = clone(method).fit(X, y)
        found = method.fit_files(files, memory="64MB")
        assert found.solver_ == "linear-stream" and found.status_ == "converged"
        assert found.objective_ == pytest.approx(wanted.objective_, rel=SAME if isinstance(method, TruncatedSVC) else 1e-4)


def test_reading_counts_towards_the_time_limit(files):
    with pytest.raises(ValueError, match="before all rows were read"):
        TruncatedSVC(kernel="linear", time_limit=1e-3).fit_files(files, target="kind", ignore=["weight"], memory="64MB")


def test_a_number_to_predict_is_refused_where_it_is_met(tmp_path):
    pd.DataFrame({"x": np.arange(5_000) % 7, "y": np.arange(5_000) + 0.5}).to_parquet(tmp_path / "numbers.parquet")
    with pytest.raises(ValueError, match=r"row 1001.*is y a number to predict\?"):
        TruncatedSVC(kernel="linear").fit_files(tmp_path / "numbers.parquet")

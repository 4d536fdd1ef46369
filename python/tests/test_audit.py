"""outlast.audit: what it finds, what it gives back, what it refuses."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics import average_precision_score, roc_auc_score

import outlast


def flipped(X, y, share, seed):
    rng = np.random.default_rng(seed)
    wrong = np.zeros(len(y), dtype=bool)
    wrong[rng.choice(len(y), round(share * len(y)), replace=False)] = True
    k = y.max() + 1
    return X, np.where(wrong, (y + rng.integers(1, k, len(y))) % k, y), wrong


@pytest.fixture(scope="module")
def wine():
    return flipped(*load_wine(return_X_y=True), 0.1, 0)


@pytest.fixture(scope="module")
def audited(wine):
    X, y, _ = wine
    return outlast.audit(X, y, random_state=0)


def test_flips_come_first(wine, audited):
    _, y, wrong = wine
    assert average_precision_score(wrong, audited.scores) > 0.9
    assert roc_auc_score(wrong, audited.scores) > 0.98
    truth = load_wine().target
    assert np.mean(audited.suggested[wrong] == truth[wrong]) > 0.9


def test_digits_by_chance_and_by_the_audit():
    X, y = load_digits(return_X_y=True)
    X, y, wrong = flipped(X[:600], y[:600], 0.1, 1)
    scores = outlast.audit(X, y, repeats=1, random_state=0).scores
    assert average_precision_score(wrong, scores) > 0.9


def test_what_comes_back_fits_together(wine, audited):
    X, y, _ = wine
    n, k = len(y), 3
    for values in (audited.scores, audited.confidence, audited.agreement):
        assert values.shape == (n,) and np.all((values >= 0) & (values <= 1))
    assert audited.margins.shape == (n,) and np.all(np.isfinite(audited.margins))
    assert audited.chances.shape == (n, k)
    np.testing.assert_allclose(audited.chances.sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_array_equal(audited.chances.argmax(axis=1), audited.suggested)
    np.testing.assert_allclose(audited.noise_matrix.sum(axis=1), 1.0, atol=1e-12)
    assert audited.confusion.sum() == n
    np.testing.assert_array_equal(audited.confusion.sum(axis=1), np.bincount(y))
    suspects = audited.suspects
    assert list(suspects.columns) == ["given", "suggested", "score", "confidence", "agreement", "margin", "reasons"]
    assert suspects["score"].is_monotonic_decreasing
    np.testing.assert_array_equal(suspects["given"], y[suspects.index])
    assert suspects["reasons"].str.len().min() > 0
    assert "wrong" in repr(audited)


def test_the_same_seed_gives_the_same_scores(wine):
    X, y, _ = wine
    run = lambda seed: outlast.audit(X, y, repeats=1, random_state=seed).scores
    np.testing.assert_array_equal(run(3), run(3))
    assert np.any(run(3) != run(4))


def test_text_labels_single_precision_and_sparse_rows(wine):
    X, y, _ = wine
    names = np.array(["a", "b", "c"])[y]
    by_number = outlast.audit(X, y, repeats=1)
    by_text = outlast.audit(X, names, repeats=1)
    np.testing.assert_array_equal(by_number.scores, by_text.scores)
    assert set(by_text.suggested) <= {"a", "b", "c"}
    of_sparse = outlast.audit(sparse.csr_matrix(X), y, repeats=1)
    np.testing.assert_allclose(of_sparse.scores, by_number.scores, atol=1e-6)
    outlast.audit(X.astype(np.float32), y, repeats=1)


def test_names_reach_the_page_and_the_files(tmp_path, wine):
    import pandas

    X, y, _ = wine
    frame = pandas.DataFrame(X, columns=[f"<b>column {i}</b>" for i in range(X.shape[1])])
    found = outlast.audit(frame, pandas.Series(y, name="cultivar"), repeats=1)
    found.to_html(tmp_path / "page.html", source="wine")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "column 12" in page and "cultivar" in page
    assert "<b>column" not in page
    found.to_csv(tmp_path / "suspects.csv")
    table = pandas.read_csv(tmp_path / "suspects.csv")
    np.testing.assert_array_equal(table["row"] - 1, found.suspects.index)


def test_suspects_bear_the_frames_own_index(wine):
    import pandas

    X, y, _ = wine
    frame = pandas.DataFrame(X, index=[f"row {7 * i % 178}" for i in range(len(y))])
    found = outlast.audit(frame, y, repeats=1, random_state=0)
    suspects = found.suspects
    assert suspects.columns[0] == "index" and suspects.index.name == "row"
    np.testing.assert_array_equal(frame.loc[suspects["index"]], X[suspects.index])
    # rows named twice, and by two names
    double = frame.set_axis(pandas.MultiIndex.from_arrays([np.arange(len(y)) // 2, ["a"] * len(y)]))
    again = outlast.audit(double, y, repeats=1, random_state=0).suspects
    assert again["index"].tolist() == [double.index[row] for row in suspects.index]
    assert "index" not in outlast.audit(X, y, repeats=1).suspects.columns


def test_single_precision_is_written_as_short_as_it_is(tmp_path, wine):
    X, y, _ = wine
    X = X.astype(np.float32)
    X[0, :4] = [-0.2, 3.0, 1e-20, 16777216.0]
    outlast.audit(X, y, repeats=1).to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "-0.20000000298023224" not in page and '"-0.2"' in page
    data = json.loads(page.split('type="application/json"', 1)[1].split(">", 1)[1].split("</script>", 1)[0])
    np.testing.assert_array_equal(np.array(data["cells"][:-1]).T.astype(np.float32), X)
    assert data["cells"][1][0] == "3"


@pytest.mark.parametrize("parameters", [{}, {"C": 1.0, "kernel": "rbf"}, {"folds": 3, "repeats": 2}])
def test_a_bar_that_ends_where_it_should(wine, parameters, capsys):
    X, y, _ = wine
    outlast.audit(X, y, **{"repeats": 1, "verbose": 2, **parameters})
    lines = capsys.readouterr().out.splitlines()
    steps = [int(line.split("step ")[1]) for line in lines[:-1]]
    kernels, cs = (1, 1) if "C" in parameters else (2, 3)
    folds, repeats = parameters.get("folds", 5), parameters.get("repeats", 1)
    assert lines[-1] == "[outlast] done" and max(steps) <= 3 * kernels * folds * (cs + repeats - 1)
    codes = np.unique(y, return_inverse=True)[1]
    c = parameters.get("C")
    total = outlast._audit._steps(codes, folds=folds, repeats=repeats, kernel=parameters.get("kernel", "both"), c=c)
    assert total == 3 * kernels * folds * (cs + repeats - 1)
    outlast.audit(X, y, repeats=1)
    assert capsys.readouterr().out == ""


def test_conflicts_far_rows_and_small_classes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3)) + np.r_[np.zeros(40), np.full(40, 3.0)][:, None]
    y = np.r_[np.zeros(40, int), np.ones(40, int)]
    X[1], y[1] = X[0], 1
    X[2] = 1e300
    y[3:5] = 7
    found = outlast.audit(X, y, repeats=1)
    assert found.conflicts == [[0, 1]]
    assert np.flatnonzero(found.far).tolist() == [2]
    assert found.small_classes.tolist() == [7]
    assert {0, 1, 2, 3, 4} <= set(found.suspects.index)


@pytest.mark.parametrize(("change", "message"), [
    ({"folds": 1}, "folds"),
    ({"repeats": 0}, "repeats"),
    ({"kernel": "poly"}, "kernel"),
    ({"gamma": -1.0}, "gamma"),
    ({"C": 0.0}, "C"),
    ({"C": "large"}, "C"),
    ({"truncation": 1.0}, "truncation"),
])
def test_bad_parameters_are_refused_by_name(wine, change, message):
    X, y, _ = wine
    with pytest.raises((ValueError, TypeError), match=message):
        outlast.audit(X, y, **change)


def test_bad_data_are_refused():
    X = np.arange(12.0).reshape(6, 2)
    with pytest.raises(ValueError, match="got 1 class"):
        outlast.audit(X, np.zeros(6))
    with pytest.raises(ValueError, match="3 rows"):
        outlast.audit(X, [0, 0, 0, 0, 1, 1])
    with pytest.raises(ValueError, match="NaN"):
        outlast.audit(np.full((6, 2), np.nan), [0, 0, 0, 1, 1, 1])
    with pytest.raises(ValueError):
        outlast.audit(X, [0, 1])


def test_without_pandas_the_rest_works():
    code = """
import sys
sys.modules["pandas"] = None
import numpy as np, outlast
found = outlast.audit(np.arange(40.0).reshape(20, 2), np.arange(20) >= 10, repeats=1)
assert len(found.scores) == 20
try:
    found.suspects
except ImportError as missing:
    assert "pip install pandas" in str(missing)
else:
    raise SystemExit("no ImportError")
"""
    subprocess.run([sys.executable, "-c", code], check=True)

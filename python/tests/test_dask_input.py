"""What is taken from dask collections, and what is refused."""

import os

import numpy as np
import pytest

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
import pandas as pd  # noqa: E402
from clusters import cluster, rows, threads  # noqa: E402, F401

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

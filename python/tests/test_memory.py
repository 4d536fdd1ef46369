"""No needless copies: what Python allocates during a fit and a prediction, by kind of input, and the peak of the whole process.

`bench/input_memory.py` makes the inputs; docs/performance.md has its table."""

import sys
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import input_memory as memory

from outlast import CappedSVC, LqSVC, TruncatedSVC

SHAPE = {"rows": 8_000, "columns": 200, "kernel": "linear"}
SLACK = 0.12
"""Vectors of one number per row, in multiples of the size of X: 200 columns are 0.005 a vector."""

COPIES = {
    "float64, C order": 0.0,
    "float32, C order": 0.0,
    "float64, read-only memory map": 0.0,
    "float32, read-only memory map": 0.0,
    "CSR, float64, int32": 0.0,
    "CSR, float32, int32": 0.0,
    # the core has column numbers of 32 bits
    "CSR, float64, int64": 0.25,
    "float64, Fortran order": 0.0,
    "float32, Fortran order": 0.0,
    # one block of columns, as most frames of one dtype have
    "pandas, float64": 0.0,
    "pandas, float32": 0.0,
    # each column lies elsewhere
    "polars, float64": 1.0,
    "polars, float32": 1.0,
}


def test_every_kind_is_listed():
    assert set(COPIES) == set(memory.KINDS)


@pytest.mark.parametrize("kind", COPIES)
def test_copies_of_x(kind, tmp_path):
    X, size = memory.make(kind, SHAPE, str(tmp_path))
    y = memory.labels(X, SHAPE["rows"])
    slack = SLACK * (3 if "CSR" in kind else 1)
    model = TruncatedSVC(C=1e-3, kernel="linear", truncation=None, tol=0.1, solver="linear-dcd" if "CSR" in kind else "auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for work in (lambda: model.fit(X, y), lambda: model.predict(X)):
            tracemalloc.start()
            work()
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            # of the support vectors a model keeps there is no limit: they are no copies of X
            kept = getattr(model.support_vectors_, "nbytes", None)
            if kept is None:
                vectors = model.support_vectors_
                kept = vectors.data.nbytes + vectors.indices.nbytes + vectors.indptr.nbytes
            found = f"{peak / size:.2f} times X, of which {kept / size:.2f} are support vectors"
            assert peak <= (COPIES[kind] + slack) * size + kept, found


def test_single_precision_stays_so():
    X = np.random.default_rng(0).standard_normal((500, 4)).astype(np.float32)
    for model in (TruncatedSVC(kernel="linear"), CappedSVC(), LqSVC()):
        model.fit(X, X[:, 0] > 0)
        assert model.support_vectors_.dtype == np.float32


def test_the_peak_of_a_fit():
    if not Path("/proc/self/clear_refs").exists():
        return
    found = memory.beyond("float64, C order", {"rows": 20_000, "columns": 200, "kernel": "linear"})
    assert found["solver"] == "linear-band"
    # the rows near the boundary, copied by the solver, and vectors
    assert found["beyond"] < 2.5 * found["size"]

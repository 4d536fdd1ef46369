"""How much memory a fit to files takes: the resident set of a process of its own, from files that would not fit."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from outlast import TruncatedSVC

#: Prints the largest resident set before and after, in kB.
FIT = """
import resource, sys
from outlast import CappedSVC, LqSVC, TruncatedSVC
def peak():
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
before = peak()
model = eval(sys.argv[3]).fit_files(sys.argv[1], target="kind", memory=sys.argv[2])
print(before, peak(), model.solver_, model.n_iter_)
"""


def fitted(file, memory, method='TruncatedSVC(1e-3, kernel="linear")'):
    """kB that a fit takes, and its solver."""
    output = subprocess.run([sys.executable, "-W", "ignore", "-c", FIT, str(file), memory, method], capture_output=True, text=True, check=True).stdout
    before, after, solver, _ = output.split()
    return int(after) - int(before), solver


def test_long_pages_of_a_parquet_file(tmp_path):
    # a value takes one bit, so that a single page of each column has all rows: 160 MB of them as numbers of 64 bits
    rng = np.random.default_rng(0)
    rows, columns = 500_000, 40
    kind = rng.integers(0, 2, rows).astype(np.int8)
    values = [(rng.random(rows) < 0.3 + 0.02 * (j % 5) * kind).astype(np.int64) for j in range(columns)]
    file = tmp_path / "bits.parquet"
    pq.write_table(pa.table([*values, kind], names=[*(f"x{j}" for j in range(columns)), "kind"]), file, row_group_size=rows)
    assert pq.ParquetFile(file).metadata.num_row_groups == 1
    taken, solver = fitted(file, "64MB")
    assert solver == "linear-stream"
    assert 5_000 < taken < 64_000, f"{taken} kB"


def many_columns(columns, classes=2):
    """Rows that would not fit, and their classes."""
    rng = np.random.default_rng(1)
    rows = 24_000_000 // columns // 2
    kind = rng.integers(0, classes, rows)
    values = [(rng.standard_normal(rows) + 0.1 * (j % 3) * (kind == j % classes)).astype(np.float32) for j in range(columns)]
    return values, kind.astype(np.int8), [f"x{j}" for j in range(columns)]


@pytest.mark.parametrize(
    ("columns", "classes", "solver"),
    [
        (300, 2, "linear-stream"),
        (650, 2, "linear-stream"),
        (900, 2, "linear-stream-cg"),
        (240, 3, "linear-stream"),
    ],
)
def test_many_columns(tmp_path, columns, classes, solver):
    values, kind, names = many_columns(columns, classes)
    file = tmp_path / "wide.parquet"
    pq.write_table(pa.table([*values, kind], names=[*names, "kind"]), file, row_group_size=2_000)
    taken, own = fitted(file, "64MB")
    assert own == solver
    assert 5_000 < taken < 64_000, f"{taken} kB"


def test_many_columns_of_text(tmp_path):
    values, kind, names = many_columns(400)
    file = tmp_path / "wide.csv"
    pa.csv.write_csv(pa.table([*values, kind], names=[*names, "kind"]), file)
    taken, _ = fitted(file, "64MB")
    assert 5_000 < taken < 64_000, f"{taken} kB"


def test_pages_that_do_not_fit_are_refused(tmp_path):
    values, kind, names = many_columns(700)
    file = tmp_path / "wide.parquet"
    pq.write_table(pa.table([*values, kind], names=[*names, "kind"]), file, row_group_size=40_000, use_dictionary=False)
    with pytest.raises(ValueError, match="700 columns takes more than the .* MB .* smaller row groups"):
        TruncatedSVC(1e-3, kernel="linear").fit_files(file, target="kind", memory="64MB")


#: Rows as they are read take just less than a fifth of 64 MB; what a fit in memory to them takes depends on all of these.
HELD = 12_000_000
METHODS = {
    "truncated": 'TruncatedSVC(1e-3, kernel="linear")',
    "l1": 'TruncatedSVC(1e-3, kernel="linear", penalty="l1")',
    "adaptive": 'TruncatedSVC(1e-3, kernel="linear", penalty="adaptive_l1", truncation=None)',
    "lq": "LqSVC(1e-3, q=0.5)",
    "capped": "CappedSVC(1e-3, p=2, cap=2.0)",
}


def some_rows(file, rows, columns, classes, wrong=0.0):
    rng = np.random.default_rng(2)
    kind = rng.integers(0, classes, rows)
    centres = rng.standard_normal((classes, columns))
    X = (centres[kind] + rng.standard_normal((rows, columns))).astype(np.float32)
    kind = np.where(rng.random(rows) < wrong, rng.integers(0, classes, rows), kind)
    names = [f"x{j}" for j in range(columns)]
    pq.write_table(pa.table([*X.T, kind.astype(np.int8)], names=[*names, "kind"]), file, row_group_size=5_000)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("columns", "classes"), [(12, 10), (100, 2)])
def test_rows_that_could_be_held(tmp_path, method, columns, classes):
    file = tmp_path / "held.parquet"
    some_rows(file, HELD // (8 * columns + 4), columns, classes)
    taken, _ = fitted(file, "64MB", METHODS[method])
    assert 5_000 < taken < 64_000, f"{taken} kB"


@pytest.mark.parametrize(("method", "columns", "classes", "rows"), [("l1", 12, 10, 7_500), ("lq", 20, 2, 23_000), ("capped", 12, 2, 45_000), ("truncated", 12, 2, 70_000)])
def test_as_many_rows_as_are_fitted_in_memory(tmp_path, method, columns, classes, rows):
    file = tmp_path / "few.parquet"
    some_rows(file, rows, columns, classes)
    taken, solver = fitted(file, "64MB", METHODS[method])
    assert not solver.startswith("linear-stream")
    assert 5_000 < taken < 64_000, f"{taken} kB"


@pytest.mark.parametrize("method", ["lq", "capped"])
def test_starts_of_many_columns(tmp_path, method):
    file = tmp_path / "wide.parquet"
    some_rows(file, 8_000, 600, 2)
    taken, solver = fitted(file, "64MB", METHODS[method])
    assert solver.startswith("linear-stream")
    assert 5_000 < taken < 64_000, f"{taken} kB"


@pytest.mark.parametrize(("penalty", "columns"), [("l2", 12), ("l1", 4)])
def test_ways_out_of_local_minima(tmp_path, penalty, columns):
    # single rows pull hard: ends differ, and many ways are followed from the lowest
    file = tmp_path / "noisy.parquet"
    some_rows(file, 150_000, columns, 3, wrong=0.3)
    taken, solver = fitted(file, "64MB", f'TruncatedSVC(1.0, kernel="linear", penalty="{penalty}")')
    assert solver == "linear-stream"
    assert 5_000 < taken < 64_000, f"{taken} kB"

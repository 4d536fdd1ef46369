"""How much memory a fit to files takes: the resident set of a process of its own, from files that would not fit."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

#: Prints the largest resident set before and after, in kB.
FIT = """
import resource, sys
from outlast import TruncatedSVC
def peak():
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
before = peak()
model = TruncatedSVC(1e-3, kernel="linear").fit_files(sys.argv[1], target="kind", memory=sys.argv[2])
print(before, peak(), model.solver_, model.n_iter_)
"""


def fitted(file, memory):
    """kB that a fit takes, and its solver."""
    output = subprocess.run([sys.executable, "-c", FIT, str(file), memory], capture_output=True, text=True, check=True).stdout
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


def test_many_columns(tmp_path):
    columns = 300
    rng = np.random.default_rng(1)
    rows = 24_000_000 // columns // 2
    kind = rng.integers(0, 2, rows).astype(np.int8)
    values = [(rng.standard_normal(rows) + 0.1 * (j % 3) * kind).astype(np.float32) for j in range(columns)]
    file = tmp_path / "wide.parquet"
    pq.write_table(pa.table([*values, kind], names=[*(f"x{j}" for j in range(columns)), "kind"]), file, row_group_size=2_000)
    taken, solver = fitted(file, "64MB")
    assert solver == "linear-stream"
    assert 5_000 < taken < 64_000, f"{taken} kB"

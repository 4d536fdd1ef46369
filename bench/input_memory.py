"""Memory of a fit: the peak beyond the data, for each kind of input.

    python bench/input_memory.py                 every kind, as in docs/performance.md
    python bench/input_memory.py "pandas"        those whose name has a word in it

Each line is a process of its own. It makes X, fits a small model (which loads what every fit needs), then notes the memory in use, resets the
peak, fits, and prints the peak beyond what was in use, in multiples of the size of X.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

LINEAR = {"rows": 50_000, "columns": 200, "kernel": "linear"}
KERNEL = {"rows": 6_000, "columns": 1_500, "kernel": "rbf"}

KINDS = [
    "float64, C order",
    "float64, Fortran order",
    "float32, C order",
    "float32, Fortran order",
    "float64, read-only memory map",
    "float32, read-only memory map",
    "pandas, float64",
    "pandas, float32",
    "polars, float64",
    "polars, float32",
    "CSR, float64, int32",
    "CSR, float64, int64",
    "CSR, float32, int32",
]


def make(kind: str, shape: dict, folder: str):
    """X of a kind, and its size in bytes."""
    import numpy as np

    rng = np.random.default_rng(0)
    dtype = np.float32 if "float32" in kind else np.float64
    if "CSR" in kind:
        from scipy import sparse

        # a tenth of the entries that the dense ones have, of five times as many columns
        per_row = shape["columns"] // 10
        columns = 5 * shape["columns"]
        width = columns // per_row
        indices = (np.arange(per_row) * width)[None] + rng.integers(0, width, (shape["rows"], per_row))
        data = np.empty(shape["rows"] * per_row, dtype)
        rng.standard_normal(out=data, dtype=dtype)
        index = np.int64 if "int64" in kind else np.int32
        X = sparse.csr_matrix((shape["rows"], columns), dtype=dtype)
        X.data, X.indices = data, indices.ravel().astype(index)
        X.indptr = np.arange(0, data.size + 1, per_row, dtype=index)
        X.has_canonical_format = True
        return X, X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    X = np.empty((shape["rows"], shape["columns"]), dtype, order="F" if "Fortran" in kind else "C")
    for at in range(0, shape["rows"], 1000):
        X[at : at + 1000] = rng.standard_normal((min(1000, shape["rows"] - at), shape["columns"]))
    size = X.nbytes
    if "memory map" in kind:
        path = os.path.join(folder, "X.npy")
        np.save(path, X)
        X = np.load(path, mmap_mode="r")
    elif "pandas" in kind:
        import pandas as pd

        X = pd.DataFrame(X.T.copy().T, copy=False)
    elif "polars" in kind:
        import polars as pl

        X = pl.DataFrame({f"c{column}": X[:, column].copy() for column in range(X.shape[1])})
    return X, size


def labels(X, rows: int):
    """Labels that a plane nearly separates."""
    import numpy as np

    rng = np.random.default_rng(1)
    take = X[:, :2] if hasattr(X, "toarray") else np.asarray(X)[:, :2]
    dense = take.toarray() if hasattr(take, "toarray") else take
    return (dense[:, 0] + dense[:, 1] + 0.5 * rng.standard_normal(rows) > 0).astype(int)


def status(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"{name} is not in /proc/self/status")


def measure(kind: str, shape: dict) -> dict:
    """In this process: the peak of a fit."""
    import gc

    import numpy as np

    from outlast import TruncatedSVC

    model = TruncatedSVC(C=0.1, kernel=shape["kernel"], truncation=-1, tol=1e-2, max_iter=2, cache_size=20, n_jobs=2, time_limit=20)
    small = np.random.default_rng(0).standard_normal((200, 5))
    with tempfile.TemporaryDirectory() as folder:
        X, size = make(kind, shape, folder)
        y = labels(X, shape["rows"])
        import warnings

        warnings.simplefilter("ignore")
        model.fit(small, small[:, 0] > 0)
        gc.collect()
        if "memory map" in kind:
            # its pages are the file's: those of a first look are in use, as X of other kinds is
            np.asarray(X).sum()
        Path("/proc/self/clear_refs").write_text("5")
        before = status("VmRSS")
        model.fit(X, y)
        peak = status("VmHWM")
        del X
    return {"kind": kind, "kernel": shape["kernel"], "size": size, "beyond": peak - before, "solver": model.solver_}


def beyond(kind: str, shape: dict) -> dict:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--measure", kind, json.dumps(shape)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(result.stderr)
    return json.loads(result.stdout.splitlines()[-1])


def main() -> None:
    """A table."""
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], json.loads(sys.argv[3]))))
        return
    wanted = [kind for kind in KINDS if all(word in kind for word in sys.argv[1:])]
    print("| input | X, MB | linear: beyond X, MB | x | rbf: beyond X, MB | x |")
    print("|---|---|---|---|---|---|")
    for kind in wanted:
        linear, kernel = beyond(kind, LINEAR), beyond(kind, KERNEL)
        cells = [f"{found['beyond'] / 1e6:.0f} | {found['beyond'] / found['size']:.2f}" for found in (linear, kernel)]
        print(f"| {kind} | {linear['size'] / 1e6:.0f}, {kernel['size'] / 1e6:.0f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

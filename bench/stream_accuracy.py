"""How near fits to rows in parts are to fits in memory: `python bench/stream_accuracy.py [--rows N] [--draws N]`.

Truncated losses have several minima, and the two fits may end in different ones: a row tells how much higher (+) or lower (-) the objective on parts is. Rows of two, three and five
classes around centres, well separated with 5 % wrong labels and less separated with 30 %, and 64 MB for the parts; then capped squares, where classes overlap."""

import argparse
import itertools
import warnings

import dask.array as da
import numpy as np

import outlast
import outlast.dask


NEAR = 1e-4
"""What counts as the same objective."""


def clouds(draw, rows, columns, classes, separation, wrong):
    """Normal rows around normal centres; so many labels are drawn anew. Their values are numbers of 32 bits."""
    rng = np.random.default_rng(10_000 * draw + 100 * classes + columns)
    centres = separation * rng.standard_normal((classes, columns))
    y = rng.integers(0, classes, rows)
    X = (centres[y] + rng.standard_normal((rows, columns))).astype(np.float32).astype(float)
    return X, np.where(rng.random(rows) < wrong, rng.integers(0, classes, rows), y)


def compared(about, X, y, in_memory, in_parts):
    """By how much the objective on parts is higher, relatively."""
    parts = da.from_array(X, chunks=(15_000, X.shape[1]))
    one, many = in_memory.fit(X, y), in_parts.fit(parts, y)
    higher = many.objective_ / one.objective_ - 1
    print(f"{about:<60} {higher:>+9.1e} {many.status_:>10} {many.passes_:>5} passes", flush=True)
    return higher


def fits(draw, rows):
    for C, k, d, (separation, wrong) in itertools.product((1e-3, 1.0), (2, 3, 5), (3, 20), ((2.0, 0.05), (0.7, 0.3))):
        X, y = clouds(draw, rows, d, k, separation, wrong)
        about = f"truncated, C = {C:g}, {k} classes, {d} columns, {wrong:.0%} wrong"
        yield compared(about, X, y, outlast.TruncatedSVC(C, kernel="linear"), outlast.dask.TruncatedSVC(C, memory="64MB"))
    for C, k, d in itertools.product((1e-3, 0.1), (2, 3), (20, 100)):
        X, y = clouds(draw, rows, d, k, 0.2, 0.1)
        parameters = {"C": C, "p": 2.0, "cap": 2.0}
        about = f"capped squares, C = {C:g}, {k} classes, {d} columns"
        yield compared(about, X, y, outlast.CappedSVC(**parameters), outlast.dask.CappedSVC(**parameters, memory="64MB"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--draws", type=int, default=1, help="how often all rows are drawn anew")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    higher = np.array([value for draw in range(asked.draws) for value in fits(draw, asked.rows)])
    print(f"{len(higher)} fits: {np.sum(abs(higher) <= NEAR)} within {NEAR:g}, {np.sum(higher < -NEAR)} lower, by {-higher.min():.1e} at most, "
          f"{np.sum(higher > NEAR)} higher, by {max(higher.max(), 0.0):.1e} at most")


if __name__ == "__main__":
    main()

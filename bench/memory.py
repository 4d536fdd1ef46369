"""Prints the megabytes that one fit takes at its peak beyond what was there before it, and its objective.

    memory.py kernel ROWS CACHE
    memory.py lq ROWS COLUMNS dense|sparse
"""

import resource
import sys
from pathlib import Path

import sets
from sklearn.datasets import make_classification

import outlast

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def megabytes(field):
    """A field of the process's status, where there is such a file; else the peak so far."""
    if STATUS.exists():
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024**2 if sys.platform == "darwin" else peak / 1024


def kernel(rows, cache):
    return outlast.TruncatedSVC(cache_size=float(cache)), *make_classification(int(rows), 20, flip_y=0.1, random_state=0)


def lq(rows, columns, storage):
    X, y = sets.sparse_truth(int(rows), int(columns), 2)
    return outlast.LqSVC(q=0.5), sets.thinned(X) if storage == "sparse" else X, y


model, X, y = {"kernel": kernel, "lq": lq}[sys.argv[1]](*sys.argv[2:])
# imports and thread pools are not the fit's
model.fit(X[:50], y[:50])
if RESET.exists():
    # making the data took more for a moment: forget that peak
    RESET.write_text("5")
before = megabytes("VmRSS")
model.fit(X, y)
print(megabytes("VmHWM") - before, model.objective_)

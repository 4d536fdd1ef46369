"""Prints the megabytes that one kernel fit takes at its peak beyond what was there before it, and its objective."""

import resource
import sys
from pathlib import Path

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


rows, cache = int(sys.argv[1]), float(sys.argv[2])
X, y = make_classification(rows, 20, flip_y=0.1, random_state=0)
# imports and thread pools are not the fit's
outlast.TruncatedSVC().fit(X[:50], y[:50])
if RESET.exists():
    # making the data took more for a moment: forget that peak
    RESET.write_text("5")
before = megabytes("VmRSS")
model = outlast.TruncatedSVC(cache_size=cache).fit(X, y)
print(megabytes("VmHWM") - before, model.objective_)

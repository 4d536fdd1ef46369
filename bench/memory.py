"""Prints the megabytes by which one kernel fit raises this process's peak memory, and the objective it reached."""

import resource
import sys

from sklearn.datasets import make_classification

import outlast


def peak():
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes / 1024 if sys.platform != "darwin" else kilobytes / 1024**2


rows, cache = int(sys.argv[1]), float(sys.argv[2])
X, y = make_classification(rows, 20, flip_y=0.1, random_state=0)
# imports and pools are not the fit's
outlast.TruncatedSVC().fit(X[:50], y[:50])
before = peak()
model = outlast.TruncatedSVC(cache_size=cache).fit(X, y)
print(peak() - before, model.objective_)

"""Rows about tuning: the default search of the robust machine against scikit-learn's grid search of SVC.

The same nine C and three widths, the same five folds, columns put on one scale within each, both cores. The peer fits plain SVC, 135 times and once
more; the robust search gives up points on the way unless the row says otherwise. The note tells what both chose, and the errors of these models on
as many rows that neither has seen, whose labels are right."""

import numpy as np
import sets
from report import Result
from rows import Job, timed
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import outlast

PEER = "GridSearchCV(SVC), n_jobs=2"
CS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


def jobs(folder, quick):
    yield Job("tune rbf n=5000 d=20", lambda: _synthetic(5_000, 20))
    if not quick:
        yield Job("tune rbf n=2000 d=50", lambda: _synthetic(2_000, 50))
        yield Job("tune rbf mnist n=5000", lambda: _mnist(folder), sets.missing("mnist", folder))


def _synthetic(n, d):
    """As `sets.synthetic`; the second half of the rows is for the test, and keeps its labels."""
    X, truth = make_classification(2 * n, d, n_informative=8, flip_y=0.0, class_sep=0.8, random_state=0)
    rng = np.random.default_rng(0)
    y = np.where(rng.uniform(size=2 * n) < 0.1, 1 - truth, truth)
    return _compare(f"tune rbf n={n} d={d}", X[:n], y[:n], X[n:], truth[n:])


def _mnist(folder):
    X, y = sets.real("mnist", folder)
    X, y = np.ascontiguousarray(X), np.asarray(y)
    rng = np.random.default_rng(0)
    noisy = np.where(rng.uniform(size=5_000) < 0.1, y[:5_000] * -1 if set(np.unique(y)) == {-1, 1} else 1 - y[:5_000], y[:5_000])
    return _compare("tune rbf mnist n=5000", X[:5_000], noisy, X[5_000:10_000], y[5_000:10_000])


def _compare(name, X, y, X_test, y_test):
    widths = [factor / X.shape[1] for factor in (0.25, 1.0, 4.0)]
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    ours, search = timed(lambda: outlast.TruncatedSVCCV(CS, gammas=widths, cv=folds).fit(X, y))
    every, full = timed(lambda: outlast.TruncatedSVCCV(CS, gammas=widths, cv=folds, early_stopping=False).fit(X, y))
    grid = {"svc__C": CS, "svc__gamma": widths}
    theirs, peer = timed(lambda: GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=folds, n_jobs=2).fit(X, y))
    stopped = np.mean(search.cv_results_["state"] == "stopped")
    best = peer.best_params_
    errors = [1 - model.score(X_test, y_test) for model in (search, peer)]
    note = (f"{stopped:.0%} of the points given up; chose C = {search.C_:g}, gamma = {search.best_params_['gamma']:.3g}, error on clean test rows "
            f"{errors[0]:.4f}; the peer C = {best['svc__C']:g}, gamma = {best['svc__gamma']:.3g}, error {errors[1]:.4f}")
    rest = f"the same choice: {full.best_params_ == search.best_params_}"
    return [
        Result(name, PEER, ours, theirs, 0.3, 0.1, note=note, converged=search.status_ == "converged"),
        Result(f"{name}, every point", PEER, every, theirs, 0.3, 0.1, note=rest, converged=full.status_ == "converged"),
    ]

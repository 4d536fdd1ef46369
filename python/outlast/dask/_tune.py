"""A search over the parameters of an estimator in memory, its splits fitted on workers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import check_cv

from .._tuning import Tuning
from . import _engine



class Tuned:
    """What `outlast.dask.tune` found.

    Made by `tune`, not by hand.

    Parameters
    ----------
    points : list of dict
        The points of the grid.
    errors : array of shape (n_points, n_splits)
        The error of each on each split.
    best : int
        The point chosen.
    estimator : estimator
        Fitted to all rows with it.
    """

    def __init__(self, points: list[dict[str, Any]], errors: NDArray[np.float64], best: int, estimator: Any) -> None:
        self.params_ = points
        """The points of the grid."""
        self.fold_errors_ = errors
        """The error of each point on each split, of shape (n_points, n_splits)."""
        self.errors_ = errors.mean(axis=1)
        """Their means."""
        self.best_index_ = best
        self.best_params_ = points[best]
        self.best_estimator_ = estimator

    def __repr__(self) -> str:
        return f"Tuned({self.best_params_}, error {self.errors_[self.best_index_]:.4g})"


def tune(search: Tuning, X: Any, y: Any, *, client: Any = None) -> Tuned:
    """Choose parameters as `TruncatedSVCCV`, `CappedSVCCV` or `AblationSVCCV` does, with each split on a worker.

    The rows must fit into the memory of a worker; every one gets them once. A worker searches the whole grid on its split, its points sharing work as they do in
    `fit`; the means are taken here, the lowest wins, and the last fit, to all rows, is made on a worker as well.

    Parameters
    ----------
    search : TruncatedSVCCV, CappedSVCCV or AblationSVCCV
        What to choose from, with its `cv`; a number stands for scikit-learn's stratified folds. Its `early_stopping` and `halving` compare splits with each other and are not used.
    X : array-like of shape (n_samples, n_features)
        The rows, in memory.
    y : array-like of shape (n_samples,)
        Their labels.
    client : distributed.Client, default=None
        The cluster; None takes the current client.

    Returns
    -------
    Tuned
        With ``best_params_``, ``best_estimator_``, ``errors_`` and ``fold_errors_``.
    """
    client = client or _engine.current_client()
    if client is None:
        raise ValueError("tune needs a distributed.Client; without one call the estimator's own fit")
    if not isinstance(search, Tuning):
        raise TypeError(f"search is a {type(search).__name__}, expected TruncatedSVCCV, CappedSVCCV or AblationSVCCV")
    X, y = np.asarray(X), np.asarray(y)
    splits = list(check_cv(search.cv, y, classifier=True).split(X, y))
    rows, labels = client.scatter([X, y], broadcast=True, hash=False)
    alone = clone(search).set_params(early_stopping=False, halving=False, nested=None, holdout=None)
    tasks = [client.submit(_on_split, alone, rows, labels, split, pure=False) for split in splits]
    try:
        found = client.gather(tasks)
        points = found[0][0]
        if any(part[0] != points for part in found):
            raise ValueError("the grid depends on the split: say which gammas to try")
        errors = np.stack([part[1] for part in found], axis=1)
        best = int(np.argmin(errors.mean(axis=1)))
        last = client.submit(_at_point, alone, rows, labels, points[best], splits[0], pure=False)
        tasks.append(last)
        return Tuned(points, errors, best, last.result())
    except BaseException:
        client.cancel(tasks)
        raise


def _on_split(search: Tuning, X: Any, y: Any, split: tuple[Any, Any]) -> tuple[list[dict[str, Any]], NDArray[np.float64]]:
    """The points and their errors on one split. Runs on a worker."""
    model = clone(search).set_params(cv=[split]).fit(X, y)
    return model.cv_results_["params"], np.asarray(model.errors_, dtype=np.float64).ravel()


def _at_point(search: Tuning, X: Any, y: Any, point: dict[str, Any], split: tuple[Any, Any]) -> Any:
    """The fit to all rows at a point. Runs on a worker."""
    there = {theirs: ours for ours, theirs in search._GRID.items()}
    only = {there[name]: [value] for name, value in point.items() if name in there}
    return clone(search).set_params(cv=[split], **only).fit(X, y).best_estimator_

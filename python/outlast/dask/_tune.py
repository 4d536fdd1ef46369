"""A search over the parameters of an estimator in memory, its splits fitted on workers."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv

from .._lq_search import LqSVCCV
from .._tuning import Tuning
from . import _engine, _parts

#: What the search of a split can't do, and what to do instead.
_INSTEAD = {
    "holdout": "give the rows to hold out as cv=[(train, test)]",
    "nested": "put the estimator into sklearn.model_selection.cross_validate, with joblib's dask backend",
}
#: Means that differ by less are equal, as in the core.
_EQUAL = 1e-12


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
    measure : {"error", "mean cost", "mean utility"}, default="error"
        What the errors are.
    """

    def __init__(
        self, points: list[dict[str, Any]], errors: NDArray[np.float64], best: int, estimator: Any, measure: str = "error"
    ) -> None:
        self.params_ = points
        """The points of the grid."""
        self.measure_ = measure
        """What is compared: the error, or with a matrix of them the mean cost or utility of the decisions."""
        self.fold_errors_ = errors
        """That of each point on each split, of shape (n_points, n_splits)."""
        self.errors_ = _means(errors)
        """Their means."""
        self.best_index_ = best
        self.best_params_ = points[best]
        self.best_estimator_ = estimator

    def __repr__(self) -> str:
        return f"Tuned({self.best_params_}, {self.measure_} {self.errors_[self.best_index_]:.4g})"


class _Judged(NamedTuple):
    """What a worker found on one split."""

    points: list[dict[str, Any]]
    losses: NDArray[np.float64]
    """By point; less is better."""
    spreads: NDArray[np.float64]
    """Their standard errors over the rows held out."""
    measure: str


def tune(search: Tuning, X: Any, y: Any, *, client: Any = None) -> Tuned:
    """Choose parameters as `TruncatedSVCCV`, `CappedSVCCV` or `AblationSVCCV` does, with each split on a worker.

    The rows must fit into the memory of a worker; every one gets them once. A worker searches the whole grid on its split, its points sharing work as they do in
    `fit`; the choice is made here, by the search's `rule` and with its ties, and the last fit, to all rows, on a worker as well.

    Parameters
    ----------
    search : TruncatedSVCCV, CappedSVCCV or AblationSVCCV
        What to choose from, with its `cv`; a number stands for scikit-learn's stratified folds. Its `early_stopping` and `halving` compare splits with each other and are not used;
        `holdout` and `nested` are refused. So is `LqSVCCV`, whose points belong to a path of all rows.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
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
    client = _engine.client_in_use(client)
    if client is None:
        raise ValueError("tune needs a distributed.Client; without one call the estimator's own fit")
    alone = _alone(search)
    with _engine.waiting(client):
        return _tuned(search, alone, _in_memory(X, client), np.asarray(_in_memory(y, client)), client)


def _tuned(search: Tuning, alone: Tuning, X: Any, y: NDArray[Any], client: Any) -> Tuned:
    splits = list(check_cv(search.cv, y, classifier=True).split(X, y))
    for number, (train, _) in enumerate(splits):
        # a worker sees one split and could not say which
        if len(missing := np.setdiff1d(y, y[train])):
            raise ValueError(f"split {number + 1} of {len(splits)} leaves no row of class {missing.tolist()[0]!r} to fit: every class needs rows in every split")
    rows, labels = client.scatter([X, y], broadcast=True, hash=False)
    tasks = [client.submit(_on_split, alone, rows, labels, split, pure=False) for split in splits]
    try:
        found: list[_Judged] = client.gather(tasks)
        points, measure = found[0].points, found[0].measure
        if any(part.points != points for part in found):
            raise ValueError("the grid depends on the split: say which gammas to try")
        losses, spreads = np.stack([part.losses for part in found], axis=1), found[0].spreads
        best = _chosen(points, losses, spreads, search.rule)
        last = client.submit(_at_point, alone, rows, labels, points[best], splits[0], pure=False)
        tasks.append(last)
        return Tuned(points, _signed(losses, measure), best, last.result(), measure)
    except BaseException:
        client.cancel([*tasks, rows, labels])
        raise


def _alone(search: Tuning) -> Tuning:
    """The search without what splits would have to do together; refused where that is its point."""
    kinds = "TruncatedSVCCV, CappedSVCCV or AblationSVCCV"
    if isinstance(search, LqSVCCV):
        raise TypeError(f"search is a {type(search).__name__}, expected {kinds}: its points belong to a path of all rows, call its own fit")
    if not isinstance(search, Tuning):
        raise TypeError(f"search is a {type(search).__name__}, expected {kinds}")
    for name, instead in _INSTEAD.items():
        if (value := getattr(search, name)) is not None:
            raise ValueError(f"{name} = {value!r} is not allowed in outlast.dask.tune: {instead}")
    alone: Tuning = clone(search).set_params(early_stopping=False, halving=False)
    return alone


def _in_memory(values: Any, client: Any) -> Any:
    """Frames and sparse matrices as they are, lists as arrays."""
    if _parts.is_array(values) or _parts.is_frame(values):
        values = _engine.computed(client, [values])[0]
    return values if hasattr(values, "shape") else np.asarray(values)


def _signed(values: NDArray[np.float64], measure: str) -> NDArray[np.float64]:
    """Losses of what users see, and back: more utility is better."""
    return -values if measure == "mean utility" else values


def _means(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """By point, over the splits that it was judged on; NaN where there are none."""
    counts = (~np.isnan(errors)).sum(axis=1)
    return np.where(counts > 0, np.nansum(errors, axis=1) / np.maximum(counts, 1), np.nan)


def _chosen(points: list[dict[str, Any]], losses: NDArray[np.float64], spreads: NDArray[np.float64], rule: str) -> int:
    """The point that a search in memory takes: of those within `rule` of the least mean that of the smallest C, the least mean, the first."""
    counts = (~np.isnan(losses)).sum(axis=1)
    if (done := int((counts == losses.shape[1]).sum())) < len(points):
        warnings.warn(
            f"{done} of {len(points)} points were judged on every split; this is the best so far; raise time_limit", ConvergenceWarning, stacklevel=3
        )
    if counts.max() == 0:
        raise ValueError("no point was judged on any split before time_limit; raise it")
    means = np.where(counts == counts.max(), _means(losses), np.inf)
    best = int(np.argmin(means))
    within = means[best] + _EQUAL
    if rule == "one_se":
        on = losses[best][~np.isnan(losses[best])]
        spread = np.std(on, ddof=1) / np.sqrt(len(on)) if len(on) > 1 else spreads[best]
        within += 0.0 if np.isnan(spread) else spread
    near = np.flatnonzero(means <= within).tolist()
    return int(min(near, key=lambda at: (points[at].get("C", 0.0), means[at], at)))


def _on_split(search: Tuning, X: Any, y: Any, split: tuple[Any, Any]) -> _Judged:
    """The points and what they lose on one split. Runs on a worker."""
    model = clone(search).set_params(cv=[split]).fit(X, y)
    losses = _signed(np.asarray(model.errors_, dtype=np.float64).ravel(), model._measure)
    return _Judged(model.cv_results_["params"], losses, np.asarray(model.standard_errors_, dtype=np.float64).ravel(), model._measure)


def _at_point(search: Tuning, X: Any, y: Any, point: dict[str, Any], split: tuple[Any, Any]) -> Any:
    """The fit to all rows at a point. Runs on a worker."""
    there = {theirs: ours for ours, theirs in search._GRID.items()}
    only = {there[name]: [value] for name, value in point.items() if name in there}
    return clone(search).set_params(cv=[split], **only).fit(X, y).best_estimator_

"""What searches are judged by: folds, splits of the caller's, or a set of its own."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from . import _input
from ._estimator import KernelClassifier


class Judging(KernelClassifier):
    """A classifier that chooses its parameters by data."""

    cv: Any

    def _splits(self, X: Any, y: NDArray[Any]) -> Any:
        if isinstance(self.cv, numbers.Integral):
            return _input.whole("cv", self.cv, 2)
        splits = list(check_cv(self.cv, y, classifier=True).split(X, y))
        rows = np.arange(X.shape[0])
        for part in (np.asarray(part) for split in splits for part in split):
            if part.dtype != bool and part.size and not (-len(rows) <= part.min() and part.max() < len(rows)):
                raise ValueError(f"cv holds positions outside the {len(rows)} rows of X")
        return [(rows[train].tolist(), rows[test].tolist()) for train, test in splits]

    def _tuning_set(self, classes: NDArray[Any], tuning: Any) -> Any:
        if not isinstance(tuning, (tuple, list)) or len(tuning) != 2:
            raise TypeError("tuning must be a pair (X, y)")
        X, y = tuning
        X = validate_data(self, X, reset=False, **self._accepted(X))
        y = column_or_1d(y)
        check_consistent_length(X, y)
        place = {label: at for at, label in enumerate(classes.tolist())}
        if unknown := [label for label in np.unique(y).tolist() if label not in place]:
            raise ValueError(f"the tuning set has classes that y lacks: {unknown[:10]!r}")
        return _input.matrix(X), np.array([place[label] for label in y.tolist()], dtype=np.uint32)


def listed(name: str, values: Any, allowed: str = "a list of values") -> list[Any]:
    """The values to try of a parameter."""
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes)):
        raise TypeError(f"{name} = {values!r} is not allowed: {name} must be {allowed}")
    given = list(values)
    if not given:
        raise ValueError(f"{name} = {values!r} is not allowed: {name} must hold at least one value")
    return given

"""What searches are judged by: folds, splits of the caller's, or a set of its own."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from . import _input
from ._estimator import KernelClassifier


class Judging(KernelClassifier):
    """A classifier that chooses its parameters by data."""

    cv: Any

    # it is the splitter that asks for groups, or does not
    __metadata_request__fit = {"groups": UNUSED}

    def get_metadata_routing(self) -> Any:
        """Who gets which of the metadata given to `fit`: the estimator itself, and where `cv` is a splitter, that.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
            As scikit-learn's routing asks for it.
        """
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        if hasattr(self.cv, "split"):
            router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        return router

    def _splits(self, X: Any, y: NDArray[Any], groups: Any) -> Any:
        if isinstance(self.cv, numbers.Integral):
            return _input.whole("cv", self.cv, 2)
        groups = None if groups is None else column_or_1d(groups)
        check_consistent_length(X, groups)
        splits = list(check_cv(self.cv, y, classifier=True).split(X, y, groups))
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
        codes = _input.codes_among(y, classes, "the tuning set has classes that y lacks")
        check_consistent_length(X, codes)
        return _input.matrix(X), codes


def listed(name: str, values: Any, allowed: str = "a list of values") -> list[Any]:
    """The values to try of a parameter."""
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes)):
        raise TypeError(f"{name} = {values!r} is not allowed: {name} must be {allowed}")
    given = list(values)
    if not given:
        raise ValueError(f"{name} = {values!r} is not allowed: {name} must hold at least one value")
    return given

"""What the estimators that tune themselves share: the way into the search and back."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _core, _input
from ._estimator import KernelClassifier
from ._judging import Judging, listed

if TYPE_CHECKING:
    from typing_extensions import Self

DEFAULT_CS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)

_GAMMAS = 3
"""Widths tried where none are given."""


class Tuning(Judging):
    """A classifier that chooses the parameters of another. `_GRID` says which: the parameter here, and its name there."""

    _GRID: dict[str, str]
    _by_other_rows = False
    _ESTIMATOR: type[KernelClassifier]

    holdout: float | None
    standardize: bool
    rule: str
    early_stopping: bool
    halving: bool
    nested: int | None
    exact: bool

    # the parameters that are searched
    C = 1.0
    gamma = "scale"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, tuning: tuple[Any, Any] | None = None) -> Self:
        """Choose the parameters, and fit to training data.

        Ctrl-C ends the search with the best choice so far, if there is one: that model is fitted, and a `ConvergenceWarning` says so.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            The labels: two classes or more, numbers or text.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on C by row, >= 0; held-out rows count with them, and so do the rows that columns are put on one scale by.
        groups : array-like of shape (n_samples,), default=None
            The group of each row, for a `cv` that keeps groups together, like scikit-learn's `GroupKFold`. Not with `nested`.
        tuning : tuple of X and y, default=None
            Rows to choose by in place of `cv`. The model is fitted to `X` alone.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        self._by_other_rows = tuning is not None
        if groups is not None and self.nested is not None:
            raise ValueError(
                f"nested = {self.nested!r} is not allowed with groups, which its outer folds would tear apart: put the search into "
                "sklearn.model_selection.cross_validate with a splitter like GroupKFold"
            )
        if groups is not None and (self._by_other_rows or self.holdout is not None or isinstance(self.cv, numbers.Integral)):
            # as scikit-learn's splitters say it
            ignored = "The groups parameter is ignored by everything but a cv that splits by groups, like GroupKFold"
            warnings.warn(ignored, UserWarning, stacklevel=2)
        return self._fit(X, y, sample_weight, partial(self._search, tuning, groups))

    def _search(
        self,
        tuning: tuple[Any, Any] | None,
        groups: Any,
        X: Any,
        y: NDArray[Any],
        classes: NDArray[Any],
        codes: NDArray[np.uint32],
        sample_weight: Any,
        progress: Callable[..., object] | None,
    ) -> _core.Fitted:
        judge = self._judge(tuning, groups, X, y, classes)
        rows = self._kernel_values(X, X) if callable(self.kernel) else X
        data = (_input.matrix(rows), codes, _input.class_names(classes))
        request = self._request(sample_weight, progress)
        fitted, found = self._searched(data, self._parameters(classes, y), judge, request)
        self._take_search(found)
        return fitted

    def _judge(self, tuning: tuple[Any, Any] | None, groups: Any, X: Any, y: NDArray[Any], classes: NDArray[Any]) -> Any:
        """What points are judged by: other rows, splits, or so many folds."""
        if tuning is not None:
            return self._tuning_set(classes, tuning)
        return 2 if self.holdout is not None else self._splits(X, y, groups)

    def _searched(
        self, data: tuple[Any, Any, Any], parameters: dict[str, Any], judge: Any, request: dict[str, Any]
    ) -> tuple[_core.Fitted, dict[str, Any]]:
        """The search itself."""
        return _core.tune(data, self._method_name(), parameters, self._grid(), judge, self._search_options(), request)

    def _grid(self) -> list[tuple[str, list[float | str | None]]]:
        """The values to try, where they are given."""
        given = [(name, there, getattr(self, name)) for name, there in self._GRID.items()]
        return [(there, [_value(name, value) for value in listed(name, values)]) for name, there, values in given if values is not None]

    def _search_options(self) -> dict[str, Any]:
        return {
            "holdout": None if self.holdout is None else _input.real("holdout", self.holdout),
            "standardize": _input.flag("standardize", self.standardize),
            "rule": _input.text("rule", self.rule),
            "early_stopping": _input.flag("early_stopping", self.early_stopping),
            "halving": _input.flag("halving", self.halving),
            "nested": None if self.nested is None else _input.whole("nested", self.nested, 2),
            "exact": _input.flag("exact", self.exact),
            "balanced": self._is_balanced(),
        }

    def _is_balanced(self) -> bool:
        return isinstance(getattr(self, "class_weight", None), str) and self.class_weight == "balanced"

    def _class_factors(self, classes: NDArray[Any], y: NDArray[Any]) -> list[float] | None:
        # balanced are the classes of each training part, which the core knows
        return None if self._is_balanced() else super()._class_factors(classes, y)

    def _steps(self, X: Any) -> int | None:
        has_width = self.kernel in ("rbf", "poly", "sigmoid")
        sizes = [len(values) for _, values in self._grid()]
        cells = math.prod(sizes) * (_GAMMAS if has_width and getattr(self, "gammas", None) is None else 1)
        splits = self._split_count()
        if splits is None:
            return None
        stages = [cells]
        while self.halving and len(stages) < 3 and stages[-1] > 2:
            stages.append(-(-stages[-1] // 3))
        return sum(stages) * splits * (1 + (self.nested or 0))

    def _split_count(self) -> int | None:
        """How many splits there are, if that is known before they are made."""
        if self._by_other_rows or self.holdout is not None:
            return 1
        count = self.cv if isinstance(self.cv, numbers.Integral) else getattr(self.cv, "n_splits", None)
        return int(count) if isinstance(count, numbers.Integral) else None

    def _take_search(self, found: dict[str, Any]) -> None:
        names: list[str] = found["names"]
        losses = {name: found[name] for name in ("means", "errors", "standard_errors")}
        # a cost is better when it is less, a score when it is more; an error is one minus the accuracy
        offset = 1.0 if found["measure"] == "error" else 0.0
        shape = tuple(found["sizes"])
        points = [dict(zip(names, point, strict=True)) for point in found["points"]]
        by_split = losses["errors"].reshape(len(points), found["splits"])
        self.cv_results_ = _results(names, points, offset - by_split, offset - losses["means"], found)
        self.grid_names_ = tuple(names)
        sign = -1.0 if found["measure"] == "mean utility" else 1.0
        self.errors_ = sign * losses["means"].reshape(shape)
        self.standard_errors_ = losses["standard_errors"].reshape(shape)
        self.fold_errors_ = np.moveaxis(sign * by_split.reshape(*shape, -1), -1, 0)
        self.n_splits_ = found["splits"]
        self.best_index_ = found["chosen"]
        self.best_params_ = points[self.best_index_]
        self.best_score_ = float(offset - losses["means"][self.best_index_])
        self.C_ = self.best_params_["C"]
        self.search_status_ = found["status"]
        self._measure: str = found["measure"]
        for name in ("nested_score_", "nested_scores_", "nested_standard_error_", "nested_params_"):
            self.__dict__.pop(name, None)
        if "nested_errors" in found:
            self.nested_scores_ = offset - found["nested_errors"]
            self.nested_score_ = float(np.nanmean(self.nested_scores_))
            self.nested_standard_error_ = found["nested_standard_error"]
            self.nested_params_ = [dict(zip(names, point, strict=True)) for point in found["nested_points"]]

    @property
    def best_estimator_(self) -> KernelClassifier:
        """The chosen model as an estimator with these parameters, as `outlast.load` makes it of the model's file."""
        if not hasattr(self, "_fitted") or self._training_rows is not None:
            raise AttributeError("best_estimator_ is only available after fitting, and not with a callable kernel")
        model = self._ESTIMATOR._from_file(self._fitted)
        model.classes_ = self.classes_
        return model

    def _error_name(self) -> str:
        return self._measure

    def _complaints(self) -> list[str]:
        if self.status_ in ("interrupted", "time_limit") and self.search_status_ != "converged":
            judged = sum(state == "done" for state in self.cv_results_["state"])
            return [
                f"the search ended with status {self.search_status_!r}: {judged} of {len(self.cv_results_['state'])} points were judged on "
                "every split; this is the best so far"
            ]
        return super()._complaints()


def _value(name: str, value: Any) -> float | str | None:
    return None if value is None else _input.name_or_real(name, value)


def _results(
    names: Sequence[str], points: list[dict[str, Any]], scores: NDArray[np.float64], means: NDArray[np.float64], found: dict[str, Any]
) -> dict[str, Any]:
    """A table like that of scikit-learn's `GridSearchCV`."""
    results: dict[str, Any] = {}
    for name in names:
        column = np.ma.MaskedArray(np.empty(len(points), dtype=object), mask=False)
        column[:] = [point[name] for point in points]
        results[f"param_{name}"] = column
    results["params"] = points
    for split in range(scores.shape[1]):
        results[f"split{split}_test_score"] = scores[:, split]
    judged = ~np.isnan(scores)
    counts = np.maximum(judged.sum(axis=1), 1)
    spread = np.where(judged, scores - means[:, None], 0.0)
    results["mean_test_score"] = means
    results["std_test_score"] = np.where(judged.any(axis=1), np.sqrt((spread**2).sum(axis=1) / counts), np.nan)
    results["se_test_score"] = found["standard_errors"]
    results["state"] = np.array(found["states"])
    results["train_share"] = found["shares"]
    done = results["state"] == "done"
    rank = np.empty(len(points), dtype=np.int32)
    # points that were given up come after those that were not
    keys = np.array([(0.0 if whole else 1.0, math.inf if np.isnan(score) else -score) for whole, score in zip(done, means, strict=True)])
    _, place = np.unique(keys, axis=0, return_inverse=True)
    counts = np.bincount(place.reshape(-1))
    rank[:] = 1 + (np.cumsum(counts) - counts)[place.reshape(-1)]
    results["rank_test_score"] = rank
    return results

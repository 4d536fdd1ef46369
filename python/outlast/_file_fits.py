"""Fits to files that may be larger than memory."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from . import _core, _input, _progress
from ._estimator import KernelClassifier

if TYPE_CHECKING:
    from typing_extensions import Self


class FileFits(KernelClassifier):
    """A classifier that can be fitted to files."""

    def fit_files(
        self,
        files: Any,
        *,
        target: str | int | None = None,
        weight_column: str | int | None = None,
        ignore: Sequence[str | int] = (),
        memory: str | int = "1GB",
        cache: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit to files that may be larger than memory.

        The files are read once, LIBSVM text twice; once more where the first rows did not show that a column lies far from 0. Reading counts towards `time_limit`, and a limit that passes
        before its end is an error. Where their rows do not fit in `memory` they are kept on disk while the fit goes on, 4 bytes a value, and
        read again some dozen times; the objective is that of `fit` on the same rows. For `TruncatedSVC` with the linear kernel and the hinge loss, `CappedSVC` with the linear
        kernel and the loss "lp" (a cap by a rule is found on a sample of the rows), and `LqSVC`. Nothing is said about single rows then: `margins_`, `outliers_` and `outlier_scores_` are None.

        Parameters
        ----------
        files : str, path-like or list of these
            CSV or LIBSVM text, plain or gzipped, or Parquet, all of the same columns, 4,000 at most.
        target : str or int, default=None
            Column of the labels: a name, or a number (1 is the first, -1 the last). None takes the one column named label, target,
            class or y, else the last.
        weight_column : str or int, default=None
            Column of the sample weights.
        ignore : sequence of str or int, default=()
            Columns to leave out.
        memory : str or int, default="1GB"
            Memory to use, in bytes or as a text like "512MB".
        cache : str or path-like, default=None
            Folder in which rows are kept while the fit goes on; None for that of temporary files.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Examples
        --------
        >>> import os, tempfile
        >>> from outlast import TruncatedSVC
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "people.csv")
        ...     with open(path, "w") as file:
        ...         _ = file.write("age,label\\n31,no\\n35,no\\n60,yes\\n65,yes\\n")
        ...     model = TruncatedSVC(kernel="linear").fit_files(path, memory="512MB")
        >>> model.predict([[30.0], [70.0]])
        array(['no', 'yes'], dtype='<U3')
        """
        return self._fit_files(files, target, weight_column, ignore, memory, cache)

    @_progress.with_callbacks
    def _fit_files(self, files: Any, target: Any, weight_column: Any, ignore: Sequence[str | int], memory: Any, cache: Any) -> Self:
        paths = _paths(files)
        balanced = isinstance(self.class_weight, str) and self.class_weight == "balanced"
        limit, begun = _input.limit(getattr(self, "time_limit", None)), time.monotonic()
        with _progress.watch(self, self._tolerance(), None, None, None) as watch:
            watch.begin("reading")
            rows = _core.open_files(
                paths,
                target=None if target is None else str(target),
                weight_column=None if weight_column is None else str(weight_column),
                ignore=[str(column) for column in ignore],
                memory=_input.memory(memory),
                cache=None if cache is None else os.fspath(cache),
                shift=_input.flag("fit_intercept", self.fit_intercept),
                time_limit=limit,
                progress=watch.report_seldom,
            )
            told = rows.notes
            for note in told:
                warnings.warn(note, UserWarning, stacklevel=_progress.TO_THE_CALLER)
            classes = np.array(rows.classes)
            shared = self._shared_parameters(classes, classes)
            fitted = _core.fit_files(
                rows,
                self._method_name(),
                {**shared, **({"class_weight": None} if balanced else {}), **self._own_parameters(classes)},
                balanced=balanced,
                threads=_input.threads(self.n_jobs),
                time_limit=_input.time_left(limit, begun),
                progress=watch.report,
            )
            for note in rows.notes[len(told) :]:
                warnings.warn(note, UserWarning, stacklevel=_progress.TO_THE_CALLER)
            self.classes_ = classes
            self.n_features_in_ = fitted.features
            if fitted.feature_names is not None:
                self.feature_names_in_ = np.array(fitted.feature_names, dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            self._training_rows = None
            self._own_vectors = None
            self._take(fitted)
            self.n_support_ = np.zeros(len(classes), dtype=np.intp)
            self.margins_, self.outliers_, self.outlier_scores_ = fitted.margins, fitted.outliers, fitted.outlier_scores
            if watch.asked_to_end and self.status_ == "time_limit":
                self.status_ = "interrupted"
        for complaint in self._complaints():
            warnings.warn(complaint, ConvergenceWarning, stacklevel=_progress.TO_THE_CALLER)
        return self


def _paths(files: Any) -> list[str]:
    """The files by name, whether one or several were given."""
    given: list[Any] = [files] if isinstance(files, (str, bytes, os.PathLike)) or not isinstance(files, Iterable) else list(files)
    if wrong := [file for file in given if not isinstance(file, (str, os.PathLike))]:
        raise TypeError(f"files must be a path or a list of paths, got {type(wrong[0]).__name__}: {wrong[0]!r}")
    return [os.fspath(file) for file in given]

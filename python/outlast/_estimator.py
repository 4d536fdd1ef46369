"""What all estimators share: the way into the core and back, and what scikit-learn expects of a classifier."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from . import _core, _input, _progress

if TYPE_CHECKING:
    from typing_extensions import Self


class KernelClassifier(_progress.CallbackSupport, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that the core fits. A subclass has the parameters in its ``__init__`` and says which are its own."""

    C: float
    kernel: str | Callable[[Any, Any], Any]
    gamma: float | str
    degree: int
    coef0: float
    class_weight: Mapping[Any, float] | str | None
    fit_intercept: bool
    tol: float | None
    max_iter: int
    n_jobs: int | None
    cache_size: float
    random_state: int | np.random.RandomState | None
    verbose: int
    status_: str
    margins_: NDArray[np.float64] | None
    outliers_: NDArray[np.bool_] | None

    def _method_name(self) -> str:
        """The core's name of the method."""
        raise NotImplementedError

    def _own_parameters(self, classes: NDArray[Any]) -> dict[str, Any]:
        """The parameters that only this method has, as the core takes them."""
        raise NotImplementedError

    def _steps(self, X: Any) -> int | None:
        """How many reports a fit makes, where that is known."""
        return None

    def _tolerance(self) -> float:
        """The relative gap asked for."""
        return _input.real("tol", self.tol)

    @classmethod
    def _stored_parameters(cls, fitted: _core.Fitted) -> dict[str, Any]:
        """The parameters that only this method has, from a model file."""
        raise NotImplementedError

    @classmethod
    def _from_file(cls, fitted: _core.Fitted) -> Self:
        """The estimator of a model file, fitted."""
        factors = fitted.class_weight
        parameters: dict[str, Any] = {
            "C": fitted.c,
            "kernel": fitted.kernel,
            "gamma": fitted.gamma,
            "degree": fitted.degree,
            "coef0": fitted.coef0,
            "class_weight": None if factors is None else dict(zip(fitted.classes, factors, strict=True)),
            "fit_intercept": fitted.fit_intercept,
            "tol": fitted.tol,
            "max_iter": fitted.max_iter,
        }
        known = cls._get_param_names()
        unset = {"gamma", "degree", "coef0"}
        shared = {name: value for name, value in parameters.items()
                  if name in known and not (name in unset and value is None)}
        model = cls(**shared, **cls._stored_parameters(fitted))
        model.classes_ = np.array(fitted.classes)
        model.n_features_in_ = fitted.features
        if fitted.feature_names is not None:
            model.feature_names_in_ = np.array(fitted.feature_names, dtype=object)
        model._training_rows = None
        model._take(fitted)
        return model

    def _shared_parameters(self, classes: NDArray[Any], y: NDArray[Any]) -> dict[str, Any]:
        return {
            "c": _input.real("C", self.C),
            "kernel": "precomputed" if callable(self.kernel) else _input.text("kernel", self.kernel),
            "gamma": _input.name_or_real("gamma", self.gamma),
            "degree": _input.whole("degree", self.degree, 1, 64),
            "coef0": _input.real("coef0", self.coef0),
            "class_weight": self._class_factors(classes, y),
            "fit_intercept": _input.flag("fit_intercept", self.fit_intercept),
            "tol": self._tolerance(),
            "max_iter": _input.whole("max_iter", self.max_iter, 1),
            "cache_size": _input.real("cache_size", self.cache_size),
            "random_state": _input.seed(self.random_state),
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to training data.

        Ctrl-C stops it; other threads run meanwhile.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows. float64 and float32 in C or Fortran order and CSR are taken as they are, everything else is converted. With
            ``kernel="precomputed"`` the n_samples x n_samples matrix of kernel values.
        y : array-like of shape (n_samples,)
            The labels: two classes or more, numbers or text.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on C by row, >= 0. A row of weight 2 counts as two rows.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight, self._run)

    @_progress.with_callbacks
    def _fit(self, X: Any, y: Any, sample_weight: Any, run: Callable[..., _core.Fitted]) -> Self:
        """Checks, then ``run(X, y, classes, codes, sample_weight)``, then keeps what it gives."""
        X, y = validate_data(self, X, y, **self._accepted(X))
        classes, codes = _input.encode(y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            _input.check_positive_weights(codes, sample_weight)
        with _progress.watch(self, self._tolerance(), X, y, sample_weight) as watch:
            fitted = run(X, y, classes, codes, sample_weight, watch.report)
            self.classes_ = classes
            self._training_rows = X if callable(self.kernel) else None
            self._take(fitted)
            self._take_training(fitted, X, codes)
            if watch.asked_to_end and self.status_ == "time_limit":
                self.status_ = "interrupted"
        for complaint in self._complaints():
            warnings.warn(complaint, ConvergenceWarning, stacklevel=_progress.TO_THE_CALLER)
        return self

    def _run(
        self,
        X: Any,
        y: NDArray[Any],
        classes: NDArray[Any],
        codes: NDArray[np.uint32],
        sample_weight: Any,
        progress: Callable[..., object] | None,
    ) -> _core.Fitted:
        previous = self._previous_fit(X, classes) if _input.flag("warm_start", getattr(self, "warm_start", False)) else None
        rows = self._kernel_values(X, X) if callable(self.kernel) else X
        return _core.fit(
            _input.matrix(rows),
            codes,
            _input.class_names(classes),
            self._method_name(),
            self._parameters(classes, y),
            start=previous,
            **self._request(sample_weight, progress),
        )

    def _parameters(self, classes: NDArray[Any], y: NDArray[Any]) -> dict[str, Any]:
        return {**self._shared_parameters(classes, y), **self._own_parameters(classes)}

    def _request(self, sample_weight: Any, progress: Callable[..., object] | None) -> dict[str, Any]:
        """What goes with the parameters into the core."""
        return {
            "threads": _input.threads(self.n_jobs),
            "sample_weight": sample_weight,
            "feature_names": self._column_names(),
            "time_limit": _input.limit(getattr(self, "time_limit", None)),
            "progress": progress,
        }

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The value of each decision function, f(x) plus its intercept, for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; with ``kernel="precomputed"`` their kernel values against the training rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, positive values mean ``classes_[1]``; with more, the largest wins.

        Examples
        --------
        >>> from outlast import TruncatedSVC
        >>> model = TruncatedSVC(C=10.0, kernel="linear").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
        >>> model.decision_function([[1.0], [1.5], [2.0]]).round(2) + 0.0
        array([-1.,  0.,  1.])
        """
        rows = self._rows(X)
        values = self._fitted.decision_function(rows, _input.threads(self.n_jobs))
        functions = self._fitted.functions
        return values if functions == 1 else values.reshape(-1, functions)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; with ``kernel="precomputed"`` their kernel values against the training rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The predicted classes.

        Examples
        --------
        >>> from outlast import TruncatedSVC
        >>> model = TruncatedSVC(kernel="linear").fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
        >>> model.predict([[0.5], [2.5]])
        array(['a', 'b'], dtype='<U1')
        """
        rows = self._rows(X)
        return self.classes_[self._fitted.predict_codes(rows, _input.threads(self.n_jobs))]

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The weights of a linear kernel's functions, of shape (1, n_features) or (n_classes, n_features)."""
        return self._of_linear("coef_", lambda fitted: fitted.coef).reshape(self._fitted.functions, -1)

    @property
    def selected_features_(self) -> NDArray[Any]:
        """Columns with a coefficient that is not 0: their names, where X had any, else their positions."""
        columns = self._of_linear("selected_features_", lambda fitted: fitted.selected).astype(np.intp)
        names = getattr(self, "feature_names_in_", None)
        return columns if names is None else names[columns]

    @property
    def n_features_selected_(self) -> int:
        """Number of columns with a coefficient that is not 0."""
        return len(self._of_linear("n_features_selected_", lambda fitted: fitted.selected))

    @property
    def support_vectors_(self) -> Any:
        """The support vectors, of shape (n_SV, n_features); none for a precomputed kernel."""
        own = getattr(self, "_own_vectors", None)
        found = _input.kept_rows(self._fitted) if own is None and hasattr(self, "_fitted") else own
        if found is None:
            raise AttributeError("support_vectors_ is only available after fitting; files of linear models do not keep them")
        return found

    def _of_linear(self, name: str, get: Callable[[_core.Fitted], NDArray[Any] | None]) -> NDArray[Any]:
        found = get(self._fitted) if hasattr(self, "_fitted") else None
        if found is None:
            raise AttributeError(f"{name} is only available after fitting with a linear kernel")
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that `outlast.load` and the command line read.

        The file is checksummed, written in one piece or not at all, and holds no code. Classes are kept as whole
        numbers or text: booleans come back as 0 and 1.

        Parameters
        ----------
        path : str or path-like
            The file.

        Examples
        --------
        >>> import os, tempfile
        >>> import outlast
        >>> model = outlast.TruncatedSVC(kernel="linear").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.outlast")
        ...     model.save(path)
        ...     outlast.load(path).predict([[3.0]])
        array([1])
        """
        check_is_fitted(self)
        if self._training_rows is not None:
            raise ValueError("a callable kernel can't be kept in a model file: pickle the estimator instead")
        self._fitted.save(os.fspath(path))

    def export(self, path: str | os.PathLike[str], format: str) -> None:
        """Write the model in the form of another program.

        Parameters
        ----------
        path : str or path-like
            The file.
        format : {"libsvm", "liblinear", "onnx", "json"}
            "libsvm": a LIBSVM model file, two classes. "liblinear": a LIBLINEAR model file, linear models. "onnx": a graph of
            plain tensor operators in double precision with the input X and the outputs label and scores. "json": every number
            that predicts. The first two know whole numbers of 32 bits as classes only: other classes are numbered from 0 in the
            order of `classes_`, and a warning says so.

        Examples
        --------
        >>> import json, os, tempfile
        >>> from outlast import TruncatedSVC
        >>> model = TruncatedSVC(kernel="linear").fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.json")
        ...     model.export(path, "json")
        ...     with open(path) as file:
        ...         json.load(file)["classes"]
        ['a', 'b']
        """
        check_is_fitted(self)
        if self._training_rows is not None:
            raise ValueError("a callable kernel can't be exported: only its author knows it")
        for note in self._fitted.export(os.fspath(path), _input.text("format", format)):
            warnings.warn(note, UserWarning, stacklevel=2)

    def _accepted(self, X: Any) -> dict[str, Any]:
        """What validate_data lets through as it is. Looks at sparse matrices first, which it would convert without a look."""
        _input.intact(X)
        return {"accept_sparse": "csr", "dtype": _input.precision(X)}

    def _rows(self, X: Any) -> Any:
        """X of a prediction in the core's form."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, **self._accepted(X))
        if self._training_rows is not None:
            X = self._kernel_values(X, self._training_rows)
        return _input.matrix(X)

    def _kernel_values(self, X: Any, Z: Any) -> NDArray[np.float64]:
        kernel: Any = self.kernel
        values = np.ascontiguousarray(kernel(X, Z), dtype=np.float64)
        if values.shape != (X.shape[0], Z.shape[0]):
            raise ValueError(
                f"the kernel returned shape {values.shape} for {X.shape[0]} and {Z.shape[0]} rows, "
                f"expected ({X.shape[0]}, {Z.shape[0]})"
            )
        return values

    def _class_factors(self, classes: NDArray[Any], y: NDArray[Any]) -> list[float] | None:
        if getattr(self, "class_weight", None) is None:
            return None
        try:
            factors = compute_class_weight(self.class_weight, classes=classes, y=y)
        except OverflowError:
            raise ValueError("class_weight holds a factor that is too large for a float") from None
        return [float(factor) for factor in factors]

    def _column_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [_input.unicode("feature names", str(name)) for name in names]

    def _previous_fit(self, X: Any, classes: NDArray[Any]) -> _core.Fitted | None:
        """The last fit if it can be a start for this one."""
        fitted: _core.Fitted | None = getattr(self, "_fitted", None)
        if fitted is None or fitted.margins is None or fitted.rows != X.shape[0]:
            return None
        columns = X.shape[0] if callable(self.kernel) else X.shape[1]
        same = fitted.features == columns and np.array_equal(self.classes_, classes)
        return fitted if same else None

    def _take(self, fitted: _core.Fitted) -> None:
        self._fitted = fitted
        self.intercept_ = fitted.intercept
        self.support_ = fitted.support.astype(np.intp)
        self.dual_coef_ = fitted.dual_coef.reshape(-1, fitted.width).T
        if not np.isnan(fitted.objective):
            # another program's model does not tell
            self.objective_ = fitted.objective
            self.objective_trace_ = fitted.trace
            self.gap_ = fitted.gap
        # scikit-learn expects at least 1: solving the first convex problem counts where nothing was left to do after it
        self.n_iter_ = max(1, fitted.steps)
        self.status_ = fitted.status
        self.solver_ = fitted.solver

    def _take_training(self, fitted: _core.Fitted, X: Any, codes: NDArray[np.uint32]) -> None:
        # a model with one of the core's kernels has them in the core; of a kernel matrix no rows are known
        kept = callable(self.kernel) or fitted.kernel == "linear"
        self._own_vectors = X[self.support_] if kept else None
        self.n_support_ = np.bincount(codes[self.support_], minlength=len(self.classes_))
        self.margins_ = fitted.margins
        self.outliers_ = fitted.outliers
        self.outlier_scores_ = fitted.outlier_scores

    def _complaints(self) -> list[str]:
        """What did not converge."""
        if self.status_ == "converged":
            return []
        advice = {
            "interrupted": "this is the best model so far",
            "time_limit": "this is the best model so far; raise time_limit",
            "all_capped": "every row lies beyond the cap; this is the last model before that, raise cap",
            "iteration_limit": "raise max_iter or tol, or scale the columns of X",
        }.get(self.status_, "rounding kept it from the tolerance; raise tol, or scale the columns of X")
        # the paper's algorithm for the L_q penalty certifies none
        at = "" if np.isnan(self.gap_) else f", at a relative duality gap of {self.gap_:.1e}"
        return [
            f"the fit ended with status {self.status_!r} after {self.n_iter_} steps{at} (tol = {self._tolerance():g}): {advice}"
        ]

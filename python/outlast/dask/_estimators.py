"""The estimators: those of the package, fitted to rows that stay on their workers."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from .. import _capped, _core, _input, _lq, _progress, _truncated
from .._file_fits import FileFits
from . import _engine, _maps, _parts

if TYPE_CHECKING:
    from typing_extensions import Self


class DaskClassifier(FileFits):
    """What the estimators share: the fit to a dask collection, and predictions that are dask collections."""

    memory: str | int
    kernel_approximation: str | None = None
    map_: Any = None
    """What makes the fitted columns of those given, with a kernel approximation."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, client: Any = None) -> Self:
        """Fit to a dask collection.

        Ctrl-C stops it. Where a worker is lost its parts are made again from the collection on another.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            The rows, of numbers; an array's chunk sizes must be known.
        y : dask array or series of shape (n_samples,)
            The labels: two classes or more, whole numbers or text. Beside an array of rows a numpy array will do. A part need not have rows
            of every class, or any.
        sample_weight : dask array or series of shape (n_samples,), default=None
            Factors on C by row, >= 0.
        client : distributed.Client, default=None
            The cluster; None takes the current client, or dask's threads where there is none.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        collection = _parts.collect(X, y, sample_weight)
        client = _engine.client_in_use(client)

        def read() -> _engine.Engine:
            map = _maps.of(self, collection, client)
            return _engine.Engine(collection._replace(columns=replace(collection.columns, map=map)), client, bool(self.fit_intercept))

        with _engine.waiting(client):
            return self._fitted_to(read)

    def fit_files(
        self,
        files: Any,
        *,
        target: str | int | None = None,
        weight_column: str | int | None = None,
        ignore: Sequence[str | int] = (),
        memory: str | int | None = None,
        cache: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit to files on this machine that may be larger than memory, without dask.

        Not with a kernel approximation. What a fit to a collection says about its passes and parts is gone then.

        Parameters
        ----------
        files : str, path-like or list of these
            CSV or LIBSVM text, plain or gzipped, or Parquet, all of the same columns, 4,000 at most.
        target : str or int, default=None
            Column of the labels, as in `outlast.TruncatedSVC.fit_files`.
        weight_column : str or int, default=None
            Column of the sample weights.
        ignore : sequence of str or int, default=()
            Columns to leave out.
        memory : str or int, default=None
            Memory to use, in bytes or as a text like "512MB"; None takes the estimator's.
        cache : str or path-like, default=None
            Folder in which rows are kept while the fit goes on; None for that of temporary files.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        if self.kernel_approximation is not None:
            raise ValueError(f"kernel_approximation = {self.kernel_approximation!r} is not allowed with files: fit a dask collection, or set it to None")
        return self._fit_files(files, target, weight_column, ignore, self.memory if memory is None else memory, cache)

    def _take(self, fitted: _core.Fitted) -> None:
        super()._take(fitted)
        # of an earlier fit to a collection
        for name in ("map_", "n_outliers_", "history_", "passes_", "bytes_per_pass_", "partition_rows_"):
            self.__dict__.pop(name, None)

    def _fitted_to(self, read: Callable[[], _engine.Engine]) -> Self:
        """Fit to rows that `read` makes ready to be asked."""
        history: list[tuple[int, float]] = []
        self.history_ = history
        limit, begun = _input.limit(getattr(self, "time_limit", None)), time.monotonic()
        with _progress.watch(self, self._tolerance(), None, None, None) as watch:
            watch.begin("reading")
            with closing(read()) as engine:
                fitted = self._solved(engine, _input.time_left(limit, begun), watch.report)
            classes = engine.classes
            self.classes_ = classes
            self.n_features_in_ = engine.columns.number
            if engine.columns.names is not None:
                self.feature_names_in_ = np.array(engine.columns.names, dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            self._training_rows = None
            self._own_vectors = None
            self._take(fitted)
            self.map_, self.history_ = engine.columns.map, history
            self.n_support_ = np.zeros(len(classes), dtype=np.intp)
            self.margins_, self.outliers_, self.outlier_scores_ = None, None, None
            self.n_outliers_ = int(fitted.detail("outliers") or 0)
            self.partition_rows_ = np.array(engine.part_rows)
            self.passes_ = engine.passes
            self.bytes_per_pass_ = np.array(engine.sent)
        for complaint in self._complaints():
            warnings.warn(complaint, ConvergenceWarning, stacklevel=3)
        return self

    def _solved(self, engine: _engine.Engine, time_left: float | None, report: Callable[..., bool] | None) -> _core.Fitted:
        classes = engine.classes
        balanced = isinstance(self.class_weight, str) and self.class_weight == "balanced"
        shared = self._shared_parameters(classes, classes)
        return _core.fit_parts(
            engine,
            (engine.rows, engine.width),
            _input.class_names(classes),
            self._method_name(),
            {**shared, **({"class_weight": None} if balanced else {}), **self._own_parameters(classes)},
            shift=None if engine.shift is None else engine.shift.tolist(),
            balanced=balanced,
            memory=_input.memory(self.memory),
            threads=_input.threads(self.n_jobs),
            feature_names=engine.columns.names if engine.columns.map is None else None,
            time_limit=time_left,
            progress=self._recorded(engine, report),
        )

    def _recorded(self, engine: _engine.Engine, report: Callable[..., bool] | None) -> Callable[..., bool]:
        def record(stage: str, step: int, objective: float, gap: float) -> bool:
            self.history_.append((engine.passes, objective))
            return False if report is None else report(stage, step, objective, gap)

        return record

    def decision_function(self, X: Any) -> Any:
        """The value of each decision function for each row.

        Parameters
        ----------
        X : dask array or dataframe, or what `outlast` takes
            The rows.

        Returns
        -------
        dask array of shape (n_samples,) or (n_samples, n_classes), not yet computed; of rows in memory a numpy array
            With two classes, positive values mean ``classes_[1]``; with more, the largest wins.
        """
        functions = self._function_count()
        return self._by_parts(X, "decision_function", np.dtype(np.float64), None if functions == 1 else functions)

    def predict(self, X: Any) -> Any:
        """The class of each row.

        Parameters
        ----------
        X : dask array or dataframe, or what `outlast` takes
            The rows.

        Returns
        -------
        dask array of shape (n_samples,), not yet computed; of rows in memory a numpy array
            The predicted classes.
        """
        check_is_fitted(self)
        return self._by_parts(X, "predict", self.classes_.dtype, None)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, client: Any = None) -> float:
        """The share of the rows whose class is predicted right.

        Parameters
        ----------
        X : dask array or dataframe, or what `outlast` takes
            The rows.
        y : dask array or series, or array-like
            Their classes.
        sample_weight : dask array or series, or array-like, default=None
            Weights of the rows.
        client : distributed.Client, default=None
            The cluster, as in `fit`: the estimator does not keep the one it was fitted with.

        Returns
        -------
        float
            From 0 to 1.
        """
        if not (_parts.is_array(X) or _parts.is_frame(X)):
            return float(super().score(X, y, sample_weight))
        check_is_fitted(self)
        import dask

        collection = _parts.collect(X, y, sample_weight)
        client = _engine.client_in_use(client)
        model = _engine.held(self)
        parts = [dask.delayed(_right)(model, number, part) for number, part in enumerate(collection.parts)]
        with _engine.waiting(client):
            right, total, rows = np.sum(_engine.computed(client, parts), axis=0)
        if rows == 0:
            raise ValueError("X has no rows, expected at least one")
        if total == 0:
            raise ValueError("every sample_weight is zero: at least one row must have a positive weight")
        return float(right / total)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that `outlast.load` and the command line read.

        Parameters
        ----------
        path : str or path-like
            The file.
        """
        check_is_fitted(self)
        if self.map_ is not None:
            raise ValueError("a model with a kernel approximation can't be kept in a model file: pickle the estimator instead")
        super().save(path)

    def export(self, path: str | os.PathLike[str], format: str) -> None:
        """Write the model in the form of another program.

        Parameters
        ----------
        path : str or path-like
            The file.
        format : {"libsvm", "liblinear", "onnx", "json"}
            As in `outlast.TruncatedSVC.export`.
        """
        check_is_fitted(self)
        if self.map_ is not None:
            raise ValueError("a model with a kernel approximation can't be exported: pickle the estimator instead")
        super().export(path, format)

    def _function_count(self) -> int:
        check_is_fitted(self)
        return self._fitted.functions

    def _by_parts(self, X: Any, method: str, dtype: Any, columns: int | None) -> Any:
        """A method of a fitted estimator on every part of X."""
        check_is_fitted(self)
        if not (_parts.is_array(X) or _parts.is_frame(X)):
            return _predicted(X, self, method)
        import dask.array

        # of the same model and rows the same tasks
        model = _engine.held(self, pure=True)
        meta = np.empty((0,) if columns is None else (0, columns), dtype=dtype)
        if _parts.is_frame(X):
            parts = X.map_partitions(_predicted, model, method, meta=meta)
            return parts if _parts.is_array(parts) else parts.to_dask_array()
        X = X.rechunk({1: -1})
        if columns is None:
            # not by map_blocks: in older versions of dask it would make numpy arrays of sparse blocks
            return dask.array.blockwise(_of_blocks, "i", X, "ij", model, None, method, None, dtype=dtype, meta=meta, token="_predicted")
        return X.map_blocks(_predicted, model, method, dtype=dtype, chunks=(X.chunks[0], (columns,)), meta=meta)


def _predicted(rows: Any, model: DaskClassifier, method: str) -> NDArray[Any]:
    """Runs on a worker."""
    if _num_samples(rows) == 0:
        functions = model._fitted.functions
        if method == "predict" or functions == 1:
            return np.empty(0, dtype=model.classes_.dtype if method == "predict" else np.float64)
        return np.empty((0, functions))
    if model.map_ is not None:
        return _of_map(model, rows, method)
    values: NDArray[Any] = getattr(super(DaskClassifier, model), method)(rows)
    return values


def _of_blocks(blocks: list[Any], model: DaskClassifier, method: str) -> NDArray[Any]:
    """Of the blocks of the same rows; there is one, of all columns."""
    return _predicted(blocks[0], model, method)


def _of_map(model: DaskClassifier, rows: Any, method: str) -> NDArray[Any]:
    """Predictions from the columns that the map makes."""
    checked = validate_data(model, rows, reset=False, **model._accepted(rows))
    values: NDArray[Any] = np.asarray(model.map_.transform(_parts.numbers(checked)) @ model.coef_.T + model.intercept_)
    if method == "decision_function":
        return values[:, 0] if values.shape[1] == 1 else values
    codes = (values[:, 0] > 0).astype(np.intp) if values.shape[1] == 1 else values.argmax(axis=1)
    return np.asarray(model.classes_[codes])


def _right(model: DaskClassifier, number: int, part: _parts.Rows) -> tuple[float, float, int]:
    """Weight of the rows that are predicted right, and of all, and their number. Runs on a worker."""
    try:
        predicted = _predicted(part.x, model, "predict")
        rows = len(predicted)
        labels = _parts.labels(part.y, rows)
        if rows and _parts.is_text(labels) != _parts.is_text(predicted):
            kinds = ("numbers", "text") if _parts.is_text(predicted) else ("text", "numbers")
            raise ValueError("y holds {}, but the classes are {}".format(*kinds))
        weights = np.ones(rows) if part.weights is None else _parts.checked_weights(part.weights, rows)
    except (ValueError, TypeError) as problem:
        raise ValueError(f"partition {number}: {problem}") from None
    return float(weights[predicted == labels].sum()), float(weights.sum()), rows


class TruncatedSVC(DaskClassifier, _truncated.TruncatedSVC):
    """`outlast.TruncatedSVC` with the linear kernel, for dask arrays and dataframes.

    The objective is that of `outlast.TruncatedSVC` on the same rows. The rows stay on their workers, in 32 bits a value; what travels in a
    pass is a point to them, and sums back, of (n_features + 1) * n_functions numbers and the square of that. Passes are ten for the plain
    hinge, thirty to a hundred for the truncated one. So few rows that they all fit into the sample are fitted here, in one pass.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the penalty, > 0.
    truncation : float <= 0, "auto" or None, default="auto"
        Where the loss is cut off; None leaves it whole.
    penalty : {"l2", "l1", "adaptive_l1", "lq"}, default="l2"
        As in `outlast.TruncatedSVC`.
    q : float, default=0.5
        The power of the penalty "lq", in (0, 1].
    kernel_approximation : {"nystroem"} or None, default=None
        "nystroem" fits an rbf machine in the span of `n_components` kernel functions, at rows drawn at random: as many columns, computed on the workers
        by `sklearn.kernel_approximation.Nystroem`, and the same linear fit in them. It is that approximation, and not the kernel
        machine: its error falls with `n_components`, and the time of a pass grows with its square.
    gamma : float or "scale", default="scale"
        Width of that kernel; "scale" is 1 / (n_features * X.var()), by the rows drawn.
    n_components : int, default=200
        Columns of the approximation.
    utility, cost : array-like of shape (n_classes, n_classes), default=None
        What decisions are worth or cost, as in `outlast.TruncatedSVC`.
    utility_baseline : {"keep", "row_minimum"}, default="keep"
        What is subtracted from each utility.
    class_weight : dict, "balanced" or None, default=None
        Factors on C by class.
    fit_intercept : bool, default=True
        Whether an intercept, which is not penalised, is fitted.
    tol : float, default=1e-4
        Relative duality gap at which the last convex problem counts as solved.
    max_iter : int, default=100
        Most steps of the d.c. algorithm on the rows gathered here.
    memory : str or int, default="1GB"
        Memory for rows on the client: it sets the size of the sample and of what is gathered.
    n_jobs : int or None, default=None
        Threads on the client. A worker uses one for each of its tasks.
    random_state : int, RandomState or None, default=None
        Seed of the sample.
    verbose : int, default=0
        1 shows a bar in terminals and notebooks, and lines elsewhere; 2 prints lines everywhere.
    time_limit : float or None, default=None
        Seconds after which `fit` ends with the best model so far. Reading counts, and is not cut short.

    Attributes
    ----------
    classes_, coef_, intercept_, objective_, objective_trace_, gap_, status_, solver_, n_iter_, n_features_in_, feature_names_in_
        As of `outlast.TruncatedSVC`.
    passes_ : int
        Times that all parts were asked.
    bytes_per_pass_ : ndarray of shape (n_passes,)
        Bytes sent for each, questions and answers, those between workers included. The first brings a sample of the rows.
    history_ : list of (int, float)
        Passes so far, and the objective at the point they were asked about.
    partition_rows_ : ndarray of int
        Rows of each part.
    margins_, outliers_, outlier_scores_ : None
        Nothing is kept about single rows; see `decision_function` and `audit`.

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from outlast.dask import TruncatedSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 3))
    >>> X, y = da.from_array(X, chunks=(300, 3)), da.from_array((X[:, 0] > 0).astype(int), chunks=300)
    >>> model = TruncatedSVC(C=10.0).fit(X, y)
    >>> model.predict(X[:3]).compute().tolist() == y[:3].compute().tolist()
    True
    """

    # what the linear machine on parts does not have
    kernel = "linear"
    degree = 3
    coef0 = 0.0
    loss = "hinge"
    cost_form = "utility"
    warm_start = False
    cache_size = 1000.0
    global_search = False
    solver = "auto"
    probability = None

    def __init__(
        self,
        C: float = 1.0,
        *,
        truncation: float | str | None = "auto",
        penalty: str = "l2",
        q: float = 0.5,
        kernel_approximation: str | None = None,
        gamma: float | str = "scale",
        n_components: int = 200,
        utility: Any = None,
        cost: Any = None,
        utility_baseline: str = "keep",
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 100,
        memory: str | int = "1GB",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        time_limit: float | None = None,
    ) -> None:
        self.C = C
        self.truncation = truncation
        self.penalty = penalty
        self.q = q
        self.kernel_approximation = kernel_approximation
        self.gamma = gamma
        self.n_components = n_components
        self.utility = utility
        self.cost = cost
        self.utility_baseline = utility_baseline
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.time_limit = time_limit


class CappedSVC(DaskClassifier, _capped.CappedSVC):
    """`outlast.CappedSVC` with the linear kernel, for dask arrays and dataframes.

    As of `TruncatedSVC` here. A pass brings the sums of a Newton step. A cap by a rule ("auto", "cv") is the one that the
    rule finds on the sample of the rows that comes to the client, and not on all rows.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the penalty, > 0.
    p : float, default=1.0
        The power, in (0, 2].
    cap : float, "auto", "cv" or None, default="auto"
        What a row costs at most.
    cap_fraction : float, default=0.1
        The share of the rows that "auto" puts beyond the cap.
    class_weight : dict, "balanced" or None, default=None
        Factors on C by class.
    fit_intercept : bool, default=True
        Whether intercepts, which are not penalised, are fitted.
    tol : float, default=1e-4
        Relative gap at which the last round counts as solved.
    max_iter : int, default=1000
        Most rounds of the fit to the sample.
    memory : str or int, default="1GB"
        Memory for rows on the client: it sets the size of the sample.
    n_jobs : int or None, default=None
        Threads on the client.
    random_state : int, RandomState or None, default=None
        Seed of the sample.
    verbose : int, default=0
        1 shows a bar in terminals and notebooks, and lines elsewhere; 2 prints lines everywhere.
    time_limit : float or None, default=None
        Seconds after which `fit` ends with the best model so far. Reading counts, and is not cut short.

    Attributes
    ----------
    gap_ : float
        The decrease that the last quadratic model promises and what smoothing adds, next to the objective. There is no dual point here.
    cap_, classes_, coef_, intercept_, objective_, objective_trace_, status_, n_iter_, n_features_in_, feature_names_in_
        As of `outlast.CappedSVC`.
    passes_, bytes_per_pass_, history_, partition_rows_
        As of `TruncatedSVC` here.

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from outlast.dask import CappedSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 3))
    >>> X, y = da.from_array(X, chunks=(300, 3)), da.from_array((X[:, 0] > 0).astype(int), chunks=300)
    >>> CappedSVC(C=10.0, p=2.0, cap=4.0).fit(X, y).score(X, y) > 0.95
    True
    """

    kernel = "linear"
    gamma = "scale"
    degree = 3
    coef0 = 0.0
    loss = "lp"
    solver = "exact"
    cache_size = 1000.0

    def __init__(
        self,
        C: float = 1.0,
        *,
        p: float = 1.0,
        cap: float | str | None = "auto",
        cap_fraction: float = 0.1,
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        memory: str | int = "1GB",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        time_limit: float | None = None,
    ) -> None:
        self.C = C
        self.p = p
        self.cap = cap
        self.cap_fraction = cap_fraction
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.time_limit = time_limit


class LqSVC(DaskClassifier, _lq.LqSVC):
    """`outlast.LqSVC` for dask arrays and dataframes.

    As of `TruncatedSVC` here. A pass brings the sums of a Newton step; the penalty meets them on the client, in a problem of n_features *
    n_functions unknowns.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the penalty, > 0.
    q : float, default=1.0
        The exponent, in (0, 2].
    cost : array-like of shape (n_classes, n_classes), default=None
        What wrong decisions cost, as in `outlast.LqSVC`.
    class_weight : dict, "balanced" or None, default=None
        Factors on C by class.
    fit_intercept : bool, default=True
        Whether intercepts, which are not penalised, are fitted.
    tol : float, default=1e-4
        Relative gap at which the fit counts as solved.
    max_iter : int, default=1000
        Most rounds of the fit to the sample.
    memory : str or int, default="1GB"
        Memory for rows on the client: it sets the size of the sample.
    n_jobs : int or None, default=None
        Threads on the client.
    random_state : int, RandomState or None, default=None
        Seed of the sample.
    verbose : int, default=0
        1 shows a bar in terminals and notebooks, and lines elsewhere; 2 prints lines everywhere.
    time_limit : float or None, default=None
        Seconds after which `fit` ends with the best model so far. Reading counts, and is not cut short.

    Attributes
    ----------
    gap_ : float
        With q >= 1 the relative duality gap. With q < 1, where there is no dual point, and with very many columns the decrease that the last quadratic model
        promises and what smoothing adds, next to the objective.
    selected_features_, classes_, coef_, intercept_, objective_, objective_trace_, status_, n_iter_, n_features_in_, feature_names_in_
        As of `outlast.LqSVC`.
    passes_, bytes_per_pass_, history_, partition_rows_
        As of `TruncatedSVC` here.

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from outlast.dask import LqSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 5))
    >>> y = (X[:, 0] - 2 * X[:, 3] + 0.5 * rng.standard_normal(1000) > 0).astype(int)
    >>> LqSVC(0.1, q=0.5).fit(da.from_array(X, chunks=(300, 5)), y).selected_features_
    array([0, 3])
    """

    solver = "auto"
    feature_map = "identity"

    def __init__(
        self,
        C: float = 1.0,
        *,
        q: float = 1.0,
        cost: Any = None,
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        memory: str | int = "1GB",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        time_limit: float | None = None,
    ) -> None:
        self.C = C
        self.q = q
        self.cost = cost
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.time_limit = time_limit

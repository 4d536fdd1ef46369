"""`TruncatedSVC`: the support vector machine whose loss is cut off, as a scikit-learn estimator."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from . import _core, _input


class TruncatedSVC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Support vector classifier whose loss stops growing, so that outliers lose their grip.

    Minimises

    .. math:: \mathrm{penalty}(f) + C \sum_i w_i \, \min(\ell(m_i), \ell(s))

    over functions of the kernel's space plus an intercept. With two classes :math:`m_i = y_i f(x_i)`, the functional
    margin of a row; with k classes there is a function for each, summing to 0, the largest wins, and
    :math:`m_i = f_{y_i}(x_i) - \max_{j \ne y_i} f_j(x_i)`. A row whose margin falls below the truncation :math:`s` costs
    the constant :math:`\ell(s)` wherever it lies: it is given up as an outlier (`outliers_`) and no longer pulls at the
    boundary. The problem is not convex; it is solved as a sequence of convex problems along which the objective never
    rises (Wu and Liu, JASA 2007). With a utility matrix U each row has a term for every class,
    :math:`U_{y_i j} \min(\ell(m_{ij}), \ell(s))` with the margin :math:`m_{ij}` of class j (Liu, Wu and He).

    Requires scikit-learn 1.6 or later.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the penalty, > 0. The same C as in `sklearn.svm.SVC`.
    truncation : float <= 0, "auto" or None, default="auto"
        Where the loss is cut off, the paper's s. "auto" is the lowest Fisher-consistent point (-1/(k-1) for the hinge
        and k classes), 0 is psi-learning, None leaves the loss whole: the ordinary support vector machine.
    loss : {"hinge", "logistic", "exponential"}, default="hinge"
        The loss before truncation.
    penalty : {"l2", "l1", "adaptive_l1"}, default="l2"
        Half the squared norm; the sum of the absolute coefficients, which selects variables; or that sum with each
        coefficient divided by its size in the l2 fit, which selects fewer and shrinks them less. The last two need the
        linear kernel.
    kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        The kernel, as in `sklearn.svm.SVC`. A callable gets two matrices and returns the matrix of kernel values.
    gamma : float, "scale", "auto", "q1", "median" or "q3", default="scale"
        Width of the rbf, poly and sigmoid kernels. "scale" is 1 / (n_features * X.var()), with rows counted by their
        sample weight; "auto" is 1 / n_features; the others are 1 / (2 sigma^2) with sigma a quartile of the distances
        between rows of different classes.
    degree : int, default=3
        Power of the poly kernel.
    coef0 : float, default=0.0
        Constant of the poly and sigmoid kernels.
    utility : array-like or DataFrame of shape (n_classes, n_classes), default=None
        What a decision is worth, >= 0: row = true class, column = decision, in the order of `classes_`; a DataFrame goes
        by the names of its rows and columns. None: right decisions are worth 1, others nothing.
    cost : array-like or DataFrame of shape (n_classes, n_classes), default=None
        What a decision costs, >= 0, in place of `utility`.
    cost_form : {"utility", "direct"}, default="utility"
        How costs enter: as the utilities max(cost) - cost, or as they are, in a loss that is not convex even without
        truncation (hinge loss and l2 penalty only).
    utility_baseline : {"keep", "row_minimum"}, default="keep"
        What is subtracted from each utility: nothing, or the smallest of its row. The best decisions stay the same, the
        loss that stands in for them does not.
    class_weight : dict, "balanced" or None, default=None
        Factors on C by class.
    fit_intercept : bool, default=True
        Whether an intercept, which is not penalised, is fitted.
    tol : float, default=1e-4
        Relative duality gap at which a convex step stops.
    max_iter : int, default=100
        Most steps of the d.c. algorithm.
    warm_start : bool, default=False
        Start from the previous fit if it was of as many rows, columns and the same classes.
    n_jobs : int or None, default=None
        Threads of `fit` and of prediction. None takes all cores, or this process's share of them inside joblib's
        workers.
    cache_size : float, default=1000
        Megabytes the kernel solver may keep.
    random_state : int, RandomState or None, default=None
        Seed of whatever a solver draws at random. None draws the same every time.
    verbose : int, default=0
        Whether to print progress.
    solver : str, default="auto"
        Name of the solver, or "auto" to choose it by the shape of the data; see `solver_`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted. With two, positive decision values mean the second.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The weights of a linear kernel's functions; one function for two classes, else one per class.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts.
    n_features_selected_ : int
        Columns with a coefficient that is not 0; linear kernel only.
    selected_features_ : ndarray of shape (n_features_selected_,)
        Their names, where X had any, else their positions.
    support_ : ndarray of shape (n_SV,)
        Positions of the support vectors among the training rows, ascending.
    support_vectors_ : {ndarray, sparse matrix} of shape (n_SV, n_features)
        The support vectors; empty for a precomputed kernel.
    n_support_ : ndarray of shape (n_classes,)
        Support vectors of each class.
    dual_coef_ : ndarray of shape (1, n_SV) or (n_classes, n_SV)
        Their coefficients. With the l1 penalties they only certify: what predicts is `coef_`.
    objective_ : float
        The value of the full, non-convex objective.
    objective_trace_ : ndarray
        The objective at the start and after each step. It never rises.
    n_iter_ : int
        Steps of the d.c. algorithm, at least 1.
    status_ : {"converged", "inaccurate", "iteration_limit"}
        How the fit ended: at the tolerance; as near to it as rounding allowed; or at `max_iter` or a solver's own limit.
        All but the first are also told by a `ConvergenceWarning`. A file of a fit on the command line may also say
        "time_limit".
    gap_ : float
        Relative duality gap of the last convex problem.
    solver_ : str
        The solver that was taken.
    margins_ : ndarray of shape (n_samples,)
        The functional margin of each training row.
    outliers_ : ndarray of bool of shape (n_samples,)
        Rows whose margin is below the truncation.
    outlier_scores_ : ndarray of shape (n_samples,)
        Larger = more suspect.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X had any.

    See Also
    --------
    sklearn.svm.SVC : What ``truncation=None`` amounts to.

    Notes
    -----
    Model files (`save`) keep what predicts and how it was made. What the fit says about each training row (`margins_`,
    `outliers_`, `outlier_scores_`, `support_vectors_`, `n_support_`) is kept by pickling only.

    Examples
    --------
    Ten points on a line, two of which carry the wrong label:

    >>> import numpy as np
    >>> from outlast import TruncatedSVC
    >>> X = np.array([[-5.0], [-4.0], [-3.0], [-2.0], [-1.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> y = np.array([1, 0, 0, 0, 0, 1, 1, 1, 1, 0])
    >>> model = TruncatedSVC(kernel="linear").fit(X, y)
    >>> np.flatnonzero(model.outliers_)
    array([0, 9])
    >>> model.predict([[-6.0], [6.0]])
    array([0, 1])

    Three classes, and a mistake that is worth half as much as being right:

    >>> X = np.array([[0.0, 0.0], [0.2, 0.1], [1.0, 0.0], [1.1, 0.2], [0.0, 1.0], [0.1, 1.2]])
    >>> y = np.array(["a", "a", "b", "b", "c", "c"])
    >>> model = TruncatedSVC(10.0, kernel="linear", utility=[[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]).fit(X, y)
    >>> model.coef_.shape, model.decision_function(X).shape, float(model.utility_score(X, y))
    ((3, 2), (6, 3), 1.0)
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        truncation: float | str | None = "auto",
        loss: str = "hinge",
        penalty: str = "l2",
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        utility: Any = None,
        cost: Any = None,
        cost_form: str = "utility",
        utility_baseline: str = "keep",
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 100,
        warm_start: bool = False,
        n_jobs: int | None = None,
        cache_size: float = 1000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        solver: str = "auto",
    ) -> None:
        self.C = C
        self.truncation = truncation
        self.loss = loss
        self.penalty = penalty
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.utility = utility
        self.cost = cost
        self.cost_form = cost_form
        self.utility_baseline = utility_baseline
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.cache_size = cache_size
        self.random_state = random_state
        self.verbose = verbose
        self.solver = solver

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TruncatedSVC:
        """Fit to training data.

        Ctrl-C stops it; other threads run meanwhile.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows. float64, float32 and CSR are taken as they are, everything else is converted. With
            ``kernel="precomputed"`` the n_samples x n_samples matrix of kernel values.
        y : array-like of shape (n_samples,)
            The labels: two classes or more, numbers or text.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on C by row, >= 0. A row of weight 2 counts as two rows.

        Returns
        -------
        self : TruncatedSVC
            The fitted estimator.
        """
        X, y = validate_data(self, X, y, **self._accepted())
        classes, codes = _input.encode(y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            _input.check_positive_weights(codes, sample_weight)
        previous = self._previous_fit(X, classes) if self.warm_start else None
        rows = self._kernel_values(X, X) if callable(self.kernel) else X
        fitted = _core.fit(
            _input.matrix(rows),
            codes,
            _input.class_names(classes),
            c=_input.real("C", self.C),
            truncation=None if self.truncation is None else _input.name_or_real("truncation", self.truncation),
            loss=_input.text("loss", self.loss),
            penalty=_input.text("penalty", self.penalty),
            kernel="precomputed" if callable(self.kernel) else _input.text("kernel", self.kernel),
            gamma=_input.name_or_real("gamma", self.gamma),
            degree=_input.whole("degree", self.degree, 1, 64),
            coef0=_input.real("coef0", self.coef0),
            utility=_input.payoff("utility", self.utility, classes),
            cost=_input.payoff("cost", self.cost, classes),
            cost_form=_input.text("cost_form", self.cost_form),
            utility_baseline=_input.text("utility_baseline", self.utility_baseline),
            class_weight=self._class_factors(classes, y),
            fit_intercept=bool(self.fit_intercept),
            tol=_input.real("tol", self.tol),
            max_iter=_input.whole("max_iter", self.max_iter, 1),
            cache_size=_input.real("cache_size", self.cache_size),
            threads=_input.threads(self.n_jobs),
            random_state=_input.seed(self.random_state),
            solver=_input.text("solver", self.solver),
            sample_weight=sample_weight,
            feature_names=self._column_names(),
            start=previous,
            progress=_print_progress if self.verbose else None,
        )
        self.classes_ = classes
        self._training_rows = X if callable(self.kernel) else None
        self._take(fitted)
        self._take_training(fitted, X, codes)
        if self.status_ != "converged":
            self._warn()
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """f(x) plus the intercept for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; with ``kernel="precomputed"`` their kernel values against the training rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, positive values mean ``classes_[1]``; with more, the largest wins.
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
        """
        rows = self._rows(X)
        return self.classes_[self._fitted.predict_codes(rows, _input.threads(self.n_jobs))]

    def utility_score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The average utility of the decisions, or their average cost for a model fitted with costs.

        Without such a matrix a right decision is worth 1 and a wrong one nothing: the accuracy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; with ``kernel="precomputed"`` their kernel values against the training rows.
        y : array-like of shape (n_samples,)
            Their true classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
            Higher is better with utilities, lower with costs.
        """
        rows = self._rows(X)
        decided = self._fitted.predict_codes(rows, _input.threads(self.n_jobs))
        true = column_or_1d(y)
        check_consistent_length(decided, true, sample_weight)
        place = {label: at for at, label in enumerate(self.classes_.tolist())}
        if unknown := [label for label in np.unique(true).tolist() if label not in place]:
            raise ValueError(f"y holds classes that the model does not know: {unknown[:10]!r}")
        places = [place[label] for label in true.tolist()]
        matrix = self._fitted.cost if self._fitted.utility is None else self._fitted.utility
        k = len(self.classes_)
        payoff = np.eye(k) if matrix is None else np.reshape(matrix, (k, k))
        return float(np.average(payoff[places, decided], weights=sample_weight))

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

    def _accepted(self) -> dict[str, Any]:
        """What validate_data lets through as it is."""
        return {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}

    def _rows(self, X: Any) -> Any:
        """X of a prediction in the core's form."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, **self._accepted())
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
        if self.class_weight is None:
            return None
        return [float(factor) for factor in compute_class_weight(self.class_weight, classes=classes, y=y)]

    def _column_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

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
        self.dual_coef_ = fitted.dual_coef.reshape(-1, fitted.functions).T
        self.objective_ = fitted.objective
        self.objective_trace_ = fitted.trace
        # scikit-learn expects at least 1: solving the first convex problem counts where nothing was left to do after it
        self.n_iter_ = max(1, fitted.steps)
        self.status_ = fitted.status
        self.gap_ = fitted.gap
        self.solver_ = fitted.solver

    def _take_training(self, fitted: _core.Fitted, X: Any, codes: NDArray[np.uint32]) -> None:
        # of a kernel matrix no rows are known
        self.support_vectors_ = np.empty((0, 0)) if self.kernel == "precomputed" else X[self.support_]
        self.n_support_ = np.bincount(codes[self.support_], minlength=len(self.classes_))
        self.margins_ = fitted.margins
        self.outliers_ = fitted.outliers
        self.outlier_scores_ = fitted.outlier_scores

    def _warn(self) -> None:
        warnings.warn(
            f"the fit ended with status {self.status_!r} after {self.n_iter_} steps, at a relative duality gap of "
            f"{self.gap_:.1e} (tol = {self.tol:g}): raise max_iter or tol, or scale the columns of X",
            ConvergenceWarning,
            stacklevel=3,
        )


def load(path: str | os.PathLike[str]) -> TruncatedSVC:
    """Read a model file.

    Nothing in a model file is ever executed, so a file from a stranger is safe to load.

    Parameters
    ----------
    path : str or path-like
        A file written by `TruncatedSVC.save` or by the command line.

    Returns
    -------
    TruncatedSVC
        Ready to predict, with every parameter that says which problem was solved and how exactly, so that a clone of it
        fits the same way. `truncation`, `gamma` and `class_weight` are the numbers that were used.

    Raises
    ------
    OSError
        The file can't be read.
    ValueError
        It is damaged, no model file, or written by a newer version.
    """
    fitted = _core.Fitted.load(os.fspath(path))
    model = TruncatedSVC(
        fitted.c,
        truncation=fitted.truncation,
        loss=fitted.loss,
        penalty=fitted.penalty,
        kernel=fitted.kernel,
        utility=_square(fitted.utility, fitted),
        cost=_square(fitted.cost, fitted),
        cost_form=fitted.cost_form,
        utility_baseline=fitted.utility_baseline,
        class_weight=None if fitted.class_weight is None else dict(zip(fitted.classes, fitted.class_weight, strict=True)),
        fit_intercept=fitted.fit_intercept,
        tol=fitted.tol,
        max_iter=fitted.max_iter,
        solver=fitted.solver_asked,
    )
    for name in ("gamma", "degree", "coef0"):
        value = getattr(fitted, name)
        if value is not None:
            model.set_params(**{name: value})
    model.classes_ = np.array(fitted.classes)
    model.n_features_in_ = fitted.features
    if fitted.feature_names is not None:
        model.feature_names_in_ = np.array(fitted.feature_names, dtype=object)
    model._training_rows = None
    model._take(fitted)
    return model


def _square(matrix: list[float] | None, fitted: _core.Fitted) -> NDArray[np.float64] | None:
    return None if matrix is None else np.reshape(matrix, (len(fitted.classes), -1))


def _print_progress(stage: str, step: int, objective: float, gap: float) -> None:
    print(f"[outlast] {stage}, step {step}: objective {objective:.8g}, gap {gap:.1e}", file=sys.stdout, flush=True)

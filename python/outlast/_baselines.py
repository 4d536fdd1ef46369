"""`CentroidSVC` and `LeaveOneOutSVC`: the baselines that ablation is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core, _input
from ._estimator import KernelClassifier


class CentroidSVC(KernelClassifier):
    r"""Support vector classifier that asks less of rows far from the centre of their class.

    Minimises

    .. math:: \tfrac12 \|f\|^2 + C \sum_i w_i \, [1 - y_i f(x_i) - \mathrm{shift}\,\|x_i - \mu_{y_i}\|^2]_+

    (Song, Hu and Xie 2002), with distances in the kernel's space and weighted means as centres. With more than two classes
    each is set against all the others.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the penalty, > 0.
    shift : float >= 0 or "auto", default="auto"
        Factor on the squared distance; 0 is the ordinary support vector machine. "auto" is 1 / (2 m) with m the median
        squared distance: half the margin is asked of a row at that distance.
    kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, default="linear"
        The kernel, as in `sklearn.svm.SVC`; positive semidefinite. A callable gets two matrices and returns the matrix of
        kernel values.
    gamma : float, "scale", "auto", "q1", "median" or "q3", default="scale"
        Width of the rbf, poly and sigmoid kernels, as in `TruncatedSVC`.
    degree : int, default=3
        Power of the poly kernel.
    coef0 : float, default=0.0
        Constant of the poly and sigmoid kernels.
    class_weight : dict, "balanced" or None, default=None
        Factors on C by class.
    fit_intercept : bool, default=True
        Whether an intercept, which is not penalised, is fitted.
    tol : float, default=1e-4
        Relative duality gap at which the problem counts as solved.
    max_iter : int, default=100
        Of no effect here; the problem is convex, and one step solves it.
    n_jobs : int or None, default=None
        Threads of `fit` and of prediction. None takes all cores, or this process's share of them inside joblib's
        workers.
    cache_size : float, default=1000
        Megabytes the kernel solver may keep.
    random_state : int, RandomState or None, default=None
        Seed of whatever a solver draws at random. None draws the same every time.
    verbose : int, default=0
        1 shows a bar in terminals and notebooks, and lines elsewhere; 2 prints lines everywhere.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted. With two, positive decision values mean the second.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The weights of a linear kernel's functions; one function for two classes, else one per class.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts.
    support_, support_vectors_, n_support_, dual_coef_
        The rows that carry the decision functions and their coefficients, as in `TruncatedSVC`.
    objective_ : float
        The value of the full objective; of more than two classes the sum over their problems.
    shift_ : float
        The shift that was used; of more than two classes the mean over their problems.
    gap_ : float
        Relative duality gap.
    n_iter_ : int
        Steps, at least 1.
    status_ : {"converged", "inaccurate", "iteration_limit"}
        How the fit ended. All but the first are also told by a `ConvergenceWarning`.
    margins_ : ndarray of shape (n_samples,)
        The functional margin of each training row.
    outliers_ : ndarray of bool of shape (n_samples,)
        Rows so far out that nothing is asked of them.
    outlier_scores_ : ndarray of shape (n_samples,)
        Larger = more suspect: minus the margin.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X had any.

    Examples
    --------
    >>> from outlast import CentroidSVC
    >>> model = CentroidSVC(shift=0.1).fit([[-2.0], [-1.0], [1.0], [2.0]], ["a", "a", "b", "b"])
    >>> model.predict([[-3.0], [3.0]])
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        shift: float | str = "auto",
        kernel: str | Callable[[Any, Any], Any] = "linear",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 100,
        n_jobs: int | None = None,
        cache_size: float = 1000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.shift = shift
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.cache_size = cache_size
        self.random_state = random_state
        self.verbose = verbose

    def _method_name(self) -> str:
        return "centroid"

    def _own_parameters(self, classes: NDArray[Any]) -> dict[str, Any]:
        return {"shift": _input.name_or_real("shift", self.shift)}

    @classmethod
    def _stored_parameters(cls, fitted: _core.Fitted) -> dict[str, Any]:
        return {"shift": fitted.detail("shift")}

    def _take(self, fitted: _core.Fitted) -> None:
        super()._take(fitted)
        self.shift_ = fitted.detail("shift")


class LeaveOneOutSVC(KernelClassifier):
    r"""The leave-one-out machine, and with another factor the adaptive-margin machine.

    Minimises over :math:`\alpha \ge 0`

    .. math:: \sum_i w_i \, [1 - y_i f(x_i) + \mathrm{factor}\,\alpha_i k(x_i, x_i)]_+, \qquad
        f = \sum_j \alpha_j y_j k(x_j, \cdot)

    (Weston and Herbrich 2000), a linear program: a row counts by how well the *other* rows predict it. There is neither C
    nor an intercept. With more than two classes each is set against all the others. Time grows with the cube of the
    number of rows, which may be at most 20,000.

    Parameters
    ----------
    factor : float, default=1.0
        Factor on a row's own term, > 0; other than 1: adaptive margins.
    kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, default="linear"
        The kernel, as in `sklearn.svm.SVC`; positive semidefinite. A callable gets two matrices and returns the matrix of
        kernel values.
    gamma : float, "scale", "auto", "q1", "median" or "q3", default="scale"
        Width of the rbf, poly and sigmoid kernels, as in `TruncatedSVC`.
    degree : int, default=3
        Power of the poly kernel.
    coef0 : float, default=0.0
        Constant of the poly and sigmoid kernels.
    tol : float, default=1e-6
        Relative gap at which the program counts as solved.
    max_iter : int, default=100
        Most iterations of the interior point.
    n_jobs : int or None, default=None
        Threads of `fit` and of prediction. None takes all cores, or this process's share of them inside joblib's
        workers.
    cache_size : float, default=1000
        Megabytes the kernel solver may keep.
    random_state : int, RandomState or None, default=None
        Seed of whatever a solver draws at random. None draws the same every time.
    verbose : int, default=0
        1 shows a bar in terminals and notebooks, and lines elsewhere; 2 prints lines everywhere.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted. With two, positive decision values mean the second.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The weights of a linear kernel's functions; one function for two classes, else one per class.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts.
    support_, support_vectors_, n_support_, dual_coef_
        The rows that carry the decision functions and their coefficients, as in `TruncatedSVC`.
    objective_ : float
        The value of the full objective; of more than two classes the sum over their problems.
    gap_ : float
        Relative gap, as far as the optimality conditions fail.
    n_iter_ : int
        Steps, at least 1.
    status_ : {"converged", "inaccurate", "iteration_limit"}
        How the fit ended. All but the first are also told by a `ConvergenceWarning`.
    margins_ : ndarray of shape (n_samples,)
        The functional margin of each training row.
    outliers_ : ndarray of bool of shape (n_samples,)
        None: the program gives no row up.
    outlier_scores_ : ndarray of shape (n_samples,)
        Larger = more suspect: minus the margin.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X had any.

    Examples
    --------
    >>> from outlast import LeaveOneOutSVC
    >>> model = LeaveOneOutSVC().fit([[-2.0], [-1.0], [1.0], [2.0]], ["a", "a", "b", "b"])
    >>> model.predict([[-3.0], [3.0]])
    array(['a', 'b'], dtype='<U1')
    """

    C = 1.0
    fit_intercept = False

    def __init__(
        self,
        *,
        factor: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "linear",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 100,
        n_jobs: int | None = None,
        cache_size: float = 1000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.factor = factor
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.cache_size = cache_size
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> LeaveOneOutSVC:  # type: ignore[override]
        """Fit to training data.

        There are no sample weights: to this machine a row of weight 2 would not be what two equal rows are, since each of
        the two helps the other.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; with ``kernel="precomputed"`` the n_samples x n_samples matrix of kernel values.
        y : array-like of shape (n_samples,)
            The labels: two classes or more, numbers or text.

        Returns
        -------
        self : LeaveOneOutSVC
            The fitted estimator.
        """
        return super().fit(X, y)

    def _method_name(self) -> str:
        return "loo"

    def _own_parameters(self, classes: NDArray[Any]) -> dict[str, Any]:
        return {"factor": _input.real("factor", self.factor)}

    @classmethod
    def _stored_parameters(cls, fitted: _core.Fitted) -> dict[str, Any]:
        return {"factor": fitted.detail("factor")}

"""`AblationSVC`: convex relaxations that switch outliers off, with a bound of the global optimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core, _input
from ._estimator import KernelClassifier


class AblationSVC(KernelClassifier):
    r"""Support vector classifier by convex outlier ablation: the relaxations REH and ROD.

    Minimises a convex relaxation of

    .. math::
        \mathrm{REH:}\quad \tfrac12 \|f\|^2 + C \sum_i w_i \min(1, [1 - y_i f(x_i)]_+)

        \mathrm{ROD:}\quad \tfrac12 \|f\|^2 + C \sum_i w_i \eta_i [1 - y_i f(x_i)]_+,
        \quad 0 \le \eta_i \le 1,\ \sum_i w_i \eta_i \ge \rho \sum_i w_i

    (Xu, Crammer and Schuurmans, AAAI 2006, corrected), to a certified gap. The relaxation's value bounds the global optimum
    of the problem itself from below (`lower_bound_`), and its classifier is the start of a local search that ends in a
    critical point of that problem. With more than two classes each is set against all the others.

    Parameters
    ----------
    method : {"reh", "rod"}, default="reh"
        "reh": a row costs at most C, which is the hinge truncated at 0. "rod": a given share of the rows is obeyed.
    C : float, default=1.0
        Weight of the loss against the penalty, > 0; 1 / beta of the paper.
    inlier_fraction : float in (0, 1], "auto", "cv" or "transition", default="auto"
        The share rho of the rows' weight that "rod" keeps. "cv", which is also "auto", takes the share from 0.5 to 1 with the
        fewest mistakes in five-fold cross-validation. "transition" takes the smallest share at which some eta reaches 1,
        which the paper reports to be the share of the inliers; see the notes for how well they do.
    refine : bool, default=True
        Whether the relaxation's classifier is refined by turns: keep the rows it favours, fit to these, and again. False
        keeps the relaxation's own.
    kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, default="linear"
        The kernel, as in `sklearn.svm.SVC`; positive semidefinite. A callable gets two matrices and returns the matrix of
        kernel values.
    gamma : float, "scale", "auto", "q1", "median" or "q3", default="scale"
        Width of the rbf, poly and sigmoid kernels, as in `TruncatedSVC`.
    degree : int, default=3
        Power of the poly kernel.
    coef0 : float, default=0.0
        Constant of the poly and sigmoid kernels.
    fit_intercept : bool, default=False
        Whether an intercept, which is not penalised, is fitted. The paper has none; see the notes.
    tol : float or None, default=None
        Relative gap between the relaxation's value and its certificate at which it counts as solved. None is 1e-6, and
        1e-3 with an intercept, where every further digit takes several times as long.
    max_iter : int, default=100
        Most steps of the refinement.
    time_limit : float or None, default=None
        Seconds after which `fit` ends with the best model so far.
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
    objective_trace_ : ndarray
        The objective of the relaxation's classifier and after each step of its refinement. It never rises.
    lower_bound_ : float
        A certified lower bound of the global optimum, in the units of `objective_`.
    eta_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        How far the relaxation keeps each row, from 0 to 1.
    inlier_fraction_ : float
        The share that was kept ("rod"); of more than two classes the mean over their problems.
    gap_ : float
        Relative gap between the relaxation's value and its certificate.
    n_iter_ : int
        Steps, at least 1.
    status_ : {"converged", "inaccurate", "iteration_limit", "time_limit"}
        How the fit ended. All but the first are also told by a `ConvergenceWarning`.
    margins_ : ndarray of shape (n_samples,)
        The functional margin of each training row.
    outliers_ : ndarray of bool of shape (n_samples,)
        Rows given up: at a margin of 0 or less ("reh"), or beyond the share kept ("rod").
    outlier_scores_ : ndarray of shape (n_samples,)
        Larger = more suspect: minus the margin.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X had any.

    See Also
    --------
    TruncatedSVC : The same problem as "reh" with ``truncation=0``, by the d.c. algorithm, and many others.
    certify : How far a model may be from the global optimum.

    Notes
    -----
    The bound is close for small C or classes that are nearly separable. For large C it falls towards 0.

    With an intercept b the relaxation is solved for b in intervals that are split until the bound over all of them meets the
    best value found. (To lift b like a weight would make the relaxation worthless: nothing would keep its second moment.) That
    takes many times as long as without; where the tolerance is not met within a set number of intervals, the status is
    "iteration_limit" and `gap_` says what was reached.

    There is no ``class_weight``: pass ``sample_weight=compute_sample_weight("balanced", y)`` of scikit-learn or the like to `fit`.

    A row of weight two is two rows, but for ``inlier_fraction="cv"`` and "auto": folds deal out rows, so that two copies may lie on both sides of a
    split. With a share that is given, or that was chosen (`inlier_fraction_`), the fits are the same.

    Order rows by `outlier_scores_`, not by `eta_`: for small C every eta is near 1.

    Examples
    --------
    >>> import numpy as np
    >>> from outlast import AblationSVC
    >>> X = np.array([[-2.0], [-1.5], [-1.0], [1.0], [1.5], [2.0], [40.0]])
    >>> y = np.array([0, 0, 0, 1, 1, 1, 0])
    >>> model = AblationSVC("reh").fit(X, y)
    >>> np.flatnonzero(model.outliers_)
    array([6])
    >>> bool(model.lower_bound_ <= model.objective_)
    True
    """

    def __init__(
        self,
        method: str = "reh",
        C: float = 1.0,
        *,
        inlier_fraction: float | str = "auto",
        refine: bool = True,
        kernel: str | Callable[[Any, Any], Any] = "linear",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = False,
        tol: float | None = None,
        max_iter: int = 100,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        cache_size: float = 1000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.C = C
        self.inlier_fraction = inlier_fraction
        self.refine = refine
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.cache_size = cache_size
        self.random_state = random_state
        self.verbose = verbose

    def _tolerance(self) -> float:
        if self.tol is not None:
            return _input.real("tol", self.tol)
        return 1e-3 if self.fit_intercept else 1e-6

    def _method_name(self) -> str:
        name = _input.text("method", self.method)
        if name not in ("reh", "rod"):
            raise ValueError(f"method = {name!r} is not allowed: method must be 'reh' or 'rod'")
        return name

    def _own_parameters(self, classes: NDArray[Any]) -> dict[str, Any]:
        return {
            "inlier_fraction": _input.name_or_real("inlier_fraction", self.inlier_fraction),
            "refine": _input.flag("refine", self.refine),
        }

    @classmethod
    def _stored_parameters(cls, fitted: _core.Fitted) -> dict[str, Any]:
        share = fitted.detail("inlier_fraction")
        return {
            "method": fitted.method,
            "inlier_fraction": "auto" if share is None else share,
            "refine": fitted.detail("refined") != 0.0,
        }

    def _take(self, fitted: _core.Fitted) -> None:
        super()._take(fitted)
        self.lower_bound_ = fitted.detail("lower_bound")
        share = fitted.detail("inlier_fraction")
        if share is not None:
            self.inlier_fraction_ = share

    def _take_training(self, fitted: _core.Fitted, X: Any, codes: NDArray[np.uint32]) -> None:
        super()._take_training(fitted, X, codes)
        eta = fitted.eta
        if eta is not None:
            self.eta_ = eta if fitted.functions == 1 else eta.reshape(-1, fitted.functions)

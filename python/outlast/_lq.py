"""`LqSVC`: the support vector machine with an L_q penalty, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core, _input
from ._file_fits import FileFits


class LqSVC(FileFits):
    r"""Support vector classifier with the penalty sum \|w\|^q, q in (0, 2], which selects variables for q <= 1.

    Minimises

    .. math:: \sum_j |w_j|^q + C \sum_i w_i \, c_{y_i} [1 - y_i f(x_i)]_+, \qquad f(x) = w'x + b

    with two classes, :math:`c_{y}` the cost of taking a row of class y for the other. With k classes there is a function for
    each, summing to 0, the largest wins, and a row costs :math:`\sum_{j \ne y_i} c_{y_i j} [1 + f_j(x_i)]_+` (Liu, Zhang,
    Park and Ahn 2007). Intercepts are not penalised. q = 2 keeps every column, q = 1 sets coefficients to 0, and q < 1 to more
    of them while it shrinks the others less: the problem is then not convex, and the best of several local solutions is
    kept.

    Columns are penalised alike whatever their units: standardise them first.

    Requires scikit-learn 1.6 or later.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the penalty, > 0; the paper's lambda is 1 / (n C).
    q : float, default=1.0
        The penalty's power, in (0, 2].
    cost : array-like or DataFrame of shape (n_classes, n_classes), default=None
        What a decision costs, >= 0: row = true class, column = decision, in the order of `classes_`; a DataFrame goes by the
        names of its rows and columns. The diagonal is 0. None: every mistake costs 1.
    solver : {"auto", "lqa"}, default="auto"
        "auto" solves convex problems to the tolerance and, for q < 1, reweighted ones from several starts; coefficients that
        the solution does without are exactly 0 for q <= 1. "lqa" is the paper's local quadratic approximation from its linear
        discriminant start: coefficients come near 0 but seldom reach it, and it stalls.
    feature_map : {"identity", "squares"}, default="identity"
        What f is linear in: the columns, or the columns and their squares (twice as many coefficients).
    class_weight : dict, "balanced" or None, default=None
        Factors on C by class.
    fit_intercept : bool, default=True
        Whether an intercept, which is not penalised, is fitted.
    tol : float, default=1e-6
        Relative duality gap at which a convex step stops.
    max_iter : int, default=1000
        Most majorise-minimise steps.
    n_jobs : int or None, default=None
        Threads of `fit` and of prediction. None takes all cores, or this process's share of them inside joblib's
        workers.
    random_state : int, RandomState or None, default=None
        Seed of whatever a solver draws at random. None draws the same every time.
    verbose : int, default=0
        1 shows a bar in terminals and notebooks, and lines elsewhere; 2 prints lines everywhere.
    time_limit : float or None, default=None
        Seconds after which `fit` ends with the best model so far.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted. With two, positive decision values mean the second.
    coef_ : ndarray of shape (1, n_coefficients) or (n_classes, n_coefficients)
        The weights; one function for two classes, else one per class. One coefficient per column, or with
        ``feature_map="squares"`` the columns' and then their squares'.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts.
    n_features_selected_ : int
        Columns of X with a coefficient that is not 0.
    selected_features_ : ndarray of shape (n_selected,)
        Their names, where X had any, else their positions.
    objective_ : float
        The value of the objective.
    objective_trace_ : ndarray
        The objective at the start and after each majorise-minimise step, which never rises; with q >= 1 there is one convex problem, and one
        value.
    n_iter_ : int
        Majorise-minimise steps, at least 1.
    status_ : {"converged", "inaccurate", "iteration_limit", "time_limit"}
        How the fit ended; all but the first are also told by a `ConvergenceWarning`.
    gap_ : float
        Relative duality gap of the last convex problem; NaN for ``solver="lqa"``, which certifies nothing.
    solver_ : str
        The solver that was taken.
    margins_ : ndarray of shape (n_samples,)
        The functional margin of each training row.
    outlier_scores_ : ndarray of shape (n_samples,)
        Larger = more suspect.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X had any.

    See Also
    --------
    LqSVCCV : Chooses C and q by the data.
    TruncatedSVC : With ``penalty="lq"`` the same penalty on a loss that is cut off.

    Examples
    --------
    Two of six columns count:

    >>> import numpy as np
    >>> from outlast import LqSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 6))
    >>> y = X[:, 0] - 2 * X[:, 3] + 0.5 * rng.standard_normal(200) > 0
    >>> LqSVC(0.1, q=0.5).fit(X, y).selected_features_
    array([0, 3])
    """

    kernel = "linear"
    gamma = "scale"
    degree = 3
    coef0 = 0.0
    cache_size = 1000.0

    def __init__(
        self,
        C: float = 1.0,
        *,
        q: float = 1.0,
        cost: Any = None,
        solver: str = "auto",
        feature_map: str = "identity",
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        time_limit: float | None = None,
    ) -> None:
        self.C = C
        self.q = q
        self.cost = cost
        self.solver = solver
        self.feature_map = feature_map
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.time_limit = time_limit

    def _method_name(self) -> str:
        return "lq"

    def _own_parameters(self, classes: NDArray[Any]) -> dict[str, Any]:
        return {
            "q": _input.real("q", self.q),
            "cost": _input.payoff("cost", self.cost, classes),
            "solver": _input.text("solver", self.solver),
            "feature_map": _input.text("feature_map", self.feature_map),
        }

    @classmethod
    def _stored_parameters(cls, fitted: _core.Fitted) -> dict[str, Any]:
        return {
            "q": fitted.detail("q"),
            "cost": None if fitted.cost is None else np.reshape(fitted.cost, (len(fitted.classes), -1)),
            "solver": fitted.solver_asked,
            "feature_map": fitted.feature_map,
        }
